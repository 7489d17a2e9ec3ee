"""The use case `verify`: does a report follow from the predictions that it names?"""

from __future__ import annotations

import hashlib
import platform
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.disk.files import MOST_REPORT, read_bytes
from uqeval.disk.json import content_of
from uqeval.errors import StoreError, UqevalError, UsageError, cut, listed, number_of
from uqeval.report.schema import Report
from uqeval.usecases.verify.opening import (
    Role,
    fingerprints,
    open_stores,
    refuse_other_items,
    roles_of,
    with_paths,
)
from uqeval.usecases.verify.record import Checked, Verification

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.usecases.verify.recompute import Recomputation

#: Names in one sentence.
_NAMED = 60
#: What a report also holds, and nothing recomputes.
_ALWAYS = (
    "Curves, rows of classes and temperature scaling are not recomputed.",
    "Stored files are decoded by the same code as in the run; what follows is independent.",
)  # fmt: skip


def verify(
    report: str | Path, stores: Sequence[str | Path] = (), *, items: int = 5,
    everything: bool = False, seed: int = 0,
) -> Verification:  # fmt: skip
    """Recompute `items` items of a report, chosen by `seed`, from its predictions.

    `stores`: in place of the paths in the report, in its order (frames, predictions, labels or
    target, reference). `everything`: all items, and the pooled scores.

    Raises `UsageError` for a report that cannot be verified (partial, merged of several runs, of
    another version), `StoreError` for stores that cannot be read.
    """
    if items < 1:
        raise UsageError(f"--items {items}; expected at least 1 item.")
    loaded = Report.load(report)
    with content_of(report):
        _refuse(loaded, str(report))
        return _verified(loaded, str(report), [str(own) for own in stores], items, everything, seed)


def _verified(
    loaded: Report, name: str, stores: Sequence[str], items: int, everything: bool, seed: int
) -> Verification:
    began = time.perf_counter()
    roles = with_paths(roles_of(loaded), stores, name)
    opened = open_stores(loaded, roles, name)
    refuse_other_items(loaded, opened, name)
    digest = hashlib.sha256(read_bytes(name, MOST_REPORT)).hexdigest()
    found = Verification(name, digest, version("uqeval"), seed, items_of_report=len(loaded.items))
    _check_stores(found, loaded, opened, roles)
    _check_states(found, loaded, Path(name))
    chosen = _chosen(len(loaded.items), items, everything, seed)
    found.items = [str(loaded.items[i]["name"]) for i in chosen]
    whole = everything or len(chosen) == len(loaded.items)
    _recompute(found, loaded, opened, chosen, whole)
    if not whole:
        left = len(loaded.items) - len(chosen)
        found.not_verified.insert(
            0, f"{number_of(left, 'item')} and the scores of the whole set; --all verifies both."
        )
    found.not_verified += _ALWAYS
    found.versions = _versions(loaded)
    found.finished = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found.seconds = time.perf_counter() - began
    return found


def _refuse(report: Report, name: str) -> None:
    """Raise `UsageError` for a report that does not say which predictions it is of."""
    if report.partial or report.inputs.get("missing_parts"):
        raise UsageError(
            f"{name}: is a partial report ({len(report.items)} of "
            f"{report.inputs.get('items', 'more')} items); expected a whole one. Join the parts "
            "with uqeval merge, or evaluate without --limit."
        )
    if report.uqeval_version != version("uqeval"):
        raise UsageError(
            f"{name}: was written by uqeval {report.uqeval_version}, this is "
            f"{version('uqeval')}, whose definitions may differ. Verify it with uqeval "
            f"{report.uqeval_version}, or evaluate again with this version."
        )
    inputs = report.inputs
    several = [own for own in (inputs.get(k) for k in ("labels", "target", "frames", "reference"))
               if own and " + " in str(own.get("path"))]  # fmt: skip
    members = len(inputs.get("predictions") or []) > 1 and inputs.get("items") != len(report.items)
    if several or members:
        raise UsageError(
            f"{name}: is merged from runs over several sets of stores, and does not say which item "
            "is of which. Verify the reports that it was merged from."
        )
    if not inputs.get("predictions"):
        raise UsageError(f"{name}: names no predictions; expected a report as -o writes it.")


def _check_stores(
    found: Verification, report: Report, opened: Inputs, roles: Sequence[Role]
) -> None:
    for own, now in fingerprints(report, opened, roles):
        same = now == own.fingerprint
        found.stores.append(
            {"role": own.name, "path": own.path, "fingerprint": own.fingerprint, "now": now}
        )
        text = (
            f"{own.path} ({own.name}) has the fingerprint of the report, {own.fingerprint[:12]}…"
            if same else
            f"{own.path} ({own.name}) was changed since the report was made, or copied without "
            f"its times: its fingerprint is {now[:12]}…, in the report {own.fingerprint[:12]}… "
            "(cp -p keeps times). Evaluate again, or give the store that the report was made of."
        )  # fmt: skip
        found.checks.append(Checked(f"fingerprint of {own.name} {own.path}", same, text))


def _check_states(found: Verification, report: Report, path: Path) -> None:
    """Check the states that lie beside the report against the digest in it."""
    from uqeval.stores.states import SavedStates

    if report.states is None or report.states_digest is None:
        found.not_verified.append("The report has no states of its items beside it.")
        return
    # Only beside the report: a path in it is not followed.
    beside = path.parent / Path(report.states).name
    if not beside.exists():
        found.not_verified.append(
            f"The states {beside.name} are not beside the report: their digest is not checked."
        )
        return
    try:
        digest = SavedStates(beside).digest
    except StoreError as error:
        found.checks.append(Checked(f"digest of {beside}", False, str(error)))
        return
    same = digest == report.states_digest
    text = (
        f"{beside} (states) has the digest of the report, {report.states_digest[:12]}…"
        if same else
        f"{beside} is of another report: its digest is {str(digest)[:12]}…, in the report "
        f"{report.states_digest[:12]}…"
    )  # fmt: skip
    found.checks.append(Checked(f"digest of {beside}", same, text))


def _chosen(count: int, items: int, everything: bool, seed: int) -> list[int]:
    """Return the items to recompute, ascending; the same for the same seed."""
    if everything or items >= count:
        return list(range(count))
    return sorted(random.Random(seed).sample(range(count), items))


def _recompute(
    found: Verification, report: Report, opened: Inputs, chosen: Sequence[int], pooled: bool
) -> None:
    from uqeval.usecases.verify.recompute import Recomputation

    own = Recomputation(report, opened)
    try:
        own.run(chosen, pooled)
    except UqevalError as error:
        if all(check.same for check in found.checks):
            raise
        # Of a store that was changed, that is all that can be said.
        found.checks.append(Checked("recomputation", False, f"nothing was recomputed: {error}"))
    for name, tally in own.tallies.items():
        found.compared[name] = tally.compared
        found.differences += tally.differences
        found.largest = max(found.largest, tally.largest)
    found.fields = {key: sorted(names) for key, names in own.fields.items()}
    found.not_verified += _left_out(own, report)


def _left_out(own: Recomputation, report: Report) -> list[str]:
    """Return sentences that name all of the items' records that was not recomputed."""
    said = [f"{key}: {why}." for key, why in own.why_not.items()]
    records = report.items[0] if report.items else {}
    for key, names in own.fields.items():
        record = records.get(key)
        scores = [
            name for name, value in (record or {}).items()
            if name not in names and isinstance(value, int | float)
        ]  # fmt: skip
        if scores:
            said.append(f"{key}: {listed(scores, 12)} of the items are not recomputed.")
    return said + _intervals_left_out(own, report)


def _intervals_left_out(own: Recomputation, report: Report) -> list[str]:
    """Return sentences that name the intervals, debiased values and slices that were not
    recomputed."""
    left = [name for name, record in report.intervals.items()
            if record.get("low") is not None and name not in own.intervals]  # fmt: skip
    debiased = [f"{key}.{name}" for key, record in report.results.items() for name in record
                if name.endswith("_debiased") and f"{key}.{name}" not in own.intervals]  # fmt: skip
    rows = sum(".per_class." in name for name in left)
    named = [name for name in left if ".per_class." not in name]
    said = []
    if rows:
        said.append(f"{number_of(rows, 'interval')} of rows of classes are not recomputed.")
    for key in dict.fromkeys(name.rpartition("].")[0] or name.partition(".")[0] for name in named):
        own_key = f"{key}]." if "[" in key else f"{key}."
        fields = [name.removeprefix(own_key) for name in named if name.startswith(own_key)]
        said.append(f"{own_key[:-1]}: the intervals of {_all(fields)} are not recomputed.")
    if debiased:
        said.append(f"{_all(debiased)}: not recomputed.")
    if report.slices:
        keys = [key for key in report.results if key not in own.slices]
        said.append(
            f"Of {number_of(len(report.slices), 'slice')}, intervals"
            + (f" and the scores of {listed(keys, 12)}" if keys else "")
            + " are not recomputed."
        )
    swept = [key for key, record in report.results.items() if "sweep_bins" in record]
    if swept:
        said.append(f"{listed(swept, 4)}: sweep_bins is taken from the report.")
    return said


def _all(names: Sequence[str]) -> str:
    """Return all names, up to as many as a report of ours can have."""
    rest = len(names) - _NAMED
    return ", ".join(map(cut, names[:_NAMED])) + (f" and {rest} more" if rest > 0 else "")


def _versions(report: Report) -> dict[str, str]:
    found = {"python": platform.python_version()} | {
        name: version(name) for name in ("uqeval", "numpy", "zarr", "numcodecs")
    }
    if "frames" in report.inputs:
        import cv2

        found["opencv"] = cv2.__version__
    return found
