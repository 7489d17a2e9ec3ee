"""The lines with the facts of a report: its data and the work that it took."""

from __future__ import annotations

import numpy as np
from small_report import report

import uqeval
from uqeval.report.page.html import to_html
from uqeval.report.page.overview import cost


def test_the_predictions_of_a_pixel_are_in_words() -> None:
    for samples, words in ((1, ", one prediction per pixel"), (6, ", 6 samples per pixel")):
        assert words in to_html({"r": report(inputs={"samples": samples})})
    assert "per pixel, uqeval" not in to_html({"r": report(inputs={})})


def test_the_cost_names_saved_states_only_if_items_are_reused() -> None:
    timing = report().timing | {"seconds": 1.0, "bytes_read": 0}
    for reused, words in ((0, "1.0 s"), (2, "1.0 s, all from saved states")):
        own = report(timing=timing | {"items_reused": reused})
        assert cost(own) == f"{len(own.items)} items, {words}"


def test_predicted_ids_count_as_read() -> None:
    ids = np.random.default_rng(1).integers(0, 3, (2, 5, 6)).astype("u1")
    own = uqeval.evaluate({"predictions": ids}, ids, "segmentation", classes=3)
    assert own.timing["bytes_read"] == ids.nbytes and cost(own).endswith("60 B read")
