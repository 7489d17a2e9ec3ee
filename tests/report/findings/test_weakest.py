"""Which slice, class or region is the weakest: compared with each other, by its errors first."""

from __future__ import annotations

from typing import Any

import pytest
from small_report import interval, report

from uqeval.report.findings import findings_of

Part = tuple[float, float, float]


def weakest(**changes: Any) -> str:
    """Return the sentence about the weakest part of a report; empty if there is none."""
    found = findings_of(report(**{"settings": {}} | changes))
    return "".join(f.text for f in found if f.title == "Weakest part")


def of_slices(field: str, whole: Part, **slices: Part) -> dict[str, Any]:
    """A score of the whole set and of slices by weather: value and interval."""

    def part(value: Part) -> dict[str, Any]:
        family, _, name = field.rpartition(".")
        return {"results": {family: {name: value[0]}}, "intervals": {field: interval(*value[1:])}}

    records = {f"weather={name}": part(value) | {"items": 20} for name, value in slices.items()}
    return part(whole) | {"slices": records}


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The scores of two reports with the same slices, in one."""
    parts = {
        name: {key: first["slices"][name][key] | record[key] for key in ("results", "intervals")}
        for name, record in second["slices"].items()
    }
    scores = {key: first[key] | second[key] for key in ("results", "intervals")}
    return scores | {"slices": parts}


RMSE = of_slices("regression.rmse", (2.4, 2.2, 2.6), clear=(1.65, 1.6, 1.7),
                 rain=(2.46, 2.4, 2.5), night=(3.61, 3.5, 3.7))  # fmt: skip


@pytest.mark.parametrize("field", ["sparsification.ause", "nmerci.nmerci"])
def test_a_score_of_ranks_does_not_name_the_weakest_slice(field: str) -> None:
    """All slices can be worse than the mixture, and the one of small errors the worst."""
    ranks = of_slices(field, (0.211, 0.205, 0.22), clear=(0.247, 0.24, 0.253),
                      rain=(0.243, 0.24, 0.246), night=(0.24, 0.238, 0.243))  # fmt: skip
    assert not weakest(**ranks)
    assert weakest(**both(ranks, RMSE)) == (
        "The weakest slice is weather=night: RMSE is 3.610 (95 % interval 3.500 to 3.700), the "
        "highest of 3 slices; the next is weather=rain with 2.460 (95 % interval 2.400 to 2.500)."
    )


def test_an_error_names_the_weakest_slice_before_other_scores() -> None:
    """The level of PAvPU follows from the mix of pixels."""
    pavpu = of_slices("pavpu.pavpu", (0.576, 0.553, 0.598), clear=(0.636, 0.6, 0.65),
                      rain=(0.55, 0.54, 0.56), night=(0.46, 0.42, 0.49))  # fmt: skip
    miou = of_slices("segmentation.miou", (0.88, 0.87, 0.89), clear=(0.92, 0.91, 0.93),
                     rain=(0.886, 0.867, 0.902), night=(0.779, 0.734, 0.825))  # fmt: skip
    ece = of_slices("calibration.ece", (0.08, 0.07, 0.09), clear=(0.2, 0.19, 0.21),
                    rain=(0.03, 0.02, 0.04), night=(0.04, 0.03, 0.05))  # fmt: skip
    auroc = of_slices("failure.auroc", (0.94, 0.93, 0.95), clear=(0.96, 0.955, 0.965),
                      rain=(0.8, 0.79, 0.81), night=(0.93, 0.92, 0.94))  # fmt: skip
    assert not weakest(**pavpu)
    all_scores = both(both(pavpu, auroc), both(ece, miou))
    assert "slice is weather=night: mIoU is 0.779" in weakest(**all_scores)
    two = both(both(pavpu, auroc), ece)
    assert "slice is weather=clear: ECE is 0.2" in weakest(**two)
    assert "slice is weather=rain: AUROC is 0.8" in weakest(**auroc)


def test_slices_are_compared_with_others_of_the_same_columns() -> None:
    """One drive of several is at night: it is not weaker than the other drives at night."""
    miou = of_slices("segmentation.miou", (0.88, 0.87, 0.89), clear=(0.9, 0.85, 0.95))
    (record,) = miou["slices"].values()
    low = {"results": {"segmentation": {"miou": 0.7}},
           "intervals": {"segmentation.miou": interval(0.68, 0.72)}}  # fmt: skip
    miou["slices"] = {"weather=night": record | low, "weather=clear": record}
    miou["slices"] |= {f"drive={k}": record | low for k in range(3)}
    text = weakest(**miou)
    assert "the lowest of 2 slices; the next is weather=clear with 0.900" in text
    miou["slices"] = {"night": record | low, "clear": record}  # from another program
    assert "the next is clear with 0.900" in weakest(**miou)
    miou["slices"] = {f"drive={k}": record | low for k in range(3)}
    assert not weakest(**miou)


def test_half_of_the_other_slices_are_better_than_the_weakest() -> None:
    """A slice is not weak because a single one is better than all others."""
    values = [0.7, 0.71, 0.72, 0.73, 0.95]
    parts = {f"w{i}": (v, v - 0.02, v + 0.02) for i, v in enumerate(values)}
    alike = weakest(**of_slices("segmentation.miou", (0.76, 0.75, 0.77), **parts))
    assert alike.startswith("No slice is clearly weaker than the others: ")
    parts["w0"] = (0.5, 0.48, 0.52)
    weak = weakest(**of_slices("segmentation.miou", (0.76, 0.75, 0.77), **parts))
    assert "; half of the others have at least 0.720 (95 %" in weak


def test_the_calibration_error_of_classes_does_not_name_the_weakest() -> None:
    """It rises with the number of pixels of a class."""
    rows = [{"class": i, "name": n, "ece": v} for i, (n, v) in enumerate(
        [("road", 0.2), ("pole", 0.001)])]  # fmt: skip
    assert not weakest(results={"calibration": {"ece": 0.1, "per_class": rows}})


@pytest.mark.parametrize(("field", "is_compared"), [("failure.auroc", False),
                                                    ("segmentation.miou", True)])  # fmt: skip
def test_a_rank_of_a_single_part_is_not_compared_with_the_whole_set(
    field: str, is_compared: bool
) -> None:
    alone = of_slices(field, (0.94, 0.93, 0.95), night=(0.9, 0.89, 0.91))
    assert bool(weakest(**alone)) == is_compared


def of_light(whole: Part, day: Part, night: Part, **changes: Any) -> dict[str, Any]:
    """The AUCE of 40 items and of those by day and by night, whose intervals are too wide and too
    narrow."""
    fields = of_slices("regression.auce", whole, day=day, night=night)
    names = [f"item{i:02}" for i in range(40)]
    for name, over, own in (("day", 0.0, names[:20]), ("night", 1.0, names[20:])):
        record = fields["slices"][f"weather={name}"]
        auce = record["results"]["regression"]["auce"]
        record["results"]["regression"] |= {
            "auce_over": over * auce, "auce_under": (1 - over) * auce, "coverage": {"90": 0.9},
        }  # fmt: skip
        record["names"] = own
    return {"items": [{"name": name} for name in names]} | fields | changes


WHOLE, DAY, NIGHT = (0.015, 0.01, 0.02), (0.092, 0.087, 0.097), (0.070, 0.066, 0.075)


def test_opposite_errors_of_slices_are_said() -> None:
    text = weakest(**of_light(WHOLE, DAY, NIGHT))
    assert text.endswith(
        "Opposite errors of the slices cancel in the whole set: AUCE is 0.015 there, and 0.092 in "
        "weather=day (most intervals are too wide) and 0.070 in weather=night (most intervals "
        "are too narrow). Judge the slices."
    )
    assert "The weakest slice is weather=day" in text


@pytest.mark.parametrize(("whole", "day", "night"), [
    (WHOLE, DAY, (0.070, 0.029, 0.11)),  # the interval of a slice includes twice the whole set
    (WHOLE, (0.092, 0.087, 0.097), (0.012, 0.01, 0.014)),  # one slice is as good
    ((0.004, 0.003, 0.005), (0.018, 0.017, 0.019), (0.015, 0.014, 0.017)),  # small errors
    ((0.015, 0.0, 0.08), DAY, NIGHT),  # the interval of the whole set is wide
])  # fmt: skip
def test_errors_that_may_not_cancel_are_not_said(whole: Part, day: Part, night: Part) -> None:
    assert "cancel" not in weakest(**of_light(whole, day, night))


def test_errors_cancel_only_if_the_slices_are_all_items_and_have_intervals() -> None:
    """Good items outside all slices make the whole set better too."""
    more = [{"name": f"item{i:02}"} for i in range(41)]
    assert "cancel" not in weakest(**of_light(WHOLE, DAY, NIGHT, items=more))
    without = of_light(WHOLE, DAY, NIGHT, intervals={})
    for record in without["slices"].values():
        record["intervals"] = {}
    assert "cancel" not in weakest(**without)
    few = of_light(WHOLE, DAY, NIGHT)
    few["slices"]["weather=night"]["small"] = "2 items"
    assert "cancel" not in weakest(**few)


def test_a_mean_score_of_all_slices_does_not_cancel() -> None:
    """The NLL of a whole set is between those of its slices; a table of them may be edited."""
    fields = of_slices("regression.nll", WHOLE, day=DAY, night=NIGHT)
    for record, own in zip(fields["slices"].values(), ("item0", "item1"), strict=True):
        record["names"] = [own]
    items = [{"name": "item0"}, {"name": "item1"}]
    assert "cancel" not in weakest(items=items, **fields)
