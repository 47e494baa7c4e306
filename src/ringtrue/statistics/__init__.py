"""Arrays in, numbers out: tests, sizes with intervals, planning. It knows nothing of studies."""
