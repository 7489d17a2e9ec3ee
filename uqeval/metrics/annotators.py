"""The family `annotators`: do samples and probabilities resemble the labels of several annotators?

Generalized energy distance (Kohl et al. 2018), correlation of the uncertainty with the annotators'
disagreement (NCC, Kahl et al. 2024), and calibration against the shares of their votes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.annotators_scores as scores_of_sums
from uqeval.arrays import Array, State, np
from uqeval.metrics._columns import (
    Place,
    SetColumns,
    SetStates,
    as_numbers,
    class_rows,
    of_rows,
    over,
    running_sum,
    scores_of,
)
from uqeval.metrics._contract import (
    ClassBars,
    Column,
    Display,
    Panel,
    RowTable,
    ScoreTable,
)
from uqeval.metrics._evaluation import Evaluation, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets
from uqeval.metrics._items import score_items
from uqeval.metrics._score_kinds import Gaps
from uqeval.metrics.annotators_settings import AnnotatorsSettings, settings_of
from uqeval.metrics.calibration_scores import Binned

if TYPE_CHECKING:
    from uqeval.tallies._contract import Tally

Record = dict[str, Any]
#: Scores of sums of distances, by their columns, and which need samples.
_DISTANCES = {"distance": 0, "diversity": 1, "annotator_diversity": 2, "agreement": 3,
              "annotator_ged": 4}  # fmt: skip
_OF_SAMPLES = frozenset({"ged", "distance", "diversity"})


class Annotators(Evaluation[AnnotatorsSettings]):
    """Scores of sums over items (distances and correlations) and over pixels (votes)."""

    @property
    def _samples(self) -> int:
        return self.info.samples or self.info.choices

    @property
    def _distances(self) -> Tally:
        from uqeval.tallies.annotator_distances import AnnotatorDistances

        info = self.info
        distance = self.settings.distance_of(info.classes)
        return AnnotatorDistances(info.classes, info.annotators, self._samples, distance)

    @property
    def _votes(self) -> Tally:
        from uqeval.tallies.annotators import AnnotatorVotes

        settings, info = self.settings, self.info
        return AnnotatorVotes(info.classes, info.annotators, settings.binning(), settings.clip)

    @property
    def _correlation(self) -> Tally:
        from uqeval.tallies.annotators import AnnotatorCorrelation

        settings, info = self.settings, self.info
        return AnnotatorCorrelation(
            info.classes, info.annotators, settings.correlated, settings.disagreement,
            settings.ncc_ddof,
        )  # fmt: skip

    def tallies(self) -> tuple[Tally, ...]:
        return (self._distances, self._votes, self._correlation)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> Record:
        own = [SetStates.of_one(states[tally]) for tally in self.tallies()]
        columns = self._columns(*own)
        (scores,) = self._records(columns)
        record: Record = {
            "uncertainty": self.settings.uncertainty, "annotators": self.info.annotators,
            "samples": self._samples or None,
        }  # fmt: skip
        record |= scores
        edges = self.settings.binning().edges().tolist()
        record["reliability"] = _reliability(states[self._votes], edges)
        record["per_class"] = self._rows(columns)
        return record

    def columns(self, states: Mapping[Tally, SetStates], fields: Collection[str]) -> SetColumns:
        return self._columns(*(states[tally] for tally in self.tallies()))

    def _columns(
        self, distances: SetStates, votes: SetStates, correlation: SetStates
    ) -> SetColumns:
        items, sums = distances["items"][:, 1], distances["sums"].T
        pixels, _, pairs, agreeing = votes["counts"].T
        cross_entropy, label_entropy, brier = votes["sums"].T
        binned = _binned(votes)
        arguments: dict[str, tuple[Any, ...]] = {
            "ged": (*sums[:3], items),
            "ncc": (correlation["sum"][:, 0], correlation["items"][:, 1]),
            "ece": (binned.count, binned.correct, binned.confidence),
            "kl": (cross_entropy, label_entropy, pixels),
            "cross_entropy": (cross_entropy, pixels),
            "label_entropy": (label_entropy, pixels),
            "brier": (brier, pixels),
            "accuracy": (running_sum(votes["share"]), pixels),
            "kappa": (pairs, agreeing, votes["votes"]),
        }
        arguments |= {name: (sums[column], items) for name, column in _DISTANCES.items()}
        columns: SetColumns = {("pixels",): pixels, ("items",): items}
        for metric in scores_of_sums.METRICS:
            columns[metric.field,] = metric.formula(*arguments[metric.field])
        class_items = distances["class_items"]
        of_both, of_samples, of_people, overlap = np.moveaxis(distances["class_sums"], 2, 0)
        rows = {
            "ged": scores_of_sums.ged(of_both, of_samples, of_people, class_items),
            "agreement": over(overlap, class_items),
            "items": class_items, "votes": votes["votes"],
        }  # fmt: skip
        columns |= of_rows(rows, range(self.info.classes))
        for place, column in columns.items() if not self._samples else ():
            if place[-1] in _OF_SAMPLES:
                columns[place] = np.full(column.shape, np.nan)
        return columns

    def _records(self, columns: Mapping[Place, Array]) -> list[Record]:
        """Return the scores of each set, or of each item."""
        records = scores_of(scores_of_sums.METRICS, columns)
        pixels, items = (as_numbers(columns[name,]) for name in ("pixels", "items"))
        for record, n, compared in zip(records, pixels, items, strict=True):
            for name in () if self._samples else _OF_SAMPLES:
                record[f"{name}_reason"] = scores_of_sums.NO_SAMPLES
            record |= {"pixels": n, "items": compared}
        return records

    def _rows(self, columns: Mapping[Place, Array]) -> list[Record]:
        """Return the scores of each class of one set."""
        absent = "no annotator and no sample has the class"
        without = absent if self._samples else scores_of_sums.NO_SAMPLES
        undefined = {"ged": without, "agreement": absent, "items": "", "votes": ""}
        return class_rows(columns, self.info.class_names, undefined)

    def gaps(self) -> dict[Place, Gaps]:
        votes = self._votes

        def signed(states: Mapping[Tally, SetStates]) -> Array:
            return _binned(states[votes]).signed

        def weights(states: Mapping[Tally, SetStates]) -> Array:
            count = _binned(states[votes]).count
            pixels = np.maximum(count.sum(axis=1), 1)
            return np.broadcast_to(1 / pixels[:, None], count.shape)

        return {("ece",): Gaps(signed, weights)}

    def records(self, results: Mapping[Tally, TallyResult]) -> list[Record]:
        return score_items(
            self.tallies(), results, lambda *states: self._records(self._columns(*states))
        )

    def numerics(self, run: Run) -> dict[str, int]:
        counted, correlated = (run.total(t)["items"] for t in (self._distances, self._correlation))
        return {
            "void": sum(h * w for h, w in self.info.sizes) - run.results["pixels"],
            "clipped": int(run.total(self._votes)["counts"][1]),
            "fewer_than_two": len(self.info.names) - int(counted[1]),
            "agree_everywhere": int(correlated[2]),
        }

    def warnings(self, run: Run) -> list[str]:
        counts, items, messages = self.numerics(run), len(self.info.names), []
        if few := counts["fewer_than_two"]:
            messages.append(
                f"{few} of {items} items have labels of fewer than two annotators and are left out "
                "of the distances and of NCC."
            )
        if alike := counts["agree_everywhere"]:
            messages.append(
                f"in {alike} of {items} items the annotators agree at every pixel; these items "
                "have no NCC."
            )
        return messages


def _binned(votes: State | SetStates) -> Binned:
    """Return the bins, [set, bin] or [bin], with the summed shares of votes as `correct`.

    The last bin includes confidences not below 1, which are counted apart.
    """
    names = {"count": "count", "correct": "share", "confidence": "confidence"}
    return Binned.of(SetStates({name: votes[own] for name, own in names.items()}), "last")


def _reliability(votes: State, edges: Sequence[float]) -> Record:
    """Return the means of each bin."""
    binned = _binned(votes)
    columns = (binned.count, binned.correct, binned.confidence)
    count, share, total = (values.tolist() for values in columns)
    return {
        "lower": list(edges[:-1]),
        "upper": list(edges[1:]),
        "count": count,
        "confidence": [t / n if n else None for t, n in zip(total, count, strict=True)],
        "accuracy": [t / n if n else None for t, n in zip(share, count, strict=True)],
    }


_ABOUT = """Several annotators: do the predictions disagree where people disagree?

Computes the generalized energy distance between samples and annotators (GED), the correlation of
the uncertainty with the annotators' disagreement (NCC), calibration against the fractions of their
votes, and how well the annotators agree. LABELS is an array `labels` with the axes item,
annotator, y and x. With --annotator-folders it is a folder with one folder of label PNGs for each
annotator.

Example: uqeval annotators preds.zarr labels.zarr --uncertainty expected_entropy
"""

DISPLAY = Display(
    tables=(
        ScoreTable(
            "Several annotators",
            (
                "uncertainty", "ged", "ncc", "ece", "kl", "cross_entropy", "brier", "accuracy",
                "items", "pixels",
            ),
            "GED 0: the samples vary as the annotators do. NCC 1: the uncertainty is proportional "
            "to their disagreement.",
        ),
        ScoreTable(
            "Samples and annotators",
            (
                "distance", "diversity", "annotator_diversity", "annotator_ged", "agreement",
                "kappa", Column("label_entropy", "entropy of votes"),
            ),
            "GED = 2·d(S, Y) - d(S, S') - d(Y, Y'). GED of one: GED between one annotator and "
            "the others.",
        ),
        RowTable(
            "Several annotators by class", "per_class", ("ged", "agreement", "items", "votes")
        ),
    ),
    bars=ClassBars(
        "Several annotators", (Panel("ged", "GED"), Panel("agreement", "agreement of annotators"))
    ),
    figures=("annotators",),
)  # fmt: skip

FAMILY = Family(
    "annotators",
    scores_of_sums.METRICS,
    settings_of,
    Annotators,
    AnnotatorsSettings,
    about=_ABOUT,
    display=DISPLAY,
    label="Several annotators",
    words={"votes": "votes", "items": "items"},
    on_subsets=OnSubsets(),
    needs_annotators=True,
)
