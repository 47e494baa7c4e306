"""Stores of format 1, which ringtrue 0.1 wrote: they are read, judged and repaired, and never written to."""

import copy as copying
import io
import json
import sqlite3
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue as rt
from ringtrue.errors import StoreDamaged, StoreError
from ringtrue.execution.store import Store, load, merge, recompute, repair
from ringtrue.execution.store.codec import checksum
from ringtrue.execution.store.format1 import upgrade_meta
from ringtrue.replicates.record import CHAINS

#: Four replicates of the study below, with draws, as the old version wrote them; the text of the traceback was cut.
DUMP = Path(__file__).with_name("format1.sql").read_text()
N = 4


def _model(theta: Any, rng: Any) -> Any:
    return theta + rng.normal()


def _chain(mu0: Any, y: Any, rng: Any) -> Any:
    if y > 1.0:
        raise ValueError("too large")
    return rt.Draws(y / 2 + 0.7 * rng.normal(size=25), iid=False)


def _asked() -> rt.Study:
    fit = rt.functions.Function(lambda t, y: -((t - y) ** 2), "fit")
    return rt.Study(lambda rng: rng.normal(), _model, _chain, f=[rt.identity, fit], seed=4)


def _sql(path: Path, statement: str, values: Any = ()) -> None:
    db = sqlite3.connect(path)
    db.execute(statement, values)
    db.commit()
    db.close()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a file of format 1."""
    db = sqlite3.connect(tmp_path / "old.db")
    db.executescript(DUMP)
    db.close()
    return tmp_path / "old.db"


def _assert_as_computed(found: rt.Replicates) -> None:
    """The file has what the study comes to today, bit by bit, but for places in chains, which were thinned then."""
    expected = rt.run(_asked(), n=N, on_failure="record")
    assert found.header == expected.header
    for name in found.arrays:
        array, whole = expected.arrays[name], _whole(found) if name in ("u", "z", "rank", "draws") else ...
        np.testing.assert_array_equal(found.arrays[name][whole], array[whole], err_msg=name)
        assert found.arrays[name].dtype == array.dtype
    np.testing.assert_array_equal(found.reference, expected.reference)
    assert [(one.replicate, one.stage, one.error) for one in found.failures] == [
        (one.replicate, one.stage, one.error) for one in expected.failures
    ]
    assert len(found.failures) == 1


def _whole(found: rt.Replicates) -> Any:
    """Return which truths were ranked among all draws of their chain, or lost."""
    return (found.draws == 25) | (found.draws == 0)


def test_a_file_of_format_1_is_read(old: Path) -> None:
    """Numbers, failures, reference values and test functions are those of the same study today."""
    before = old.read_bytes()
    _assert_as_computed(load(old))
    assert (load(old).treated[load(old).kept] == CHAINS).all()
    with Store.read(old) as store:
        assert store.progress().done == N
        assert store.draws(0, N)["draws"].shape == (N, 25)
    assert recompute(old, f={"square": lambda t: t**2}).n == N
    assert old.read_bytes() == before


def test_a_file_of_format_1_is_not_written_to(old: Path) -> None:
    """Going on says in one sentence what to run first."""
    before = old.read_bytes()
    with pytest.raises(StoreError, match=r"has format 1, which is read but not written; run: ringtrue repair .*old.db"):
        rt.run(_asked(), n=9, store=old, keep="draws", on_failure="record")
    assert old.read_bytes() == before


def test_what_a_repair_makes_of_it_goes_on(old: Path, tmp_path: Path) -> None:
    """The new file has the same replicates, its versions are the old ones, and a run with it computes the rest."""
    assert repair(old, tmp_path / "new.db").kept == N
    merge([old], tmp_path / "merged.db")
    for name in ("new.db", "merged.db"):
        _assert_as_computed(load(tmp_path / name))
    with Store.read(tmp_path / "new.db") as store:
        (written,) = store.versions
    with pytest.warns(UserWarning, match=f"written with ringtrue .* and NumPy {written['numpy']}.*goes on"):
        grown = rt.run(_asked(), n=9, store=tmp_path / "new.db", keep="draws", on_failure="record")
    whole = _whole(grown)
    assert whole.sum() == grown.u.size - 1
    np.testing.assert_array_equal(grown.u[whole], rt.run(_asked(), n=9, on_failure="record").u[whole])
    # Of the old replicates too little was kept to test them as chains: no verdict is based on what was.
    assert {row.pvalue for row in rt.judge(grown).levels["strong"].rows} == {1.0}
    with Store.read(tmp_path / "new.db") as store:
        assert [one["numpy"] for one in store.versions] == [written["numpy"], np.__version__]


def test_notes_of_format_1_become_fields(old: Path) -> None:
    """That truths were not drawn from the belief was a sentence, and is yes or no."""
    db = sqlite3.connect(old)
    value = json.loads(db.execute("SELECT text FROM meta").fetchone()[0])
    db.close()
    value["notes"].append(
        "theta was drawn from another law than the belief: even the exact posterior need not be uniform."
    )
    text = json.dumps(value)
    for copy in (0, 1):
        proof = checksum("meta", (copy, text))
        _sql(old, "UPDATE meta SET text = ?, checksum = ? WHERE copy = ?", (text, proof, copy))
    header = Store.read(old).header
    assert not header.of_belief
    assert not any("another law" in note for note in header.notes)


def test_functions_of_format_1_have_kinds(old: Path) -> None:
    """What version 0.1 told by the name of its own functions is told by their kind."""
    db = sqlite3.connect(old)
    value = json.loads(db.execute("SELECT text FROM meta").fetchone()[0])
    db.close()
    names = ["theta", "sum", "distance", "Mahalanobis", "log density", "mine"]
    levels = ["strong", "strong", "strong", "auto", "auto", "strong"]
    value["columns"] = [
        {**value["columns"][0], "name": name, "level": level, "coordinate": name == "theta"}
        for name, level in zip(names, levels, strict=True)
    ]
    text = json.dumps(value)
    _, upgraded, *_ = upgrade_meta((0, text, checksum("meta", (0, text))))
    kinds = [kind for _, kind, _ in json.loads(upgraded)["functions"]]
    assert kinds == ["coordinate", "sum", "overall", "mahalanobis", "log density", "function"]


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE spans SET arrays = zeroblob(100)",
        "UPDATE spans SET notes = '[]'",
        "UPDATE spans SET count = 3",
        "UPDATE meta SET text = '{}' WHERE copy = 1",
    ],
)
def test_damage_to_format_1_is_noticed(old: Path, tmp_path: Path, harm: str) -> None:
    """A row that is not as it was written is damage there too, and a repair goes without it."""
    _sql(old, harm)
    with pytest.raises(StoreDamaged, match="ringtrue repair"):
        load(old)
    assert repair(old, tmp_path / "new.db").kept == (N if "meta" in harm else 0)


def _many_names_for_one_part(times: int) -> bytes:
    """Return an archive of a megabyte that says it has that megabyte very often."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("floats.npy", bytes(10**6))
        (one,) = archive.filelist
        for k in range(times):
            again = copying.copy(one)
            again.filename = again.orig_filename = f"{k}.npy"
            archive.filelist.append(again)
        archive._didModify = True  # type: ignore[attr-defined]
    return whole.getvalue()


def test_an_archive_cannot_unpack_to_more_than_it_is(old: Path, tmp_path: Path) -> None:
    """Thousands of names for the same megabyte, with the right checksum, are refused before anything is unpacked."""
    blob = _many_names_for_one_part(5000)
    _sql(old, "UPDATE spans SET arrays = ?, checksum = ?", (blob, checksum("span", (0, N), blob)))
    tracemalloc.start()
    with pytest.raises(StoreDamaged, match="ringtrue repair"):
        load(old)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * len(blob)
    assert repair(old, tmp_path / "new.db").kept == 0
