"""Mutants that change no answer, found by reading them: the file, the function, the change, and why."""

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "judgement/diagnosis.py",
        "far_out",
        "if values.size < 3 or draws == 1 or column.chains: -> if values.size <= 3 or draws == 1 or column.chains:",
    ): "at most a quarter may be outliers: of three none, as the next guard says",
    (
        "judgement/diagnosis.py",
        "_of_scores",
        "w = (z - z.mean()) * (_CELLS / (2 * _EDGE * max(float(z.std()), 1e-300))) -> "
        "w = (z - z.mean()) * (_CELLS / (2 * _EDGE * max(float(z.std()), 1.25e-300)))",
    ): "a floor below all spreads that are diagnosed, which are larger than SMALLEST",
    (
        "judgement/diagnosis.py",
        "_normal_cells",
        "return (p, *_components(p, np.column_stack([middle, middle ** 2 - 1]))) -> "
        "return (p, *_components(p, np.column_stack([middle, middle ** 2 - 2])))",
    ): "what is made orthogonal to one and to the square plus a constant does not depend on the constant",
    (
        "judgement/inputs.py",
        "_steady",
        "return not alike and nearer > 0 and (float(special.bdtrc(nearer - 1, nearer + farther, 0.5)) <= chance) -> "
        "return not alike and nearer > 1 and (float(special.bdtrc(nearer - 1, nearer + farther, 0.5)) <= chance)",
    ): "a single pair has a chance of one half, never below the one in a million that is asked",
    (
        "judgement/result.py",
        "Tested",
        "__test__ = False -> __test__ = True",
    ): "a word to pytest, which would complain of the class in a test file that imports it; no answer depends on it",
    (
        "judgement/sentences/miscalibrated.py",
        "_width_of",
        "how = 'wider' if spread.estimate > 1 else 'narrower' -> how = 'wider' if spread.estimate >= 1 else 'narrower'",
    ): "an estimate of 1 lies in its interval, of which nothing is said then",
    (
        "replicates/reducers/chains.py",
        "_values",
        "return block.evaluate(block.functions[k], take(block.outputs.at_hand, slice(0, _DRAWS)), 2) -> "
        "return block.evaluate(block.functions[k], take(block.outputs.at_hand, slice(0, _DRAWS)), 3)",
    ): "only entries of a vector are read again here, which are counted from the last axis and not from the first",
    (
        "replicates/reducers/inputs.py",
        "module",
        "_CHUNK = 1000000 -> _CHUNK = 1000001",
    ): "how many numbers are marked at once; marks do not depend on company, which is tested",
    (
        "replicates/reducers/inputs.py",
        "_table",
        "return np.asarray(y[:few].reshape(min(few, len(y)), -1), np.float64) -> "
        "return np.asarray(y[:few].reshape(min(few, len(y)), -2), np.float64)",
    ): "NumPy takes any negative length for the one that it is to find",
    (
        "statistics/chains.py",
        "reference_noise",
        "ratio = of_chains / max(square, 1e-300) -> ratio = of_chains / max(square, 1.25e-300)",
    ): "a floor below all mean squares but 0, for which the numerator is 0 too",
    (
        "statistics/combining.py",
        "_relabelled_counts",
        "chunk = max(1, _CHUNK // (K * max(n, size))) -> chunk = max(2, _CHUNK // (K * max(n, size)))",
    ): "how many labellings are held at once, where a single one exceeds the budget of memory",
    (
        "statistics/effects/ranks.py",
        "cells_of",
        "edges = np.round((draws + 1) * special.ndtr(NODES + STEP / 2)).astype(np.int64) -> "
        "edges = np.round((draws + 1) * special.ndtr(NODES + STEP / 3)).astype(np.int64)",
    ): "where ranks are grouped is free: cells have their exact probability to 1.1e-4 with either",
    (
        "statistics/effects/ranks.py",
        "_newton_step",
        "longest = max(abs(step[0]) / max(1.0, s), abs(step[1])) -> "
        "longest = max(abs(step[1]) / max(1.0, s), abs(step[1]))",
    ): "a limit on the way to a maximum that is found without it; line search refuses steps that go down",
    (
        "statistics/effects/together.py",
        "averaged",
        "first = special.ndtr((points - mean[0]) / sd[0]) -> first = special.ndtr((points - mean[1]) / sd[0])",
    ): "what is subtracted is added again; of equal laws the second is the first",
}
