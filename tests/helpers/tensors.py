"""Arrays of other frameworks, which `evaluate` takes as it takes those of NumPy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


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


class Labelled:
    """An array with names of axes, attributes and coordinates, as those of xarray."""

    def __init__(
        self, values: Any, dims: Any, attrs: Any = None, coords: Mapping[str, Any] | None = None
    ) -> None:
        self.values, self.dims, self.attrs = values, dims, attrs or {}
        self.coords = {
            name: own if isinstance(own, Labelled) else Labelled(np.asarray(own), (name,))
            for name, own in (coords or {}).items()
        }

    @property
    def ndim(self) -> int:
        return int(self.values.ndim)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class LabelledSet(dict[str, Any]):
    """Arrays by name with attributes and coordinates, as a Dataset of xarray."""

    def __init__(
        self, arrays: Mapping[str, Any], attrs: Any = None, coords: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(arrays)
        self.attrs, self.coords = attrs or {}, coords or {}


class Index:
    """The labels along an axis of a table of pandas."""

    def __init__(self, values: Any, name: str | None = None) -> None:
        self.values, self.name = np.asarray(values), name

    def __len__(self) -> int:
        return len(self.values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class Table:
    """Numbers with labels of items, and those [item, column] with labels of columns, as pandas."""

    def __init__(self, values: Any, index: Index, columns: Index | None = None) -> None:
        self.values, self.index = np.asarray(values), index
        if columns is not None:
            self.columns = columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class Frame:
    """Numbers [item, column] with a list of names of columns, as those of polars."""

    def __init__(self, values: Any, columns: list[str]) -> None:
        self.values, self.columns = np.asarray(values), columns

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


class ArrowTable(Frame):
    """The same as a table of pyarrow, whose `columns` are arrays."""

    def __init__(self, values: Any, columns: list[str]) -> None:
        super().__init__(values, columns)
        self.column_names, self.columns = columns, [*self.values.T]
