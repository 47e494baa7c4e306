"""Evidence and sizes over replicates, drawn."""

import matplotlib as mpl
import numpy as np
import pytest

import ringtrue as rt
from tests.builders import BELIEF, noisy, posterior, refusal, says

mpl.use("Agg")

RESULT = rt.check(BELIEF, noisy, posterior, n=300, batch=300)


def test_evidence_is_drawn_with_its_limit() -> None:
    """The line is E at each look, on a logarithm, and the limit is 1 over alpha."""
    ax = rt.plots.evidence(RESULT)
    x, y = next(line for line in ax.lines if len(line.get_xdata()) > 10).get_data()
    assert (x[0], y[0], x[-1]) == (0, 0, 299)
    assert 10 ** y[-1] == pytest.approx(RESULT.evalue)
    assert any(np.allclose(line.get_ydata(), np.log10(20)) for line in ax.lines)
    assert "E = 20" in [text.get_text() for text in ax.texts]


def test_sequences_are_drawn_with_what_is_tolerated() -> None:
    """The last interval is that of the result's sequences; one size alone can be asked for."""
    spread, bias, coverage = rt.plots.sequences(RESULT, "theta")
    assert (spread.get_ylabel(), bias.get_xscale()) == ("factor on the reported sd", "log")
    n, last = RESULT.sequences("theta")["coverage"][-1]
    assert coverage.lines[-1].get_data()[0][-1] == n == 300
    assert coverage.lines[-1].get_data()[1][-1] == last.estimate
    alone = rt.plots.sequences(RESULT, "theta", sizes=("bias",))
    assert alone.get_ylabel() == bias.get_ylabel()


def test_what_cannot_be_drawn_is_said() -> None:
    """A test function that is not there, and sizes that nobody has."""
    says(refusal(lambda: rt.plots.sequences(RESULT, "nothing")), "nothing", "theta")
    says(refusal(lambda: rt.plots.sequences(RESULT, "theta", sizes=("depth",))), "no spread, bias or coverage")
