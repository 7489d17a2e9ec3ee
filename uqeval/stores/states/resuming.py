"""Items that --resume reuses from an interrupted run: only those that cannot have changed.

An item has a stamp (`stamps`) where a change of its data shows. Where an interrupted run had none,
the data may have changed since: the states that are left of it are counted again.
"""

from __future__ import annotations

import json
from collections.abc import Collection


def taken_over(partial: bytes, head: bytes) -> tuple[bytes, frozenset[int]] | None:
    """Return the content of `run.json` of a resumed run, and the items that are counted again.

    `partial`: its content in the interrupted run; `head`: its content now. None if the runs differ,
    or an item's data changed. Stamps come from the first run, which read the items; items without
    one get a new stamp.
    """
    before, current = json.loads(partial), json.loads(head)
    old, new = before.pop("stamps", []), current.pop("stamps", [])
    if before != current or len(old) != len(new):
        return None
    if any(new_stamp not in (two, None) for new_stamp, two in zip(old, new, strict=True)):
        return None
    if not old:
        return partial, frozenset()
    stamps = [
        two if old_stamp is None else old_stamp for old_stamp, two in zip(old, new, strict=True)
    ]
    text = json.dumps(before | {"stamps": stamps}, sort_keys=True).encode()
    return text, frozenset(i for i, stamp in enumerate(old) if stamp is None)


def resume_warnings(items: Collection[int], of: int) -> list[str]:
    """Return a warning for items of an interrupted run that are counted again; none without any."""
    if not items:
        return []
    return [
        f"--resume: {len(items)} of {of} items were counted again: uqeval cannot detect "
        "whether their data have changed since the interrupted run (tmpfs, a web server, arrays in "
        "memory, or files written within 20 ms before it). Keep the data on a disk to reuse all "
        "items."
    ]
