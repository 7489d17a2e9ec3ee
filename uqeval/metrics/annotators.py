"""The family `annotators`: do samples and probabilities resemble the labels of several annotators?

Generalized energy distance (Kohl et al. 2018), correlation of the uncertainty with the annotators'
disagreement (NCC, Kahl et al. 2024), and calibration against the shares of their votes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import uqeval.metrics.annotators_scores as scores_of_sums
from uqeval.metrics._columns import of_rows, over
from uqeval.metrics._contract import (
    ClassBars,
    Column,
    Display,
    Panel,
    RowTable,
    ScoreTable,
    set_value,
)
from uqeval.metrics._evaluation import Evaluation, Gaps, Run, TallyResult
from uqeval.metrics._family import Family, OnSubsets
from uqeval.metrics._items import once_for_equal_states
from uqeval.metrics.annotators_settings import AnnotatorsSettings, settings_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from uqeval.metrics._columns import Place, SetStates
    from uqeval.tallies import Tally
    from uqeval.tallies._fields import State

Record = dict[str, Any]
#: Scores of sums of distances, by their columns, and which need samples.
_DISTANCES = {"distance": 0, "diversity": 1, "annotator_diversity": 2, "agreement": 3,
              "annotator_ged": 4}  # fmt: skip
_OF_SAMPLES = frozenset({"ged", "distance", "diversity"})


class Annotators(Evaluation[AnnotatorsSettings]):
    """Scores of sums over items (distances and correlations) and over pixels (votes)."""

    @property
    def _samples(self) -> int:
        return self.info.samples or 0

    @property
    def _distances(self) -> Tally:
        from uqeval.tallies import AnnotatorDistances

        info = self.info
        distance = self.settings.distance_of(info.classes)
        return AnnotatorDistances(info.classes, info.annotators, self._samples, distance)

    @property
    def _votes(self) -> Tally:
        from uqeval.tallies import AnnotatorVotes

        settings, info = self.settings, self.info
        return AnnotatorVotes(info.classes, info.annotators, settings.binning(), settings.clip)

    @property
    def _correlation(self) -> Tally:
        from uqeval.tallies import AnnotatorCorrelation

        settings, info = self.settings, self.info
        return AnnotatorCorrelation(
            info.classes, info.annotators, settings.correlated, settings.disagreement,
            settings.ncc_ddof,
        )  # fmt: skip

    def maps(self) -> set[str]:
        return {name for tally in self.tallies() for name in tally.inputs}

    def tallies(self) -> tuple[Tally, ...]:
        return (self._distances, self._votes, self._correlation)

    def scores(self, states: Mapping[Tally, State], exact: Any = None) -> Record:
        own = [states[tally] for tally in self.tallies()]
        record: Record = {
            "uncertainty": self.settings.uncertainty, "annotators": self.info.annotators,
            "samples": self.info.samples,
        }  # fmt: skip
        record |= self._scores(*own)
        edges = self.settings.binning().edges().tolist()
        record["reliability"] = _reliability(own[1], edges)
        record["per_class"] = self._rows(*own[:2])
        return record

    def _scores(self, distances: State, votes: State, correlation: State) -> Record:
        """Return the scores of states, of a set or of an item."""
        items, sums = int(distances["items"][1]), distances["sums"].tolist()
        counts, of_votes = votes["counts"].tolist(), votes["sums"].tolist()
        bins = [votes[name].tolist() for name in ("count", "share", "confidence")]
        arguments: dict[str, tuple[Any, ...]] = {
            "ged": (*sums[:3], items),
            "ncc": (float(correlation["sum"][0]), int(correlation["items"][1])),
            "ece": tuple(bins),
            "kl": (*of_votes[:2], counts[0]),
            "cross_entropy": (of_votes[0], counts[0]),
            "label_entropy": (of_votes[1], counts[0]),
            "brier": (of_votes[2], counts[0]),
            "accuracy": (sum(bins[1]), counts[0]),
            "kappa": (*counts[2:], votes["votes"].tolist()),
        }
        arguments |= {name: (sums[column], items) for name, column in _DISTANCES.items()}
        record: Record = {}
        for metric in scores_of_sums.METRICS:
            lacks = metric.field in _OF_SAMPLES and not self._samples
            value = None if lacks else metric.formula(*arguments[metric.field])
            reason = scores_of_sums.NO_SAMPLES if lacks else metric.undefined
            set_value(record, metric.field, value, reason)
        return record | {"pixels": counts[0], "items": items}

    def _rows(self, distances: State, votes: State) -> list[Record]:
        rows = []
        columns = zip(
            distances["class_items"].tolist(), distances["class_sums"].tolist(),
            votes["votes"].tolist(), strict=True,
        )  # fmt: skip
        for c, (items, sums, own_votes) in enumerate(columns):
            row: Record = {"class": c, "name": self.info.class_names[c]}
            value = None
            if self._samples:
                value = scores_of_sums.ged(sums[0], sums[1], sums[2], items)
            absent = "no annotator and no sample has the class"
            set_value(row, "ged", value, absent if self._samples else scores_of_sums.NO_SAMPLES)
            set_value(row, "agreement", scores_of_sums.ratio(sums[3], items), absent)
            rows.append(row | {"items": items, "votes": own_votes})
        return rows

    def columns(
        self, states: Mapping[Tally, SetStates], fields: Collection[str]
    ) -> dict[Place, NDArray[Any]]:
        import numpy as np

        distances, votes, correlation = (states[tally] for tally in self.tallies())
        items, sums = distances["items"][:, 1], distances["sums"]
        counts, of_votes = votes["counts"], votes["sums"]
        pixels = counts[:, 0]
        nothing = 1.0 if self._samples else np.nan
        gaps = abs(votes["share"] - votes["confidence"]).sum(axis=1)
        columns: dict[Place, NDArray[Any]] = {
            ("ged",): nothing * _energy(sums, items),
            ("ncc",): over(correlation["sum"][:, 0], correlation["items"][:, 1]),
            ("ece",): over(gaps, pixels),
            ("kl",): over(of_votes[:, 0] - of_votes[:, 1], pixels),
            ("accuracy",): over(votes["share"].sum(axis=1), pixels),
            ("kappa",): _kappas(counts, votes["votes"]),
            ("pixels",): pixels, ("items",): items,
        }  # fmt: skip
        for column, name in enumerate(("cross_entropy", "label_entropy", "brier")):
            columns[name,] = over(of_votes[:, column], pixels)
        for name, column in _DISTANCES.items():
            factor = nothing if name in _OF_SAMPLES else 1.0
            columns[name,] = factor * over(sums[:, column], items)
        class_items, class_sums = distances["class_items"], distances["class_sums"]
        rows = {
            "ged": nothing * _energy(class_sums, class_items),
            "agreement": over(class_sums[..., 3], class_items),
            "items": class_items, "votes": votes["votes"],
        }  # fmt: skip
        return columns | of_rows(rows, np.arange(self.info.classes).tolist())

    def gaps(self) -> dict[Place, Gaps]:
        import numpy as np

        votes = self._votes

        def signed(states: Mapping[Tally, SetStates]) -> NDArray[Any]:
            own: NDArray[Any] = states[votes]["share"] - states[votes]["confidence"]
            return own

        def weights(states: Mapping[Tally, SetStates]) -> NDArray[Any]:
            count = states[votes]["count"]
            pixels = np.maximum(count.sum(axis=1), 1)
            return np.broadcast_to(1 / pixels[:, None], count.shape)

        return {("ece",): Gaps(signed, weights)}

    def records(self, results: Mapping[Tally, TallyResult]) -> list[Record]:
        tallies = self.tallies()

        def score(*packed: bytes) -> Record:
            states = [tally.unpack(data) for tally, data in zip(tallies, packed, strict=True)]
            return self._scores(*states)

        return once_for_equal_states(score, *(results[tally].items for tally in tallies))

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


def _reliability(votes: State, edges: Sequence[float]) -> Record:
    """Return the means of each bin; the last bin includes confidences not below 1."""
    table = []
    for name in ("count", "share", "confidence"):
        *inner, last, above = votes[name].tolist()
        table.append([*inner, last + above])
    count, share, total = table
    return {
        "lower": list(edges[:-1]),
        "upper": list(edges[1:]),
        "count": count,
        "confidence": [t / n if n else None for t, n in zip(total, count, strict=True)],
        "accuracy": [t / n if n else None for t, n in zip(share, count, strict=True)],
    }


def _energy(sums: NDArray[Any], items: NDArray[Any]) -> NDArray[Any]:
    return over(2 * sums[..., 0] - sums[..., 1] - sums[..., 2], items)


def _kappas(counts: NDArray[Any], votes: NDArray[Any]) -> NDArray[Any]:
    import numpy as np

    total = votes.sum(axis=1)
    expected = (over(votes, total[:, None]) ** 2).sum(axis=1)
    observed = over(counts[:, 3], counts[:, 2])
    return over(observed - expected, np.where(votes.max(axis=1) < total, 1 - expected, 0.0))


_ABOUT = """Several annotators: do the predictions disagree where people disagree?

Computes the generalized energy distance between samples and annotators (GED), the correlation of
the uncertainty with the annotators' disagreement (NCC), calibration against the shares of their
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
            "GED = 2·d(S, Y) - d(S, S') - d(Y, Y'). GED of one: of one annotator to the others.",
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
