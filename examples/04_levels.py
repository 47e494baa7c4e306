"""Four procedures, four answers: Bayes, mirror Bayes, a partial posterior, and one that ignores the data."""

import ringtrue as rt
from ringtrue.procedures import DataAgnostic, Mirrored, NormalMean

belief = rt.Normal(0, 1)
bayes = NormalMean(size=2)


def log_likelihood(theta, y):
    return -0.5 * ((y - theta) ** 2).sum()


zoo = {
    "Bayes": bayes,
    "mirror Bayes": Mirrored(bayes),
    "partial posterior": NormalMean(size=2, summary=1),
    "data-agnostic": DataAgnostic(data_ndim=1),
}
for name, procedure in zoo.items():
    result = rt.check(
        belief, bayes.simulate, procedure, n=1000, f=[rt.identity, rt.Function(log_likelihood, "log lik")]
    )
    levels = ", ".join(f"{level}: p = {found.pvalue:.2g}" for level, found in result.levels.items())
    print(f"{name}\n  {levels}\n  {result.sentence}\n")
