"""Warn about judged reports whose store the settings file does not list.

An earlier run may have left them in the folder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote

from uqeval.errors import cut, listed
from uqeval.gate.verdict import Judgement
from uqeval.records.folder import Named


def with_leftovers(
    judgement: Judgement, reports: Sequence[Named], stores: Collection[str], file: str | Path
) -> Judgement:
    """Return the judgement with a warning on judged reports whose store `file` does not list.

    `stores`: the names of the stores of `file`; empty if it lists none, then there is no warning.
    """
    judged = {verdict.address.store for verdict in judgement.verdicts}
    judged |= {lost.address.store for lost in judgement.not_evaluated}
    strange = [named for named in reports if named.name not in stores and named.name in judged]
    if not stores or not strange:
        return judgement
    needed = {path for named in reports if named.name in stores for path in named.files}
    files = [path for named in strange for path in named.files]
    removable = [path for path in files if path not in needed and path.is_file()]
    command = f"rm {' '.join(quote(str(path)) for path in removable)}"
    these, them = ("this report", "it") if len(strange) == 1 else ("these reports", "them")
    text = (
        f"the gate also judged {listed([named.path for named in strange])}: {cut(file)} has no "
        f"such store. If an earlier run left {these}, remove {them}, and judge again: {command}"
    )
    return replace(judgement, warnings=(text, *judgement.warnings))
