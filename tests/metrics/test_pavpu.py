"""PAvPU from a maps store to the report, against the oracle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from command import refused
from near import near
from scenes import item_maps, zarr_group
from small_stores import save

import uqeval
from uqeval.errors import DataError, StoreError, UsageError
from uqeval.metrics.patch_scores import METRICS

CLASSES = 4
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "figure2.json").read_text())
NAMES = ["a", "b", "c"]


class Scene:
    """A maps store, and its arrays."""

    def __init__(self, folder: Path) -> None:
        items = [item_maps(seed, 14, 17, CLASSES, 0.1) for seed in range(3)]
        self.maps = {name: np.stack([m[name] for m in items]) for name in items[0]}
        self.maps["rank"] = self.maps.pop("label_rank")
        stored = {
            "predictions": self.maps["prediction"],
            "labels": self.maps["label"],
            "label_rank": self.maps["rank"],
            **{name: self.maps[name] for name in ("entropy", "confidence", "anything")},
        }
        self.path = zarr_group(folder / "maps", stored, names=NAMES, class_names=list("wxyz"))

    def evaluate(self, **settings: Any) -> Any:
        return uqeval.evaluate(self.path, metrics={"pavpu": settings})

    def uncertainty(self, name: str, log_base: float = np.e) -> Any:
        values = naive.uncertainty(self.maps, name)
        return (values / np.log(log_base)).astype("f4") if log_base != np.e else values

    def patches(self, settings: dict[str, Any], items: Any = slice(None)) -> list[naive.Patch]:
        top_k = settings.get("top_k", 1)
        label, prediction = self.maps["label"][items], self.maps["prediction"][items]
        right = prediction == label if top_k == 1 else self.maps["rank"][items] < top_k
        return naive.patches(
            right, self.of(settings)[items], label, settings.get("window", 4),
            settings.get("stride"), 255, settings.get("border", "drop"),
            settings.get("void", "exclude"),
        )  # fmt: skip

    def of(self, settings: dict[str, Any]) -> Any:
        base = settings.get("log_base", np.e)
        base = CLASSES if base == "classes" else base
        return self.uncertainty(settings.get("uncertainty", "entropy"), base)

    def pixels(self, settings: dict[str, Any], items: Any = slice(None)) -> Any:
        return naive.pixel_uncertainties(self.of(settings)[items], self.maps["label"][items])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(tmp_path_factory.mktemp("scene"))


CASES: list[dict[str, Any]] = [
    {},
    {"uncertainty": "confidence"},
    {"uncertainty": "anything"},
    {"window": 3, "stride": 1},
    {"window": 2, "stride": 3, "border": "partial"},
    {"window": 5, "border": "pad", "void": "inaccurate"},
    {"border": "partial", "void": "inaccurate", "accuracy_op": ">="},
    {"threshold": "median"},
    {"threshold": "p10", "uncertainty_op": ">="},
    {"threshold": "p99.5", "window": 2},
    {"threshold": "range:0.25", "uncertainty_op": ">="},
    {"threshold": "range:1", "uncertainty": "anything"},
    {"threshold": "max-surplus", "window": 2},
    {"threshold": "max-surplus", "window": 2, "accuracy_op": ">=", "uncertainty_op": ">="},
    {"threshold": 0.3, "accuracy_threshold": 0.75, "accuracy_op": ">="},
    {"threshold": "0.3125", "window": 2, "uncertainty_op": ">="},
    {"log_base": 2, "threshold": "0.4"},
    {"log_base": "classes"},
    {"top_k": 2},
    {"top_k": 3, "window": 2, "stride": 1, "threshold": "p75"},
]


@pytest.mark.parametrize(
    "settings", CASES, ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items())
)
def test_every_number_is_that_of_the_oracle(scene: Scene, settings: dict[str, Any]) -> None:
    report = scene.evaluate(**settings)
    found = report.results["pavpu"]
    patches, pixels = scene.patches(settings), scene.pixels(settings)
    ops = (settings.get("accuracy_op", ">"), settings.get("uncertainty_op", ">"))
    accuracy = settings.get("accuracy_threshold", 0.5)
    limit = naive.threshold(settings.get("threshold", "mean"), patches, pixels, accuracy, *ops)

    near(found["uncertainty_threshold"], limit)
    limit = found["uncertainty_threshold"]  # the sum's last bit may decide a tie
    near(found, naive.scored(patches, accuracy, limit, *ops))
    rows = naive.per_class(patches, accuracy, limit, *ops, CLASSES)
    near(found["per_class"], [{k: v for k, v in row.items() if k != "ties"} for row in rows])
    assert [row["name"] for row in found["per_class"]] == [*"wxyz", "mixed"]
    curve = naive.curve(patches, pixels, accuracy, *ops)
    near(found["curve"], curve)
    assert found["curve"]["misleading"] == [s is not None and s < 0 for s in curve["surplus"]]
    for field in ("pavpu", "surplus"):
        best = naive.peak(curve, field)
        assert best is not None
        assert found[f"{field}_peak"]["value"] == pytest.approx(best["value"], rel=1e-12)
        highest = [v is not None and v >= best["value"] - 1e-12 for v in curve[field]]
        assert found[f"{field}_peak"]["t"] == curve["t"][highest.index(True)]
    near(found["surplus_auc"], naive.surplus_auc(curve))
    near(found["accuracy_curve"], naive.accuracy_curve(patches, limit, *ops))
    for i, item in enumerate(report.items):
        near(
            item["pavpu"], naive.scores(*_four(scene.patches(settings, [i]), accuracy, limit, ops))
        )
    assert report.numerics["pavpu"] == {f"ties_{k}": v for k, v in found["ties"].items()}
    assert report.settings["pavpu"]["window"] == settings.get("window", 4)
    report.to_json()


def _four(patches: list[naive.Patch], accuracy: float, limit: float, ops: Any) -> list[int]:
    n = naive.counts(patches, accuracy, limit, *ops)
    return [n[name] for name in ("n_ac", "n_au", "n_ic", "n_iu")]


@pytest.mark.parametrize(
    ("uncertainty", "log_base"),
    [("entropy", np.e), ("entropy", 2), ("confidence", np.e), ("anything", np.e)],
)
def test_accuracy_by_uncertainty(scene: Scene, uncertainty: str, log_base: float) -> None:
    settings = {"uncertainty": uncertainty, "log_base": log_base}
    found = scene.evaluate(**settings).results["pavpu"]["accuracy_by_uncertainty"]
    label, prediction = scene.maps["label"], scene.maps["prediction"]
    u = scene.of(settings if uncertainty == "entropy" else {"uncertainty": uncertainty})
    expected = naive.accuracy_by_uncertainty(label, prediction, u, CLASSES)
    for row in found["rows"]:
        assert ("accuracy_reason" in row) == (None in row["accuracy"])
    assert found["percentiles"] == expected["percentiles"]
    assert [np.float32(v) for v in found["thresholds"]] == expected["thresholds"]
    values = u[label != 255].astype("f8")
    assert found["thresholds"] == np.percentile(values, range(10, 100, 10)).tolist()
    rows = [{k: v for k, v in row.items() if k != "name"} for row in found["rows"]]
    assert rows == expected["rows"]


# Scopes


@pytest.mark.parametrize("rule", ["mean", "median", "p20", "range:0.5", "max-surplus", "0.25"])
@pytest.mark.parametrize("op", [">", ">="])
def test_a_threshold_for_each_class(scene: Scene, rule: str, op: str) -> None:
    settings = {"window": 2, "threshold": rule, "threshold_scope": "class", "uncertainty_op": op}
    found = scene.evaluate(**settings).results["pavpu"]
    assert found["uncertainty_threshold"] is None
    assert "class" in found["uncertainty_threshold_reason"]
    patches, u, label = scene.patches(settings), scene.of(settings), scene.maps["label"]
    total = [0, 0, 0, 0]
    for c, row in enumerate(found["per_class"]):
        mixed = c == CLASSES
        mine = [p for p in patches if p["category"] == ("mixed" if mixed else c)]
        pixels = u[label != 255 if mixed else label == c].astype("f8")
        near(row["uncertainty_threshold"], naive.threshold(rule, mine, pixels, uncertain_op=op))
        four = _four(mine, 0.5, row["uncertainty_threshold"], (">", op))
        near(row, naive.scores(*four))
        total = [a + b for a, b in zip(total, four, strict=True)]
    near(found, naive.scores(*total))


@pytest.mark.parametrize("rule", ["mean", "median", "p20", "range:0.5", "max-surplus", "0.25"])
def test_a_threshold_for_each_item(scene: Scene, rule: str) -> None:
    settings = {"window": 2, "threshold": rule, "threshold_scope": "item"}
    report = scene.evaluate(**settings)
    found = report.results["pavpu"]
    assert found["uncertainty_threshold"] is None
    assert "item" in found["uncertainty_threshold_reason"]
    total = [0, 0, 0, 0]
    for i, item in enumerate(report.items):
        mine, pixels = scene.patches(settings, [i]), scene.pixels(settings, [i])
        limit = item["pavpu"]["uncertainty_threshold"]
        near(limit, naive.threshold(rule, mine, pixels))
        four = _four(mine, 0.5, limit, (">", ">"))
        near(item["pavpu"], naive.scores(*four))
        total = [a + b for a, b in zip(total, four, strict=True)]
    near(found, naive.scores(*total))


def test_one_item_is_its_own_set(scene: Scene, tmp_path: Path) -> None:
    for scope in ("set", "item"):
        settings = {"threshold_scope": scope, "threshold": "median", "window": 2}
        report = uqeval.evaluate(scene.path, metrics={"pavpu": settings}, limit=1)
        if scope == "set":
            expected = report.results["pavpu"]
        else:
            for name in naive.SCORES:
                assert report.results["pavpu"][name] == expected[name]
            own = report.items[0]["pavpu"]["uncertainty_threshold"]
            assert own == expected["uncertainty_threshold"]


# The worked example of the paper


def figure2(folder: Path, dtype: str, name: str) -> Path:
    arrays = {
        "predictions": np.array([GOLDEN["predictions"]], "u1"),
        "labels": np.array([GOLDEN["labels"]], "u1"),
        name: np.array([GOLDEN["uncertainty"]], dtype),
    }
    names = [str(c) for c in range(GOLDEN["classes"])]
    return zarr_group(folder / f"{dtype}{name}", arrays, class_names=names)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["entropy", "mutual_information", "my_own_score"])
def test_figure_2(tmp_path: Path, dtype: str, name: str) -> None:
    path = figure2(tmp_path, dtype, name)
    for variant in GOLDEN["variants"]:
        settings = {
            "uncertainty": name,
            "window": GOLDEN["window"],
            "stride": GOLDEN["stride"],
            "threshold": GOLDEN["uncertainty_threshold"],
            "accuracy_threshold": GOLDEN["accuracy_threshold"],
            "accuracy_op": variant["accuracy_op"],
            "uncertainty_op": variant["uncertain_op"],
        }
        found = uqeval.evaluate(path, metrics={"pavpu": settings}).results["pavpu"]
        for key, value in variant.items():
            if key not in ("accuracy_op", "uncertain_op"):
                assert found[key] == value, (variant, key)
    settings |= {"accuracy_op": ">", "uncertainty_op": ">"}
    found = uqeval.evaluate(path, metrics={"pavpu": settings}).results["pavpu"]
    near(found, GOLDEN["expected"])
    assert found["ties"] == GOLDEN["expected"]["ties"]


# Undefined values


def flat(tmp_path: Path, right: bool, value: float = 0.5) -> Path:
    arrays = {
        "predictions": np.full((1, 8, 8), 0 if right else 1, "u1"),
        "labels": np.zeros((1, 8, 8), "u1"),
        "entropy": np.full((1, 8, 8), value, "f4"),
    }
    return zarr_group(tmp_path / "flat", arrays, class_names=["a", "b"])


def without_threshold(found: dict[str, Any], word: str = "no Surplus is defined") -> None:
    """Assert that everything that needs the undefined threshold is null with its reason."""
    needed = {"uncertainty_threshold", "n_ac", "n_au", "n_ic", "n_iu", "accuracy_curve"}
    needed |= {metric.field for metric in METRICS} - {"p_accurate"}
    for name in needed & found.keys():
        assert found[name] is None, name
        assert word in found[f"{name}_reason"], name
    assert found["p_accurate"] in (0.0, 1.0, None)


@pytest.mark.parametrize("rule", ["mean", "median", "range:0.5", "max-surplus"])
def test_without_errors_much_is_undefined(tmp_path: Path, rule: str) -> None:
    report = uqeval.evaluate(flat(tmp_path, True), metrics={"pavpu": {"threshold": rule}})
    found = report.results["pavpu"]
    for name in ("phi", "surplus", "half_surplus", "p_uncertain_given_inaccurate", "surplus_auc"):
        assert found[name] is None
        assert found[f"{name}_reason"]
    assert found["surplus_peak"] is None
    assert found["surplus_peak_reason"]
    assert found["curve"]["surplus"] == [None] * 101
    assert found["curve"]["misleading"] == [False] * 101
    if rule == "max-surplus":  # there is no Surplus, and so no threshold
        without_threshold(found)
        return
    assert found["uncertainty_threshold"] == 0.5
    assert found["pavpu"] == 1.0
    assert found["ties"] == {"accuracy": 0, "uncertainty": 4}


def test_a_constant_uncertainty_knows_nothing(tmp_path: Path) -> None:
    found = uqeval.evaluate(flat(tmp_path, False)).results["pavpu"]
    assert (found["n_ac"], found["n_au"], found["n_ic"], found["n_iu"]) == (0, 0, 4, 0)
    assert found["pavpu"] == found["pavpu_chance"] == 0
    assert found["phi"] is None


def test_a_misleading_uncertainty_is_a_warning(scene: Scene, tmp_path: Path) -> None:
    wrong = scene.maps["prediction"] != scene.maps["label"]
    arrays = {
        "predictions": scene.maps["prediction"],
        "labels": scene.maps["label"],
        "entropy": np.where(wrong, 0.1, 0.9).astype("f4"),
    }
    path = zarr_group(tmp_path / "s", arrays, class_names=list("wxyz"))
    report = uqeval.evaluate(path, metrics={"pavpu": {"window": 2}})
    assert report.results["pavpu"]["surplus"] < 0
    assert any("worse than chance" in text for text in report.warnings)
    assert any(report.results["pavpu"]["curve"]["misleading"])


def test_no_patch_with_a_valid_pixel(tmp_path: Path) -> None:
    label = np.full((1, 4, 5), 255, "u1")
    label[0, 0, 4] = 0  # outside the one complete patch
    arrays = {"predictions": label * 0, "labels": label, "entropy": np.ones((1, 4, 5), "f4")}
    path = zarr_group(tmp_path / "s", arrays, class_names=["a", "b"])
    found = uqeval.evaluate(path).results["pavpu"]
    assert found["pavpu"] is None
    assert found["pavpu_reason"] == "no patch"
    for rule in ("median", "max-surplus"):
        options = {"threshold": rule}
        report = uqeval.evaluate(path, metrics={"pavpu": options, "failure": options})
        for name in ("pavpu", "failure"):
            assert report.results[name]["uncertainty_threshold"] is None
            assert report.results[name]["uncertainty_threshold_reason"]
        assert report.results["failure"]["undetected_error_rate"] is None
        assert report.results["failure"]["aurc"] == 0


def test_one_row_one_column_one_pixel(tmp_path: Path) -> None:
    for shape in ((1, 9), (9, 1), (1, 1)):
        rng = np.random.default_rng(0)
        label = rng.integers(0, 2, (1, *shape)).astype("u1")
        arrays = {
            "predictions": rng.integers(0, 2, label.shape).astype("u1"),
            "labels": label,
            "entropy": rng.random(label.shape).astype("f4"),
        }
        path = zarr_group(tmp_path / str(shape), arrays, class_names=["a", "b"])
        found = uqeval.evaluate(path, metrics={"pavpu": {"window": 1}}).results["pavpu"]
        right = arrays["predictions"] == label
        u = arrays["entropy"][0].astype("f8")
        assert found["n_ac"] == int((right[0] & (u <= np.float32(u.mean()))).sum())
        with pytest.raises(UsageError, match=r"window=4 is larger than item 0|items of one pixel"):
            uqeval.evaluate(path)


# Thresholds of another report


def test_a_threshold_from_a_report(scene: Scene, tmp_path: Path) -> None:
    fitted = scene.evaluate(window=[2, 4], uncertainty=["entropy", "anything"], threshold="p70")
    path = tmp_path / "fitted.json"
    path.write_text(fitted.to_json())
    for window, name in ((2, "entropy"), (4, "anything"), (3, "entropy")):
        report = scene.evaluate(window=window, uncertainty=name, threshold_from=str(path))
        keys = [
            key for key, own in fitted.settings.items()
            if own.get("uncertainty") == name and (own.get("window") == window or window == 3)
        ]  # fmt: skip
        wanted = fitted.results[keys[0]]["uncertainty_threshold"]
        assert report.results["pavpu"]["uncertainty_threshold"] == wanted
        if window != 3:
            for field in naive.SCORES:
                assert report.results["pavpu"][field] == fitted.results[keys[0]][field]
        assert report.settings["pavpu"]["threshold_from"] == str(path)


def test_reports_without_the_threshold(scene: Scene, tmp_path: Path) -> None:
    path = tmp_path / "fitted.json"
    path.write_text(scene.evaluate(threshold_scope="class").to_json())
    with pytest.raises(UsageError, match="no single threshold: fitted for each class"):
        scene.evaluate(threshold_from=str(path))
    with pytest.raises(
        UsageError, match=r"no threshold for anything; .* for entropy with log base e"
    ):
        scene.evaluate(uncertainty="anything", threshold_from=str(path))
    with pytest.raises(UsageError, match="no threshold for entropy with log base 2"):
        scene.evaluate(log_base=2, threshold_from=str(path))
    with pytest.raises(UsageError, match="exclude each other"):
        scene.evaluate(threshold="mean", threshold_from=str(path))
    with pytest.raises(UsageError, match="threshold_scope item"):
        scene.evaluate(threshold_scope="item", threshold_from=str(path))
    with pytest.raises(StoreError):
        scene.evaluate(threshold_from=str(tmp_path / "none.json"))


# Settings


def test_variants_have_keys_that_say_what_they_change(scene: Scene) -> None:
    report = scene.evaluate(uncertainty=["entropy", "anything"], window=[4, 2], threshold="median")
    keys = ["pavpu", "pavpu[window=2]", "pavpu[anything]", "pavpu[anything,window=2]"]
    assert [key for key in report.results if key != "segmentation"] == keys
    assert [key for key in report.items[0] if key not in ("name", "segmentation")] == keys
    for key, (name, window) in zip(
        keys, [("entropy", 4), ("entropy", 2), ("anything", 4), ("anything", 2)], strict=True
    ):
        alone = scene.evaluate(uncertainty=name, window=window, threshold="median")
        assert report.results[key] == alone.results["pavpu"]
        assert [i[key] for i in report.items] == [i["pavpu"] for i in alone.items]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"window": 0}, "window=0; expected a whole number of at least 1"),
        ({"stride": -1}, "stride=-1"),
        ({"stride": 0}, "stride=0"),
        ({"accuracy_threshold": 1.5}, "accuracy_threshold=1.5; expected a number from 0 to 1"),
        ({"accuracy_threshold": float("nan")}, "accuracy_threshold=nan"),
        ({"top_k": 0}, "top_k=0; expected a whole number of at least 1"),
        ({"top_k": 4}, "top_k=4 of 4 classes"),
        ({"border": "wrap"}, "border='wrap'; expected one of drop, partial, pad"),
        ({"void": "keep"}, "void='keep'; expected one of exclude, inaccurate"),
        ({"accuracy_op": "<"}, "accuracy_op='<'"),
        ({"uncertainty_op": "=="}, "uncertainty_op='=='"),
        ({"threshold_scope": "all"}, "threshold_scope='all'; expected one of set, class, item"),
        ({"definition": "mine"}, "definition='mine'; expected one of paper, ma"),
        ({"log_base": 1}, "log_base=1; expected e, 2, classes"),
        ({"log_base": "ten"}, "log_base ten"),
        ({"threshold": "often"}, "threshold='often' is not valid; expected mean, median, pNN"),
        ({"threshold": "p101"}, "threshold='p101'"),
        ({"threshold": "range:1.01"}, "threshold='range:1.01'"),
        ({"threshold": "nan"}, "threshold='nan'"),
        ({"threshold": float("inf")}, "threshold=inf"),
        ({"threshold": 9}, "threshold=9 is out of range: entropy of 4 classes lies between"),
        ({"curve_range": "5:9"}, "curve_range=5:9 is out of range: entropy of 4 classes"),
        ({"curve_range": "0:0"}, "curve_range=0:0 is empty; expected LOW below"),
        ({"curve_range": "2:1"}, "curve_range='2:1'; expected LOW:HIGH, such as 0:1.5"),
        ({"window": []}, "window is an empty list"),
        ({"points": 3, "x": 1}, "unknown pavpu options points, x; expected some of"),
        ({"windw": 3}, "unknown pavpu options windw; did you mean 'window'?"),
        ({"uncertainty": "label"}, "label is not an uncertainty"),
    ],
)
def test_settings_that_cannot_be(scene: Scene, settings: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        scene.evaluate(**settings)
    assert words in str(caught.value)


def test_a_map_that_is_not_there(scene: Scene) -> None:
    with pytest.raises(StoreError, match=r"no map 'std'. It holds anything, confidence, entropy"):
        scene.evaluate(uncertainty="std")


def test_nothing_left_to_evaluate(scene: Scene, tmp_path: Path) -> None:
    label = np.full_like(scene.maps["label"], 255)
    for settings in ({}, {"threshold_scope": "item"}):
        with pytest.raises(DataError, match=r"nothing is left .* 3 items .* ignore_index 255"):
            uqeval.evaluate(scene.path, label, {"pavpu": settings})
    with pytest.raises(DataError, match="nothing is left"):
        uqeval.evaluate(scene.path, label, ("segmentation",))


def test_one_class_is_refused_as_such(tmp_path: Path) -> None:
    """Nobody has given --top-k, which has no smaller value."""
    planes = np.zeros((2, 8, 8), np.uint8)
    arrays = {"predictions": planes, "labels": planes, "entropy": planes.astype("f4")}
    path = save(tmp_path / "s", arrays, {"class_names": ["road"]})
    message = refused(lambda: uqeval.evaluate(path, metrics="pavpu"), "1 class", "no pixel can be")
    assert "top" not in message
