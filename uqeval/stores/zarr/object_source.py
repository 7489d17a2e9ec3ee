"""Object stores and web servers, as sources of Zarr hierarchies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from uqeval.disk.files import MOST_BYTES
from uqeval.disk.object_access import Answer, Connection, refuse_secrets
from uqeval.errors import ChangedError, cut
from uqeval.stores.watch import looked_up
from uqeval.stores.zarr.source import Buffer, Entry, Source, Value, clip
from uqeval.threads import Threads


class Marks:
    """The marks of a URL's objects when they were first read or listed: ETags or times of
    change.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._read: dict[str, str] = {}
        self._listed: dict[str, dict[str, str]] = {}
        self._without = ""

    def note(self, key: str, meta: Mapping[str, Any]) -> None:
        """Record the mark of an object that is read.

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
        """Record the marks of listed objects.

        Raise `ChangedError` if one differs from an earlier list.
        """
        current = {str(meta["path"]): f"{meta['size']} {_tag(meta)}" for meta in metas}
        with self._lock:
            before = self._listed.setdefault(prefix, current)
        for key, mark in before.items():
            if current.get(key) != mark:
                self._refuse(key)

    def note_absent(self, key: str) -> None:
        """Raise `ChangedError` if a missing object was read or listed before."""
        with self._lock:
            known = key in self._read or any(key in listed for listed in self._listed.values())
        if known:
            self._refuse(key)

    def was_listed(self, prefix: str) -> bool:
        """Return whether objects have been listed."""
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
            "would mix old and new data. Nothing was written. Run again after the last process has "
            "finished writing to it."
        )


def _tag(meta: Mapping[str, Any]) -> str:
    """Return the ETag of an object, else its time of change; empty if the server gives neither."""
    if tag := meta.get("e_tag"):
        return str(tag)
    time = meta.get("last_modified")
    # obstore returns 1970 if there is no time.
    return str(time) if time is not None and time.timestamp() > 0 else ""


#: The largest number of concurrent requests to a web server.
_REQUESTS = 16


class ObjectSource(Source):
    """An object store or web server, through obstore; credentials come from the environment."""

    local = False

    def __init__(self, path: str) -> None:
        refuse_secrets(path)
        self._connection = Connection(path, path)
        self.path = path
        self._marks = Marks(path)
        self._obstore = self._connection.obstore
        #: The objects that `watch` was called for: metadata of the root.
        self._of_root: set[str] = set()
        self.listable = not path.lower().startswith(("http://", "https://"))

    def _ask(self, action: str, ask: Callable[[Any], Answer]) -> Answer:
        return self._connection.ask(self.path, action, ask)

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        if start < 0:
            options: Any = {"range": {"suffix": -start}}
        elif length is not None:
            options = {"range": (start, start + length)}
        else:
            options = {"range": {"offset": start}} if start else {}

        def fetch(store: Any) -> memoryview:
            response = self._obstore.get(store, key, options=options)
            self._marks.note(key, response.meta)
            begin, end = response.range
            clip(end - begin, 0, None, most, key)  # the reported size, before fetching
            return memoryview(response.bytes())

        try:
            data = self._ask(f"read {cut(key)}", fetch)
        except FileNotFoundError:
            self._marks.note_absent(key)
            return None
        return data if length is None else data[:length]

    def children(self, prefix: str) -> list[str]:
        listed = self._listed(
            lambda store: self._obstore.list_with_delimiter(store, prefix or None)
        )
        return sorted(
            str(name).rstrip("/").rsplit("/", 1)[-1] for name in listed["common_prefixes"]
        )

    def entries(self, prefix: str) -> dict[str, Entry]:
        start = f"{prefix}/" if prefix else ""
        if not self.listable:
            return {}
        metas = self._listed(
            lambda store: [m for batch in self._obstore.list(store, prefix or None) for m in batch]
        )
        self._marks.note_list(prefix, metas)
        return {
            str(meta["path"])[len(start) :]: Entry(int(meta["size"]), str(meta["e_tag"] or ""))
            for meta in metas
        }

    def _listed(self, ask: Callable[[Any], Answer]) -> Answer:
        action = "list what is stored there"
        try:
            return self._ask(action, ask)
        except FileNotFoundError as error:
            raise self._connection.failure(self.path, action, error) from error

    def each(self, read: Callable[[str], Value], names: Sequence[str]) -> list[Value]:
        with Threads(_REQUESTS) as threads:
            return list(threads.map(read, names))

    def stamp(self, key: str, entry: Entry) -> str | None:
        weak = not entry.tag or entry.tag.startswith("W/")
        return None if weak else f"{entry.size} {entry.tag}"

    def watch(self, key: str, owner: str) -> None:
        if not owner:
            self._of_root.add(key)

    def recheck(self, prefix: str) -> None:
        looked_up(("watched objects", id(self)), self._recheck_root)
        if self.listable and self._marks.was_listed(prefix):
            self.entries(prefix)
        elif not self.listable:
            with Threads(_REQUESTS) as threads:
                threads.map(self._recheck, self._marks.keys(prefix))

    def _recheck_root(self) -> None:
        """Compare the metadata of the root with those that were read; other groups have none that
        matter."""
        with Threads(_REQUESTS) as threads:
            threads.map(self._recheck, sorted(self._of_root & set(self._marks.keys(""))))

    def _recheck(self, key: str) -> None:
        action = f"find {cut(key)} again"
        try:
            meta = self._ask(action, lambda store: self._obstore.head(store, key))
        except FileNotFoundError as error:
            raise self._connection.failure(self.path, action, error) from error
        self._marks.note(key, meta)

    def warnings(self) -> list[str]:
        return self._marks.warnings()
