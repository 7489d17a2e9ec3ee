"""float16 is converted exactly, with the CPU's instruction and without."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from uqeval.kernels import _jit


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
