"""Two workers, a store, more replicates later, and other questions to the draws that were kept."""

import tempfile
from pathlib import Path

import ringtrue as rt


def model(theta, rng):
    return theta + rng.normal()


def sampler(mu0, y, rng):
    if abs(y) > 4:
        raise ArithmeticError("no convergence")
    return y / 2 + 0.5**0.5 * rng.normal(size=99)


study = rt.Study(rt.Normal(0, 1), model, sampler)
store = Path(tempfile.mkdtemp()) / "run.db"
settings = {"store": store, "keep": "draws", "on_failure": "record"}

rt.run(study, n=500, **settings)
replicates = rt.run(study, n=2000, workers=2, **settings)  # 1500 of them are new
print(rt.judge(replicates), "\n")

for failure in replicates.failures[:3]:
    print(f"replicate {failure.replicate} failed in the {failure.stage}: {failure.error}; see {failure.replay}")

print("\nAsked later, without the sampler:")
f = {"square": lambda t: t**2, "positive part": lambda t: max(t, 0.0)}
print(rt.judge(rt.store.recompute(store, f=f)).sentence)
