"""Locks of a store's parts between writing processes, as files in the store's folder.

The lock of a part is a file that only one process can create. It contains the writer's id, and one
more byte after the part is written. In addition, each writer has a file and holds a system
lock on it. The system releases this lock when the process dies. So other writers see whether the
writer is still running.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from uqeval.disk.locks import clear_beside, is_gone
from uqeval.disk.publishing import hidden_path, sync_tree, writing
from uqeval.errors import OutputError, cut
from uqeval.stores.writing.verification import differences
from uqeval.stores.zarr.writer import (
    HIDDEN,
    SETTINGS,
    attributes_of,
    is_complete,
    is_taken,
    put_in_place,
    remove_idle,
)

#: The hint if a process that expects to be alone may not be.
HINT = "If several processes write to this store, give each of them their number as ranks=N."


_ID_BYTES = 32
#: What the hidden folder of an unfinished store has.
_OF_LOCK = ("lock", "parts", "writers")
#: The number of attempts to create or open a store, and the seconds between them.
_TRIES, _MOMENT = 100, 0.02
#: What a writer appends to its file, after the number of its process.
_WRITES, _LEAVES = "+", "-"


def begin(
    root: Path,
    create: Callable[[Path], None],
    settings: Mapping[str, Any],
    *,
    shared: bool,
    resume: bool,
    restart: bool,
    damaged: Callable[[set[str]], set[str]],
    final: Path,
) -> tuple[WriteLock, set[str]] | None:
    """Create the store at `root`, or join its writers; return the lock and the parts that are
    written. Return None if another process completes the store to resume meanwhile.

    `create` makes the groups of an empty store in a folder. One of several processes creates the
    store, atomically. `final`: where a complete store is. See `WriteLock.join` for the rest. Raises
    `OutputError`.
    """
    for _ in range(_TRIES):
        if not is_taken(root):
            clear_beside(root)
            new = hidden_path(root)
            claims = WriteLock(new)
            try:
                create(new)
                claims.create(settings)
                with writing(new):
                    sync_tree(new)
                if put_in_place(new, root):
                    claims.moved(root)
                    return claims, set()
            except BaseException:  # also for an interrupt: remove the hidden folder
                shutil.rmtree(new, ignore_errors=True)
                raise
            claims.leave(clean=False)
        if not restart and is_complete(root) is not False:
            raise OutputError(
                f"{cut(root)} is a finished store. Give overwrite=True to replace it, or choose "
                "another path."
            )
        claims, joined = WriteLock(root), _identity(root)
        parts = claims.join(
            settings, shared=shared, resume=resume, restart=restart, damaged=damaged
        )
        if parts is not None:
            return claims, parts
        if resume and joined is not None and joined == _identity(final) and is_complete(final):
            return None
        has_lock = all((root / HIDDEN / name).exists() for name in _OF_LOCK)
        if is_complete(root) is False and (root / HIDDEN).exists() and not has_lock:
            if not restart or resume:
                raise OutputError(
                    f"{cut(root)} is an unfinished store without its lock: a process was killed "
                    "while it removed the lock, or the store was copied without its empty "
                    "folders. Give only overwrite=True to begin again."
                )
            remove_idle(root)
        elif is_complete(root) is False and not (root / HIDDEN).exists():
            raise OutputError(
                f"{cut(root)} is an unfinished store of another kind of writer. Choose another "
                "path, or give overwrite=True."
            )
        time.sleep(_MOMENT)  # another process removes or completes it
    raise OutputError(
        f"{cut(root)} cannot be created or opened: other processes remove or complete it again "
        "and again, or its file system gives a file another number each time. Open the writer "
        "again, or write to another disk."
    )


def attributes_to_resume(root: Path) -> dict[str, Any]:
    """Return the attributes of the store at `root`, also of an unfinished one whose metadata are
    damaged; empty without a store. Raises `OutputError` if it cannot be read."""
    if attributes := attributes_of(root):
        return attributes
    with suppress(OSError, ValueError):
        return dict(json.loads((root / HIDDEN / SETTINGS).read_text(encoding="utf-8")))
    return {}


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return what identifies a folder, also after it is moved; None if there is none."""
    with suppress(FileNotFoundError):
        status = folder.stat()
        return status.st_dev, status.st_ino
    return None


class WriteLock:
    """The locks of one writer on parts of the store at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / HIDDEN
        self._id = uuid.uuid4().hex
        self._lock: int | None = None
        self._process = os.getpid()
        self._noted = ""

    def create(self, settings: Mapping[str, Any]) -> None:
        """Create the hidden folder of a new store and join it. Raises `OutputError`."""
        with writing(self.folder):
            for name in ("parts", "writers", "new"):
                (self.folder / name).mkdir(parents=True)
            (self.folder / "lock").touch()
            (self.folder / SETTINGS).write_text(json.dumps(settings), encoding="utf-8")
            self._register()

    def moved(self, root: Path) -> None:
        """Use `root`, to which the store's folder was renamed."""
        self.root, self.folder = root, root / HIDDEN

    def join(
        self, settings: Mapping[str, Any], *, shared: bool, resume: bool, restart: bool,
        damaged: Callable[[set[str]], set[str]],
    ) -> set[str] | None:  # fmt: skip
        """Join the writers of an unfinished store; return the parts that are written already.

        `shared`: other processes are expected. `resume`: release the locks of dead writers on parts
        that they did not write, and written parts that are `damaged`. `restart`: remove a store
        without a living writer. Returns None if there is no store to join. Raises `OutputError` for
        a store with other settings, and for one without a living writer unless `resume` or
        `restart` is set.
        """
        try:
            with self.exclusively():
                living, abandoned = self._writers()
                idle = not living and (bool(abandoned) or not shared)
                if living and not shared:
                    raise OutputError(self._taken(living))
                if restart and idle and not resume:
                    remove_idle(self.root)  # no writer joins a part of it
                    return None
                if (abandoned or idle) and not resume:
                    raise OutputError(
                        f"{cut(self.root)} is unfinished: the job that wrote it ended early. Set "
                        f"resume=True to continue, or overwrite=True to begin again."
                        + ("" if shared else f" {HINT}")
                    )
                self._compare(settings)
                if resume:
                    self._free(living)
                    if not living:
                        self.remove_partial_chunks()
                    for writer in abandoned:
                        (self.folder / "writers" / writer).unlink(missing_ok=True)
                    if not living:  # otherwise a living writer has checked them
                        for part in damaged(self.written()):
                            self.release(part)
                self._register()
                return self.written()
        except FileNotFoundError:
            return None

    def take(self, part: str) -> bool:
        """Lock a part for this writer. Return False if another writer has it, or if the store is
        complete.
        """
        with writing(self.folder):
            try:
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
                file = os.open(self._part(part), flags, 0o666)
            except (FileExistsError, FileNotFoundError):
                return False
            try:
                os.write(file, self._id.encode())
                self._note(_WRITES)
            except OSError:
                self.release(part)
                raise
            finally:
                os.close(file)
        return True

    def release(self, part: str) -> None:
        """Release a part that could not be written, or must be written again."""
        self._part(part).unlink(missing_ok=True)

    def finish(self, part: str) -> None:
        """Record that a part is written. Raises `OutputError`."""
        with writing(self.folder), self._part(part).open("ab") as file:
            file.write(b"+")

    def written(self) -> set[str]:
        """Return the parts that any process has written. Raises `FileNotFoundError` after the store
        is complete.
        """
        with os.scandir(self.folder / "parts") as entries:
            return {entry.name for entry in entries if entry.stat().st_size > _ID_BYTES}

    def is_written(self, part: str) -> bool:
        """Return whether any process has written a part."""
        try:
            return self._part(part).stat().st_size > _ID_BYTES
        except FileNotFoundError:
            return False

    def over(self) -> bool:
        """Return whether the store has been completed."""
        return not self.folder.exists()

    def leave(self, *, clean: bool) -> None:
        """Leave the store; without `clean`, this writer counts as killed.

        A fork of the process that joined the store only closes the file, because that process
        leaves later. If that process has ended, the fork leaves in its place.
        """
        if self._lock is None:
            return
        if self._process != os.getpid() and not is_gone(self._process, time.time()):
            os.close(self._lock)
            self._lock = None
            return
        path = self.folder / "writers" / self._id
        try:
            if clean and path.exists():
                with writing(path):
                    path.unlink(missing_ok=True)
        finally:
            with suppress(OSError):  # forked data loaders may still have the file open
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def leaving(self) -> Iterator[set[str]]:
        """Yield the other living writers of the store; leave it at the end.

        Other writers can neither join nor leave meanwhile, so one of them is the last. Raises
        `FileNotFoundError` if another process has completed the store.
        """
        with self.exclusively():
            # Without system locks, two may leave at once. They must not wait for each other.
            self._note(_LEAVES)
            yield self._writers()[0] - {self._id}
            self.leave(clean=True)

    def may_write(self, writer: str) -> bool:
        """Return whether another writer has written a part, and is not leaving."""
        with suppress(FileNotFoundError):  # it has left
            noted = (self.folder / "writers" / writer).read_text(encoding="ascii")
            return _WRITES in noted and _LEAVES not in noted
        return False

    def _note(self, mark: str) -> None:
        """Append a mark to this writer's file, once."""
        if self._lock is not None and mark not in self._noted:
            os.write(self._lock, mark.encode())
            self._noted += mark

    def end(self) -> None:
        """Remove the hidden folder of a complete store."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _part(self, part: str) -> Path:
        return self.folder / "parts" / part

    def _register(self) -> None:
        path = self.folder / "writers" / self._id
        with writing(path):
            self._lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        _try_lock(self._lock)
        self._process = os.getpid()
        with writing(path):
            os.write(self._lock, str(self._process).encode())

    def remove_partial_chunks(self) -> None:
        """Remove partial chunks of killed writers; no writer may be active."""
        for leftover in self.root.rglob("*.partial"):
            with suppress(OSError):
                leftover.unlink()

    def _taken(self, living: set[str]) -> str:
        """Return the message that another process writes to the store."""
        writer = self.folder / "writers" / min(living)
        pid = writer.read_text(encoding="ascii").rstrip(_WRITES + _LEAVES) or "another process"
        return (
            f"{self.root} is being written by process {pid}. Wait until it has ended, or, if "
            f"several processes write one store together, give ranks=N to each."
        )

    def _compare(self, settings: Mapping[str, Any]) -> None:
        try:
            settings_of_first = json.loads((self.folder / SETTINGS).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise OutputError(
                f"{cut(self.root)} is an unfinished store of another kind of writer. Choose "
                "another path, or give overwrite=True."
            ) from error
        if different := differences(settings_of_first, json.loads(json.dumps(settings))):
            raise OutputError(
                f"{cut(self.root)} was started with other settings ({cut(different)}). All "
                "writers of a store need the same settings."
            )

    def _writers(self) -> tuple[set[str], set[str]]:
        """Return the ids of living and of dead writers."""
        living: set[str] = set()
        abandoned: set[str] = set()
        for path in (self.folder / "writers").iterdir():
            with suppress(FileNotFoundError):  # without system locks, it may leave meanwhile
                file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    (abandoned if _try_lock(file) else living).add(path.name)
                finally:
                    os.close(file)
        return living, abandoned

    def _free(self, living: set[str]) -> None:
        for part in (self.folder / "parts").iterdir():
            with suppress(FileNotFoundError):
                owner = part.read_text(encoding="ascii")
                if len(owner) == _ID_BYTES and owner not in living:
                    part.unlink()
                elif len(owner) < _ID_BYTES and not living:
                    part.unlink()  # its writer died between two system calls

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep other writers from joining, from leaving and from this, until the end.

        Raises `FileNotFoundError` if another process has completed the store.
        """
        path = self.folder / "lock"
        with _writing_if_present(path):
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                # On a file system without system locks, the locks of parts still work.
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_EX)
                if not os.path.samestat(os.fstat(file), path.stat()):
                    raise FileNotFoundError(path)  # moved during the wait
                yield
            finally:
                os.close(file)


@contextmanager
def _writing_if_present(path: Path) -> Iterator[None]:
    """Lock as `writing` does, but let `FileNotFoundError` through: another process has removed or
    finished the store.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        with writing(Path(error.filename or path)):
            raise


def _try_lock(file: int) -> bool:
    """Return whether the system lock was free. Without system locks, all writers count as
    living.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
