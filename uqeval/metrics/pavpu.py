"""The family `pavpu`: settings, presets, and the plan from tallies to its part of a report."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError
from uqeval.maps.names import IN_NATS, NO_UNCERTAINTY, UNCERTAINTIES
from uqeval.metrics import patch_scores
from uqeval.metrics._again import Again
from uqeval.metrics._contract import put
from uqeval.metrics._family import Facts, Family, variants
from uqeval.metrics._plan import Plan, Pooling, Section
from uqeval.metrics.thresholds import Fitted, Rule, fit

if TYPE_CHECKING:
    from uqeval.tallies import PatchCounts, Patches
    from uqeval.tallies._contract import State

METRICS = patch_scores.METRICS

#: What each definition in use changes of the defaults, which are Mukhoti & Gal's.
DEFINITIONS: dict[str, dict[str, Any]] = {
    "paper": {},
    "ma": {"window": 3, "threshold": "median", "accuracy_op": ">="},
    "torch-uncertainty-0.13": {
        "uncertainty": "confidence", "window": 16, "border": "partial", "threshold": "0.5",
    },
    "uncertainty-baselines": {
        "window": 2, "border": "pad", "void": "inaccurate", "threshold": "0.5",
    },
    "a-klass": {"window": 2, "threshold": "0.4", "log_base": 2.0},
}  # fmt: skip

CHOICES = {
    "border": ("drop", "partial", "pad"),
    "void": ("exclude", "inaccurate"),
    "accuracy_op": (">", ">="),
    "uncertainty_op": (">", ">="),
    "threshold_scope": ("set", "class", "item"),
    "definition": tuple(DEFINITIONS),
}


@dataclass(frozen=True)
class PavpuSettings:
    """Every choice behind a PAvPU; the defaults are those of Mukhoti & Gal 2018.

    `uncertainty`: a map's name; `log_base` of entropies, a number or "classes" (their number, so
    that entropies lie in [0, 1]). `window`, `stride` (default: the window)
    in pixels. `accuracy_threshold` and `accuracy_op`: a patch is accurate when its accuracy is
    above (">") or not below (">=") the threshold; `threshold` and `uncertainty_op` likewise say
    when it is uncertain. `border`, `void`, `top_k`: see `uqeval.tallies.Patches`.
    `threshold_scope`: fitted on the whole set, on each category of patches, or on each item.
    `threshold_from`: where a numeric threshold was fitted, if it was. `curve_range`: the ends of
    the curve over thresholds, "LOW:HIGH", in place of the data's least and greatest uncertainty.

    Raises `UsageError` for what cannot be.
    """

    uncertainty: str = "entropy"
    window: int = 4
    stride: int = 0
    threshold: str = "mean"
    accuracy_threshold: float = 0.5
    threshold_scope: str = "set"
    border: str = "drop"
    void: str = "exclude"
    accuracy_op: str = ">"
    uncertainty_op: str = ">"
    top_k: int = 1
    log_base: float | str = math.e
    definition: str = "paper"
    threshold_from: str | None = None
    curve_range: str | None = None

    def __post_init__(self) -> None:
        if self.threshold_from is not None and self.threshold_scope != "set":
            raise UsageError(
                f"--threshold-from takes one threshold; --threshold-scope {self.threshold_scope} "
                "fits several. Give one of them."
            )
        for name in ("window", "stride", "top_k"):
            value = getattr(self, name)
            if type(value) is not int:
                raise UsageError(f"--{name.replace('_', '-')} {value!r}; expected a whole number.")
        if self.window < 1:
            raise UsageError(f"--window {self.window}; expected at least 1 pixel.")
        if self.stride < 0:
            raise UsageError(f"--stride {self.stride}; expected at least 1 pixel.")
        if self.stride == 0:
            object.__setattr__(self, "stride", self.window)
        if not 0 <= self.accuracy_threshold <= 1:
            raise UsageError(
                f"--accuracy-threshold {self.accuracy_threshold}; expected a number from 0 to 1."
            )
        if self.top_k < 1:
            raise UsageError(f"--top-k {self.top_k}; expected at least 1.")
        if self.log_base != "classes":
            object.__setattr__(self, "log_base", checked_log_base(self.log_base))
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise UsageError(
                    f"--{name.replace('_', '-')} {getattr(self, name)!r}; expected one of "
                    f"{', '.join(choices)}."
                )
        object.__setattr__(self, "threshold", str(self.threshold))
        Rule.parse(self.threshold)
        if self.curve_range is not None and self.threshold_scope != "set":
            raise UsageError(
                f"--curve-range is one range; --threshold-scope {self.threshold_scope} has several."
            )
        self.ends()

    @classmethod
    def of(cls, **given: Any) -> PavpuSettings:
        """Settings of a definition, with what is `given` in place of its choices."""
        definition = given.get("definition", "paper")
        if definition not in DEFINITIONS:
            raise UsageError(
                f"--definition {definition!r}; expected one of {', '.join(DEFINITIONS)}."
            )
        if given.get("stride") == 0:
            raise UsageError("--stride 0; expected at least 1 pixel.")
        return cls(**(DEFINITIONS[definition] | given))

    def ends(self) -> tuple[float, float] | None:
        """The ends of `curve_range`. Raises `UsageError` for what is no range."""
        if self.curve_range is None:
            return None
        try:
            low, high = (float(text) for text in self.curve_range.split(":"))
        except ValueError:
            low, high = math.nan, math.nan
        if not (low <= high and math.isfinite(high - low)):
            raise UsageError(f"--curve-range {self.curve_range}; expected LOW:HIGH, such as 0:1.5.")
        return low, high

    def patches(self, classes: int) -> Patches:
        """How these settings cut images of `classes` classes into patches."""
        from uqeval.tallies import Patches, Uncertainty

        base = float(classes) if self.log_base == "classes" else float(self.log_base)
        return Patches(
            Uncertainty(self.uncertainty, base), classes,
            self.window, self.stride, self.border, self.void, self.top_k,
        )  # fmt: skip


def checked_log_base(value: float | str) -> float:
    """The base of "e" or a number. Raises `UsageError` for what cannot be one."""
    try:
        base = math.e if value == "e" else float(value)
    except ValueError:
        base = 0.0
    if not (base > 1 and math.isfinite(base)):
        raise UsageError(f"--log-base {value}; expected e, 2, classes, or a number above 1.")
    return base


def threshold_in(report: dict[str, Any], settings: PavpuSettings, path: str) -> float:
    """The uncertainty threshold that a report's `results` hold for the same uncertainty.

    Of several variants, one with the same window and stride is preferred. Raises `UsageError`
    where there is none, or where it was fitted for each class or item apart.
    """
    results = report["results"]
    said = {
        k: v for k, v in report["settings"].items() if k.split("[")[0] == "pavpu" and k in results
    }
    try:
        return _threshold_in(said, results, settings, path)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"--threshold-from {path}: its PAvPU is not as `uqeval pavpu` writes it ({error!r})."
        ) from None


def _threshold_in(
    said: dict[str, Any], results: dict[str, Any], settings: PavpuSettings, path: str
) -> float:
    fitting = [
        key
        for key, own in said.items()
        if own["uncertainty"] == settings.uncertainty and own["log_base"] == settings.log_base
    ]
    if not fitting:
        held = sorted({f"{own['uncertainty']}" for own in said.values()})
        raise UsageError(
            f"--threshold-from {path}: it has no threshold for {settings.uncertainty} with log "
            f"base {settings.log_base}; it has PAvPU for {', '.join(held) or 'nothing'}."
        )
    size = (settings.window, settings.stride)
    best = next((k for k in fitting if (said[k]["window"], said[k]["stride"]) == size), fitting[0])
    value = results[best]["uncertainty_threshold"]
    if value is None:
        raise UsageError(
            f"--threshold-from {path}: {best} has no single threshold: "
            f"{results[best]['uncertainty_threshold_reason']}."
        )
    return float(value)


def _settings(options: Mapping[str, Any], facts: Facts) -> dict[str, PavpuSettings]:
    """The settings of every variant, checked against the data."""
    chosen = dict(options)
    path = chosen.get("threshold_from")
    if path is not None and "threshold" in chosen:
        raise UsageError("--threshold and --threshold-from exclude each other; give one of them.")
    found: dict[str, PavpuSettings] = variants("pavpu", PavpuSettings, chosen, ("uncertainty",))
    if path is not None:
        from uqeval.report.schema import Report

        fitted = Report.load(path).model_dump()
        found = {
            key: dataclasses.replace(own, threshold=repr(threshold_in(fitted, own, str(path))))
            for key, own in found.items()
        }
    for own in found.values():
        check_uncertainty(own.uncertainty, facts)
        _check_threshold(own, facts)
        if own.top_k >= facts.classes:
            raise UsageError(
                f"--top-k {own.top_k} of {facts.classes} classes: every pixel would be right."
            )
        for name, (height, width) in zip(facts.names, facts.sizes, strict=True):
            if own.border == "drop" and own.window > min(height, width):
                raise UsageError(
                    f"--window {own.window} is larger than item {name} of {facts.where}, which is "
                    f"{height}×{width} (height×width); give a smaller window, or --border partial."
                )
    return found


def _check_threshold(settings: PavpuSettings, facts: Facts) -> None:
    """Raise `UsageError` for a number that no value of a computed uncertainty can pass or reach."""
    rule = Rule.parse(settings.threshold)
    fitted = settings.threshold_from is not None  # may pass the bound by rounding
    if rule.kind != "value" or fitted or settings.uncertainty not in UNCERTAINTIES:
        return
    most = 1.0
    if settings.uncertainty in IN_NATS:
        most = math.log(facts.classes) / math.log(
            settings.patches(facts.classes).uncertainty.log_base
        )
    if not 0 <= rule.value <= most:
        raise UsageError(
            f"--threshold {settings.threshold} cannot be: {settings.uncertainty} of "
            f"{facts.classes} classes lies between 0 and {most:.6g}."
        )


def check_uncertainty(name: str, facts: Facts) -> None:
    """Raise `UsageError` for a map that is no uncertainty."""
    if name in NO_UNCERTAINTY:
        raise UsageError(
            f"--uncertainty {name} is no uncertainty of {facts.where}; expected "
            f"{', '.join(UNCERTAINTIES)}, or the name of a map in the store."
        )


def _maps(settings: PavpuSettings, facts: Facts) -> set[str]:
    return {"label", "prediction", *settings.patches(facts.classes).inputs}


def _plans(key: str, settings: PavpuSettings, facts: Facts) -> dict[str, Plan]:
    from uqeval.metrics import accuracy_by_uncertainty

    uncertainty = settings.patches(facts.classes).uncertainty
    return {
        key: plan(settings, facts.classes, facts.class_names),
        f"{key}/accuracy_by_uncertainty": accuracy_by_uncertainty.plan(
            uncertainty, facts.classes, facts.class_names
        ),
    }


def plan(settings: PavpuSettings, classes: int, class_names: Sequence[str]) -> Plan:
    """Fit the threshold, count the patches, and return the section of one variant."""
    patches = settings.patches(classes)
    rule = Rule.parse(settings.threshold)
    scope = settings.threshold_scope
    fitted = None
    if scope != "item":
        fitted = yield from fit(rule, patches, scope == "class", **_operators(settings))
        if (ends := settings.ends()) is not None:
            fitted = dataclasses.replace(fitted, ends=(ends,))
    tally = _tally(settings, classes, fitted)
    counted = (yield (tally,))[tally]
    results = _results(settings, fitted, counted.total, class_names)
    items = [_item(tally, data, scope == "item") for data in counted.items]
    return Section(
        results,
        items,
        settings=dataclasses.asdict(settings),
        numerics={f"ties_{k}": v for k, v in results["ties"].items()},
        warnings=_warnings(results),
        fitted=dataclasses.asdict(fitted) if fitted else {},
    )


def _pooled(settings: PavpuSettings, facts: Facts) -> Pooling:
    """The threshold and the ends of the curve; none where there are several."""
    if settings.threshold_scope != "set":
        return {}
    patches, rule = settings.patches(facts.classes), Rule.parse(settings.threshold)
    fitted = yield from fit(rule, patches, False, **_operators(settings))
    low, high = settings.ends() or fitted.ends[0]
    return {"threshold": repr(fitted.threshold[0]), "curve_range": f"{low!r}:{high!r}"}


def _operators(settings: PavpuSettings) -> dict[str, Any]:
    return {
        "accuracy_threshold": settings.accuracy_threshold,
        "accuracy_op": settings.accuracy_op,
        "uncertainty_op": settings.uncertainty_op,
    }


def _tally(settings: PavpuSettings, classes: int, fitted: Fitted | None) -> Any:
    """What counts patches at the fitted thresholds, or at each item's own."""
    from uqeval.tallies import ItemPatchCounts, PatchCounts

    patches = settings.patches(classes)
    if fitted is None:
        rule = Rule.parse(settings.threshold)
        return ItemPatchCounts(patches, rule.kind, rule.value, **_operators(settings))
    return PatchCounts(patches, fitted.threshold, fitted.ends, **_operators(settings))


def _again(
    key: str, settings: PavpuSettings, facts: Facts, fitted: Mapping[str, Any]
) -> dict[str, Again]:
    from uqeval.metrics import accuracy_by_uncertainty

    own = fitted[key]
    thresholds = None
    if own:
        thresholds = Fitted(
            tuple(own["threshold"]), tuple((low, high) for low, high in own["ends"])
        )
    tally = _tally(settings, facts.classes, thresholds)
    found = {
        key: Again(
            (tally,),
            lambda states, whole: _results(
                settings, thresholds, states[tally], facts.class_names, whole
            ),
        )
    }
    table = f"{key}/accuracy_by_uncertainty"
    if "edges" in fitted.get(table, {}):  # else they were fitted on several sets
        found[table] = accuracy_by_uncertainty.again(
            settings.patches(facts.classes).uncertainty, facts.classes, facts.class_names,
            fitted[table],
        )  # fmt: skip
    return found


def _results(
    settings: PavpuSettings,
    fitted: Fitted | None,
    state: State,
    class_names: Sequence[str],
    whole: bool = True,
) -> dict[str, Any]:
    """What the counts of patches say; without curves, and where they peak, unless `whole`."""
    counts = state["counts"].tolist()
    results: dict[str, Any] = {
        "uncertainty": settings.uncertainty,
        "window": settings.window,
        "stride": settings.stride,
        "accuracy_threshold": settings.accuracy_threshold,
        "uncertainty_threshold": None,
    }
    one = fitted is not None and len(fitted.threshold) == 1
    if fitted and one:
        results["uncertainty_threshold"] = fitted.threshold[0]
    else:
        each = "class" if fitted else "item"
        results["uncertainty_threshold_reason"] = f"fitted for each {each} apart"
    pooled = _four(state["counts"].sum(axis=0).tolist())
    results |= patch_scores.scores(*pooled)
    results["ties"] = dict(zip(("accuracy", "uncertainty"), state["ties"].tolist(), strict=True))
    rows = []
    for c, four in enumerate(counts):
        mixed = c == len(class_names)
        row: dict[str, Any] = {
            "class": "mixed" if mixed else c,
            "name": "mixed" if mixed else class_names[c],
        }
        if fitted and not one:
            own = fitted.threshold[c] if state["counts"][c].any() else None
            put(row, "uncertainty_threshold", own, "no patch of this class")
        rows.append(row | patch_scores.scores(*_four(four)))
    results["per_class"] = rows
    ends = fitted.ends[0] if fitted and one else None
    results |= _curve(state["by_threshold"], ends) if whole else _peaks(state["by_threshold"])
    if whole:
        results["accuracy_curve"] = _accuracy_curve(state["by_accuracy"])
    return results


def _four(counts: list[list[int]]) -> tuple[int, int, int, int]:
    """n_ac, n_au, n_ic, n_iu of counts [accurate, uncertain]."""
    (ic, iu), (ac, au) = counts
    return ac, au, ic, iu


def _curve(by_threshold: Any, ends: tuple[float, float] | None) -> dict[str, Any]:
    """The scores over the uncertainty threshold, their peaks, and the area under the Surplus."""
    from uqeval.tallies.patches import best_step, counts_along, curve_thresholds

    counts = counts_along(by_threshold).tolist()
    n = len(counts)
    t = [i / (n - 1) for i in range(n)]
    threshold: list[float | None] = [None] * n
    if ends:
        threshold = list(curve_thresholds(*ends))
    fields = ("pavpu", "p_accurate_given_certain", "p_uncertain_given_inaccurate", "surplus")
    curve: dict[str, Any] = {"t": t, "threshold": threshold}
    for field in fields:
        formula = patch_scores.BY_FIELD[field].formula
        curve[field] = [formula(*four) for four in counts]
        if None in curve[field]:
            curve[f"{field}_reason"] = patch_scores.BY_FIELD[field].undefined
    # Ma et al. 2024, §6: where the Surplus is negative the uncertainty says less than nothing, and
    # the PAvPU there should not be read.
    curve["misleading"] = [value is not None and value < 0 for value in curve["surplus"]]
    record: dict[str, Any] = {"curve": curve}
    for field, best in (("pavpu", _peak(curve["pavpu"])), ("surplus", best_step(by_threshold))):
        record[f"{field}_peak"] = (
            None if best is None
            else {"t": t[best], "threshold": threshold[best], "value": curve[field][best]}
        )  # fmt: skip
        if best is None:
            record[f"{field}_peak_reason"] = patch_scores.BY_FIELD[field].undefined
    area = patch_scores.surplus_auc(curve["surplus"])
    put(record, "surplus_auc", area, patch_scores.BY_FIELD["surplus"].undefined)
    return record


def _peaks(by_threshold: Any) -> dict[str, Any]:
    """The scores read off the curves over the uncertainty threshold, to the same bits."""
    from uqeval.tallies.patches import counts_along

    ac, au, ic, iu = counts_along(by_threshold).T.tolist()
    accurate, inaccurate = ac[0] + au[0], ic[0] + iu[0]
    n = accurate + inaccurate
    if not n:
        return {}
    found: dict[str, Any] = {
        "pavpu_peak": {"value": max(a + u for a, u in zip(ac, iu, strict=True)) / n}
    }
    if accurate and inaccurate:
        over = n * math.sqrt(accurate * inaccurate)
        surplus = [2.0 * ((n * a - accurate * (a + i)) / over) for a, i in zip(ac, ic, strict=True)]
        found["surplus_peak"] = {"value": max(surplus)}
        found["surplus_auc"] = patch_scores.surplus_auc(surplus)
    return found


def _peak(values: list[float | None]) -> int | None:
    defined = [v for v in values if v is not None]
    return values.index(max(defined)) if defined else None


def _accuracy_curve(by_accuracy: Any) -> dict[str, list[Any]]:
    """The scores over the accuracy threshold 0, 0.01 … 1, at the fitted uncertainty threshold."""
    certain, uncertain = by_accuracy.T.tolist()
    n = len(certain) - 1
    fields = [m.field for m in METRICS]
    curve: dict[str, list[Any]] = {"accuracy_threshold": [i / (n - 1) for i in range(n)]}
    curve |= {field: [] for field in fields}
    ic = iu = 0
    for i in range(n):
        ic += certain[i]
        iu += uncertain[i]
        for metric in METRICS:
            curve[metric.field].append(
                metric.formula(sum(certain) - ic, sum(uncertain) - iu, ic, iu)
            )
    reasons: dict[str, Any] = {
        f"{m.field}_reason": m.undefined for m in METRICS if None in curve[m.field]
    }
    return curve | reasons


def _item(tally: PatchCounts, data: bytes, own: bool) -> dict[str, Any]:
    state = tally.unpack(data)
    record = patch_scores.scores(*_four(state["counts"].sum(axis=0).tolist()))
    if own:
        value = float(state["own"][0])
        record["uncertainty_threshold"] = value if math.isfinite(value) else None
    return record


def _warnings(results: dict[str, Any]) -> list[str]:
    found = []
    if results["surplus"] is not None and results["surplus"] < 0:
        found.append(
            f"the PAvPU Surplus is {results['surplus']:.4f}: at this threshold the uncertainty "
            "says less than nothing of the errors, and the PAvPU should not be read."
        )
    return found


FAMILY = Family(
    "pavpu", (*METRICS, *patch_scores.OF_CURVES, *patch_scores.PER_CLASS), _settings, _maps, _plans,
    again=_again, settings_type=PavpuSettings, pooled=_pooled,
)  # fmt: skip
