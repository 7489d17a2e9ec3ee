"""A report or states of another form: the message says what is wrong, where, and what to do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import forged
import pytest
import saved_runs
from command import refused, run_forked
from pydantic import TypeAdapter

from uqeval.disk.forms import Draws, Level, Method, Seed
from uqeval.settings import options_of
from uqeval.statistics.options import CutOptions

#: The forms of recorded options of intervals, by the name of the option.
OF_INTERVALS = {"draws": Draws, "seed": Seed, "ci": Level, "interval_method": Method}
#: Words of Python and of its libraries.
PYTHON = re.compile(
    r"Error\b|Exception|NoneType|object is not|has no attribute|sys\.|set_int_max|codec|"
    r"Input should|not subscriptable|validation error|pydantic|Expecting"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forms")
    saved_runs.run(folder, 4, ["pavpu", "calibration"], ci=0.9, draws=100)
    (folder / "gate.yaml").write_text("calibration.ece: {max: 0.9, confidence: 0.8}\n")
    return folder


def replaced(record: Any, place: str, value: Any) -> Any:
    """The record with another value at a place; ... removes it."""
    *path, last = [int(step) if step.isdecimal() else step for step in place.split("/")]
    holder = record
    for step in path:
        holder = holder[step]
    if value is ...:
        del holder[last]
    else:
        holder[last] = value
    return record


def copied(base: Path, folder: Path) -> Path:
    for file in base.iterdir():
        if file.is_file():
            (folder / file.name).write_bytes(file.read_bytes())
    return folder / "report.json"


REPORTS: list[tuple[str, Any, str]] = [
    ("uqeval_version", ..., "`uqeval_version` is missing"),
    ("items", {"a": 1}, "`items` is {'a': 1}; expected a list"),
    ("items/0/name", 5, "items: `0.name` is 5; expected a text"),
    ("inputs/predictions", "x", "inputs: `predictions` is 'x'; expected a list"),
    ("inputs/predictions/0/path", ["x"], "`predictions.0.path` is ['x']; expected a text"),
    ("intervals/calibration.ece/low", "low", "`calibration.ece.low` is 'low'; expected a number"),
    ("metrics/calibration.ece/direction", "up", "is 'up'; expected one of higher, lower"),
    ("metrics/calibration.ece/range", [0], "range"),
    ("results/calibration/ece", {"a": [1]}, "results.calibration: `ece` is {'a': [1]}; expected a"),
    ("results/calibration/per_class", 3, "`per_class` is 3; expected a list of records"),
    ("results/calibration/per_class/0/ece", "x", "is 'x'; expected a number or null"),
    ("settings/intervals/draws", "9", "`draws` is '9'; expected a whole number"),
    ("settings/intervals/draws", -3, "`draws` is -3; expected a number of at least 100"),
    ("settings/intervals/draws", 10**9, "`draws` is 1000000000; expected a number of at most"),
    ("settings/intervals/seed", -1, "`seed` is -1; expected a number of at least 0"),
    ("settings/intervals/method", "foo", "`method` is 'foo'; expected one of 'auto'"),
    ("settings/intervals/group_by", ["a"], "`group_by` is ['a']; expected a text"),
    ("settings/intervals/level", 5, "`level` is 5; expected a number below 1"),
    ("settings/intervals/groups", ["a"], "settings.intervals: `groups` has 1 entries for 4 items"),
    ("states", ["x"], "`states` is ['x']; expected a text"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value", "says"), REPORTS, ids=[case[0] for case in REPORTS])
def test_a_report(place: str, value: Any, says: str, base: Path, tmp_path: Path) -> None:
    path = copied(base, tmp_path)
    path.write_text(json.dumps(replaced(json.loads(path.read_text()), place, value)))
    for command in ("select report.json", "gate report.json gate.yaml", "report report.json"):
        message = refused(run_forked(*command.split(), cwd=tmp_path), "report.json", says)
        assert not PYTHON.search(message), message
    assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"a": ' + b"9" * 5000 + b"}", "a number in it has thousands of digits"),
        (b"\xff\xfe", "it is not text in UTF-8"),
        (b'{"a": }', "at line 1, column 7"),
        (b'{"a": 1, "a": 2}', "the key 'a' is there twice"),
    ],
)
def test_what_is_not_json(text: bytes, says: str, tmp_path: Path) -> None:
    (tmp_path / "r.json").write_bytes(text)
    message = refused(run_forked("select", "r.json", cwd=tmp_path), "r.json", says)
    assert not PYTHON.search(message), message


STATES: list[tuple[str, Any, str]] = [
    ("facts", ..., "`facts` is missing"),
    ("facts/sizes", ..., "`facts.sizes` is missing"),
    ("facts/sizes/0/1", -1, "`facts.sizes.0.1` is -1; expected a number of at least 0"),
    ("facts/classes", 10**300, "expected a number below 2147483648"),
    ("facts/later", 1, "`facts.later` is an unknown key"),
    ("facts/names", [], "`facts.names` has 0 entries for 4 items"),
    ("records/0/name", "x", "a record has the name 'x'; expected that of the item item_0"),
    ("settings/pavpu", 3, "`settings.pavpu` is 3; expected a record"),
    ("inputs/part", {"number": "1", "of": 2}, "`inputs.part.number` is '1'; expected a whole"),
    ("numerics/pavpu", [], "`numerics.pavpu` is []; expected a record"),
    ("partial", "no", "`partial` is 'no'; expected true or false"),
    ("fitted/calibration", None, "`fitted.calibration` is None; expected a record"),
    ("draws/draws", -3, "`draws.draws` is -3; expected a number of at least 100"),
    ("draws/seed", "x", "`draws.seed` is 'x'; expected a whole number"),
    ("draws/interval_method", "foo", "`draws.interval_method` is 'foo'; expected one of 'auto'"),
    ("draws/group_by", ["a"], "`draws.group_by` is ['a']; expected a text"),
]  # fmt: skip


def with_changed_states(path: Path, place: str, value: Any) -> None:
    """Change a value of the states beside a report, which gets their new digest."""
    states = path.with_suffix(".states.zip")
    entries = forged.entries_of(states)
    index = replaced(json.loads(entries["index.json"]), place, value)
    entries["index.json"] = json.dumps(index).encode()
    digest = forged.write_entries(states, entries)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"states_digest": digest}))


@pytest.mark.parametrize(("place", "value", "says"), STATES, ids=[case[0] for case in STATES])
def test_states(place: str, value: Any, says: str, base: Path, tmp_path: Path) -> None:
    with_changed_states(copied(base, tmp_path), place, value)
    for command in ("merge report.json -o m.json", "merge report.states.zip -o m.json"):
        outcome = run_forked(*command.split(), cwd=tmp_path)
        message = refused(outcome, "report.states.zip is damaged", says, "Run the evaluation again")
        assert not PYTHON.search(message), message
    assert not (tmp_path / "m.json").exists() and not (tmp_path / "m.states.zip").exists()


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        ("settings/pavpu/window", -4, "settings.pavpu: window=-4; expected a whole number of at"),
        ("settings/pavpu/threshold", "foo", "settings.pavpu: threshold='foo' is not valid"),
        ("settings/calibration/bins", 10**9, "settings.calibration: bins=1000000000; expected a"),
        (
            "settings/calibration/estimator",
            ["a"],
            "settings.calibration: estimator ['a'];",
        ),
    ],
)
def test_a_recorded_option_is_no_option_that_the_user_gave(
    place: str, value: Any, says: str, base: Path, tmp_path: Path
) -> None:
    path = copied(base, tmp_path)
    with_changed_states(path, place, value)
    path.write_text(json.dumps(replaced(json.loads(path.read_text()), place, value)))
    for command, file in (
        ("merge report.json -o m.json", "report.states.zip"),
        ("merge report.json --ci 0.9 -o m.json", "report.states.zip"),
        ("failure report.json --images", "report.states.zip"),
        ("gate report.json gate.yaml", "report.states.zip"),
        ("verify report.json", "report.json"),
    ):
        outcome = run_forked(*command.split(), cwd=tmp_path)
        message = refused(outcome, f"{file}: {says}", "uqeval does not write such settings")
        assert "--window" not in message and "--bins" not in message
        assert not PYTHON.search(message), message
    assert not (tmp_path / "m.json").exists()


def test_the_forms_of_options_of_intervals_are_those_of_the_options() -> None:
    form = {own: TypeAdapter(kind).json_schema() for own, kind in OF_INTERVALS.items()}
    declared = options_of(CutOptions)
    draws, seed, level = form["draws"], form["seed"], form["ci"]
    assert (draws["minimum"], draws["maximum"]) == (declared["draws"].least, declared["draws"].most)
    assert seed["minimum"] == declared["seed"].least and "maximum" not in seed
    assert (level["minimum"], level["exclusiveMaximum"]) == (
        declared["ci"].least, declared["ci"].below
    )  # fmt: skip
    assert tuple(form["interval_method"]["enum"]) == declared["interval_method"].choices


def test_what_no_form_tells_is_said_without_words_of_python(base: Path, tmp_path: Path) -> None:
    path = copied(base, tmp_path)
    record = replaced(json.loads(path.read_text()), "items/0/calibration", {"ece": {"a": 1}})
    path.write_text(json.dumps(record))
    outcome = run_forked("report", "report.json", cwd=tmp_path)
    assert outcome.status in (0, 2) and not PYTHON.search(outcome.stderr), outcome.stderr
