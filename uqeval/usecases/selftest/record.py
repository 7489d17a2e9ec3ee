"""Results of a self-test, as a table and JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from uqeval.arrays import np
from uqeval.disk.files import json_text
from uqeval.usecases.verify.comparing import distance

SCHEMA = "uqeval.selftest/1"


@dataclass(frozen=True)
class Check:
    """One check: whether the answer is as expected, and details; `values`: how many it compared."""

    group: str
    name: str
    passed: bool
    values: int = 1
    detail: str = ""


@dataclass
class Selftest:
    """All checks, with the versions of the checked packages."""

    checks: list[Check] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    platform: dict[str, Any] = field(default_factory=dict)
    finished: str = ""
    seconds: float = 0.0
    seconds_by_group: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Return whether all checks pass."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    def groups(self) -> Iterator[tuple[str, list[Check]]]:
        """Yield the checks by group."""
        for group in dict.fromkeys(check.group for check in self.checks):
            yield group, [check for check in self.checks if check.group == group]

    def to_json(self) -> str:
        """Return the record as strict JSON."""
        record = {
            "schema": SCHEMA,
            "result": "PASSED" if self.passed else "FAILED",
            "uqeval_version": self.versions.get("uqeval"),
            "versions": self.versions,
            "platform": self.platform,
            "finished": self.finished,
            "seconds": self.seconds,
            "groups": {
                group: {
                    "checks": len(checks), "failed": sum(not check.passed for check in checks),
                    "values": sum(check.values for check in checks),
                    "seconds": self.seconds_by_group.get(group),
                }
                for group, checks in self.groups()
            },
            "checks": [asdict(check) for check in self.checks],
        }  # fmt: skip
        return json_text(record)


class Checks:
    """Collects the checks of one group; an exception is a failed check."""

    def __init__(self, group: str) -> None:
        self.group = group
        self.found: list[Check] = []

    def add(self, name: str, passed: bool, detail: str = "", values: int = 1) -> None:
        """Record one check."""
        self.found.append(Check(self.group, name, bool(passed), values, "" if passed else detail))

    def same(self, name: str, computed: Any, expected: Any, tolerance: float = 0.0) -> None:
        """Record whether numbers, or arrays, are equal within absolute and relative bounds."""
        computed_values = np.atleast_1d(np.asarray(computed, dtype=object)).ravel().tolist()
        expected_values = np.atleast_1d(np.asarray(expected, dtype=object)).ravel().tolist()
        bad = (
            []
            if len(computed_values) == len(expected_values)
            else [f"{len(computed_values)} values"]
        )
        for a, b in zip(computed_values, expected_values, strict=False):
            limit = tolerance * max(1.0, abs(b) if isinstance(b, int | float) else 1.0)
            difference = 0.0 if a != a and b != b else distance(a, b)
            if math.isnan(difference) or difference > limit:
                bad.append(f"found {a!r}, expected {b!r}")
        detail = "; ".join(bad[:3]) + (f"; {len(bad)} values differ" if len(bad) > 3 else "")
        self.add(name, not bad, detail, len(expected_values))

    def run(self, name: str, work: Callable[[], None]) -> None:
        """Call a function that adds checks; an exception is a failed check."""
        try:
            work()
        except Exception as error:  # any error of a library is what a self-test reports
            self.add(name, False, f"{type(error).__name__}: {error}")
