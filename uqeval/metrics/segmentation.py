"""Segmentation scores of a pooled confusion matrix over non-void pixels.

IoU over the classes present in labels or predictions; accuracy over those present in labels.
Everingham et al., "The PASCAL Visual Object Classes Challenge", IJCV 2010 (IoU); Long et al. 2015.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.arrays import Array, State
from uqeval.errors import DataError, number_of
from uqeval.metrics._columns import (
    Place,
    SetColumns,
    SetStates,
    as_numbers,
    class_rows,
    mean_of_defined,
    of_rows,
    over,
    scores_of,
)
from uqeval.metrics._contract import (
    NO_LABEL,
    ONE_CLASS,
    ClassBars,
    Display,
    Doubt,
    Metric,
    Panel,
    ScoreTable,
)
from uqeval.metrics._dataset_info import DatasetInfo, all_void
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets, variants
from uqeval.metrics._items import score_items
from uqeval.settings import Settings, definition_of, documented

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally


@documented
@dataclass(frozen=True)
class SegmentationSettings(Settings):
    """Segmentation scores have no settings."""

    definition: str = definition_of(Settings.definitions)


def class_counts(states: SetStates) -> list[Array]:
    """Return labelled, predicted and correct pixels of each class, each [set, class]."""
    return [states[name] for name in ("labelled", "predicted", "correct")]


def class_ious(labelled: Array, predicted: Array, correct: Array) -> Array:
    """Return TP / (TP + FP + FN) of each class [set, class]; NaN where neither labels nor
    predictions have it. Counts as of `class_counts`.
    """
    return over(correct, labelled + predicted - correct)


def pixel_accuracy(labelled: Array, predicted: Array, correct: Array) -> Array:
    """Return the share of non-void pixels that are right [set]; NaN where all are void."""
    return over(correct.sum(axis=-1), labelled.sum(axis=-1))


def mean_accuracy(labelled: Array, predicted: Array, correct: Array) -> Array:
    """Return the mean of TP / (TP + FN) over the classes in the labels [set]; NaN without any."""
    return mean_of_defined(over(correct, labelled))


def miou(labelled: Array, predicted: Array, correct: Array) -> Array:
    """Return the mean IoU over the classes in labels or predictions [set]; NaN without any."""
    return mean_of_defined(class_ious(labelled, predicted, correct))


METRICS = (
    Metric("segmentation", "pixel_accuracy", "fraction", "higher", (0.0, 1.0),
           "Long et al. 2015, §5", NO_LABEL, pixel_accuracy,
           label="pixel accuracy", headline=2, of_part="error",
           meaning="Share of pixels with the right class.",
           advice="Look at the classes with the lowest IoU first.",
           interval="share", counted=("pixels",), of_class="accuracy"),
    Metric("segmentation", "mean_accuracy", "fraction", "higher", (0.0, 1.0),
           "Long et al. 2015, §5", NO_LABEL, mean_accuracy,
           label="mean accuracy",
           meaning="Accuracy of each class, averaged over the classes.",
           advice="Look at the classes with the lowest accuracy first.",
           interval="logit", of_class="accuracy", mean_of="accuracy"),
    Metric("segmentation", "miou", "fraction", "higher", (0.0, 1.0), "Everingham et al. 2010, §4.1",
           NO_LABEL, miou,
           label="mIoU", headline=1, of_part="error",
           meaning="Overlap of prediction and label (IoU), averaged over the classes.",
           advice="Look at the classes with the lowest IoU first.",
           interval="logit", of_class="iou", mean_of="accuracy",
           no_meaning_in=ONE_CLASS),
)  # fmt: skip


#: Above this share of the pixels, classes that no label has are predicted too often.
_OFTEN = 0.25
#: Below this share of the accuracy of guessing, something else is wrong than the network.
_FAR_BELOW = 0.5


class Segmentation(Evaluation[SegmentationSettings]):
    """Scores of the confusion matrix of all items."""

    @property
    def _counts(self) -> Tally:
        from uqeval.tallies.segmentation import ClassCounts

        return ClassCounts(self.info.classes)

    def tallies(self) -> tuple[Tally, ...]:
        return (self._counts,)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> dict[str, Any]:
        return _results(states[self._counts], self.info.class_names)

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return _columns(states[self._counts])

    def records(self, results: Mapping[Tally, TallyResult]) -> list[dict[str, Any]]:
        return score_items(self.tallies(), results, lambda states: _scores(_columns(states)))

    def numerics(self, run: Run) -> dict[str, int]:
        return {"void": int(run.total(self._counts)["void"][0])}

    def warnings(self, run: Run) -> list[str]:
        doubt = _doubt(run.results)
        warnings = [doubt.warning] if doubt else []
        total = run.total(self._counts)
        void = int(total["void"][0])
        # In a region, void pixels are also those outside of it.
        is_other_id = (self.info.ignore_index or 0) > 1
        is_doubted = self.info.classes == 2 and is_other_id and not total["labelled"][1]
        if is_doubted and void and not self.region:
            pixels = void + int(total["labelled"][0])
            warnings.append(
                f"no label is 1, and {void:,} of {pixels:,} pixels are void, with the id "
                f"{self.info.ignore_index}. If your masks have {self.info.ignore_index} where the "
                f"class is 1, save them as `(mask == {self.info.ignore_index}).astype('uint8')`."
            )
        return [
            *warnings,
            *([] if self.region else _other_classes(total["labelled"], total["predicted"])),
        ]

    def check(self, results: Mapping[Tally, TallyResult]) -> None:
        """Raise `DataError` where every label is void."""
        if not results[self._counts].total["labelled"].any():
            if self.info.annotators:
                raise DataError(
                    f"{self.info.labels}: nothing is left to evaluate: in "
                    f"{number_of(len(self.info.names), 'item')}, no pixel is labelled by all "
                    f"annotators of its item (void: {self.info.ignore_index}). Remove annotators "
                    "who labelled only parts of items, or fill their whole plane with void."
                )
            raise all_void(self.info)


def _doubt(record: Mapping[str, Any]) -> Doubt | None:
    """Return a doubt if the accuracy is far below that of guessing among several classes."""
    accuracy, rows = record.get("pixel_accuracy"), record.get("per_class") or []
    classes, labelled = len(rows), sum(row.get("pixels", 0) > 0 for row in rows)
    if accuracy is None or labelled < 2 or accuracy >= _FAR_BELOW / classes:
        return None
    return Doubt(
        f"the pixel accuracy is {accuracy:.4f}, far below that of guessing one of {classes} "
        f"classes ({1 / classes:.4f})",
        "The classes of predictions and labels may be in another order, or labels may begin at 1.",
    )


def _other_classes(labelled: Array, predicted: Array) -> list[str]:
    """Return a warning if labels have only the ids 0 and 1, and often another class is predicted:
    it may be the number of a sample.

    `labelled`, `predicted`: pixels by class.
    """
    classes, pixels = len(labelled), int(labelled.sum())
    others = int(predicted[2:].sum())
    if labelled[2:].any() or not labelled[:2].all() or others <= _OFTEN * pixels:
        return []
    return [
        f"the labels have only the ids 0 and 1, but of {classes} classes, others are predicted at "
        f"{others:,} of {pixels:,} pixels. If these are {classes} samples of a binary network, not "
        "classes, save them with an axis of one class: [N, T, 1, H, W], as by values[:, :, None]."
    ]


def _results(total: State, class_names: Sequence[str]) -> dict[str, Any]:
    """Return the scores of a state, and of each class."""
    columns = _columns(SetStates.of_one(total))
    (results,) = _scores(columns)
    undefined = {
        "iou": "the class is in no label and no prediction",
        "accuracy": "the class is in no label",
        "pixels": "",
    }
    return results | {"per_class": class_rows(columns, class_names, undefined)}


def _scores(columns: Mapping[Place, Array]) -> list[dict[str, Any]]:
    """Return the scores and the pixels of each set."""
    pixels = as_numbers(columns["pixels",])
    return [
        record | {"pixels": n}
        for record, n in zip(scores_of(METRICS, columns), pixels, strict=True)
    ]


def _columns(states: SetStates) -> SetColumns:
    """Return the scores of several sets."""
    counts = labelled, _, correct = class_counts(states)
    rows = {"iou": class_ious(*counts), "accuracy": over(correct, labelled), "pixels": labelled}
    return {
        **{(metric.field,): metric.formula(*counts) for metric in METRICS},
        ("pixels",): labelled.sum(axis=1),
        **of_rows(rows, range(labelled.shape[1])),
    }


def _settings(options: Mapping[str, Any], info: DatasetInfo) -> dict[str, SegmentationSettings]:
    return variants("segmentation", SegmentationSettings, options)


DISPLAY = Display(
    tables=(ScoreTable("Segmentation", ("pixel_accuracy", "mean_accuracy", "miou", "pixels")),),
    bars=ClassBars("Segmentation", (Panel("iou", "IoU"), Panel("accuracy", "accuracy"))),
    # A run evaluates them with another family, whose scores rank the items.
    ranks_items=False,
)

FAMILY = Family(
    "segmentation",
    METRICS,
    _settings,
    Segmentation,
    SegmentationSettings,
    display=DISPLAY,
    label="Segmentation",
    words={"iou": "IoU"},
    on_subsets=OnSubsets(default=("classes",)),
    doubt=_doubt,
)
