"""Results of a verification, as sentences and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from uqeval.disk.files import json_text
from uqeval.usecases.verify.comparing import Difference

SCHEMA = "uqeval.verification/1"
#: Differences that are listed; all are counted.
_LISTED = 20


@dataclass(frozen=True)
class Checked:
    """One comparison with the report: `same`, and a sentence about it."""

    what: str
    same: bool
    text: str


@dataclass
class Verification:
    """Whether a report follows from the predictions, and which values were checked."""

    report: str
    report_sha256: str
    uqeval_version: str
    seed: int
    items: list[str] = field(default_factory=list)
    items_of_report: int = 0
    stores: list[dict[str, Any]] = field(default_factory=list)
    checks: list[Checked] = field(default_factory=list)
    compared: dict[str, int] = field(default_factory=dict)
    largest: float = 0.0
    differences: list[Difference] = field(default_factory=list)
    fields: dict[str, list[str]] = field(default_factory=dict)
    not_verified: list[str] = field(default_factory=list)
    #: By key of results, or `KEY of the set`, why its scores were not recomputed.
    not_recomputed: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    finished: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Return whether all compared values equal those of the report."""
        return not self.differences and all(check.same for check in self.checks)

    def verified(self) -> list[str]:
        """Return sentences on the compared values."""
        texts = [check.text for check in self.checks if check.same]
        sentences = {
            "items": f"values of {len(self.items)} of {self.items_of_report} items were recomputed "
            f"from the predictions in plain NumPy; {self._agree()}",
            "set": "values of the whole set were recomputed as well.",
            "intervals": "ends of intervals and debiased values were recomputed from counts of the "
            "items, with draws of the same seed.",
            "units": "levels and units of intervals follow from the settings and the items.",
            "records": "values of metrics, inputs and repeated settings were compared with this "
            "version, the stores and the settings.",
            "slices": "values of slices were recomputed as well.",
        }
        for name, sentence in sentences.items():
            if count := self.compared.get(name):
                texts.append(f"{count:,} {sentence}")
        return texts

    def _agree(self) -> str:
        if self.differences:
            return f"{len(self.differences)} of all compared values differ."
        return f"all agree (largest relative difference {self.largest:.1e})."

    def conclusion(self) -> str:
        """Return the result in one sentence, which names the keys that were not recomputed."""
        if not self.passed:
            return "not verified"
        if not self.not_recomputed:
            return "all compared values follow from the predictions"
        keys = "; ".join(f"{key} ({reason})" for key, reason in self.not_recomputed.items())
        return f"all compared values follow from the predictions, but not recomputed: {keys}"

    def problems(self) -> list[str]:
        """Return the differences from the report, in sentences."""
        texts = [check.text for check in self.checks if not check.same]
        texts += [f"{difference}." for difference in self.differences[:_LISTED]]
        if len(self.differences) > _LISTED:
            texts.append(f"{len(self.differences) - _LISTED} more values differ.")
        return texts

    def to_json(self) -> str:
        """Return the record as strict JSON."""
        record: Mapping[str, Any] = {
            "schema": SCHEMA,
            "result": "PASSED" if self.passed else "FAILED",
            "uqeval_version": self.uqeval_version,
            "report": {"path": self.report, "sha256": self.report_sha256},
            "seed": self.seed,
            "items": {"recomputed": self.items, "of": self.items_of_report},
            "stores": self.stores,
            "checks": [asdict(check) for check in self.checks],
            "values": {**self.compared, "differences": len(self.differences)},
            "largest_relative_difference": self.largest,
            "fields": self.fields,
            "verified": self.verified(),
            "problems": self.problems(),
            "differences": [asdict(difference) for difference in self.differences[:1000]],
            "not_verified": self.not_verified,
            "not_recomputed": self.not_recomputed,
            "versions": self.versions,
            "finished": self.finished,
            "seconds": self.seconds,
        }
        return json_text(record)
