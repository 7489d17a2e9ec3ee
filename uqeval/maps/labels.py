"""Make `label` maps from label planes: class ids, and one value for void."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from uqeval.arrays import Array
from uqeval.errors import DataError, StoreError, cut, listed, number_flaw
from uqeval.maps.names import id_dtype, void_of
from uqeval.stores.array import ItemArray
from uqeval.stores.class_ids import how_to_give, refuse_ambiguous, refuse_fill_ids
from uqeval.stores.incoming import ids_of_one_hot, numbered_from_1, refuse_one_hot
from uqeval.stores.planes import Planes

#: The hint if height and width of a plane look swapped.
SWAPPED = (
    "Height and width look swapped: give the order of the axes in dimension_names of the wrong "
    "array, or transpose it."
)


@dataclass(frozen=True)
class Labels:
    """Ground truth of all items: planes of class ids, and the id that means void.

    `annotators`: the number of planes of an item [annotator, y, x]; 0 for one plane [y, x].
    `where`: their path if the predictions do not hold them; else empty.
    """

    planes: Planes
    ignore_index: int
    annotators: int = 0
    where: str = ""

    def read(
        self, item: int, classes: int, name: str, size: tuple[int, int]
    ) -> tuple[Array, Array | None]:
        """Return the labels [y, x] of an item, and those of each annotator [annotator, y, x], if
        there are several: then the first are of the majority. Raises as `label_map`."""
        plane, where = self.planes.read(item), f"{self.planes.where_of(item)}, item {cut(name)}"
        array = self.planes.parts[item].array
        refuse_fill_ids(plane, array, self.ignore_index, where, "labels")
        images = self.planes.takes_label_map(item)
        if self.annotators:
            return labels_of_annotators(plane, classes, self.ignore_index, where, size, images)
        return label_map(plane, classes, self.ignore_index, where, size, images=images), None


def check_size(
    found: tuple[int, ...],
    classes: int,
    where: str,
    size: tuple[int, int],
    noun: str = "labels",
    *,
    volume: bool = False,
) -> None:
    """Raise `StoreError` if a plane of labels has another size than the predictions.

    `volume`: the plane is a slice of a case.
    """
    if found == size:
        return
    hint = (
        "Evaluate at the size of the labels: resize the logits, since resized labels are invented."
    )
    if found[0] * size[1] == found[1] * size[0]:
        hint = (
            "Resize the logits to the size of the labels before you save them: torch.nn.functional"
            f'.interpolate(logits, size={found}, mode="bilinear"). Resized labels are invented.'
        )
    if found == (classes, size[0]):
        hint = (
            "The class axis of the predictions seems to be the last: move it before the rows "
            "(numpy.moveaxis), add --axes NHWC (of samples NTHWC), or name the axes in "
            "dimension_names."
        )
    elif found == (size[1], classes):
        hint = (
            "The labels look one-hot, with the classes last. Save class ids, and void pixels: "
            f"{ids_of_one_hot(-1, classes)}."
        )
    elif size == (1, 1):
        hint = (
            "The predictions were read as image classification, [N, C] or [N, T, C]. For one image "
            "give the order of its axes (--axes CHW or TCHW). Probabilities [N, H, W] of the "
            "foreground alone need an axis of one class: probs[:, None]."
        )
    elif found == size[::-1]:
        hint = SWAPPED
    elif volume:
        hint = (
            "nnU-Net may have saved the probabilities of the cropped volume: crop the labels in "
            "the same way, or put the probabilities back into the whole volume."
        )
    raise StoreError(
        f"{where}: {noun} are {found[0]}×{found[1]} (height×width), predictions are "
        f"{size[0]}×{size[1]} with {classes} classes; they must have the same size. {hint}"
    )


def annotators_of(parts: Sequence[ItemArray], names: Sequence[str]) -> int:
    """Return how many annotators each item has; 0 for labels without such an axis.

    Raises `StoreError` if the items differ.
    """
    first_items = {id(part.array): i for i, part in reversed(list(enumerate(parts)))}
    count_of = {}
    for i in sorted(first_items.values()):
        array = parts[i].array
        count_of[i] = array.length("annotator") if "annotator" in array.axes else 0
        if count_of[i] != count_of[0]:
            raise StoreError(
                f"{array.where}: item {cut(names[i])} has labels of {count_of[i]} annotators, "
                f"item {cut(names[0])} of {count_of[0]}; expected the same number. Store a plane "
                "of the void id (255) for each annotator who did not label an item."
            )
    return count_of.get(0, 0)


def check_label_sizes(
    labels: Planes, names: Sequence[str], classes: int, sizes: Sequence[tuple[int, int]],
    *, volume: bool,
) -> None:  # fmt: skip
    """Raise an error if the labels of an item have another size than its predictions, in `sizes`.

    `volume`: items are slices of cases.
    """
    for item, (name, size) in enumerate(zip(names, sizes, strict=True)):
        where = f"{labels.where_of(item)}, item {cut(name)}"
        check_size(labels.size(item), classes, where, size, volume=volume)


def label_map(
    plane: Array,
    classes: int,
    ignore_index: int,
    where: str,
    size: tuple[int, int],
    noun: str = "labels",
    *,
    images: bool = False,
) -> Array:
    """Return the ids of a plane [y, x] as uint8, or uint16 above 255 classes.

    Void is the maximum of the dtype. `noun` names the ids in messages; it is set for predicted ids,
    which may be void. `images`: they are images that a label map would apply to. Raises
    `StoreError` for a plane of another size or dtype, `DataError` for ids that are neither a class
    nor `ignore_index`, or may be either (`refuse_ambiguous`).
    """
    check_size(plane.shape, classes, where, size, noun)
    if plane.dtype.kind not in "iub":
        raise StoreError(f"{where}: {noun} of dtype {plane.dtype}; expected integer class ids.")
    refuse_ambiguous(plane, classes, ignore_index, where, noun)
    void = plane == ignore_index
    label = plane.astype(id_dtype(classes))
    label[void] = void_of(classes)
    refuse_unknown(plane, void, classes, ignore_index, where, noun, images=images)
    return label


def refuse_unknown(
    plane: Array,
    others: Array,
    classes: int,
    ignore_index: int,
    where: str,
    noun: str = "labels",
    known: str = "",
    *,
    images: bool = False,
) -> None:
    """Raise `DataError` for ids of a plane [y, x] that no class has, except pixels of `others`.

    `known`: the other ids that are allowed, in the words of the message.
    """
    is_valid = others | ((plane >= 0) & (plane < classes))
    if is_valid.all():
        return
    strange = np.unique(plane[~is_valid])
    y, x = (int(k[0]) for k in np.nonzero(~is_valid))
    hint = "Give --ignore-index."
    if noun != "labels":
        hint = "Give --ignore-index, or --classes."
    elif images:
        hint = "Give --ignore-index, or --label-map cityscapes for Cityscapes ids."
    if strange.size == 1 and number_flaw("ignore_index", int(strange[0])):
        hint = f"If {strange[0]} is void, {how_to_give(int(strange[0]), ignore_index)}."
    if noun == "labels":
        hint = numbered_from_1(plane, strange, classes, ignore_index).strip() or hint
    raise DataError(
        f"{where}: {int((~is_valid).sum())} of {plane.size} pixels have {noun} outside the "
        f"{classes} classes 0 … {classes - 1} and other than ignore_index {ignore_index}{known}: "
        f"{listed(strange)} (first at row {y}, column {x}). {hint}"
    )


def labels_of_annotators(
    planes: Array, classes: int, ignore_index: int, where: str, size: tuple[int, int],
    images: bool,
) -> tuple[Array, Array]:  # fmt: skip
    """Return the class of the majority [y, x], and the ids [annotator, y, x], as `label_map`.

    On a tie the majority is the lowest id. An annotator who left the whole item void did not label
    it. A pixel is void in the majority if one of the others left it void. Raises as `label_map`,
    also `DataError` for one-hot labels.
    """
    from uqeval.kernels.annotators import majority

    refuse_one_hot(planes, classes, where)
    ids = np.stack([
        label_map(plane, classes, ignore_index, f"{where}, annotator {r}", size, images=images)
        for r, plane in enumerate(planes)
    ])  # fmt: skip
    flat = ids.reshape(len(ids), -1)
    label = np.empty(flat.shape[1], ids.dtype)
    majority(flat, (flat != void_of(classes)).any(axis=1), void_of(classes), label)
    return label.reshape(size), ids
