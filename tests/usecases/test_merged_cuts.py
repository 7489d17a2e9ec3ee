"""Groups and slices that reports record, when their states are merged or scored again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from command import run_well
from small_stores import labels, probs, save

import uqeval
from uqeval import Report, StoreError, UsageError

ITEMS = 12
METRICS = {"failure": {"threshold": 0.5}, "segmentation": {}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stores `a.zarr` and `b.zarr` of other items, with tables that divide them."""
    path = tmp_path_factory.mktemp("cuts")
    for seed, own in enumerate("ab"):
        names = [f"{own}{k:02d}" for k in range(ITEMS)]
        save(path / f"{own}.zarr", {"probs": probs(ITEMS, seed), "labels": labels(ITEMS, seed)},
             {"names": names})  # fmt: skip
        rows = [f"{name},d{k // 2},{'day' if k % 2 else 'night'}" for k, name in enumerate(names)]
        (path / f"{own}.csv").write_text("name,drive,light\n" + "\n".join(rows) + "\n")
    for own in "ab":
        saved(path, own, own, group_by="drive", slices=path / f"{own}.csv", ci=0.9)
        saved(path, own, f"{own}_items", ci=0.9)
    saved(path, "b", "b_light", ci=0.9, group_by="light", slices=path / "b.csv")
    return path


def saved(folder: Path, store: str, name: str, **options: Any) -> Report:
    """Evaluate a store; save report and states as `name`."""
    states = folder / f"{name}.states.zip"
    options = ({"draws": 200} if "ci" in options else {}) | options
    predictions = folder / f"{store}.zarr"
    report = uqeval.evaluate(predictions, metrics=METRICS, states=states, workers=1, **options)
    report.save(folder / f"{name}.json")
    return report


def units(report: Report) -> tuple[str, int, str | None]:
    record = report.settings["intervals"]
    return record["unit"], record["units"], record["group_by"]


@pytest.mark.parametrize("name", ["a.json", "a.states.zip"])
def test_intervals_keep_the_groups_and_slices_of_the_report(name: str, folder: Path) -> None:
    before = Report.load(folder / "a.json")
    after = uqeval.merge(folder / name, ci=0.9, draws=200)
    assert units(after) == units(before) == ("group", 6, "drive")
    for field in ("intervals", "slices", "settings", "results"):
        assert getattr(after, field) == getattr(before, field)


def test_a_family_added_to_a_report_has_its_groups(folder: Path) -> None:
    added = {"image_failure": {"risk": "miou"}}
    report = uqeval.merge(folder / "a.json", metrics=added, ci=0.9, draws=200)
    assert units(report) == ("group", 6, "drive")
    assert report.intervals["image_failure.aurc"]["units"]["drawn"] == 6


def test_runs_with_groups_are_joined_with_them(folder: Path) -> None:
    report = uqeval.merge([folder / "a.json", folder / "b.json"], ci=0.9, draws=200)
    assert units(report) == ("group", 6, "drive")  # d0 of both is one drive
    assert {key: own["items"] for key, own in report.slices.items()} == {
        "light=day": ITEMS, "light=night": ITEMS,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("other", "has"), [("b_items", "records no groups"), ("b_light", "by 'light'")]
)
def test_other_groups_are_refused(other: str, has: str, folder: Path) -> None:
    paths = [folder / "a.json", folder / f"{other}.json"]
    with pytest.raises(UsageError, match="groups by 'drive'") as refused:
        uqeval.merge(paths, ci=0.9)
    assert has in str(refused.value)
    assert "group_by='drive' slices=FILE.csv" in str(refused.value)
    # The option gives the groups of all.
    table = folder / "both.csv"
    rows = [(folder / f"{own}.csv").read_text().split("\n", 1)[1] for own in "ab"]
    table.write_text("name,drive,light\n" + "".join(rows))
    report = uqeval.merge(paths, ci=0.9, draws=200, slices=table, group_by="drive")
    assert units(report) == ("group", 6, "drive")


def test_other_options_replace_recorded_groups(folder: Path) -> None:
    table = folder / "a.csv"
    report = uqeval.merge(folder / "a.json", ci=0.9, draws=200, slices=table, group_by="light")
    assert units(report) == ("group", 2, "light")


def test_a_table_without_groups_keeps_the_recorded_ones(folder: Path) -> None:
    report = uqeval.merge(folder / "a.json", ci=0.9, draws=200, slices=folder / "a.csv")
    assert units(report) == ("group", 6, "drive")
    assert list(report.slices) == ["light=day", "light=night"]  # no slice is a single group


def test_another_table_does_not_change_the_recorded_groups(folder: Path, tmp_path: Path) -> None:
    rows = [line.split(",") for line in (folder / "a.csv").read_text().split()]
    without, finer = tmp_path / "without.csv", tmp_path / "finer.csv"
    without.write_text("\n".join(f"{name},{light}" for name, _, light in rows) + "\n")
    finer.write_text(
        "name,drive,light\n" + "\n".join(f"{n},{n},{light}" for n, _, light in rows[1:]) + "\n"
    )
    for table in (without, finer):
        report = uqeval.merge(folder / "a.json", ci=0.9, draws=200, slices=table)
        assert units(report) == ("group", 6, "drive")


def test_groups_by_a_column_that_is_called_case(folder: Path, tmp_path: Path) -> None:
    """They are not the cases that volumes have."""
    table = tmp_path / "case.csv"
    table.write_text((folder / "a.csv").read_text().replace("drive", "case"))
    saved(folder, "a", "a_case", ci=0.9, group_by="case", slices=table)
    assert units(uqeval.merge(folder / "a_case.json", ci=0.9)) == ("group", 6, "case")
    alone = tmp_path / "alone.states.zip"
    alone.write_bytes((folder / "a_case.states.zip").read_bytes())
    with pytest.raises(UsageError, match="is of a run with groups by 'case'"):
        uqeval.merge(alone, ci=0.9)
    assert units(uqeval.merge(alone, ci=0.9, slices=table)) == ("group", 6, "case")


def test_lost_groups_and_slices_have_a_warning(folder: Path) -> None:
    report = uqeval.merge(folder / "a.json")
    assert list(report.slices) == ["light=day", "light=night"]
    (groups,) = (text for text in report.warnings if "groups by" in text)
    assert "Give ci=0.9" in groups
    saved(folder, "b", "b_plain")
    report = uqeval.merge([folder / "a.json", folder / "b_plain.json"])
    assert not report.slices
    (lost,) = (text for text in report.warnings if "left out" in text)
    assert "give slices=FILE.csv slice_by='light'" in lost


def test_cases_without_cases_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="not slices of cases"):
        uqeval.merge(folder / "a_items.json", ci=0.9, group_by="case")


def test_shards_record_their_groups(folder: Path) -> None:
    table = folder / "a.csv"
    paths = [folder / f"shard{k}.states.zip" for k in (1, 2)]
    for k, path in enumerate(paths, 1):
        uqeval.evaluate(
            folder / "a.zarr", metrics=["segmentation"], part=f"{k}/2", states=path, workers=1,
            ci=0.9, slices=table, group_by="drive",
        )  # fmt: skip
    with pytest.raises(UsageError, match="groups by 'drive'"):
        uqeval.merge(paths, ci=0.9)
    assert units(uqeval.merge(paths, ci=0.9, slices=table)) == ("group", 6, "drive")


def test_a_report_with_other_numbers_of_groups(folder: Path) -> None:
    saved(folder, "a", "few", group_by="drive", slices=folder / "a.csv", ci=0.9)
    report = Report.load(folder / "few.json")
    report.settings["intervals"]["groups"].pop()
    report.save(folder / "few.json")
    with pytest.raises(StoreError, match="`groups` has 11 entries for 12 items"):
        uqeval.merge(folder / "few.json", ci=0.9)


def drawn(report: Report) -> list[Any]:
    return [report.settings["intervals"][name] for name in ("draws", "seed", "method")]


def test_intervals_keep_draws_seed_and_method_of_the_report(folder: Path) -> None:
    options = {"draws": 300, "seed": 5, "interval_method": "percentile"}
    before = saved(folder, "a", "drawn", ci=0.9, **options)
    after = uqeval.merge(folder / "drawn.json", ci=0.9)
    assert after.intervals == before.intervals
    assert drawn(after) == drawn(before) == [300, 5, "percentile"]
    after = uqeval.merge(folder / "drawn.json", ci=0.9, seed=6)
    assert drawn(after) == [300, 6, "percentile"]


def test_a_merge_without_a_level_warns_of_the_lost_intervals(folder: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.states.zip"
    alone.write_bytes((folder / "a_items.states.zip").read_bytes())
    saved(folder, "a", "plain")
    for paths, level in (
        ([folder / "a_items.json"], "0.9"), ([folder / "a_items.states.zip"], "0.9"),
        ([folder / "plain.json", folder / "b_items.json"], "0.9"), ([alone], "LEVEL"),
    ):  # fmt: skip
        text = uqeval.merge(paths).warnings[-1]
        assert text.endswith(f"is of a run with intervals. This report has none: give ci={level}.")
        assert Path(paths[-1]).stem.split(".")[0] in text
        assert not [own for own in uqeval.merge(paths, ci=0.9).warnings if "has none" in own]
    assert not [own for own in uqeval.merge(folder / "plain.json").warnings if "intervals" in own]
    merged = tmp_path / "merged.json"
    run_well("merge", folder / "a_items.json", folder / "b_items.json", "-o", merged)
    assert not [own for own in uqeval.merge(merged).warnings if "has none" in own]


def test_draws_that_differ_are_told(folder: Path) -> None:
    """The defaults count, and options choose others."""
    saved(folder, "b", "b_more", ci=0.9, draws=300)
    paths = [folder / "a_items.json", folder / "b_more.json"]
    merged = uqeval.merge(paths, ci=0.9)
    assert merged.settings["intervals"]["draws"] == 2000
    (text,) = [own for own in merged.warnings if "draws" in own]
    assert "draws=200, 300; the default, 2000, counts" in text
    merged = uqeval.merge(paths, ci=0.9, draws=200)
    assert not [own for own in merged.warnings if "draws" in own]
    # States without intervals keep what all runs have alike, not the draws of one.
    uqeval.merge(paths, states=folder / "joined.states.zip")
    merged = uqeval.merge(folder / "joined.states.zip", ci=0.9)
    assert merged.settings["intervals"]["draws"] == 2000


def test_states_without_their_report_need_its_groups(folder: Path, tmp_path: Path) -> None:
    """Single items would make the intervals too narrow."""
    alone = tmp_path / "alone.states.zip"
    alone.write_bytes((folder / "a.states.zip").read_bytes())
    with pytest.raises(UsageError, match="is of a run with groups by 'drive'"):
        uqeval.merge(alone, ci=0.9)
    (text,) = [own for own in uqeval.merge(alone).warnings if "groups by 'drive'" in own]
    assert text.endswith("Give ci=LEVEL group_by='drive' slices=FILE.csv.")
    table = folder / "a.csv"
    merged = uqeval.merge(alone, ci=0.9, slices=table, states=tmp_path / "m.states.zip")
    assert units(merged) == ("group", 6, "drive")
    uqeval.merge(alone, states=tmp_path / "n.states.zip").save(tmp_path / "n.json")
    for name in ("m.states.zip", "n.states.zip", "n.json"):
        with pytest.raises(UsageError, match="is of a run with groups by 'drive'"):
            uqeval.merge(tmp_path / name, ci=0.9)
    assert "intervals of groups by 'drive'" in uqeval.merge(tmp_path / "n.json").warnings[-1]


def test_shards_with_other_groups_are_refused(folder: Path, tmp_path: Path) -> None:
    table, files = folder / "a.csv", []
    for k, group_by in ((1, "drive"), (2, "light")):
        files.append(tmp_path / f"{k}.states.zip")
        uqeval.evaluate(
            folder / "a.zarr", metrics="segmentation", part=f"{k}/2", states=files[-1], ci=0.9,
            slices=table, group_by=group_by,
        )  # fmt: skip
    with pytest.raises(UsageError, match="groups by 'drive'"):
        uqeval.merge(files, ci=0.9)
    merged = uqeval.merge(files, ci=0.9, draws=200, slices=table, group_by="drive")
    assert units(merged) == ("group", 6, "drive")


def test_a_family_added_to_a_report_is_of_whole_images(folder: Path, tmp_path: Path) -> None:
    states = tmp_path / "r.states.zip"
    uqeval.evaluate(folder / "a.zarr", metrics=METRICS, states=states, region=["boundary:2"])
    (text,) = [
        w for w in uqeval.merge(states, metrics={"image_failure": {}}).warnings if "whole" in w
    ]
    assert text.startswith(
        "image_failure: of whole images. The report also has regions (boundary:2)"
    )
