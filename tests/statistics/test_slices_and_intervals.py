"""Reports with intervals and slices, from options to JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import run, table_file

import uqeval
from uqeval.errors import StoreError, UsageError
from uqeval.records.report import Report
from uqeval.statistics.options import CutOptions

NAMES = [f"item_{i}" for i in range(8)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = {"name": NAMES[::-1], "weather": ["sun", "fog"] * 4, "drive": list("aabbccdd"),
               "a,b": list("xxxxyyyy"), "id": NAMES}  # fmt: skip
    return table_file(tmp_path / "t.csv", columns)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ci": 95}, "--ci 95; expected a number from 0.5 to below 1"),
        ({"ci": 1.0}, "--ci 1"),
        ({"ci": 0.95, "draws": 10}, "--draws 10; expected a whole number from 100 to 100000"),
        ({"slice_by": ("a",)}, "--slice-by names columns of the items' table"),
        ({"ci": 0.9, "group_by": "a"}, "--group-by names columns of the items' table"),
        (
            {"slices": "t.csv", "group_by": "a"},
            "--group-by needs intervals; give --ci",
        ),
    ],
)
def test_what_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        CutOptions(**options)
    assert words in str(caught.value)


def test_a_report_and_back(tmp_path: Path, table: Path) -> None:
    report, path = run(
        tmp_path / "run", 8, ci=0.9, draws=200, seed=4, slices=table, group_by="drive",
        slice_by=["weather", "weather", "weather,drive", "a,b"],
    )  # fmt: skip
    assert Report.load(path) == report
    said = report.settings["intervals"]
    assert said["unit"] == "group" and said["units"] == 4 and said["group_by"] == "drive"
    assert said["groups"] == list("ddccbbaa") and (said["level"], said["draws"]) == (0.9, 200)
    assert "Scores are optimistic if" in said["held_fixed"] and said["seed"] == 4
    assert list(report.slices) == [
        '"a,b"=x', '"a,b"=y', "weather=fog", "weather=fog,drive=a", "weather=fog,drive=b",
        "weather=fog,drive=c", "weather=fog,drive=d", "weather=sun", "weather=sun,drive=a",
        "weather=sun,drive=b", "weather=sun,drive=c", "weather=sun,drive=d",
    ] or set(report.slices)  # fmt: skip
    assert len(report.slices) == 12
    assert report.slices["weather=sun"]["items"] == 4
    # A slice of one drive has one group, of which nothing can be drawn.
    alone = report.slices["weather=sun,drive=a"]
    assert alone["units"] == {"name": "group", "drawn": 1, "defined": 1} and alone["small"]
    assert alone["intervals"]["pavpu.pavpu"]["reason"] == "1 group has this score; 2 are needed"
    assert report.slices["weather=sun"]["intervals"]["pavpu.pavpu"]["level"] == 0.9
    assert any("intervals come from 4 groups; below 30 they may be" in w for w in report.warnings)
    assert any(
        "12 slices have fewer than 10 groups, too few for reliable" in w for w in report.warnings
    )


def test_columns_by_default(tmp_path: Path, table: Path) -> None:
    report, _ = run(tmp_path / "run", 8, slices=table)
    assert {key.split("=")[0] for key in report.slices} == {"weather", "drive", '"a,b"'}
    assert report.intervals == {} and "intervals" not in report.settings
    grouped, _ = run(tmp_path / "grouped", 8, slices=table, ci=0.9, draws=100, group_by="drive")
    assert {key.split("=")[0] for key in grouped.slices} == {"weather", '"a,b"'}
    assert grouped.intervals and grouped.slices["weather=sun"]["units"]["name"] == "group"
    groups_alone = table_file(tmp_path / "g.csv", {"name": NAMES, "drive": list("aabbccdd")})
    options = {"slices": groups_alone, "ci": 0.9, "draws": 100, "group_by": "drive"}
    assert run(tmp_path / "alone", 8, **options)[0].slices == {}
    chosen, _ = run(tmp_path / "chosen", 8, slice_by=["drive"], **options)
    assert len(chosen.slices) == 4


def test_one_item(tmp_path: Path) -> None:
    report, _ = run(tmp_path / "run", 1, ci=0.95, draws=100)
    assert all(own["low"] is None and own["reason"] for own in report.intervals.values())
    assert any("no intervals: there is one item; 2 are needed" in w for w in report.warnings)


def test_no_states_are_left(tmp_path: Path) -> None:
    from saved_runs import stack

    import uqeval

    report = uqeval.evaluate(*stack(4), "pavpu", ci=0.95, draws=100)
    assert report.states is None and report.intervals and not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [{"slice_by": ["city"]}, {"group_by": "city", "ci": 0.9}])
def test_a_table_is_refused_before_anything_is_read(
    tmp_path: Path, wrong: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqeval.engine.scheduler import Scheduler

    monkeypatch.delattr(Scheduler, "run")
    with pytest.raises(UsageError, match="no column 'city'"):
        file = table_file(tmp_path / "t.csv", {"name": NAMES, "weather": list("ababcdcd")})
        run(tmp_path / "run", 8, slices=file, **wrong)


def test_items_without_a_group_are_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqeval.engine.scheduler import Scheduler

    monkeypatch.delattr(Scheduler, "run")
    file = table_file(tmp_path / "t.csv", {"name": NAMES, "drive": ["a", "", "b", " ", *"abab"]})
    says = f"2 of 8 items have no value in the column 'drive' of .*: {NAMES[1]}, {NAMES[3]}"
    with pytest.raises(StoreError, match=says):
        run(tmp_path / "run", 8, slices=file, group_by="drive", ci=0.9)


def test_two_spellings_of_a_group_are_named(tmp_path: Path) -> None:
    drives = ["Ulm", "Ulm", "Bonn", "ulm ", "Bonn", "Bonn", "Jena", "Jena"]
    columns = {"drive": drives, "weather": list("abABabab"), "city": list("ABabABab")}
    file = table_file(tmp_path / "t.csv", {"name": NAMES, **columns})
    report, _ = run(
        tmp_path / "run", 8, slices=file, group_by="drive", slice_by=["weather"], ci=0.9, draws=100
    )
    spelled = [text for text in report.warnings if "spell them alike" in text]
    assert [text.split(": the ")[1] for text in spelled] == [
        f"column {column}, which count as different values. If they are the same, spell them alike."
        for column in ("'drive' has 'Ulm' and 'ulm '", "'weather' has 'a' and 'A'")
    ]


def test_a_slice_with_few_in_items_and_many_out_items_is_small(tmp_path: Path) -> None:
    """All OUT items belong to each slice, so they do not make one larger."""
    rng = np.random.default_rng(0)
    inside, outside = (rng.dirichlet([1, 1, k], (12, 2, 2)).transpose(0, 3, 1, 2) for k in (9, 1))
    table = tmp_path / "t.csv"
    rows = [f"{i},{'night' if i < 2 else 'day'}\n" for i in range(12)]
    table.write_text(f"name,time\n{''.join(rows)}", encoding="utf-8")
    names = [str(i) for i in range(12)]
    report = uqeval.evaluate(
        inside, None, "ood", out=[outside], names=names, slices=table, slice_by=["time"]
    )
    assert {key: own["small"] for key, own in report.slices.items()} == {
        "time=day": False, "time=night": True,
    }  # fmt: skip
    assert any("1 slice has fewer than 10 items of a set" in text for text in report.warnings)
