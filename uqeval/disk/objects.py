"""Single objects of an object store. They are read whole, and replaced whole.

An object that another process has replaced in the meantime is not replaced.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from uqeval.disk.object_access import Answer, Connection, check_url, normal_url, without_panic
from uqeval.errors import OutputError, StoreError, UqevalError, UsageError, cut

_SCHEMES = re.compile(r"(s3a?|gs|az|adl|azure|abfss?)://", re.IGNORECASE)
#: A size above that of any object.
_ANY = 1 << 60
#: ETag and version of an object.
Version = dict[str, str]
Buffer = bytes | memoryview


def is_object_url(value: object) -> bool:
    """Return whether a value is the URL of an object store that takes objects."""
    return isinstance(value, str) and _SCHEMES.match(value) is not None


def refuse_overlap_of_urls(
    outputs: Iterable[str], inputs: Iterable[object], advice: str = "give the output another name"
) -> None:
    """Raise `UsageError` for an output URL that is an input or lies in one, such as a store."""
    sources = {normal_url(str(value)): str(value) for value in inputs if is_object_url(value)}
    for output in outputs:
        place = normal_url(output)
        for source, given in sources.items():
            if place == source or place.startswith(f"{source}/"):
                relation = "is" if place == source else "is inside"
                shown = cut(given.rstrip("/"))
                raise UsageError(f"{cut(output)} {relation} the input {shown}; {advice}.")


class ObjectFile:
    """One object by its URL, such as `s3://bucket/reports/r.json`.

    Credentials come from the environment. Raises `UsageError` for a URL with credentials in it, and
    `kind` if the server cannot be used or its answer is an error.
    """

    def __init__(self, url: str, kind: type[UqevalError] = StoreError) -> None:
        check_url(url)
        self.url, self._kind = url, kind
        self._folder, _, self.key = url.rpartition("/")
        if not self.key or self._folder.endswith(":/"):
            raise kind(
                f"{cut(url)} names no object; expected a URL of a file, such as "
                f"{cut(url).rstrip('/')}/report.json."
            )
        self._connection = Connection(self._folder, url, kind)
        self._obstore = self._connection.obstore

    def sibling(self, key: str) -> ObjectFile:
        """Return another object in the same folder. It shares the connections."""
        other = copy.copy(self)
        other.key, other.url = key, f"{self._folder}/{key}"
        return other

    def _ask(self, problem: str, ask: Callable[[Any], Answer]) -> Answer | None:
        """Return the answer to a request, or None if there is no such object."""
        try:
            return self._connection.ask(self.url, problem, ask)
        except FileNotFoundError:
            return None

    def is_alone(self) -> bool:
        """Return whether the folder of this object holds no object yet."""

        def ask(store: Any) -> bool:
            return not any(self._obstore.list(store, chunk_size=1))

        # Some servers have no folder without objects.
        return self._ask(" cannot be listed", ask) in (True, None)

    def version(self) -> Version | None:
        """Return the ETag and version of the object; None if it does not exist."""
        meta: Any = self._ask(" cannot be found", lambda store: self._obstore.head(store, self.key))
        if meta is None:  # the answer does not say whether the bucket is there; that of `get` does
            self._ask(" cannot be written", lambda store: self._obstore.get(store, self.key))
            return None
        return {k: meta[k] for k in ("e_tag", "version") if meta.get(k) is not None}

    def read(self, most: int) -> memoryview | None:
        """Return the content of the object; None if there is none.

        Raises the error of `kind` for more than `most` bytes, before they are fetched.
        """

        def fetch(store: Any) -> memoryview:
            response = self._obstore.get(store, self.key)
            if (size := int(response.meta["size"])) > most:
                raise self._kind(
                    f"{cut(self.url)} has {size:,} bytes; expected at most {most:,}. Check the URL."
                )
            return self._connection.content(self.url, self.key, response)

        return self._ask(" cannot be read", fetch)

    def replace(self, source: Path, before: Version | None) -> None:
        """Replace the object by a local file if its `version` still equals `before`.

        On stores without conditional writes, compare versions just before writing. Raises
        `OutputError` if the object has changed.
        """
        from obstore.exceptions import AlreadyExistsError, NotSupportedError, PreconditionError

        data = source.read_bytes()
        mode: Any = "create" if before is None else before
        try:
            without_panic(
                lambda: self._obstore.put(
                    self._connection.later, self.key, data, mode=mode, use_multipart=False
                )
            )
        except (AlreadyExistsError, PreconditionError) as error:
            # If the answer to the first request was lost, its retry finds the object already
            # written.
            there = self.read(_ANY)
            if there is None or bytes(there) != data:
                raise self._changed() from error
        except (NotSupportedError, NotImplementedError):
            if self.version() != before:
                raise self._changed() from None
            self.write(data)
        except Exception as error:
            raise self._connection.failure(self.url, " cannot be written", error) from error

    def write(self, data: Buffer) -> None:
        """Write the object; overwrite an existing one."""

        def put(store: Any) -> bool:
            self._obstore.put(store, self.key, data, mode="overwrite", use_multipart=False)
            return True

        if not self._ask(" cannot be written", put):
            raise self._kind(f"{cut(self.url)} cannot be written. Check the URL.")

    def _changed(self) -> OutputError:
        return OutputError(
            f"{cut(self.url)}: another process wrote it during this run, so it was not replaced. "
            "Run again, or give another -o."
        )
