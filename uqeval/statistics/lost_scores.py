"""Scores that saved states do not give: null, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from uqeval.records.scalars import BESIDE


def put_lost(results: dict[str, Any], of_run: Mapping[str, Any], reason: str) -> list[str]:
    """Add null and the reason for each field that a run has and `results` lacks, also in rows of
    classes; return their names.
    """
    lost = [name for name in of_run if name not in results and not name.endswith(BESIDE)]
    for name in lost:
        results |= {name: None, f"{name}_reason": reason}
    of_classes: dict[str, None] = {}
    rows = results.get("per_class") or []
    for row, class_record in zip(rows, of_run.get("per_class") or [], strict=False):
        names = put_lost(row, class_record, reason)
        of_classes |= dict.fromkeys(f"{name} of classes" for name in names)
    return [*lost, *of_classes]
