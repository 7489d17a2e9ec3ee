"""Open input files: regular files only, without blocking, with a limit of bytes; JSON of files;
names of files."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from uqeval.errors import FormError, StoreError, UqevalError, cut, quoted

#: Bytes of a file that is read whole: metadata, names, tables.
MOST_BYTES = 1 << 28
#: Bytes of a report.
MOST_REPORT = 1 << 30
#: Folders of local files that stand for objects while a command runs (see `staging`):
#: `FOLDER/s3/bucket/key` for `s3://bucket/key`.
FOLDERS: list[Path] = []

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


def open_descriptor(path: str | Path) -> int:
    """Open a regular file for reading and return its descriptor.

    Raises `OSError` for anything else: `strerror` names the kind of file. A named pipe is opened
    without waiting for its writer.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        if error.errno == errno.ENXIO:  # opening a socket gives this error
            raise _refusal(path, "a socket") from None
        if error.errno == errno.ENOENT and "://" in str(path):
            why = "it is a URL, and only files on a disk are read here"
            raise OSError(errno.ENOENT, why, str(path)) from None
        raise
    except ValueError as error:  # a name with a zero byte
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    kind = next((kind_name for is_kind, kind_name in _KINDS if is_kind(mode)), "of an unknown kind")
    raise _refusal(path, kind)


def _refusal(path: str | Path, kind: str) -> OSError:
    return OSError(errno.EINVAL, f"it is {kind}, and only regular files are read", str(path))


def open_file(path: str | Path) -> io.BufferedReader:
    """Open a regular file for buffered reading of bytes. Raises `OSError`."""
    return os.fdopen(open_descriptor(path), "rb")


def read_into(descriptor: int, buffer: memoryview, begin: int) -> memoryview:
    """Fill `buffer` with the bytes of a file from `begin` on; return the filled part.

    It is shorter if the file ends early, even if another process truncates the file meanwhile.
    Memory-mapped files are not used because reading a truncated one ends the process with SIGBUS.
    """
    at = os.preadv(descriptor, [buffer], begin)
    while 0 < at < len(buffer) and (count := os.preadv(descriptor, [buffer[at:]], begin + at)):
        at += count
    return buffer[:at]


def is_file(path: str | Path) -> bool:
    """Return whether `path` is a regular file, or a link to one; False if
    unknown.
    """
    try:
        return stat.S_ISREG(Path(path).stat().st_mode)
    except (OSError, ValueError):
        return False


def read_bytes(path: str | Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file of at most `most` bytes.

    Raises `OSError`, also for a larger file: before reading it, or as soon as it grows beyond.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        # Files in /proc have size 0 but content, and files may grow.
        data = file.read(size + 1) if size <= most else b""
        if len(data) > size:
            data += file.read(most + 1 - len(data))
        if max(size, len(data)) > most:
            raise OSError(errno.EFBIG, f"it is larger than {_size_text(most)}", str(path))
        return data


def _size_text(size: int) -> str:
    """Return a limit in words."""
    units = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
    in_units = ((size // unit, name) for unit, name in units if size % unit == 0)
    return " ".join(map(str, next(in_units, (size, "bytes"))))


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """Return the text of a regular file, line ends as `\\n`.

    Raises `OSError` as `read_bytes` does, and `UnicodeDecodeError`.
    """
    return io.TextIOWrapper(io.BytesIO(read_bytes(path)), encoding).read()


def resolved(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path with links followed; a loop of links, and a path that no file can
    have, stay unchanged, without an error."""
    # Unlike these, Path.resolve raises on a loop, and Path.expanduser for a user that is not there.
    expanded = os.path.expanduser(path)  # noqa: PTH111
    try:
        return Path(os.path.realpath(expanded))
    except ValueError:  # a zero byte
        return Path(expanded).absolute()


def place_of(path: str | os.PathLike[str]) -> str:
    """Return text that is the same for all spellings of a path or URL."""
    text = os.fspath(path)
    if "://" not in text:
        return str(resolved(text))
    from uqeval.disk.object_access import normal_url

    return normal_url(text)


def as_given(text: str) -> str:
    """Return a text with the paths of staged local files replaced by their URLs."""
    for folder in FOLDERS:
        if f"{folder}/" in text:
            for place in folder.iterdir():
                text = text.replace(f"{place}/", f"{place.name}://")
    return text


def path_without_suffix(path: Path) -> str:
    """Return a path without the ending of its name. Python 3.13 has none for `..json`."""
    return str(path).removesuffix(path.suffix)


def stream_of(path: str | Path) -> int | None:
    """Return the file descriptor of a path such as /dev/stdout; None for an ordinary path."""
    text = str(path)
    descriptors = {"/dev/stdout": 1, "/dev/stderr": 2}
    for folder in ("/dev/fd/", "/proc/self/fd/"):
        number = text.removeprefix(folder)
        if number != text and number.isdecimal() and len(number) < 6:
            descriptors[text] = int(number)
    return descriptors.get(text)


def write_stream(descriptor: int, data: bytes) -> None:
    """Write all of `data` to a descriptor of this process, from its position on. Raises `OSError`.

    Opening /dev/stdout again would overwrite the start of the file that it is redirected to.
    """
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


#: Start of the comment of a states file, and the size of the comment with its digest.
DIGEST_MARK = b"sha256:"
DIGEST_BYTES = len(DIGEST_MARK) + 64

#: Errors caused by types, shapes and sizes that uqeval does not write.
_UNEXPECTED = (
    ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError,
    ValueError,
)  # fmt: skip


@contextmanager
def content_of(where: object) -> Iterator[None]:
    """Raise `StoreError` if the content of a file of uqeval is invalid.

    For reports and states, whose checks do not cover every field of every metric. Python callers
    find the original error as the cause.
    """
    try:
        yield
    except (UqevalError, UnicodeEncodeError):  # the latter comes of writing
        raise
    except _UNEXPECTED as error:
        raise StoreError(
            f"{where}: the content is not as uqeval writes it: {flaw_of(error)}. Evaluate again; "
            "if uqeval wrote it and it was not edited, please report this."
        ) from error


def flaw_of(error: Exception) -> str:
    """Return in words what an error says about the content of a file, without Python's words."""
    if isinstance(error, UqevalError | FormError):
        return cut(error)
    if isinstance(error, KeyError) and error.args:
        return f"it lacks {quoted(error.args[0])}"
    return "a value has another type or size, or a list another length"


def read_json(path: str | Path) -> Any:
    """Return the JSON of a file.

    Raises `ValueError` as `parse_json` does, and for a file that is too large; `OSError` if it
    cannot be read.
    """
    return parse_json(read_bytes(path, MOST_REPORT))


def parse_json(text: str | bytes, finite: bool = True) -> Any:
    """Return the value of a JSON text, in UTF-8 if it is bytes.

    Raise `ValueError` if it is not JSON, nested too deeply, or has an object with a key twice: a
    reader of the file would see the first value, and uqeval use the last. Also for NaN, infinity
    and numbers beyond float64, unless not all numbers have to be `finite`.
    """
    try:
        if not isinstance(text, str):
            text = str(text, "utf-8")
        return json.loads(
            text,
            parse_constant=_refuse if finite else None,
            parse_float=_finite if finite else None,
            parse_int=_whole if finite else None,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("it is not text in UTF-8") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{error.msg[:1].lower()}{error.msg[1:]} at {where}") from None
    except ValueError as error:
        if str(error).startswith("Exceeds the limit"):  # Python's, with advice to programmers
            raise ValueError("a number in it has thousands of digits") from None
        raise


def _refuse(constant: str) -> float:
    raise ValueError(f"{cut(constant)} is not a number that this file may hold")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _whole(text: str) -> int:
    number = int(text)
    if len(text) > 300:  # computations with a larger one than float64 stop
        _finite(text)
    return number


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON. Raises `ValueError` for a key that it has twice."""
    record = dict(pairs)
    if len(record) == len(pairs):
        return record
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            break
        seen.add(name)
    raise ValueError(f"the key {quoted(name)} is there twice")


def json_text(record: object, indent: int = 2, ensure_ascii: bool = True) -> str:
    """Return a value as the JSON of a file. Raises `ValueError` for NaN and infinity."""
    text = json.dumps(record, indent=indent, ensure_ascii=ensure_ascii, allow_nan=False)
    return text + "\n"


def json_digest(value: object) -> str:
    """Return the SHA-256 of a value as JSON with sorted keys and no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def readable(where: str | Path) -> Iterator[None]:
    """Raise `StoreError` for a file that cannot be read inside the context."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"{cut(where)} cannot be read: {error.strerror}.") from error


def noted_digest(path: Path) -> str | None:
    """Return the digest in the comment of a states file, unchecked; None without one."""
    with readable(path), open_file(path) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - DIGEST_BYTES, 0))
        comment = file.read(DIGEST_BYTES)
    if not comment.startswith(DIGEST_MARK):
        return None
    return comment.removeprefix(DIGEST_MARK).decode("ascii", "replace")
