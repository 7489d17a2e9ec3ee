"""Commands of the tests that run in forks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from command import run_forked
from forked import NOTHING_DRAWN
from saved_runs import stack


def test_pages_of_forks_have_no_figures(tmp_path: Path) -> None:
    probs, labels = stack(2)
    np.savez(tmp_path / "s.npz", probs=probs, labels=labels)
    outcome = run_forked("run", "s.npz", "-o", "out", cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    page = (tmp_path / "out" / "s.html").read_text()
    assert page.count(NOTHING_DRAWN) == page.count('<figure id="figure-') > 0
