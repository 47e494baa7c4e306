"""A procedure that passes every linear test function and is not calibrated.

Richardson's iteration for y = A theta, started from the belief. u is exactly uniform for linear f; the distance from
the centre and the weak test show that the output is wrong.
"""

import numpy as np

import ringtrue as rt
from ringtrue.procedures import Richardson

belief = rt.Gaussian([0.0], [[1.0]])
solver = Richardson([[1.0]], step=0.5)  # output N(theta / 2, 1 / 4)

settings = {"n": 2000, "batch": 1000}
linear = rt.check(belief, solver.simulate, solver, f=rt.Coordinate(index=(0,)), **settings)
print("identity only, strong level: p =", round(linear.levels["strong"].pvalue, 3))
square = rt.check(belief, solver.simulate, solver, f=rt.Vectorized(lambda t: t[0] ** 2, "square"), **settings)
print("theta squared, strong level: p =", square.levels["strong"].pvalue)
print("weak level: p =", linear.levels["weak"].pvalue)
print()
print(rt.check(belief, solver.simulate, solver, **settings))
assert linear.levels["strong"].pvalue > 1e-6 > square.levels["strong"].pvalue
assert np.isclose(linear.replicates.u.mean(), 0.5, atol=0.05)
