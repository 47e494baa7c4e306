"""A study for the command line: ``ringtrue check examples/study.py``."""

import ringtrue as rt
from ringtrue.procedures import Inflated, NormalMean

bayes = NormalMean()
study = rt.Study(rt.Normal(0, 1), bayes.simulate, Inflated(bayes, eta=0.5), batch=1000)
n = 2000
