"""Object stores and web servers, as sources of Zarr hierarchies."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from uqeval.disk.files import MOST_BYTES
from uqeval.errors import StoreError, cut
from uqeval.stores.zarr.object_marks import Marks
from uqeval.stores.zarr.source import Buffer, Entry, Source, clip

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
