"""Draws in a file on the command line: verdicts as of `check_draws`, and one sentence on what cannot be read."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.cli import main
from ringtrue.execution.archives import read_draws

from .builders import says


def _exit(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert isinstance(caught.value.code, int)
    return caught.value.code


def _fits(spread: float = 1.0, n: int = 300) -> dict[str, Any]:
    """Return truths, and draws whose sd is right for spread 1."""
    rng = np.random.default_rng(1)
    centre = rng.normal(size=n)
    return {
        "theta": centre + spread * rng.normal(size=n),
        "draws": centre[:, None] + rng.normal(size=(n, 49)),
    }


def _saved(folder: Path, **arrays: Any) -> str:
    path = folder / "fits.npz"
    np.savez_compressed(path, **arrays)
    return str(path)


def _refused(file: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which a file is refused."""
    assert _exit("check-draws", file) == 3
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


@pytest.mark.parametrize(("spread", "code"), [(3.0, 1), (1.0, 2)])
def test_a_file_is_judged_as_its_arrays_are(
    spread: float, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The result is that of `check_draws`, and its verdict the exit code: 300 right fits certify nothing at 1e-6."""
    fits = _fits(spread)
    assert _exit("check-draws", _saved(tmp_path, **fits), "--json", "--alpha", "1e-6") == code
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(rt.check_draws(fits["theta"], fits["draws"], alpha=1e-6).to_dict()))


def test_options_are_handed_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A wide tolerance certifies what the usual one leaves open; chains, and a page, are as in Python."""
    file, page = _saved(tmp_path, **_fits()), tmp_path / "page.html"
    wide = ["--tolerance", "spread=0.9", "--tolerance", "bias=0.9", "--tolerance", "coverage=0.5"]
    assert _exit("check-draws", file, "--alpha", "1e-6", *wide, "--report", str(page)) == 0
    assert page.exists()
    capsys.readouterr()
    assert _exit("check-draws", file, "--report", str(page)) == 3
    assert "would be written over" in capsys.readouterr().err
    assert _exit("check-draws", file, "--chains", "3") == 3
    says(capsys.readouterr().err, "3")


@pytest.mark.parametrize("text", ["spread", "spread=wide", "width=0.1", "=0.1"])
def test_a_tolerance_that_is_none_is_refused(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The names that there are stand in the sentence, and what was typed."""
    assert _exit("check-draws", _saved(tmp_path, **_fits()), "--tolerance", text) == 3
    says(capsys.readouterr().err, "NAME=X", "spread, bias, coverage", text)


def test_named_parameters_weights_and_what_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """theta/mu goes with draws/mu; weights are taken; arrays of other names are said not to be read."""
    fits = _fits()
    named = {"theta/mu": fits["theta"], "draws/mu": fits["draws"], "weights": np.ones((300, 49)), "y": np.zeros(3)}
    file = _saved(tmp_path, **named)
    assert set(read_draws(Path(file)).theta) == {"mu"}
    assert _exit("check-draws", file, "--json") == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["tests"][0]["f"] == "mu"
    assert "not read, since nothing asks for it: y" in captured.err


def test_fortran_order_is_kept(tmp_path: Path) -> None:
    """Arrays that were stored column by column come back as they were."""
    draws = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    file = _saved(tmp_path, theta=np.arange(2), draws=draws)
    np.testing.assert_array_equal(read_draws(Path(file)).draws, draws)


def test_wrong_names_and_shapes_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was expected, what arrived and what to do."""
    fits = _fits()
    says(_refused(_saved(tmp_path, truth=1, x=2), capsys), r"theta \(n,\)", "holds truth, x", "np.savez")
    says(_refused(_saved(tmp_path), capsys), "holds nothing")
    says(_refused(_saved(tmp_path, theta=fits["theta"], draws=fits["draws"].T), capsys), "swapaxes", "300")
    says(_refused(_saved(tmp_path, theta=np.array(["a"]), draws=fits["draws"]), capsys), "numbers", "<U1")
    mixed = {"theta/mu": fits["theta"], "draws": fits["draws"]}
    says(_refused(_saved(tmp_path, **mixed), capsys), "both be dicts")


class _Trap:
    """Leaves a trace where it is unpickled."""

    def __init__(self, trace: str) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return open, (self.trace, "w")


def test_objects_are_not_unpickled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An array of objects is refused before any of them is made."""
    trace = tmp_path / "trace"
    objects = np.array([_Trap(str(trace))], dtype=object)
    says(_refused(_saved(tmp_path, theta=objects, draws=np.zeros((1, 2))), capsys), "dtype object")
    assert not trace.exists()


def test_damaged_files_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever byte is changed and wherever a file ends, it is read as it was or refused."""
    whole = Path(_saved(tmp_path, **_fits(n=20))).read_bytes()
    rng = np.random.default_rng(0)
    file = tmp_path / "damaged.npz"
    for _ in range(200):
        changed = bytearray(whole)
        changed[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        file.write_bytes(bytes(changed[: rng.integers(len(whole))]) if rng.random() < 0.3 else bytes(changed))
        try:
            read_draws(file)
        except rt.errors.InvalidStudy:
            continue
    file.write_bytes(b"no archive")
    says(_refused(str(file), capsys), "npz file was expected", "BadZipFile")
    file.write_bytes(whole[:-30])
    says(_refused(str(file), capsys), "cannot be read", "save it again")
    table = tmp_path / "fits.csv"
    table.write_text("theta,draws\n")
    says(_refused(str(table), capsys), "npz file, but", r"check_draws\(theta, draws\)")


def test_more_than_came_is_not_unpacked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A small file that says it holds 64 GiB, or an array that its bytes do not fill, is refused unread."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (2**33,)})
    file = tmp_path / "bomb.npz"
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("theta.npy", "draws.npy"):
            archive.writestr(name, head.getvalue())
    says(_refused(str(file), capsys), "as many bytes as its shape", "8589934592")
    # The size in the directory of the archive, where nothing was unpacked yet.
    blob, small = file.read_bytes(), len(head.getvalue()).to_bytes(4, "little")
    file.write_bytes(blob.replace(small + small, small + (2**31).to_bytes(4, "little")))
    says(_refused(str(file), capsys), "must unpack to at most 1,073,741,824 bytes", "np.savez")
