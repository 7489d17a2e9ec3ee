"""What the user gives, what is left of it once it is opened, and how it is opened."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from uqeval.errors import UsageError
from uqeval.metrics._family import Facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.maps.contract import MapSource

#: What stands for a store: a path, a URL, or an array in memory.
Given: TypeAlias = "str | Path | NDArray[Any]"


@dataclass(frozen=True)
class InputOptions:
    """How inputs are read; each is the command line's option of the same name."""

    names: str | Path | Sequence[str] | None = None
    ignore_index: int | None = None
    classes: int | None = None
    missing_chunks: str = "error"
    label_map: str | None = None
    sum_tolerance: float | None = None
    nan_samples: str = "error"
    limit: int | None = None

    def check(self) -> None:
        """Raises `UsageError` for what cannot be."""
        for name in ("missing_chunks", "nan_samples"):
            choices = ("error", "fill" if name == "missing_chunks" else "skip")
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"--{name.replace('_', '-')} {getattr(self, name)!r}; expected "
                    f"{' or '.join(choices)}."
                )
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit {self.limit}; expected at least 1 item.")
        tolerance = self.sum_tolerance
        if tolerance is not None and not 0 <= tolerance < 1:
            raise UsageError(f"--sum-tolerance {tolerance}; expected a number from 0 to below 1.")

    @property
    def fill(self) -> bool:
        """Whether chunks that are not there read as the fill value."""
        return self.missing_chunks == "fill"


@dataclass(frozen=True)
class Inputs:
    """Opened inputs: where maps come from, and what a report says of them."""

    source: MapSource
    class_names: tuple[str, ...]
    ignore_index: int
    record: dict[str, Any]
    warnings: list[str]
    partial: bool
    reference: bool = False
    options: dict[str, Any] = field(default_factory=dict)

    def facts(self) -> Facts:
        """What metrics may know of the data before any of it is read."""
        source = self.source
        sizes = tuple(source.size(item) for item in range(source.items))
        return Facts(
            source.where, source.names, sizes, source.classes, self.class_names, source.samples,
            source.kind, self.reference,
        )  # fmt: skip

    @property
    def fingerprint(self) -> str:
        """One digest of all stores."""
        truth = self.record.get("labels") or self.record.get("target") or {}
        stores = [*self.record["predictions"], truth]
        text = "\n".join(str(store.get("fingerprint")) for store in stores)
        return hashlib.sha256(text.encode()).hexdigest()
