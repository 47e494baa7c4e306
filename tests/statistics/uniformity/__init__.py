"""Tests of ringtrue.statistics.uniformity."""
