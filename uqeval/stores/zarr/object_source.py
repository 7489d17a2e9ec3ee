"""Object stores and web servers, as sources of Zarr hierarchies."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from uqeval.disk.files import MOST_BYTES
from uqeval.errors import ChangedError, StoreError, cut
from uqeval.stores.zarr.source import Buffer, Entry, Source, clip


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


#: Requests to a web server at a time.
_REQUESTS = 16


class ObjectSource(Source):
    """An object store or web server, through obstore; credentials come from the environment."""

    local = False

    def __init__(self, path: str) -> None:
        self.path = path
        self._marks = Marks(path)
        try:
            import obstore
            import obstore.store
        except ImportError as error:
            raise StoreError(
                f"{cut(path)}: reading from a URL needs obstore: pip install obstore."
            ) from error
        self._obstore: Any = obstore
        self.listable = not path.lower().startswith(("http://", "https://"))
        options: Any = {"client_options": {"allow_http": True}} if "http://" in path[:7] else {}
        try:
            self._store: Any = obstore.store.from_url(path, **options)
        except Exception as error:  # see `_fail`
            raise StoreError(
                f"{cut(path)}: cannot be opened: {_reason(error)}. Check it."
            ) from error

    def _fail(self, action: str, error: Exception) -> StoreError:
        # Of any `Exception` that obstore raises: its errors share no base class across versions.
        return StoreError(
            f"{cut(self.path)}: cannot {action}: {_reason(error)}. "
            "Check the URL, the network and the credentials in the environment."
        )

    def get(
        self, key: str, start: int = 0, length: int | None = None, most: int = MOST_BYTES
    ) -> Buffer | None:
        try:
            if start < 0:
                options: Any = {"range": {"suffix": -start}}
            elif length is not None:
                options = {"range": (start, start + length)}
            else:
                options = {"range": {"offset": start}} if start else {}
            response = self._obstore.get(self._store, key, options=options)
            self._marks.note(key, response.meta)
            begin, end = response.range
            clip(end - begin, 0, None, most, key)  # as the server says, before it is fetched
            data = memoryview(response.bytes())
            return data if length is None else data[:length]
        except FileNotFoundError:
            return None
        except StoreError:
            raise
        except Exception as error:  # see `_fail`
            raise self._fail(f"read {key}", error) from error

    def children(self, prefix: str) -> list[str]:
        try:
            listed = self._obstore.list_with_delimiter(self._store, prefix or None)
        except Exception as error:  # see `_fail`
            raise self._fail("list what is stored there", error) from error
        return sorted(
            str(name).rstrip("/").rsplit("/", 1)[-1] for name in listed["common_prefixes"]
        )

    def entries(self, prefix: str) -> dict[str, Entry]:
        start = f"{prefix}/" if prefix else ""
        if not self.listable:
            return {}
        try:
            metas = [m for batch in self._obstore.list(self._store, prefix or None) for m in batch]
        except Exception as error:  # see `_fail`
            raise self._fail("list what is stored there", error) from error
        self._marks.note_list(prefix, metas)
        return {
            str(meta["path"])[len(start) :]: Entry(int(meta["size"]), str(meta["e_tag"] or ""))
            for meta in metas
        }

    def stamp(self, key: str, entry: Entry) -> str | None:
        weak = not entry.tag or entry.tag.startswith("W/")
        return None if weak else f"{entry.size} {entry.tag}"

    def recheck(self, prefix: str) -> None:
        if self.listable and self._marks.was_listed(prefix):
            self.entries(prefix)
        elif not self.listable:
            with ThreadPoolExecutor(_REQUESTS) as threads:
                list(threads.map(self._recheck, self._marks.keys(prefix)))

    def _recheck(self, key: str) -> None:
        try:
            meta = self._obstore.head(self._store, key)
        except Exception as error:  # see `_fail`
            raise self._fail(f"find {key} again", error) from error
        self._marks.note(key, meta)

    def warnings(self) -> list[str]:
        return self._marks.warnings()


def _reason(error: Exception) -> str:
    # obstore's messages go on with the whole of the server's answer.
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
