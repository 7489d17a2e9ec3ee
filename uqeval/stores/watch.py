"""Detect data that change between runs, and while a run reads them.

A stamp is text that changes between runs when its file or array changes. If changes cannot be
detected reliably, there is no stamp, and the item is read again. A state is a weaker stamp for a
single run: it is fast, and every file has one. States are recorded when the inputs are opened, and
compared after each read of the item and at the end of the run. A run that would mix old and new
data ends.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from uqeval.errors import ChangedError, UqevalError, cut
from uqeval.stores.watched_parts import PartsByItem, Watched, WatchedText, arrays_of_parts

if TYPE_CHECKING:
    from uqeval.stores.array import StoredArray

Value = TypeVar("Value")

#: The largest step, in nanoseconds, of the times of change that file systems record.
_TICK = 20 * 10**6
#: Older file systems (FAT, HFS+, ext3) use steps of one or two seconds.
_SECOND = 10**9
#: File systems in memory: a write through a memory map never changes a time.
_MEMORY = frozenset({"tmpfs", "ramfs"})
#: The state of a missing file.
GONE = "gone"


#: `values`: what this thread has read inside `one_look`, by key.
_look = threading.local()


def looked_up(key: Hashable, read: Callable[[], Value]) -> Value:
    """Return what `read` returns; inside `one_look`, what it first returned for this key."""
    values: dict[Hashable, Any] | None = getattr(_look, "values", None)
    if values is None:
        return read()
    if key not in values:
        values[key] = read()
    return cast("Value", values[key])


def file_stamp(path: str | Path) -> str | None:
    """Return inode, size and times of change of a file; None if they may miss a change.

    A process may write to the file through a memory map. The first write to a page sets the times.
    Later writes do not, until the page is written back, so this function writes pages back. On a
    file system in memory, such writes never set a time: None. Also None for a file that was changed
    just now, because another change could leave the same times. A copy has another stamp, because
    its time of creation (ctime) cannot be set.

    Inside `one_look`, the value of the first call for this file.
    """
    return looked_up(("stamp", path), lambda: _stamp_now(path))


def _stamp_now(path: str | Path) -> str | None:
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            if not _read_only(file):
                os.fsync(file)
            now = time.time_ns()
            stat = os.fstat(file)
        finally:
            os.close(file)
    except OSError:
        return None
    if is_in_memory(stat.st_dev):
        return None
    changed = max(stat.st_mtime_ns, stat.st_ctime_ns)
    tick = _TICK if stat.st_ctime_ns % _SECOND else 2 * _SECOND
    if now - changed < tick:
        return None
    return f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def file_state(path: str | Path) -> str:
    """Return inode, size and times of change of a file now; `GONE` if it is missing.

    Inside `one_look`, the value of the first call for this file.
    """
    return looked_up(("state", path), lambda: _state_now(path))


@contextmanager
def one_look() -> Iterator[None]:
    """Read the state and the stamp of each file once in this thread until the context ends,
    because many items may share a file.
    """
    if getattr(_look, "values", None) is not None:
        yield
        return
    _look.values = {}
    try:
        yield
    finally:
        _look.values = None


def _state_now(path: str | Path) -> str:
    try:
        stat = Path(path).stat()
    except (OSError, ValueError):  # a name with a zero byte
        return GONE
    # Some file systems in user space give a file a new inode at each call.
    inode = 0 if _kind(stat.st_dev).startswith("fuse") else stat.st_ino
    return f"{inode} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"


def _read_only(file: int) -> bool:
    """Return whether the file system of a file is read-only; some of these refuse a sync."""
    return bool(os.fstatvfs(file).f_flag & os.ST_RDONLY)


def is_in_memory(device: int) -> bool:
    """Return whether a device is a file system in memory."""
    return _kind(device) in _MEMORY


@lru_cache(maxsize=64)
def _kind(device: int) -> str:
    """Return the kind of the file system of a device, such as ext4; empty if it is not known."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    number = f"{os.major(device)}:{os.minor(device)}"
    kinds = [line.partition(" - ")[2].split(" ")[0] for line in mounts if number in line.split()]
    return kinds[-1] if kinds else ""


def combined_stamp(stamps: Iterable[str | None], *details: object) -> str | None:
    """Return one stamp for several and for the given texts; None if one is None."""
    return combining(*details)(stamps)


def combining(*details: object) -> Callable[[Iterable[str | None]], str | None]:
    """Return `combined_stamp` of the same details for many items."""
    head = hashlib.sha256(repr(details).encode())

    def combined(stamps: Iterable[str | None]) -> str | None:
        digest = head.copy()
        for stamp in stamps:
            if stamp is None:
                return None
            digest.update(f"\n{stamp}".encode())
        return digest.hexdigest()[:32]

    return combined


def combining_with(
    stamps: Sequence[str | None], *details: object
) -> Callable[[object], str | None]:
    """Return `combined_stamp` of the same stamps and details, and of one more detail, for many
    items."""
    head = hashlib.sha256(f"({''.join(f'{detail!r}, ' for detail in details)}".encode())
    tail = "".join(f"\n{stamp}" for stamp in stamps).encode()

    def combined(last: object) -> str | None:
        digest = head.copy()
        digest.update(f"{last!r})".encode() + tail)
        return None if None in stamps else digest.hexdigest()[:32]

    return combined


class Watch:
    """The states of all files of a run when the watch was created.

    `parts`: the sources of each item.
    """

    def __init__(self, names: Sequence[str], parts: Sequence[Sequence[Watched]]) -> None:
        self._names = names
        self.parts = parts
        with one_look():
            known: dict[tuple[int, ...], tuple[int, ...]] = {}  # items in one file share a state
            self._before = [known.setdefault(own, own) for own in self._hashes(range(len(parts)))]
        self._files: dict[str, str] = {}

    def add(self, file: str) -> None:
        """Watch one more file, on which all items or the scores of the set depend."""
        self._files[file] = file_state(file)

    def and_of(self, second: Watch) -> Watch:
        """Return a watch of both, item by item, since their creation."""
        combined = Watch((), ())
        combined._names = self._names
        combined.parts = [[*a, *b] for a, b in zip(self.parts, second.parts, strict=False)]
        combined._before = [a + b for a, b in zip(self._before, second._before, strict=False)]
        combined._files = self._files | second._files
        return combined

    @classmethod
    def joined(cls, watches: Sequence[Watch], texts: Sequence[str], names: Sequence[str]) -> Watch:
        """Return a watch of the items of several watches, one after another. Items of each also
        depend on its text, such as the name of their set.
        """
        combined = cls((), ())
        combined._names = names
        combined.parts = [
            [*parts, WatchedText(text)]
            for watch, text in zip(watches, texts, strict=True) for parts in watch.parts
        ]  # fmt: skip
        combined._before = [before for watch in watches for before in watch._before]
        for watch in watches:
            combined._files |= watch._files
        return combined

    def check(self, items: Iterable[int]) -> None:
        """Raise `ChangedError` if the files of some items have changed."""
        watched = [item for item in items if item < len(self.parts)]
        with one_look():
            for item, hashes in zip(watched, self._hashes(watched), strict=True):
                # Fewer states if the run reads fewer maps than it could.
                before = self._before[item]
                if before != hashes and not set(before).issuperset(hashes):
                    self._refuse(item)

    def check_all(self) -> None:
        """Raise `ChangedError` if the files of any item have changed."""
        self.check_files()
        self.check(range(len(self.parts)))
        with one_look():  # arrays share the metadata of their group
            for array in self._arrays():
                array.recheck()

    def check_files(self) -> None:
        """Raise `ChangedError` if a file that belongs to no item has changed."""
        for file, state in self._files.items():
            if file_state(file) != state:
                raise changed_error(file, "", file_state(file) == GONE)

    def _arrays(self) -> list[StoredArray]:
        """Return the stored arrays with the items, each once."""
        arrays = (
            self.parts.arrays()
            if isinstance(self.parts, PartsByItem)
            else (array for parts in self.parts for array in arrays_of_parts(parts))
        )
        return list({id(array): array for array in arrays}.values())

    @contextmanager
    def reading(self, items: Iterable[int]) -> Iterator[None]:
        """Raise `ChangedError` if the files of these items change until the context ends.

        It also replaces an error inside the context, because a file looks damaged while it is
        replaced.
        """
        try:
            yield
        except UqevalError:
            self.check(items)
            raise
        self.check(items)

    def _hashes(self, items: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """Yield the hashed states of each item; items of the same files are looked at once.

        Call it inside `one_look`.
        """
        files: list[Hashable] | None = None
        hashes: tuple[int, ...] = ()
        same_files = range(0)
        for item in items:
            if item not in same_files:
                same_files = range(item, self._files_end(item))
                files_of_item = [part.files for part in self.parts[item]]
                if files_of_item != files:
                    files, hashes = files_of_item, tuple(map(hash, self._states(item)))
            yield hashes

    def _files_end(self, item: int) -> int:
        return self.parts.files_end(item) if isinstance(self.parts, PartsByItem) else item + 1

    def _states(self, item: int) -> Iterator[tuple[str, str]]:
        for part in self.parts[item]:
            yield from part.states().items()

    def _refuse(self, item: int) -> None:
        before = set(self._before[item])
        for path, state in self._states(item):
            if hash((path, state)) not in before:
                raise changed_error(path, f" (item {cut(self._names[item])})", state == GONE)
        raise changed_error(f"the files of item {cut(self._names[item])}", "", False)


@contextmanager
def read_whole(part: Watched, description: str) -> Iterator[None]:
    """Raise `ChangedError` if the files of a part change until the context ends.

    `description` names what is read, for the message.
    """
    before = part.states()
    yield
    for path, state in part.states().items():
        if before.get(path) != state:
            raise ChangedError(
                f"{cut(path)} changed while {description} was read. Write each file under "
                "another name, then rename it."
            )


def changed_error(path: str, item: str, is_missing: bool) -> ChangedError:
    """Return the error for a file that has changed since the run began; `item` follows its path."""
    return ChangedError(
        f"{cut(path)}{item} {'was removed' if is_missing else 'changed'} after this run had "
        f"begun, so its results would mix old and new data. Nothing was written. Run again after "
        f"the last process has finished writing to it."
    )
