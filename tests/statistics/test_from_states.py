"""The states that a gate reads beside reports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import naive_statistics as naive
import numpy as np
import pytest
from command import refused
from saved_runs import run, scoring, table_file

import uqeval
from uqeval.errors import StoreError, UsageError
from uqeval.records.addresses import Address
from uqeval.records.folder import load_reports
from uqeval.records.report import Report
from uqeval.records.resampling import Interval, NoInterval, Units
from uqeval.statistics import resampler
from uqeval.statistics.draws import Resampling
from uqeval.statistics.intervals import intervals
from uqeval.statistics.paired_comparison import OpenedReport, paired_comparison
from uqeval.statistics.samples import Samples
from uqeval.statistics.scoring import Scoring
from uqeval.statistics.units_of_runs import common_items, resampling_of

N = 12
PAVPU = Address.parse("pavpu.pavpu")
#: One threshold for all runs: without one, a change of PAvPU has no interval.
AT = {"pavpu": {"threshold": 1.0}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of slices and groups, and a baseline; 300 draws, seed 5."""
    folder = tmp_path_factory.mktemp("reports")
    names = [f"item_{i}" for i in range(N)]
    weather, drive = ["sun", "fog, rain"] * 6, [str(i // 3) for i in range(N)]
    columns = {"name": names, "weather": weather, "drive": drive}
    table = table_file(folder / "t.csv", columns)
    options: dict[str, Any] = {"slices": table, "ci": 0.9, "draws": 300, "seed": 5}
    run(folder / "new", N, AT, slice_by=["weather"], group_by="drive", **options)
    run(folder / "plain", N, AT)
    run(folder / "old", N, AT, data=1)
    run(folder / "fewer", N - 2, AT, data=1)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def changed(path: Path, **changes: Any) -> Path:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


# Intervals


def test_intervals_are_those_of_the_report(made: Path) -> None:
    path = made / "new" / "report.json"
    report = json.loads(path.read_text())
    ask = resampler()
    for part, where in ((report, ""), *((p, f"@{k}") for k, p in report["slices"].items())):
        assert len(part["intervals"]) > 10
        for text in ("pavpu.pavpu", "segmentation.miou", "pavpu.per_class.1.pavpu"):
            found = ask.interval(path, Address.parse(text + where), 0.9)
            kept = part["intervals"][text]
            assert (found.low, found.high, found.level) == (kept["low"], kept["high"], 0.9)
            assert (found.method, found.count) == (kept["method"], kept["units"]["defined"])
            assert found.error == kept["standard_error"]
            wider = ask.interval(path, Address.parse(text + where), 0.99)
            assert wider.low <= found.low <= found.high <= wider.high
    assert '@weather="fog, rain"' in [f"@{key}" for key in report["slices"]]


def test_only_what_rules_name_is_drawn(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    score = Scoring.scores

    def seen(self: Scoring, weights: Any, addresses: Any, sets: Any = None) -> Any:
        if weights.sets > 1:
            asked.extend(addresses)
        return score(self, weights, addresses, sets)

    monkeypatch.setattr(Scoring, "scores", seen)
    rules = [PAVPU, Address.parse("segmentation.miou")]
    ask, path = resampler(rules), made / "plain" / "report.json"
    for own in rules:
        ask.interval(path, own, 0.9)
        ask.movers(path, None, own, 3, 1)
    # Once without each item, once each alone.
    assert sorted(asked) == ["pavpu.pavpu"] * 2 + ["segmentation.miou"] * 2
    asked.clear()
    resampler().interval(path, PAVPU, 0.9)
    assert set(asked) == {"pavpu.pavpu"}


def test_without_groups_by_item(made: Path) -> None:
    path = made / "plain" / "report.json"
    found = resampler().interval(path, PAVPU, 0.95)
    own = scoring(path)
    expected = intervals(Samples.of_run(own, Resampling(own.names)), 0.95)["pavpu.pavpu"]
    assert (found.low, found.high) == (expected["low"], expected["high"])


def test_no_interval(made: Path) -> None:
    path = made / "new" / "report.json"
    for text in ("pavpu.uncertainty_threshold", "pavpu.n_ac", "pavpu.no_such"):
        with pytest.raises(StoreError, match="is not in the saved states"):
            resampler().interval(path, Address.parse(text), 0.95)
    with pytest.raises(StoreError, match="has no slice weather=snow"):
        resampler().interval(path, Address.parse("pavpu.pavpu@weather=snow"), 0.95)


# States


@pytest.mark.parametrize("said", ["../old/report.states.zip", "{folder}/old/report.states.zip"])
def test_states_are_those_beside_the_report(folder: Path, said: str) -> None:
    """A path in a report leads nowhere: its last name is looked up beside the report."""
    path = changed(folder / "new" / "report.json", states=said.format(folder=folder))
    expected = resampler().interval(made_path := folder / "plain" / "report.json", PAVPU, 0.9)
    assert made_path != path and resampler().interval(path, PAVPU, 0.9) != expected
    (folder / "new" / "report.states.zip").unlink()
    with pytest.raises(
        StoreError, match=r"new/report\.states\.zip does not exist, but .* needs these states"
    ):
        resampler().interval(path, PAVPU, 0.9)


@pytest.mark.parametrize("said", ["", ".", "..", "/", "../..", "a\0b"])
def test_states_that_are_no_file(folder: Path, said: str) -> None:
    path = changed(folder / "new" / "report.json", states=said)
    path.with_name("report.states.zip").unlink()
    with pytest.raises(StoreError, match=r"does not exist, but .* needs these|has no saved states"):
        resampler().interval(path, PAVPU, 0.9)


def test_no_states(folder: Path) -> None:
    path = changed(folder / "new" / "report.json", states=None)
    with pytest.raises(StoreError, match="has no saved states; evaluate again") as caught:
        resampler().interval(path, PAVPU, 0.9)
    beside = str(folder / "new" / "report.states.zip")
    assert f"states={beside!r}" in str(caught.value) and "--states" not in str(caught.value)


def test_states_of_the_new_name_of_a_report(folder: Path) -> None:
    """They count if their digest is the one in the report, also beside states of another run."""
    path = folder / "new" / "report.json"
    expected = resampler().interval(path, PAVPU, 0.9)
    changed(path, states="../old/deterministic.states.zip")
    assert resampler().interval(path, PAVPU, 0.9) == expected
    shutil.copy(folder / "old" / "report.states.zip", path.with_name("deterministic.states.zip"))
    assert resampler().interval(path, PAVPU, 0.9) == expected
    path.with_name("deterministic.states.zip").unlink()
    shutil.copy(folder / "old" / "report.states.zip", folder / "new")
    message = refused(lambda: resampler().interval(path, PAVPU, 0.9), "of another run")
    assert "mv " not in message


def test_a_copied_report_after_the_next_run(folder: Path) -> None:
    """The next run writes the states of the old name anew: the copy has none, which is an error
    only where an interval needs them."""
    new, copy = folder / "new", folder / "new" / "base.json"
    shutil.copy(new / "report.json", copy)
    expected = resampler().interval(new / "report.json", PAVPU, 0.9)
    assert resampler().interval(copy, PAVPU, 0.9) == expected
    own = shutil.copy(new / "report.states.zip", folder / "own.zip")
    shutil.copy(folder / "old" / "report.states.zip", new)
    (named,) = load_reports(copy)
    assert named.report.results == Report.load(copy).results
    refused(lambda: resampler().interval(copy, PAVPU, 0.9), "base.states.zip does not exist")
    shutil.copy(own, new / "base.states.zip")
    assert resampler().interval(copy, PAVPU, 0.9) == expected
    shutil.copy(folder / "old" / "report.states.zip", new / "base.states.zip")
    refused(lambda: load_reports(copy), "of another run")


def test_states_of_a_renamed_report_without_a_digest(folder: Path) -> None:
    """States that have the report's new name are named, with the command that renames them."""
    path = changed(
        folder / "new" / "report.json", states="deterministic.states.zip", states_digest=None
    )
    message = refused(lambda: resampler().interval(path, PAVPU, 0.9), "does not exist")
    states = path.with_name("report.states.zip")
    assert f"mv {states} {path.with_name('deterministic.states.zip')}" in message
    states.unlink()
    assert "mv " not in refused(lambda: resampler().interval(path, PAVPU, 0.9))


def test_states_of_another_report(folder: Path) -> None:
    for other in ("fewer", "window"):
        if other == "window":
            run(folder / "window", N, {"pavpu": {"window": 2}})
        shutil.copy(folder / other / "report.states.zip", folder / "new")
        with pytest.raises(StoreError, match="are not the states of"):
            resampler().interval(folder / "new" / "report.json", PAVPU, 0.9)


def test_groups_of_other_items(folder: Path) -> None:
    path = folder / "new" / "report.json"
    settings = json.loads(path.read_text())["settings"]
    settings["intervals"]["groups"].pop()
    with pytest.raises(StoreError, match="`groups` has 11 entries for 12 items"):
        resampler().interval(changed(path, settings=settings), PAVPU, 0.9)


# Changes


def test_changes_are_of_pairs(made: Path) -> None:
    """The jackknife of the difference, leaving out the same group of both."""
    new, old = (made / name / "report.json" for name in ("new", "old"))
    ours, theirs = scoring(new), scoring(old)
    groups = [str(i // 3) for i in range(N)]

    def change(items: list[int], relative: bool) -> float:
        a, b = (own.whole(items)["pavpu"]["pavpu"] for own in (ours, theirs))
        return float((a - b) / b if relative else a - b)

    for relative in (False, True):
        found = resampler().change(new, old, PAVPU, 0.9, relative)
        expected = naive.jackknife_t(groups, lambda i, r=relative: change(i, r), 0.9, False)
        assert (found.low, found.high) == pytest.approx(expected, rel=1e-9)
        assert (found.unit, found.count, found.method) == ("group", 4, "jackknife-t")
    same = resampler().change(new, new, PAVPU, 0.9, False)
    assert (same.low, same.high) == (0, 0)


def pair_of(made: Path, one: str, other: str, items: Any) -> Samples:
    runs = []
    for path in (made / name / "report.json" for name in (one, other)):
        states = scoring(path)
        runs.append((path, states, resampling_of(path, Report.load(path), states)))
    return common_items(runs[0], runs[1], items)


@pytest.mark.parametrize("names", [("new", "old"), ("old", "new")])
def test_a_change_has_the_groups_that_one_of_both_reports_has(
    made: Path, names: tuple[str, str]
) -> None:
    first, second = (made / name / "report.json" for name in names)
    found = resampler().change(first, second, PAVPU, 0.9, False)
    assert (found.unit, found.count) == ("group", 4)
    opened = [[OpenedReport.of(path, Report.load(path))] for path in (first, second)]
    paired = paired_comparison(opened, opened[0][0].scoring.names, ["pavpu.pavpu"], 300, 5)
    compared = paired.difference(0, 1, "pavpu.pavpu", 0.9).interval
    assert isinstance(compared, Interval)
    assert (compared.low, compared.high) == (found.low, found.high)


def test_a_change_of_other_groups_is_refused(folder: Path) -> None:
    shutil.copytree(folder / "new", folder / "other")
    path = folder / "other" / "report.json"
    settings = json.loads(path.read_text())["settings"]
    for groups in ([str(i // 6) for i in range(N)], [str(i) for i in range(N)]):
        settings["intervals"]["groups"] = groups
        changed(path, settings=settings)
        for pair in (
            (path, folder / "new" / "report.json"),
            (folder / "new" / "report.json", path),
        ):
            with pytest.raises(UsageError, match="group their items differently"):
                resampler().change(*pair, PAVPU, 0.9, False)


def test_a_change_of_two_sets_is_drawn_within_each(tmp_path: Path) -> None:
    """Variances of both sets are added, in a gate and in a comparison."""
    rng = np.random.default_rng(3)
    paths = []
    for name in ("a", "b"):
        stores = [tmp_path / f"{name}_{kind}.npz" for kind in ("in", "out")]
        for store, items in zip(stores, (9, 4), strict=True):
            values = rng.random((items, 6, 6)).astype("f4") + (0.4 if items == 4 else 0)
            np.savez(store, novelty=values, predictions=np.zeros(values.shape, "u1"),
                     names=[f"{items}_{i}" for i in range(items)])  # fmt: skip
        paths.append(tmp_path / name / "report.json")
        paths[-1].parent.mkdir()
        report = uqeval.evaluate(
            stores[0], None, {"ood": {"uncertainty": "novelty"}}, out=[stores[1]], classes=2,
            states=paths[-1].with_name("report.states.zip"),
        )  # fmt: skip
        report.save(paths[-1])
    runs = [scoring(path) for path in paths]
    without = [
        [
            own.whole([k for k in range(13) if k != i])["ood"]["auroc"]
            for i in range(13)
        ] for own in runs
    ]  # fmt: skip
    value = runs[0].whole()["ood"]["auroc"] - runs[1].whole()["ood"]["auroc"]
    changes = np.array(without[0]) - np.array(without[1])
    sets = [changes[:9], changes[9:]]
    expected = sum((len(own) - 1) / len(own) * ((own - own.mean()) ** 2).sum() for own in sets)
    text = Address.parse("ood.auroc")
    found = resampler().change(paths[0], paths[1], text, 0.9, False)
    assert found.error == pytest.approx(expected**0.5, rel=1e-9)
    assert found.low <= value <= found.high
    opened = [[OpenedReport.of(path, Report.load(path))] for path in paths]
    paired = paired_comparison(opened, opened[0][0].scoring.names, [text.within], 300, 5)
    compared = paired.difference(0, 1, text.within, 0.9).interval
    assert isinstance(compared, Interval)
    assert (compared.low, compared.high) == pytest.approx((found.low, found.high), rel=1e-12)


def test_changes_of_a_slice(made: Path) -> None:
    new, old = (made / name / "report.json" for name in ("new", "old"))
    suns = list(range(0, N, 2))
    found = resampler().change(new, old, Address.parse("pavpu.pavpu@weather=sun"), 0.9, False)
    ours, theirs = pair_of(made, "new", "old", suns).scores("whole", "pavpu.pavpu")[:, 0]
    whole = [scoring(p).whole(suns)["pavpu"]["pavpu"] for p in (new, old)]
    assert ours - theirs == pytest.approx(whole[0] - whole[1], abs=1e-15) and not found.approximate
    assert found.low <= ours - theirs <= found.high


def test_pairs_are_the_items_that_both_have(made: Path) -> None:
    found = pair_of(made, "new", "fewer", range(N))
    ours, theirs = found.scores("whole", "pavpu.pavpu")[:, 0]
    new, fewer = (scoring(made / name / "report.json") for name in ("new", "fewer"))
    shared = list(range(N - 2))
    expected = new.whole(shared)["pavpu"]["pavpu"] - fewer.whole()["pavpu"]["pavpu"]
    assert ours - theirs == pytest.approx(expected, abs=1e-15)


def test_no_pairs(made: Path) -> None:
    new, old = (made / name / "report.json" for name in ("new", "old"))
    with pytest.raises(NoInterval, match="share 1 item; a paired comparison needs"):
        pair_of(made, "plain", "old", [3])
    with pytest.raises(NoInterval, match="there is one group"):
        pair_of(made, "new", "old", [0, 1, 2])
    with pytest.raises(StoreError, match="the change has no interval"):
        resampler().change(new, old, Address.parse("pavpu.no_such"), 0.9, False)


# Movers


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("where", ["", "@weather=sun"])
def test_movers(made: Path, where: str, sign: int) -> None:
    """The items whose removal helps most, with their own value; no harmless ones."""
    path = made / "new" / "report.json"
    found = resampler().movers(path, None, Address.parse(f"pavpu.pavpu{where}"), 3, sign)
    own, items = scoring(path), list(range(0, N, 2 if where else 1))
    whole = own.whole(items)["pavpu"]["pavpu"]
    effects = {
        f"item_{i}": whole - own.whole([j for j in items if j != i])["pavpu"]["pavpu"]
        for i in items
    }
    expected = sorted((v for v in effects.values() if sign * v < 0), key=lambda v: sign * v)[:3]
    assert [mover.influence for mover in found] == pytest.approx(expected, abs=1e-15)
    assert all(effects[m.name] == pytest.approx(m.influence, abs=1e-15) for m in found)
    alone = [own.whole([int(m.name[5:])])["pavpu"]["pavpu"] for m in found]
    assert [m.value for m in found] == pytest.approx(alone)


def test_movers_of_a_change(made: Path) -> None:
    new, old = (made / name / "report.json" for name in ("new", "old"))
    ours, theirs = scoring(new), scoring(old)

    def change(items: list[int]) -> float:
        return float(ours.whole(items)["pavpu"]["pavpu"] - theirs.whole(items)["pavpu"]["pavpu"])

    found = resampler().movers(new, old, PAVPU, 2, 1)
    every = list(range(N))
    effects = sorted(change(every) - change([j for j in every if j != i]) for i in every)
    assert [m.influence for m in found] == pytest.approx(effects[:2], abs=1e-12)
    assert all(m.change is not None for m in found)
    assert resampler().movers(new, None, Address.parse("pavpu.no_such"), 3, 1) == []


def test_states_of_another_model_are_refused(folder: Path) -> None:
    # The same items and settings: evaluated with the same command, and copied by mistake.
    shutil.copy(folder / "old" / "report.states.zip", folder / "plain" / "report.states.zip")
    with pytest.raises(StoreError, match="are not the states of"):
        resampler().interval(folder / "plain" / "report.json", PAVPU, 0.9)


def test_a_score_without_an_interval_is_inconclusive(made: Path, tmp_path: Path) -> None:
    """Too few groups for draws: the gate says so and judges the other rules."""
    from uqeval.config import load_rules
    from uqeval.gate import judge
    from uqeval.records.folder import load_reports

    run(tmp_path / "few", 4, ["pavpu", "calibration"])
    rules = (
        "calibration.ece: {max: 0.9, confidence: 0.9}\npavpu.pavpu: {min: 0.001, confidence: 0.9}"
    )
    (tmp_path / "rules.yaml").write_text(rules)
    reports = load_reports(tmp_path / "few" / "report.json")
    first, second = judge(reports, load_rules(tmp_path / "rules.yaml"), [], resampler()).verdicts
    assert (first.status, first.counts_as) == ("inconclusive", "fail")
    assert first.reason == "no interval: 4 items have this score; intervals from draws need 6"
    assert second.status == "pass"


# Scores that states do not give


def test_ranks_of_classes_have_no_interval_and_say_why(tmp_path: Path) -> None:
    """The states rank the pixels of the set, not of each class."""
    paths = [run(tmp_path / name, N, "failure", data=k)[1] for k, name in enumerate("ab")]
    address = Address.parse("failure.per_class.1.auroc")
    reason = "the score cannot be computed from saved states"
    with pytest.raises(NoInterval, match=f"^no interval: {reason}$"):
        resampler().interval(paths[0], address, 0.9)
    with pytest.raises(NoInterval, match=f"^the change has no interval: {reason}$"):
        resampler().change(*paths, address, 0.9, False)
    assert resampler().units(paths[0], address) == Units("item", N, None)
    rate = Address.parse("failure.per_class.1.undetected_error_rate")
    assert resampler().interval(paths[0], rate, 0.9).low is not None
