"""A set that grows: items that an earlier run at the same place has counted are not read again, and
the report and the states have the bits of a run that reads all."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import cv2
import forged
import numpy as np
import pytest
import zarr
from command import run_well
from forged import reseal
from growing import ITEMS, MORE, arrays, change, grow, names, reused, store
from PIL import Image
from saved_runs import told
from small_stores import labels, probs, save, save_label_folder
from small_videos import numbered, save_flows, save_folder, save_store, video

import uqeval
import uqeval.maps
from uqeval.inputs import InputOptions, open_inputs
from uqeval.inputs.opened import stamps_of
from uqeval.stores.states import blocks
from uqeval.stores.states.writer import partial_path
from uqeval.stores.watch import file_stamp, file_state
from uqeval.tallies.segmentation import ClassCounts
from uqeval.tallies.temporal import TrackCounts

pytestmark = pytest.mark.on_disk

#: What needs nothing that is fitted on the whole set.
SKIPS: dict[str, tuple[str, dict[str, Any]]] = {
    "segmentation": ("classes", {}),
    "pavpu": ("classes", {
        "threshold": "0.5", "curve_range": "0:1.6", "deciles": False, "window": [4, 8],
    }),
    "calibration": ("classes", {"adaptive": False, "temperature": False}),
    "sparsification": ("classes", {"scope": "item"}),
    "regression": ("regression", {}),
}  # fmt: skip
#: What is fitted on the whole set: read again, with the same bits.
FITTED: dict[str, tuple[str, dict[str, Any]]] = {
    "pavpu": ("classes", {}),
    "calibration": ("classes", {}),
    "failure": ("classes", {}),
    "nmerci": ("regression", {}),
}


def run(states: Path, given: Any, metrics: Any, truth: Any = None, **options: Any) -> Any:
    time.sleep(0.03)  # what was written just now has no stamp
    return at_once(states, given, metrics, truth, **options)


def at_once(states: Path, given: Any, metrics: Any, truth: Any = None, **options: Any) -> Any:
    """The report of a run over a store that was not written just now."""
    return uqeval.evaluate(given, truth, metrics, states=states, workers=2, **options)


def again(states: Path, given: Any, metrics: Any, truth: Any = None, **options: Any) -> Any:
    """The report of a run where another has been, once it has the bits of one that is all alone."""
    report = run(states, given, metrics, truth, **options)
    fresh = states.with_name("fresh.states.zip")
    fresh.unlink(missing_ok=True)
    alone = at_once(fresh, given, metrics, truth, **options)
    assert alone.timing["items_reused"] == 0
    assert told(report) == told(alone)
    assert states.read_bytes() == fresh.read_bytes()
    return report


PLAIN = {"segmentation": {}}


@pytest.fixture
def large_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each item is counted and saved by itself, as large ones are."""
    monkeypatch.setattr(blocks, "_MOST_ITEMS", 1)


@contextmanager
def interrupted_at(monkeypatch: pytest.MonkeyPatch, item: int) -> Iterator[list[int]]:
    """Ctrl-C when this item is about to be read; the items that were asked for until then."""
    from uqeval.maps.sources import Source

    read, asked = Source.read, []

    def interrupted(self: Any, batch: range, *args: Any) -> Any:
        asked.append(batch.start)
        if batch.start == item:
            raise KeyboardInterrupt
        return read(self, batch, *args)

    with monkeypatch.context() as patch:
        patch.setattr(Source, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield asked


@pytest.mark.parametrize("family", SKIPS)
@pytest.mark.parametrize("form", [2, 3])
def test_only_new_items_are_read(family: str, form: int, tmp_path: Path) -> None:
    kind, options = SKIPS[family]
    given = store(tmp_path / "s.zarr", kind)
    if form == 2:
        shutil.rmtree(given)
        group = zarr.create_group(str(given), attributes={"names": names(ITEMS)}, zarr_format=2)
        for name, values in arrays(kind, ITEMS).items():
            chunks = (1, *values.shape[1:])
            group.create_array(name, shape=values.shape, dtype=values.dtype, chunks=chunks)
            group[name][...] = values  # type: ignore[index]
    states = tmp_path / "r.states.zip"
    first = run(states, given, {family: options})
    assert reused(first) == 0
    grow(given, kind)
    report = again(states, given, {family: options})
    assert reused(report) == ITEMS
    assert report.timing["bytes_read"] * ITEMS == first.timing["bytes_read"] * (MORE - ITEMS)

    report = again(states, given, {family: options})
    assert (reused(report), report.timing["bytes_read"]) == (MORE, 0)


@pytest.mark.parametrize("family", FITTED)
def test_what_is_fitted_on_the_set_is_read_again(family: str, tmp_path: Path) -> None:
    kind, options = FITTED[family]
    given = store(tmp_path / "s.zarr", kind)
    first = run(tmp_path / "r.states.zip", given, {family: options})
    grow(given, kind)
    report = again(tmp_path / "r.states.zip", given, {family: options})
    assert reused(report) == 0
    assert report.timing["bytes_read"] > first.timing["bytes_read"]

    report = again(tmp_path / "r.states.zip", given, {family: options})
    assert (reused(report), report.timing["bytes_read"]) == (MORE, 0)


def folders_of_items(path: Path) -> zarr.Group:
    root = zarr.create_group(str(path), attributes={"names": names(ITEMS)})
    for name, p, label in zip(names(ITEMS), probs(ITEMS), labels(ITEMS), strict=True):
        own = root.create_group(f"items/{name}")
        for kind, values in (("probs", p), ("labels", label)):
            own.create_array(kind, shape=values.shape, dtype=values.dtype)[...] = values
    return root


@pytest.mark.parametrize("how", ["fewer", "another order"])
def test_totals_are_of_the_very_same_items(how: str, tmp_path: Path) -> None:
    given, states = tmp_path / "s.zarr", tmp_path / "r.states.zip"
    root = folders_of_items(given)
    run(states, given, {"failure": {}})
    if how == "fewer":
        shutil.rmtree(given / "items" / "i3")
    root.attrs["names"] = names(3) if how == "fewer" else ["i2", "i0", "i3", "i1"]
    assert reused(again(states, given, {"failure": {}})) == 0


@pytest.mark.parametrize("how", ["flipped", "nonsense", "gone"])
def test_damaged_totals_are_counted_anew(how: str, tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr", "regression"), tmp_path / "r.states.zip"
    run(states, given, {"nmerci": {}})
    with zipfile.ZipFile(states) as old:
        entries = {name: old.read(name) for name in old.namelist()}
    totals = [name for name in entries if name.startswith("totals/")]
    assert totals
    if how == "flipped":
        data = states.read_bytes()
        at = data.index(entries[totals[0]]) + 3
        states.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    else:
        with zipfile.ZipFile(states, "w") as new:
            for name, held in entries.items():
                if name != totals[0] or how == "nonsense":
                    new.writestr(name, b"nonsense" if name == totals[0] else held)
        reseal(states)
    assert reused(again(states, given, {"nmerci": {}})) == 0
    assert reused(again(states, given, {"nmerci": {}})) == ITEMS


def test_a_killed_run_knows_the_passes_that_were_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the second pass of ranks, whose first is not saved by item."""
    from uqeval.tallies.ranks import Ranks

    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    update, counted = Ranks.update, []

    def interrupted(self: Any, *args: Any) -> None:
        counted.append(bool(self.bins))
        if self.bins:
            raise KeyboardInterrupt
        update(self, *args)

    options: Any = {"pavpu": {"threshold": "median"}}
    with monkeypatch.context() as patch:
        patch.setattr(Ranks, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(0.03)
            uqeval.evaluate(given, None, options, states=states, workers=1)
    assert counted.count(False) >= ITEMS
    with monkeypatch.context() as patch:
        counted.clear()
        patch.setattr(
            Ranks,
            "update",
            lambda self, *args: (counted.append(bool(self.bins)), update(self, *args)),
        )
        report = run(states, given, options, resume=True)
    assert set(counted) == {True}
    fresh = tmp_path / "fresh.states.zip"
    assert told(run(fresh, given, options)) == told(report)
    assert states.read_bytes() == fresh.read_bytes()


def test_a_changed_chunk_is_read_again(tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    change(given / "labels" / "c" / "2" / "0" / "0")
    assert reused(again(states, given, PLAIN)) == ITEMS - 1
    (given / "probs" / "c" / "1" / "0" / "0" / "0" / "0").touch()
    assert reused(again(states, given, PLAIN)) == ITEMS - 1
    assert reused(again(states, given, PLAIN)) == ITEMS


def test_a_changed_label_is_read_again(tmp_path: Path) -> None:
    given = save(tmp_path / "s.zarr", {"probs": probs(ITEMS)}, {"names": names(ITEMS)})
    folder = save_label_folder(tmp_path / "labels", labels(ITEMS), names(ITEMS))
    states = tmp_path / "r.states.zip"
    run(states, given, PLAIN, folder)
    (folder / "i0.png").touch()  # its content is what counts
    assert reused(again(states, given, PLAIN, folder)) == ITEMS
    plane = np.array(Image.open(folder / "i0.png"))
    plane[5, 7] = (plane[5, 7] + 1) % 5
    Image.fromarray(plane).save(folder / "i0.png")
    assert reused(again(states, given, PLAIN, folder)) == ITEMS - 1


def test_a_block_of_saved_states_is_unpacked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each item in it: a second run on 5000 items took ten times as long."""
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    unpacked: list[int] = []
    states_of = blocks.PackedItems.states

    def counted(self: Any, most: int) -> list[bytes]:
        unpacked.append(self.items)
        return states_of(self, most)

    with monkeypatch.context() as patch:
        patch.setattr(blocks.PackedItems, "states", counted)
        assert reused(run(states, given, PLAIN)) == ITEMS
    assert unpacked == [ITEMS, ITEMS]  # for the totals, and for the scores of items


def test_items_of_a_chunk_are_read_together(tmp_path: Path) -> None:
    given = store(tmp_path / "s.zarr", together=3)
    states = tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    grow(given)
    report = again(states, given, PLAIN)
    assert reused(report) == 3  # the fourth lay in a chunk that has grown
    assert report.timing["bytes_read"] == probs(MORE)[3:].nbytes


def test_a_changed_chunk_of_a_shard_is_read_again(tmp_path: Path) -> None:
    """A shard's index has the same checksum, whatever its raw chunks hold."""
    height, width = labels().shape[1:]
    given = save(
        tmp_path / "s.zarr", {"labels": labels(ITEMS), "predictions": labels(ITEMS, seed=1) % 5},
        {"names": names(ITEMS), "class_names": list("abcde")},
        shards=(2, height, width), compressors=None,
    )  # fmt: skip
    states = tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    assert reused(again(states, given, PLAIN)) == ITEMS
    shard = given / "predictions" / "c" / "1" / "0" / "0"
    time.sleep(0.03)
    data = bytearray(shard.read_bytes())
    data[0] = (data[0] + 1) % 5
    shard.write_bytes(data)
    assert reused(again(states, given, PLAIN)) == 2


def test_items_in_another_order_and_fewer(tmp_path: Path) -> None:
    given = tmp_path / "s.zarr"
    root = folders_of_items(given)
    states = tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    root.attrs["names"] = ["i2", "i0", "i3", "i1"]
    assert reused(again(states, given, PLAIN)) == ITEMS
    shutil.rmtree(given / "items" / "i3")
    root.attrs["names"] = ["i2", "i0", "i1"]
    assert reused(again(states, given, PLAIN)) == 3
    # An item of another's name is another item.
    (given / "items" / "i0").rename(given / "items" / "x")
    (given / "items" / "i1").rename(given / "items" / "i0")
    (given / "items" / "x").rename(given / "items" / "i1")
    assert reused(again(states, given, PLAIN)) == 1


def test_names_that_change_places(tmp_path: Path) -> None:
    """Chunks may have the same size and time: that they are two files has to be told."""
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    zarr.open_group(str(given), mode="r+").attrs["names"] = ["i1", "i0", "i2", "i3"]
    assert reused(again(states, given, PLAIN)) == 2


@pytest.mark.parametrize(
    "options",
    [{"ignore_index": 3}, {"missing_chunks": "fill"}, {"sum_tolerance": 0.1}],
    ids=lambda own: next(iter(own)),
)
def test_other_options_are_other_items(options: dict[str, Any], tmp_path: Path) -> None:
    states = tmp_path / "r.states.zip"
    known = {"probs": probs(ITEMS), "labels": labels(ITEMS) % 5}
    given = save(tmp_path / "s.zarr", known, {"names": names(ITEMS)})
    run(states, given, PLAIN)
    assert reused(again(states, given, PLAIN, **options)) == 0
    assert reused(again(states, given, PLAIN, **options)) == ITEMS


def test_other_settings_are_other_tallies(tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    settings = {"threshold": "0.5", "curve_range": "0:1.6", "deciles": False}
    run(states, given, {"pavpu": settings | {"window": [4, 8]}})
    assert reused(again(states, given, {"pavpu": settings | {"window": 8}})) == ITEMS
    assert reused(again(states, given, {"pavpu": settings | {"window": 4}})) == 0
    assert reused(again(states, given, PLAIN)) == ITEMS


def test_what_the_metadata_say_is_part_of_an_item(tmp_path: Path) -> None:
    given, states = tmp_path / "s.zarr", tmp_path / "r.states.zip"
    stored = {"probs": np.round(probs(ITEMS) * 200).astype("u1"), "labels": labels(ITEMS)}
    save(given, stored, {"names": names(ITEMS)})
    group = zarr.open_group(str(given), mode="r+")
    group["probs"].attrs["scale"] = 1 / 200
    run(states, given, PLAIN, sum_tolerance=0.9)
    group["probs"].attrs["scale"] = 1 / 201
    assert reused(again(states, given, PLAIN, sum_tolerance=0.9)) == 0

    numbers = store(tmp_path / "numbers.zarr", "regression")
    run(states, numbers, {"regression": {}})
    (numbers / "std").rename(numbers / "variance")
    assert reused(again(states, numbers, {"regression": {}})) == 0


def test_states_of_another_version_of_uqeval_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    monkeypatch.setattr(uqeval, "__version__", "9.9.9")
    assert reused(again(states, given, PLAIN)) == ITEMS


@pytest.mark.parametrize("raised", ["a tally", "another tally", "the maps"])
def test_another_version_of_what_counts_reads_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: str
) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    if raised == "the maps":
        monkeypatch.setattr(uqeval.maps, "VERSION", uqeval.maps.VERSION + 1)
    else:
        tally = ClassCounts if raised == "a tally" else TrackCounts
        monkeypatch.setattr(tally, "version", property(lambda _: 1000))
    assert reused(again(states, given, PLAIN)) == (ITEMS if raised == "another tally" else 0)


def test_a_divergence_is_of_both(tmp_path: Path) -> None:
    given, reference = store(tmp_path / "s.zarr"), store(tmp_path / "reference.zarr")
    states = tmp_path / "r.states.zip"
    options: dict[str, Any] = {"reference": reference}
    run(states, given, "divergence", **options)
    grow(given)
    grow(reference)
    assert reused(again(states, given, "divergence", **options)) == ITEMS
    (reference / "probs" / "c" / "2" / "0" / "0" / "0" / "0").touch()
    assert reused(again(states, given, "divergence", **options)) == MORE - 1


def test_the_command_says_so(tmp_path: Path) -> None:
    given = store(tmp_path / "s.zarr")
    pavpu = ("--threshold", "0.5", "--curve-range", "0:1.6", "--no-deciles")
    for metric, options in (("pavpu", pavpu), ("calibration", ("--no-adaptive",))):
        command = (metric, given, *options, "-o", tmp_path / "r.json")
        command += ("--no-temperature",) if metric == "calibration" else ()
        assert "unchanged" not in run_well(*command).stderr
        assert "4 of 4 items unchanged" in " ".join(run_well(*command).stderr.split())
        assert run_well(*command, "-q").stderr == ""
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["timing"]["items_reused"] == ITEMS
    assert report["results"]["calibration"]["adaptive_ece"] is None
    assert "--no-adaptive" in report["results"]["calibration"]["adaptive_ece_reason"]


def _damaged(data: bytes) -> dict[str, bytes]:
    end = data.rindex(b"PK\x01\x02")
    first = data.index(b"0/2") + 10
    return {
        "empty": b"",
        "cut": data[: len(data) // 2],
        "no index": data.replace(b"index.json.z", b"stump.json.z"),
        "one state": data[:first] + bytes([data[first] ^ 1]) + data[first + 1 :],
        "directory": data[:end] + b"PK\x09\x02" + data[end + 4 :],
    }


@pytest.mark.usefixtures("large_items")
@pytest.mark.parametrize("how", ["empty", "cut", "no index", "one state", "directory"])
def test_damaged_states_are_counted_anew(how: str, tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    states.write_bytes(_damaged(states.read_bytes())[how])
    assert reused(again(states, given, PLAIN)) == 0
    assert reused(again(states, given, PLAIN)) == ITEMS


@pytest.mark.parametrize("name", ["items", "stamps"])
def test_an_index_of_other_kinds_is_that_of_nothing(name: str, tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    entries = forged.entries_of(states)
    index = json.loads(entries["index.json"])
    entries["index.json"] = json.dumps(index | {name: [{}, [1], *index[name][2:]]}).encode()
    forged.write_entries(states, entries)
    assert reused(again(states, given, PLAIN)) == 0


@pytest.mark.usefixtures("large_items")
def test_states_of_other_tallies_under_a_tally_s_name(tmp_path: Path) -> None:
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    run(states, given, PLAIN)
    with zipfile.ZipFile(states) as old:
        entries = [(info, old.read(info)) for info in old.infolist()]
    with zipfile.ZipFile(states, "w") as new:
        for info, data in entries:
            new.writestr(info, b"nonsense" if info.filename == "0/1" else data)
    reseal(states)
    assert reused(again(states, given, PLAIN)) == ITEMS - 1


def test_parts_of_a_grown_set(tmp_path: Path) -> None:
    given = store(tmp_path / "s.zarr")
    places = [tmp_path / f"{k}.states.zip" for k in (1, 2)]
    for k, place in enumerate(places, 1):
        run(place, given, PLAIN, part=f"{k}/2")
    grow(given)
    # 2 and 2 items; then 3 and 4.
    assert reused(again(places[0], given, PLAIN, part="1/2")) == 2
    assert reused(again(places[1], given, PLAIN, part="2/2")) == 1
    whole = tmp_path / "whole.states.zip"
    report = run(whole, given, PLAIN)
    merged = tmp_path / "merged.states.zip"
    assert uqeval.merge(places, states=merged).results == report.results
    assert reused(again(merged, given, PLAIN)) == MORE


@pytest.mark.usefixtures("large_items")
@pytest.mark.parametrize("before", [False, True])
def test_a_killed_run_goes_on_from_both(
    before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the middle of the new items; the old ones are in the states that are done."""
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    if before:
        run(states, given, PLAIN)
    grow(given)
    with interrupted_at(monkeypatch, 5) as asked:
        time.sleep(0.03)
        uqeval.evaluate(given, None, PLAIN, states=states, workers=1)
    assert sorted({*asked} - {6}) == ([4, 5] if before else [0, 1, 2, 3, 4, 5])
    assert partial_path(states).exists()
    report = run(states, given, PLAIN, resume=True)
    assert reused(report) == 5
    fresh = tmp_path / "fresh.states.zip"
    assert told(run(fresh, given, PLAIN)) == told(report)
    assert states.read_bytes() == fresh.read_bytes()


@pytest.mark.usefixtures("large_items")
def test_what_was_changed_since_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without checksums the fingerprint of a store does not tell of it."""
    given, states = store(tmp_path / "s.zarr"), tmp_path / "r.states.zip"
    with interrupted_at(monkeypatch, 2):
        run(states, given, PLAIN)
    change(given / "probs" / "c" / "0" / "0" / "0" / "0" / "0")
    with pytest.raises(uqeval.UsageError, match="is of another run"):
        run(states, given, PLAIN, resume=True)


def test_arrays_in_one_file_are_read_again_once_it_is_another(tmp_path: Path) -> None:
    states = tmp_path / "r.states.zip"
    for form in ("npy", "npz", "zip"):
        given: Any = tmp_path / f"s.{form}"
        truth: Any = tmp_path / "labels.npy"

        def write(count: int, given: Path = given, truth: Path = truth) -> None:
            np.save(truth, labels(MORE)[:count])
            if given.suffix == ".npy":
                np.save(given, probs(MORE)[:count])
            elif given.suffix == ".npz":
                np.savez(given, probs=probs(MORE)[:count])
            else:
                shutil.rmtree(given.with_suffix(""), ignore_errors=True)
                folder = store(given.with_suffix(""), count=count)
                given.unlink(missing_ok=True)
                shutil.make_archive(str(folder), "zip", folder)

        write(ITEMS)
        run(states, given, PLAIN, truth)
        time.sleep(0.03)
        on_disk = file_stamp(truth) is not None
        assert reused(again(states, given, PLAIN, truth)) == (ITEMS if on_disk else 0), form
        write(MORE)
        assert reused(again(states, given, PLAIN, truth)) == 0, form
    for _ in range(2):
        assert reused(run(states, probs(ITEMS), PLAIN, labels(ITEMS))) == 0


def test_what_is_written_through_a_memory_map_is_seen(tmp_path: Path) -> None:
    """A page that was written to before sets no time when it is written to again."""
    given, truth, states = tmp_path / "p.npy", tmp_path / "l.npy", tmp_path / "r.states.zip"
    np.save(given, probs(ITEMS))
    np.save(truth, labels(ITEMS))
    mapped = np.lib.format.open_memmap(truth, mode="r+")
    mapped[0, 0, 0] = mapped[0, 0, 0]
    run(states, given, PLAIN, truth)
    mapped[:] = 0
    assert reused(again(states, given, PLAIN, truth)) == 0


def test_what_is_written_to_a_chunk_through_a_memory_map_is_seen(tmp_path: Path) -> None:
    """Of one item of a Zarr store; the others are taken over."""
    folder, states = store(tmp_path / "p.zarr"), tmp_path / "r.states.zip"
    chunk = folder / "labels/c/1/0/0"
    mapped = np.memmap(chunk, np.uint8, "r+")
    mapped[0] = mapped[0]  # the page is changed before the run, and the times are set
    run(states, folder, PLAIN)
    on_disk = file_stamp(chunk) is not None
    mapped[:] = 0
    assert reused(again(states, folder, PLAIN)) == (ITEMS - 1 if on_disk else 0)


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="Linux has files in memory there")
def test_files_in_memory_have_no_stamp() -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        time.sleep(0.03)
        assert file_stamp(file.name) is None


def test_the_kind_of_a_file_system_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file_state(tmp_path)
    monkeypatch.setattr(Path, "read_text", None)
    file_state(tmp_path)


def test_a_file_that_was_changed_just_now_has_no_stamp(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another change within the same tick of the clock would leave it the same times."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # a slow disk would take longer than the tick
    file = tmp_path / "file"
    file.write_bytes(b"1")
    assert file_stamp(file) is None
    time.sleep(0.03)
    first = file_stamp(file)
    assert first is not None and first == file_stamp(file)
    os.utime(file, ns=(0, 4 * 10**18))  # in times to come
    assert file_stamp(file) is None
    assert file_stamp(tmp_path / "none") is None
    copied = tmp_path / "copy"
    shutil.copy2(file, copied)
    assert file_stamp(copied) != first


# ---- videos


def save_video(folder: Path, count: int) -> Path:
    own = video(numbered(6), seed=3)
    return save_folder(folder, own.only(own.names[:count]), labels=True)


def frame(folder: Path, number: int, kind: str = "frames") -> Path:
    return folder / kind / f"v_{number:03}.png"


def test_only_new_pairs_of_a_video_are_read(tmp_path: Path) -> None:
    given, states = save_video(tmp_path / "v", 4), tmp_path / "r.states.zip"
    metrics: dict[str, Any] = {"tc": {"flow": ["farneback", "dis"]}}
    first = run(states, None, metrics, video=given)
    save_video(tmp_path / "v6", 6)
    for kind in ("frames", "predictions", "labels"):
        for number in (4, 5):
            shutil.copy2(frame(tmp_path / "v6", number, kind), frame(given, number, kind))
    report = again(states, None, metrics, video=given)
    assert reused(report) == 3
    # Of the pair that joins the old and the new both frames are read.
    assert report.timing["bytes_read"] * 3 == first.timing["bytes_read"] * 2
    assert reused(again(states, None, metrics, video=given)) == 5

    Image.open(frame(given, 2)).rotate(180).save(frame(given, 2))
    assert reused(again(states, None, metrics, video=given)) == 3
    Image.open(frame(given, 5, "labels")).rotate(180).save(frame(given, 5, "labels"))
    assert reused(again(states, None, metrics, video=given)) == 4
    frame(given, 0).unlink()
    frame(given, 0, "predictions").unlink()
    frame(given, 0, "labels").unlink()
    assert reused(again(states, None, metrics, video=given)) == 3  # 1 begins a run now


def test_tracks_are_followed_anew(tmp_path: Path) -> None:
    given, states = save_video(tmp_path / "v", 4), tmp_path / "r.states.zip"
    run(states, None, {"tc": {"tracks": True}}, video=given)
    assert reused(again(states, None, {"tc": {"tracks": True}}, video=given)) == 3
    frame(given, 0, "predictions").touch()
    Image.open(frame(given, 3)).rotate(180).save(frame(given, 3))
    assert reused(again(states, None, {"tc": {"tracks": True}}, video=given)) == 0


def test_flow_of_another_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, states = save_video(tmp_path / "v", 4), tmp_path / "r.states.zip"
    run(states, None, {"tc": {}}, video=given)
    monkeypatch.setattr(cv2, "__version__", "0.0.0")
    assert reused(again(states, None, {"tc": {}}, video=given)) == 0


@pytest.mark.parametrize("how", ["flo", "zarr"])
def test_saved_flow_is_part_of_a_pair(how: str, tmp_path: Path) -> None:
    own = video(numbered(5), seed=3)
    given, states = save_folder(tmp_path / "v", own), tmp_path / "r.states.zip"
    rng = np.random.default_rng(0)
    size = own.frames[own.names[0]].shape[:2]
    flows = {name: rng.normal(0, 2, (*size, 2)).astype("f4") for name in own.names[1:]}
    path = tmp_path / f"flow.{how}"
    if how == "flo":
        save_flows(path, flows)
    else:
        save_store(path, flow=np.stack(list(flows.values())))
    options: dict[str, Any] = {"video": given, "flow_path": path}
    whole = run(states, None, {"tc": {"flow": "file"}}, **options)
    assert reused(again(states, None, {"tc": {"flow": "file"}}, **options)) == 4
    one = path / "v_002.flo" if how == "flo" else path / "flow" / "c" / "1" / "0" / "0" / "0"
    time.sleep(0.03)
    one.touch()
    assert reused(again(states, None, {"tc": {"flow": "file"}}, **options)) == 3
    # A part has the flow of its own pairs.
    part = run(tmp_path / "p.states.zip", None, {"tc": {"flow": "file"}}, part="2/2", **options)
    assert part.items == whole.items[2:]


def test_a_video_in_one_store(tmp_path: Path) -> None:
    own = video(numbered(5), seed=3)
    held = {kind: own.stack(kind) for kind in ("frames", "predictions", "labels")}
    given = save_store(tmp_path / "v.zarr", own.names, **held)
    states = tmp_path / "r.states.zip"
    run(states, None, {"tc": {}}, video=given)
    (given / "frames" / "c" / "4" / "0" / "0" / "0").touch()
    assert reused(again(states, None, {"tc": {}}, video=given)) == 3


# ---- what an item is read from


def _stamps(*given: Any, **options: Any) -> list[str | None]:
    time.sleep(0.03)
    return stamps_of(open_inputs(*given, InputOptions(**options)))


@pytest.mark.parametrize("write", [
    lambda folder: (store(folder / "s.zarr"), None),
    lambda folder: (store(folder / "s.zarr", "regression"), None),
    lambda folder: ([store(folder / "a.zarr"), store(folder / "b.zarr")], None),
])  # fmt: skip
def test_every_file_of_an_item_is_in_its_stamp(
    write: Callable[[Path], tuple[Any, Any]], tmp_path: Path
) -> None:
    given, truth = write(tmp_path)
    stamps = _stamps(given, truth)
    assert None not in stamps and len(set(stamps)) == ITEMS
    for path in sorted(tmp_path.rglob("c/*/**/0")):
        if path.is_file() and "b.zarr/labels" not in str(path):
            parts = path.relative_to(tmp_path).parts
            item = int(parts[parts.index("c") + 1])
            path.touch()
            after = _stamps(given, truth)
            assert [i for i in range(ITEMS) if after[i] != stamps[i]] == [item], path
            stamps = after
