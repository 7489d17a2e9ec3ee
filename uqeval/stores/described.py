"""Arrays in memory with what their library tells of them: names of axes, attributes, coordinates.

xarray has `dims`, `attrs` and `coords`, h5py labels or attached scales, Zarr `dimension_names`,
netCDF4 and h5netcdf `dimensions`. No library is imported.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, cut
from uqeval.stores.array import StoredArray
from uqeval.stores.attribute_arrays import check_attributes
from uqeval.stores.axis_names import axes_among, axis_called
from uqeval.stores.class_ids import refuse_void_of_array
from uqeval.stores.coordinates import COLUMNS, Coordinate
from uqeval.stores.files.numpy_array import in_memory
from uqeval.stores.fill_values import INVALID, fill_of_netcdf
from uqeval.stores.incoming import as_array
from uqeval.stores.kinds import PACKED, resolve
from uqeval.stores.orders import placed

#: The attribute of Zarr 2 with the names of axes, as xarray writes it.
_ZARR_2 = "_ARRAY_DIMENSIONS"
#: The labels along the axes of tables of pandas, and names of these axes that mean no other axis.
_OF_TABLES = {"index": "index", "columns": COLUMNS}


@dataclass(frozen=True, eq=False)
class DescribedArray:
    """An array, the object that it was, the names of its axes (None without), its attributes, and
    its coordinates by name."""

    values: Array
    source: Any = None
    dimension_names: tuple[str | None, ...] | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    coordinates: Mapping[str, Coordinate] = field(default_factory=dict)

    def stored(self, where: str) -> StoredArray:
        """Return it as an array of a store. Raises `StoreError` for objects."""
        array = in_memory(self.values, where)
        array.dimension_names = self.dimension_names
        array.attributes = {**self.attributes, **array.attributes}
        array.coordinates = self.coordinates
        return array


def described(values: Any, where: str) -> DescribedArray:
    """Return an array of any framework with its names and attributes. Raises as `as_array`."""
    if isinstance(values, DescribedArray):
        return values
    # A variable of netCDF4 that masks loses its masks as a plain array.
    array = as_array(values[...] if getattr(values, "mask", None) is True else values, where)
    _refuse_missing_chunks(values, array, where)
    attributes = attributes_of(values)
    _refuse_unpacked_fill(values, attributes, where)
    coordinates = {
        name: Coordinate(
            f"{name} of {where}", partial(np.asarray, own), attributes_of(own), dims[0],
            is_index=dims[0] == name, is_number=_is_number(own),
        )
        for name, own in coordinates_in(values).items() if getattr(own, "ndim", 0) == 1
        for dims in [names_of(getattr(own, "dims", None), 1) or (None,)]
    }  # fmt: skip
    dims = names_of(_dims_of(values, attributes), array.ndim)
    tables = {axis: labels for axis in _OF_TABLES
              if hasattr(labels := getattr(values, axis, None), "__array__")}  # fmt: skip
    if dims is None and len(tables) == array.ndim:
        dims = tuple(_OF_TABLES[axis] for axis in tables)
        coordinates |= {
            axis: _labels_of_table(labels, axis, where) for axis, labels in tables.items()
        }
    if dims is None and (texts := _names_of_columns(values, array)):
        dims = (_OF_TABLES["index"], COLUMNS)
        load = partial(np.array, texts, np.str_)
        coordinates["columns"] = Coordinate(f"columns of {where}", load, {}, COLUMNS, True)
    return DescribedArray(array, values, dims, attributes, coordinates)


def _is_number(values: Any) -> bool:
    return getattr(getattr(values, "dtype", None), "kind", "") in ("b", "i", "u", "f", "m", "M")


def _refuse_missing_chunks(values: Any, array: Array, where: str) -> None:
    """Raise `DataError` for an array of Zarr or h5py with missing chunks, which read as the fill
    value."""
    missing, total = _missing_chunks(values, array)
    if missing:
        raise DataError(
            f"{where}: {missing:,} of {total:,} chunks of the array are missing, and read as the "
            "fill value. Either it is incomplete, or they were left out because all their values "
            "are the fill value. If you are sure of that, give its path with --missing-chunks fill "
            "or, as an array, values[...]; else write all chunks."
        )


def _missing_chunks(values: Any, array: Array) -> tuple[int, int]:
    """Return the number of missing chunks, and of all chunks, of an array of Zarr or h5py; 0 and 0
    for others. `array`: its values."""
    dataset: Any = getattr(values, "id", None)
    if callable(getattr(dataset, "get_num_chunks", None)):
        if values.is_virtual or not array.size:
            return 0, 0
        if values.chunks is None:
            return int(not dataset.get_storage_size()), 1
        total = math.prod(-(-n // c) for n, c in zip(values.shape, values.chunks, strict=True))
        return total - int(dataset.get_num_chunks()), total
    if not hasattr(type(values), "nchunks_initialized"):
        return 0, 0
    missing, total = _missing_in_zarr(values)
    # Web servers that cannot list have no chunks at all, but different values.
    can_list = missing < total or not array.size or array.min() == array.max()
    return (missing, total) if can_list else (0, 0)


def _missing_in_zarr(values: Any) -> tuple[int, int]:
    """Return the number of missing chunks, and of all chunks, of an array of Zarr; where uqeval
    cannot read them itself, of its shards; 0 and 0 for a store that cannot list them."""
    from uqeval.stores.zarr.library_source import count_missing_chunks

    with suppress(Exception):  # of any store, and of codecs that only the library has
        return count_missing_chunks(values)
    unit = getattr(values, "shards", None) or values.chunks
    in_unit = math.prod(n // c for n, c in zip(unit, values.chunks, strict=True))
    total = math.prod(-(-n // c) for n, c in zip(values.shape, unit, strict=True))
    with suppress(Exception):  # Zarr counts all chunks of a shard, also those beyond the edge
        return total - int(values.nchunks_initialized) // in_unit, total
    return 0, 0


def _labels_of_table(labels: Any, axis: str, where: str) -> Coordinate:
    """Return the labels along an axis of pandas as a coordinate."""
    name = str(axis if labels.name is None else labels.name)
    load = partial(np.asarray, labels)
    return Coordinate(f"{axis} of {where}", load, {}, _OF_TABLES[axis], True, name=name)


def _names_of_columns(values: Any, array: Array) -> list[str]:
    """Return the names of the columns of a table of polars or pyarrow; empty for other arrays, and
    for the names that polars gives to columns without any."""
    names = getattr(values, "column_names", getattr(values, "columns", None))
    if not isinstance(names, list) or array.ndim != 2 or len(names) != array.shape[1]:
        return []
    if not all(isinstance(name, str) for name in names):
        return []
    return [] if names == [f"column_{k}" for k in range(len(names))] else names


def _dims_of(values: Any, attributes: Mapping[str, Any]) -> Any:
    """Return what an array has as names of axes; None without any."""
    dims = getattr(values, "dims", None)
    if dims is None:
        dims = getattr(getattr(values, "metadata", None), "dimension_names", None)
    if dims is None:
        dims = getattr(values, "dimensions", None)
        dims = dims if isinstance(dims, tuple) else None
    return attributes.get(_ZARR_2) if dims is None else dims


def ordered(
    values: Any, where: str, forms: Sequence[tuple[str, ...]], *, t_is_item: bool = False
) -> DescribedArray:
    """Return an array with named axes in the order of its form among `forms`, one without names
    unchanged. Raises `DataError`, and `StoreError` for names of other axes."""
    own = described(values, where)
    names = own.dimension_names
    if not names:
        return own
    axes = axes_among(forms, names, own.values.shape, where, t_is_item=t_is_item)
    is_named = any(map(axis_called, names))
    if axes is None and not is_named:
        return own
    if axes is None:
        expected = " or ".join(f"[{', '.join(form)}]" for form in forms)
        raise DataError(
            f"{where} has the axes {cut(list(names))}, expected {expected}, in any order. "
            "Rename the dimensions, or give an array without names."
        )
    dimensions = {name: axis for name, axis in zip(names, axes, strict=True) if name}
    own = replace(own, coordinates=placed(own.coordinates, dimensions, listed=own.coordinates))
    if not is_named:
        return own
    names_in_order = next(form for form in forms if set(form) == set(axes))
    transposed = own.values.transpose([axes.index(axis) for axis in names_in_order])
    return replace(own, values=transposed, dimension_names=names_in_order)


def refuse_attributes_of_ids(
    own: DescribedArray, void: int, where: str, *, of: str, to: str
) -> None:
    """Raise `StoreError` or `DataError` for attributes of predicted ids [y, x] that would change
    them: packed numbers, another void id, and fill values among them.

    `of`, `to`: as in `refuse_void_of_array`.
    """
    check_attributes(own.attributes, where)
    array = resolve(own.stored(where), "predictions", is_single=True)
    refuse_void_of_array(own.values, array, void, where, "the predicted class", of=of, to=to)


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return the attributes of an object as plain values; empty for one without."""
    attributes = getattr(holder, "attrs", None)
    if attributes is None and callable(getattr(holder, "ncattrs", None)):
        attributes = _attributes_of_netcdf(holder)
    if not isinstance(attributes, Mapping):
        return {}
    known = {str(name): plain(value) for name, value in attributes.items()}
    dataset = getattr(holder, "_h5ds", holder)  # of h5netcdf
    is_hdf5 = callable(getattr(getattr(dataset, "id", None), "get_num_chunks", None))
    return known | (fill_of_netcdf(dataset) if is_hdf5 else {})


def _attributes_of_netcdf(variable: Any) -> dict[str, Any]:
    """Return the attributes of a variable of netCDF4, without those that it applies itself where it
    is read: it masks fill values, and unpacks numbers. Where it only unpacks, fill values are
    unpacked as well, so both attributes stay."""
    attributes = {name: variable.getncattr(name) for name in variable.ncattrs()}
    if getattr(variable, "mask", False) is True:
        attributes = {name: own for name, own in attributes.items() if name not in INVALID}
    if getattr(variable, "scale", False) is True and not attributes.keys() & set(INVALID):
        attributes = {name: own for name, own in attributes.items() if name not in PACKED}
    return attributes


def _refuse_unpacked_fill(variable: Any, attributes: Mapping[str, Any], where: str) -> None:
    """Raise `DataError` for a variable of netCDF4 that unpacks its numbers and does not mask: then
    its fill values are other numbers than their attributes say."""
    unpacked = {name: own for name, same in PACKED.items()
                if (own := attributes.get(name, same)) != same}  # fmt: skip
    fills = {name: attributes[name] for name in INVALID if name in attributes}
    if not unpacked or not fills or getattr(variable, "scale", False) is not True:
        return

    def listed(own: Mapping[str, Any]) -> str:
        return ", ".join(f"{name} {value}" for name, value in own.items())

    raise DataError(
        f"{where}: netCDF4 unpacks the numbers of this variable ({listed(unpacked)}), and does not "
        f"mask its fill values ({listed(fills)}), so these are unpacked too; expected NaN there. "
        "Call variable.set_auto_mask(True), and give variable[:].filled(numpy.nan)."
    )


def coordinates_in(holder: Any) -> dict[str, Any]:
    """Return the coordinates of an object by name; empty for one without."""
    coordinates = getattr(holder, "coords", None)
    if not isinstance(coordinates, Mapping):
        return {}
    return {str(name): coordinate for name, coordinate in coordinates.items()}


def names_of(dims: Any, rank: int) -> tuple[str | None, ...] | None:
    """Return the names of `rank` axes: texts, or dimensions of h5py with labels or scales; None
    where they are something else."""
    if isinstance(dims, str) or not isinstance(dims, Iterable):
        return None
    names = tuple(map(_name, dims))
    return names if len(names) == rank and any(names) else None


def _name(dimension: Any) -> str | None:
    """Return the name of an axis; of a dimension of h5py its label, else that of its scale."""
    if isinstance(dimension, str):
        return dimension
    label = getattr(dimension, "label", None)
    if not isinstance(label, str):
        return None
    if label or not len(dimension):
        return label
    return str(dimension[0].name or "").rpartition("/")[2]


def plain(values: Any) -> Any:
    """Return arrays and tuples as lists, and NumPy numbers as Python numbers."""
    if isinstance(values, tuple):
        return list(values)
    if hasattr(values, "__array__") and not hasattr(values, "tolist"):
        values = np.asarray(values)  # of xarray
    tolist = getattr(values, "tolist", None)
    return tolist() if callable(tolist) else values
