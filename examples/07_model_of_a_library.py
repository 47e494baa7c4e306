"""A model of another library in one line: belief, simulator and fit are the model's own (needs scikit-learn)."""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import ringtrue as rt
from ringtrue import adapters

seen = np.linspace(0, 1, 6)[:, None]
between = np.array([[0.25], [0.5], [1.2]])

# The same for PyMC, NumPyro, Stan, sbi and BayesFlow: adapters.pymc(model), adapters.numpyro(model), ...
process = GaussianProcessRegressor(RBF(0.3), alpha=0.01, optimizer=None)
print(rt.check(adapters.sklearn(process, seen, between), n=300).sentence)

# One that takes functions to be smoother than they are, for the data that the right one makes.
smoother = adapters.sklearn(GaussianProcessRegressor(RBF(0.6), alpha=0.01, optimizer=None), seen, between)
print(rt.check(adapters.sklearn(process, seen, between), procedure=smoother.procedure, n=300).sentence)
