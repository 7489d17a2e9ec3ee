"""Evaluate random small data with random settings, and recompute every report with `verify`.

`python benchmarks/random_settings.py --reports 200 --seed 1` prints each report whose values do not
follow from its data, with its seed, and the number of reports by kind. Exit status 1 if there are
any. Data have ties, void labels, one pixel, one sample, few classes and σ = 0.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import numpy as np

import uqeval
from benchmarks import campaigns
from uqeval.errors import UqevalError
from uqeval.records.report import Report
from uqeval.usecases.verify.verifying import verify

_SAMPLED = ("entropy", "mutual_information", "expected_entropy", "confidence", "variation_ratio",
            "std")  # fmt: skip


@dataclass
class Case:
    """A call of `uqeval.evaluate` on files that are written to the working folder."""

    stores: tuple[str, ...]
    metrics: Mapping[str, Mapping[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    is_sweep: bool = False

    def report(self, predictions: Sequence[str] | None = None, **options: Any) -> Report:
        """Return the report; `predictions` and `options` in place of its own ones."""
        own, *truth = self.stores or (None,)
        given, labels = own if predictions is None else predictions, truth[0] if truth else None
        options = {**self.options, **options}
        if not self.is_sweep:
            return uqeval.evaluate(given, labels, self.metrics, **options)
        assert given is not None
        return uqeval.sweep(given, labels, self.metrics, **options)


class Scene:
    """Random choices and arrays of one seed."""

    def __init__(self, seed: int) -> None:
        self.choose, self.rng = Random(seed), np.random.default_rng(seed)
        #: Whether the store of predictions has other maps.
        self.has_maps = False

    def one(self, *values: Any) -> Any:
        """Return one of the values."""
        return self.choose.choice(values)

    def often(self, share: float) -> bool:
        """Return whether something happens that has this probability."""
        return self.choose.random() < share

    def classes(self) -> tuple[Any, Any]:
        """Return probabilities [item, sample, class, y, x] and labels [item, y, x]."""
        items, samples, classes = (
            self.one(1, 2, 3, 7, 12),
            self.one(1, 2, 3, 5),
            self.one(2, 3, 5, 11),
        )
        height, width = self.one((1, 1), (5, 7), (8, 8), (17, 13), (24, 24), (40, 33))
        shape = (items, samples, classes, height, width)
        z = self.rng.normal(size=shape) * self.one(0.1, 1, 4, 20)
        z = np.round(z) if self.often(0.3) else z
        self.logits = z.astype(self.one("f2", "f4", "f8"))
        probs = np.exp(z - z.max(axis=2, keepdims=True))
        probs /= probs.sum(axis=2, keepdims=True)
        probs = probs.astype(self.one("f2", "f4", "f8"))
        best = probs.astype(np.float64).mean(axis=1).argmax(axis=1)
        wrong = self.rng.random(best.shape) < self.one(0, 0.1, 0.5, 1)
        labels = np.where(wrong, self.rng.integers(0, classes, best.shape), best)
        if self.often(0.3):  # larger areas
            blocks = labels[:, ::3, ::3].repeat(3, axis=1).repeat(3, axis=2)
            labels = blocks[:, :height, :width]
        if self.often(0.5):
            labels = np.where(self.rng.random(labels.shape) < self.one(0.05, 0.5), 255, labels)
        if self.often(0.15):
            labels[0] = 255
        return probs, labels.astype(np.uint8)

    def save_classes(self, path: str = "a.npz") -> tuple[Any, Any]:
        """Write `classes`, perhaps as logits, perhaps with an id map, a depth and an uncertainty;
        return them."""
        probs, labels = self.classes()
        others: dict[str, Any] = {}
        if self.often(0.3):
            others = {
                "areas": self.rng.integers(0, 3, labels.shape).astype(np.uint8),
                "depth": np.round(self.rng.random(labels.shape) * 10, 1).astype(np.float32),
                "learned": self.rng.normal(size=labels.shape).astype(self.one("f4", "f8")),
            }
        self.has_maps = bool(others)
        stored = {"logits": self.logits} if self.often(0.25) else {"probs": probs}
        np.savez(path, **stored, labels=labels, **others)
        return probs, labels

    def uncertainty(self, probs: Any) -> str:
        """Return an uncertainty that the samples or the store have."""
        if self.has_maps and self.often(0.3):
            return "learned"
        return str(self.one(*_SAMPLED) if probs.shape[1] > 1 else self.one("entropy", "confidence"))

    def regions(self, *forms: str) -> list[str]:
        """Return up to two regions, boxes among them."""
        boxes = ("box:0:0.5,0:1", "box:0.2:0.9,0.1:0.6")
        return self.choose.sample([*boxes, *forms], self.one(0, 0, 1, 2))

    def regions_of_classes(self, classes: int) -> list[str]:
        """Return up to two regions of class data."""
        one = f"class:{self.choose.randrange(classes)}"
        of_maps = ("map:areas", "map:areas:2", "depth:2-5") if self.has_maps else ()
        return self.regions(one, "boundary:1", "boundary:2.5", "interior:1.5", *of_maps)


def _classes(scene: Scene) -> Case:
    probs, labels = scene.save_classes()
    side = min(scene.one(1, 2, 3, 4), *labels.shape[1:])
    metrics = {
        "segmentation": {},
        "pavpu": {
            "window": side, "stride": scene.one(1, side), "uncertainty": scene.uncertainty(probs),
            "threshold": scene.one("mean", "median", "p80", "range:0.4", 0.3, "max-surplus"),
            "accuracy_threshold": scene.one(0.5, 0.7, 1.0),
        },
        "calibration": {"bins": scene.one(1, 5, 15, 30), "temperature": scene.often(0.2)},
        "failure": {"uncertainty": scene.uncertainty(probs)},
        "sparsification": {
            "error": scene.one("brier", "zero-one"), "steps": scene.one(10, 37, 100),
            "uncertainty": scene.uncertainty(probs),
        },
    }  # fmt: skip
    return Case(("a.npz",), metrics, {"region": scene.regions_of_classes(probs.shape[2])})


def _ood(scene: Scene) -> Case:
    probs, labels = scene.save_classes()
    settings: dict[str, Any] = {"uncertainty": scene.uncertainty(probs)}
    _, samples, classes, height, width = probs.shape
    if scene.often(0.25):
        return Case(("a.npz",), {"ood": settings}, {"ood_mask": scene.one(0, 1, 255)})
    if scene.often(0.3):
        mask = (scene.rng.random(labels.shape) < 0.3).astype(np.uint8)
        mask[scene.rng.random(labels.shape) < 0.1] = 255
        np.savez("mask.npz", labels=mask)
        return Case(("a.npz",), {"ood": settings}, {"ood_mask": "mask.npz"})
    settings["aggregation"] = scene.one("mean", "sum", "max", "p0", "p50", "p97.5", "patch-max")
    if settings["aggregation"] == "patch-max":
        settings["patch"] = min(height, width, scene.one(1, 3, 4))
    out = [f"out{k}.npz" for k in range(scene.one(1, 2))]
    for path in out:
        shape = (scene.one(1, 3), samples, height, width)
        other = scene.rng.dirichlet(np.ones(classes), shape).transpose(0, 1, 4, 2, 3)
        np.savez(path, probs=other.astype(probs.dtype))
    return Case(("a.npz",), {"ood": settings}, {"out": out})


def _fit_on(scene: Scene, items: int) -> dict[str, Any]:
    names = [str(i) for i in scene.choose.sample(range(items), max(1, items // 2))]
    with open("fit.json", "w") as file:  # noqa: PTH123
        json.dump(names, file)
    return {"fit_on": "fit.json", "alpha": scene.one(0.3, 0.5, 0.6, 0.9)}


def _conformal(scene: Scene) -> Case:
    probs, _labels = scene.save_classes()
    classes = probs.shape[2]
    settings = _fit_on(scene, len(probs)) | {
        "method": scene.one("lac", "aps"),
        "risk": scene.one("miscoverage", f"fnr:{scene.choose.randrange(classes)}"),
    }
    regions = {"region": scene.regions_of_classes(classes)}
    return Case(("a.npz",), {"conformal": settings}, regions)


def _images(scene: Scene) -> Case:
    probs, labels = scene.save_classes()
    settings = {
        "risk": scene.one("miou", "dice", "accuracy"), "uncertainty": scene.uncertainty(probs),
        "confidence": scene.one("mean", "sum", "max", "p90", "patch-max", "share"),
        "risk_limit": scene.one("median", "p75", "0.2"),
    }  # fmt: skip
    if settings["confidence"] == "patch-max":
        settings["patch"] = min(3, *labels.shape[1:])
    regions = {"region": scene.regions_of_classes(probs.shape[2])}
    return Case(("a.npz",), {"image_failure": settings}, regions)


def _annotators(scene: Scene) -> Case:
    probs, labels = scene.classes()
    people = []
    for _ in range(scene.one(2, 3, 4)):
        differs = (scene.rng.random(labels.shape) < 0.2) & (labels != 255)
        own = scene.rng.integers(0, probs.shape[2], labels.shape)
        people.append(np.where(differs, own, labels))
    stacked = np.stack(people, axis=1).astype(np.uint8)
    if scene.often(0.3):  # one of them left an item out
        stacked[0, 0] = 255
    np.savez("a.npz", probs=probs)
    np.savez("people.npz", labels=stacked)
    settings = {
        "uncertainty": scene.uncertainty(probs), "distance": scene.one("iou", "dice"),
        "distance_classes": scene.one("auto", "all", "foreground"),
        "absent": scene.one("skip", "agree", "disagree"), "pairs": scene.one("mean", "pooled"),
        "disagreement": scene.one("variance", "entropy"), "ncc_ddof": scene.one(0, 1),
        "bins": scene.one(5, 15),
    }  # fmt: skip
    return Case(("a.npz", "people.npz"), {"annotators": settings})


def _save_numbers(scene: Scene) -> int:
    """Write predicted numbers with a target, and return the number of items."""
    shape = (scene.one(1, 3, 6, 9), *scene.one((1, 1), (9, 8), (20, 15)))
    truth = scene.rng.normal(size=shape) * 3 + 8
    truth = np.round(truth) if scene.often(0.2) else truth
    sigma = np.abs(scene.rng.normal(size=shape)) * (scene.rng.random(shape) > 0.1)
    sigma = np.round(sigma) if scene.often(0.3) else sigma
    mean = truth + scene.rng.normal(size=shape) * sigma
    target = np.where(scene.rng.random(shape) < 0.1, np.nan, truth)
    kind = scene.one("f4", "f8")
    arrays = {"mean": mean, "std": sigma}
    members = (shape[0], 3, *shape[1:])
    form = scene.one("one", "one", "members", "samples", "variance")
    if form == "variance":
        arrays = {"mean": mean, "variance": sigma**2}
    if form == "samples":
        arrays = {"samples": mean[:, None] + scene.rng.normal(size=members)}
    if form == "members":
        spread = np.log(np.abs(scene.rng.normal(size=members)) + 0.1)
        arrays = {
            "mean": mean[:, None] + scene.rng.normal(size=members), "log_variance": spread,
        }  # fmt: skip
    if scene.often(0.2):
        arrays["valid"] = scene.rng.random(shape) < 0.8
    stored = {
        name: values if name == "valid" else values.astype(kind) for name, values in arrays.items()
    }
    np.savez("a.npz", **stored, target=target.astype(scene.one("f4", "f8")))
    return shape[0]


def _numbers(scene: Scene) -> Case:
    items = _save_numbers(scene)
    several = {
        "regression": {
            "levels": scene.one(9, 99), "distribution": scene.one("gaussian", "laplace"),
        },
        "nmerci": {"alpha": scene.one(50, 95, 99)},
        "sparsification": {
            "error": scene.one("rmse", "mse", "mae"), "steps": scene.one(10, 100),
        },
    }  # fmt: skip
    metrics = scene.one(
        several, {"image_failure": {"confidence": scene.one("mean", "max", "p90")}},
        {"conformal": _fit_on(scene, items)},
    )  # fmt: skip
    return Case(("a.npz",), metrics, {"region": scene.regions("depth:0-7", "depth:2e0-inf")})


def _pixels(scene: Scene) -> Case:
    """Image classification: items of one pixel, more than are counted together."""
    items, samples, classes = scene.one(2, 40, 300), scene.one(1, 3), scene.one(2, 5)
    probs = scene.rng.dirichlet(np.ones(classes) * scene.one(0.1, 1), (items, samples))
    probs = np.round(probs * 8) / 8 if scene.often(0.3) else probs
    probs /= probs.sum(axis=2, keepdims=True)
    labels = scene.rng.integers(0, classes, items)
    labels = np.where(scene.rng.random(items) < 0.7, probs.mean(axis=1).argmax(axis=1), labels)
    np.savez("a.npz", probs=probs.astype(scene.one("f2", "f4")), labels=labels.astype(np.uint8))
    metrics = {
        "segmentation": {}, "failure": {"uncertainty": scene.uncertainty(probs)},
        "calibration": {"bins": scene.one(5, 15), "temperature": scene.often(0.5)},
        "sparsification": {"uncertainty": scene.uncertainty(probs)},
    }  # fmt: skip
    return Case(("a.npz",), metrics)


def _divergence(scene: Scene) -> Case:
    probs, _ = scene.classes()
    other = np.roll(probs, 1, axis=1)[:, : scene.one(1, probs.shape[1])]
    np.savez("a.npz", probs=probs)
    np.savez("reference.npz", probs=np.roll(other, scene.one(0, 1), axis=-1))
    clip = {"clip": scene.one(1e-3, 1e-6)} if scene.often(0.3) else {}
    return Case(("a.npz",), {"divergence": clip}, {"reference": "reference.npz"})


def _video(scene: Scene) -> Case:
    frames, classes, (height, width) = (
        scene.one(2, 5, 11),
        scene.one(2, 4),
        scene.one((16, 16), (24, 20)),
    )
    blocks = scene.rng.integers(0, classes, (height // 4, width // 4 + frames))
    wide = blocks.repeat(4, axis=0).repeat(4, axis=1)
    truth = np.stack([wide[:, 2 * t : 2 * t + width] for t in range(frames)])
    colours = scene.rng.integers(0, 255, (classes, 3)).astype(np.uint8)
    noise = scene.rng.random(truth.shape) < 0.1
    ids = np.where(noise, scene.rng.integers(0, classes, truth.shape), truth)
    if scene.often(0.3):
        ids = np.where(scene.rng.random(ids.shape) < 0.05, 255, ids)
    labels = np.where(scene.rng.random(ids.shape) < 0.1, 255, truth)
    flow = np.zeros((frames - 1, height, width, 2), np.float32)
    flow[..., 0] = 2 + scene.rng.normal(size=flow.shape[:-1]) * 0.4
    flow[scene.rng.random(flow.shape[:-1]) < 0.02] = np.nan
    sequence = [("a", "b")[scene.often(0.1)] for _ in range(frames)]
    names = [f"{one}_{t:06}" for t, one in enumerate(sorted(sequence))]
    np.savez(
        "video.npz", allow_pickle=False, frames=colours[truth], predictions=ids.astype(np.uint8),
        flow=flow, labels=labels.astype(np.uint8),
        **({"names": names} if scene.often(0.4) else {}),
    )  # fmt: skip
    settings = {"flow": scene.one("file", "farneback"), "least_pixels": scene.one(0, 5)}
    options = {"video": "video.npz", "region": scene.regions_of_classes(classes)}
    return Case((), {"tc": settings}, options)


KINDS: dict[str, Callable[[Scene], Case]] = {
    "classes": _classes, "ood": _ood, "conformal": _conformal, "images": _images,
    "annotators": _annotators, "numbers": _numbers, "video": _video,
    "pixels": _pixels, "divergence": _divergence,
}  # fmt: skip


#: Values of options without a list of choices.
_NUMBERS: dict[str, tuple[Any, ...]] = {
    "threshold": ("mean", "median", "p80", "range:0.4", 0.3, "max-surplus"),
    "curve_range": ("0:1", "0.2:0.4"), "top_k": (1, 2), "log_base": ("classes", 2.0),
    "region_share": (0.1, 0.9, 1.0), "accuracy_threshold": (0.0, 0.25, 0.5, 1.0),
    "clip": (1e-3, 0.1), "bins": (1, 2, 7, 100), "steps": (2, 10, 37), "levels": (2, 9, 50),
    "ence_bins": (1, 4), "alpha": (50, 95, 100), "depth_step": (0.7, 3.0),
}  # fmt: skip


def varied(scene: Scene, family: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a family with further ones; settings may refuse the combination."""
    from uqeval.metrics import FAMILIES
    from uqeval.settings import default_of, options_of

    settings, chosen = FAMILIES[family].settings_type, dict(given)
    for name, option in options_of(settings).items():
        is_several = option.several and scene.often(0.2)
        values = option.choices or _NUMBERS.get(name, ())
        if isinstance(default_of(settings, name), bool):
            values = (False, True)
        if not values or (family == "conformal" and name == "alpha") or not scene.often(0.12):
            continue
        some = scene.choose.sample(values, min(2, len(values)))
        chosen[name] = some if is_several else some[0]
    return chosen


def write_slices(scene: Scene, kind: str, items: int = 12) -> None:
    """Write a table `meta.csv` of slices and groups of all items."""
    names = [str(k) for k in range(items)]
    if kind == "ood":
        names += [f"{name}/{k}" for name in ("in", "out0", "out1") for k in names]
    rows = [[name, scene.one("rain", "sun"), scene.one("a", "b", "c")] for name in names]
    with open("meta.csv", "w", newline="") as file:  # noqa: PTH123
        csv.writer(file).writerows([["name", "weather", "drive"], *rows])


def problems_of(kind: str, seed: int, draws: int = 2000) -> list[str] | None:
    """Evaluate and verify one case in the working folder; return what differs. `draws`: those of
    intervals.

    None for data or settings that `evaluate` refuses, such as items without a valid pixel.
    """
    scene = Scene(seed)
    case = KINDS[kind](scene)
    interval = {"ci": scene.one(0.9, 0.95), "draws": draws} if scene.often(0.3) else {}
    options = case.options | interval
    workers = scene.one(1, 2)
    if scene.often(0.2):
        write_slices(scene, kind, items=300)
        options["slices"] = "meta.csv"
        if "ci" in options and scene.often(0.5):
            options["group_by"] = "drive"
    try:
        report = replace(case, options=options).report(workers=workers)
    except UqevalError:
        return None
    report.save("report.json")
    found = verify("report.json", everything=True)
    return [f"{text} {case.metrics} {options}" for text in found.problems()]


def cases(
    reports: int, seed: int, draws: int = 2000
) -> Iterator[tuple[str, int, list[str] | None]]:
    """Yield kind, seed and differences of so many cases, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for number in range(seed * 1_000_000, seed * 1_000_000 + reports):
            kind = list(KINDS)[number % len(KINDS)]
            yield kind, number, problems_of(kind, number, draws)
            for name in os.listdir():  # noqa: PTH208
                os.remove(name)  # noqa: PTH107


def main() -> int:
    """Run the cases that the options name; return the exit status."""
    options = campaigns.parser(__doc__, reports=200).parse_args()
    return campaigns.summarize(cases(options.reports, options.seed))


if __name__ == "__main__":
    raise SystemExit(main())
