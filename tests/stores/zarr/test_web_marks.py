"""Stores at web servers with other data, missing chunks and changes; servers that lack requests and
headers by which these show."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from command import refused, run_forked, run_well
from object_server import BUCKET, ObjectServer, object_server
from small_stores import NAMES, labels, probs, save

import uqeval
from uqeval.errors import ChangedError, StoreError
from uqeval.stores.zarr import stored_files
from uqeval.stores.zarr.store import ZarrStore

pytest.importorskip("obstore")

_UNMARKED = frozenset({"ETag", "Last-Modified"})
_RULES = "failure.auroc: {max_drop: 0.9, confidence: 0.9}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ObjectServer]:
    """A server of two stores that differ only in the values of their labels."""
    for name, seed in (("a", 0), ("b", 1)):
        arrays = {"probs": probs(), "labels": labels(seed=seed)}
        save(tmp_path / name, arrays, {"names": NAMES}, compressors=None)
    with object_server(tmp_path / "a", tmp_path / "b") as own:
        yield own


def url(server: ObjectServer, name: str) -> str:
    return f"{server.url}/{BUCKET}/{name}"


def reports_of_both(server: ObjectServer, folder: Path) -> list[dict[str, object]]:
    """Evaluate both stores into a.json and b.json; return the records of their labels."""
    for name in "ab":
        run_well("failure", url(server, name), "-o", f"{name}.json", "--quiet", cwd=folder)
    (folder / "rules.yaml").write_text(_RULES)
    reports = [json.loads((folder / f"{name}.json").read_text()) for name in "ab"]
    return [report["inputs"]["labels"] for report in reports]


def test_other_data_have_another_fingerprint(server: ObjectServer, tmp_path: Path) -> None:
    first, second = reports_of_both(server, tmp_path)
    assert first["fingerprint"] != second["fingerprint"]
    stored = uqeval.evaluate(tmp_path / "a", metrics="segmentation").inputs["labels"]
    assert first["arrays"] == stored["arrays"]
    again = uqeval.evaluate(url(server, "a"), metrics="segmentation").inputs["labels"]
    assert again["fingerprint"] == first["fingerprint"]
    compared = run_well("compare", "a.json", "b.json", cwd=tmp_path)
    assert "the fingerprints of labels differ" in compared.stdout


def test_data_without_marks_count_as_different(server: ObjectServer, tmp_path: Path) -> None:
    server.without = _UNMARKED
    first, second = reports_of_both(server, tmp_path)
    assert first["fingerprint"] is second["fingerprint"] is None
    word = "whether labels are the same in a.json and b.json is unknown"
    assert word in run_well("compare", "a.json", "b.json", cwd=tmp_path).stdout
    gate = ("gate", "a.json", "rules.yaml", "--baseline", "b.json")
    refused(run_forked(*gate, cwd=tmp_path), "a report has no fingerprint of labels")
    verified = run_well("verify", "a.json", url(server, "a"), cwd=tmp_path)
    assert "(labels) is the store of the report is unknown" in verified.stdout
    shard = ("calibration", url(server, "a"), "--part", "1/2", "-o", "1.json")
    refused(run_forked(*shard, cwd=tmp_path), "has no fingerprint", "all shards")


def test_parts_of_other_data_are_not_merged(server: ObjectServer, tmp_path: Path) -> None:
    for part, name in (("1/2", "a"), ("2/2", "b")):
        run_well("calibration", url(server, name), "--part", part, "-o", f"{name}.json",
                 "--quiet", cwd=tmp_path)  # fmt: skip
    merged = run_forked("merge", "a.states.zip", "b.states.zip", "-o", "m.json", cwd=tmp_path)
    refused(merged, "are shards of different data")


@pytest.mark.parametrize("without", [(), ("HEAD",), ("HEAD", "Range"), ("Range",)])
def test_missing_chunks_are_found(
    server: ObjectServer, tmp_path: Path, without: tuple[str, ...]
) -> None:
    server.without = frozenset(without)
    del server.objects["a/labels/c/1/0/0"]
    array = ZarrStore(url(server, "a")).array("labels", fill_missing=False)
    assert array is not None
    report = run_forked("inspect", url(server, "a"), cwd=tmp_path)
    if without == ("HEAD", "Range"):
        assert array.missing() is array.stored_bytes() is array.fingerprint() is None
        assert "?" in report.stdout and "not checked: missing chunks of labels" in report.stdout
    else:
        assert array.missing() == [(1, 0, 0)]
        assert array.stored_bytes() == 2 * 24 * 32
        assert report.status == 2 and "1 of 3 chunks are missing" in report.stderr


@pytest.mark.parametrize("web", [False, True])
def test_missing_chunks_are_asked_for_once(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch, web: bool
) -> None:
    """A chunk that appears during the run is still missing for it, in all passes."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    path = url(server, "a") if web else f"s3://{BUCKET}/a"
    missing = {key: server.objects.pop(key) for key in ("a/labels/c/1/0/0", "a/labels/c/2/0/0")}
    act = lambda: uqeval.evaluate(path, metrics="pavpu", missing_chunks="fill").results  # noqa: E731
    expected = act()
    assert [server.requests[key] for key in missing] == [web, web]

    def appear(key: str, number: int) -> None:
        if key == "a/labels/c/0/0/0" and number == web:  # it is read
            server.objects.update(missing)

    server.requests.clear()
    server.fault = appear
    assert act() == expected


@pytest.mark.parametrize(
    "without", [{"HEAD"}, {"ETag of HEAD"}, {"ETag of HEAD", "Range"}, {"HEAD", "Range"}]
)
def test_servers_without_head(server: ObjectServer, tmp_path: Path, without: set[str]) -> None:
    expected = uqeval.evaluate(tmp_path / "a", metrics="segmentation").results
    server.without = frozenset(without)
    report = uqeval.evaluate(url(server, "a"), metrics="segmentation")
    assert report.results == expected
    is_blind = without == {"HEAD", "Range"}
    assert any("cannot detect missing chunks" in text for text in report.warnings) == is_blind
    assert (report.inputs["labels"]["fingerprint"] is None) == ("Range" in without)
    if "Range" in without:
        return

    def change(key: str, number: int) -> None:
        if "labels/c/2" in key and number == 1:  # the first time, it is looked up
            server.objects["a/labels/c/0/0/0"] = bytes(24 * 32)

    server.requests.clear()
    server.fault = change
    act = lambda: uqeval.evaluate(url(server, "a"), metrics="segmentation")  # noqa: E731
    refused(act, "changed after this run had begun", error=ChangedError)


def test_chunks_are_requested_three_times_at_most(server: ObjectServer) -> None:
    uqeval.evaluate(url(server, "a"), metrics=["calibration", "pavpu", "failure"])
    counts = [count for key, count in server.requests.items() if "/c/" in key]
    assert len(counts) == 6 and max(counts) == 3


def _is_json(key: str, accepted: str | None) -> bool:
    return key.endswith(".json")


def _is_chunk(key: str, accepted: str | None) -> bool:
    return "/c/" in key


@pytest.mark.parametrize("without", [frozenset(), {"Content-Length"}])
@pytest.mark.parametrize("compressed", [_is_json, _is_chunk])
def test_servers_that_compress(
    server: ObjectServer, tmp_path: Path, compressed: Any, without: frozenset[str]
) -> None:
    """Those that compress only for clients which accept it are read; others are refused."""
    expected = uqeval.evaluate(tmp_path / "a", metrics="segmentation")
    server.without = frozenset(without)
    server.compresses = lambda key, accepted: accepted != "identity" and compressed(key, accepted)
    report = uqeval.evaluate(url(server, "a"), metrics="segmentation")
    assert report.results == expected.results
    assert report.inputs["labels"]["arrays"] == expected.inputs["labels"]["arrays"]
    server.compresses = compressed
    words = ["Content-Length" if without else "Content-Encoding: gzip", "`gzip off;`"]
    refused(lambda: uqeval.evaluate(url(server, "a"), metrics="segmentation"), *words)


def test_a_shape_of_far_more_chunks_than_there_are(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_files, "FEW", 256)
    key = "a/labels/zarr.json"
    document = json.loads(server.objects[key])
    document["shape"][0] = 10**7
    server.objects[key] = json.dumps(document).encode()
    array = ZarrStore(url(server, "a")).array("labels", fill_missing=False)
    assert array is not None
    refused(array.missing, "its metadata claim the shape", "3 are stored", error=StoreError)
    assert sum(server.requests.values()) < 1000
