"""The same work through other libraries and through ringtrue; ``python -m benchmarks.peers`` writes docs/benchmarks.md.

One module ``of_<library>`` per peer holds its documented calls at their defaults; the page shows their source. A module
may have:

* ``PACKAGES``: distributions whose versions are stated.
* ``TESTS``: label -> call of (theta, draws), shapes (n, d) and (n, M, d), that returns (evidence, p-value). Evidence is
  larger where more is wrong; the p-value is nan where the library has none.
* ``LARGEST``: the most replicates that it is given in tests.
* ``COSTS``: name of a work in ``work.WORKS`` -> call of its data. A call that returns a number states seconds per unit
  that it measured itself. ``PREPARED``: name of a work -> call that brings its data into the library's own form first,
  which is not counted.
* ``says``: call of (theta, draws) that returns the library's own words, and ``draw``, which saves its picture.

They know NumPy and their own library, and nothing of ringtrue, so that they run where it cannot be installed.
"""
