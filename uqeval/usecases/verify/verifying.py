"""The use case `verify`: does a report follow from the predictions that it names?"""

from __future__ import annotations

import platform
import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from uqeval.disk.files import content_of
from uqeval.errors import StoreError, UqevalError, UsageError, cut, number_of
from uqeval.records.folder import states_beside
from uqeval.records.inputs import WHY_NONE
from uqeval.records.report import Report, load_with_sha256, now
from uqeval.usecases.verify.comparing import OF_THE_SET
from uqeval.usecases.verify.left_out import left_out
from uqeval.usecases.verify.opening import (
    Role,
    fingerprints,
    open_stores,
    refuse_other_items,
    roles_of,
    with_paths,
)
from uqeval.usecases.verify.options import refuse_other_settings
from uqeval.usecases.verify.record import Checked, Verification
from uqeval.version import VERSION

if TYPE_CHECKING:
    from uqeval.inputs import Inputs
    from uqeval.usecases.verify.recomputation import Recomputation

#: What no verification checks.
_ALWAYS = ("Stored files are decoded by the same code as in the run; what follows is independent.",)


def verify(
    report: str | Path, stores: Sequence[str | Path] = (), *, items: int = 5,
    everything: bool = False, seed: int = 0,
) -> Verification:  # fmt: skip
    """Recompute `items` items of a report, chosen by `seed`, from its predictions.

    `stores`: in place of the paths in the report, in its order (frames, predictions, labels or
    target, reference, mask of OUT pixels). `everything`: all items, and the pooled scores.

    Raises `UsageError` for a report that cannot be verified (partial, merged of several runs, of
    another version), `StoreError` for a report or stores that cannot be read.
    """
    name = str(report)
    loaded, digest = load_with_sha256(report)
    with content_of(report):
        _refuse(loaded, name)
        began = time.perf_counter()
        roles = with_paths(roles_of(loaded), [str(store) for store in stores], name)
        inputs = open_stores(loaded, roles, name)
        refuse_other_items(loaded, inputs, name)
        verification = Verification(name, digest, VERSION, seed, items_of_report=len(loaded.items))
        _check_stores(verification, loaded, inputs, roles)
        _check_states(verification, loaded, Path(name))
        selected = _selected_items(len(loaded.items), items, everything, seed)
        verification.items = [str(loaded.items[i]["name"]) for i in selected]
        is_complete = everything or len(selected) == len(loaded.items)
        _recompute(verification, loaded, inputs, selected, is_complete)
    if not is_complete:
        omitted = len(loaded.items) - len(selected)
        verification.not_verified.insert(
            0, f"{number_of(omitted, 'item')} and the scores of the whole set; --all verifies both."
        )
    verification.not_verified += _ALWAYS
    verification.versions = _versions(loaded)
    verification.finished = now()
    verification.seconds = time.perf_counter() - began
    return verification


def _refuse(report: Report, name: str) -> None:
    """Raise `UsageError` for a report that cannot be verified."""
    if report.partial or report.inputs.get("missing_parts"):
        raise UsageError(
            f"{name} is a partial report ({len(report.items)} of "
            f"{report.inputs.get('items', 'more')} items); expected a whole one. Join the parts "
            "with uqeval merge, or evaluate without --limit."
        )
    if report.uqeval_version != VERSION:
        raise UsageError(
            f"{name} was written by uqeval {report.uqeval_version}, this is "
            f"{VERSION}, whose definitions may differ. Verify it with uqeval "
            f"{report.uqeval_version}, or evaluate again with this version."
        )
    if list(report.results) == ["sweep"]:
        raise UsageError(
            f"{name} is a report of uqeval sweep, which cannot be verified. Verify a report of "
            "the same metrics without a sweep, such as one of uqeval run."
        )
    inputs = report.inputs
    if inputs.get("merged_runs"):
        raise UsageError(
            f"{name} is merged from runs over several sets of stores, and does not record the "
            "set of each item. Verify the reports that it was merged from."
        )
    for key, settings in report.settings.items():
        refuse_other_settings(name, key, settings)
    if not inputs.get("predictions"):
        raise UsageError(f"{name} names no predictions; expected a report as -o writes it.")


def _check_stores(
    verification: Verification, report: Report, inputs: Inputs, roles: Sequence[Role]
) -> None:
    for role, fingerprint in fingerprints(report, inputs, roles):
        verification.stores.append(
            {
                "role": role.name,
                "path": role.path,
                "fingerprint": role.fingerprint,
                "now": fingerprint,
            }
        )
        if fingerprint is None or role.fingerprint is None:
            verification.not_verified.append(
                f"Whether {role.path} ({role.name}) is the store of the report is unknown, because "
                f"{WHY_NONE}."
            )
            continue
        is_same = fingerprint == role.fingerprint
        text = (
            f"{role.path} ({role.name}) has the fingerprint of the report, {role.fingerprint[:12]}…"
            if is_same else
            f"{role.path} ({role.name}) was changed since the report was made, or copied without "
            f"its times: its fingerprint is {fingerprint[:12]}…, in the report "
            f"{role.fingerprint[:12]}… (cp -p keeps times). Evaluate again, or give the store "
            "that the report was made of."
        )  # fmt: skip
        verification.checks.append(
            Checked(f"fingerprint of {role.name} {role.path}", is_same, text)
        )


def _check_states(verification: Verification, report: Report, path: Path) -> None:
    """Check the states next to the report against its digest."""
    from uqeval.stores.states.saved import SavedStates

    states_path = states_beside(path, report)
    if states_path is None or report.states_digest is None:
        verification.not_verified.append("The report has no saved states.")
        return
    if not states_path.exists():
        verification.not_verified.append(
            f"The states {states_path.name} are not next to the report: their digest is not "
            "checked."
        )
        return
    try:
        digest = SavedStates(states_path).digest
    except StoreError as error:
        verification.checks.append(Checked(f"digest of {states_path}", False, str(error)))
        return
    is_same = digest == report.states_digest
    text = (
        f"{states_path} (states) has the digest of the report, {report.states_digest[:12]}…"
        if is_same else
        f"{states_path} is of another report: its digest is {str(digest)[:12]}…, in the report "
        f"{report.states_digest[:12]}…"
    )  # fmt: skip
    verification.checks.append(Checked(f"digest of {states_path}", is_same, text))


def _selected_items(count: int, items: int, everything: bool, seed: int) -> list[int]:
    """Return the items to recompute, ascending; the same for the same seed."""
    if everything or items >= count:
        return list(range(count))
    return sorted(random.Random(seed).sample(range(count), items))


def _recompute(
    verification: Verification,
    report: Report,
    inputs: Inputs,
    selected: Sequence[int],
    pooled: bool,
) -> None:
    from uqeval.usecases.verify.recompute import recomputation_of

    recomputation = recomputation_of(report, inputs)
    try:
        recomputation.run(selected, pooled)
    except UqevalError as error:
        if all(check.same for check in verification.checks):
            raise
        # The rest cannot be checked for a changed store.
        verification.checks.append(
            Checked("recomputation", False, f"nothing was recomputed: {error}")
        )
    verification.checks += _refused(recomputation, report, pooled)
    for name, tally in recomputation.tallies.items():
        verification.compared[name] = tally.compared
        verification.differences += tally.differences
        verification.largest = max(verification.largest, tally.largest)
    verification.fields = {key: sorted(names) for key, names in recomputation.fields.items()}
    verification.not_verified += left_out(recomputation, report, selected, pooled)
    verification.not_recomputed = {
        key: reason for key, reason in recomputation.why_not.items()
        if key.removesuffix(OF_THE_SET) in report.results and key not in recomputation.unmet
    }  # fmt: skip


def _refused(recomputation: Recomputation, report: Report, pooled: bool) -> list[Checked]:
    """Return a failed check for each key that no run over these stores can have written, and for
    each of which no score was compared although nothing says why."""
    reasons = dict(recomputation.unmet)
    for key in report.results:
        is_said = key in recomputation.why_not or key + OF_THE_SET in recomputation.why_not
        names = recomputation.scores_of(key)
        of_set = recomputation.fields_of_set.get(key, set())
        compared_of_items = recomputation.fields.keys() | recomputation.of_all_items
        is_compared = not of_set.isdisjoint(names) if pooled else key in compared_of_items
        if names and not is_said and not is_compared:
            reasons[key] = "none of its scores could be compared"
    return [
        Checked(
            f"recomputation of {key}", False,
            f"{cut(key)}: nothing was recomputed: {reason}. A run over these stores does not write "
            "such a report: other settings or stores were used, or it was edited.",
        )
        for key, reason in reasons.items()
    ]  # fmt: skip


def _versions(report: Report) -> dict[str, str]:
    versions = {"python": platform.python_version()} | {
        name: version(name) for name in ("uqeval", "numpy", "zarr", "numcodecs")
    }
    if "frames" in report.inputs:
        import cv2

        versions["opencv"] = cv2.__version__
    return versions
