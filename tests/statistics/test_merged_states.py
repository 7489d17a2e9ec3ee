"""Which facts about the data of runs must agree, and which are joined."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from small_stores import NAMES, N, labels, probs, save, save_complete

import uqeval
from uqeval.inputs import InputOptions, open_inputs
from uqeval.metrics._dataset_info import DatasetInfo
from uqeval.statistics.merged_records import EQUAL_FACTS
from uqeval.statistics.run_differences import difference
from uqeval.stores.states.saved import SavedStates
from uqeval.usecases.reduce import reduce

#: Facts that are joined, and those of the first run: places of files, what a run compares as an
#: option or a setting, and what is not saved.
JOINED_FACTS = (
    "where", "names", "sizes", "groups", "sets", "columns", "video", "halves", "invalid",
)  # fmt: skip
FACTS_OF_FIRST = (
    "paths", "labels", "ignore_index", "fit_names", "command", "all_names", "all_sizes",
)  # fmt: skip


def test_every_fact_is_compared_joined_or_of_the_first_run() -> None:
    facts = [*EQUAL_FACTS, *JOINED_FACTS, *FACTS_OF_FIRST]
    assert sorted(facts) == sorted(field.name for field in dataclasses.fields(DatasetInfo))


def test_runs_differ_in_each_fact_that_counts_depend_on(tmp_path: Path) -> None:
    states = tmp_path / "s.states.zip"
    uqeval.evaluate(save_complete(tmp_path / "p"), None, "segmentation", states=states, workers=1)
    saved = SavedStates(states).index
    known_facts = {"names_digest": "of a shard", "units": "m", "samples_of_maps": 5}
    index = saved | {"facts": saved["facts"] | known_facts}
    assert difference(index, index) is None
    for name in EQUAL_FACTS:
        other = index | {"facts": index["facts"] | {name: "other"}}
        described = "the names of the items" if name == "names_digest" else name.replace("_", " ")
        assert (difference(index, other) or "").startswith(described), name
        # Files of earlier versions do not have all facts.
        known = {key: fact for key, fact in index["facts"].items() if key != name}
        assert difference(index | {"facts": known}, index) is None, name
    spelled = index | {"facts": index["facts"] | {"units": "metres"}}
    assert difference(index, spelled) is None
    no_facts = {"names_digest": "", "units": "", "samples_of_maps": 0}
    unknown = index | {"facts": index["facts"] | no_facts}
    assert difference(index, unknown) is None


def test_runs_with_other_numbers_of_annotators_are_not_joined(tmp_path: Path) -> None:
    files = []
    for annotators in (2, 3):
        name = str(annotators)
        rated = np.stack([labels(seed=seed) for seed in range(annotators)], 1)
        arrays = {"probs": probs(), "labels": rated}
        save(tmp_path / name, arrays, {"names": [f"{name}{i}" for i in range(len(rated))]})
        files.append(tmp_path / f"{name}.states.zip")
        uqeval.evaluate(tmp_path / name, None, "annotators", states=files[-1], workers=1)
    with pytest.raises(uqeval.UsageError, match="differ in annotators: 2 and 3"):
        uqeval.merge(files)


def test_maps_of_other_numbers_of_samples_are_not_joined(tmp_path: Path) -> None:
    files = []
    for samples in (2, 5):
        p = np.resize(probs(), (N, samples, *probs().shape[2:]))
        names = {"names": [f"{samples}/{name}" for name in NAMES]}
        save(tmp_path / str(samples), {"probs": p, "labels": labels()}, names)
        inputs = open_inputs(tmp_path / str(samples), None, InputOptions())
        reduce(inputs, tmp_path / f"maps{samples}")
        files.append(tmp_path / f"{samples}.states.zip")
        uqeval.evaluate(tmp_path / f"maps{samples}", None, "pavpu", states=files[-1], workers=1)
    with pytest.raises(uqeval.UsageError, match="differ in samples of maps: 2 and 5"):
        uqeval.merge(files)


def out_of_distribution(path: Path, *out: str) -> Path:
    """The states of two images in distribution, and of one in each OUT set."""
    for name, count in (("in", 2), *((own, 1) for own in out)):
        names = {"names": [f"{path.name}/{name}/{i}" for i in range(count)]}
        save(path / name, {"probs": probs(count)}, names)
    states = path / "s.states.zip"
    uqeval.evaluate(
        path / "in", None, "ood", out=[path / own for own in out], states=states, workers=1
    )
    return states


def test_the_name_of_a_single_out_set_is_that_of_a_file(tmp_path: Path) -> None:
    files = [out_of_distribution(tmp_path / own, own) for own in ("fog", "snow")]
    report = uqeval.merge(files)
    assert report.inputs["sets"] == [{"name": "in", "items": 4}, {"name": "fog", "items": 2}]
    assert report.results["ood"]["auroc"] is not None
    named = out_of_distribution(tmp_path / "c", "fog", "snow")
    other = out_of_distribution(tmp_path / "d", "fog", "hail")
    with pytest.raises(uqeval.UsageError, match=r"names of the OUT sets.*give the files of a set"):
        uqeval.merge([named, other])
    uqeval.merge([named, out_of_distribution(tmp_path / "e", "fog", "snow")])
    swapped = out_of_distribution(tmp_path / "f", "snow", "fog")
    with pytest.raises(uqeval.UsageError, match="the order of the OUT sets"):
        uqeval.merge([named, swapped])


def test_sets_that_changed_places_are_not_joined(tmp_path: Path) -> None:
    """Paths tell it where an earlier version numbered files of one name; IN and OUT, too."""
    inputs = {
        run: {
            "predictions": [{"path": f"{run}/{name}.npz"} for name in ("known", *out)],
            "sets": [{"name": name, "items": 1} for name in ("in", "fog", "fog_2")],
        }
        for run, out in (("mon", ("fog.v1", "fog.v2")), ("tue", ("fog.v2", "fog.v1")))
    }
    file = out_of_distribution(tmp_path / "a", "fog", "snow")
    index = SavedStates(file).index
    first, second = ({**index, "inputs": {**index["inputs"], **own}} for own in inputs.values())
    assert difference(first, first) is None
    says = "the set of the store fog.v1 (give IN and OUT in one order): 'fog' and 'fog_2'"
    assert difference(first, second) == says
    exchanged = []
    for run, names in (("mon", ("known", "fog")), ("tue", ("fog", "known"))):
        for name in names:
            stored = {"names": [f"{run}/{name}"]}
            save(tmp_path / run / name, {"probs": probs(1)}, stored)
        states = tmp_path / f"{run}.states.zip"
        first_set, out = (tmp_path / run / name for name in names)
        uqeval.evaluate(first_set, None, "ood", out=[out], states=states, workers=1)
        exchanged.append(states)
    with pytest.raises(uqeval.UsageError, match="differ in the set of the store known"):
        uqeval.merge(exchanged)


def test_sets_of_arrays_are_joined_in_their_order_with_a_warning(tmp_path: Path) -> None:
    files = []
    for run in "ab":
        first, *out = (
            {"probs": probs(1), "names": [f"{run}{k}"]} for k in range(3)
        )  # fmt: skip
        files.append(tmp_path / f"{run}.states.zip")
        uqeval.evaluate(first, None, "ood", out=out, states=files[-1], workers=1)
    warnings = uqeval.merge(files).warnings
    assert sum("the OUT sets out, out_2 are called by their order" in own for own in warnings) == 1
    assert not any("called by their order" in own for own in uqeval.merge(files[:1]).warnings)


def test_merges_of_merges_keep_counts(tmp_path: Path) -> None:
    """A merge leaves out the ties at cuts, which do not add up; the other counts do."""
    files = []
    for run in "abc":
        names = {"names": [f"{run}{i}" for i in range(N)]}
        save(tmp_path / run, {"probs": probs(), "labels": labels()}, names)
        files.append(tmp_path / f"{run}.states.zip")
        uqeval.evaluate(tmp_path / run, None, "sparsification", states=files[-1], workers=1)
    both = tmp_path / "both.states.zip"
    uqeval.merge(files[:2], states=both)
    assert uqeval.merge([both, files[2]]).numerics == uqeval.merge(files).numerics != {}
