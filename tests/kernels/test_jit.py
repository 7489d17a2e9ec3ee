"""float16 is converted exactly, with the CPU's instruction and without."""

from __future__ import annotations

import ast
import errno
import fcntl
import gc
import os
import pickle
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from uqeval.kernels import _jit, _saved

compiles = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of saved kernels, which is empty."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("has_float16", [True, False])
def test_every_float16_is_converted_exactly(
    monkeypatch: pytest.MonkeyPatch, has_float16: bool
) -> None:
    finite = np.arange(0x7C00, dtype=np.int16)  # 0, all subnormal and all normal numbers
    bits = np.concatenate([finite, finite | np.int16(-0x8000)])
    if not has_float16:
        monkeypatch.setattr(_jit, "_has_float16", lambda codegen: False)

    @numba.njit
    def converted(bits):  # type: ignore[no-untyped-def]
        values = np.empty(bits.size, np.float32)
        for i in range(bits.size):
            values[i] = _jit.half_to_float32(bits[i])
        return values

    expected = np.abs(bits.view(np.float16)).astype(np.float32)
    assert converted(bits).tobytes() == expected.tobytes()


@compiles
def test_a_cached_kernel_loads_without_what_compiles(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def doubled(x):  # type: ignore[no-untyped-def]
        return 2 * x

    compiled = _jit.kernel(doubled)
    assert compiled(1.0) == 2.0

    def refuse(self: object) -> None:
        raise AssertionError("loads all of Numba")

    monkeypatch.setattr(type(compiled.targetctx), "refresh", refuse)
    cached = _jit.kernel(doubled)
    assert cached(1.0) == 2.0
    assert sum(cached.stats.cache_hits.values()) == 1


@compiles
def test_a_part_of_a_kernel_divides_as_kernels_do() -> None:
    @_jit.kernel_part
    def inverse(x):  # type: ignore[no-untyped-def]
        return np.float64(1.0) / x

    @_jit.kernel
    def sum_inverses(x):  # type: ignore[no-untyped-def]
        return inverse(x) + inverse(2 * x)

    assert sum_inverses(0.0) == np.inf  # Python raises an error
    assert inverse(4.0) == 0.25
    assert not isinstance(inverse, type(sum_inverses))


@compiles
def test_garbage_is_collected_again_after_a_kernel_is_compiled() -> None:
    seen = []

    def one() -> int:
        return 1

    @numba.extending.overload(one)
    def _one():  # type: ignore[no-untyped-def]
        seen.append(gc.isenabled())
        return one

    @numba.njit
    def two():  # type: ignore[no-untyped-def]
        return 2 * one()

    assert two() == 2
    assert seen and not any(seen)
    assert gc.isenabled()

    @numba.njit
    def refused(x):  # type: ignore[no-untyped-def]
        return x + no_such_name  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(numba.core.errors.TypingError):
        refused(1.0)
    assert gc.isenabled()


#: Array functions in Numba's module that loads SciPy.
REDUCTIONS = {"all", "any", "argmax", "argmin", "cumsum", "max", "mean", "min", "prod", "sum"}


@pytest.mark.parametrize(
    "file", sorted(Path(_jit.__file__).parent.glob("*.py")), ids=lambda f: f.stem
)
def test_kernels_have_loops_in_place_of_reductions(file: Path) -> None:
    calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    methods = [call.func for call in calls if isinstance(call.func, ast.Attribute)]
    assert not [f"{m.attr}, line {m.lineno}" for m in methods if m.attr in REDUCTIONS]


@compiles
def test_a_saved_kernel_that_makes_arrays_loads_without_the_functions_of_arrays(
    tmp_path: Path,
) -> None:
    code = """if True:
        import sys
        import numba
        import numpy as np
        from numba.core.runtime import rtsys
        from uqeval.kernels.counting import COARSE, FINE_BITS
        from uqeval.kernels.sorting import pack_keys
        x, labels, is_wanted = np.float32([2, 1, 3]), np.zeros(3, np.uint8), np.ones(COARSE, bool)
        keys = np.zeros(3, np.uint64)
        n = pack_keys(x, x, labels, 255, is_wanted, FINE_BITS, keys)
        is_loaded = "numba.np.arrayobj" in sys.modules or rtsys._init
        assert numba.njit(lambda n: np.full(n, 2.0))(3).tolist() == [2, 2, 2]  # compiled each time
        print(n, keys, is_loaded)
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", code]
    first, second = (
        subprocess.run(run, env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first.startswith("3 ") and second.endswith("False\n")
    assert first.split()[:-1] == second.split()[:-1]


def triple(x):  # type: ignore[no-untyped-def]
    return 3 * x


@compiles
@pytest.mark.parametrize("home_is_writable", [True, False])
def test_kernels_are_loaded_from_a_folder_that_is_not_writable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, home_is_writable: bool
) -> None:
    from numba.core import caching

    image, home = tmp_path / "image", tmp_path / "home"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(image))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    assert _jit.kernel(triple)(1.0) == 3.0

    def ensure(self: Any) -> None:
        if not home_is_writable or not self.get_cache_path().startswith(str(home)):
            raise PermissionError(30, "Read-only file system")
        Path(self.get_cache_path()).mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(caching._CacheLocator, "ensure_cache_path", ensure)
    loaded = _jit.kernel(triple)
    assert loaded(1.0) == 3.0
    assert (sum(loaded.stats.cache_hits.values()), sum(loaded.stats.cache_misses.values())) == (
        1,
        0,
    )
    files = set(image.rglob("*"))
    assert loaded(1) == 3  # compiled now
    assert set(image.rglob("*")) == files
    assert len(list(home.rglob("*.nbc"))) == home_is_writable
    folders = _jit.cache_folders()
    assert folders[loaded.stats.cache_path] is home_is_writable
    assert len(_saved.NOT_SAVED) == (not home_is_writable)


@compiles
def test_a_kernel_runs_although_its_cache_is_full(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    def full(self: object, name: str, data: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_saved.IndexDataCacheFile, "_save_data", full)
    monkeypatch.setattr(_saved, "NOT_SAVED", [])
    assert _jit.kernel(triple)(1.0) == 3.0
    assert [error.errno for error in _saved.NOT_SAVED] == [28]


@compiles
@pytest.mark.parametrize("ends_early", [False, True])
def test_a_kernel_that_another_process_compiles_is_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends_early: bool
) -> None:
    """The other process is this one, which holds the lock; it may end without saving."""
    other, own, waits = tmp_path / "other", tmp_path / "own", threading.Event()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(other))
    assert _jit.kernel(triple)(1.0) == 3.0
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(own))
    monkeypatch.setattr(_saved, "_FOLDER", tmp_path)
    kernel = _jit.kernel(triple)
    name = kernel._cache._shared_name((numba.types.float64,))
    lock = fcntl.flock

    def tell(file: int, operation: int) -> None:
        waits.set()
        lock(file, operation)

    with (tmp_path / name).open("w") as file, ThreadPoolExecutor(1) as pool:
        lock(file, fcntl.LOCK_EX)
        monkeypatch.setattr(_saved.fcntl, "flock", tell)
        called = pool.submit(kernel, 1.0)
        assert waits.wait(60)
        if not ends_early:
            shutil.copytree(other, own, dirs_exist_ok=True)
        file.close()
        assert called.result(60) == 3.0
    assert sum(kernel.stats.cache_hits.values()) == (not ends_early)
    assert sum(kernel.stats.cache_misses.values()) == ends_early
    assert not _saved._LOCKED  # others may load it


DAMAGES = {
    "truncated": lambda file: file.write_bytes(file.read_bytes()[:-9]),
    "cut": lambda file: file.write_bytes(file.read_bytes()[:40]),
    "empty": lambda file: file.write_bytes(b""),
    "garbage": lambda file: file.write_bytes(b"(dp0\n\xff\x00garbage" * 9),
    "another record": lambda file: file.write_bytes(pickle.dumps({"a": 1})),
}


@compiles
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_file_of_a_kernel_is_replaced(cache: Path, kind: str, damage: str) -> None:
    assert _jit.kernel(triple)(1.0) == 3.0
    (file,) = cache.rglob(f"*.{kind}")
    DAMAGES[damage](file)
    for hits in (0, 1):
        kernel = _jit.kernel(triple)
        assert kernel(1.0) == 3.0
        assert kernel.stats.cache_hits.total() == hits
    assert not _saved.NOT_SAVED


@compiles
def test_a_damaged_file_of_a_folder_that_is_not_the_own_one_is_not_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    image, home = tmp_path / "image", tmp_path / "home"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(image))
    assert _jit.kernel(triple)(1.0) == 3.0
    for file in image.rglob("*.nb?"):
        file.write_bytes(b"")
    folders = _saved._folder_locators
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(home))
    kernel = _jit.kernel(triple)

    class Image(_saved.InTreeCacheLocator):  # type: ignore[misc]
        def get_cache_path(self) -> str:
            return str(next(image.rglob("*.nbi")).parent)

    monkeypatch.setattr(_saved, "_folder_locators", lambda: [Image, *folders()])
    assert kernel(1.0) == 3.0
    assert len(list(home.rglob("*.nbc"))) == 1


@compiles
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_kernel_runs_with_a_folder_in_place_of_its_file(cache: Path, kind: str) -> None:
    assert _jit.kernel(triple)(1.0) == 3.0
    (file,) = cache.rglob(f"*.{kind}")
    file.unlink()
    file.mkdir()
    assert _jit.kernel(triple)(1.0) == 3.0
    assert [error.errno for error in _saved.NOT_SAVED] == [errno.EISDIR]


@compiles
def test_the_file_of_another_signature_is_not_loaded(cache: Path) -> None:
    kernel = _jit.kernel(triple)
    assert (kernel(1.0), kernel(1)) == (3.0, 3)
    floats, whole = sorted(cache.rglob("*.nbc"))
    shutil.copy(whole, floats)  # as a process that is killed before it writes leaves it
    assert _jit.kernel(triple)(1.5) == 4.5


@compiles
def test_a_kernel_is_not_compiled_when_too_many_files_are_open(
    monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    kernel = _jit.kernel(triple)

    def refuse(self: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(_saved.IndexDataCacheFile, "_load_index", refuse)
    with pytest.raises(OSError, match="Too many open files"):
        kernel(1.0)
    assert not list(cache.rglob("*.nb?"))


def test_an_environment_variable_that_numba_refuses() -> None:
    run = [sys.executable, "-c", "import uqeval.kernels._jit"]
    environment = os.environ | {"NUMBA_NUM_THREADS": "0"}
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    says = "uqeval.errors.UsageError: Numba refuses an environment variable: Number of threads"
    assert done.stderr.splitlines()[-1].startswith(says)


@pytest.fixture(autouse=True)
def _no_other_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the kernels of these tests."""
    monkeypatch.setattr(_jit, "KERNELS", [])
    monkeypatch.setattr(_saved, "NOT_SAVED", [])
