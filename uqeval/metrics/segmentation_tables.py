"""How segmentation scores are shown."""

from __future__ import annotations

from uqeval.metrics._display import ClassBars, Display, Panel, ScoreTable

DISPLAY = Display(
    tables=(ScoreTable("Segmentation", ("pixel_accuracy", "mean_accuracy", "miou", "pixels")),),
    bars=ClassBars("Segmentation", (Panel("iou", "IoU"), Panel("accuracy", "accuracy"))),
    # They are evaluated beside another family, whose scores rank the items.
    ranks_items=False,
)
