"""Arrays of other frameworks, which `evaluate` takes as it takes those of NumPy."""

from __future__ import annotations

from typing import Any


class Tensor:
    """An array with the attributes of PyTorch tensors that `np.ndarray` lacks."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def detach(self) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class Capsule:
    """An array that is known by DLPack alone."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.values.__dlpack_device__()
