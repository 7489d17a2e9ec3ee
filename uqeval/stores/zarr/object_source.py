"""Object stores and web servers, as sources of Zarr hierarchies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from uqeval.disk.files import MOST_BYTES
from uqeval.disk.object_access import Answer, Connection, check_url, without_panic
from uqeval.errors import ChangedError, cut
from uqeval.stores.watch import looked_up
from uqeval.stores.zarr.marks import Mark, Marks
from uqeval.stores.zarr.source import Buffer, Entry, Source, Value, clip
from uqeval.threads import Threads

#: The largest number of concurrent requests to a web server.
_REQUESTS = 16

#: Returns the metadata of an object without its content, by a store of obstore and a key.
Look = Callable[[Any, str], Mapping[str, Any]]


class ObjectSource(Source):
    """An object store or web server, through obstore; credentials come from the environment."""

    local = False

    def __init__(self, path: str) -> None:
        check_url(path)
        self._connection = Connection(path, path)
        self.path = path
        self._marks = Marks(path)
        self._obstore = self._connection.obstore
        #: The objects that `watch` was called for: metadata of the root.
        self._of_root: set[str] = set()
        self.listable = not path.lower().startswith(("http://", "https://"))
        #: How objects are looked up; at a web server None, until `_choose_look` has chosen.
        self._look: Look | None = self._head if self.listable else None
        self._has_chosen = self.listable
        self._lock = threading.Lock()

    @property
    def finds(self) -> bool:
        """Return whether `find` works."""
        return self._look is not None

    def _ask(self, problem: str, ask: Callable[[Any], Answer]) -> Answer:
        return self._connection.ask(self.path, problem, ask)

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        if start < 0:
            options: Any = {"range": {"suffix": -start}}
        elif length is not None:
            options = {"range": (start, start + length)}
        else:
            options = {"range": {"offset": start}} if start else {}

        def fetch(store: Any) -> tuple[memoryview, Mark]:
            response = self._obstore.get(store, key, options=options)
            mark = Mark.of(response.meta)
            self._marks.note_read(key, mark)
            begin, end = response.range
            clip(end - begin, 0, None, most, key)  # the reported size, before fetching
            return self._connection.content(self.path, key, response), mark

        try:
            data, mark = self._ask(f": {cut(key)} cannot be read", fetch)
        except FileNotFoundError:
            self._marks.note_absent(key)
            return None
        if not self._has_chosen and not options:
            self._choose_look(key, mark)
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

    def find(self, keys: Sequence[str]) -> list[Entry | None]:
        with Threads(_REQUESTS) as threads:
            return threads.map(self._entry, keys)

    def _entry(self, key: str) -> Entry | None:
        try:
            mark = self._mark(key, f": {cut(key)} cannot be found")
        except FileNotFoundError:
            return None
        return Entry(mark.size, mark.version)

    def _mark(self, key: str, problem: str) -> Mark:
        """Look up an object and note its mark. Raises `FileNotFoundError`."""
        look = self._look
        assert look is not None
        mark = Mark.of(self._ask(problem, lambda store: look(store, key)))
        self._marks.note(key, mark)
        return mark

    def _head(self, store: Any, key: str) -> Mapping[str, Any]:
        answer: Mapping[str, Any] = self._obstore.head(store, key)
        return answer

    def _first_byte(self, store: Any, key: str) -> Mapping[str, Any]:
        response = self._obstore.get(store, key, options={"range": (0, 1)})
        response.bytes()  # leaves the connection usable
        meta: Mapping[str, Any] = response.meta
        return meta

    def _choose_look(self, key: str, mark: Mark) -> None:
        """Choose the request that finds objects: the first that agrees with how GET has answered.

        Some servers have no HEAD, or answer it with other headers.
        """
        with self._lock:
            if self._has_chosen:
                return
            for look in (self._head, self._first_byte):
                with suppress(Exception):  # any error: this request is of no use here
                    found = Mark.of(without_panic(partial(look, self._connection.brief, key)))
                    if found.size == mark.size and found.version == mark.version:
                        self._look = look
                        break
                    if found.size == mark.size and not found.version:
                        self._look = self._look or look
            self._has_chosen = True

    def _listed(self, ask: Callable[[Any], Answer]) -> Answer:
        problem = " cannot be listed"
        try:
            return self._ask(problem, ask)
        except FileNotFoundError as error:
            raise self._connection.failure(self.path, problem, error) from error

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
            self._recheck(self._marks.keys(prefix))

    def _recheck_root(self) -> None:
        """Compare the metadata of the root with those that were read; other groups have none that
        matter."""
        self._recheck(sorted(self._of_root & set(self._marks.keys(""))))

    def _recheck(self, keys: Sequence[str]) -> None:
        if self.finds:
            with Threads(_REQUESTS) as threads:
                threads.map(self._recheck_one, keys)

    def _recheck_one(self, key: str) -> None:
        problem = f": {cut(key)} cannot be found again"
        try:
            self._mark(key, problem)
        except FileNotFoundError as error:
            raise self._connection.failure(self.path, problem, error) from error
        except ChangedError:
            if not self.is_same_document(key):
                raise

    def is_same_document(self, key: str) -> bool:
        if key in self._documents:
            self._marks.forget(key)  # it is read again
        return super().is_same_document(key)

    def warnings(self) -> list[str]:
        if self._has_chosen and not self.finds:
            return [
                f"{self.path}: the server answers HEAD requests, and requests for a range of "
                "bytes, with an error or other sizes. So uqeval cannot detect missing chunks in "
                "advance, nor changes during the run, and reports have no fingerprint of the data. "
                "Copy the store to a local disk first if another process may write to it."
            ]
        return self._marks.warnings()
