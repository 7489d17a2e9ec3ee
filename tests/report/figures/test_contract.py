"""The lines of figures: labels and colours."""

from __future__ import annotations

import copy

from family_reports import of_classes

from uqeval.report.figures.contract import lines_of


def test_a_report_has_one_colour_in_the_figures_of_all_families() -> None:
    """Also in those of a family that an earlier report lacks; variants have colours of their own,
    which no other line of the family has."""
    both = of_classes(family="calibration")
    first, second, third = (copy.deepcopy(both) for _ in range(3))
    del first.results["calibration"]
    second.results["calibration[clip=0.1]"] = second.results["calibration"]
    lines = lines_of({"a": first, "b": second, "c": third})
    colour = {line.label: line.colour for line in lines["segmentation"]}
    assert len(set(colour.values())) == 3
    in_calibration = {line.label: line.colour for line in lines["calibration"]}
    assert in_calibration["c"] == colour["c"]
    own, variant = (text for label, text in in_calibration.items() if label.startswith("b"))
    assert own == colour["b"] and variant not in colour.values()
