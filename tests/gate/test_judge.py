"""Verdicts: limits, intervals, baselines, and what names nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from command import refused
from gate_reports import Known, items, named, report, rules
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from trained import save

from uqeval.errors import StoreError, UsageError
from uqeval.gate import Address, Interval, Judgement, Limits, Rule, Units, Verdict, judge
from uqeval.gate.baseline import refuse_unused_baseline
from uqeval.gate.more_units import MoreUnits, more_units
from uqeval.gate.verdict import FailedStore
from uqeval.records.folder import Named
from uqeval.records.report import Report
from uqeval.records.resampling import IDENTICAL, NoInterval
from uqeval.report.verdict_table import table
from uqeval.statistics import resampler


def verdicts(folder: Path, text: str, *reports: Named, **options: Any) -> tuple[Verdict, ...]:
    return judge(reports or (named(),), rules(folder, text), **options).verdicts


def only(folder: Path, text: str, *reports: Named, **options: Any) -> Verdict:
    (found,) = verdicts(folder, text, *reports, **options)
    return found


@pytest.mark.parametrize(
    ("address", "value"),
    [
        ("pavpu.pavpu", 0.8), ("city/pavpu.pavpu", 0.8), ("pavpu[window=7].pavpu", 0.7),
        ("failure.risk_at_coverage.80", 0.03), ("calibration.temperature.ece", 0.01),
        ("pavpu.per_class.road.pavpu", 0.9), ("pavpu.per_class.0.pavpu", 0.9),
        ("pavpu.per_class.mixed.pavpu", 0.5), ("nmerci.by_depth.1.nmerci", 0.3),
        ('pavpu.per_class."traffic.light".pavpu', 0.4), ("pavpu.pavpu@weather=night", 0.5),
        ("pavpu.pavpu@city=x,weather=night", 0.3), ("pavpu.n_ac", 7),
    ],
)  # fmt: skip
def test_the_value_at_an_address(tmp_path: Path, address: str, value: float) -> None:
    found = only(tmp_path, f"'{address}': {{min: 0.001}}")
    assert found.value == value and found.status == "pass"


@pytest.mark.parametrize(
    ("address", "says", "near"),
    [
        ("pavpu.pavpuu", "no field of pavpu 'pavpuu'; the nearest is 'pavpu'", "pavpu.pavpu"),
        ("city.pavpu.pavpu", "no metric 'city'", "city/pavpu.pavpu"),
        ("pavp.pavpu", "no metric 'pavp'; the nearest is 'pavpu'", "pavpu.pavpu"),
        ("pavpu[window=8].pavpu", "no metric 'pavpu[window=8]'", "pavpu[window=7].pavpu"),
        ("city/pavpu.pavpuu", "the nearest is 'pavpu'", "city/pavpu.pavpu"),
        ("city/pavpu.per_class.raod.pavpu", "'raod'", "city/pavpu.per_class.road.pavpu"),
        ("city/calibration.eec", "no field of calibration 'eec'", "city/calibration.ece"),
        ("pavpu.per_class.raod.pavpu", "no class 'raod'", "pavpu.per_class.road.pavpu"),
        ("pavpu.pavpu@weather=fog", "no slice 'weather=fog'", "pavpu.pavpu@weather=night"),
        ("pavpu.n_ac.road", "nothing below 'n_ac'", "pavpu.n_ac"),
        ("pavpu.road.pavpu", "no field of pavpu 'road'", "pavpu.per_class.road.pavpu"),
        (
            "failure.risk_at_coverage.0.8",
            "no field of failure '0'; the nearest is '80'",
            "failure.risk_at_coverage.80",
        ),
        ("calibration.eec", "no field of calibration 'eec'", "calibration.ece"),
        ("calibration.temperature", "holds several values", "calibration.temperature.ece"),
        ("failure.risk_at_coverage", "holds several values", "failure.risk_at_coverage.80"),
        ("calibration.ECE", "no field of calibration 'ECE'", "calibration.ece"),
        ("failure.AUROC", "no field of failure 'AUROC'", "failure.auroc"),
        ("PAvPU.PAvPU", "no metric 'PAvPU'; the nearest is 'pavpu'", "pavpu.pavpu"),
        ("pavpu.uncertainty", "is 'entropy', which is not a number", ""),
        ("pavpu.per_class", "is a list of 3", "pavpu.per_class.road.pavpu"),
        ("pavpu.pavpu.x", "nothing below 'pavpu'", "pavpu.pavpu"),
        (
            "pavpu.per_class.traffic.light.pavpu",
            "no class 'traffic'; the nearest is 'traffic.light'",
            'pavpu.per_class."traffic.light".pavpu',
        ),
    ],
)
def test_a_rule_that_names_nothing(tmp_path: Path, address: str, says: str, near: str) -> None:
    with pytest.raises(UsageError) as caught:
        verdicts(tmp_path, f"'{address}': {{min: 0}}")
    message = str(caught.value)
    assert says in message and f"rules.yaml:1: {address}" in message
    assert f"Did you mean {near}" in message


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("pavpu[mi].pavpu", "no metric 'pavpu[mi]'; there are"),
        (
            "pavpu[mutual_information].surplus",
            "Evaluate it with `uqeval pavpu PREDS LABELS --uncertainty entropy --uncertainty "
            "mutual_information -o REPORT.json`.",
        ),
        (
            "sparsification.ause",
            "Evaluate it with `uqeval sparsification PREDS LABELS -o REPORT.js",
        ),
        ("pavpu@box:0:1.pavpu", "Evaluate it with `uqeval pavpu PREDS LABELS --region box:0:1 -o"),
        ("pavpu.per_class.person.pavpu", "no class 'person'"),
        ("town/pavpu.pavpu", "no report 'town'; the reports are city"),
        ("nmerci.by_depth.2.nmerci", "there are 0 … 1"),
    ],
)
def test_a_rule_that_resembles_nothing(tmp_path: Path, address: str, says: str) -> None:
    message = refused(lambda: verdicts(tmp_path, f"'{address}': {{min: 0}}"), says)
    assert "Did you mean" not in message


def test_two_classes_of_one_name_go_by_id(tmp_path: Path) -> None:
    record = {"per_class": [{"class": i, "name": "x", "pavpu": i / 10} for i in (3, 4)]}
    twins = named(results={"pavpu": record})
    with pytest.raises(UsageError, match="classes 3 and 4 are all called x"):
        verdicts(tmp_path, "pavpu.per_class.x.pavpu: {min: 0}", twins)
    assert only(tmp_path, "pavpu.per_class.4.pavpu: {min: 0}", twins).value == 0.4


def test_a_class_may_have_the_name_of_mixed_patches(tmp_path: Path) -> None:
    record = {
        "per_class": [
            {"class": i, "name": "mixed", "pavpu": p} for i, p in ((1, 0.1), ("mixed", 0.5))
        ]
    }
    both = named(results={"pavpu": record})
    for row, value in (("1", 0.1), ("mixed", 0.5)):
        found = only(tmp_path, f"pavpu.per_class.{row}.pavpu: {{min: 0}}", both)
        assert found.value == value and str(found.address) == f"city/pavpu.per_class.{row}.pavpu"


def test_without_a_store_a_rule_holds_where_the_value_is(tmp_path: Path) -> None:
    bare = named("depth", results={"nmerci": {"nmerci": 0.1}})
    found = verdicts(tmp_path, "pavpu.pavpu: {min: 0}", named("a"), named("b", 0.1), bare)
    assert [v.address.store for v in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("limits", "value", "status"),
    [
        ("min: 0.8", 0.8, "pass"), ("min: 0.8", 0.8 - 1e-11, "fail"),
        ("max: 0.8", 0.8, "pass"), ("max: 0.8", 0.8 + 1e-11, "fail"),
        # Rounding decides nothing: such values are means whose sums are in another order.
        ("min: 0.8", math.nextafter(0.8, 0), "pass"), ("max: 0.8", math.nextafter(0.8, 1), "pass"),
        ("max_rise: 0.1", math.nextafter(0.9, 1), "pass"), ("max_rise: 0.1", 0.9 + 1e-11, "fail"),
        ("max_rise_relative: 0.125", math.nextafter(0.9, 1), "pass"),
        ("max: 0", 0.0, "pass"), ("max: 0", 1e-300, "fail"),
        ("max_drop: 0.01", 0.79, "pass"), ("max_drop: 0.01", 0.78, "fail"),
        ("max_drop: 0", 0.9, "pass"), ("max_rise: 0.1", 0.9, "pass"),
        ("max_rise: 0.1", 0.91, "fail"), ("max_drop_relative: 0.25", 0.6, "pass"),
        ("max_drop_relative: 0.25", 0.59, "fail"), ("max_rise_relative: 0.125", 0.9, "pass"),
        ("max_rise_relative: 0.125", 0.95, "fail"),
    ],
)  # fmt: skip
def test_limits(tmp_path: Path, limits: str, value: float, status: str) -> None:
    # As decimals: 0.8 − 0.79 is 0.01, though not in binary.
    found = only(
        tmp_path, f"pavpu.pavpu: {{{limits}}}", named(value=value), baseline=[named(value=0.8)]
    )
    assert found.status == found.counts_as == status


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_unrounded(value: float, limit: float) -> None:
    rule = Rule(Address.parse("pavpu.pavpu"), Limits(min=limit), "r", 1)
    (found,) = judge([named(value=value)], [rule]).verdicts
    assert (found.status == "pass") == (value >= limit)


def test_a_change_by_rounding_is_none(tmp_path: Path) -> None:
    """Sums in another order of items differ in their last bits."""
    found = only(
        tmp_path, "pavpu.pavpu: {max_rise: 0}", named(value=0.1 + 0.2), baseline=[named(value=0.3)]
    )
    assert found.status == "pass" and found.change == 0


def test_a_rule_with_several_limits_has_a_verdict_each(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0.5, max: 0.7, max_drop: 0.1, id: R1, why: because}"
    found = verdicts(tmp_path, text, baseline=[named(value=0.85)])
    assert [(v.kind, v.status) for v in found] == [
        ("min", "pass"), ("max", "fail"), ("max_drop", "pass")
    ]  # fmt: skip
    assert found[2].change == -0.05 and found[2].baseline == 0.85


@pytest.mark.parametrize("says", ["", ", undefined: fail"])
def test_undefined_fails(tmp_path: Path, says: str) -> None:
    found = only(tmp_path, f"pavpu.phi: {{min: -1{says}}}")
    assert found.status == "fail" and found.reason == "all patches are certain"
    assert found.value is None


def test_undefined_passes_where_the_rule_says_so(tmp_path: Path) -> None:
    found = only(tmp_path, "pavpu.phi: {min: 1, undefined: pass}")
    assert found.status == "pass" and found.reason == "all patches are certain"


def test_undefined_further_up_and_in_the_baseline(tmp_path: Path) -> None:
    assert only(tmp_path, "pavpu.surplus_peak.value: {min: 0}").reason == "no peak"
    before = [named(value=None)]
    found = only(tmp_path, "pavpu.pavpu: {max_drop: 1}", baseline=before)
    assert found.status == "fail" and "baseline: no patch was counted" in str(found.reason)


def test_a_change_too_large_for_a_relative_size(tmp_path: Path) -> None:
    """0.8 / 5e-324 is no float."""
    for limits, status in (("max_rise_relative: 9", "fail"), ("max_drop_relative: 0.1", "pass")):
        found = only(tmp_path, f"pavpu.pavpu: {{{limits}}}", baseline=[named(value=5e-324)])
        assert (found.status, found.change) == (status, None)
        assert "the baseline's value is 4.94066e-324, so its change has no" in str(found.notes)


@pytest.mark.parametrize(
    ("limits", "value", "status"),
    [
        ("max_rise_relative: 1", 0.75, "fail"), ("max_rise_relative: 1", 0.0, "pass"),
        ("max_rise_relative: 1", -0.1, "pass"), ("max_rise_relative: -0.1", 0.0, "fail"),
        ("max_drop_relative: 0.1", -0.1, "fail"), ("max_drop_relative: 0.1", 0.75, "pass"),
    ],
)  # fmt: skip
def test_a_change_relative_to_0_has_no_size(
    tmp_path: Path, limits: str, value: float, status: str
) -> None:
    """It is not undefined: the two values are known."""
    own, before = named(value=value), [named(value=-0.0)]  # shown as 0
    text = f"pavpu.pavpu: {{{limits}, undefined: pass}}"
    found = only(tmp_path, text, own, baseline=before)
    assert (found.status, found.counts_as, found.reason) == (status, status, None)
    assert found.change == (None if value else 0.0)
    change = "drop" if "drop" in limits else "rise"
    says = f"the baseline's value is 0, so its change has no relative size: any {change} breaks"
    assert (says in str(found.notes)) == bool(value)  # an unchanged 0 is no change
    text = f"pavpu.pavpu: {{{limits}, undefined: pass, confidence: 0.95}}"
    ends = [Interval(0.95, -end, end) for end in (0.0, 0.1)]
    same, unsure = (Known(interval, interval) for interval in ends)
    found = only(tmp_path, text, own, baseline=before, resampler=same)
    assert found.status == status
    found = only(tmp_path, text, own, baseline=before, resampler=unsure)
    assert found.status == (status if status == "fail" else "inconclusive")
    assert says in f"{found.notes} {found.reason}"


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ("min: 0.75", "pass"), ("min: 0.76", "inconclusive"), ("min: 0.86", "fail"),
        ("max: 0.85", "pass"), ("max: 0.84", "inconclusive"), ("max: 0.74", "fail"),
    ],
)  # fmt: skip
def test_confidence_by_the_interval_of_the_report(tmp_path: Path, limits: str, status: str) -> None:
    found = only(tmp_path, f"pavpu.pavpu: {{{limits}, confidence: 0.95}}")
    assert found.status == status
    assert (found.interval.low, found.interval.high) == (0.75, 0.85)
    assert found.counts_as == ("pass" if status == "pass" else "fail")


def test_the_table_has_intervals_with_their_level(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0.1, confidence: 0.95}\n"
    found = table(judge([named()], rules(tmp_path, text)))
    assert "95 % interval" in found.columns and "[0.7500, 0.8500]" in found.texts[0]
    other = Known(Interval(0.9, 0.4, 0.6, approximate=True))
    text += "failure.risk_at_coverage.80: {max: 1, confidence: 0.9}\n"
    found = table(judge([named()], rules(tmp_path, text), resampler=other))
    assert "interval" in found.columns
    assert "[0.7500, 0.8500] at 95 %" in found.texts[0]
    assert "≈ [0.4000, 0.6000] at 90 %" in found.texts[1]


def test_an_inconclusive_verdict_may_pass_and_says_how_many_items(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0.79, confidence: 0.95, inconclusive: pass}"
    found = only(tmp_path, text)
    assert found.status == "inconclusive" and found.counts_as == "pass"
    assert found.more_units is not None
    # 3·((4.303 + 1.386)·se/0.01)² − 3 with se = 0.05/4.303; and at 0.01 ± se
    assert found.more_units == MoreUnits(129, 26, None, "item")


def test_inconclusive_without_an_interval_is_told(tmp_path: Path) -> None:
    for text, told in (
        ("pavpu.pavpu: {min: 0.1, inconclusive: pass}", 1),
        ("pavpu.pavpu: {min: 0.1, inconclusive: pass, confidence: 0.95}", 0),
        ("pavpu.pavpu: {min: 0.1, inconclusive: fail}", 0),
    ):
        warnings = judge([named()], rules(tmp_path, text)).warnings
        found = [line for line in warnings if "has no effect without `confidence`" in line]
        assert len(found) == told
        assert not told or ":1: pavpu.pavpu: `inconclusive: pass`" in found[0]


@pytest.mark.parametrize("unit", ["item", "batch"])
def test_more_units_of_a_standard_error(unit: str) -> None:
    interval = Interval(0.95, 0.7, 0.9, False, "jackknife-t", Units(unit, 10, 10), 0.04)
    found = more_units(interval, Fraction("0.8"), Fraction("0.7"), 40)
    n = 40 if unit == "batch" else 10
    # t₉ at 97.5 % and 85 %. The limit is below: that end lies 0.00951 farther off than t·se.
    straight, skew = (2.2621572 + 1.0997162) * 0.04, 0.1 - 2.2621572 * 0.04
    expected = [
        n * brentq(lambda k, gap=gap: straight / k**0.5 + skew / k - gap, 0.1, 100) - n
        for gap in (0.1, 0.14, 0.06)
    ]
    assert found is not None and found.unit == ("pair" if unit == "batch" else "item")
    rounded = [max(1, math.ceil(own)) for own in expected]
    assert [found.count, found.low, found.high] == rounded


@pytest.mark.parametrize("power", [-700, 700])
def test_more_units_do_not_depend_on_the_size_of_the_score(power: int) -> None:
    """float64 has no squares of such scores."""

    def found(size: int) -> MoreUnits | None:
        low, high, error = (number * 2.0**size for number in (0.7, 0.9, 0.04))
        interval = Interval(0.95, low, high, False, "expanded", Units("item", 10, 10), error)
        value, limit = (Fraction(own) * Fraction(2) ** size for own in ("0.8", "0.7"))
        return more_units(interval, value, limit, 10)

    assert found(0) == found(power) is not None


def test_the_longer_end_of_an_interval_takes_more_units() -> None:
    counts = []
    for low, high in ((0.7, 0.83), (0.75, 0.83)):
        interval = Interval(0.95, low, high, False, "jackknife-t", Units("item", 10, 10), 0.02)
        found = more_units(interval, Fraction("0.8"), Fraction("0.78"), 10)
        above = more_units(interval, Fraction("0.8"), Fraction("0.82"), 10)
        assert found is not None and above is not None and above.count == 104
        counts.append(found.count)
    assert counts == [154, 108]


def test_no_distance_decides_nothing() -> None:
    found = more_units(Interval(0.9, 0, 1), Fraction(1), Fraction(1), 3)
    assert found is not None and found.count is None and found.high is None


@pytest.mark.parametrize("reach", [0.2, 0.999, 1.0, 1.9, 40.0])
@pytest.mark.parametrize("distance", ["0.01", "0.5", "1", "1.5"])
def test_exact_bounds_of_any_width(reach: float, distance: str) -> None:
    """Of a relative change, or of 1 against 0, they may be 1 and more."""
    interval = Interval(0.95, -0.2, reach, True, "clopper-pearson")
    found = more_units(interval, Fraction(0), Fraction(distance), 3)
    assert found is not None and (found.count is None or found.count >= 1)


@pytest.mark.parametrize("error", [0.0, None])
def test_a_share_without_events_needs_what_moves_its_bound(error: float | None) -> None:
    """0 of 100: (1 − 0.0362)^100 = 0.025; a limit of 0.02 takes 183 items in all. An mIoU of 1 has
    the same bounds, without a standard error."""
    hundred = Units("item", 100, 100)
    interval = Interval(0.95, 0.0, 1 - 0.025**0.01, False, "korn-graubard", hundred, error)
    found = more_units(interval, Fraction(0), Fraction("0.02"), 100)
    assert found == MoreUnits(83, 83, 83, "item")
    of_one = replace(interval, low=1 - interval.high, high=1.0)
    found = more_units(of_one, Fraction(1), Fraction("0.98"), 100)
    assert found == MoreUnits(83, 83, 83, "item")


def test_too_many_more_items_are_not_promised(tmp_path: Path) -> None:
    from uqeval.report.verdicts import message

    near = only(tmp_path, "pavpu.pavpu: {min: 0.79, confidence: 0.95}")
    assert "about 129 more items would decide with a power of 80 % (26 to far more)" in message(
        near
    )
    nearer = only(tmp_path, "pavpu.pavpu: {min: 0.796, confidence: 0.95}")
    assert nearer.more_units is not None and nearer.more_units.count is None
    assert "too close to call by adding items" in message(nearer)


def test_rules_that_would_hardly_all_pass_again(tmp_path: Path) -> None:
    """Φ(0.05/0.03 − 1.96) = 0.38 for the first rule, about 1 for the second."""
    kept = {"level": 0.95, "low": 0.75, "high": 0.85, "standard_error": 0.03,
            "units": {"name": "item", "drawn": 40, "defined": 40}}  # fmt: skip
    kept = dict.fromkeys(("pavpu.pavpu", "pavpu.per_class.road.pavpu"), kept)
    first = "pavpu.pavpu: {min: 0.75, confidence: 0.95}"
    both = f"{first}\npavpu.per_class.road.pavpu: {{min: 0.1, confidence: 0.95}}"
    own = [named(intervals=kept)]
    assert not judge(own, rules(tmp_path, first)).warnings
    (note,) = judge(own, rules(tmp_path, both)).warnings
    assert "all 2 rules with confidence pass" in note and "about 38%" in note


def test_classes_and_slices_have_intervals_too(tmp_path: Path) -> None:
    found = only(tmp_path, "pavpu.per_class.1.pavpu: {min: 0.2, confidence: 0.95}")
    assert found.interval == Interval(0.95, 0.3, 0.5)
    found = only(tmp_path, "pavpu.pavpu@weather=night: {min: 0.2, confidence: 0.9}")
    assert found.interval == Interval(0.9, 0.4, 0.6, approximate=True)
    assert found.notes[0] == "a small slice: 1 item"


def test_other_levels_are_resampled(tmp_path: Path) -> None:
    known = Known(Interval(0.99, 0.7, 0.9))
    text = "city/pavpu.per_class.0.pavpu: {min: 0.6, confidence: 0.99}"
    found = only(tmp_path, text, resampler=known)
    assert found.status == "pass" and found.interval == known.given
    assert known.asked == [(Path("city.json"), "pavpu.per_class.road.pavpu", 0.99)]


def test_without_states_the_message_says_what_to_do(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0.6, confidence: 0.99}"
    with pytest.raises(UsageError, match=r"--ci 0\.99"):
        verdicts(tmp_path, text)

    class Empty(Known):
        def interval(self, report: Path, address: Any, level: float) -> Interval:
            raise StoreError("city.states.zip is not there.")

    with pytest.raises(StoreError, match=r"--ci 0\.99.*city.states.zip is not there"):
        verdicts(tmp_path, text, resampler=Empty(Interval(0.9, 0, 1)))


@pytest.mark.parametrize("inconclusive", ["pass", "fail"])
def test_a_value_without_an_interval(tmp_path: Path, inconclusive: str) -> None:
    """`inconclusive` applies inside the limit only: a value beyond it fails."""

    class Without(Known):
        def interval(self, report: Path, address: Any, level: float) -> Interval:
            raise NoInterval("no interval: there is one item; 2 are needed")

    def found(limit: str) -> Verdict:
        text = f"pavpu.pavpu: {{{limit}, confidence: 0.99, inconclusive: {inconclusive}}}"
        return only(tmp_path, text, resampler=Without(Interval(0.9, 0, 1)))

    inside, beyond = found("min: 0.7"), found("min: 0.9")
    assert (inside.status, inside.counts_as) == ("inconclusive", inconclusive)
    assert inside.reason is not None and "there is one item" in inside.reason
    says = "`inconclusive: pass` this rule passes"
    assert any(says in note for note in inside.notes) == (inconclusive == "fail")
    assert (beyond.status, beyond.counts_as, beyond.reason) == ("fail", "fail", None)
    assert "there is one item" in beyond.notes[-1]


def test_a_debiased_value_has_no_interval(tmp_path: Path) -> None:
    own = report(results={"calibration": {"ece": 0.02, "ece_debiased": 0.01}})
    text = "calibration.ece_debiased: {max: 0.02, confidence: 0.95}"
    with pytest.raises(UsageError, match=r"write the rule for calibration\.ece\."):
        verdicts(tmp_path, text, Named("city", Path("city.json"), own))
    (found,) = verdicts(
        tmp_path, text.replace(", confidence: 0.95", ""), Named("city", Path("city.json"), own)
    )
    assert found.status == "pass"


@pytest.mark.parametrize(
    ("address", "reason"),
    [("pavpu.n_ac", "none of the scores"), ("pavpu.per_class.road.n_ac", "none of the scores"),
     ("pavpu.pavpu_bound", "the bound of the error")],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["min", "max", "max_drop"])
def test_a_number_that_is_no_score_has_no_interval(
    tmp_path: Path, address: str, reason: str, kind: str
) -> None:
    """Evaluating again would not help: only scores have intervals."""
    counts = {"pavpu": 0.8, "n_ac": 7, "pavpu_bound": 0.1}
    counts["per_class"] = [{"class": 0, "name": "road", "n_ac": 5}]
    own = named(results={"pavpu": counts}, metrics={"pavpu.pavpu": {"unit": ""}})
    text, known = f"{address}: {{{kind}: 0.1, confidence: 0.9}}", Known(Interval(0.9, 0, 1))
    with pytest.raises(UsageError) as caught:
        verdicts(tmp_path, text, own, baseline=[own], resampler=known)
    message = str(caught.value)
    assert f"{address} has no interval, because it is {reason}" in message
    assert f"Remove confidence: {kind} without it" in message and "valuate again" not in message
    assert not known.asked
    text = text.replace(", confidence: 0.9", "")
    assert only(tmp_path, text, own, baseline=[own]).kind == kind
    score = "pavpu.pavpu: {min: 0, confidence: 0.9}"
    assert only(tmp_path, score, own, resampler=known).interval == known.given


@pytest.mark.parametrize(
    ("limits", "status"),
    [("max_drop: 0.05", "pass"), ("max_drop: 0.03", "inconclusive"), ("max_drop: -0.1", "fail"),
     ("max_rise: 0.02", "pass"), ("max_rise: -0.01", "inconclusive"), ("max_rise: -0.06", "fail"),
     ("max_drop_relative: 0.05", "pass")],
)  # fmt: skip
def test_confidence_in_a_change_is_paired(tmp_path: Path, limits: str, status: str) -> None:
    known = Known(Interval(0.9, 0, 1), change=Interval(0.9, -0.04, 0.02))
    before = [Named("main", Path("main.json"), report(0.81))]
    text = f"pavpu.pavpu: {{{limits}, confidence: 0.9}}"
    found = only(tmp_path, text, baseline=before, resampler=known)
    assert found.status == status
    assert found.interval == known.given_change  # told as the change, whatever the limit
    relative = "relative" in limits
    assert known.asked == [(Path("city.json"), Path("main.json"), "pavpu.pavpu", 0.9, relative)]


def test_items_in_another_order_are_paired(tmp_path: Path) -> None:
    first = named(items=items(a=0.5, b=0.6))
    before = named(value=0.81, items=items(b=0.6, a=0.5))
    known = Known(Interval(0.9, 0, 1), change=Interval(0.9, -0.04, 0.02))
    limits = rules(tmp_path, "pavpu.pavpu: {max_drop: 0.05, confidence: 0.9}")
    judged = judge([first], limits, [before], resampler=known)
    assert judged.passed and known.asked and not judged.warnings
    before.report.inputs["labels"] = {"fingerprint": "of another order"}
    judged = judge([first], limits, [before], resampler=known)
    assert judged.passed and "Whether it has the same labels is unknown" in judged.warnings[0]


def test_other_items_are_compared_with_a_warning_but_never_paired(tmp_path: Path) -> None:
    before = [named(value=0.81, items=items(z=0.5))]
    judged = judge([named()], rules(tmp_path, "pavpu.pavpu: {max_drop: 0.1}"), before)
    assert judged.passed and "the baseline has other items" in judged.warnings[0]
    with pytest.raises(UsageError, match="needs the same items"):
        verdicts(
            tmp_path, "pavpu.pavpu: {max_drop: 0.1, confidence: 0.9}", baseline=before,
            resampler=Known(Interval(0.9, 0, 1)),
        )  # fmt: skip


def test_other_labels_are_told(tmp_path: Path) -> None:
    before = [named(inputs={"labels": {"fingerprint": "other"}, "ignore_index": 255})]
    judged = judge([named()], rules(tmp_path, "pavpu.pavpu: {max_drop: 0.1}"), before)
    assert "the fingerprints of labels differ" in judged.warnings[0]
    assert "same in another format, or in a file that was copied" in judged.warnings[0]


def of_region(tmp_path: Path, text: str, now: Report, before: Report) -> Judgement:
    """Judge a change of `calibration@depth:0-50`, and of `ood`."""
    pair = [Named(name, Path(f"{name}.json"), own) for name, own in (("a", now), ("b", before))]
    known = Known(Interval(0.9, 0, 1), change=Interval(0.9, -0.04, 0.02))
    return judge(pair[:1], rules(tmp_path, text), pair[1:], resampler=known)


def with_maps(inputs: dict[str, object], nll: float = 0.5, **record: object) -> Report:
    keys = ("calibration", "calibration@depth:0-50", "calibration@map:zones:3", "ood")
    results = {key: {"nll": nll, **record} for key in keys}
    scored = [{"name": name, **results} for name in ("a", "b")]
    return report(results=results, items=scored, inputs=inputs)


@pytest.mark.parametrize(
    ("key", "says"),
    [("calibration@depth:0-50", "depth map"), ("calibration@map:zones:3", "map:zones"),
     ("ood", "OOD mask"), ("calibration", None)],
)  # fmt: skip
def test_other_maps_of_regions_and_masks_are_told(
    tmp_path: Path, key: str, says: str | None
) -> None:
    def of(digest: str, nll: float = 0.51) -> Report:
        regions = [{"region": name, "path": "m", "fingerprint": digest}
                   for name in ("depth", "map:zones")]  # fmt: skip
        return with_maps({"regions": regions, "ood_mask": {"fingerprint": digest}}, nll)

    text, sure = (f'"{key}.nll": {{max_rise: 0.1{c}}}' for c in ("", ", confidence: 0.9"))
    assert of_region(tmp_path, sure, of("x"), of("x", 0.5)).warnings == ()
    judged = of_region(tmp_path, text, of("x"), of("y", 0.5))
    if says is None:
        assert judged.passed and not judged.warnings
        assert of_region(tmp_path, sure, of("x"), of("y")).passed
        return
    assert judged.passed and f"{key}: the fingerprints of {says}" in judged.warnings[0]
    with pytest.raises(UsageError, match=f"needs the same items, data .* fingerprints of {says}"):
        of_region(tmp_path, sure, of("x"), of("y"))


def test_other_pixels_are_told(tmp_path: Path) -> None:
    text, sure = (f"calibration.nll: {{max_rise: 0.1{c}}}" for c in ("", ", confidence: 0.9"))
    now, before = with_maps({}, pixels=5), with_maps({}, pixels=1500)
    judged = of_region(tmp_path, text, now, before)
    says = "scored on other pixels in 2 of 2 items: 3,000, and 10 in this report"
    assert judged.passed and says in judged.warnings[0]
    with pytest.raises(UsageError, match=says):
        of_region(tmp_path, sure, now, before)
    assert not of_region(tmp_path, sure, now, with_maps({}, 0.51, pixels=5)).warnings


def test_a_baseline_with_the_same_results_is_told(tmp_path: Path) -> None:
    change = "pavpu.pavpu: {max_drop: 0.1}\nfailure.auroc: {max_drop: 0.1}"
    pair = [named("city"), named("night", 0.9)], [named("city"), named("night", 0.8)]
    (warning,) = judge(pair[0], rules(tmp_path, change), pair[1]).warnings
    assert warning.startswith("city: the baseline has the same results")
    both = judge(pair[0], rules(tmp_path, change), pair[0]).warnings
    assert len(both) == 1 and both[0].startswith("city, night: the baseline has")
    # No rule limits the change of one, and the other has other labels.
    assert not judge(pair[0], rules(tmp_path, "pavpu.pavpu: {min: 0.1}"), pair[0]).warnings
    other = named(inputs={"labels": {"fingerprint": "other"}, "ignore_index": 255})
    (warning,) = judge([named()], rules(tmp_path, change), [other]).warnings
    assert "the same results" not in warning


def test_other_settings_are_refused(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {max_drop: 0.1}"
    before = named(settings={"pavpu": {"window": 8, "threshold": "mean", "threshold_from": None}})
    with pytest.raises(UsageError, match=r"window is 4 in this report and 8 in city\.json"):
        verdicts(tmp_path, text, baseline=[before])
    with pytest.raises(UsageError, match="ignore_index is 255 in this report and 0"):
        verdicts(tmp_path, text, baseline=[named(inputs={"ignore_index": 0})])
    scaled = named(inputs={"ignore_index": 255, "options": {"median_scaling": True}})
    with pytest.raises(UsageError, match=r"median-scaling is True in this report and False in"):
        verdicts(tmp_path, text, scaled, baseline=[named()])


def test_notes_on_a_fitted_threshold(tmp_path: Path) -> None:
    """Only defined values that depend on the threshold have one."""

    def notes(address: str, **values: Any) -> tuple[str, ...]:
        own = named()
        own.report.results["pavpu"] |= {"window": 4, "p_accurate": 0.9} | values
        return only(tmp_path, f"{address}: {{min: 0, undefined: pass}}", own).notes

    assert "the threshold (mean) was fitted" in notes("pavpu.pavpu")[0]
    assert not notes("pavpu.window") and not notes("pavpu.p_accurate")
    assert not notes("pavpu.pavpu", pavpu=None, pavpu_reason="no patch")


def test_thresholds_of_other_reports(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {max_drop: 0.1}"

    def taken(threshold: float) -> Named:
        rule = {"window": 4, "threshold": repr(threshold), "threshold_from": "main.json"}
        return with_threshold(threshold, rule)

    def with_threshold(threshold: float, rule: dict[str, Any]) -> Named:
        own = named()
        own.report.settings["pavpu"] = rule
        own.report.results["pavpu"]["uncertainty_threshold"] = threshold
        return own

    mean = with_threshold(0.3, named().report.settings["pavpu"])
    # A threshold taken from the baseline is the same threshold.
    same = only(tmp_path, text, taken(0.3), baseline=[mean])
    assert same.status == "pass" and not same.notes
    with pytest.raises(UsageError, match=r"threshold is '1 \(from main.json\)' in this report"):
        verdicts(tmp_path, text, taken(1.0), baseline=[mean])
    (note,) = only(tmp_path, text, taken(1.0), baseline=[taken(0.3)]).notes
    assert note.startswith("the threshold is 1 in this report and 0.3 in the baseline")


def test_folders_are_matched_by_name(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {max_drop: 0.1}"
    now, before = (named("a", 0.8), named("b", 0.8)), [named("b", 0.99), named("a", 0.81)]
    found = verdicts(tmp_path, text, *now, baseline=before)
    assert [(v.address.store, v.status) for v in found] == [("a", "pass"), ("b", "fail")]
    half = judge(now, rules(tmp_path, text), [*before[1:], named("c")])
    assert [str(own.address) for own in half.verdicts] == ["a/pavpu.pavpu"]
    assert [own.why for own in half.not_evaluated] == ["the baseline has no report 'b'."]
    with pytest.raises(UsageError, match="the reports are a, b, the baselines c"):
        verdicts(tmp_path, text, *now, baseline=[named("c")])
    with pytest.raises(UsageError, match="needs a baseline; give --baseline"):
        verdicts(tmp_path, text, *now)


def test_the_baseline_lacks_the_value(tmp_path: Path) -> None:
    before = [named(results={"pavpu": {"phi": 0.1}})]
    with pytest.raises(UsageError, match=r"city.json has no such value: there is no field"):
        verdicts(tmp_path, "pavpu.pavpu: {max_drop: 0.1}", baseline=before)


def test_what_moved_a_value(tmp_path: Path) -> None:
    known = Known(Interval(0.9, 0, 1))
    found = only(tmp_path, "pavpu.pavpu: {min: 0.9}", resampler=known)
    assert [(m.name, m.influence) for m in found.items] == [("c", -0.2)]
    assert [m.name for m in found.classes] == ["traffic.light", "mixed", "road"]
    found = only(tmp_path, "pavpu.pavpu: {max: 0.5}", resampler=known)
    assert [m.influence for m in found.items] == [0.2]  # high values are the harmful ones
    assert only(tmp_path, "pavpu.pavpu: {max: 0.5}").items == ()  # nothing without states


def test_what_moved_a_change(tmp_path: Path) -> None:
    """The items whose change moves it most, which are not those of the value."""
    known, base = Known(Interval(0.9, 0, 1)), named("old", value=0.99)
    found = only(tmp_path, "pavpu.pavpu: {max_drop: 0.1}", baseline=[base], resampler=known)
    assert (found.status, [mover.name for mover in found.items]) == ("fail", ["c"])
    only(tmp_path, "pavpu.pavpu: {min: 0.9}", resampler=known)
    assert known.moved == [(named().path, base.path), (named().path, None)]


def test_a_baseline_needs_a_rule_on_a_change(tmp_path: Path) -> None:
    """Another limit of the same rule does not hide that of a change."""
    only_value, both = ("pavpu.pavpu: {min: 0.5}", "pavpu.pavpu: {min: 0.5, max_drop: 0.1}")
    says = "--baseline has no effect: no rule limits a change"
    refused(lambda: refuse_unused_baseline(rules(tmp_path, only_value)), says)
    refuse_unused_baseline(rules(tmp_path, both))


def test_an_identical_model_has_no_note_on_few_units(tmp_path: Path) -> None:
    """Its change is 0 whatever the number of units."""
    text, units = "pavpu.pavpu: {max_drop: 0.1, confidence: 0.9}", Units("item", 3, 3)
    for method, notes in ((IDENTICAL, 0), ("jackknife-t", 1)):
        known = Known(Interval(0.9, 0, 0), Interval(0.9, 0, 0, method=method, units=units))
        found = only(tmp_path, text, baseline=[named("old")], resampler=known)
        of_few = [note for note in found.notes if "the interval comes from" in note]
        assert found.status == "pass" and len(of_few) == notes


def test_partial_reports_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is partial"):
        verdicts(tmp_path, "pavpu.pavpu: {min: 0}", named(partial=True))
    with pytest.raises(StoreError, match="is partial"):
        verdicts(tmp_path, "pavpu.pavpu: {min: 0}", baseline=[named(partial=True)])
    for inputs, says in (
        ({"part": {"number": 2, "of": 3}}, "is shard 2 of 3: not all items were evaluated."),
        ({"missing_parts": [2]}, "was merged from shards, and some are missing."),
    ):
        own = named(partial=True, inputs=inputs)
        with pytest.raises(StoreError, match=f"{says} The gate needs all shards"):
            verdicts(tmp_path, "pavpu.pavpu: {min: 0}", own)


def test_no_rules_judge_nothing() -> None:
    with pytest.raises(UsageError, match="no rules"):
        judge([named()], [])


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400])
def test_numbers_that_no_report_may_hold(tmp_path: Path, value: float) -> None:
    with pytest.raises(StoreError, match="not a number that a report may hold"):
        verdicts(tmp_path, "pavpu.pavpu: {min: 0}", named(value=value))


def test_values_of_items_that_are_no_numbers_move_nothing(tmp_path: Path) -> None:
    strange = [{"name": "a", "pavpu": {"pavpu": math.inf}}, {"name": "b", "pavpu": [1]}]
    strange.append({"name": "c"})
    assert only(tmp_path, "pavpu.pavpu: {min: 1}", named(items=strange)).items == ()


def test_damaged_slices(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no results"):
        verdicts(tmp_path, "pavpu.pavpu@a=b: {min: 0}", named(slices={"a=b": {}}))


def test_damaged_intervals(tmp_path: Path) -> None:
    text = "pavpu.pavpu: {min: 0, confidence: 0.95}"
    upside = {"pavpu.pavpu": {"level": 0.95, "low": 0.9, "high": 0.1}}
    with pytest.raises(StoreError, match="is not an interval"):
        verdicts(tmp_path, text, named(intervals=upside))
    for record in ({}, {"level": 0.95, "low": None, "high": 1}):
        with pytest.raises(UsageError, match="has no interval"):
            verdicts(tmp_path, text, named(intervals={"pavpu.pavpu": record}))


def test_a_report_with_the_metric_but_not_the_slice_is_not_passed_over(tmp_path: Path) -> None:
    town = named("town", slices={})
    found = judge([named(), town], rules(tmp_path, "pavpu.pavpu@weather=night: {min: 0}"))
    assert [str(own.address) for own in found.verdicts] == ["city/pavpu.pavpu@weather=night"]
    (lost,) = found.not_evaluated
    assert str(lost.address) == "town/pavpu.pavpu@weather=night" and not found.passed
    assert lost.why.startswith("town has the metric, but there is no slice")
    # One without the metric is none of the rule's.
    assert (
        only(
            tmp_path,
            "pavpu.pavpu@weather=night: {min: 0}",
            named(),
            named("depth", results={}, slices={}),
        ).value
        == 0.5
    )


def test_slices_of_other_items_are_no_pairs(tmp_path: Path) -> None:
    def night(*names: str) -> dict[str, Any]:
        record = {"pavpu": {"pavpu": 0.5}}
        return {"weather=night": {"items": 1, "names": list(names), "results": record}}

    rule = "pavpu.pavpu@weather=night: {max_drop: 0.1%s}"
    mine, base = named(slices=night("a")), named(slices=night("b"))
    found = only(tmp_path, rule % "", mine, baseline=(base,))
    assert found.status == "pass" and "slice of the baseline has other items" in found.notes[0]
    with pytest.raises(UsageError, match="slice of the baseline has other items"):
        only(
            tmp_path,
            rule % ", confidence: 0.9",
            mine,
            baseline=(base,),
            resampler=Known(Interval(0.9, 0, 0)),
        )
    known, same = Known(Interval(0.9, 0, 0), Interval(0.9, 0, 0.05)), named(slices=night("a"))
    text = rule % ", confidence: 0.9"
    assert only(tmp_path, text, mine, baseline=(same,), resampler=known).status == "pass"


@pytest.mark.parametrize("named_first", [True, False])
def test_classes_of_a_baseline_without_names_are_matched_by_number(
    tmp_path: Path, named_first: bool
) -> None:
    names = ["sky", "road", "car"]
    paths = [
        save(tmp_path / "a.json", 1, 1.6, class_names=names),
        save(tmp_path / "b.json", 0, 1.0),
        save(tmp_path / "c.json", 0, 1.0, class_names=names),
    ]
    now, before, same = (Named.load(path) for path in paths)
    if not named_first:
        now, before, same = before, now, Named.load(save(tmp_path / "d.json", 1, 1.6))
    limit = "per_class.1.ece: {max_rise: 0.05, confidence: 0.9}"
    texts = [f"calibration.{limit}", "segmentation.per_class.1.iou: {max_drop: 0.5}"]
    demanded = rules(tmp_path, "\n".join(texts))
    found, expected = (
        judge([now], demanded, [base], resampler=resampler()).verdicts for base in (before, same)
    )
    assert [own.interval for own in found] == [own.interval for own in expected]
    assert found[0].interval is not None
    for own, other in zip(found, expected, strict=True):
        assert (own.status, own.baseline) == (other.status, other.baseline)


_SHARE = {"range": [0.0, 1.0], "direction": "higher"}
_ERROR = {"range": [0.0, 1.0], "direction": "lower"}
_LOSS = {"range": [0.0, None], "direction": "lower"}
_SCORE = {"range": [-1.0, 1.0], "direction": "higher"}
_UNKNOWN: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("limits", "metric", "says"),
    [
        ("max: 2", _ERROR, "max: 2 cannot fail: values of pavpu.pavpu are from 0 to 1. For 2 %, "
         "write max: 0.02."),
        ("max: 20", _ERROR, "write max: 0.2."), ("min: 78", _SHARE, "write min: 0.78."),
        ("min: 78", _SHARE, "min: 78 cannot hold"), ("max: 1", _ERROR, "write max: 0.01."),
        ("min: 0", _SHARE, "min: 0 cannot fail"), ("min: -1", _SHARE, "min: -1 cannot fail"),
        ("max: -0.1", _ERROR, "cannot hold"), ("min: 200", _SHARE, "Give a limit that some"),
        ("min: 0", _LOSS, "values of pavpu.pavpu are at least 0. Give"),
        ("min: 0, max: 1", _SHARE, "min: 0 cannot fail"),
        ("min: 0, max: 1.5", _SHARE, "cannot fail"), ("min: 7", _SCORE, "write min: 0.07."),
        ("max_drop: 1", _SHARE, "max_drop: 1 cannot fail: values of pavpu.pavpu are from 0 to 1, "
         "and change by at most 1. For 1 %, write max_drop: 0.01."),
        ("max_drop: -1.5", _SHARE, "max_drop: -1.5 cannot hold"),
        ("max_drop_relative: 5", _SHARE, "write max_drop_relative: 0.05."),
        ("max_drop: 0.01", _ERROR, "lower values of pavpu.pavpu are better. Write max_rise: 0.01;"),
        ("max_rise_relative: 0.1, max: 0.5", _SHARE, "Write max_drop_relative: 0.1;"),
    ],
)  # fmt: skip
def test_a_limit_that_cannot_fail_or_hold_is_refused(
    tmp_path: Path, limits: str, metric: dict[str, Any], says: str
) -> None:
    for address in ("pavpu.pavpu", "pavpu.per_class.road.pavpu", "pavpu.pavpu@weather=night"):
        now = named(metrics={"pavpu.pavpu": metric})
        with pytest.raises(UsageError) as caught:
            verdicts(tmp_path, f"'{address}': {{{limits}}}", now, baseline=[now])
        assert says.replace("pavpu.pavpu", address) in str(caught.value)
        # Reports of earlier versions do not have ranges.
        earlier = named(metrics=_UNKNOWN)
        assert verdicts(tmp_path, f"'{address}': {{{limits}}}", earlier, baseline=[named()])


@pytest.mark.parametrize(
    ("limits", "metric"),
    [
        ("min: 0, max: 0.9", _ERROR), ("min: 0.1, max: 1", _SHARE), ("max: 0", _ERROR),
        ("min: 1", _SHARE), ("max: 3", _LOSS), ("max_drop: 0.1, max_rise: 0.1", _ERROR),
        ("max_rise: 2", _LOSS), ("max_drop: -0.9", _SHARE), ("max_rise_relative: 5", _LOSS),
        ("min: 0", _SCORE), ("max_drop_relative: 5", _SCORE), ("min: -9, max_rise: 9", _UNKNOWN),
        ("min: 0.5", {"range": [0.0, 1.0], "direction": None}),
    ],
)  # fmt: skip
def test_limits_that_some_values_break(tmp_path: Path, limits: str, metric: dict[str, Any]) -> None:
    now = named(metrics={"pavpu.pavpu": metric})
    for verdict in verdicts(tmp_path, f"pavpu.pavpu: {{{limits}}}", now, baseline=[now]):
        assert not any("values are better" in note for note in verdict.notes)


def test_a_limit_against_the_direction_has_a_note(tmp_path: Path) -> None:
    note = "lower values are better, so this limit passes the worst ones; use max to limit these"
    now = named(metrics={"pavpu.pavpu": _ERROR})
    for limits in ("min: 0.5", "min: 0.9", "min: 0.5, max: 1", "min: 0.5, max_rise: 0.1"):
        found = verdicts(tmp_path, f"pavpu.pavpu: {{{limits}}}", now, baseline=[now])
        assert found[0].notes[0] == note and found[0].kind == "min"
    now = named(metrics={"pavpu.pavpu": _SHARE})
    found = verdicts(tmp_path, "pavpu.pavpu: {max: 0.9}", now)
    assert "use min to limit" in found[0].notes[0] and found[0].status == "pass"


def test_a_negative_limit_of_a_change_has_a_note(tmp_path: Path) -> None:
    now = named(metrics={"pavpu.pavpu": _SHARE})
    for limit, demanded, allowed in (
        ("max_drop: -0.01", "rises", "a fall, write max_drop: 0.01"),
        ("max_rise: -0.02, max_drop: 0.5", "falls", "a rise, write max_rise: 0.02"),
    ):
        found = verdicts(tmp_path, f"pavpu.pavpu: {{{limit}}}", now, baseline=[now])
        notes = [note for verdict in found for note in verdict.notes if "demands" in note]
        kind = limit.partition(",")[0]
        assert notes == [f"{kind} demands that the value {demanded}; to allow {allowed}"]
    for limit in (0.01, 0):
        found = verdicts(tmp_path, f"pavpu.pavpu: {{max_drop: {limit}}}", now, baseline=[now])
        assert not any("demands" in note for note in found[0].notes)


def test_a_baseline_without_a_report_is_named(tmp_path: Path) -> None:
    """As the folder of a run that lost a store; the reverse is a rule that cannot be judged."""
    text = "pavpu.pavpu: {max_drop: 0.5}"
    before = [named(name, 0.81) for name in ("city", "fog", "my night")]

    def warnings(*reports: Named, **options: Any) -> tuple[str, ...]:
        return judge(reports, rules(tmp_path, text), before, **options).warnings

    (warning,) = warnings(named())
    assert warning == (
        "the baseline has fog, my night, of which there is no report to judge, so no rule judges "
        "them. Evaluate them, or remove them from the baseline: rm fog.json 'my night.json'"
    )
    assert warnings(named(), named("fog"), named("my night")) == ()
    failed = {"my night": FailedStore("no", frozenset())}
    assert warnings(named(), named("fog"), failed_stores=failed) == ()


@pytest.mark.parametrize(("limits", "debiased", "status", "notes"), [
    ("min: 0.41", 0.4, "pass", 1), ("min: 0.3", 0.4, "pass", 0), ("min: 0.3", 0.4205, "pass", 0),
    ("max: 0.41", 0.4, "fail", 1), ("max: 0.3", 0.4, "fail", 0), ("max: 0.5", 0.4, "pass", 0),
    ("max_rise: 0.05", 0.25, "fail", 1), ("max_rise: 0.05", 0.3, "fail", 0),
    ("max_rise_relative: 0.3", 0.4, "pass", 1), ("max_rise: 0.15", 0.4205, "pass", 1),
])  # fmt: skip
def test_a_value_biased_upward_has_a_note_where_the_bias_can_decide(
    tmp_path: Path, limits: str, debiased: float, status: str, notes: int
) -> None:
    """It can if the debiased value, or its change, is on the other side of the limit."""
    own = named(results={"calibration": {"ece": 0.4204, "ece_debiased": debiased}})
    before = named(results={"calibration": {"ece": 0.35, "ece_debiased": 0.22}})
    baseline = (before,) if "rise" in limits else ()
    found = only(tmp_path, f"calibration.ece: {{{limits}}}", own, baseline=baseline)
    assert found.status == status
    assert sum("biased upward" in note for note in found.notes) == notes
    if notes:
        of_baseline = " (0.22 in the baseline)" if baseline else ""
        other = "fail" if status == "pass" else "pass"
        text = f"calibration.ece_debiased is {debiased}{of_baseline} and would {other}"
        assert found.notes[-1].endswith(text)


def test_intervals_are_corrected_for_the_bias_so_their_verdicts_have_no_note(
    tmp_path: Path,
) -> None:
    own = named(results={"calibration": {"ece": 0.4204, "ece_debiased": 0.4}})
    text, known = "calibration.ece: {max: 0.41, confidence: 0.95}", Known(Interval(0.9, 0.38, 0.44))
    found = only(tmp_path, text, own, resampler=known)
    assert found.status == "inconclusive"
    assert not any("biased" in note for note in found.notes)


def test_a_baseline_without_a_debiased_value_gives_no_note_on_bias(tmp_path: Path) -> None:
    own = named(results={"calibration": {"ece": 0.4204, "ece_debiased": 0.1}})
    before = named(results={"calibration": {"ece": 0.35}})
    found = only(tmp_path, "calibration.ece: {max_rise: 0.05}", own, baseline=(before,))
    assert found.status == "fail" and not any("biased" in note for note in found.notes)


@pytest.mark.parametrize(
    ("version", "other", "differs"),
    [("0.1.0", "0.1.9", False), ("0.1.0", "0.2.0", True), ("1.2.0", "1.3.0", False),
     ("1.2", "2.0", True), ("0.1.0", "1.1.0", True), ("dev", "0.1.0", True), ("dev", "dev", False)],
)  # fmt: skip
def test_versions_whose_numbers_may_differ(
    tmp_path: Path, version: str, other: str, differs: bool
) -> None:
    reports = named(uqeval_version=version), named("base", uqeval_version=other)
    rule = rules(tmp_path, "pavpu.pavpu: {max_drop: 0.01}")
    found = judge(reports[:1], rule, reports[1:]).warnings
    versions = [text for text in found if "come from the versions" in text]
    assert (
        versions
        == [
            f"the reports are of uqeval {version} (city.json) and {other} (base.json), whose "
            "definitions may differ, so a difference may come from the versions. Evaluate all with "
            "one version: uqeval run PREDS LABELS -o DIR."
        ]
        * differs
    )
    two = [
        named(name, uqeval_version=own) for name, own in (("city", version), ("new", other))
    ]  # fmt: skip
    unmatched = judge(two, rule, [named(uqeval_version=version, value=0.81)]).warnings
    assert not any("come from the versions" in text for text in unmatched)
