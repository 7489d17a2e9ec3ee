"""Plain, slow, obvious oracles for the segmentation part, written from definitions.md alone.

Nothing of uqeval is imported. All is float64, except where the definitions compare in float32.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[Any]
Items = Array | Sequence[Array]
Patch = dict[str, Any]
Border = Literal["drop", "partial", "pad"]
Void = Literal["exclude", "inaccurate"]

STEPS = [i / 100 for i in range(101)]
SCORES = (
    "p_accurate",
    "p_certain",
    "p_accurate_given_certain",
    "p_uncertain_given_inaccurate",
    "pavpu",
    "pavpu_chance",
    "phi",
    "surplus",
    "half_surplus",
)
CURVE = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus")


# Maps ---------------------------------------------------------------------------------------


def entropy(p: Sequence[float], log_base: float = math.e) -> float:
    """H = -Σ p log p with 0·log 0 = 0, and +0.0 for a saturated p (Maps)."""
    h = -math.fsum(x * math.log(x) for x in p if x > 0)
    return h / math.log(log_base) + 0.0


def argmax(p: Sequence[float]) -> int:
    """Lowest id among the largest (Maps: lowest id on ties)."""
    return list(p).index(max(p))


def rank(p: Sequence[float], label: int) -> int:
    """Classes that stand before the label, likeliest first, lowest id first on ties (top-k)."""
    return sorted(range(len(p)), key=lambda c: (-p[c], c)).index(label)


def pixel(samples: Array, log_base: float = math.e) -> dict[str, Any]:
    """All maps at one pixel from its samples [T, C] (Maps from T samples)."""
    rows: list[list[float]] = np.asarray(samples, dtype=np.float64).tolist()
    t = len(rows)
    mean = [math.fsum(column) / t for column in zip(*rows, strict=True)]
    prediction = argmax(mean)
    total = entropy(mean, log_base)
    expected = math.fsum(entropy(row, log_base) for row in rows) / t
    out: dict[str, Any] = {
        "mean_probs": mean,
        "prediction": prediction,
        "confidence": max(mean),
        "entropy": total,
        "expected_entropy": expected,
        "mutual_information": None,
        "variation_ratio": None,
        "std": None,
    }
    if t > 1:
        same = all(row == rows[0] for row in rows)
        out["mutual_information"] = 0.0 if same else max(total - expected, 0.0)
        votes = [argmax(row) for row in rows]
        out["variation_ratio"] = 1 - max(votes.count(v) for v in votes) / t
        p = [row[prediction] for row in rows]
        centre = math.fsum(p) / t
        spread = math.fsum((x - centre) ** 2 for x in p) / t
        out["std"] = 0.0 if same else math.sqrt(spread)
    return out


def maps(
    probs: Array,
    labels: Array | None = None,
    ignore_index: int = 255,
    log_base: float = math.e,
) -> dict[str, Any]:
    """[T, C, H, W] → maps [H, W] in float64 (Maps); at void: NaN, and −1 for label_rank."""
    t, c, height, width = probs.shape
    names = ["confidence", "entropy", "expected_entropy"]
    names += ["mutual_information", "variation_ratio", "std"] if t > 1 else []
    out: dict[str, Any] = {name: np.full((height, width), np.nan) for name in names}
    out["prediction"] = np.full((height, width), -1, dtype=np.int64)
    out["mean_probs"] = np.full((c, height, width), np.nan)
    if t == 1:
        out |= {"mutual_information": None, "variation_ratio": None, "std": None}
    if labels is not None:
        out["label_probability"] = np.full((height, width), np.nan)
        out["label_rank"] = np.full((height, width), -1, dtype=np.int64)
        out["brier"] = np.full((height, width), np.nan)
    for y in range(height):
        for x in range(width):
            one = pixel(probs[:, :, y, x], log_base)
            mean = one["mean_probs"]
            out["mean_probs"][:, y, x] = mean
            out["prediction"][y, x] = one["prediction"]
            for name in names:
                out[name][y, x] = one[name]
            if labels is None or labels[y, x] == ignore_index:
                continue
            label = int(labels[y, x])
            out["label_probability"][y, x] = mean[label]
            out["label_rank"][y, x] = rank(mean, label)
            out["brier"][y, x] = math.fsum((p - (k == label)) ** 2 for k, p in enumerate(mean))
    return out


def uncertainty(of: Mapping[str, Any], name: str) -> Array:
    """The float32 map that patches take; `confidence` gives 1 − its float32 map (Maps)."""
    if of[name] is None:
        raise ValueError(f"{name} is undefined with one sample")
    values = np.asarray(of[name], dtype=np.float32)
    if name == "confidence":
        return (1.0 - values.astype(np.float64)).astype(np.float32)
    return values


# Segmentation scores --------------------------------------------------------------------------


def ratio(numerator: int, denominator: int) -> float | None:
    """A quotient of counts, None where undefined (Reports: never 0 and never NaN)."""
    return None if denominator == 0 else numerator / denominator


def mean_of(values: Sequence[float | None]) -> float | None:
    """Mean of the defined values, None if there are none."""
    defined = [v for v in values if v is not None]
    return math.fsum(defined) / len(defined) if defined else None


def confusion(
    labels: Items, predictions: Items, classes: int, ignore_index: int = 255
) -> list[list[int]]:
    """Pooled confusion matrix [label][prediction] over non-void pixels (Segmentation scores)."""
    matrix = [[0] * classes for _ in range(classes)]
    for label_map, prediction_map in zip(labels, predictions, strict=True):
        pairs = zip(label_map.ravel().tolist(), prediction_map.ravel().tolist(), strict=True)
        for label, prediction in pairs:
            if label != ignore_index:
                matrix[label][prediction] += 1
    return matrix


def segmentation(
    labels: Items, predictions: Items, classes: int, ignore_index: int = 255
) -> dict[str, Any]:
    """Scores of the pooled confusion matrix; None where undefined (Segmentation scores)."""
    matrix = confusion(labels, predictions, classes, ignore_index)
    rows: list[dict[str, Any]] = []
    for c in range(classes):
        both = matrix[c][c]
        labelled = sum(matrix[c])
        predicted = sum(row[c] for row in matrix)
        rows.append(
            {
                "class": c,
                "iou": ratio(both, labelled + predicted - both),
                "accuracy": ratio(both, labelled),
                "pixels": labelled,
            }
        )
    pixels = sum(row["pixels"] for row in rows)
    return {
        "pixel_accuracy": ratio(sum(matrix[c][c] for c in range(classes)), pixels),
        "mean_accuracy": mean_of([row["accuracy"] for row in rows]),
        "miou": mean_of([row["iou"] for row in rows]),
        "pixels": pixels,
        "per_class": rows,
    }


# Patches --------------------------------------------------------------------------------------


def starts(size: int, window: int, stride: int, border: Border = "drop") -> list[int]:
    """First rows (or columns) of the windows along one axis (Patches: border)."""
    if border == "drop":
        return [s for s in range(0, size, stride) if s + window <= size]
    if border == "partial":
        return list(range(0, size, stride))
    number = math.ceil(size / stride)
    before = max((number - 1) * stride + window - size, 0) // 2
    return [i * stride - before for i in range(number)]


def patch(
    right: Array,
    uncertainty: Array,
    labels: Array,
    y: int,
    x: int,
    window: int,
    ignore_index: int = 255,
    border: Border = "drop",
    void: Void = "exclude",
) -> Patch | None:
    """One patch from its first pixel (y, x), None if no pixel of the image in it is valid."""
    height, width = labels.shape
    n_right, padding, values, seen = 0, 0, [], set()
    for i in range(y, y + window):
        for j in range(x, x + window):
            if not (0 <= i < height and 0 <= j < width):
                padding += border == "pad"
            elif labels[i, j] != ignore_index:
                n_right += bool(right[i, j])
                values.append(float(uncertainty[i, j]))
                seen.add(int(labels[i, j]))
            elif void == "inaccurate":
                values.append(float(uncertainty[i, j]))
    if not values:
        return None
    values += [0.0] * padding
    return {
        "y": y,
        "x": x,
        "right": n_right,
        "valid": len(values),
        "mean": np.float32(math.fsum(values) / len(values)),
        "category": seen.pop() if len(seen) == 1 else "mixed",
    }


def patches(
    right: Items,
    uncertainty: Items,
    labels: Items,
    window: int = 4,
    stride: int | None = None,
    ignore_index: int = 255,
    border: Border = "drop",
    void: Void = "exclude",
) -> list[Patch]:
    """All patches of all items, row by row; y and x are pixels, negative in padding (Patches)."""
    step = window if stride is None else stride
    out: list[Patch] = []
    for item, (r, u, gt) in enumerate(zip(right, uncertainty, labels, strict=True)):
        for y in starts(gt.shape[0], window, step, border):
            for x in starts(gt.shape[1], window, step, border):
                one = patch(r, u, gt, y, x, window, ignore_index, border, void)
                if one is not None:
                    out.append({"item": item, **one})
    return out


def pixel_uncertainties(uncertainty: Items, labels: Items, ignore_index: int = 255) -> Array:
    """The uncertainties of all non-void pixels as float64 [n] (void leaves every count)."""
    kept = [np.asarray(u)[gt != ignore_index] for u, gt in zip(uncertainty, labels, strict=True)]
    return np.concatenate(kept).astype(np.float64) if kept else np.zeros(0)


def percentile(values: ArrayLike, percent: float) -> float:
    """Percentile in float64 by linear interpolation (Patches: median, pNN)."""
    return float(np.percentile(np.asarray(values, dtype=np.float64), percent, method="linear"))


def range_threshold(t: float, pixel_uncertainties: ArrayLike) -> float:
    """u_min + t(u_max − u_min) over pixels, in float64 (Patches: range:t; eq 4)."""
    u = np.asarray(pixel_uncertainties, dtype=np.float64)
    low, high = float(u.min()), float(u.max())
    return low + t * (high - low)


def threshold(
    rule: str | float,
    patches: Sequence[Patch],
    pixel_uncertainties: ArrayLike,
    accuracy_threshold: float = 0.5,
    accuracy_op: str = ">",
    uncertain_op: str = ">",
) -> float:
    """The uncertainty threshold that a rule fits on the whole set (Patches: Threshold)."""
    if not isinstance(rule, str):
        return float(rule)
    if rule == "mean":
        values = np.asarray(pixel_uncertainties, dtype=np.float64).tolist()
        return math.fsum(values) / len(values)
    if rule == "median":
        return percentile([p["mean"] for p in patches], 50)
    if rule.startswith("range:"):
        return range_threshold(float(rule.removeprefix("range:")), pixel_uncertainties)
    if rule == "max-surplus":
        ops = (accuracy_op, uncertain_op)
        best = peak(curve(patches, pixel_uncertainties, accuracy_threshold, *ops), "surplus")
        if best is None:
            raise ValueError("surplus is undefined at every threshold")
        return float(best["threshold"])
    if rule.startswith("p"):
        return percentile([p["mean"] for p in patches], float(rule[1:]))
    return float(rule)


def compare(op: str) -> Callable[[Any, Any], bool]:
    """The operator of a comparison with a threshold (Patches: both strict by default)."""
    known: dict[str, Callable[[Any, Any], bool]] = {
        ">": lambda value, limit: bool(value > limit),
        ">=": lambda value, limit: bool(value >= limit),
    }
    return known[op]


def counts(
    patches: Sequence[Patch],
    accuracy_threshold: float,
    uncertainty_threshold: float,
    accuracy_op: str = ">",
    uncertain_op: str = ">",
) -> dict[str, Any]:
    """n_ac, n_au, n_ic, n_iu and ties; accuracy in float64, uncertainty in float32 (Patches)."""
    limit = float(np.float32(uncertainty_threshold))
    is_accurate, is_uncertain = compare(accuracy_op), compare(uncertain_op)
    n = {"n_ac": 0, "n_au": 0, "n_ic": 0, "n_iu": 0}
    ties = {"accuracy": 0, "uncertainty": 0}
    for p in patches:
        accuracy, mean = p["right"] / p["valid"], float(np.float32(p["mean"]))
        accurate = is_accurate(accuracy, float(accuracy_threshold))
        uncertain = is_uncertain(mean, limit)
        n["n_" + ("a" if accurate else "i") + ("u" if uncertain else "c")] += 1
        ties["accuracy"] += bool(accuracy == float(accuracy_threshold))
        ties["uncertainty"] += bool(mean == limit)
    return {**n, "ties": ties}


def covariance(n: Mapping[tuple[int, int], int]) -> Fraction:
    """Cov(X, Y) = E[XY] − E[X]E[Y] of two 0/1 variables from counts of (x, y), exact."""
    total = sum(n.values())
    x = Fraction(sum(k * i for (i, _), k in n.items()), total)
    y = Fraction(sum(k * j for (_, j), k in n.items()), total)
    return Fraction(sum(k * i * j for (i, j), k in n.items()), total) - x * y


def variance(p: Fraction) -> Fraction:
    """Var(X) = p(1 − p) of a 0/1 variable, exact."""
    return p * (1 - p)


def scores(n_ac: int, n_au: int, n_ic: int, n_iu: int) -> dict[str, float | None]:
    """All scores of the four counts, None where undefined (Patches: eq 5–7, phi, Surplus)."""
    total = n_ac + n_au + n_ic + n_iu
    out: dict[str, float | None] = dict.fromkeys(SCORES)
    if total == 0:
        return out
    a, c = Fraction(n_ac + n_au, total), Fraction(n_ac + n_ic, total)
    out["p_accurate"], out["p_certain"] = float(a), float(c)
    out["p_accurate_given_certain"] = ratio(n_ac, n_ac + n_ic)
    out["p_uncertain_given_inaccurate"] = ratio(n_iu, n_ic + n_iu)
    out["pavpu"] = (n_ac + n_iu) / total
    out["pavpu_chance"] = float(a * c + (1 - a) * (1 - c))
    # keys: (accurate, certain), and the complements (inaccurate, uncertain)
    cov = covariance({(1, 1): n_ac, (1, 0): n_au, (0, 1): n_ic, (0, 0): n_iu})
    cov_complement = covariance({(0, 0): n_ac, (0, 1): n_au, (1, 0): n_ic, (1, 1): n_iu})
    if variance(a) * variance(c) > 0:
        size = math.sqrt(cov * cov / (variance(a) * variance(c)))
        out["phi"] = size if cov > 0 else 0.0 - size
    if variance(a) > 0:
        std, std_complement = math.sqrt(variance(a)), math.sqrt(variance(1 - a))
        surplus = float(cov) / std + float(cov_complement) / std_complement
        out["surplus"], out["half_surplus"] = surplus, surplus / 2
    return out


def scored(
    patches: Sequence[Patch], accuracy_threshold: float, uncertainty_threshold: float, *ops: str
) -> dict[str, Any]:
    """Counts, ties and scores of some patches at fixed thresholds (Patches)."""
    n = counts(patches, accuracy_threshold, uncertainty_threshold, *ops)
    return {**n, **scores(n["n_ac"], n["n_au"], n["n_ic"], n["n_iu"])}


def curve(
    patches: Sequence[Patch],
    pixel_uncertainties: ArrayLike,
    accuracy_threshold: float = 0.5,
    *ops: str,
) -> dict[str, list[Any]]:
    """Scores over t = 0, 0.01 … 1 (each i/100) of the range of the pixels (Patches: Curves)."""
    out: dict[str, list[Any]] = {key: [] for key in ("t", "threshold", *CURVE)}
    for t in STEPS:
        limit = range_threshold(t, pixel_uncertainties)
        one = scored(patches, accuracy_threshold, limit, *ops)
        out["t"].append(t)
        out["threshold"].append(limit)
        for key in CURVE:
            out[key].append(one[key])
    return out


def peak(curve: Mapping[str, Sequence[Any]], key: str) -> dict[str, float] | None:
    """{t, threshold, value} of a curve's largest defined value, lowest t on ties (Patches)."""
    best: dict[str, float] | None = None
    for t, limit, value in zip(curve["t"], curve["threshold"], curve[key], strict=True):
        if value is not None and (best is None or value > best["value"]):
            best = {"t": t, "threshold": limit, "value": value}
    return best


def surplus_auc(curve: Mapping[str, Sequence[Any]]) -> float | None:
    """Trapezoid of Surplus over t, None where it is undefined (Patches: surplus_auc)."""
    t, s = curve["t"], curve["surplus"]
    if any(value is None for value in s):
        return None
    return math.fsum((t[i + 1] - t[i]) * (s[i] + s[i + 1]) / 2 for i in range(len(t) - 1))


def accuracy_curve(
    patches: Sequence[Patch],
    uncertainty_threshold: float,
    accuracy_op: str = ">",
    uncertain_op: str = ">",
) -> dict[str, list[Any]]:
    """The scores over accuracy thresholds 0, 0.01 … 1 (each i/100) (Patches: Curves)."""
    out: dict[str, list[Any]] = {key: [] for key in ("accuracy_threshold", *SCORES)}
    for limit in STEPS:
        one = scored(patches, limit, uncertainty_threshold, accuracy_op, uncertain_op)
        out["accuracy_threshold"].append(limit)
        for key in SCORES:
            out[key].append(one[key])
    return out


def accuracy_by_uncertainty(
    labels: Items,
    predictions: Items,
    uncertainty: Items,
    classes: int,
    ignore_index: int = 255,
) -> dict[str, Any]:
    """Pixel accuracy per predicted class and decile of uncertainty (accuracy_by_uncertainty)."""
    pixels = []
    for gt, p, u in zip(labels, predictions, uncertainty, strict=True):
        rows = zip(gt.ravel().tolist(), p.ravel().tolist(), u.ravel(), strict=True)
        pixels += [(label, pred, np.float32(v)) for label, pred, v in rows if label != ignore_index]
    percentiles = list(range(10, 100, 10))
    limits = [np.float32(percentile([v for *_, v in pixels], q)) for q in percentiles if pixels]
    right = [[0] * 10 for _ in range(classes)]
    number = [[0] * 10 for _ in range(classes)]
    for label, prediction, value in pixels:
        bin_ = sum(bool(limit < value) for limit in limits)
        number[prediction][bin_] += 1
        right[prediction][bin_] += label == prediction
    return {
        "percentiles": percentiles,
        "thresholds": [float(limit) for limit in limits],
        "rows": [
            {
                "class": c,
                "accuracy": [ratio(k, n) for k, n in zip(right[c], number[c], strict=True)],
                "pixels": number[c],
            }
            for c in range(classes)
        ],
    }


def per_class(
    patches: Sequence[Patch],
    accuracy_threshold: float,
    uncertainty_threshold: float,
    accuracy_op: str = ">",
    uncertain_op: str = ">",
    classes: int | None = None,
) -> list[dict[str, Any]]:
    """Rows by category at the global threshold: ids that occur (all, with `classes`), mixed."""
    found = {p["category"] for p in patches}
    ids = sorted(found - {"mixed"}) if classes is None else list(range(classes))
    mixed = ["mixed"] if classes is not None or "mixed" in found else []
    limits = (accuracy_threshold, uncertainty_threshold, accuracy_op, uncertain_op)
    return [
        {"class": c, **scored([p for p in patches if p["category"] == c], *limits)}
        for c in [*ids, *mixed]
    ]
