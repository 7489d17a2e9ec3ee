"""Examples and slow oracles of the tallies of several annotators."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import naive_annotators as naive
import numpy as np
from scenes import item_maps

from uqeval.maps.names import annotations_of, choices_of, void_of
from uqeval.tallies._contract import Tally
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.annotator_distances import AnnotatorDistances, Distance
from uqeval.tallies.annotators import AnnotatorCorrelation, AnnotatorVotes
from uqeval.tallies.reliability import Bins

State = dict[str, Any]
Maps = dict[str, Any]
RATERS, SAMPLES = 3, 2
_ENTROPY = Uncertainty("entropy")

EXAMPLES: tuple[Tally, ...] = (
    AnnotatorDistances(4, RATERS, SAMPLES, Distance()),
    AnnotatorDistances(4, RATERS, 0, Distance("dice", absent="agree")),
    AnnotatorDistances(4, RATERS, SAMPLES, Distance("iou", True, "disagree")),
    AnnotatorDistances(4, RATERS, SAMPLES, Distance("dice", True, "disagree", pooled=True)),
    AnnotatorVotes(4, RATERS, Bins(5), 0.05),
    AnnotatorCorrelation(4, RATERS, _ENTROPY, "variance", 0),
    AnnotatorCorrelation(4, RATERS, _ENTROPY, "entropy", 1),
)


def annotated_maps(seed: int, height: int, width: int, classes: int) -> Maps:
    """Maps of an item with labels of three annotators, of whom the last is absent in the second
    item; void pixels are not the same for all."""
    rng = np.random.default_rng(seed)
    maps = item_maps(seed, height, width, classes, void=0.1)
    own = np.stack([maps["label"]] * RATERS)
    moved = (rng.random(own.shape) < 0.3) & (own != void_of(classes))
    own[moved] = rng.integers(0, classes, int(moved.sum()))
    own[1][rng.random(own[1].shape) < 0.05] = void_of(classes)
    if seed == 1:
        own[2] = void_of(classes)
    return annotated(maps, own, seed, classes)


def annotated(maps: Maps, own: Any, seed: int, classes: int) -> Maps:
    """The maps with these labels, their majority, and what samples choose."""
    rng = np.random.default_rng(seed + 100)
    choices = np.stack([maps["prediction"]] * SAMPLES)
    choices[1] = np.where(rng.random(choices[1].shape) < 0.4, own[0] % classes, choices[1])
    return maps | {
        "label": naive.majority(own, classes), annotations_of(RATERS): own,
        choices_of(SAMPLES): choices,
    }  # fmt: skip


def items(classes: int, shapes: Sequence[tuple[int, int]]) -> list[Maps]:
    """Items of these shapes: the fourth is void, in the fifth all annotators agree."""
    found = [annotated_maps(seed, *shape, classes) for seed, shape in enumerate(shapes)]
    for i, value in ((3, void_of(classes)), (4, 1)):
        own = np.full_like(found[i][annotations_of(RATERS)], value)
        found[i] = annotated(found[i], own, i, classes)
    return found


def _labels(maps: Maps) -> Any:
    return maps[annotations_of(RATERS)]


def _distances(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    own = tally.distance
    how = (own.kind, own.absent, "pooled" if own.pooled else "mean")
    for maps in items:
        labels = _labels(maps)
        known = naive.mask(labels)
        samples = maps[choices_of(SAMPLES)][: tally.samples]
        state["pixels"] += known.sum()
        state["items"] += [known.any(), known.any() and len(naive.present(labels)) > 1]
        counted = list(range(1 if own.foreground else 0, tally.classes))
        found = naive.distances(samples if len(samples) else labels[:1], labels, counted, *how)
        if found is None:
            continue
        names = ("distance", "diversity", "annotator_diversity", "agreement", "annotator_ged")
        state["sums"] += [found[n] if tally.samples or i > 1 else 0 for i, n in enumerate(names)]
        planes = [*samples, *naive.present(labels)]
        for c in range(tally.classes):
            if any((plane[known] == c).any() for plane in planes):
                # A class in neither of two maps has a distance of its own here.
                alone = "disagree" if own.absent == "disagree" else "agree"
                of_class = naive.distances(
                    samples if len(samples) else labels[:1], labels, [c], own.kind, alone, how[2]
                )
                assert of_class is not None
                state["class_items"][c] += 1
                state["class_sums"][c] += [
                    of_class[n] if tally.samples or i > 1 else 0 for i, n in enumerate(names[:4])
                ]
    return state


def _votes(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        known = naive.mask(_labels(maps))
        raters = naive.present(_labels(maps))
        for y, x in np.argwhere(known):
            own = [int(plane[y, x]) for plane in raters]
            p = maps["mean_probs"][:, y, x].astype(float)
            q = np.array([own.count(c) / len(own) for c in range(tally.classes)])
            b = max(math.ceil(tally.bins.count * float(maps["confidence"][y, x])), 1) - 1
            b += b == tally.bins.count - 1 and maps["confidence"][y, x] == 1
            state["count"][b] += 1
            state["share"][b] += q[maps["prediction"][y, x]]
            state["confidence"][b] += float(maps["confidence"][y, x])
            for c in own:
                state["votes"][c] += 1
            pairs = [(i, j) for i in range(len(own)) for j in range(len(own)) if i != j]
            agreeing = sum(own[i] == own[j] for i, j in pairs)
            clipped = any(p[c] < tally.clip for c in own)
            state["counts"] += [1, clipped, len(pairs), agreeing]
            logs = np.log(np.maximum(p, tally.clip))
            state["sums"] += [
                -float(q @ logs), -sum(a * math.log(a) for a in q if a), float(((p - q) ** 2).sum())
            ]  # fmt: skip
    return state


def _correlation(tally: Any, items: Sequence[Maps]) -> State:
    state: State = tally.empty()
    for maps in items:
        labels = _labels(maps)
        known = naive.mask(labels)
        state["items"][0] += known.any()
        two = known.any() and len(naive.present(labels)) > 1
        state["items"][2] += two and all(
            (plane[known] == naive.present(labels)[0][known]).all()
            for plane in naive.present(labels)
        )
        r = naive.ncc(maps["entropy"], labels, tally.classes, tally.disagreement, tally.ddof)
        if not math.isnan(r):
            state["items"][1] += 1
            state["sum"] += r
    return state


Oracle = Callable[[Any, Sequence[Maps]], State]
ORACLES: dict[type[Tally], Oracle] = {
    AnnotatorDistances: _distances,
    AnnotatorVotes: _votes,
    AnnotatorCorrelation: _correlation,
}
