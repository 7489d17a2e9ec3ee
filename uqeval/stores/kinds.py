"""The kinds of arrays in a store, and their axes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uqeval.errors import StoreError, UsageError, all_listed, cut, nearest, quoted
from uqeval.stores.array import StoredArray
from uqeval.stores.axis_names import axes_among

_PROBABILITIES = (("item", "sample", "class", "y", "x"), ("item", "class", "y", "x"))
_MEMBERS = (("item", "sample", "y", "x"), ("item", "y", "x"))
_MAP = (("item", "y", "x"),)
#: The axes of labels of several annotators.
_LABELS = (("item", "y", "x"), ("item", "annotator", "y", "x"))
#: The last axis of a frame or a flow, such as its colours, is called class here, and channel in
#: what users read (`shown_axes`).
_CHANNELS = (("item", "y", "x", "class"),)

#: Arrays that give a standard deviation σ for `mean`, and its formula; logarithms are natural.
#: `log_b` is the logarithm of the scale of a Laplace distribution.
SPREADS = {
    "std": "std",
    "variance": "sqrt(variance)",
    "log_variance": "exp(log_variance / 2)",
    "log_var": "exp(log_var / 2)",
    "logvar": "exp(logvar / 2)",
    "log_std": "exp(log_std)",
    "log_sigma": "exp(log_sigma)",
    "log_b": "sqrt(2) * exp(log_b)",
}

#: The axes of each kind of array, by rank.
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "probs": _PROBABILITIES,
    "logits": _PROBABILITIES,
    "mean_probs": (("item", "class", "y", "x"),),
    "sample_predictions": (("item", "sample", "y", "x"),),
    "labels": _LABELS,
    "mean": _MEMBERS,
    **dict.fromkeys(SPREADS, _MEMBERS),
    "samples": (("item", "sample", "y", "x"),),
    "frames": _CHANNELS,
    "flow": _CHANNELS,
    "flow_forward": _CHANNELS,
}

#: The axes of the kinds of array that image classification has: its items have no rows and columns.
_TABLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "probs": (("item", "sample", "class"), ("item", "class")),
    "logits": (("item", "sample", "class"), ("item", "class")),
    "labels": (("item",), ("item", "annotator")),
    "predictions": (("item",),),
}

#: Arrays between items, with one row fewer than items.
FLOWS = frozenset({"flow", "flow_forward"})

#: Arrays that must be valid if they exist; any other array [N, H, W] is a map with its own name.
KNOWN = frozenset(KINDS) | {"predictions", "target", "valid"}

#: Arrays of predictions; a group with `labels` and none of these is a store of labels.
PREDICTIONS = frozenset({"probs", "logits", "predictions", "mean_probs", "mean", "samples"})

#: Arrays of predictions that an evaluation of classes reads.
CLASS_PREDICTIONS = ("probs", "logits", "predictions")

#: Numbers with a target.
REGRESSION = frozenset({"mean", *SPREADS, "samples", "target", "valid"})

#: Arrays of class ids.
IDS = frozenset({"labels", "predictions", "sample_predictions"})

#: Arrays without samples, so that an axis `t` is that of items.
_WITHOUT_SAMPLES = FLOWS | {"frames", "labels", "predictions", "target", "valid"}

#: Arrays whose integers are multiplied by their attribute `scale`.
SCALED = frozenset({"probs", "logits", "mean_probs", "mean", *SPREADS, "samples"})

#: Those that take a member `scale` of an .npz in place of the attribute.
WITH_MEMBER_SCALE = ("probs", "logits", "mean_probs")

#: The attributes of packed numbers (CF conventions, as of netCDF and xarray), with the values that
#: change no number. Besides these, `_Unsigned` gives integers the other sign.
PACKED = {"scale_factor": 1, "add_offset": 0}

#: Names that other tools give to arrays.
ALIASES = {"softmax": "probs", "probabilities": "probs", "pred": "probs"}


def predictions_expected(names: Iterable[str]) -> str:
    """Return which arrays a store of predictions needs, and a hint for each of the `names` of its
    arrays that is nearly a known one."""
    unknown = (own for own in sorted(names) if own not in KNOWN)
    hints = [f" {quoted(own)}: did you mean {near}?" for own in unknown
             if (near := nearest(own, KNOWN, 0.8))]  # fmt: skip
    if "mean_probs" in names:
        hints.append(" Mean probabilities without `predictions` are one sample: name them probs.")
    return (
        "expected probs or logits [N, T, C, H, W], or predictions and mean_probs or a map of an "
        "uncertainty [N, H, W], with labels, for classes; or mean with std, variance, "
        "log_variance, log_std or log_b, or samples, with target, for numbers."
        f"{''.join(hints)}"
    )


def shown_axes(kind: str, axes: Sequence[str]) -> list[str]:
    """Return the axes of an array of this kind as users read them."""
    of_channels = KINDS.get(kind) == _CHANNELS
    return ["channel" if of_channels and axis == "class" else axis for axis in axes]


def known_as(name: str, array: StoredArray) -> str:
    """Return the kind of a member of an .npz by its name, including names that other tools use.

    Probabilities have a class axis; a `pred` without one is another prediction.
    """
    return name if name == "pred" and len(array.shape) < 4 else ALIASES.get(name, name)


def known_alone(name: str, array: StoredArray, has_labels: bool) -> str | None:
    """Return the kind of an array that is read alone, from its name; None if this does not decide.

    Mean probabilities without predictions are one sample. Labels of classes are no target, so
    beside them only names of predictions of classes count.
    """
    kind = known_as(name.rpartition("/")[2], array)
    kind = "probs" if kind == "mean_probs" else kind
    return kind if kind in (CLASS_PREDICTIONS if has_labels else KNOWN) else None


def known_once(name: str, array: StoredArray, others: Mapping[str, StoredArray], path: str) -> str:
    """Return the kind of a member; raises `StoreError` if it is among the kinds of the `others`."""
    kind = known_as(name, array)
    if kind in others:
        others_of_kind = [own for own, of in ALIASES.items() if of == kind]
        called = quoted(name) if name != kind else " or ".join(map(quoted, others_of_kind))
        raise StoreError(
            f"{cut(path)} holds {quoted(kind)} twice, once as {called}. Keep one of them."
        )
    return kind


def forms_of(kind: str) -> tuple[tuple[str, ...], ...]:
    """Return the axes that a kind of array has with items, those of tables last."""
    return KINDS.get(kind, _MAP) + _TABLES.get(kind, ())


def axes_of(array: StoredArray, kind: str, *, is_single: bool) -> tuple[str, ...]:
    """Return the canonical axes of `array`: its named axes, else those for its rank.

    `is_single`: the array is one item, in `items/<name>/`. Raises `StoreError` if its rank or its
    axes are not those of a `kind`.
    """
    axes = _known_axes(array, kind, is_single=is_single)
    if axes is not None:
        return axes
    forms = KINDS.get(kind, _MAP)
    listed_forms = [shown_axes(kind, form[1:] if is_single else form) for form in forms]
    expected = " or ".join(f"[{', '.join(form)}]" for form in listed_forms)
    if named := array.named_axes:
        raise StoreError(
            f"{array.where} has the axes [{', '.join(named)}], expected {expected}, in any order. "
            "Rename the dimensions, or store it with these axes."
        )
    raise StoreError(
        f"{array.where} has the shape {array.shape}, expected {expected}. "
        + (
            _without_last_axis(array, max(map(len, listed_forms)))
            or f"Store {quoted(kind)} with these axes, or name the axes in dimension_names."
        )
    )


def _known_axes(
    array: StoredArray, kind: str, *, is_single: bool = False
) -> tuple[str, ...] | None:
    """Return the axes as `axes_of`; None if the array has none of those of the kind."""
    forms = forms_of(kind)
    of_one = tuple(form[1:] for form in KINDS.get(kind, _MAP))
    # With named axes, an array may be one item; without names its rank decides.
    return axes_among(
        tuple(form[1:] for form in forms) if is_single else forms,
        array.dimension_names, array.shape, array.where,
        short=of_one, t_is_item=kind in _WITHOUT_SAMPLES,
    )  # fmt: skip


def _refuse_packed(array: StoredArray, kind: str) -> None:
    """Raise `StoreError` for stored numbers that stand for others.

    The attribute `scale` is not of the CF conventions. It counts only for integers of predictions,
    whose readers multiply by it, and of a target.
    """
    neutral = dict(PACKED)
    scale = _as_number(array, "scale")
    if array.dtype.kind in "iu" and isinstance(scale, int | float):
        if kind == "target":
            neutral["scale"] = 1
        elif kind in SCALED and scale == _as_number(array, "scale_factor"):
            del neutral["scale_factor"]
        if kind in SCALED | {"target"} and isinstance(_as_number(array, "offset"), int | float):
            neutral["offset"] = 0
    packed = {
        name: value
        for name, same in neutral.items()
        if (value := _as_number(array, name)) is not None and value != same
    }
    stored_as = _other_sign(array)
    if not packed and not stored_as:
        return
    sign = {"_Unsigned": array.attributes["_Unsigned"]} if stored_as else {}
    listed = ", ".join(f"{name} {quoted(value)}" for name, value in (sign | packed).items())
    factor = packed.get("scale_factor", scale if {"scale", "offset"} & packed.keys() else None)
    offset = packed.get("add_offset", packed.get("offset"))
    steps = f"numbers.view('{stored_as}')" if stored_as else "numbers"
    steps += f" * {factor}" if factor is not None else ""
    steps += f" + {offset}" if offset is not None else ""
    noun, unpacked = "numbers", f"{quoted(steps)} as float32"
    if kind in IDS or kind == "valid":
        noun = "values of a mask" if kind == "valid" else "class ids"
        unpacked = f"the {noun} as {'bool' if kind == 'valid' else 'integers'}"
    elif kind not in KNOWN:  # a map may be one of ids, which stay integers
        unpacked = quoted(steps)
    raise StoreError(
        f"{array.where} holds {array.dtype} {noun} that are packed (attribute {listed}); "
        f"expected the {noun} themselves. Store {unpacked}, without these attributes; where the "
        f"{noun} are unpacked already, remove the attributes."
    )


def _other_sign(array: StoredArray) -> str | None:
    """Return the dtype that integers are read as if their attribute `_Unsigned` contradicts their
    own, which is that of a format without unsigned integers; else None."""
    unsigned = str(single_of(array.attributes.get("_Unsigned"))).lower()
    other = {("i", "true"): "uint", ("u", "false"): "int"}.get((array.dtype.kind, unsigned))
    return other and f"{other}{8 * array.dtype.itemsize}"


def _as_number(array: StoredArray, name: str) -> Any:
    """Return an attribute, a text of a number as the number; None without it."""
    value = single_of(array.attributes.get(name))
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def single_of(value: Any) -> Any:
    """Return the entry of a list of equal ones, also of lists, as HDF5 stores a number; other
    values unchanged."""
    if isinstance(value, list) and value and value.count(value[0]) == len(value):
        return single_of(value[0])
    return value


def resolve(array: StoredArray, kind: str, *, is_single: bool = False) -> StoredArray:
    """Return the array with its `axes` set, as `OnePixel` if they have no rows and columns. Raises
    `StoreError` if axes or dtype do not fit the `kind`."""
    ids = kind in IDS
    if array.dtype.kind not in ("biu" if ids else "biuf"):
        expected = "numbers. Convert it and write it again"
        if kind == "valid":
            expected = "bool. Save a comparison, such as valid == 'True'"
        if ids:
            expected = f"class ids as integers. Save {kind}.astype(np.uint8), with 255 where void"
            if kind == "predictions" and array.dtype.kind == "f" and len(array.shape) > 3:
                expected = "class ids as integers. Call class probabilities `probs`"
        raise StoreError(f"{array.where} holds {array.dtype}, expected {expected}.")
    _refuse_packed(array, kind)
    array.axes = axes_of(array, kind, is_single=is_single)
    if array.dimension_names:
        axes = shown_axes(kind, array.axes)
        pairs = zip(array.dimension_names, axes, strict=True)
        array.dimensions = {name: axis for name, axis in pairs if name}
    array.check_claims()
    empty = [a for a, n in zip(array.axes, array.shape, strict=True) if n == 0 and a != "item"]
    if empty:
        raise StoreError(
            f"{array.where} has the shape {array.shape}, which is empty along "
            f"{all_listed(empty)}. Write it again with the shape of the data."
        )
    array.suit(array.axes)
    if "y" in array.axes:
        return array
    from uqeval.stores.one_pixel import OnePixel

    return OnePixel(array)


#: The axis of each letter of `axes`. The slices Z of a medical volume are items.
LETTERS = {
    "N": "item", "Z": "item", "T": "sample", "C": "class", "H": "y", "Y": "y", "W": "x", "X": "x",
}  # fmt: skip
#: Ground truth has other axes than predictions.
_TRUTH = frozenset({"labels", "target", "valid", "names"})


@dataclass(frozen=True)
class Declared:
    """What a user declares of an array. `kind`: "probs" or "logits". `axes`: its axes as letters of
    NTCHW. `key`: the name of the array in the file.
    """

    kind: str | None = None
    axes: str | None = None
    key: str | None = None

    @property
    def names(self) -> tuple[str, ...] | None:
        """Return the canonical names of `axes`. Raises `UsageError` for other letters."""
        if self.axes is None:
            return None
        letters = self.axes.upper()
        names = tuple(LETTERS.get(letter, "") for letter in letters)
        if not letters or "" in names or len(set(names)) != len(names):
            raise UsageError(
                f"axes {quoted(self.axes)}: expected letters of NTCHW, each at most once (items N "
                "or Z, samples T, classes C, rows H or Y, columns W or X), such as --axes NHWC."
            )
        return names

    def name_axes(self, array: StoredArray) -> None:
        """Give the array its declared axes. Raises `UsageError` if it has more or fewer."""
        if (names := self.names) is None:
            return
        if len(names) != len(array.shape):
            raise UsageError(
                f"axes {quoted(self.axes)} are {len(names)}, but {array.where} has the shape "
                f"{array.shape}; give one letter per axis."
            )
        array.dimension_names = names

    def of_named(self, arrays: Mapping[str, StoredArray], path: str) -> dict[str, StoredArray]:
        """Return named arrays with these declarations.

        `axes` apply to predictions of this rank; `kind` renames a single array without a known
        name. Raises `UsageError` for declarations without effect.
        """
        renamed = dict(arrays)
        if self.kind is not None and self.kind not in renamed:
            if len(renamed) != 1 or {"probs", "logits"} & renamed.keys():
                raise UsageError(
                    f"--kind {self.kind}: {cut(path)} names its arrays "
                    f"({all_listed(sorted(renamed))}). Leave out --kind."
                )
            renamed = {self.kind: next(iter(renamed.values()))}
        if (names := self.names) is not None:
            fits = [
                array
                for kind, array in renamed.items()
                if kind not in _TRUTH and len(array.shape) == len(names)
            ]
            if not fits:
                shapes = ", ".join(f"{kind} {array.shape}" for kind, array in renamed.items())
                raise UsageError(
                    f"--axes {self.axes}: {cut(path)} has no predictions with {len(names)} axes; "
                    f"it holds {shapes}."
                )
            for array in fits:
                self.name_axes(array)
        return renamed


def kind_of_bare(array: StoredArray, role: str, declared: Declared) -> str | None:
    """Return the kind of an array without a name, from its `role`, axes and dtype, never its
    values.

    None if these fit no kind. `role`: "predictions", "labels" or "target".
    """
    rank, dtype = len(array.shape), array.dtype.kind
    if role == "target":
        return "target" if rank in (1, 2, 3) and dtype in "biuf" else None
    if role == "labels":
        fits = rank in (1, 3, 4) or (rank == 2 and array.named_axes)
        return "labels" if fits and dtype in "biuf" else None  # floats are refused
    if declared.kind is not None:
        return declared.kind
    if axes := array.named_axes:
        ids = dtype in "biu" and "scale" not in array.attributes
        if "class" in axes and not (ids and _known_axes(array, "predictions")):
            return "probs"
        return "predictions" if dtype in "biu" else None
    if rank in (1, 3) and dtype in "biu" and "scale" not in array.attributes:
        return "predictions"
    numbers = dtype == "f" or rank > 3 or (dtype == "u" and "scale" in array.attributes)
    return "probs" if 2 <= rank <= 5 and numbers else None


def kind_of_file(array: StoredArray, role: str, declared: Declared) -> str:
    """Return the kind of an array without a name of one item, or of ids of one volume [Z, H, W],
    from its `role`, axes and dtype, never its values.

    Raises `StoreError` if these fit no kind.
    """
    rank, dtype = len(array.shape), array.dtype.kind
    ids = dtype in "biu" and "scale" not in array.attributes
    if role == "target":
        if rank == 2:
            return "target"
        raise not_one_of(array, "the numbers [H, W] of one item", 2)
    if role == "labels":
        if rank in (2, 3) and "scale" not in array.attributes:
            return "labels"
        raise not_one_of(array, "class ids [H, W] of one item, or [Z, H, W] of a volume's slices")
    if declared.kind is not None:
        return declared.kind
    if array.dimension_names:
        return "probs" if "class" in array.dimension_names else "predictions"
    if rank in (2, 3) and ids:
        return "predictions"
    if rank in (1, 3, 4):
        return "probs"
    raise not_one_of(
        array, "class probabilities [C, H, W] or [T, C, H, W] of one item. Put numbers [H, W] "
        "with a target in folders `mean/` and `std/`, or in .npz files with both names",
    )  # fmt: skip


def with_scale(arrays: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Return the arrays without the number `scale`, which becomes an attribute of integer
    probabilities and logits, and of an integer target, where it is an error.
    """
    scaled = dict(arrays)
    scale = scaled.get("scale")
    if scale is None or scale.shape not in ((), (1,)):
        return scaled
    del scaled["scale"]
    value = float(scale.read((slice(None),) * len(scale.shape)).reshape(-1)[0])
    for kind in (*WITH_MEMBER_SCALE, "target"):
        if kind in scaled and scaled[kind].dtype.kind in ("iu" if kind == "target" else "u"):
            scaled[kind].attributes = {**scaled[kind].attributes, "scale": value}
    return scaled


def not_one_of(array: StoredArray, expected: str, most_axes: int = 5) -> StoreError:
    """Return the error for an array without a name that fits no kind. `most_axes`: how many axes
    the `expected` one may have."""
    fix = _without_last_axis(array, most_axes)
    return StoreError(
        f"{array.where} has the shape {array.shape} of {array.dtype}, expected {expected}. "
        + (fix or "Add the axes that are missing, or save a Zarr group that names its arrays.")
    )


def _without_last_axis(array: StoredArray, most_axes: int) -> str:
    """Return the advice for an array with a last axis of size 1 too many; empty for others."""
    if len(array.shape) != most_axes + 1 or array.shape[-1] != 1:
        return ""
    return "Leave out the last axis, of size 1: save array[..., 0]."
