"""`uqeval warmup` runs what commands need; afterwards they compile nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import typer.main
from command import refused, run_forked, run_uqeval
from typer.testing import CliRunner

import uqeval
from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.warmup import _run
from uqeval.inputs.opening import open_inputs
from uqeval.inputs.options import InputOptions
from uqeval.kernels import _jit, _saved
from uqeval.metrics import FAMILIES
from uqeval.usecases.warmup import recipes, warming
from uqeval.usecases.warmup.warming import warm_up

compiles = pytest.mark.skipif(_jit.IS_INTERPRETED, reason="nothing is compiled")


def loops() -> int:
    return sum(len(dispatcher.overloads) for dispatcher in _jit.KERNELS)


def in_this_process(arguments: Sequence[str]) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, (arguments, result.output, result.exception)


@compiles
def test_a_command_compiles_nothing_after_its_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for line in recipes.command_lines("regression") if "numbers" in line]
    monkeypatch.setattr(warming, "command_lines", lambda command: lines)
    warm_up(["regression"], in_this_process)
    before = loops()
    rng = np.random.default_rng(0)
    for dtype, size in ((np.float32, 40), (np.float64, 300)):
        stored = {name: rng.random((2, size, size)).astype(dtype) for name in ("mean", "std")}
        uqeval.evaluate(stored | {"target": stored["mean"] + 0.1}, None, ["regression"], ci=0.9)
    assert loops() == before > 0


def test_sets_of_a_recipe_have_the_same_number_of_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    warming.write_inputs(tmp_path)
    lines = [line.split() for line in recipes.command_lines("ood")]
    for name in ("probs-f4.npz", "single-f4.npz", "logits-f4.npz", "large-f4.npz"):
        line = next(own for own in lines if own[1] == name and own[2].startswith("outside"))
        open_inputs(name, None, InputOptions(out=line[2:3]))


def test_all_recipes_have_options_and_inputs_that_exist(tmp_path: Path) -> None:
    warming.write_inputs(tmp_path)
    inputs = {path.name for path in tmp_path.iterdir()}
    group = typer.main.get_command(app)
    named: set[str] = set()
    for name in COMMANDS:
        for line in recipes.command_lines(name):
            command, *arguments = line.split()
            loaded = group.get_command(None, command)  # type: ignore[attr-defined]
            loaded.make_context(command, [*arguments])
            named |= {word for word in arguments if word in inputs}
            unknown = [w for w in arguments if w.endswith((".npz", ".txt")) and w not in inputs]
            assert not unknown
    assert named == inputs
    assert all(recipes.command_lines(name) for name in COMMANDS if name in FAMILIES)


def test_each_kind_of_input_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warming.write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in ("probs-u1", "single-u2", "many-f4.npz", "rows-f2.npz", "logits-f2.npz"):
        in_this_process(["inspect", name])


def test_a_table_tells_what_was_compiled(tmp_path: Path) -> None:
    outcome = run_forked("warmup", "select", "schema", cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    assert "select" in outcome.stdout and "loops compiled for the CPU" in outcome.stdout
    assert not list(tmp_path.iterdir())


def test_an_unknown_command_and_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    refused(
        run_forked("warmup", "pavp", cwd=tmp_path),
        "there is no command 'pavp' to compile for; did you mean 'pavpu'?",
    )
    file = tmp_path / "file"
    file.write_text("")
    refused(
        run_uqeval("warmup", "pavpu", env={"NUMBA_CACHE_DIR": str(file / "loops")}),
        f"NUMBA_CACHE_DIR={file}/loops cannot be written: Not a directory. Expected a folder",
        "Name a writable folder: NUMBA_CACHE_DIR=DIR uqeval warmup",
    )


def test_a_full_disk_ends_the_warmup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_saved, "NOT_SAVED", [OSError(28, "No space left on device", "/c/x.nbc")])
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(warming, "command_lines", lambda command: ["observe video.npz"])
    refused(
        lambda: warm_up(["observe"], lambda line: None),
        "/c/x.nbc: a compiled loop cannot be saved: No space left on device. Free some space",
    )


def test_a_run_tells_what_it_could_not_save(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(30, "no cache folder is writable", "/x")
    monkeypatch.setattr(_saved, "NOT_SAVED", [error, error])
    says = (
        "note: 2 compiled loops could not be saved (no cache folder is writable), so the next run"
    )
    assert says in CliRunner().invoke(app, ["schema"]).stderr
    in_this_process(["warmup", "schema", "-q"])
    assert says not in CliRunner().invoke(app, ["warmup", "schema", "-q"]).stderr


def test_an_interrupt_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("uqeval.usecases.inspect.inspect", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _run(["inspect", "s.zarr"])
