"""Draws that exist already, from anybody's sampler: theta (n, d) and draws (n, M, d)."""

import numpy as np

import ringtrue as rt

rng = np.random.default_rng(7)
n, draws, d = 1000, 99, 2
y = rng.normal(size=(n, d))
theta = y + rng.normal(size=(n, d))  # the truth is N(y, I) given the data

# A sampler whose draws of the second coordinate are a fifth too narrow.
scale = np.array([1.0, 0.8])
posterior = y[:, None] + scale * rng.normal(size=(n, draws, d))

print(
    rt.check_draws(theta, posterior, f={"mu": lambda t: t[0], "nu": lambda t: t[1], "product": lambda t: t[0] * t[1]})
)
