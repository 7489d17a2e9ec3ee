"""Threads that score blocks of sets, and those of matrix products: one meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_runs import run, scoring
from threadpoolctl import ThreadpoolController

from uqeval.statistics.blocks import _libraries, _share, in_threads, one_blas_thread
from uqeval.statistics.weighting import Weighting


def threads() -> set[int]:
    """Threads of the libraries that were there at first; another test may load more."""
    return {own["num_threads"] for own in _libraries().info() if own["user_api"] == "blas"}


def test_the_last_to_leave_restores() -> None:
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("NumPy multiplies with one thread here")
        first, second = one_blas_thread(), one_blas_thread()
        with first:
            second.__enter__()
            assert threads() == {1}
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
        with pytest.raises(RuntimeError), one_blas_thread():
            raise RuntimeError
        assert threads() == {2}


def test_scores_of_sets_take_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = scoring(run(tmp_path, 3)[1])
    inside: list[set[int]] = []
    score = scores._columns

    def seen(*given: Any) -> Any:
        inside.append(threads())
        return score(*given)

    monkeypatch.setattr(scores, "_columns", seen)
    with ThreadpoolController().limit(limits=2, user_api="blas"):
        scores.table(Weighting(np.ones((2, 3), np.int64)), ["pavpu.pavpu"])
    assert inside == [{1}]


def test_jobs_within_jobs_share_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_share, "threads", 4)

    def within(job: int) -> list[tuple[int, int]]:
        return in_threads(lambda inner: (10 * job + inner, _share.threads), [1, 2])

    assert in_threads(within, [1, 2]) == [[(11, 1), (12, 1)], [(21, 1), (22, 1)]]
    assert in_threads(within, [1]) == [[(11, 2), (12, 2)]]
    assert _share.threads == 4
