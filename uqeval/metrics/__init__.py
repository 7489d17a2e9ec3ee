"""What is concluded: formulas over tallies, with unit, direction, range and reference."""

from uqeval.metrics import patch_scores, segmentation
from uqeval.metrics._contract import Metric

#: The only list of metrics: the report's columns, the gate's directions and the documentation's
#: table come from it.
METRICS: tuple[Metric, ...] = (*segmentation.METRICS, *patch_scores.METRICS)

__all__ = ["METRICS", "Metric"]
