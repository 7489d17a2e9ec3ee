"""How often equal models differ, if a score depends on a number that was fitted for each model.

`python -m benchmarks.fitted [--only threshold] [--repeats 200] [--items 40] [--fit 6]` draws images
and two models that are exchangeable in every image, so the true difference is 0. Each model has a
threshold, a temperature or a factor of σ of its own: from `--fit` other images, from as many of the
evaluated ones, or from all of them. A row has the share of repetitions with p <= 0.05 in the test
of swaps (aim: at most 5 %) and the share of intervals at 95 % that contain 0, each with its Monte
Carlo error. Both are computed as if nothing had been fitted, and scores by rank from swaps of ranks
alone; "compare" says whether `uqeval compare` gives them. "half": the fit is on all images, the
test on half of them, as in a slice.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import uqeval
from uqeval.records.report import Report
from uqeval.records.resampling import Interval
from uqeval.statistics.paired_comparison import OpenedReport, PairedComparison, paired_comparison

Array = np.ndarray[Any, Any]
CLASSES, SIDE, BLOCK = 4, 16, 4
LEVEL, DRAWS = 0.95, 500
#: Standard deviations: of the difficulty of an image, and of what a model makes of the image.
SPREAD = 0.6
_PATCHES = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "phi", "surplus")
_CURVES = ("pavpu_peak.value", "surplus_peak.value", "surplus_auc")
_OF_RANKS = ("auroc", "aupr_error", "aupr_success", "fpr95", "aurc", "e_aurc", "augrc")
_OF_ITEMS = ("aurc", "e_aurc", "augrc", "auroc", "spearman", "kendall")
_BINS = ("ece", "nll")


@dataclass(frozen=True)
class Group:
    """The settings of a group of rows by metric, and its scores.

    In settings, "FIT" is the report of other images, with the settings `fitting`, and "NAMES" the
    file of `--fit-on`. `half`: also compare half of the images. `hard`, `sure`: the shares of
    images that a model finds hard, or has full confidence in; other ones than the other model.
    """

    metrics: Mapping[str, Mapping[str, Any]]
    scores: Sequence[str]
    fitting: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    of_numbers: bool = False
    half: bool = False
    hard: float = 0.0
    sure: float = 0.0


_RECALIBRATED = {"temperature": True, "isotonic": True, "vector": True, "adaptive": False}
_OF_THRESHOLD = [*(f"pavpu.{name}" for name in _PATCHES), "failure.undetected_error_rate"]
_OF_PARTS = [f"calibration.{p}.{n}" for p in ("temperature", "isotonic", "vector") for n in _BINS]


def _at(threshold: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the settings of all metrics with an uncertainty threshold."""
    return {
        "pavpu": {**threshold, "deciles": False},
        "failure": threshold,
        "image_failure": {**threshold, "risk": "accuracy", "confidence": "share"},
    }


GROUPS: Mapping[str, Group] = {
    "threshold of other images": Group(
        _at({"threshold_from": "FIT"}),
        [*_OF_THRESHOLD, "failure.auroc", "image_failure.aurc", "image_failure.auroc"],
        fitting={"pavpu": {"deciles": False}},
    ),
    "max-surplus of all images": Group(
        _at({"threshold": "max-surplus"}),
        [*_OF_THRESHOLD, "image_failure.aurc", "image_failure.auroc"],
        half=True,
    ),
    "mean of all images": Group(_at({"threshold": "mean"}), _OF_THRESHOLD, half=True),
    **{
        f"{share:.0%} of images hard, {rule} of all": Group(
            _at({"threshold": rule}), _OF_THRESHOLD, hard=share
        )
        for rule, share in (
            ("mean", 0.5),
            ("median", 0.5),
            ("p75", 0.5),
            ("range:0.2", 0.5),
            ("mean", 0.02),
            ("range:0.2", 0.02),
            ("max-surplus", 0.02),
        )
    },
    "recalibrated on --fit-on": Group(
        {"calibration": {**_RECALIBRATED, "fit_on": "NAMES"}}, [*_OF_PARTS, "calibration.ece"]
    ),
    "recalibrated on all images": Group({"calibration": _RECALIBRATED}, _OF_PARTS),
    "2% of images hard, recalibrated on all": Group(
        {"calibration": _RECALIBRATED},
        [*_OF_PARTS, *(f"calibration.{n}" for n in _BINS)],
        hard=0.02,
    ),
    "2% of images hard, curve of all": Group(
        {"pavpu": {"deciles": False}}, [f"pavpu.{name}" for name in _CURVES], hard=0.02
    ),
    "2% of images hard, images by pavpu at mean": Group(
        {"image_failure": {"risk": "pavpu.pavpu"}},
        [f"image_failure.{name}" for name in ("mean_risk", *_OF_ITEMS)],
        hard=0.02,
    ),
    "2% of images hard, images by share at mean": Group(
        {"image_failure": {"risk": "accuracy", "confidence": "share"}},
        [f"image_failure.{name}" for name in _OF_ITEMS],
        hard=0.02,
    ),
    "2% of images hard, ranks of all": Group(
        {"failure": {"threshold": 0.5}}, [f"failure.{name}" for name in _OF_RANKS], hard=0.02
    ),
    "full confidence in 5% of images, ranks of all": Group(
        {"failure": {"threshold": 0.5}}, [f"failure.{name}" for name in _OF_RANKS], sure=0.05
    ),
    "5% of images with small σ, fitted on all": Group(
        {"regression": {"ence": True, "sigma_scale": True}, "nmerci": {}},
        [
            *(f"regression.{n}" for n in ("ence", "uce", "sigma_scale.nll")),
            *(f"nmerci.{n}" for n in ("nmerci", "merci")),
        ],
        of_numbers=True,
        hard=0.05,
    ),
    "factor of σ on --fit-on": Group(
        {"regression": {"sigma_scale": True, "fit_on": "NAMES"}},
        ["regression.sigma_scale.nll", "regression.sigma_scale.nll_before"],
        of_numbers=True,
    ),
    "factor of σ on all images": Group(
        {"regression": {"sigma_scale": True}}, ["regression.sigma_scale.nll"], of_numbers=True
    ),
}


@dataclass(frozen=True)
class Row:
    """Shares of p-values up to 1 - `LEVEL`, and of intervals that contain 0."""

    group: str
    score: str
    called: Sequence[bool]
    covered: Sequence[bool]
    is_given: bool

    def __str__(self) -> str:
        given = "yes" if self.is_given else "no"
        shares = f"{_share(self.called)} | {_share(self.covered)}"
        return f"| {self.group} | {self.score} | {shares} | {given} |"


def _share(events: Sequence[bool]) -> str:
    """Return a share in percent with its Monte Carlo error, above 0 also for a share of 0 or 1."""
    n = len(events)
    if not n:
        return "–"
    p = float(np.mean(events))
    q = min(max(p, 1 / n), 1 - 1 / n)
    return f"{100 * p:.0f} ± {100 * math.sqrt(q * (1 - q) / n):.1f}"


def _correlated(rng: np.random.Generator, *shape: int) -> Array:
    """Return standard normal numbers [..., y, x]: 70 % of the variance is of blocks of pixels."""
    *others, height, width = shape
    blocks = rng.standard_normal((*others, height // BLOCK, width // BLOCK))
    noise = rng.standard_normal(shape)
    return np.sqrt(0.7) * blocks.repeat(BLOCK, -1).repeat(BLOCK, -2) + np.sqrt(0.3) * noise


def classes(
    rng: np.random.Generator, images: int, hard: float = 0.0, sure: float = 0.0
) -> tuple[Array, list[dict[str, Array]]]:
    """Return labels and the probabilities of two models that are exchangeable in each image.

    `hard`: the share of images that each model finds hard, independently of the other one; the
    others are easier if few are hard. `sure`: the share in which it has full confidence.
    """
    size = (images, SIDE // BLOCK, SIDE // BLOCK)
    labels = rng.integers(0, CLASSES, size).repeat(BLOCK, 1).repeat(BLOCK, 2)
    right = np.moveaxis(np.eye(CLASSES)[labels], -1, 1)
    difficulty = rng.normal(0, SPREAD, images)
    common = _correlated(rng, images, CLASSES, SIDE, SIDE)
    models = []
    for _ in range(2):
        own = _correlated(rng, images, CLASSES, SIDE, SIDE)
        quality = 2.2 * np.exp(-0.3 * (difficulty + rng.normal(0, SPREAD, images)))
        sharpness = np.exp(rng.normal(0, SPREAD, images))
        if hard:
            qualities = (0.2, 4.5) if hard < 0.1 else (0.7, 3.0)
            quality = np.where(rng.random(images) < hard, *qualities)
            sharpness = np.full(images, 1.5)
        logits = quality[:, None, None, None] * right + 0.7 * (common + own)
        powers = np.exp(sharpness[:, None, None, None] * logits)
        probs = (powers / powers.sum(1, keepdims=True)).astype(np.float32)
        if sure:
            is_sure = rng.random(images) < sure
            probs[is_sure] = np.moveaxis(np.eye(CLASSES)[probs[is_sure].argmax(1)], -1, 1)
        models.append({"probs": probs})
    return labels.astype(np.uint8), models


def numbers(rng: np.random.Generator, images: int, hard: float = 0.0) -> list[dict[str, Array]]:
    """Return targets, means and σ of two models that are exchangeable in each image.

    `hard`: the share of images of which each model has far too small σ, independently of the other.
    """
    shape = (images, SIDE, SIDE)
    target = 8 * np.exp(0.4 * _correlated(rng, *shape))
    difficulty, noise = rng.normal(0, SPREAD, images), 0.5 * _correlated(rng, *shape)
    models = []
    for _ in range(2):
        level = difficulty + rng.normal(0, SPREAD / 2, images)
        std = 0.3 * np.exp(level[:, None, None] + noise + 0.3 * _correlated(rng, *shape))
        error = std * np.exp(rng.normal(0, SPREAD, images))[:, None, None]
        mean = target + error * _correlated(rng, *shape)
        if hard:
            std = np.where(rng.random(images)[:, None, None] < hard, std / 20, std)
        models.append(
            {name: own.astype(np.float32) for name, own in
             (("mean", mean), ("std", std), ("target", target))}
        )  # fmt: skip
    return models


def _reports(
    group: Group, items: int, fit: int, folder: Path, rng: np.random.Generator
) -> list[OpenedReport]:
    """Return the reports of two models on the same new images."""
    names = [f"{i:03}" for i in range(items)]
    (folder / "names.txt").write_text("\n".join(names[:fit]), encoding="utf-8")
    if group.of_numbers:
        labels, models = None, numbers(rng, items, group.hard)
    else:
        labels, models = classes(rng, items, group.hard, group.sure)
        other_labels, others = classes(rng, fit)
    opened = []
    for m, arrays in enumerate(models):
        path, source = folder / f"{m}.json", folder / f"fit-{m}.json"
        if group.fitting:
            uqeval.evaluate(others[m], other_labels, group.fitting, workers=1).save(source)
        files = {"FIT": str(source), "NAMES": str(folder / "names.txt")}
        metrics = {
            family: {name: files.get(str(value), value) for name, value in settings.items()}
            for family, settings in group.metrics.items()
        }
        states = path.with_suffix(".states.zip")
        uqeval.evaluate(
            arrays, labels, metrics, names=names, states=states, workers=1
        ).save(path)  # fmt: skip
        opened.append(OpenedReport.of(path, Report.load(path)))
    return opened


def _untested(comparison: PairedComparison, score: str) -> bool:
    """Return whether `uqeval compare` gives neither interval nor p-value."""
    change = comparison.difference(1, 0, score, LEVEL)
    return change.p is None and not isinstance(change.interval, Interval)


def simulate(name: str, items: int, fit: int, repeats: int, seed: int = 0) -> Iterator[Row]:
    """Yield the rows of a group."""
    group = GROUPS[name]
    called: dict[tuple[str, str], list[bool]] = {}
    covered: dict[tuple[str, str], list[bool]] = {}
    given: dict[tuple[str, str], bool] = {}
    for i in range(repeats):
        rng = np.random.default_rng([seed, i, fit])
        with tempfile.TemporaryDirectory() as folder:
            opened = _reports(group, items, fit, Path(folder), rng)
            every = opened[0].scoring.names
            for part in ("", "half") if group.half else ("",):
                names = every[: items // 2] if part else every
                pair = [[report] for report in opened]
                comparison = paired_comparison(pair, names, group.scores, DRAWS, seed)
                for score in group.scores:
                    key = part, score
                    with _as_if_unfitted():
                        change = comparison.difference(1, 0, score, LEVEL)
                    given[key] = given.get(key, False) or not _untested(comparison, score)
                    if change.p is not None:
                        called.setdefault(key, []).append(change.p <= 1 - LEVEL)
                    if isinstance(own := change.interval, Interval):
                        covered.setdefault(key, []).append(own.low <= 0 <= own.high)
    for (part, score), is_given in given.items():
        key = part, score
        yield Row(
            f"{name}, {part}" if part else name,
            score,
            called.get(key, ()),
            covered.get(key, ()),
            is_given,
        )


@contextmanager
def _as_if_unfitted() -> Iterator[None]:
    """Test differences as if no number had been fitted, those of scores by rank by ranks alone."""
    with (
        patch("uqeval.statistics.swaps.metric_at", return_value=None),
        patch("uqeval.statistics.differences.fitted_apart", return_value=None),
        patch("uqeval.statistics.paired_comparison.fitted_apart", return_value=None),
    ):
        yield


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--fit", type=int, default=6)
    parser.add_argument("--only", nargs="+", default=[""], help="groups whose names begin so")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print("| fitted | score | p <= 0.05, % | interval has 0, % | compare |\n|---|---|---|---|---|")
    for name in GROUPS:
        if name.startswith(tuple(options.only)):
            for row in simulate(name, options.items, options.fit, options.repeats, options.seed):
                print(row, flush=True)


if __name__ == "__main__":
    main()
