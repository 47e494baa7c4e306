"""Three bare functions, one call, a verdict."""

import ringtrue as rt

# A normal mean, one noisy observation. The exact posterior is N(y / 2, 1 / 2).
belief = rt.Normal(0, 1)


def model(theta, rng):
    return theta + rng.normal()


def exact(mu0, y):
    return rt.Normal(y / 2, 0.5**0.5)


def over_confident(mu0, y):
    return rt.Normal(y / 2, 0.5)  # variance 1/4 where 1/2 is right


for procedure in (exact, over_confident):
    print(f"--- {procedure.__name__}")
    print(rt.check(belief, model, procedure, n=3000))
    print()
