"""The one place where Numba is configured, and the few bit tricks that it does not offer itself.

Kernels are serial, release the GIL and are cached on disk: threads belong to the engine, and
Numba's own thread layer aborts the process when two threads enter it at once. Fast-math is off,
because it would let the compiler change results. With `NUMBA_DISABLE_JIT=1` every kernel is plain
Python.
"""

from __future__ import annotations

import gc
import os
import platform
import struct
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from uqeval.errors import UsageError


@contextmanager
def _fast_import() -> Iterator[None]:
    """Import Numba without garbage collection, which frees nothing, and without `coverage`.

    Numba imports `coverage` if it is installed, which takes longer than LLVM. A process that runs
    under coverage has imported it already.
    """
    collects, is_measured = gc.isenabled(), "coverage" in sys.modules
    gc.disable()
    if not is_measured:
        sys.modules["coverage"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        if not is_measured:
            del sys.modules["coverage"]
        if collects:
            if gc.get_freeze_count():  # the command line keeps what is imported
                gc.freeze()
            gc.enable()


with _fast_import():
    try:
        import numba
    except ValueError as error:  # NUMBA_NUM_THREADS below 1
        raise UsageError(
            f"Numba refuses an environment variable: {error} Check those that begin with NUMBA_."
        ) from error
    from numba import types as types
    from numba.core import event
    from numba.extending import intrinsic, register_jitable
    from numba.extending import overload as overload

    from uqeval.kernels._saved import KernelCache, is_saved, load_without_scipy


def _use_wide_vectors() -> None:
    """Let LLVM use vectors of 512 bits where the CPU computes with them at full speed.

    LLVM prefers 256 bits on all Intel CPUs, because the first ones with AVX-512 slow down for wider
    vectors. CPUs with AVX512-VBMI2 (Ice Lake and later) do not: with 512 bits, summing float16
    samples takes 0.86 of the time, with entropies 0.78. The results have the same bits.
    NUMBA_CPU_NAME and NUMBA_CPU_FEATURES override this choice.
    """
    from numba.core.codegen import get_host_cpu_features

    if numba.config.CPU_NAME is None and numba.config.CPU_FEATURES is None:
        features = get_host_cpu_features()
        if "+avx512vbmi2" in features.split(","):
            numba.config.CPU_FEATURES = f"{features},-prefer-256-bit"


#: Whether kernels are plain Python.
IS_INTERPRETED = bool(numba.config.DISABLE_JIT)
#: All kernels of the modules that are imported.
KERNELS: list[Any] = []


class _CollectionPause(event.Listener):  # type: ignore[misc]
    """Pause of garbage collection during compilation: it takes a tenth of the time, and frees
    little."""

    def __init__(self) -> None:
        self._lock, self._compiling, self._collects = Lock(), 0, False

    def on_start(self, event: Any) -> None:
        """Stop the collection, unless another thread or the kernel's caller has stopped it."""
        with self._lock:
            if self._compiling == 0:
                self._collects = gc.isenabled()
                gc.disable()
            self._compiling += 1

    def on_end(self, event: Any) -> None:
        """Start it again after the last kernel."""
        with self._lock:
            self._compiling -= 1
            if self._compiling == 0 and self._collects:
                gc.enable()


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` lazily, for the dtypes of its first call, cached on disk.

    Write loops, not methods such as `values.sum()`: a saved kernel with such methods loads more
    parts of Numba, and SciPy, before it runs.

    If no cache folder is writable, every run compiles the kernel, unless a read-only folder has it.
    """
    dispatcher = numba.njit(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)
    if numba.config.DISABLE_JIT:
        return dispatcher
    KERNELS.append(dispatcher)
    try:
        dispatcher._cache = KernelCache(function)
    except RuntimeError:  # "no locator available"
        load_without_scipy()
    return dispatcher


def kernel_part(function: Callable[..., Any]) -> Any:
    """Let kernels call `function`: Numba compiles it into each of them; elsewhere it is plain
    Python.

    As a kernel it would also be compiled and saved alone, which takes a sixth longer.
    """
    return register_jitable(nogil=True, error_model="numpy", no_cfunc_wrapper=True)(function)


def compiled_and_loaded() -> tuple[int, int]:
    """Return how many kernels this process has compiled, and how many it has loaded from a cache.

    A kernel counts once for each combination of dtypes.
    """
    stats = [dispatcher.stats for dispatcher in KERNELS]
    misses, hits = ([s.cache_misses for s in stats], [s.cache_hits for s in stats])
    return sum(map(Counter.total, misses)), sum(map(Counter.total, hits))


def target_cpu() -> str:
    """Return the name of the CPU that kernels are compiled for."""
    from llvmlite.binding import get_host_cpu_name

    return str(numba.config.CPU_NAME or get_host_cpu_name())


def cache_folders() -> dict[str, bool]:
    """Return the folder of each kernel's cache, and whether kernels are saved to it."""
    return {
        loop._cache.cache_path: is_saved(loop)
        for loop in KERNELS
        if isinstance(loop._cache, KernelCache)
    }


if not numba.config.DISABLE_JIT:
    _use_wide_vectors()
    event.register("numba:compile", _CollectionPause())


def _reinterpret(source: Any, target: Any) -> Any:
    """Return an intrinsic that reads the bits of a `source` number as a `target` number."""

    @intrinsic
    def reinterpret(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(target))

        return target(source), generate

    return reinterpret


def _has_float16(codegen: Any) -> bool:
    """Return whether the target CPU converts float16: x86 with F16C, and any ARM64."""
    _, _, features = codegen.magic_tuple()
    return "+f16c" in features.split(",") or platform.machine() in ("aarch64", "arm64")


def _half_to_float32(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write LLVM code that converts the bits of a float16 without its sign to a float32.

    Uses the CPU's instruction if there is one. Otherwise it shifts exponent and mantissa of a
    normal number, and multiplies a subnormal one, as an integer, by 2^-24. The bits are the same,
    and no subnormal float32 occurs, with which CPUs compute 100 times slower.
    """
    from llvmlite import ir

    half, word, single = ir.IntType(16), ir.IntType(32), ir.FloatType()
    bits = builder.and_(arguments[0], ir.Constant(half, 0x7FFF))
    if _has_float16(context.codegen()):
        return builder.fpext(builder.bitcast(bits, ir.HalfType()), single)
    wide = builder.zext(bits, word)
    moved = builder.add(builder.shl(wide, ir.Constant(word, 13)), ir.Constant(word, 112 << 23))
    small = builder.fmul(builder.sitofp(wide, single), ir.Constant(single, 2.0**-24))
    is_small = builder.icmp_unsigned("<", bits, ir.Constant(half, 0x400))
    return builder.select(is_small, small, builder.bitcast(moved, single))


@intrinsic
def _compiled_half(typing_context: Any, bits: Any) -> Any:
    return types.float32(types.int16), _half_to_float32


@intrinsic
def _compiled_pread(
    typing_context: Any, descriptor: Any, address: Any, count: Any, begin: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        from llvmlite import ir
        from numba.core.cgutils import get_or_insert_function

        number, size, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
        function_type = ir.FunctionType(size, [number, pointer, size, size])
        function = get_or_insert_function(builder.module, function_type, "pread")
        file, to, *rest = arguments
        return builder.call(
            function, [builder.trunc(file, number), builder.inttoptr(to, pointer), *rest]
        )

    return types.int64(types.int64, types.uint64, types.int64, types.int64), generate


if numba.config.DISABLE_JIT:

    def pread(descriptor: int, address: int, count: int, begin: int) -> int:
        """Read bytes of a file to an address, as the C function does; -1 if it cannot be read."""
        import ctypes

        try:
            return os.preadv(descriptor, [(ctypes.c_char * count).from_address(address)], begin)
        except OSError:
            return -1

    def half_to_float32(bits: Any) -> float:
        return float(struct.unpack("<e", struct.pack("<H", int(bits) & 0x7FFF))[0])

    def float32_of(bits: int) -> float:
        return float(struct.unpack("<f", struct.pack("<i", bits))[0])

    def bits_of_float32(value: float) -> int:
        return int(struct.unpack("<i", struct.pack("<f", value))[0])

    def float64_of(bits: int) -> float:
        return float(struct.unpack("<d", struct.pack("<q", bits))[0])

    def bits_of_float64(value: float) -> int:
        return int(struct.unpack("<q", struct.pack("<d", value))[0])

else:
    pread = _compiled_pread
    half_to_float32 = _compiled_half
    float32_of = _reinterpret(types.int32, types.float32)
    bits_of_float32 = _reinterpret(types.float32, types.int32)
    float64_of = _reinterpret(types.int64, types.float64)
    bits_of_float64 = _reinterpret(types.float64, types.int64)
