"""Arrays in, numbers out: tests of uniformity, sizes with intervals, two samples, many p-values into one, planning.

A closed room: of this package it imports `ringtrue.errors` only, and knows nothing of studies, replicates or verdicts.
"""
