"""A report in a notebook."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import uqeval
from uqeval.errors import StoreError
from uqeval.report.markdown import to_markdown


def test_the_table_of_a_notebook() -> None:
    generator = np.random.default_rng(0)
    probs = generator.dirichlet(np.ones(2), (6, 8, 8)).transpose(0, 3, 1, 2).astype(np.float32)
    labels = generator.integers(0, 2, (6, 8, 8))
    names = ["<script>alert(1)</script>", *"abcde"]
    report = uqeval.evaluate(
        probs, labels, {"pavpu": {"threshold": [0.3, 0.4]}, "failure": {}}, ci=0.9, names=names,
        region="box:0:0.5,0:1",
    )  # fmt: skip
    html = report._repr_html_()
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    cells = {(row[0], row[1]): row[2:] for row in rows if row}
    interval = report.intervals["failure.auroc"]
    assert cells["failure", "AUROC ↑"][:2] == [
        f"{report.results['failure']['auroc']:.4f}",
        f"{interval['low']:.4f} to {interval['high']:.4f} (90 %)",
    ]
    of_region = report.intervals['failure@"box:0:0.5,0:1".auroc']
    assert cells["failure@box:0:0.5,0:1", "AUROC ↑"][1].startswith(f"{of_region['low']:.4f} to ")
    assert ("pavpu[0.3]", "PAvPU ↑") in cells or len({row[0] for row in rows if row}) >= 4
    assert "<script>" not in html and "6 items" in html


FORGERIES: list[tuple[tuple[str, ...], Any]] = [
    (("results", "pavpu"), 3),
    (("results", "pavpu", "per_class"), 3),
    (("results", "pavpu", "curve"), [1]),
    (("results", "pavpu", "pavpu"), "x"),
    (("results", "segmentation", "per_class"), [[]]),
    (("metrics", "pavpu.pavpu"), []),
    (("intervals", "pavpu.pavpu"), {"low": "x"}),
    (("intervals", "pavpu.pavpu"), 3),
    (("inputs", "predictions"), 3),
    (("inputs", "predictions"), [3]),
    (("items",), [3]),
    (("slices",), {"a=b": 3}),
    (("warnings",), [3]),
]


@pytest.mark.parametrize(("place", "value"), FORGERIES)
def test_a_forged_report_is_no_traceback(place: tuple[str, ...], value: Any) -> None:
    """Each view of a report in Python gives a text or a documented error."""
    probs = np.random.default_rng(0).dirichlet(np.ones(3), (6, 4, 4)).transpose(0, 3, 1, 2)
    report = uqeval.evaluate(probs, np.zeros((6, 4, 4), int), "pavpu", ci=0.9)
    record = report.record()
    *path, last = place
    for key in path:
        record = record[key]
    if len(place) == 1:
        setattr(report, last, value)
    else:
        record[last] = value
    assert isinstance(repr(report), str)
    assert isinstance(report._repr_html_(), str)
    for view in (lambda: to_markdown(report), report.to_frame, report.scalars):
        try:
            view()
        except StoreError as error:
            assert "the report: the content is not as uqeval writes it" in str(error)


def test_undefined_scores_give_the_reason() -> None:
    probs = np.full((2, 2, 4, 4), 0.5, np.float32)
    probs[:, 0] = 0.9
    probs[:, 1] = 0.1
    report = uqeval.evaluate(probs, np.zeros((2, 4, 4), int), "failure")
    assert report.results["failure"]["auroc"] is None
    reason = report.results["failure"]["auroc_reason"]
    cells = f"<td style='text-align:right'>undefined</td><td style='text-align:left'>{reason}</td>"
    assert cells in report._repr_html_()
    assert "interval</th>" not in report._repr_html_()
