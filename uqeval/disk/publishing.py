"""Atomic writes: write a file or folder under a temporary name, then rename it.

A reader of the final name finds the complete old content or the complete new one, even after a
crash or a power loss: the content is synced to disk before the rename, and the folder after it.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from stat import S_ISREG
from typing import IO, Any

from uqeval.disk.files import noted_digest, resolved
from uqeval.disk.locks import hidden, hold
from uqeval.errors import OutputError, cut
from uqeval.threads import Threads

#: Error codes of file systems that cannot sync folders.
_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.EACCES})
#: Error codes of systems that cannot exchange two names.
_NO_EXCHANGE = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EXDEV})
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
#: Syncs wait for the disk; several at once share one commit of its journal.
_SYNCS = 8

#: Errors of a full disk.
_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})

_numbers = itertools.count()


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn an `OSError` from writing, moving or removing `path` into an `OutputError`.

    It names the file that failed if that is below `path`, else `path`. A closed pipe stays one.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        file = Path(str(path) if error.filename is None else os.fsdecode(error.filename))
        file, place = (Path(_without_hidden(str(p))) for p in (file, path))
        hint = "Check the disk and the permissions."
        if error.errno in _SPACE:
            hint = "Free some space there, or write elsewhere."
        elif error.errno in (errno.EMFILE, errno.ENFILE):
            hint = "Raise the limit of open files: ulimit -n 4096."
        elif error.errno == errno.ENAMETOOLONG:
            hint = "Give shorter names."
        raise OutputError(
            f"{cut(file if file.is_relative_to(place) else place)} cannot be written: "
            f"{error.strerror or error}. {hint}"
        ) from error


def _without_hidden(path: str) -> str:
    """Return a path in which hidden names of this process are those of the outputs."""
    return re.sub(rf"(?<![^/])\.([^/]+)\.{os.getpid()}-[0-9]+(?![^/])", r"\1", path)


@contextmanager
def new_file(path: str | Path, *, revert: bool = True) -> Iterator[IO[bytes]]:
    """Yield a file whose content replaces `path` when the context ends without an exception.

    If `path` is a link, its target is replaced. The mode of the old file stays. After an exception
    the old content is unchanged, and no temporary file remains. Raises `OSError`, also for a device
    or a pipe, which a file must not replace.
    """
    target = resolved(path)
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(target))
    temporary = hidden_path(target)
    file = temporary.open("xb")
    try:
        with file:
            hold(file.fileno())
            _keep_mode(file, target)
            yield file
            put_file(file, temporary, target, revert=revert)
    except BaseException:  # an interrupt, too
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def write_file(path: str | Path, data: bytes, *, revert: bool = True) -> None:
    """Replace the content of `path` by `data`; see `new_file`. Raises `OSError`."""
    with new_file(path, revert=revert) as file:
        file.write(data)


def put_file(
    file: IO[Any], temporary: Path, path: Path, *, keep_older: bool = False, revert: bool = True
) -> None:
    """Rename the open file `temporary` to `path`, its content and the rename synced to disk.

    If it fails, it restores the older file at `path`, unless `revert=False` (for files in a folder
    that the caller discards). `keep_older` keeps the older file as `older_file(path)` until
    `drop_older` or `restore_older`. Raises `OSError`.
    """
    file.flush()
    _keep_mode(file, path)
    os.fsync(file.fileno())
    older = older_file(path) if keep_older else hidden_path(path)
    is_new = revert and not os.path.lexists(path)
    has_older = False
    try:
        has_older = revert and link_aside(path, older, rename=keep_older)
        temporary.replace(path)
        sync_folder(path.parent)
        if has_older and not keep_older:
            older.unlink()
    except BaseException:  # an interrupt, too
        with suppress(OSError):
            if temporary.exists() and os.path.lexists(path):
                older.unlink(missing_ok=True)  # nothing was renamed
            elif has_older or temporary.exists():
                _move_back(older, path)
            elif is_new and not temporary.exists():
                path.unlink()
        raise


def _keep_mode(file: IO[Any], path: Path) -> None:
    """Give an open file the mode of the file that it replaces, if there is one."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        if S_ISREG(mode):
            os.fchmod(file.fileno(), mode & 0o777 | 0o400)  # its owner can read it


def link_aside(path: Path, name: Path, *, rename: bool = False) -> bool:
    """Give the file at `path` a second name; return whether that worked.

    Without hard links in the file system, rename the file if `rename`, else do nothing. Raises
    `OSError`.
    """
    try:
        if os.path.lexists(name):
            name.unlink()
        os.link(path, name, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        if not rename:
            return False
        path.replace(name)
    return True


def older_file(path: Path) -> Path:
    """Return the path of an older file that stays until all files of its group are replaced."""
    return hidden(path, "old")


def drop_older(path: Path) -> None:
    """Remove the older file that `put_file` kept, if there is one. Raises `OSError`."""
    older_file(path).unlink(missing_ok=True)


def restore_older(path: Path) -> None:
    """Move the older file that `put_file` kept back to `path`; remove `path` if there was none.

    Raises `OSError`.
    """
    older = older_file(path)
    if older.exists():
        _move_back(older, path)
    else:
        path.unlink(missing_ok=True)
    sync_folder(path.parent)


def settle_states(states: Path, report: Path) -> None:
    """Keep the new states if `report` belongs to them; otherwise restore the older ones.

    An interrupt may come before the report is replaced, or after. Raises `OSError`.
    """
    if report.is_file() and _is_named(states, [report.read_bytes()]):
        drop_older(states)
    else:
        restore_older(states)


def repair_states(states: Path, reports: Iterable[Path]) -> None:
    """Finish or undo the replacement of a report and its states that a killed process started.

    The process kept the older states. Restore them if one of `reports` names their digest and none
    names that of the newer ones; otherwise remove them. Without a report, do nothing. Raises
    `OSError`.
    """
    older = older_file(states)
    texts = [path.read_bytes() for path in reports] if older.is_file() else []
    if not texts:
        return
    if not _is_named(states, texts) and (_is_named(older, texts) or not states.exists()):
        _move_back(older, states)
    else:
        older.unlink()
    sync_folder(states.parent)


def publish_folder(new: Path, path: Path) -> None:
    """Move the folder `new` to `path`; remove an older folder there once the new one is safe.

    The content of `new` must be synced (`sync_tree`). Both are in the same folder. If it fails,
    `path` is as it was and the new folder has its own name. Raises `OSError`.
    """
    if not os.path.lexists(path) or (path.is_dir() and not any(path.iterdir())):
        new.rename(path)
        try:
            sync_folder(path.parent)
        except OSError:
            with suppress(OSError):
                path.rename(new)
            raise
        return
    old = new if _exchange(new, path) else _rename_both(new, path)
    try:
        sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            if old != new or not _exchange(new, path):
                path.rename(new)
                old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def restore_folder(path: Path) -> None:
    """Move the older folder back to `path` if a process was killed while it replaced it.

    Only needed where two names cannot be exchanged in one step. Raises `OSError`.
    """
    old = _aside(path)
    if old.is_dir() and not os.path.lexists(path):
        old.rename(path)
        sync_folder(path.parent)


def sync_tree(folder: Path) -> None:
    """Sync every file and folder below `folder`, and `folder` itself. Raises `OSError`."""
    folders, files = [], []
    for root, _, names in os.walk(folder, onerror=_raise):
        folders.append(Path(root))
        files += [Path(root, name) for name in names]
    with Threads(_SYNCS) as threads:
        threads.map(_sync_file, files)
    for path in reversed(folders):
        sync_folder(path)


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to disk, so that a rename survives a power loss.

    Raises `OSError`.
    """
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(file)


def hidden_path(path: Path) -> Path:
    """Return a hidden name in the folder of `path`, unique to this process and call.

    `uqeval.disk.locks` recognises such names, to remove the files of killed processes.
    """
    return hidden(path, f"{os.getpid()}-{next(_numbers)}")


def _sync_file(path: Path) -> None:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _raise(error: OSError) -> None:
    raise error


def _is_named(states: Path, texts: Iterable[bytes]) -> bool:
    """Return whether one of the reports names the digest that a states file records."""
    digest = noted_digest(states) if states.is_file() else None
    return digest is not None and any(digest.encode() in text for text in texts)


def _move_back(older: Path, path: Path) -> None:
    older.replace(path)
    older.unlink(missing_ok=True)  # two names of one file both stay after a rename


def _aside(path: Path) -> Path:
    return hidden(path, "uqeval-old")  # a name that no user gives


def _rename_both(new: Path, path: Path) -> Path:
    """Rename `path` to a backup name and `new` to `path`; return the backup's path."""
    old = _aside(path)
    shutil.rmtree(old, ignore_errors=True)
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    return old


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two names in one step; return False if the system cannot. Raises `OSError`."""
    rename = _renameat2()
    if rename is None:
        return False
    names = os.fsencode(first), os.fsencode(second)
    if rename(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(second))


@cache
def _renameat2() -> Any:
    """Return Linux's renameat2, or None elsewhere."""
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    path = (ctypes.c_int, ctypes.c_char_p)  # from a folder on
    function.argtypes = [*path, *path, ctypes.c_uint]
    return function
