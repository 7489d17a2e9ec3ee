"""Stores at a web server, which cannot list its objects: all arrays that a run reads are found by
their names."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import zarr
from command import refused, run_well
from small_stores import NAMES, C, H, N, T, W, labels, probs, save

import uqeval
from uqeval.errors import StoreError
from uqeval.inputs import InputOptions
from uqeval.stores.contents import Opening
from uqeval.stores.map_names import READ_BY_NAME
from uqeval.stores.store import contents_of
from uqeval.stores.zarr.store import ZarrStore
from uqeval.usecases.gallery.opening import open_gallery
from uqeval.usecases.inspect import inspect

pytest.importorskip("obstore")

_CLASSES = {"uqeval": {"classes": C, "samples": T}, "names": NAMES}


class _Files(SimpleHTTPRequestHandler):
    """Files of a folder; it counts the requests, and fails for some."""

    requested: list[str]
    failing: set[str]

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer with a file."""
        self.requested.append(self.path)
        if self.path in self.failing:
            self.send_error(403)
        else:
            super().do_GET()


class _Threads(ThreadingHTTPServer):
    #: Connections that wait. With the default of 5, some of many at once begin again after 1 s.
    request_queue_size = 128


class Server:
    """A web server of the files of a folder."""

    def __init__(self, folder: Path) -> None:
        self.requested: list[str] = []
        self.failing: set[str] = set()
        own = {"requested": self.requested, "failing": self.failing}
        handler = partial(type("Files", (_Files,), own), directory=str(folder))
        self.server = _Threads(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Server]:
    """A web server of `tmp_path`."""
    served = Server(tmp_path)
    threading.Thread(target=served.server.serve_forever, args=(0.01,), daemon=True).start()
    yield served
    served.server.shutdown()
    served.server.server_close()


def noise(seed: int = 0) -> np.ndarray:
    """A map [item, y, x] that no computation gives."""
    return np.random.default_rng(seed).random((N, H, W)).astype("f4")


def both(tmp_path: Path, web: Server, name: str, *arguments: str) -> list[object]:
    """The results of a store on disk and at the server."""
    texts = []
    for path in (str(tmp_path / name), f"{web.url}/{name}"):
        report = tmp_path / f"report{len(texts)}.json"
        run_well(arguments[0], path, *arguments[1:], "-o", report, "--quiet")
        texts.append(json.loads(report.read_text())["results"])
    return texts


def maps_store(path: Path, **more: np.ndarray) -> Path:
    """A maps store of `mean_probs`, labels and further maps."""
    mean = probs().mean(axis=1)
    arrays = {"mean_probs": mean, "predictions": mean.argmax(axis=1).astype("u1")}
    return save(path, {**arrays, "labels": labels(), **more}, _CLASSES)


def test_a_stored_entropy_is_not_computed_again(tmp_path: Path, web: Server) -> None:
    maps_store(tmp_path / "maps", entropy=noise())
    local, remote = both(tmp_path, web, "maps", "failure")
    assert local == remote


@pytest.mark.parametrize("name", sorted(READ_BY_NAME - {"mean_probs"}))
def test_maps_that_uqeval_knows_are_found(tmp_path: Path, web: Server, name: str) -> None:
    save(tmp_path / "s", {"probs": probs(), name: noise()})
    found = ZarrStore(f"{web.url}/s")
    assert found.kinds == ZarrStore(str(tmp_path / "s")).kinds == {"probs", name}


def test_requests_are_few(tmp_path: Path, web: Server) -> None:
    save(tmp_path / "s", {"probs": probs(), "labels": labels()})
    ZarrStore(f"{web.url}/s")
    assert len(web.requested) <= 70
    assert len(set(web.requested)) == len(web.requested)


def test_regions_of_depth_read_the_stored_depth(tmp_path: Path, web: Server) -> None:
    target = noise(1) * 50
    arrays = {"mean": target + noise(2), "std": noise(3) + 1, "target": target}
    save(tmp_path / "numbers", {**arrays, "depth": noise(4) * 50})
    local, remote = both(tmp_path, web, "numbers", "regression", "--region", "depth:0-10")
    assert local == remote
    assert local["regression@depth:0-10"]["pixels"] < local["regression"]["pixels"]


def test_maps_that_options_name_are_looked_up(tmp_path: Path, web: Server) -> None:
    zone = np.zeros((N, H, W), "u1")
    zone[:, :8] = 1
    save(tmp_path / "s", {"probs": probs(), "labels": labels(), "mine": noise(), "zone": zone})
    named = ("--uncertainty", "mine", "--region", "map:zone:1")
    local, remote = both(tmp_path, web, "s", "failure", *named)
    assert local == remote
    run_well("run", f"{web.url}/s", "--uncertainty", "mine", "-o", tmp_path / "run", "--quiet")
    unknown = {"failure": {"uncertainty": "other"}}
    refused(lambda: uqeval.evaluate(f"{web.url}/s", metrics=unknown), "no map 'other'")


def test_the_record_does_not_depend_on_regions(tmp_path: Path, web: Server) -> None:
    maps_store(tmp_path / "maps", entropy=noise(), mine=noise(1), zone=labels() % 2)
    act = partial(uqeval.evaluate, f"{web.url}/maps")
    plain = act(metrics="failure")
    region = act(metrics="failure", region=["map:zone:1"])
    assert plain.inputs["predictions"] == region.inputs["predictions"]
    assert region.inputs["regions"]
    assert open_gallery(region, f"{web.url}/maps", None, None, InputOptions()).note == ""
    used = act(metrics={"failure": {"uncertainty": "mine"}}).inputs["predictions"][0]["arrays"]
    assert used.keys() - plain.inputs["predictions"][0]["arrays"].keys() == {"mine"}


def test_maps_of_other_options_are_not_in_a_store(tmp_path: Path, web: Server) -> None:
    maps_store(tmp_path / "maps", entropy=noise(), mine=noise(1))
    contents = contents_of(f"{web.url}/maps")
    for names in ({"mine"}, set()):
        opened = contents.store(Opening("predictions", maps=frozenset(names)))
        assert opened.looked_up == opened.arrays.keys() & {"mine"} == names


def test_reduce_copies_a_map_that_it_is_given(tmp_path: Path, web: Server) -> None:
    save(tmp_path / "s", {"probs": probs(), "labels": labels(), "mine": noise()})
    out = tmp_path / "out"
    run_well("reduce", f"{web.url}/s", "-o", out, "--maps", "mine", "--quiet")
    assert (zarr.open_group(str(out))["mine"][...] == noise()).all()
    # The new store records its arrays, so the map is found without an option.
    attributes = dict(zarr.open_group(str(out)).attrs)
    assert attributes["uqeval"]["arrays"] == sorted(ZarrStore(str(out)).kinds)
    assert "mine" in ZarrStore(f"{web.url}/out").kinds


@pytest.mark.filterwarnings("ignore:Consolidated metadata")
@pytest.mark.parametrize("version", [2, 3])
def test_consolidated_metadata_give_names_only(tmp_path: Path, web: Server, version: int) -> None:
    path = str(tmp_path / "s")
    group = zarr.create_group(path, zarr_format=version)
    for name in ("probs", "mine", "gone"):
        values = probs() if name == "probs" else noise()
        group.create_array(name, shape=values.shape, dtype="f4", chunks=values.shape)[...] = values
    zarr.consolidate_metadata(path)
    assert ZarrStore(f"{web.url}/s").kinds == {"probs", "mine", "gone"}
    for file in (tmp_path / "s" / "gone").rglob("*"):
        if file.is_file():
            file.unlink()
    late = zarr.open_group(path, use_consolidated=False).create_array(
        "entropy", shape=(N, H, W), dtype="f4", chunks=(N, H, W)
    )
    late[...] = noise()
    assert ZarrStore(f"{web.url}/s").kinds == {"probs", "mine", "entropy"}


@pytest.mark.parametrize("listed", [["../s", "", ".x", "a/b"], "probs", [1], {"probs": 1}, None])
def test_recorded_names_are_only_looked_up_inside(
    tmp_path: Path, web: Server, listed: object
) -> None:
    save(tmp_path / "s", {"probs": probs()}, {"uqeval": {"arrays": listed}})
    assert ZarrStore(f"{web.url}/s").kinds == {"probs"}
    assert all(path.startswith("/s/") and "x/" not in path for path in web.requested)


def test_a_map_that_the_server_does_not_give_is_not_taken_as_missing(
    tmp_path: Path, web: Server
) -> None:
    maps_store(tmp_path / "maps", entropy=noise())
    web.failing.add("/maps/entropy/zarr.json")
    refused(lambda: uqeval.evaluate(f"{web.url}/maps", metrics="failure"), "entropy/zarr.json",
            error=StoreError)  # fmt: skip


def test_a_store_under_two_spellings_is_one_store(tmp_path: Path, web: Server) -> None:
    save(tmp_path / "s", {"probs": probs(), "labels": labels()})
    url = f"{web.url}/s"
    assert ZarrStore(f"{web.url}//s//").kinds == {"probs", "labels"}
    refused(lambda: uqeval.evaluate([url, f"{url}/"]), "is given twice")
    in_and_out = lambda: uqeval.evaluate(url, out=[f"{web.url}//s"], metrics="ood")  # noqa: E731
    refused(in_and_out, "is in two sets")


def test_lists_of_arrays_say_that_they_may_be_incomplete(tmp_path: Path, web: Server) -> None:
    save(tmp_path / "s", {"probs": probs(), "labels": labels(), "mine": noise()})
    url, word = f"{web.url}/s", "a web server cannot list arrays"
    assert word in run_well("reduce", url, "-o", tmp_path / "out").stderr
    assert word in run_well("inspect", url).stderr
    named = lambda: uqeval.evaluate(url, metrics={"failure": {"uncertainty": "x"}})  # noqa: E731
    refused(named, "has no map 'x'", "the web server lists no others", error=StoreError)
    run_well("reduce", tmp_path / "s", "-o", tmp_path / "whole", "--quiet")
    assert word not in run_well("inspect", f"{web.url}/whole").stderr


def test_groups_of_items_are_refused_with_the_reason(tmp_path: Path, web: Server) -> None:
    writer = uqeval.PredictionWriter(
        tmp_path / "s", names=NAMES, samples=T, classes=C, size=None, ranks=1
    )
    with writer:
        for name, values in zip(NAMES, probs(), strict=True):
            writer.add(name, values)
    refused(
        lambda: uqeval.evaluate(f"{web.url}/s"),
        "/s has a group for each item",
        "cannot list",
        error=StoreError,
    )


def test_inspect_lists_the_arrays_of_the_disk(tmp_path: Path, web: Server) -> None:
    maps_store(tmp_path / "maps", entropy=noise(), brier=noise())
    local, remote = (
        [array.name for array in inspect(path).arrays]
        for path in (str(tmp_path / "maps"), f"{web.url}/maps")
    )
    assert local == remote
