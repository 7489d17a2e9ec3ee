"""Maps that are kept from run to run: their items are not read from the store again, whatever is
asked of them, and all results have the bits of a run without them."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import object_server
import pytest
import yaml
from command import refused, run_uqeval, run_well
from growing import ITEMS, MORE, arrays, change, grow, names, reused, store
from object_server import Fault
from saved_runs import told
from small_stores import labels, probs, save, save_label_folder

import uqeval
from uqeval.disk import object_access
from uqeval.errors import OutputError, UsageError

pytestmark = pytest.mark.on_disk

FAMILIES = {
    "classes": ("segmentation", "pavpu", "calibration", "failure", "sparsification"),
    "regression": ("regression", "nmerci", "sparsification"),
}


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file())


def run(
    cache: Path | str | None, given: Any, metrics: Any, truth: Any = None, **options: Any
) -> Any:
    time.sleep(0.03)  # what was written just now has no stamp
    return at_once(cache, given, metrics, truth, **options)


def at_once(
    cache: Path | str | None, given: Any, metrics: Any, truth: Any = None, **options: Any
) -> Any:
    """The report of a run over a store that was not written just now."""
    own = {} if cache is None else {"map_cache": cache}
    return uqeval.evaluate(given, truth, metrics, **{"workers": 2, **own, **options})


def same(cache: Path, given: Any, metrics: Any, truth: Any = None, **options: Any) -> Any:
    """The report of a run with kept maps, once it is that of a run without."""
    report = run(cache, given, metrics, truth, **options)
    assert told(report) == told(at_once(None, given, metrics, truth, **options))
    return report


@pytest.mark.parametrize(
    ("kind", "family"), [(kind, family) for kind, own in FAMILIES.items() for family in own]
)
def test_a_grown_set_is_read_where_it_is_new(kind: str, family: str, tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr", kind), tmp_path / "cache"
    first = run(cache, given, family)
    assert reused(first) == 0
    grow(given, kind)
    report = same(cache, given, family, workers=1)
    assert reused(report) == ITEMS
    assert report.timing["bytes_read"] * ITEMS == first.timing["bytes_read"] * (MORE - ITEMS)
    report = same(cache, given, family, memory="2MB")
    assert (reused(report), report.timing["bytes_read"]) == (MORE, 0)


def test_states_have_the_same_bits(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    grow(given)
    run(cache, given, {"pavpu": {}}, states=tmp_path / "a.zip")
    run(None, given, {"pavpu": {}}, states=tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_other_metrics_take_what_is_there(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    assert reused(same(cache, given, {"pavpu": {}})) == 0
    assert reused(same(cache, given, {"pavpu": {"window": 2, "threshold": "median"}})) == ITEMS
    assert reused(same(cache, given, {"failure": {"uncertainty": "entropy"}})) == ITEMS
    # The mean of the samples is another map.
    assert reused(same(cache, given, {"calibration": {}})) == 0
    assert reused(same(cache, given, {"calibration": {"bins": 7}, "pavpu": {}})) == ITEMS


def test_chunks_of_several_items(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr", together=3), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    grow(given)
    report = same(cache, given, {"pavpu": {}})
    assert reused(report) == 3  # the fourth lay in a chunk that has grown
    assert report.timing["bytes_read"] == probs(MORE)[3:].nbytes


def test_what_has_changed_is_read_again(tmp_path: Path) -> None:
    held, cache = {"probs": probs(ITEMS), "labels": labels(ITEMS) % 5}, tmp_path / "cache"
    given = save(tmp_path / "s.zarr", held, {"names": names(ITEMS)}, compressors=None)
    run(cache, given, {"failure": {}})
    change(given / "labels" / "c" / "2" / "0" / "0")
    assert reused(same(cache, given, {"failure": {}})) == ITEMS - 1
    assert reused(same(cache, given, {"failure": {}}, ignore_index=3)) == 0
    assert reused(same(cache, given, {"failure": {}}, ignore_index=3)) == ITEMS


def test_stores_with_items_of_one_name(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    truth = save_label_folder(tmp_path / "labels", labels(ITEMS), names(ITEMS))
    for seed in (1, 2):
        held = {"probs": probs(ITEMS, seed=seed)}
        save(tmp_path / f"{seed}.zarr", held, {"names": names(ITEMS)})
    for seed, known in ((1, 0), (2, 0), (1, ITEMS), (2, ITEMS)):
        report = same(cache, tmp_path / f"{seed}.zarr", {"pavpu": {}}, truth)
        assert reused(report) == known


def test_a_reference_is_part_of_it(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    other = save(tmp_path / "r.zarr", arrays("classes", ITEMS), {"names": names(ITEMS)})
    assert reused(same(cache, given, {"divergence": {}}, reference=other)) == 0
    (other / "probs" / "c" / "1" / "0" / "0" / "0" / "0").touch()
    assert reused(same(cache, given, {"divergence": {}}, reference=other)) == ITEMS - 1
    assert reused(same(cache, given, {"divergence": {}}, reference=other)) == ITEMS


def test_temperatures_of_samples_read_the_samples(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    asked = {"calibration": {"temperature_of": "samples"}}
    run(cache, given, asked)
    report = same(cache, given, asked)
    assert reused(report) == 0
    assert report.timing["bytes_read"] > 0


DAMAGE: dict[str, Any] = {
    "empty": lambda data: b"",
    "cut": lambda data: data[:-9],
    "longer": lambda data: data + b"x",
    "a bit": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "its header": lambda data: data[:20] + bytes([data[20] ^ 1]) + data[21:],
    "its dtype": lambda data: data.replace(b"<f4", b"<i4").replace(b"|u1", b"|i1"),
    "its checksum": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "another version": lambda data: data[:6] + b"\x02" + data[7:],
    "no array": lambda data: os.urandom(len(data)),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_damaged_maps_are_read_again(how: str, tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    whole = {path: path.read_bytes() for path in files(cache)}
    assert len(whole) == 3 * ITEMS  # label, prediction, entropy
    for path, data in list(whole.items())[::2]:
        path.write_bytes(DAMAGE[how](data))
    assert reused(same(cache, given, {"pavpu": {}})) < ITEMS
    assert {path: path.read_bytes() for path in files(cache)} == whole
    assert reused(same(cache, given, {"pavpu": {}})) == ITEMS


def test_no_byte_of_a_header_may_be_another(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr", count=1), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    path = files(cache)[0]
    whole = path.read_bytes()
    from uqeval.stores.map_cache import read_checked

    held = np.load(path)
    assert np.array_equal(read_checked(path, held.shape, held.dtype), held)  # type: ignore[arg-type]
    with path.open("r+b", buffering=0) as file:
        for at in range(128):
            for byte in (*(whole[at] ^ 1 << bit for bit in range(8)), whole[at]):
                os.pwrite(file.fileno(), bytes([byte]), at)
                is_whole = read_checked(path, held.shape, held.dtype) is not None
                assert is_whole == (byte == whole[at]), (at, byte)


#: Values that no kernel may see, of ids and of numbers.
IMPOSSIBLE = {"u": (5, 200, 254), "i": (-1,), "f": (np.nan, -np.inf, 1e300)}


@pytest.mark.parametrize(
    ("kind", "family"), [(kind, family) for kind, own in FAMILIES.items() for family in own]
)
def test_forged_maps_are_read_again(kind: str, family: str, tmp_path: Path) -> None:
    """Their checksum fits, which anyone can compute: ids of no class would be addresses."""
    from uqeval.stores.map_cache import write_checked

    given, cache = store(tmp_path / "s.zarr", kind, count=1), tmp_path / "cache"
    run(cache, given, family)
    expected = told(at_once(None, given, family))
    whole = {path: path.read_bytes() for path in files(cache)}
    for path, data in whole.items():
        held = np.load(path)
        for value in IMPOSSIBLE[held.dtype.kind]:
            forged = held.copy()
            with np.errstate(over="ignore"):  # float32 gets an infinite value
                forged.reshape(-1)[-1] = np.float64(value)
            assert write_checked(path, forged)
            report = at_once(cache, given, family)
            assert reused(report) == 0 and told(report) == expected
            assert path.read_bytes() == data


def test_a_file_in_another_s_place_is_none(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    whole = {path: path.read_bytes() for path in files(cache)}
    by_size: dict[int, list[Path]] = {}
    for path, data in whole.items():
        by_size.setdefault(len(data), []).append(path)
    for alike in by_size.values():
        for path, other in zip(alike, [*alike[1:], alike[0]], strict=True):
            path.write_bytes(whole[other])
    assert reused(same(cache, given, {"pavpu": {}})) == 0


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    for path in files(cache)[::2]:
        path.unlink()
        os.mkfifo(path)
    same(cache, given, {"pavpu": {}})
    assert reused(same(cache, given, {"pavpu": {}})) == ITEMS


def test_links_are_not_followed(tmp_path: Path) -> None:
    """Others may write to a shared cache: a link in it must not replace a file of the user."""
    given, cache, own = store(tmp_path / "s.zarr"), tmp_path / "cache", tmp_path / "own"
    own.write_text("mine")
    run(cache, given, {"pavpu": {}})
    linked = files(cache)[::2]
    for path in linked:
        path.unlink()
        path.symlink_to(own)
    same(cache, given, {"pavpu": {}})
    assert own.read_text() == "mine"
    assert not any(path.is_symlink() for path in linked)
    assert reused(same(cache, given, {"pavpu": {}})) == ITEMS


def test_paths_and_machines_tell_items_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two disks may hold files of one number and time; exp has other last bits elsewhere."""
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    monkeypatch.chdir(tmp_path)
    assert reused(same(cache, "s.zarr", {"pavpu": {}})) == ITEMS
    with monkeypatch.context() as patch:
        patch.setattr("uqeval.stores.zarr.source.file_stamp", lambda *_: "the same")
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        for folder, seed in (("a", 1), ("b", 2)):
            held = {"probs": probs(ITEMS, seed=seed), "labels": labels(ITEMS)}
            save(tmp_path / folder / "s.zarr", held, {"names": names(ITEMS)})
            monkeypatch.chdir(tmp_path / folder)
            assert reused(same(cache, "s.zarr", {"pavpu": {}})) == 0
    monkeypatch.setattr("uqeval.inputs.opened.last_digits", lambda: "another")
    assert reused(same(cache, given, {"pavpu": {}})) == 0


def test_maps_of_another_shape_are_none(tmp_path: Path) -> None:
    from uqeval.stores.map_cache import write_checked

    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    for path in files(cache):
        write_checked(path, np.zeros((3, 4), "f4"))
    assert reused(same(cache, given, {"pavpu": {}})) == 0


def test_a_claim_takes_no_memory(tmp_path: Path) -> None:
    """A header of more than the file holds is not believed."""
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})
    for path in files(cache):
        with path.open("wb") as file:
            head = {"descr": "<f8", "fortran_order": False, "shape": (1 << 30, 1 << 10)}
            np.lib.format.write_array_header_1_0(file, head)
            file.truncate(500)
    assert reused(same(cache, given, {"pavpu": {}})) == 0


def test_what_nothing_stamps_is_not_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    report = run(cache, probs(ITEMS), {"pavpu": {}}, labels(ITEMS) % 5)
    assert files(cache) == []
    assert f"{ITEMS} of {ITEMS} items are not cached: changes to them" in report.warnings[-1]


def test_a_full_disk_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    with monkeypatch.context() as patch:
        patch.setattr("uqeval.stores.map_cache._write", full)
        report = run(cache, given, {"pavpu": {}})
    assert f"{ITEMS} of {ITEMS} items are not cached: the disk" in report.warnings[-1]
    assert files(cache) == []
    assert report.results == run(None, given, {"pavpu": {}}).results


def test_disk_is_left_for_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(2**40, 2**40 - 2**29, 2**29))
    report = run(cache, given, {"pavpu": {}})
    assert "less than 1 GiB free" in report.warnings[-1]
    assert files(cache) == []


def test_files_are_as_readable_as_others(tmp_path: Path) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    before = os.umask(0o027)
    try:
        run(cache, given, {"pavpu": {}})
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in files(cache)} == {0o640}


def test_a_folder_that_cannot_be(tmp_path: Path) -> None:
    given = store(tmp_path / "s.zarr")
    (tmp_path / "file").write_text("")
    for place, why in (("file", "it is not a folder"), ("file/in", "Not a directory")):
        with pytest.raises(
            OutputError, match=f"cannot be written there: {why}. Name another folder"
        ):
            run(tmp_path / place, given, {"pavpu": {}})
    for folder in ("", "https://host/maps", 3, True):
        with pytest.raises(UsageError, match=r"map_cache=.* expected a folder of this machine"):
            uqeval.evaluate(given, None, "pavpu", map_cache=folder)
    for inside in (given, given / "maps"):
        with pytest.raises(UsageError, match=r"is an input|inside the input"):
            run(inside, given, {"pavpu": {}})
    assert not (given / "maps").exists()
    truth = save_label_folder(tmp_path / "labels", labels(ITEMS), names(ITEMS))
    with pytest.raises(UsageError, match="is an input"):
        run(truth, given, {"pavpu": {}}, truth)
    with pytest.raises(UsageError, match="map_cache has no effect for a video"):
        uqeval.evaluate(None, None, "tc", video=tmp_path, map_cache=tmp_path.parent / "c")


def test_a_read_only_folder_that_has_all_maps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, cache = store(tmp_path / "s.zarr"), tmp_path / "cache"
    run(cache, given, {"pavpu": {}})

    def fail(path: Path, **options: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "touch", fail)
    assert reused(run(cache, given, {"pavpu": {}})) == ITEMS
    with pytest.raises(OutputError, match="cannot be written there: Permission denied"):
        run(cache, given, {"pavpu": {"uncertainty": "mutual_information"}})


def test_maps_at_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are those of a folder, byte by byte; a damaged one is written again."""
    pytest.importorskip("obstore")
    for retries in ("FIRST", "LATER"):
        monkeypatch.setattr(object_access, retries, {"max_retries": 1})
    given, url = store(tmp_path / "s.zarr"), "s3://bucket/some/maps"
    with object_server.object_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        first = run(url, given, {"pavpu": {}})
        run(tmp_path / "c", given, {"pavpu": {}})
        local = {
            f"some/maps/{path.relative_to(tmp_path / 'c').as_posix()}": path.read_bytes()
            for path in files(tmp_path / "c")
        }
        assert server.objects == local and reused(first) == 0
        second = run(url, given, {"pavpu": {"window": 2}})
        assert (reused(second), second.timing["bytes_read"]) == (ITEMS, 0)
        key = next(iter(local))
        server.objects[key] = local[key][:-1] + b"?"
        assert reused(run(url, given, {"pavpu": {}})) == ITEMS - 1
        assert server.objects == local
        server.fault = lambda key, number: Fault(500) if key.startswith("PUT") else None
        server.objects.clear()
        refused(
            lambda: run(url, given, {"pavpu": {}}),
            "s3://bucket/some/maps/", "cannot be written: the server answers 500",
        )  # fmt: skip
        refused(lambda: run("s3://none/maps", given, "pavpu"), "there is no such bucket")
        inside = "s3://bucket/p/maps"
        refused(
            lambda: uqeval.evaluate("s3://bucket/p", None, "pavpu", map_cache=inside),
            "s3://bucket/p/maps is inside the input s3://bucket/p; give another map_cache",
        )


def test_the_command_says_so(tmp_path: Path) -> None:
    given = store(tmp_path / "s.zarr")
    time.sleep(0.03)
    for family, known in (("pavpu", False), ("pavpu", True), ("failure", True)):
        done = run_well(family, given, "--map-cache", tmp_path / "cache")
        text = "4 of 4 items unchanged; reusing their cached results"
        assert (text in " ".join(done.stderr.split())) == known
    refused(run_uqeval("pavpu", given, "--map-cache", given), "--map-cache", "is an input")
    out = tmp_path / "out"
    other = run_uqeval("pavpu", given, "--map-cache", out, "-o", out)
    refused(other, "another name")
    assert not out.exists()
    for _ in range(2):
        done = run_well("divergence", given, given, "--map-cache", tmp_path / "cache")
    assert text in " ".join(done.stderr.split())


def test_a_file_says_where(tmp_path: Path) -> None:
    store(tmp_path / "s.zarr")
    said = {
        "stores": {"city": {"predictions": "s.zarr", "map_cache": "cache"}},
        "evaluate": {"city": {"pavpu": {}}},
    }
    (tmp_path / "uqeval.yaml").write_text(yaml.safe_dump(said))
    time.sleep(0.03)
    for out, known in (("one", 0), ("two", ITEMS)):
        run_well("run", "-o", tmp_path / out, "-q", cwd=tmp_path)
        report = json.loads((tmp_path / out / "city.json").read_text())
        assert report["timing"]["items_reused"] == known
    assert files(tmp_path / "cache")
    done = run_well("pavpu", cwd=tmp_path)
    assert "4 of 4 items unchanged" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("confidence", 1.0, 2.5), ("mean_probs", 0.0, -0.1), ("label_probability", 1.0, 1e9),
        ("brier", 2.0, 3.0), ("entropy", -3.0, np.nan), ("reference/mean_probs", 1.0, 9.0),
    ],
)  # fmt: skip
def test_the_values_of_a_map(name: str, good: float, bad: float) -> None:
    from uqeval.maps.checks import has_valid_values

    assert has_valid_values(name, np.full((2, 3), good, "f4"), 4)
    assert not has_valid_values(name, np.array([good, bad], "f4"), 4)
    assert has_valid_values("label", np.array([0, 3, 255], "u1"), 4)
    assert not has_valid_values("label", np.array([0, 4], "u1"), 4)
    assert not has_valid_values("prediction", np.array([0, 255], "u1"), 4)
    assert not has_valid_values("annotations:3", np.array([4], "u1"), 4)
    assert has_valid_values("region:depth", np.array([np.nan]), 4)
    for signed in ("mean", "target", "some_map"):
        assert has_valid_values(signed, np.array([-1e30]), 1, "regression")
        assert not has_valid_values(signed, np.array([1e300]), 1, "regression")
    for positive in ("error", "sigma", "sigma:some_map", "error:rank", "target_counts"):
        assert not has_valid_values(positive, np.array([-1.0]), 1, "regression")
    assert has_valid_values("lambda:some_map", np.array([np.inf], "f4"), 1, "regression")
    assert not has_valid_values("lambda", np.array([np.nan], "f4"), 1, "regression")
