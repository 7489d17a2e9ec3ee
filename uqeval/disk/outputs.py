"""Check output files: not an input, not of another kind, and writable. Write them completely or not
at all.

An output is refused where it is an input, lies in one, or contains one. Links are resolved, also
those inside an input's folder, and a file is compared by its inode, so that hard links count too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Any

from uqeval.disk.files import as_given, path_without_suffix, resolved, stream_of, write_stream
from uqeval.disk.locks import clear_beside
from uqeval.disk.publishing import new_file, writing
from uqeval.errors import OutputError, UsageError, cut

#: Device and inode of a file or folder.
_Key = tuple[int, int]
_RENAME = "give the output another name"


def refuse_overlap(
    outputs: Iterable[Any],
    inputs: Iterable[Any],
    advice: str = _RENAME,
    *,
    may_contain: bool = False,
) -> None:
    """Raise `UsageError` for an output that is, contains or lies in an input.

    `advice` says what to do. `may_contain`: folders in which only files of known names are written
    may hold inputs. Outputs and inputs are paths. Other values (arrays, None, URLs, "-" for a
    stream), devices and pipes are not checked.
    """
    outputs_on_disk = [path for path in map(local_path, outputs) if path is not None]
    inputs_on_disk = [path for path in map(local_path, inputs) if path is not None]
    if not outputs_on_disk or not inputs_on_disk:
        return
    paths_read = _PathIndex(inputs_on_disk, any(_has_hard_links(path) for path in outputs_on_disk))
    for path in outputs_on_disk:
        relation = paths_read.relation(path, may_contain)
        if relation is not None:
            raise UsageError(f"{cut(path)} {relation}; {advice}.")


def local_path(value: Any) -> Path | None:
    """Return the path of a local file or folder; None for other data."""
    if not isinstance(value, str | os.PathLike):
        return None
    text = os.fspath(value)
    if isinstance(text, bytes) or text in ("", "-") or "://" in text or "\0" in text:
        return None
    path = Path(text)
    if "::" in text and not os.path.lexists(text):  # file.h5::/path
        path = Path(text.partition("::")[0])
    return path.expanduser()


def paths_in(values: Iterable[Any]) -> list[Any]:
    """Return single values and the members of lists as one flat list."""
    return [
        path for value in values for path in (value if isinstance(value, list | tuple) else [value])
    ]


class _PathIndex:
    """Inodes of inputs, of the targets of links in them, and of the folders above them."""

    def __init__(self, inputs: Sequence[Path], hard_links: bool) -> None:
        self._hard_links = hard_links
        self.inputs: dict[_Key, Path] = {}
        self.files: dict[_Key, Path] = {}
        self.above: dict[_Key, Path] = {}
        #: By real path, for inputs that may not exist yet, such as a cache.
        self.names = {os.path.realpath(path): path for path in inputs}
        for path in inputs:
            self._add(path, path)

    def relation(self, output: Path, may_contain: bool) -> str | None:
        """Return a description of how an output overlaps an input; None if it does not."""
        status = _stat(output)
        if status is not None:
            if not (S_ISDIR(status.st_mode) or S_ISREG(status.st_mode)):
                return None  # a device or a pipe
            key = _key(status)
            if key in self.inputs or key in self.files:
                return _is(output, self.inputs.get(key) or self.files[key])
            if key in self.above and not may_contain:
                return f"contains the input {self.above[key]}"
        elif (real := os.path.realpath(output)) in self.names:
            return _is(output, self.names[real])
        for key in _folders_above(output):
            if key in self.inputs:
                return f"is inside the input {self.inputs[key]}"
        return None

    def _add(self, path: Path, source: Path) -> None:
        """Add a file or folder that reading an input also reads."""
        status = _stat(path)
        if status is None or _key(status) in self.inputs:
            return
        self.inputs[_key(status)] = source
        for key in _folders_above(path):
            self.above.setdefault(key, source)
        if S_ISDIR(status.st_mode):
            for link in _links(path):
                self._add(Path(link), source)
            for entry in _entries(path) if self._hard_links else ():
                if entry.is_file(follow_symlinks=False):
                    self.files[_key(entry.stat(follow_symlinks=False))] = Path(entry.path)


def _is(output: Path, source: Path) -> str:
    """Return the words "is an input", with the input's path if the output is given as another."""
    return "is an input" if output == source else f"is the input {source}"


def _has_hard_links(path: Path) -> bool:
    status = _stat(path)
    return status is not None and S_ISREG(status.st_mode) and status.st_nlink > 1


#: Links below a folder by its path, while a command runs.
_known_links: ContextVar[dict[str, list[str]] | None] = ContextVar("_known_links", default=None)


@contextmanager
def links_found_once() -> Iterator[None]:
    """Look for links below a folder only once: a command checks its outputs in several places, and
    a store may have a million folders.
    """
    token = _known_links.set({})
    try:
        yield
    finally:
        _known_links.reset(token)


def _links(folder: Path) -> list[str]:
    """Return the links below a folder, at any depth."""
    known = _known_links.get()
    known = {} if known is None else known
    key = str(folder.absolute())
    if key not in known:
        known[key] = [entry.path for entry in _entries(folder) if entry.is_symlink()]
    return known[key]


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the links and files below a folder, at any depth; no link is followed."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        yield entry
        except OSError:  # its reader reports the error
            continue


def _folders_above(path: Path) -> Iterator[_Key]:
    """Yield the inodes of the folders that a path lies in, links resolved."""
    try:
        real = Path(os.path.realpath(path))
    except (OSError, ValueError):
        return
    for folder in real.parents:
        status = _stat(folder)
        if status is not None:
            yield _key(status)


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError, RuntimeError):
        return None


def _key(status: os.stat_result) -> _Key:
    return status.st_dev, status.st_ino


def is_url(path: str | Path) -> bool:
    """Return whether an output looks like a URL: a path has one slash of two."""
    return re.match(r"[a-z0-9+.-]+:/", str(path), re.IGNORECASE) is not None


def refuse_url(folder: str | Path) -> None:
    """Raise `OutputError` for a URL where a local folder is written."""
    if is_url(folder) and not Path(folder).is_dir():
        raise OutputError(
            f"{cut(folder)} is a URL, and a local folder is expected. Give a folder, and copy it "
            "to the URL afterwards."
        )


#: Endings of files that are no folders.
_OF_FILES = (".json", ".csv", ".html", ".pdf", ".md", ".txt", ".yaml", ".yml")


def refuse_file_name(folder: str | Path) -> None:
    """Raise `UsageError` for the name of a file where a folder is written."""
    path = Path(folder)
    if path.suffix.lower() in _OF_FILES and not path.is_dir():
        raise UsageError(
            f"{cut(folder)} is the name of a file, and a folder for several files is expected. "
            f"Give the name of a folder, such as {cut(path_without_suffix(path))}."
        )


def check_output(path: str | Path, option: str, kind: str | None, inputs: Iterable[Any]) -> None:
    """Raise `OutputError` for an output that cannot be written, `UsageError` for one over an input
    or over a file of another kind.

    `option` names the output in messages. `kind`: a key of `KINDS`; None for CSV,
    HTML, XML and Markdown.
    """
    check_writable(path, option)
    refuse_overlap([path], inputs)
    refuse_other_kind(path, option, kind)


def check_writable(path: str | Path, option: str = "an output file") -> None:
    """Raise `OutputError` now for a file that could not be written later.

    `option`: what names the file, for messages about an empty name.
    """
    target = Path(path)
    if not str(path):
        raise OutputError(f"{option} is given as ''; give the name of a file.")
    stem = target.name.rpartition(".")[0]
    if stem and not stem.strip("."):
        raise OutputError(
            f"{cut(path)}: its name has only dots before the ending; give a name such as "
            f"report{target.suffix}."
        )
    if is_url(path) and not target.parent.is_dir():
        raise OutputError(
            f"{cut(path)} is a URL to which nothing can be written; give a local path. Reports "
            "and tables can be written to s3://, gs:// and az://."
        )
    if (stream := stream_of(path)) is not None:
        try:
            os.fstat(stream)
        except OSError as error:
            raise OutputError(f"{cut(path)} cannot be written: {error.strerror}.") from None
        return
    # Of others: a loop of links, a name that is too long.
    with writing(path), suppress(FileNotFoundError, NotADirectoryError):
        target.stat()
    if target.is_dir():
        raise OutputError(f"{cut(path)} is a folder; give the name of a file.")
    folder = target.parent
    if target.is_symlink():
        folder = resolved(target).parent  # `write` replaces the file that it leads to
    if not folder.is_dir():
        raise OutputError(
            f"{cut(path)}: the folder {cut(folder)} does not exist; make it, or name another."
        )
    if target.exists() and not target.is_file():  # a named pipe, a device: no file is made
        if not os.access(target, os.W_OK):
            raise OutputError(f"{cut(path)} cannot be written to; check its permissions.")
        return
    if not os.access(folder, os.W_OK):
        raise OutputError(f"{cut(path)}: the folder {cut(folder)} cannot be written to.")


def write(path: str | Path, content: str | bytes | Iterable[str]) -> None:
    """Replace `path` by `content`, synced to disk, or not at all. Raises `OutputError`.

    A text may be given in pieces, none of which ends inside a path.
    """
    target = Path(path)
    pieces = map(_encoded, [content] if isinstance(content, str | bytes) else content)
    with writing(path):
        if (stream := stream_of(path)) is not None:
            for data in pieces:
                write_stream(stream, data)
        elif target.exists() and not target.is_file():  # a named pipe, a device
            with target.open("wb") as pipe:
                pipe.writelines(pieces)
        else:
            clear_beside(resolved(target))  # what a killed process has left
            with new_file(target) as file:
                file.writelines(pieces)


def _encoded(text: str | bytes) -> bytes:
    """Return the bytes of a text; bytes unchanged."""
    # Names may hold half a character (a lone surrogate), which UTF-8 cannot say.
    return text if isinstance(text, bytes) else as_given(text).encode("utf-8", "backslashreplace")


#: Kinds of files, by the schema that they hold, with the words of messages.
KINDS = {
    "report": "a report",
    "states": "the states of a report",
    "fitted": "the sums of shards",
    "verdicts": "verdicts",
    "verification": "a verification",
    "selftest": "a self-test",
    "comparison": "a comparison",
}
#: The start of a JSON file of uqeval: its first key is its schema.
_SCHEMA = re.compile(rb'\{\s*"schema": "uqeval\.([a-z]+)/[0-9]+"')
#: The last entry of a file of states.
_INDEX = ("index.json", "index.json.z")
#: The ending of states next to a report. Those that are damaged are replaced.
_STATES = ".states.zip"
_START = 1000  # bytes


def refuse_other_kind(path: str | Path, option: str, kind: str | None) -> None:
    """Raise `UsageError` if the file at the path of an output is of another kind.

    JSON and states replace only files of their own kind. Other texts replace any text, except those
    of uqeval of another kind. A missing or empty file may be replaced, and so may what is no
    regular file (a pipe).

    `kind`: the kind of the output, a key of `KINDS`; None for CSV, HTML, XML and Markdown.
    """
    existing = _words_of(Path(path), kind)
    if existing is not None:
        raise UsageError(
            f"{cut(path)} is {existing}, which {option} would overwrite; give {option} another "
            "name, or remove the file."
        )


def _words_of(path: Path, kind: str | None) -> str | None:
    """Return what is at the path in words; None for what an output of `kind` may replace."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            start = file.read(_START)
    except (OSError, ValueError):  # unreadable: the writer reports the error
        return None
    found = _kind_of(path, start)
    if not start or (found is not None and found == kind):
        return None
    if found is not None:
        return KINDS[found]
    if kind == "states":
        return None if path.name.endswith(_STATES) else "not a states file"
    if b"\0" in start:
        return "a binary file"
    return None if kind is None or not start.strip() else f"a file that is not {KINDS[kind]}"


def _kind_of(path: Path, start: bytes) -> str | None:
    """Return the kind of a file that uqeval wrote; None for any other file."""
    import zipfile

    if match := _SCHEMA.match(start):
        kind = match[1].decode()
        return kind if kind in KINDS else None
    if start.startswith(b"PK"):
        try:
            with zipfile.ZipFile(path) as archive:
                return "states" if archive.namelist()[-1] in _INDEX else None
        except (OSError, LookupError, zipfile.BadZipFile, NotImplementedError, ValueError):
            pass  # damaged
    return None
