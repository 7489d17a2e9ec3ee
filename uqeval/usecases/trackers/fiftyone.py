"""FiftyOne: a dataset with one sample per item: image, scores, slices, prediction and maps."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from uqeval.arrays import np
from uqeval.errors import OutputError, UsageError, cut, listed, quoted
from uqeval.maps.names import void_of
from uqeval.records.report import Report
from uqeval.usecases.trackers.entry import import_library, reason_of

if TYPE_CHECKING:
    from pathlib import Path

    from uqeval.usecases.gallery.opening import Pictures

#: Maps of predicted numbers, except the standard deviations.
_NUMBERS = ("mean", "target", "error")


class FiftyOneDataset:
    """A new dataset. Raises `UsageError` without the library, and if the dataset exists."""

    def __init__(self, name: str) -> None:
        import_library("fiftyone")
        import fiftyone

        self._name = name
        try:
            exists = fiftyone.dataset_exists(name)
        except Exception as error:  # of FiftyOne, of its database, of starting it
            raise self._refused(error) from error
        if exists or not name.strip():
            raise UsageError(
                f"--fiftyone {quoted(name)}: this dataset exists. Name another, or delete it: "
                f"fiftyone datasets delete {name}"
                if exists
                else "--fiftyone needs the name of a dataset, such as --fiftyone city."
            )

    def add(self, report: Report, pictures: Pictures, images: Mapping[str, Path]) -> str:
        """Write all items with their `images`, by name; return a message.

        Raises `OutputError` if FiftyOne refuses it; then there is no dataset. Errors of the stores
        are raised unchanged.
        """
        import fiftyone

        from uqeval.report.findings import findings_of

        dataset = None
        try:
            dataset = fiftyone.Dataset(self._name, persistent=True)
            names = pictures.inputs.class_names
            dataset.default_mask_targets = {c + 1: name for c, name in enumerate(names)}
            dataset.mask_targets = {"errors": {1: "wrong"}}
            dataset.description = "\n".join(f.text for f in findings_of(report))
            dataset.info = {"uqeval": report.scalars()}
            samples = _samples(report, pictures, images)
            dataset.add_samples(samples, progress=False, num_samples=len(report.items))
            dataset.save()
        except BaseException as error:
            if dataset is not None:
                dataset.delete()
            if type(error).__module__.split(".")[0] in ("fiftyone", "pymongo", "mongoengine"):
                raise self._refused(error) from error
            raise
        return f"wrote {len(report.items)} items to FiftyOne: fiftyone app launch {self._name}"

    def _refused(self, error: BaseException) -> OutputError:
        return OutputError(
            f"--fiftyone {quoted(self._name)}: FiftyOne refuses it: {reason_of(error)}. Check its "
            "database (FIFTYONE_DATABASE_URI): fiftyone datasets list"
        )


def images_by_item(report: Report, folder: str | None) -> dict[str, Path]:
    """Return the image of each item. Raises `UsageError` if one has none."""
    from uqeval.usecases.gallery.paint import images_of

    if folder is None:
        raise UsageError("--fiftyone shows images; give --images DIR, with files named as items.")
    names = report.item_names
    by_item = images_of(folder, names)
    if lost := [name for name in names if name not in by_item]:
        raise UsageError(
            f"--images {cut(folder)}: {len(lost)} of {len(names)} items have no image: "
            f"{listed(lost)}. A sample of FiftyOne is an image; add them."
        )
    return by_item


def _samples(report: Report, pictures: Pictures, images: Mapping[str, Path]) -> Iterator[Any]:
    """Yield one sample per item, with scores, slices as tags, and maps."""
    import fiftyone

    slices = {
        key: set(slice_record.get("names", [])) for key, slice_record in report.slices.items()
    }
    measures = {s["uncertainty"] for s in report.settings.values() if s.get("uncertainty")}
    inputs = pictures.inputs
    for i, row in enumerate(report.to_frame()):
        name = row.pop("name")
        sample = fiftyone.Sample(filepath=str(images[name].resolve()))
        sample["item"] = name
        sample.tags = [key for key, names in slices.items() if name in names]
        for field, value in row.items():
            if value is not None:
                sample[re.sub(r"[^A-Za-z0-9]+", "_", field).strip("_")] = value
        with inputs.watch.reading((i,)):
            (maps,) = inputs.source.read(range(i, i + 1))
        for field, label in _labels(maps, inputs.source.classes, inputs.source.kind, measures):
            sample[field] = label
        yield sample


def _labels(
    maps: Mapping[str, Any], classes: int, kind: str, measures: set[str]
) -> Iterator[tuple[str, Any]]:
    """Yield the maps of an item as labels of FiftyOne.

    Ids are increased by 1, and void is 0, because FiftyOne hides 0.
    """
    import fiftyone

    is_void = maps["label"] == void_of(classes)
    if kind == "classes":
        dtype = np.uint8 if classes < 255 else np.uint16
        truth = np.where(is_void, 0, maps["label"].astype(np.int64) + 1)
        wrong = ~is_void & (maps["prediction"] != maps["label"])
        ids = maps["prediction"].astype(np.int64) + 1
        for field, mask in (("prediction", ids), ("ground_truth", truth), ("errors", wrong)):
            yield field, fiftyone.Segmentation(mask=mask.astype(dtype))
    for field in (*(() if kind == "classes" else _NUMBERS), *sorted(measures)):
        values = np.where(is_void, 0, np.nan_to_num(maps[field].astype(np.float32), posinf=0))
        high = float(values.max()) or 1.0
        yield field, fiftyone.Heatmap(map=values, range=[min(0.0, float(values.min())), high])
