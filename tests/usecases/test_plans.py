"""A maps store with any subset of its maps: `run` evaluates what applies and names the rest."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import uqeval
from uqeval.errors import UqevalError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.metrics import FAMILIES
from uqeval.usecases.plans import check_family, companions, everything, families_of
from uqeval.usecases.run.outcome import Outcome, RunSettings
from uqeval.usecases.run.running import config_of_store, run_stores
from uqeval.usecases.sweep.sweeping import default_families

pytestmark = pytest.mark.usefixtures("undrawn")

RNG = np.random.default_rng(0)
SHAPE = (3, 8, 8)
MEAN = RNG.dirichlet(np.ones(3), SHAPE).transpose(0, 3, 1, 2).astype(np.float32)
PREDICTIONS = MEAN.argmax(axis=1).astype(np.uint8)
LABELS = np.ascontiguousarray(PREDICTIONS[:, ::-1])
MAPS = {
    name: RNG.random(SHAPE, np.float32)
    for name in ("entropy", "brier", "label_probability", "std", "energy")
} | {"mean_probs": MEAN, "confidence": MEAN.max(axis=1)}
SUBSETS = [held for n in range(len(MAPS) + 1) for held in itertools.combinations(MAPS, n)]


def store(folder: Path, *held: str) -> str:
    path = folder / "maps.npz"
    maps = {name: MAPS[name] for name in held}
    np.savez(path, predictions=PREDICTIONS, labels=LABELS, **maps)
    return str(path)


def run(folder: Path, path: str, *uncertainty: str) -> Outcome:
    settings = RunSettings(output=folder / "out", uncertainty=uncertainty, gallery=1)
    return run_stores(config_of_store([path], None, classes=3), settings)


def test_every_subset_has_its_families_and_names_the_others(tmp_path: Path) -> None:
    all_families = {"segmentation", "pavpu", "calibration", "failure", "sparsification"}
    for held in SUBSETS:
        inputs = open_inputs(store(tmp_path, *held), None, InputOptions(classes=3))
        families, left_out = everything(inputs)
        named = {name for text in left_out for name in text.split(" left out: ")[0].split(", ")}
        assert {"segmentation"} <= families.keys()
        assert families.keys() | named == all_families and not families.keys() & named
        assert ("pavpu" in families) == bool({"entropy", "mean_probs"} & set(held))
        for text in left_out:
            assert "has no map '" in text or not held
            assert all(name in text for name in held)
        for name in named:
            with pytest.raises(UqevalError):
                check_family(inputs, name, {})


@pytest.mark.parametrize("held", [(), ("energy",), ("brier",), ("confidence", "mean_probs")])
def test_a_run_with_pictures_needs_no_confidence(tmp_path: Path, held: tuple[str, ...]) -> None:
    outcome = run(tmp_path, store(tmp_path, *held))
    assert not outcome.failed and outcome.status == 0
    report = outcome.reports["maps"]
    assert {"segmentation"} <= report.results.keys()
    is_left_out = any("pavpu" in text and "left out" in text for text in report.warnings)
    assert is_left_out == ("mean_probs" not in held)


@pytest.mark.parametrize(("held", "ranked"), [("energy", " --uncertainty energy"), ("entropy", "")])
def test_without_brier_there_is_the_sparsification_of_wrong_pixels(
    tmp_path: Path, held: str, ranked: str
) -> None:
    """The command of the message works."""
    path = store(tmp_path, held)
    inputs = open_inputs(path, None, InputOptions(classes=3))
    _, left_out = everything(inputs, (held,))
    (told,) = (text for text in left_out if "'brier'" in text)
    assert told.endswith(f"uqeval sparsification {path} --classes 3 --error zero-one{ranked}")
    # Labels elsewhere have their path.
    np.savez(tmp_path / "preds.npz", predictions=PREDICTIONS, **{held: MAPS[held]})
    np.save(tmp_path / "my labels.npy", LABELS)
    without = str(tmp_path / "preds.npz")
    labels = str(tmp_path / "my labels.npy")
    _, left_out = everything(open_inputs(without, labels, InputOptions(classes=3)), (held,))
    assert any(
        f"sparsification {without} '{labels}' --classes 3 --error" in text for text in left_out
    )
    with pytest.raises(UqevalError, match=r"has no labels: it holds .* Pass labels=: class ids"):
        everything(open_inputs(without, None, InputOptions(classes=3)), (held,))
    options = {"error": "zero-one"} | ({"uncertainty": held} if ranked else {})
    check_family(inputs, "sparsification", options)


def test_uncertainty_names_a_map(tmp_path: Path) -> None:
    path = store(tmp_path, "energy", "std")
    report = run(tmp_path, path, "energy", "std").reports["maps"]
    expected = {"segmentation", "pavpu", "pavpu[std]", "failure", "failure[std]"}
    assert report.results.keys() == expected
    assert report.settings["pavpu"]["uncertainty"] == "energy"
    assert any("calibration, sparsification left out" in text for text in report.warnings)


@pytest.mark.parametrize("name", ["nrg", "predictions"])
def test_uncertainty_that_nothing_takes_is_an_error(tmp_path: Path, name: str) -> None:
    outcome = run(tmp_path, store(tmp_path, "energy"), name)
    assert outcome.status == 2 and name in outcome.failed["maps"]


def test_a_left_out_metric_names_the_map_that_is_there(tmp_path: Path) -> None:
    inputs = open_inputs(store(tmp_path, "energy"), None, InputOptions(classes=3))
    assert any("--uncertainty energy uses that map" in text for text in everything(inputs)[1])


def test_a_negative_map_leaves_out_what_needs_a_standard_deviation(tmp_path: Path) -> None:
    energy = RNG.normal(size=SHAPE)
    numbers = {"mean": RNG.random(SHAPE), "target": RNG.random(SHAPE), "positive": energy**2}
    path = tmp_path / "maps.npz"
    np.savez(path, energy=energy, **numbers)
    config = config_of_store([str(path)], None)
    outcome = run_stores(config, RunSettings(output=tmp_path / "out", uncertainty=["energy"]))
    assert outcome.status == 0
    report = outcome.reports["maps"]
    assert report.results.keys() == {"sparsification"}
    assert report.settings["sparsification"]["uncertainty"] == "energy"
    (told,) = (text for text in report.warnings if "left out" in text)
    assert told.startswith("regression, nmerci left out: ") and "energy is used as σ" in told
    # A map beside it that can be a standard deviation is evaluated.
    both = RunSettings(output=tmp_path / "out", uncertainty=["energy", "positive"])
    report = run_stores(config, both).reports["maps"]
    others = {"regression", "nmerci", "sparsification", "sparsification[positive]"}
    assert report.results.keys() == others
    assert report.settings["nmerci"]["uncertainty"] == "positive"
    assert any("regression[energy], nmerci[energy] left out" in text for text in report.warnings)


def test_the_key_of_a_report_names_its_family() -> None:
    assert families_of({"temporal"}) == families_of("tc") == {"tc": {}}
    assert families_of({"temporal": {"flow": "dis"}}) == {"tc": {"flow": "dis"}}
    with pytest.raises(UsageError, match="temporal is another name of tc, also given"):
        families_of(["tc", "temporal"])


def test_families_declare_where_they_are_evaluated_unasked() -> None:
    assert companions("classes") == {"segmentation": {}} and companions("video") == {}
    assert default_families("classes") == ["segmentation", "pavpu"]
    assert set(default_families("regression")) == {"regression", "sparsification", "nmerci"}
    needing = [family.name for family in FAMILIES.values() if family.needs_reference]
    assert needing == ["divergence"]


def test_a_reference_takes_no_family_away() -> None:
    """And one that no metric compares with is refused."""
    probs, labels = np.full((1, 2, 3, 8, 8), 1 / 3, "f4"), np.zeros((1, 8, 8), "u1")
    found = uqeval.evaluate(probs, labels, ["failure", "divergence"], reference=probs)
    assert set(found.results) == {"segmentation", "failure", "divergence"}
    for labelled in (labels, None):
        only = uqeval.evaluate(probs, labelled, "divergence", reference=probs)
        assert set(only.results) == {"divergence"}
    with pytest.raises(UsageError, match="divergence compares whole images with those of a ref"):
        metrics = ["failure", "divergence"]
        uqeval.evaluate(probs, labels, metrics, reference=probs, region="boundary:2")
    with pytest.raises(UsageError, match="reference: no metric compares with it"):
        uqeval.evaluate(probs, labels, "failure", reference=probs)
    with pytest.raises(UsageError, match="metrics failur; did you mean 'failure'"):
        uqeval.evaluate(probs, labels, "failur", reference=probs)
