"""Plain loops for the units of the gate: movers, standard error, and the number of further
units.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run_uqeval
from scipy.stats import t as student
from small_stores import VOID, C

LEVEL, POWER = 0.95, 0.85


def verdict(report: Path, folder: Path, rule: str) -> dict[str, Any]:
    """The verdict of one rule through the executable; files go into `folder`."""
    (folder / "gate.yaml").write_text(rule)
    done = run_uqeval("gate", report, "gate.yaml", "-q", "-o", "v.json", cwd=folder)
    assert done.status in (0, 1), done.stderr
    found: dict[str, Any] = json.loads((folder / "v.json").read_text())["verdicts"][0]
    return found


def checked(found: dict[str, Any], n: int, score: Callable[[Sequence[int]], float],
            names: Sequence[str], units: Sequence[int], limit: float) -> None:  # fmt: skip
    """Movers, the standard error and the number of units against plain loops."""
    everything = list(range(len(names)))
    whole = score(everything)
    influence = {name: whole - score([j for j in everything if j != i])
                 for i, name in enumerate(names)}  # fmt: skip
    worst = sorted((v, name) for name, v in influence.items() if v < -1e-12)[:5]
    assert [own["name"] for own in found["items"]] == [name for _, name in worst]
    assert [own["influence"] for own in found["items"]] == pytest.approx([v for v, _ in worst])
    left = [score([i for i in everything if units[i] != g]) for g in sorted(set(units))]
    count = len(left)
    if count < len(names) and found["units"]["name"] == "group":
        effects = sorted((whole - own, str(g)) for g, own in enumerate(left) if whole < own)
        assert [own["name"] for own in found["groups"]] == [name for _, name in effects]
        moved = [own["influence"] for own in found["groups"]]
        assert moved == pytest.approx([effect for effect, _ in effects]) and effects
    else:
        assert found["groups"] == []
    error = math.sqrt((count - 1) / count * float(np.square(np.array(left) - np.mean(left)).sum()))
    assert found["interval"]["error"] == pytest.approx(error)
    t, of_power = (student.ppf(p, count - 1) for p in ((1 + LEVEL) / 2, POWER))
    skew = max(abs(whole - found["interval"]["low" if limit < whole else "high"]) - t * error, 0)

    def distance(times: float) -> float:
        """How far `times`·n units reach."""
        reach: float = (t + of_power) * error / math.sqrt(times) + skew / times
        return reach

    assert found["status"] == "inconclusive"
    units_needed = n + found["more_units"]["count"]
    assert distance(units_needed / n) <= abs(whole - limit) < distance((units_needed - 1) / n)


def miou(truth: np.ndarray, samples: np.ndarray) -> Callable[[Sequence[int]], float]:
    """Return mIoU over items, of labels [item, y, x] and samples [item, sample, class, y, x]."""
    predicted = samples.astype(np.float64).mean(axis=1).argmax(axis=1)
    each = []
    for own, ids in zip(truth, predicted, strict=True):
        kept = own != VOID
        pairs = own[kept].astype(int) * C + ids[kept]
        each.append(np.bincount(pairs, minlength=C * C).reshape(C, C))

    def score(items: Sequence[int]) -> float:
        matrix = np.sum([each[i] for i in items], axis=0)
        union = matrix.sum(axis=0) + matrix.sum(axis=1) - np.diag(matrix)
        return float((np.diag(matrix)[union > 0] / union[union > 0]).mean())

    return score
