"""A law over all families: a changed or removed value of a report is found, or named as not
verified."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from changed_reports import Place, differences, parent_of, read, remove
from folders import made_in

import uqeval
from uqeval.errors import UqevalError, option_name
from uqeval.records.addresses import Address
from uqeval.usecases.selftest import synthetic_data
from uqeval.usecases.verify.verifying import verify

ITEMS, SIDE = 7, 8
_CUT = {"slices": "items.csv"}
_FIT = {"fit_on": "fit.json", "alpha": 0.4}
_CLASSES, _NUMBERS = ("classes.npz",), ("numbers.npz",)

#: By name: stores, metrics with settings, and other options.
RUNS: dict[str, tuple[Sequence[str], Mapping[str, Any], Mapping[str, Any]]] = {
    "segmentation": (_CLASSES, {"segmentation": {}}, _CUT),
    "pavpu": (_CLASSES, {"pavpu": {"window": 2}}, _CUT),
    "calibration": (_CLASSES, {"calibration": {"bins": 5}}, _CUT),
    "failure": (_CLASSES, {"failure": {}}, _CUT),
    "sparsification": (_CLASSES, {"sparsification": {"steps": 5}}, _CUT),
    "region": (_CLASSES, {"pavpu": {"window": 2}, "failure": {}}, {"region": ["class:1"]}),
    "image_failure": (_CLASSES, {"image_failure": {"confidence": "patch-max", "patch": 2}}, {}),
    "conformal": (_CLASSES, {"conformal": _FIT}, {}),
    "intervals": (_NUMBERS, {"conformal": _FIT}, {}),
    "regression": (_NUMBERS, {"regression": {"levels": 5}, "image_failure": {}}, _CUT),
    "nmerci": (_NUMBERS, {"nmerci": {}}, _CUT),
    "ood": (_CLASSES, {"ood": {"definition": "bravo"}}, {"ood_mask": "mask.npz"}),
    "sets": (_CLASSES, {"ood": {}}, {"out": ["out.npz", "out2.npz"]}),
    "annotators": (("classes.npz", "people.npz"), {"annotators": {"bins": 5}}, {}),
    "divergence": (_CLASSES, {"divergence": {}}, {"reference": "out7.npz"}),
    "temporal": ((), {"tc": {"flow": "file"}}, {"video": "video.npz"}),
}  # fmt: skip

#: Parts of a report that are not values of its data, or have tests of their own.
_OTHER = {
    "schema", "uqeval_version", "states", "states_digest", "numerics", "warnings", "timing",
    "partial",
}  # fmt: skip
#: How many changes of each report are verified, and how many of its settings.
_CHANGES, _OF_SETTINGS = 4, 2


def _stores() -> None:
    def small(name: str, items: int) -> dict[str, Any]:
        arrays = synthetic_data.classes(name, items=items)
        return {own: arrays[own][..., :SIDE, :SIDE] for own in ("probs", "labels")}

    classes = small("law", ITEMS)
    np.savez("classes.npz", **classes)
    for name, items in (("out", 4), ("out2", 3), ("out7", ITEMS)):
        flat = small(name, items)["probs"].astype(np.float32) ** 0.5
        flat /= flat.sum(axis=2, keepdims=True)
        np.savez(f"{name}.npz", probs=flat)
    mask = np.zeros_like(classes["labels"])
    mask[:, 2:5, 1:6] = 1
    np.savez("mask.npz", labels=mask)
    others = [np.roll(classes["labels"], shift, axis=2) for shift in (0, 1, 3)]
    np.savez("people.npz", labels=np.stack(others, axis=1))
    numbers = synthetic_data.numbers("law", items=ITEMS)
    np.savez("numbers.npz", **{name: own[..., :SIDE, :SIDE] for name, own in numbers.items()})
    np.savez("video.npz", **synthetic_data.video("law", frames=5))
    rows = "".join(f"{i},{'rain' if i % 2 else 'sun'}\n" for i in range(ITEMS))
    Path("items.csv").write_text(f"name,weather\n{rows}")
    Path("fit.json").write_text(json.dumps([str(i) for i in range(4)]))


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small stores and the reports of `RUNS`, with intervals."""
    with made_in(tmp_path_factory, "laws") as folder:
        _stores()
        for name, (stores, metrics, options) in RUNS.items():
            uqeval.evaluate(*stores, metrics=metrics, workers=1, ci=0.9, draws=100, **options).save(
                f"{name}.json"
            )
    return folder


def _places(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the places of the single values of a record."""
    if isinstance(value, dict | list):
        for step, own in value.items() if isinstance(value, dict) else enumerate(value):
            if place or step not in _OTHER:
                yield from _places(own, (*place, step))
    elif place:
        yield place, value


def _changed(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return 0.5 if value is None else not value
    if isinstance(value, int):
        return value + 1
    return 0.9 * value + 0.0123 if isinstance(value, float) else f"{value}x"


def _without_numbers(steps: Sequence[str | int]) -> str:
    return ".".join(str(step) for step in steps if not str(step).isdigit())


def _names(texts: Sequence[str], key: str, sentence: str) -> set[str]:
    """Return the names in a sentence about a key."""
    found: set[str] = set()
    for text in texts:
        match = re.fullmatch(rf"(.*?): {sentence}", text)
        if match and key in match[1].split(", "):
            found |= set(match[2].split(", "))
    return found


def _is_listed_result(texts: Sequence[str], key: str, steps: Place, of: str) -> bool:
    names = _names(texts, key, rf"not recomputed of the {of}: (.*)\.")
    text = " ".join(texts)
    if steps[0] == "per_class" and re.search(rf"\b{key}\b[^.]*: rows of classes", text):
        return True
    if str(steps[0]).endswith("_debiased"):
        return str(steps[0]) in _names(texts, key, r"([\w, ]*_debiased) are not recomputed\.")
    if steps[:2] in (("curve", "points"), ("curve", "coverage")) and "failure" in key:
        return "the points and the coverages of curve are taken from the report" in text
    return bool(names & {str(steps[0]), _without_numbers(steps)})


def _is_listed_interval(texts: Sequence[str], address: str, steps: Place) -> bool:
    text, field = " ".join(texts), _without_numbers(steps)
    if field in ("low", "high", "method"):
        own = Address.parse(address)
        if own.fields[0] == "per_class":
            return "of rows of classes are not recomputed" in text
        name = ".".join(own.fields)
        return name in _names(texts, own.key, "the intervals of (.*) are not recomputed.")
    return field in text


def _is_listed_of_slice(texts: Sequence[str], steps: Place) -> bool:
    text = next((own for own in texts if own.startswith("Not recomputed of ")), "")
    parts = text.rstrip(".").partition(": ")[2].split("; ")
    if steps[0] == "intervals":
        field = str(steps[2])
        is_end = field in ("low", "high", "method")
        return " interval" in parts[0] if is_end else _without_numbers(steps[2:]) in " ".join(texts)
    if steps[0] != "results":
        return _without_numbers(steps) in parts[-1].split(", ")
    key, fields = str(steps[1]), {str(steps[2]), _without_numbers(steps[2:])}
    for part in parts:
        names, _, keys = part.partition(" of ")
        is_of_key = key in keys.split(", ")
        if is_of_key and (names == "all scores" or fields & set(names.split(", "))):
            return True
    return False


def _is_listed(texts: Sequence[str], place: Place) -> bool:
    """Return whether the sentences on what was not verified name a value."""
    first, *steps = place
    text = " ".join(texts)
    if str(place[-1]).endswith("reason"):
        return "texts of reasons" in text
    if first == "results":
        return _is_listed_result(texts, str(steps[0]), tuple(steps[1:]), "set")
    if first == "items":
        if steps[1:] == ["name"]:
            return "names of items that --names gives or the stores do not name" in text
        return _is_listed_result(texts, str(steps[1]), tuple(steps[2:]), "items")
    if first == "intervals":
        return _is_listed_interval(texts, str(steps[0]), tuple(steps[1:]))
    if first == "slices":
        return _is_listed_of_slice(texts, tuple(steps[1:]))
    if first == "settings" and steps[0] == "intervals":
        is_of_series = steps[1] in ("lag1", "effective")
        return f"settings.intervals.{steps[1]}" in text or (
            is_of_series and "lag1 and effective are taken from the report, in the sett" in text
        )
    option = option_name(str(steps[-1]))
    if first == "settings" and re.search(rf"{option}( \S+)? is not supported", text):
        return True
    if first == "settings":
        unread = text.partition("Settings that no recomputed value depends on: ")[2]
        match = re.search(rf"(^|[ ,]){re.escape(str(steps[0]))}: ([\w, ]*)(, \w|\.)", unread)
        return match is not None and str(steps[1]) in re.split(r"\W+", match[0])
    return first == "inputs" and (
        steps[0] == "options" or steps[-1] in ("path", "name", "stored_bytes")
    )


def _verified(record: Any) -> tuple[bool, list[str]]:
    """Return whether a record passes, and what was not verified."""
    Path("changed.json").write_text(json.dumps(record))
    try:
        found = verify("changed.json", everything=True)
    except UqevalError:
        return False, []
    return found.passed, found.not_verified


def _sample(record: Any, rng: random.Random) -> list[tuple[Place, Any]]:
    """Return some values: each kind of place is as likely, however many rows and points it has."""
    by_kind: dict[str, list[tuple[Place, Any]]] = {}
    for place, value in _places(record):
        kind = _without_numbers(place[:1] if place[0] == "metrics" else place)
        by_kind.setdefault(kind, []).append((place, value))
    parts: dict[str, list[list[tuple[Place, Any]]]] = {}
    for own in by_kind.values():
        parts.setdefault(str(own[0][0][0]), []).append(own)
    settings = parts.pop("settings")
    chosen = rng.sample(settings, min(_OF_SETTINGS, len(settings)))
    chosen += [rng.choice(parts[rng.choice(list(parts))]) for _ in range(_CHANGES)]
    return [rng.choice(own) for own in chosen]


@pytest.mark.parametrize("name", RUNS)
def test_changed_and_removed_values_are_found_or_named(name: str, folder: Path) -> None:
    record, rng = read(f"{name}.json"), random.Random(name)
    passes, texts = _verified(record)
    assert passes
    missed = []
    for place, value in _sample(record, rng):
        for change in ("changed", "removed"):
            other = deepcopy(record)
            own, last = parent_of(other, place)
            if change == "removed":
                del own[last]
            else:
                own[last] = _changed(value)
            passes, now = _verified(other)
            if passes and not (_is_listed(texts, place) or _is_listed(now, place)):
                missed.append((change, place, value))
    assert not missed


#: By report, removed values, and the field of the difference.
REMOVED: dict[str, dict[Place, str]] = {
    "pavpu": {
        ("results", "pavpu", "accuracy_by_uncertainty"): "pavpu.accuracy_by_uncertainty",
        ("results", "pavpu", "window"): "pavpu.window",
        ("results", "pavpu", "accuracy_threshold"): "pavpu.accuracy_threshold",
        ("results", "pavpu", "ties"): "pavpu.ties",
        ("intervals", "pavpu.pavpu", "high"): "high",
        ("settings", "slices"): "columns weather",
        ("slices", "weather=sun", "items"): "slice.items",
        ("slices", "weather=sun", "small"): "slice.small",
        ("slices", "weather=sun", "units", "drawn"): "slice.units.drawn",
        ("slices", "weather=sun", "results", "pavpu", "curve"): "pavpu.curve",
    },
    "calibration": {
        ("results", "calibration", "temperature"): "calibration.temperature",
        ("results", "calibration", "smooth_ece"): "calibration.smooth_ece",
        ("results", "calibration", "ece_debiased"): "calibration.ece_debiased",
        ("results", "calibration", "mce_debiased"): "calibration.mce_debiased",
    },
    "failure": {("results", "failure", "aurc_bound"): "failure.aurc_bound"},
    "segmentation": {("settings", "segmentation"): "definition"},
    "regression": {("results", "regression", "auce_under_debiased"): "auce_under_debiased"},
    "conformal": {("results", "conformal", "alpha"): "conformal.alpha"},
    "ood": {("results", "ood", "bravo"): "ood.bravo"},
    "temporal": {("settings", "intervals"): "intervals"},
}  # fmt: skip


@pytest.mark.parametrize("name", REMOVED)
def test_removed_values_are_found(name: str, folder: Path) -> None:
    record = read(f"{name}.json")
    remove(record, REMOVED[name])
    found = differences(record)
    fields = {own.field for own in found if own.is_missing}
    expected = set(REMOVED[name].values())
    assert {field for field in expected if not any(own.endswith(field) for own in fields)} == set()


def test_values_that_verify_does_not_know_are_named(folder: Path) -> None:
    record = read("pavpu.json")
    for own in (record, *record["slices"].values()):
        own["results"]["pavpu"]["bonus"] = 0.9
        own["results"]["pavpu"]["per_class"][0]["bonus"] = 0.9
    record["items"][-1]["pavpu"]["bonus"] = 0.9
    record["slices"]["weather=sun"]["extra"] = 0.9
    record["slices"]["weather=sun"]["results"]["pavpu"]["surplus_auc"] = 0.9
    passes, texts = _verified(record)
    assert passes
    assert "pavpu: not recomputed of the items: bonus." in texts
    assert _names(texts, "pavpu", r"not recomputed of the set: (.*)\.") >= {
        "bonus", "per_class.bonus",
    }  # fmt: skip
    (of_slices,) = (text for text in texts if text.startswith("Not recomputed of 2 slices"))
    for name in ("bonus", "per_class.bonus", "surplus_auc"):
        assert re.search(rf"[ :;]{re.escape(name)}[^;]* of pavpu;", of_slices)
    assert of_slices.endswith("extra.")


def test_results_of_an_unknown_family_are_no_results(folder: Path) -> None:
    record = read("pavpu.json")
    record["results"]["extra"] = {"score": 0.9}
    passes, texts = _verified(record)
    assert not passes or any("extra" in text for text in texts)


@pytest.mark.parametrize(
    "change", [{"high": None}, {"method": None}, {"low": None}, {"low": None, "method": None}]
)
def test_an_interval_is_null_as_a_whole(change: dict[str, Any], folder: Path) -> None:
    record, address = read("regression.json"), "regression.coverage.50"  # it is not recomputed
    record["intervals"][address].update(change)
    found = differences(record)
    assert any(own.where == f"interval of {address}" for own in found)


def test_settings_without_effect_on_the_values_are_named(folder: Path) -> None:
    for name, key, setting in (("pavpu", "pavpu", "region_share"), ("sets", "ood", "patch")):
        record = read(f"{name}.json")
        record["settings"][key][setting] *= 0.5 if setting == "region_share" else 2
        passes, texts = _verified(record)
        assert passes
        assert _is_listed(texts, ("settings", key, setting))
    record = read("image_failure.json")  # a setting with an effect
    record["settings"]["image_failure"]["patch"] = 3
    assert not _verified(record)[0]


def test_right_reports_of_rare_settings_pass(folder: Path) -> None:
    """The factor of σ is held fixed, so it has no interval; pooled means need counts of pairs."""
    scaled = {"regression": {"ence": True, "sigma_scale": True}}
    uqeval.evaluate("numbers.npz", metrics=scaled, workers=1, ci=0.9, draws=100).save("own.json")
    found = verify("own.json", everything=True)
    assert found.passed, found.problems()
    pooled = {"tc": {"flow": "file", "average": "pooled"}}
    uqeval.evaluate(metrics=pooled, workers=1, video="video.npz").save("own.json")
    found = verify("own.json", everything=True)
    assert found.passed, found.problems()
    reason = "--average pooled is not supported by uqeval verify"
    assert found.not_recomputed == {"temporal of the set": reason}
    outside = {"region": ["box:0:0.001,0:1"]}  # a region without pixels
    uqeval.evaluate("numbers.npz", metrics=["nmerci"], workers=1, **outside).save("own.json")
    found = verify("own.json", everything=True)
    assert found.passed, found.problems()
