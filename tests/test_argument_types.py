"""Values of wrong types, of every option and argument of Python: errors that say what to give."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import uqeval
from uqeval.argument_types import checks_types, fits, in_words, python_value
from uqeval.engine.options import ResumableOptions
from uqeval.errors import OutputError, UqevalError, UsageError
from uqeval.inputs.options import InputOptions
from uqeval.metrics import FAMILIES
from uqeval.settings import Settings, check_value, option, options_of
from uqeval.statistics.options import CutOptions

ODD_VALUES = [
    -1, 2.5, float("nan"), "\x00", b"x", [], [3], {"a": 1}, {3}, object(), True, np.float32(0.5),
    np.zeros(3), np.zeros((2, 2)), np.array(["a", None]), len, 10**30, np.float16, np.dtype("f8"),
]  # fmt: skip
OPTIONS = [
    (None, name) for settings in (InputOptions, CutOptions, ResumableOptions)
    for name in options_of(settings)
] + [
    (family, name) for family in FAMILIES for name in options_of(FAMILIES[family].settings_type)
]  # fmt: skip


def arrays() -> tuple[Any, Any]:
    """Return probabilities and labels of two items."""
    probs = np.full((2, 2, 3, 4, 4), 1 / 3)
    return probs, np.zeros((2, 4, 4), np.uint8)


def refuses_or_accepts(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    """Call, and pass for a documented error: any other is a traceback for the user."""
    try:
        function(*arguments, **keywords)
    except UqevalError as error:
        assert len(str(error)) > 20


@pytest.mark.parametrize(("family", "name"), OPTIONS)
def test_an_option_with_a_value_of_any_type(
    family: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    probs, labels = arrays()
    for value in ODD_VALUES:
        options: dict[str, Any] = {name: value} if family is None else {}
        metrics = "segmentation" if family is None else {family: {name: value}}
        refuses_or_accepts(uqeval.evaluate, probs, labels, metrics, **options)


ARGUMENTS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (uqeval.evaluate, {"predictions": arrays()[0], "labels": arrays()[1]}),
    (uqeval.sweep, {"predictions": arrays()[0], "labels": arrays()[1]}),
    (uqeval.merge, {"reports": "none.states.zip"}),
    (uqeval.fit_shards, {"reports": "none.states.zip", "output": "fitted.json"}),
    (uqeval.run_config, {"path": "none.yaml"}),
    (uqeval.Evaluator, {}),
    (uqeval.PredictionWriter, {
        "path": "new.zarr", "names": ["a"], "samples": 2, "classes": 3, "size": (4, 4),
    }),
    (uqeval.TemporalObserver, {}),
    (uqeval.Report.load, {"path": "none.json"}),
]  # fmt: skip


@pytest.mark.parametrize(("function", "arguments"), ARGUMENTS)
def test_an_argument_with_a_value_of_any_type(
    function: Callable[..., Any],
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {*options_of(InputOptions), *options_of(CutOptions), *options_of(ResumableOptions)}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD or parameter.name in {*options, "executor"}:
            continue
        for value in ODD_VALUES:
            given = arguments | {parameter.name: value}
            refuses_or_accepts(function, **given)


def test_an_update_with_values_of_any_type() -> None:
    probs, labels = arrays()
    for name in ("probs", "labels", "names"):
        for value in ODD_VALUES:
            given = {"probs": probs, "labels": labels, "names": ["a", "b"], name: value}
            with uqeval.Evaluator() as evaluator:
                refuses_or_accepts(evaluator.update, **given)


def test_names_that_are_one_text_or_missing_are_refused() -> None:
    probs, labels = arrays()
    with uqeval.Evaluator() as evaluator:
        for names in ("ab", [None, None], [1.5, 2.5]):
            with pytest.raises(UsageError, match=r"names=.*a list of texts or whole numbers"):
                evaluator.update(probs, labels, names)


def test_a_name_with_half_a_character(tmp_path: Path) -> None:
    probs, labels = arrays()
    with uqeval.Evaluator() as evaluator:
        evaluator.update(probs, labels, ["\ud800", "a\udfff"])
        assert [item["name"] for item in evaluator.report().items] == ["a\udfff", "\ud800"]
    (tmp_path / "fit.json").write_text(json.dumps(["\ud800"]))
    metrics = {"calibration": {"temperature": True, "fit_on": str(tmp_path / "fit.json")}}
    states: dict[str, Any] = {"states": tmp_path / "s.states.zip", "part": "1/2"}
    for options in ({}, states):
        report = uqeval.evaluate(probs, labels, metrics, names=["\ud800", "b"], **options)
        assert report.items[0]["name"] == "\ud800"


def test_a_scratch_folder_that_is_not_there() -> None:
    with pytest.raises(OutputError, match=r"nowhere cannot hold temporary files: No such file"):
        uqeval.Evaluator(scratch="nowhere")


def test_numbers_of_numpy_are_numbers() -> None:
    probs, labels = arrays()
    plain = uqeval.evaluate(probs, labels, {"pavpu": {"window": [2, 4]}}, limit=1)
    of_numpy = uqeval.evaluate(
        probs, labels, {"pavpu": {"window": np.array([2, 4])}}, limit=np.int64(1)
    )
    of_iterator = uqeval.evaluate(probs, labels, {"pavpu": {"window": iter([2, 4])}}, limit=1)
    assert of_iterator.results == plain.results
    assert of_numpy.results == plain.results
    assert of_numpy.settings == plain.settings


@pytest.mark.parametrize(
    ("annotation", "value", "is_allowed"),
    [
        (str | Path | None, "a", True),
        (str | Path | None, Path("a"), True),
        (str | Path | None, 3, False),
        (int, True, False),
        (int, 2.0, False),
        (float, 2, True),
        (bool, 1, False),
        (Sequence[str], "ab", False),
        (Sequence[str], ["a", 3], False),
        (Sequence[str], {"a"}, False),
        (Mapping[str, Any], {"a": 3}, True),
        (Mapping[str, Any], {3: 3}, False),
        (Literal["a", "b"], "c", False),
        (Any, object(), True),
    ],
)
def test_which_values_fit(annotation: Any, value: Any, is_allowed: bool) -> None:
    assert fits(annotation, value) is is_allowed


def test_types_in_words() -> None:
    assert in_words(str | Path | Sequence[str] | None) == "a path or a list of texts"
    assert in_words(float | str) == "a number or a text"
    assert in_words(Iterable[UsageError | Path]) == "a list of UsageErrors or paths"


def test_values_without_numpy_and_iterators() -> None:
    assert python_value(iter([np.int64(1), 2])) == (1, 2)
    assert python_value(np.array([1, 2])) == [1, 2]
    assert isinstance(python_value(np.zeros((2, 2))), np.ndarray)


def test_texts_that_may_be_numbers_and_paths(tmp_path: Path) -> None:
    probs, labels = arrays()
    names = tmp_path / "fit.json"
    names.write_text('["0"]')
    report = uqeval.evaluate(
        probs, labels,
        {"pavpu": {"threshold": [0.6, "mean"]}, "calibration": {"fit_on": names}}, names=["0", "1"],
    )  # fmt: skip
    assert report.settings["pavpu"]["threshold"] == "0.6"
    assert report.settings["calibration"]["fit_on"] == str(names)


def test_a_function_says_which_argument_is_wrong() -> None:
    @checks_types("path")
    def read(path: str | Path, other: object = None) -> object:
        return path

    assert read("a", other=3) == "a"
    with pytest.raises(UsageError, match=r"^path=3; expected a path\.$"):
        read(3)  # type: ignore[arg-type]


class DType:
    """Like `torch.float16`, which has no name."""

    def __repr__(self) -> str:
        return "torch.float16"


@pytest.mark.parametrize("dtype", [np.float16, np.dtype("float16"), DType(), "float16"])
def test_a_dtype_is_its_name(tmp_path: Path, dtype: Any) -> None:
    about = {"names": ["a"], "samples": 1, "classes": 2, "size": (1, 1)}
    with uqeval.PredictionWriter(tmp_path / "p.zarr", dtype=dtype, **about) as writer:
        assert writer.dtype == "float16"
        writer.add("a", np.full((2, 1, 1), 0.5))
    with pytest.raises(UsageError, match=r"^dtype=.*float64.*; expected one of float16, float32"):
        uqeval.PredictionWriter(tmp_path / "q.zarr", dtype=np.float64, **about)
    with pytest.raises(UsageError, match=r"^keep=.*float16.*; expected one of samples, maps"):
        uqeval.PredictionWriter(tmp_path / "q.zarr", keep=dtype, **about)


def test_each_value_of_a_list_of_choices_is_checked() -> None:
    @dataclasses.dataclass(frozen=True)
    class Formats(Settings):
        formats: Sequence[str] = option(("svg",), "", choices=("svg", "png"), list_by="repeat")

    check_value(Formats, "formats", ["png", "svg"])
    with pytest.raises(UsageError, match=r"^--formats \['pdf'\]; expected one of svg, png\.$"):
        check_value(Formats, "formats", ["pdf"])
