"""Marks of the objects of a URL: sizes, ETags and times of change. They show changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from uqeval.errors import ChangedError


class Mark(NamedTuple):
    """The size, the ETag and the time of change of an object; empty if the server gives none."""

    size: int
    tag: str
    time: str

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Mark:
        """Return the mark in an answer of obstore, which returns 1970 if there is no time."""
        time = meta.get("last_modified")
        text = str(time) if time is not None and time.timestamp() > 0 else ""
        return cls(int(meta["size"]), str(meta.get("e_tag") or ""), text)

    @property
    def version(self) -> str:
        """Return the ETag, else the time of change."""
        return self.tag or self.time

    def may_be(self, other: Mark) -> bool:
        """Return whether both may be of the same content: all that both have is equal."""
        if self.tag and other.tag:
            return self[:2] == other[:2]
        is_timed = bool(self.time and other.time)
        return self.size == other.size and not (is_timed and self.time != other.time)


class Marks:
    """The marks of a URL's objects when they were first found, read or listed."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._known: dict[str, Mark] = {}
        self._read: set[str] = set()
        self._listed: dict[str, dict[str, Mark]] = {}
        self._without = ""

    def note(self, key: str, mark: Mark) -> None:
        """Record the mark of an object that is found.

        Raise `ChangedError` if it differs from an earlier one.
        """
        with self._lock:
            if not mark.version and not self._without:
                self._without = key
            before = self._known.setdefault(key, mark)
        if not before.may_be(mark):
            self._refuse(key)

    def note_read(self, key: str, mark: Mark) -> None:
        """Record the mark of an object whose content is read; see `note`."""
        self.note(key, mark)
        with self._lock:
            self._read.add(key)

    def forget(self, key: str) -> None:
        """Let the next mark of an object be as its first."""
        with self._lock:
            self._known.pop(key, None)

    def note_list(self, prefix: str, metas: Iterable[Mapping[str, Any]]) -> None:
        """Record the marks of listed objects.

        Raise `ChangedError` if one differs from an earlier list.
        """
        current = {str(meta["path"]): Mark.of(meta) for meta in metas}
        with self._lock:
            before = self._listed.setdefault(prefix, current)
        for key, mark in before.items():
            if key not in current or not mark.may_be(current[key]):
                self._refuse(key)

    def note_absent(self, key: str) -> None:
        """Raise `ChangedError` if a missing object was found or listed before."""
        with self._lock:
            known = key in self._known or any(key in listed for listed in self._listed.values())
        if known:
            self._refuse(key)

    def was_listed(self, prefix: str) -> bool:
        """Return whether objects have been listed."""
        return prefix in self._listed

    def keys(self, prefix: str) -> list[str]:
        """Return the objects below a prefix whose content was read."""
        start = f"{prefix}/" if prefix else ""
        with self._lock:
            return sorted(key for key in self._read if key.startswith(start))

    def warnings(self) -> list[str]:
        """Return a warning if the server reports no change times of objects; else nothing."""
        if not self._without:
            return []
        return [
            f"{self._url}: the server gives neither an ETag nor a time of change (of "
            f"{self._without}); a change during the run shows only in the sizes, and reports have "
            "no fingerprint of the data. Copy the store to a local disk first if another process "
            "may write to it."
        ]

    def _refuse(self, key: str) -> None:
        raise ChangedError(
            f"{self._url.rstrip('/')}/{key} changed after this run had begun, so its results "
            "would mix old and new data. Nothing was written. Run again after the last process has "
            "finished writing to it."
        )
