"""Metrics: formulas over tallies, with unit, direction, range and reference."""

from uqeval.metrics import (
    calibration,
    divergence,
    failure,
    nmerci,
    pavpu,
    regression,
    segmentation,
    sparsification,
    temporal,
)
from uqeval.metrics._contract import Metric
from uqeval.metrics._display import ClassBars, Column, Display, Panel, Record, RowTable, ScoreTable
from uqeval.metrics._family import Family

#: The only list: what a run can evaluate, the report's columns, the gate's directions and the
#: documentation's table come from it.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        segmentation.FAMILY,
        pavpu.FAMILY,
        calibration.FAMILY,
        failure.FAMILY,
        sparsification.FAMILY,
        regression.FAMILY,
        nmerci.FAMILY,
        divergence.FAMILY,
        temporal.FAMILY,
    )
}
METRICS: tuple[Metric, ...] = tuple(m for family in FAMILIES.values() for m in family.metrics)

__all__ = [
    "FAMILIES", "METRICS", "ClassBars", "Column", "Display", "Family", "Metric", "Panel", "Record",
    "RowTable", "ScoreTable",
]  # fmt: skip
