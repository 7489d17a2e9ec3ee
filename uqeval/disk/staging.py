"""Local copies of single objects of object stores while a command runs.

Code that reads and writes files needs no code for object stores. Inputs are fetched into a
temporary folder before the command, outputs are written there and put to their URLs at the end:
states before their report, as on a disk. An object that another process has replaced meanwhile is
not overwritten. A command that fails uploads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uqeval.disk.files import FOLDERS, as_given
from uqeval.disk.locks import temporary
from uqeval.disk.objects import ObjectFile
from uqeval.errors import OutputError, StoreError, UqevalError, UsageError, cut

#: Largest file that is fetched.
_MOST_BYTES = 1 << 30
_STATES, _PAGE = ".states.zip", "index.html"
#: The kinds of files that are fetched, and one of them.
EXPECTED = {
    "reports": "a report or states", "rules": "a file of rules", "verdicts": "a file of verdicts",
    "tables of items": "a table of items",
}  # fmt: skip


@dataclass
class Staging:
    """Local files in a folder, by the URL of their object."""

    folder: Path
    _outputs: dict[Path, tuple[ObjectFile, Any]] = field(default_factory=dict)
    _folders: dict[Path, ObjectFile] = field(default_factory=dict)

    def input(self, url: str, kind: str = "reports") -> str:
        """Fetch a report or states, and the states next to a report; return the local path.

        `kind`: a key of `EXPECTED`. Raises `StoreError` if the object is not there or too large.
        """
        path = self._local(url)
        if not self._fetch(url):
            hint = " Folders of reports are read from local disks only."
            raise StoreError(
                f"{cut(url)}: there is no such object; expected {EXPECTED[kind]}. Check the URL."
                f"{hint if kind == 'reports' else ''}"
            )
        if path.suffix == ".json" and kind == "reports":
            self._fetch(_beside(url))
        return str(path)

    def _fetch(self, url: str) -> bool:
        """Write an object to its local file, once; return False if there is none."""
        path = self._local(url)
        if not path.exists():
            data = ObjectFile(url).read(_MOST_BYTES)
            if data is None:
                return False
            path.write_bytes(data)
        return True

    def output(self, url: str) -> str:
        """Return the local path to write instead of a URL.

        Raises `OutputError` if the server cannot be reached.
        """
        for own in (url, _beside(url)):
            path = self._local(own)
            if path not in self._outputs:
                file = ObjectFile(own, OutputError)
                self._outputs[path] = file, file.version()
        return str(self._local(url))

    def earlier_states(self, url: str) -> None:
        """Fetch the states next to an output, if there are any: the run continues from them."""
        self._fetch(_beside(url))

    def output_folder(self, url: str) -> str:
        """Return the local folder to write instead of a URL.

        Raises `OutputError` if the folder already has objects: old and new ones would be mixed.
        """
        url = url.rstrip("/")
        path, file = self._local(url), ObjectFile(f"{url}/{_PAGE}", OutputError)
        if not file.is_alone():
            raise OutputError(
                f"{cut(url)} holds objects already; expected a new folder for each run, such as "
                f"{cut(url)}/2. Name another one."
            )
        self._folders[path] = file
        return str(path)

    def _local(self, url: str) -> Path:
        scheme, _, rest = url.partition("://")
        parts = rest.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise UsageError(
                f"{cut(url)}: expected the URL of a file, such as s3://bucket/reports/r.json, "
                "without empty parts, '.' and '..'."
            )
        path = self.folder.joinpath(scheme.lower(), *parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def put(self) -> None:
        """Upload the outputs that were written to their URLs. Raises `OutputError`.

        States come first, the page of a folder last.
        """
        for folder, file in self._folders.items():
            for path in folder.rglob("*"):
                own = file.sibling(path.relative_to(folder).as_posix())
                self._outputs[path] = own, None
        written = [path for path in self._outputs if path.is_file()]
        for path in sorted(written, key=lambda p: (not p.name.endswith(_STATES), p.name == _PAGE)):
            file, before = self._outputs[path]
            file.replace(path, before)


def _beside(path: str) -> str:
    """Return the states file that belongs to a report."""
    return path.removesuffix(Path(path).suffix) + _STATES


@contextmanager
def staging() -> Iterator[Staging]:
    """Yield a `Staging`; remove its files at the end."""
    with temporary() as folder:
        place = folder / "objects"
        place.mkdir()
        FOLDERS.append(place)
        try:
            yield Staging(place)
        except UqevalError as error:
            error.args = tuple(as_given(a) if isinstance(a, str) else a for a in error.args)
            raise
        finally:
            FOLDERS.remove(place)
