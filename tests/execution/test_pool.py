"""The two things that multiprocessing has no switch for: if a new Python changes what they use, it shows here."""

import os
import sys
import types
from multiprocessing import Pipe, current_process, get_context, spawn
from multiprocessing.process import BaseProcess
from typing import Any

import pytest

from ringtrue.execution import pool

pytestmark = pytest.mark.process


def _prepared(monkeypatch: pytest.MonkeyPatch, main: types.ModuleType) -> dict[str, Any]:
    monkeypatch.setitem(sys.modules, "__main__", main)
    found: dict[str, Any] = spawn.get_preparation_data("a worker")
    return found


@pytest.mark.parametrize("how", ["path", "name"])
def test_the_main_module_is_left_out_of_what_a_worker_imports(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """Python names the script in the preparation data, by path or by name; inside, and only there, it is left out."""
    main = types.ModuleType("__main__")
    if how == "path":
        main.__file__ = os.path.abspath("script.py")
    else:
        main.__spec__ = types.SimpleNamespace(name="a_package.script")  # type: ignore[assignment]
    before = _prepared(monkeypatch, main)
    assert any(key.startswith("init_main") for key in before)
    with pool.without_main():
        within = _prepared(monkeypatch, main)
    assert not any(key.startswith("init_main") for key in within)
    assert {**before, **within} == before
    assert _prepared(monkeypatch, main) == before


def test_preparation_data_are_asked_for_where_we_put_ours() -> None:
    """Starting a spawned process looks the function up in its module, so that replacing it there has an effect."""
    from multiprocessing import popen_spawn_posix

    assert popen_spawn_posix.spawn is spawn  # type: ignore[attr-defined]
    assert "get_preparation_data" in popen_spawn_posix.Popen._launch.__code__.co_names  # type: ignore[attr-defined]


def _start_a_child(pipe: Any, allowed: bool) -> None:
    if allowed:
        pool.may_start_processes()
    try:
        child = get_context("fork").Process(target=int)
        child.start()
        child.join()
        pipe.send(f"exit code {child.exitcode}")
    except AssertionError as error:
        pipe.send(str(error))


@pytest.mark.parametrize(("allowed", "answer"), [(True, "exit code 0"), (False, "daemonic processes")])
def test_a_daemon_may_start_processes(allowed: bool, answer: str) -> None:
    """Python refuses a daemon to have children; the twin shows that it still does, and ours may have them."""
    ours, theirs = Pipe()
    process = get_context("fork").Process(target=_start_a_child, args=(theirs, allowed), daemon=True)
    process.start()
    assert answer in ours.recv()
    process.join()
    for end in (ours, theirs):
        end.close()


def test_the_daemon_flag_is_where_we_put_it() -> None:
    """The refusal asks the configuration of the process that runs."""
    assert BaseProcess.daemon.fget.__code__.co_names == ("_config", "get")  # type: ignore[attr-defined]
    assert isinstance(current_process()._config, dict)  # type: ignore[attr-defined]
