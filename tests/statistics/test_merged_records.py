"""How the records of the inputs, and facts about a video, are joined for several runs."""

from __future__ import annotations

from typing import Any

import pytest
from small_stores import labels, probs, save

import uqeval
from uqeval.inputs import InputOptions, open_inputs
from uqeval.statistics.merged_records import inputs_of_runs, merged_facts
from uqeval.usecases.reduce import reduce


def store(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "fingerprint": f"of {path}"} | more


def test_merged_runs_record_all_sets_masks_and_regions(tmp_path: Any) -> None:
    def merged(name: str, **options: str) -> dict[str, Any]:
        files = []
        for run in "ab":
            own = {key: path.format(tmp_path / run) for key, path in options.items()}
            files.append(tmp_path / f"{name}{run}.states.zip")
            uqeval.evaluate(
                tmp_path / run / "in", None, ["ood"], workers=1, states=files[-1], **own
            )
        return uqeval.merge(files).inputs

    for run, count in (("a", 2), ("b", 3)):
        for name in ("in", "fog"):
            names = {"names": [f"{run}{name}{i}" for i in range(count)]}
            save(tmp_path / run / name, {"probs": probs(count)}, names)
        mask = (labels(count, seed=count) % 2).astype("u1")
        save(
            tmp_path / run / "mask",
            {"labels": mask},
            {"names": [f"{run}in{i}" for i in range(count)]},
        )
    sets = merged("sets", out="{}/fog")
    assert sets["sets"] == [{"name": "in", "items": 5}, {"name": "fog", "items": 5}]
    assert len(sets["predictions"]) == 4 and sets["items"] == 10 and sets["merged_runs"] == 2
    masked = merged("masked", ood_mask="{}/mask", region="map:{}/mask:1")
    for own in (masked["ood_mask"], *masked["regions"]):
        assert own["path"] == f"{tmp_path / 'a' / 'mask'} + {tmp_path / 'b' / 'mask'}"
        assert len(own["fingerprint"]) == 64
    assert [own["region"] for own in masked["regions"]] == ["map:mask"]


def test_stores_are_joined_by_what_they_are_for() -> None:
    runs = [
        {
            "flow": [store(f"{run}/f", direction="flow"), store("w", direction="flow_forward")],
            "frames": store(f"{run}/v", frames=count), "ood_mask": mask, "labels": None,
            "options": {"video": f"{run}/v", "resize": "none", "names": names},
        }
        for run, count, mask, names in (("a", 5, 3, None), ("b", 7, 4, "n.txt"))
    ]  # fmt: skip
    merged = inputs_of_runs(runs, "files")
    assert [own["path"] for own in merged["flow"]] == ["a/f + b/f", "w"]
    assert [own["direction"] for own in merged["flow"]] == ["flow", "flow_forward"]
    assert merged["frames"]["path"] == "a/v + b/v" and merged["frames"]["frames"] == 12
    assert merged["ood_mask"]["path"] == "3 + 4" and merged["labels"] is None
    assert merged["options"] == {"video": "a/v + b/v", "resize": "none", "names": None}
    assert inputs_of_runs([merged, runs[0]], "files")["merged_runs"] == 3
    with pytest.raises(uqeval.StoreError, match="the record new, which uqeval cannot join"):
        inputs_of_runs([{"new": 1}, {}], "files")


def test_merges_of_merges_have_the_record_of_one_merge() -> None:
    """The fingerprints of labels are compared with those of reports that were merged at once."""
    runs = [
        {
            "labels": store(f"{run}/l", arrays={}), "frames": store(f"{run}/v", frames=count),
            "regions": [store(f"{run}/m", region="map:m")], "ood_mask": store(f"{run}/o"),
        }
        for run, count in (("a", 5), ("b", 7), ("c", 9), ("a", 5))
    ]  # fmt: skip

    def merged(*records: Any) -> Any:
        return inputs_of_runs(records, "files")

    at_once = merged(*runs)
    assert merged(merged(*runs[:2]), *runs[2:]) == at_once
    assert merged(runs[0], merged(runs[1], merged(*runs[2:]))) == at_once
    assert [own["path"] for own in at_once["labels"]["stores"]] == ["a/l", "b/l", "c/l"]
    assert at_once["frames"]["frames"] == 21
    # Earlier versions recorded no list of the stores.
    earlier = merged(*runs[:2])
    digest = earlier["labels"]["fingerprint"]
    del earlier["labels"]["stores"]
    assert [own["fingerprint"] for own in merged(earlier, runs[2])["labels"]["stores"]] == [
        digest, "of c/l",
    ]  # fmt: skip


def test_runs_with_the_same_sequence_add_up_its_frames() -> None:
    def facts(frames: int, step: int) -> dict[str, Any]:
        row = {
            "sequence": "s", "frames": frames, "pairs": frames - 1, "gaps": 1, "step": step,
        }  # fmt: skip
        video = {
            "before": [], "sequences": [], "first": [], "rows": [row], "frames": frames,
            "unlabelled": 2, "models": ["m"],
        }  # fmt: skip
        return {"where": "v", "names": [], "sizes": [], "video": video}

    merged = merged_facts([facts(5, 1), facts(7, 1)], of_shards=False)["video"]
    assert merged["frames"] == 12 and merged["unlabelled"] == 4
    assert merged["rows"] == [{"sequence": "s", "frames": 12, "pairs": 10, "gaps": 2, "step": 1}]
    (row,) = merged_facts([facts(5, 1), facts(7, 2)], of_shards=False)["video"]["rows"]
    assert row["step"] is None and row["step_reason"] == "differs between the runs"
    shards = merged_facts([facts(5, 1), facts(5, 1)], of_shards=True)["video"]
    assert (shards["frames"], shards["unlabelled"]) == (5, 2)
    assert (shards["rows"][0]["frames"], shards["rows"][0]["gaps"]) == (5, 1)


def test_saved_flow_of_several_runs() -> None:
    def facts(path: str) -> dict[str, Any]:
        flows = {"file": {"id": "file", "flow": path}, "dis": {"id": "dis", "scale": 0.5}}
        video = {"before": [], "sequences": [], "first": [], "rows": [], "flow_record": flows}
        return {"where": "v", "names": [], "sizes": [], "video": video}

    merged = merged_facts([facts("a.npy"), facts("b.npy")], of_shards=False)["video"]
    assert merged["flow_record"] == {
        "file": {"id": "file", "flow": "a.npy + b.npy"}, "dis": {"id": "dis", "scale": 0.5},
    }  # fmt: skip


def test_maps_of_other_numbers_of_samples_are_not_merged(tmp_path: Any) -> None:
    files = []
    for samples in (2, 4):
        values = probs()[:, :samples]
        save(tmp_path / f"p{samples}", {"probs": values, "labels": labels()},
             {"names": [f"{samples}{i}" for i in range(3)]})  # fmt: skip
        reduce(
            open_inputs(tmp_path / f"p{samples}", None, InputOptions()), tmp_path / f"m{samples}"
        )
        files.append(tmp_path / f"{samples}.states.zip")
        uqeval.evaluate(tmp_path / f"m{samples}", None, "segmentation", states=files[-1], workers=1)
    with pytest.raises(uqeval.UsageError, match="differ in samples of maps: 2 and 4"):
        uqeval.merge(files)
