"""The paper's examples and figures, one file per vignette.

Each vignette has a TITLE, ``make(scale=..., seed=..., progress=...)`` that runs its studies and returns plain data,
``lines(data)`` that says in words what came out, and ``draw(data)`` that returns a figure. They use the package's own
front doors and no private statistics.
"""
