"""A change between two shares without any event: never the number 0 alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from saved_runs import scoring
from scipy import stats

import uqeval
from uqeval.compare import Choice, compare, load_models
from uqeval.config import load_rules
from uqeval.gate import judge
from uqeval.gate.addresses import Address
from uqeval.report.comparison_tables import differences
from uqeval.report.folder import load_reports
from uqeval.report.verdicts import message
from uqeval.statistics import resampler
from uqeval.statistics.draws import Resampling
from uqeval.statistics.from_states import paired
from uqeval.statistics.intervals import change

CLASS = "segmentation.per_class.2.iou"


def ends(value: float, base: float, level: float = 0.95, **how: object) -> tuple[float, float]:
    draws = np.repeat([[value], [base]], 100, axis=1)
    found = change((value, base), draws, level, lambda: 9, **how)  # type: ignore[arg-type]
    assert found is not None and found["method"] == "clopper-pearson"
    return found["low"], found["high"]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_the_exact_bounds_of_both(level: float) -> None:
    r = stats.binomtest(0, 9).proportion_ci(level, "exact").high
    assert ends(0, 0, level) == ends(1, 1, level) == pytest.approx((-r, r))
    assert ends(1, 0, level) == pytest.approx((1 - 2 * r, 1))
    assert ends(0, 1, level) == pytest.approx((-1, 2 * r - 1))
    assert ends(1, 1, level, relative=True) == pytest.approx((-r, 1 / (1 - r) - 1))
    assert ends(0, 1, level, relative=True) == pytest.approx((-1, r / (1 - r) - 1))


@pytest.mark.parametrize("units", [2, 5, 40])
def test_it_covers_as_often_as_it_says(units: int) -> None:
    """Of all ways in which two models may err on items, none that shows no event, and whose shares
    differ by more than the bound, is likelier than the level allows."""
    draws = np.zeros((2, 100))
    found = change((0.0, 0.0), draws, 0.9, lambda: units)
    assert found is not None
    missed = [0.0]
    for both, one, other in np.ndindex(21, 21, 21):
        if both + one + other <= 20 and not found["low"] <= (one - other) / 20 <= found["high"]:
            missed.append((1 - (both + one + other) / 20) ** units)
    assert max(missed) <= 0.05


def test_of_other_scores_draws_say_it() -> None:
    zeros = np.zeros((2, 100))
    same = {"low": 0.0, "high": 0.0, "method": "percentile"}
    assert change((0.0, 0.0), zeros, 0.95, None) == same  # no share
    assert change((0.25, 0.25), zeros + 0.25, 0.95, lambda: 9) == same  # equal, with events
    assert change((0.25, 0.5), np.repeat([[0.25], [0.5]], 100, axis=1), 0.95, lambda: 9) is None
    assert change((0.0, 0.0), zeros, 0.95, lambda: 9, relative=True) is None
    some = np.stack([np.zeros(100), np.linspace(0, 0.2, 100)])
    found = change((0.0, 0.1), some, 0.9, lambda: 9)
    assert found is not None and found["method"] == "percentile"
    assert (found["low"], found["high"]) == pytest.approx((-0.19, -0.01))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`new` and `old`: 30 items, a class in the first 4 of them that neither ever finds."""
    made = tmp_path_factory.mktemp("models")
    y = np.zeros((30, 8, 8), "u1")
    y[:4, :4, :4] = 2
    for seed, name in enumerate(("new", "old")):
        p = np.full((30, 1, 3, 8, 8), 0.05, "f4")
        wrong = np.random.default_rng(seed).random((30, 8, 8)) < 0.2
        p[:, 0, 0] = np.where(wrong, 0.05, 0.9)
        p[:, 0, 1] = np.where(wrong, 0.9, 0.05)
        report = uqeval.evaluate(p, y, "segmentation", states=made / f"{name}.states.zip")
        (made / f"{name}.json").write_text(report.to_json())
    return made


def test_units_are_those_that_have_it_in_both(folder: Path) -> None:
    reach = stats.binomtest(0, 4).proportion_ci(0.95, "exact").high
    new, old = folder / "new.json", folder / "old.json"
    found = resampler().change(new, old, Address.parse(CLASS), 0.95, False)
    assert (found.low, found.high) == pytest.approx((-reach, reach))
    by_group = Resampling(groups=tuple("aabb" + "c" * 26))
    alike = paired(scoring(new), scoring(old), by_group)
    assert alike.units_with([CLASS, "segmentation.pixel_accuracy"]).tolist() == [2, 3]


def test_a_gate_on_it_is_inconclusive(folder: Path) -> None:
    def verdict(limits: str) -> tuple[str, int | None, str]:
        rules = folder / "rules.yaml"
        rules.write_text(f"{CLASS}: {{{limits}, confidence: 0.95}}")
        found = judge(
            load_reports(folder / "new.json"), load_rules(rules),
            load_reports(folder / "old.json"), resampler(),
        ).verdicts[0]  # fmt: skip
        assert found.interval is not None and found.interval.exact
        return found.status, found.more_items, message(found)

    status, more, says = verdict("max_drop: 0.1")
    assert status == "inconclusive" and "exact bound of Clopper and Pearson" in says
    # With k items in place of 4 the bound would be 0.1; all are counted, not only those 4.
    k = np.log(0.025) / np.log(0.9)
    assert more == round(30 * k / 4 - 30)
    assert verdict("max_rise: 0.1")[0] == "inconclusive"
    assert verdict("max_drop: 0.7")[0] == verdict("max_rise: 0.7")[0] == "pass"


def test_a_comparison_shows_it(folder: Path) -> None:
    paths = [str(folder / f"{name}.json") for name in ("old", "new")]
    found = compare(load_models(paths), Choice(every=True, per_class=True, draws=500))
    (row,) = (row for row in found.rows if str(row.address) == CLASS)
    own = row.cells[1].difference
    assert own is not None and own.interval is not None
    reach = stats.binomtest(0, 4).proportion_ci(0.95, "exact").high
    assert (own.interval.low, own.interval.high) == pytest.approx((-reach, reach))
    assert own.interval.method == "clopper-pearson" and own.verdict == "no difference seen"
    table = differences(found)
    assert "†: no event in either model" in table.note
    shown = next(line for line in table.rows if CLASS in line[0])
    assert shown[1].endswith("]† no difference seen")
    from uqeval.report import comparison_files

    scores = json.loads(comparison_files.to_json(found))["scores"]
    methods = {s["address"]: s["models"]["new"].get("method") for s in scores}
    assert methods[CLASS] == "clopper-pearson"
    assert methods["segmentation.pixel_accuracy"] == "percentile"
