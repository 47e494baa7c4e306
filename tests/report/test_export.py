"""Exports hold the numbers of the result, whole and in their place."""

import csv
import json
import math
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ringtrue as rt
from ringtrue import export
from ringtrue.characters import one_line
from ringtrue.errors import RingtrueError

from ..builders import HOSTILE, MANY, failing, hostile, over_confident, replicates

# pandas.


@MANY
def test_frames_are_the_rows_of_the_result(example: Callable[[], rt.Result]) -> None:
    """Tests and measures have a row each; replicates have one per replicate and test function, u in its place."""
    result, frames = example(), example().to_pandas()
    replicates = result.replicates
    assert frames.tests["pvalue"].tolist() == [row.pvalue for row in result.tests]
    assert frames.measures["name"].tolist() == [row.name for row in result.measures]
    table = frames.replicates
    assert table.columns.tolist() == ["replicate", "f", "lost", *export.ARRAYS]
    assert_array_equal(table["u"].to_numpy().reshape(replicates.u.shape), replicates.u)
    assert_array_equal(table["rank"].to_numpy().reshape(replicates.u.shape), replicates.rank)
    for k, function in enumerate(replicates.functions):
        assert_array_equal(table.loc[table["f"] == function.name, "u"], replicates.u[:, k])


def test_lost_replicates_stay_in_the_table() -> None:
    """A lost replicate is a row that says so, never a missing row."""
    table = failing().to_pandas().replicates
    lost = {failure.replicate for failure in failing().replicates.failures}
    assert lost
    assert set(table.loc[table["lost"], "replicate"]) == lost
    assert table.loc[table["lost"], "u"].isna().all()


def test_replicates_alone_have_no_tests() -> None:
    """Of Replicates, the frames of tests and measures are empty but have their columns."""
    frames = export.to_pandas(over_confident().replicates)
    assert (len(frames.tests), len(frames.measures), len(frames.replicates)) == (0, 0, 800)
    assert "pvalue" in frames.tests.columns


# xarray.


@MANY
def test_the_tree_holds_the_arrays(example: Callable[[], rt.Result]) -> None:
    """The group ``replicates`` has the arrays over (replicate, test_function)."""
    result, tree = example(), example().to_xarray()
    for name in export.ARRAYS:
        assert tree["replicates"][name].dims == ("replicate", "test_function")
        assert_array_equal(tree["replicates"][name].values, getattr(result.replicates, name))


def test_the_tree_has_what_arviz_plots_looks_for() -> None:
    """``prior_sbc`` has u over chain, draw and test_function, without lost replicates: nan would shift an ECDF."""
    group = failing().to_xarray()["prior_sbc"]
    kept = failing().replicates.kept
    assert group["u"].dims == ("chain", "draw", "test_function")
    assert group["u"].shape == (1, kept.sum(), 2)
    assert_array_equal(group["draw"].values, np.flatnonzero(kept))
    assert np.isfinite(group["u"].values).all()


def test_the_tree_says_where_it_comes_from() -> None:
    """Versions, seed and verdict are attributes, of types that netCDF can hold."""
    attributes = over_confident().to_xarray().attrs
    assert attributes["verdict"] == "MISCALIBRATED"
    assert attributes["seed"] == 0
    assert {"inference_library", "inference_library_version", "created_at", "numpy_version"} <= set(attributes)
    assert all(isinstance(value, (str, int, float)) for value in attributes.values())


# What is not installed.


@pytest.mark.parametrize(("method", "module"), [("to_pandas", "pandas"), ("to_xarray", "xarray")])
def test_a_missing_extra_is_one_sentence(method: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error is one line that ends in the command to run."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(RingtrueError, match=rf"^{method} needs {module}; run: pip install 'ringtrue\[export\]'$"):
        getattr(over_confident(), method)()


@pytest.mark.parametrize("function", [export.to_pandas, export.to_xarray])
def test_other_things_are_refused(function: Callable[[Any], Any]) -> None:
    """What is neither a result nor replicates is named."""
    with pytest.raises(TypeError, match="but int arrived"):
        function(3)


# JSON.


def _schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((resources.files("ringtrue.report") / "schema.json").read_text("utf-8"))
    return found


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} is not JSON")


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"), parse_constant=_refuse)
    return found


@MANY
def test_json_follows_its_schema(example: Callable[[], rt.Result], tmp_path: Path) -> None:
    """Every result, however odd, becomes JSON that the shipped schema accepts, without nan."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.validate(_read(export.to_json(example(), tmp_path / "x.json")), _schema())


@pytest.mark.slow
@MANY
def test_the_twin_of_a_page_follows_the_schema(example: Callable[[], rt.Result]) -> None:
    """With every measure in it, the JSON is accepted too, and names survive as they do elsewhere."""
    jsonschema = pytest.importorskip("jsonschema")
    every = _every(example)
    plain = json.loads(json.dumps({**export.document(example()), "details": every}, allow_nan=False))
    jsonschema.validate(plain, _schema())
    names = {column["name"] for column in plain["functions"]}
    assert {row["f"] for row in plain["details"]["measures"]} <= names | {"(all)"}


def _every(example: Callable[[], rt.Result]) -> dict[str, Any]:
    from ringtrue.report import content

    every = content.details(example())
    assert every is not None
    return every.plain


def test_the_schema_refuses_what_is_wrong(tmp_path: Path) -> None:
    """The broken twin: the schema is one, and refuses another verdict, a missing field, a stray one, and a p of 2."""
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(_schema())
    good = export.document(over_confident())
    wrong = [{**good, "verdict": "FINE"}, {**good, "stray": 1}, {**good, "pvalue": 2}]
    wrong += [{**good, "details": {"confidence": 0.95}}, {**good, "details": 3}]
    wrong.append({key: value for key, value in good.items() if key != "tests"})
    for plain in wrong:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(plain, _schema())


def test_json_says_what_the_result_says(tmp_path: Path) -> None:
    """Verdict, p-values and measures read back as they were."""
    result, found = over_confident(), _read(export.to_json(over_confident(), tmp_path / "x.json"))
    assert found["verdict"] == result.verdict.name
    assert found["pvalue"] == result.pvalue
    assert [row["estimate"] for row in found["measures"]] == [row.estimate for row in result.measures]
    assert found["levels_not_tested"] == ["auto"]


def test_json_keeps_hostile_text(tmp_path: Path) -> None:
    """Names survive as text; only what breaks lines, encodings or directions is spelled out."""
    found = _read(export.to_json(hostile(), tmp_path / "x.json"))
    names = [column["name"] for column in found["functions"]]
    assert names == [one_line(name) for name in HOSTILE]
    assert names[:4] == list(HOSTILE[:4])


def test_unbounded_and_unknown_numbers_are_null() -> None:
    """nan and infinity become None, at any depth, of Python's and NumPy's types."""
    plain = export._plain({"a": [math.nan, np.float64(math.inf), {"b": np.int64(3)}], "c": True})
    assert plain == {"a": [None, None, {"b": 3}], "c": True}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """No traceback, no half of a file."""
    with pytest.raises(RingtrueError, match="must be a file that can be written"):
        export.to_json(over_confident(), tmp_path / "absent" / "x.json")
    assert list(tmp_path.iterdir()) == []


# CSV.


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_reads_back(tmp_path: Path) -> None:
    """Every number of the tables reads back exactly; unknown ones are empty."""
    result = failing()
    files = export.to_csv(result, tmp_path / "folder")
    assert sorted(file.name for file in files) == ["diagnostics.csv", "measures.csv", "replicates.csv", "tests.csv"]
    rows = {file.stem: _table(file) for file in files}
    assert [float(row["pvalue"]) for row in rows["tests"]] == [row.pvalue for row in result.tests]
    u = np.array([float(row["u"] or "nan") for row in rows["replicates"]]).reshape(result.replicates.u.shape)
    assert_array_equal(u, result.replicates.u)
    lost = {int(row["replicate"]) for row in rows["replicates"] if row["lost"] == "True"}
    assert lost == {failure.replicate for failure in result.replicates.failures}


def test_csv_keeps_hostile_names(tmp_path: Path) -> None:
    """Names with quotes, commas and newlines are one field each, but for the quote that makes text of formulas."""
    export.to_csv(hostile(), tmp_path)
    names = [row["f"].removeprefix("'") for row in _table(tmp_path / "tests.csv")]
    assert names == [row.f.replace("\udc80", "\\udc80") for row in hostile().tests]


def test_csv_cells_are_no_formulas(tmp_path: Path) -> None:
    """A name that a spreadsheet would compute has a quote before it; negative numbers are numbers as before."""
    names = ["=1+1", "+1", "-1", "@SUM(1)", "\tx", "\rx", "plain=1"]
    u = np.random.default_rng(0).random((30, len(names)))
    export.to_csv(rt.judge(replicates(u, names=names)), tmp_path)
    rows = _table(tmp_path / "replicates.csv")
    assert [row["f"] for row in rows[: len(names)]] == [*(f"'{name}" for name in names[:-1]), "plain=1"]
    assert min(float(row["z"]) for row in rows) < 0
