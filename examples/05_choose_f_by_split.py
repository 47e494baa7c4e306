"""A large family of test functions: choose the most damning on one half of the replicates, test it on the other."""

import numpy as np

import ringtrue as rt
from ringtrue.procedures import LinearGaussian

d = 12
belief = rt.Gaussian(np.zeros(d), np.eye(d))
regression = LinearGaussian(np.eye(d) + 0.5 * np.eye(d, k=1))
assumed = LinearGaussian(np.eye(d))  # forgets that neighbours are coupled

family = [rt.Coordinate(index=(j,)) for j in range(d)]
for f in (family, rt.BestOf(family), rt.BestOf(family, splits=20)):
    result = rt.check(belief, regression.simulate, assumed, n=400, batch=400, f=f)
    print(f"{type(f).__name__:8s} strong p = {result.levels['strong'].pvalue:.2g}  {result.tests[0].method}")
