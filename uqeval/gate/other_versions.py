"""Whether reports are of versions of uqeval that may give other numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from uqeval.errors import cut, listed
from uqeval.glossary import how_to_evaluate
from uqeval.keys import family_of
from uqeval.records.folder import Named

_NUMBERS = re.compile(r"(\d+)(?:\.(\d+))?")


def other_versions(reports: Sequence[Named]) -> str:
    """Return a warning, without its end, if reports are of versions whose numbers may differ: the
    first number of the version does, or before 1.0 the second. Else an empty text."""
    paths: dict[str, list[str]] = {}
    for named in reports:
        paths.setdefault(named.report.uqeval_version, []).append(str(named.path))
    if len(set(map(_of_numbers, paths))) < 2:
        return ""
    called = " and ".join(f"{cut(version)} ({listed(own, 3)})" for version, own in paths.items())
    # Every family of class predictions is evaluated with `segmentation`, which has no command.
    families = {family_of(key) for named in reports for key in named.report.results}
    families.discard("segmentation")
    command = how_to_evaluate(families.pop()) if len(families) == 1 else ""
    return (
        f"the reports are of uqeval {called}, whose definitions may differ, so a difference may "
        "come from the versions. Evaluate all with one version: "
        f"{command or how_to_evaluate('segmentation')}"
    )


def _of_numbers(version: str) -> tuple[str, ...]:
    """Return the part of a version that rises if a number changes; all of an unknown form."""
    if (match := _NUMBERS.match(version)) is None:
        return (version,)
    major, minor = match.groups()
    return (major,) if int(major) else (major, minor or "0")
