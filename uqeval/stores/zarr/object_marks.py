"""Change detection for objects of a server: by size, and ETag or time of change.

What is listed is compared with what is listed, and what is read with what is read: some servers
write an ETag in one way here and in another there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from uqeval.errors import ChangedError


class Marks:
    """The objects of a source at a URL, as they were when they were first read or listed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._read: dict[str, str] = {}
        self._listed: dict[str, dict[str, str]] = {}
        self._without = ""

    def note(self, key: str, meta: Mapping[str, Any]) -> None:
        """Note the mark of an object that is read.

        Raise `ChangedError` if it differs from an earlier one.
        """
        tag = _tag(meta)
        with self._lock:
            if not tag and not self._without:
                self._without = key
            before = self._read.setdefault(key, f"{meta['size']} {tag}")
        if before != f"{meta['size']} {tag}":
            self._refuse(key)

    def note_list(self, prefix: str, metas: Iterable[Mapping[str, Any]]) -> None:
        """Note the marks of listed objects.

        Raise `ChangedError` if one differs from an earlier list.
        """
        current = {str(meta["path"]): f"{meta['size']} {_tag(meta)}" for meta in metas}
        with self._lock:
            before = self._listed.setdefault(prefix, current)
        for key, mark in before.items():
            if current.get(key) != mark:
                self._refuse(key)

    def was_listed(self, prefix: str) -> bool:
        """Return whether there is a list to compare with."""
        return prefix in self._listed

    def keys(self, prefix: str) -> list[str]:
        """Return the objects below a prefix that were read."""
        start = f"{prefix}/" if prefix else ""
        with self._lock:
            return [key for key in self._read if key.startswith(start)]

    def warnings(self) -> list[str]:
        """Return a warning if the server reports no change times of objects; else nothing."""
        if not self._without:
            return []
        return [
            f"{self._url}: the server gives neither an ETag nor a time of change (of "
            f"{self._without}); a change during the run shows only in the sizes. Copy the store "
            "to a local disk first if another process may write to it."
        ]

    def _refuse(self, key: str) -> None:
        raise ChangedError(
            f"{self._url.rstrip('/')}/{key}: changed after this run had begun, so its results "
            "would mix old and new data. Nothing was kept. Run again when no process writes to it "
            "any more."
        )


def _tag(meta: Mapping[str, Any]) -> str:
    """Return the ETag of an object, else its time of change; empty where the server tells
    neither.
    """
    if tag := meta.get("e_tag"):
        return str(tag)
    time = meta.get("last_modified")
    # Without a time obstore says 1970.
    return str(time) if time is not None and time.timestamp() > 0 else ""
