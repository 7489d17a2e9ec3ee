"""Compiled kernels that are saved on disk: in which folders, and how they are loaded fast.

Processes share compilation: one compiles a kernel, the others wait and load it. They lock files in
a common folder; the system unlocks the files of a process that ends.
"""

from __future__ import annotations

import errno
import fcntl
import inspect
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numba
from numba.core import environment
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.runtime import nrtdynmod, rtsys
from numba.core.sigutils import normalize_signature

_FOLDER: Path | None = None
#: By name: the locked files of kernels that this process compiles.
_LOCKED: dict[str, int] = {}


def share(folder: Path | None) -> None:
    """Compile together with the processes that share `folder`; None: alone."""
    global _FOLDER
    _FOLDER = folder


def begin(name: str) -> bool:
    """Wait while another process compiles a kernel; return whether processes compile together.

    Afterwards, load the kernel if it is saved now. Otherwise compile it; others wait until `end`.
    """
    if _FOLDER is None or name in _LOCKED:
        return False
    file = -1
    try:
        file = os.open(_FOLDER / name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC)
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:  # the folder is gone, too many files are open, or the file system has no locks
        if file >= 0:
            os.close(file)
        return False
    _LOCKED[name] = file
    return True


def is_begun(name: str) -> bool:
    """Return whether another process compiles a kernel now."""
    if _FOLDER is not None:
        with suppress(FileNotFoundError), (_FOLDER / name).open("r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return True
    return False


def end(name: str) -> None:
    """Let others load the kernel, or compile it."""
    if (file := _LOCKED.pop(name, None)) is not None:
        os.close(file)


def load_without_scipy() -> None:
    """Load Numba's array functions without SciPy.

    Numba would import SciPy's linear algebra only to check whether there is a BLAS, which takes
    longer than a small run. No kernel needs it. Code that needs it loads it later.
    """
    from numba.np import linalg

    if find_spec("scipy") is None or not hasattr(linalg, "ensure_blas"):
        return
    ensure_blas, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = ensure_blas


_load_environment = environment._rebuild_env
#: Errors of saving compiled kernels, in order.
NOT_SAVED: list[OSError] = []


def _folder_locators() -> list[Any]:
    """Return the kinds of cache folders in the order of preference: Numba's own order."""
    provided = [UserProvidedCacheLocator] if numba.config.CACHE_DIR else []
    return [*provided, InTreeCacheLocator, UserWideCacheLocator]


def _environment(module: str, constants: Any, name: str) -> Any:
    """Return the environment of a function of a saved kernel without loading its module.

    A kernel that calls `np.empty` has an environment of Numba's array functions: they take a tenth
    of the time of a small run to load, and compiled code without constants never uses them.
    """
    is_light = not constants and module not in sys.modules
    return _load_environment(__name__ if is_light else module, constants, name)


@contextmanager
def _light_environments() -> Iterator[None]:
    """Use `_environment` while a saved kernel is loaded; the caller holds the compiler's lock."""
    environment._rebuild_env = _environment
    try:
        yield
    finally:
        environment._rebuild_env = _load_environment


@cache
def _initialize_runtime(target_context: Any) -> None:
    """Let saved kernels allocate memory, without compiling Numba's own functions for it.

    A saved kernel contains those that it calls; to compile them takes as long as to load five
    kernels. Numba initializes its runtime as a whole before it compiles a kernel.
    """
    if rtsys._init:
        return
    compiled = nrtdynmod.compile_nrt_functions
    nrtdynmod.compile_nrt_functions = lambda context: None
    try:
        rtsys.initialize(target_context)
    finally:
        nrtdynmod.compile_nrt_functions = compiled
        rtsys._init = False


class _ReadOnlyLocator(InTreeCacheLocator):  # type: ignore[misc]
    """Cache folder of a kernel if none is writable: kernels are only loaded from it."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the locator without a check that its folder is writable."""
        return cls(py_func, py_file)


class _KernelCacheFolder(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar = [*CompileResultCacheImpl._locator_classes, _ReadOnlyLocator]


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Index and data files of a kernel. A damaged file counts as missing, so it is replaced.

    Raises `OSError` only if the process has too many open files: compiling would not help.
    """

    def _load_index(self) -> dict[Any, str]:
        """Return the name of the data file by key."""
        try:
            names = super()._load_index()
        except Exception as error:  # Numba unpickles the file, which can raise anything
            if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return {}
        return names if isinstance(names, dict) else {}


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Cache on disk whose kernels load without the parts of Numba that only compile.

    Numba's own cache imports 70 modules first, a third of the time that Numba takes to load. It
    also ignores folders that are not writable, such as those of a container's image. Here,
    kernels are loaded from all folders, and saved to the first that is writable.
    """

    _impl_class = _KernelCacheFolder

    def __init__(self, function: Any) -> None:
        super().__init__(function)
        self._cache_file = self._file_in(self._impl.locator)

    def _file_in(self, locator: Any) -> _CacheFile:
        """Return the index and data files in the folder of a locator."""
        return _CacheFile(
            locator.get_cache_path(), self._impl.filename_base, locator.get_source_stamp()
        )

    @property
    def is_read_only(self) -> bool:
        """Whether kernels are only loaded, since no folder is writable."""
        return isinstance(self._impl.locator, _ReadOnlyLocator)

    def has_any(self) -> bool:
        """Return whether a compiled form is in a folder that this process loads from."""
        file, name = inspect.getfile(self._py_func), f"{self._impl.filename_base}.nbi"
        folders = [kind(self._py_func, file).get_cache_path() for kind in _folder_locators()]
        return any((Path(folder) / name).is_file() for folder in (self.cache_path, *folders))

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled kernel, or None; then everything that compiles is loaded."""
        _initialize_runtime(target_context)
        with _light_environments():
            compiled = self._load_saved(signature, target_context)
            if compiled is None:
                compiled = self._load_from_other_folders(signature, target_context)
            if compiled is None and begin(name := self._shared_name(signature)):
                compiled = self._load_saved(signature, target_context)
                if compiled is not None:
                    end(name)
        if compiled is None:
            load_without_scipy()
        return compiled

    def is_begun(self, signature: Any) -> bool:
        """Return whether another process compiles the kernel now."""
        return is_begun(self._shared_name(signature))

    def _load_saved(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel from this cache's own folder, or None."""
        return self._load_from(self._cache_file, signature, target_context)

    def _load_from(self, file: _CacheFile, signature: Any, target_context: Any) -> Any:
        """Return the kernel from a file; None if it is not there or damaged.

        A process that is killed between its writes can leave the data of another signature.
        """
        key = self._index_key(signature, target_context.codegen())
        try:
            if (data := file.load(key)) is None:
                return None
        except OSError:
            raise
        except Exception:  # of pickle
            return None
        try:
            compiled = self._impl.rebuild(target_context, data)
            is_same = compiled.signature.args == normalize_signature(signature)[0]
        except Exception:  # of LLVM
            return None
        return compiled if is_same else None

    def _shared_name(self, signature: Any) -> str:
        """Return the name of the kernel among processes that compile together."""
        types = sha256(str(normalize_signature(signature)[0]).encode())
        return f"{self._impl.filename_base}-{types.hexdigest()}"

    def _load_from_other_folders(self, signature: Any, target_context: Any) -> Any:
        """Return the kernel from a folder that is not this cache's own, or None."""
        file = inspect.getfile(self._py_func)
        for locator in (kind(self._py_func, file) for kind in _folder_locators()):
            if locator.get_cache_path() != self._cache_path:
                compiled = self._load_from(self._file_in(locator), signature, target_context)
                if compiled is not None:
                    return compiled
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Save a kernel, unless the folder is read-only or the disk is full.

        The kernel is in memory already. Without a place on disk, the next run compiles it again.
        """
        try:
            self._save(signature, data)
        finally:
            end(self._shared_name(signature))

    def _save(self, signature: Any, data: Any) -> None:
        if self.is_read_only:
            NOT_SAVED.append(OSError(errno.EROFS, "no cache folder is writable", self._cache_path))
        else:
            try:
                super().save_overload(signature, data)
            except OSError as error:
                NOT_SAVED.append(error)


def is_cached(loop: Any) -> bool:
    """Return whether a compiled form of a kernel is in a folder that this process loads from."""
    return isinstance(loop._cache, KernelCache) and loop._cache.has_any()


def is_saved(loop: Any) -> bool:
    """Return whether a kernel is saved when it is compiled."""
    return isinstance(loop._cache, KernelCache) and not loop._cache.is_read_only
