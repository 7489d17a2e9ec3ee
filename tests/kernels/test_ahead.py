"""The list of kernels of evaluations equals the kernels that their runs call."""

from __future__ import annotations

import fcntl
import inspect
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from needed_kernels import called, stores, text_of

from uqeval.kernels import _jit, _saved, ahead
from uqeval.usecases.warmup.warming import write_inputs

HOW_TO = "run: python tests/helpers/needed_kernels.py"
FILE = json.loads(ahead._FILE.read_text("utf-8"))

pytestmark = pytest.mark.skipif(_jit.IS_INTERPRETED, reason="nothing is compiled")


def test_all_stores_and_families_are_listed() -> None:
    names = {stored: ["all", *families] for stored, _, families in stores()}
    assert {stored: list(own) for stored, own in FILE["stored"].items()} == names, HOW_TO
    assert text_of(FILE) == ahead._FILE.read_text("utf-8"), HOW_TO
    used = {place for own in FILE["stored"].values() for place in own["all"]}
    assert used == set(range(len(FILE["kernels"])))


@pytest.mark.parametrize("line", FILE["kernels"])
def test_a_kernel_takes_these_arguments(line: str) -> None:
    kernel, types = ahead.kernel_of(line)
    assert len(types) == len(inspect.signature(kernel.py_func).parameters), HOW_TO


@pytest.mark.parametrize(
    ("name", "family"), [("probs float16", "pavpu"), ("mean float32", "regression")]
)
def test_an_evaluation_calls_these_kernels(name: str, family: str, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    store, families = next(rest for stored, *rest in stores() if stored == name)
    lines = called(tmp_path, store, {family: families[family]})
    assert set(lines) == set(ahead.needed([f"{family} of {name}"])), HOW_TO


@pytest.mark.parametrize("name", ["probs float16", "mean float32", "predictions uint8"])
def test_a_run_of_all_families_calls_only_listed_kernels(name: str, tmp_path: Path) -> None:
    """A kernel that is listed with other arguments is compiled twice."""
    write_inputs(tmp_path)
    store, families = next(rest for stored, *rest in stores() if stored == name)
    listed = ahead.needed([f"{family} of {name}" for family in families])
    assert set(called(tmp_path, store, families)) <= set(listed), HOW_TO


def test_families_that_share_kernels_list_them_once() -> None:
    evaluations = ["pavpu of probs float16", "failure of probs float16", "pavpu of probs float32"]
    lines = ahead.needed([*evaluations, "strange of probs float16", "pavpu of strange float16"])
    assert len(set(lines)) == len(lines)
    assert set(lines) == set().union(*(ahead.needed([one]) for one in evaluations))


def test_the_largest_kernels_come_first_and_those_of_others_not_at_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_saved, "_FOLDER", None)  # set back after the test
    monkeypatch.setattr(_jit.numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    compiled: list[str] = []

    def kernel_of(line: str) -> tuple[object, tuple[object, ...]]:
        cache, types = ahead.kernel_named(line)._cache, real(line)[1]
        if line.startswith("samples.predict("):
            begun.append((tmp_path / cache._shared_name(types)).open("wb"))
            fcntl.flock(begun[-1], fcntl.LOCK_EX)
        return SimpleNamespace(_cache=cache, compile=lambda _: compiled.append(line)), types

    real, begun = ahead.kernel_of, []  # type: ignore[var-annotated]
    monkeypatch.setattr(ahead, "kernel_of", kernel_of)
    for part in range(2):
        ahead.main(str(tmp_path), part, 2, ["calibration of probs float16"])
    begun.pop().close()
    lines = ahead.needed(["calibration of probs float16"])
    assert compiled[0].startswith("tempering.add_slopes(")
    assert set(lines) - set(compiled) == {
        line for line in lines if line.startswith("samples.predict(")
    }
    assert len(compiled) == len(lines) - 1
