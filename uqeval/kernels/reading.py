"""Many parts of a file, read in one call."""

from __future__ import annotations

from uqeval.kernels._jit import kernel, pread


@kernel
def read_runs(descriptor, begins, values):
    """Read the bytes from each of `begins` int64 [run] on into `values` uint8 [run, byte].

    Return the number of runs before the first that the file does not have whole, or that cannot be
    read.
    """
    count, address = values.shape[1], values.ctypes.data
    for i in range(begins.shape[0]):
        at = 0
        while at < count:
            got = pread(descriptor, address + i * count + at, count - at, begins[i] + at)
            if got <= 0:
                return i
            at += got
    return begins.shape[0]
