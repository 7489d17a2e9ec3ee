"""Stores at an S3 server, and its faults."""

from __future__ import annotations

import json
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import object_server
import pytest
from command import refused, run_forked
from object_server import SECRET, Fault, ObjectServer
from small_stores import CLASS_NAMES, NAMES, labels, probs, save

import uqeval
from uqeval.disk import object_access
from uqeval.disk.objects import ObjectFile
from uqeval.disk.outputs import check_writable
from uqeval.errors import ChangedError, OutputError, StoreError, UsageError
from uqeval.stores.store import open_store
from uqeval.stores.zarr import read_ahead

pytest.importorskip("obstore")

URL = "s3://bucket/preds"
_ATTRIBUTES = {"class_names": CLASS_NAMES, "names": NAMES}
#: Eight chunks an item: one of each sample and half of the rows.
_CHUNKS = (1, 1, 5, 12, 32)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store on disk."""
    folder = save(tmp_path_factory.mktemp("local") / "preds", {"labels": labels()}, _ATTRIBUTES)
    return save_probs(folder)


def save_probs(folder: Path) -> Path:
    """Add probabilities in many chunks."""
    import zarr

    values = probs()
    array = zarr.open_group(str(folder)).create_array(
        "probs", shape=values.shape, dtype="f4", chunks=_CHUNKS
    )
    array[...] = values
    return folder


@pytest.fixture
def server(local: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """The store at a server; the environment has its address. Two retries, without a wait."""
    few = {"max_retries": 2}
    monkeypatch.setattr(object_access, "FIRST", few)
    monkeypatch.setattr(object_access, "LATER", few)
    with object_server.object_server(local) as served:
        for name, value in served.environment.items():
            monkeypatch.setenv(name, value)
        yield served


def pavpu(path: str | Path, **options: object) -> dict[str, object]:
    """The results of PAvPU."""
    return dict(uqeval.evaluate(str(path), metrics="pavpu", **options).results)


def read(path: str, kind: str = "probs", **options: bool) -> np.ndarray:
    """All values of an array."""
    array = open_store(path, role="predictions", **options).arrays[kind][0].array
    return array.read(tuple(slice(0, size) for size in array.shape))


def test_results_of_a_server_have_the_bits_of_a_folder(local: Path, server: ObjectServer) -> None:
    expected = pavpu(local)
    server.fault = lambda key, number: Fault(delay=0.005) if "/c/" in key else None
    assert pavpu(URL, workers=2) == expected
    assert server.most_flying > 4
    assert max(n for key, n in server.requests.items() if "/c/" in key) == 1  # none is read twice


def _replace_objects(folder: Path) -> None:
    """Replace an object only if it is as it was when a run began."""
    file, versions = ObjectFile("s3://bucket/runs/r.json", OutputError), []
    for text in ("first", "second"):
        versions.append(file.version())
        (folder / text).write_text(text)
        file.replace(folder / text, versions[-1])
    (folder / "other").write_text("other")
    for version in versions:
        refused(lambda version=version: file.replace(folder / "other", version), "another process")
    assert file.read(6) == b"second"
    none = ObjectFile("s3://none/r.json", OutputError)
    refused(none.version, "there is no such bucket", error=OutputError)


def test_moto(local: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server that others test their clients with."""
    boto3 = pytest.importorskip("boto3")
    moto = pytest.importorskip("moto.server")
    moto_server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto_server.start()
    try:
        host, port = moto_server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        for name, value in ObjectServer.credentials(endpoint).items():
            monkeypatch.setenv(name, value)
        client = boto3.client("s3", endpoint_url=endpoint)
        client.create_bucket(Bucket="bucket")
        for file in local.rglob("*"):
            if file.is_file():
                key = file.relative_to(local.parent).as_posix()
                client.put_object(Bucket="bucket", Key=key, Body=file.read_bytes())
        assert pavpu(URL) == pavpu(local)
        client.delete_object(Bucket="bucket", Key="preds/probs/c/1/0/0/0/0")
        refused(lambda: pavpu(URL), "probs", "[1, 0, 0, 0, 0]", "missing", error=StoreError)
        refused(lambda: pavpu("s3://none/preds"), "no such bucket", error=StoreError)
        _replace_objects(tmp_path)
    finally:
        moto_server.stop()


@pytest.mark.parametrize("fault", [Fault(500), Fault(503), Fault(lost=9), Fault(status=429)])
def test_faults_that_pass(fault: Fault, server: ObjectServer) -> None:
    server.fault = lambda key, number: fault if number == 0 and "c/1/0" in key else None
    assert np.array_equal(read(URL), probs())


def test_a_server_with_pages_for_missing_files_and_a_zip_file(server: ObjectServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/{URL.partition('://')[2]}"
    refused(
        lambda: open_store(f"{url}.zip", role="predictions"),
        "a zip file at a URL is not read",
        error=StoreError,
    )
    server.without = frozenset({"404"})
    refused(
        lambda: open_store(f"{url}.zip", role="predictions"),
        "answers with a page",
        "404",
        error=StoreError,
    )


@pytest.mark.parametrize("status", [403, 410])
def test_other_answers_for_objects_that_do_not_exist(status: int, server: ObjectServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/{URL.partition('://')[2]}"
    expected = read(url)
    server.fault = lambda key, number: None if key in server.objects else Fault(status)
    if status == 410:
        assert np.array_equal(read(url), expected)
    else:
        refused(lambda: read(url), "403", "must answer 404", error=StoreError)
        server.fault = lambda key, number: Fault(403)
        refused(lambda: read(url), "a store behind a password", error=StoreError)


@pytest.mark.parametrize("answer", [b"{}", b"", b" "])
def test_empty_answers_for_objects_that_do_not_exist(answer: bytes, server: ObjectServer) -> None:
    url = f"http://127.0.0.1:{server.server_port}/{URL.partition('://')[2]}"
    server.objects["preds/brier/zarr.json"] = answer
    refused(lambda: read(url), "brier/zarr.json", "Expected status 404", error=StoreError)


def test_shards_at_a_server_without_ranges(server: ObjectServer, tmp_path: Path) -> None:
    save(tmp_path / "s", {"probs": probs()}, together=1, shards=(3, *probs().shape[1:]))
    for file in (tmp_path / "s").rglob("*"):
        if file.is_file():
            server.objects[file.relative_to(tmp_path).as_posix()] = file.read_bytes()
    server.without = frozenset({"Range"})
    url = f"http://127.0.0.1:{server.server_port}/bucket/s"
    refused(lambda: read(url), "does not support range requests", "sharded", error=StoreError)


@pytest.mark.parametrize("without", [{"Range"}, {"ETag"}, {"ETag", "Range"}])
def test_an_answer_cut_short_by_a_plain_web_server(without: set[str], server: ObjectServer) -> None:
    """obstore repeats such a request only if the server has ETags and range requests."""
    server.without = frozenset(without)
    url = f"http://127.0.0.1:{server.server_port}/{URL.partition('://')[2]}"
    lost = Fault(lost=9)
    server.fault = lambda key, number: lost if number == 0 and "c/1/0" in key else None
    assert np.array_equal(read(url), probs())
    server.fault = lambda key, number: lost if "c/1/" in key else None
    refused(lambda: read(url), "probs/c/1/", " cannot be read", "cut short", error=StoreError)


@pytest.mark.parametrize(
    ("fault", "words"), [(Fault(500), "500 Internal Server Error"), (Fault(lost=9), "cut short")]
)
def test_faults_that_stay(fault: Fault, words: str, server: ObjectServer) -> None:
    server.fault = lambda key, number: fault if "c/1/" in key else None
    refused(
        lambda: read(URL), f"{URL}: probs/c/1/0/0/0/0 cannot be read: ", words, error=StoreError
    )


def test_a_server_that_stalls(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(object_access._LIMITS, "read_timeout", "100ms")
    monkeypatch.setattr(object_access, "LATER", {"max_retries": 0})
    server.fault = lambda key, number: Fault(hangs=True, lost=9, delay=5) if "c/1" in key else None
    begun = time.monotonic()
    refused(lambda: read(URL), "probs/c/1/", "cut short or stalled", error=StoreError)
    assert time.monotonic() - begun < 4


@pytest.mark.parametrize("fill_missing", [False, True])
def test_an_object_that_is_deleted_is_never_read_as_zeros(
    fill_missing: bool, server: ObjectServer
) -> None:
    def delete(key: str, number: int) -> None:
        if key == "preds/probs/c/0/0/0/0/0":
            server.objects.pop("preds/probs/c/2/0/0/0/0", None)

    server.fault = delete
    array = open_store(URL, role="predictions", fill_missing=fill_missing).arrays["probs"][0].array
    array.missing()
    with pytest.raises(ChangedError, match=f"{URL}/probs/c/2/0/0/0/0 changed after this run"):
        array.read(tuple(slice(0, size) for size in array.shape))


def test_an_object_that_is_replaced_between_passes(server: ObjectServer) -> None:
    first = "preds/probs/c/0/0/0/0/0"

    def replace(key: str, number: int) -> None:
        if "probs/c/2/" in key:
            server.objects[first] = b"other"

    server.fault = replace
    refused(lambda: pavpu(URL), "preds/probs/c/0/0/0/0/0 changed after", error=ChangedError)


def test_wrong_addresses_and_credentials(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused(lambda: read("s3://none/preds"), "no such bucket", error=StoreError)
    refused(lambda: read("s3://bucket/none"), "s3://bucket/none holds no Zarr", error=StoreError)
    server.fault = lambda key, number: Fault(403)
    refused(
        lambda: read(URL), "refuses access (403 Forbidden", "Set AWS_ACCESS_KEY_ID",
        "AWS_SKIP_SIGNATURE=true", error=StoreError,
    )  # fmt: skip
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    refused(lambda: read(URL), "does not answer", "AWS_ENDPOINT", error=StoreError)


def test_an_address_that_is_wrong_is_reported_in_seconds() -> None:
    assert object_access.FIRST["retry_timeout"].total_seconds() < 10
    assert object_access.client_options(URL)["connect_timeout"] == "4s"


def test_the_environment_sets_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ENDPOINT", "ENDPOINT_URL", "ALLOW_HTTP"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)
    assert "allow_http" not in object_access.client_options(URL)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    assert object_access.client_options(URL)["allow_http"] is True
    monkeypatch.setenv("AWS_ALLOW_HTTP", "false")
    assert object_access.client_options(URL)["allow_http"] is False
    monkeypatch.setenv("AWS_READ_TIMEOUT", "6s")
    assert object_access.client_options(URL)["read_timeout"] == "6s"
    monkeypatch.setenv("AZURE_TIMEOUT", "7s")
    assert object_access.client_options("az://box/preds")["timeout"] == "7s"
    assert object_access.client_options("http://host/preds")["allow_http"] is True


def test_a_command_tells_no_secrets(server: ObjectServer, tmp_path: Path) -> None:
    done = run_forked("pavpu", URL, "-o", "r.json", "--csv", "i.csv", cwd=tmp_path)
    assert json.loads((tmp_path / "r.json").read_text())["inputs"]["predictions"][0]["path"] == URL
    server.fault = lambda key, number: Fault(403)
    assert done.status == 0, done
    failed = run_forked("pavpu", URL, "-o", "s.json", cwd=tmp_path)
    refused(failed, "refuses access")
    files = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    texts = files.decode("latin-1") + done.stdout + done.stderr + failed.stderr
    assert SECRET not in texts and "someone" not in texts


@pytest.mark.parametrize(
    "url",
    [
        f"https://me:{SECRET}@host/preds", f"s3://me:{SECRET}@bucket/preds",
        f"https://host/preds?X-Amz-Signature={SECRET}", f"https://host/preds#{SECRET}",
        f"https://{SECRET}@host/preds",
    ],
)  # fmt: skip
def test_a_url_with_a_secret_is_refused(url: str) -> None:
    message = refused(lambda: read(url), "URL", error=UsageError)
    assert SECRET not in message
    for text in (url.partition("#")[0], str(Path(url.partition("#")[0]))):
        assert SECRET not in str(StoreError(f"cannot read {text}: no"))
    refused(
        lambda: check_writable(URL), "s3://bucket/preds is a URL to which nothing can be written"
    )


def test_containers_of_azure_are_no_secrets() -> None:
    object_access.check_url("abfss://container@account.dfs.core.windows.net/preds")


def test_chunks_of_skipped_items_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_MOST_BYTES", 40)
    monkeypatch.setattr(read_ahead, "_all", weakref.WeakSet())
    fetched: list[int] = []
    lock = threading.Lock()

    def fetch(position: tuple[int, ...]) -> bytes:
        with lock:
            fetched.append(position[1])
        time.sleep(0.001)
        return bytes(position)

    ahead = read_ahead.ReadAhead(fetch, 10, (1, 250), ("x", "item"))
    for i in range(6):
        assert ahead.take((0, i)) == bytes((0, i))
    assert ahead.waiting_bytes == 40  # four chunks of ten bytes
    for i in range(20, 200):  # 6 to 9 are skipped
        assert ahead.take((0, i)) == bytes((0, i))
    assert not set(range(6, 10)) & set(ahead._waiting)
    assert ahead.waiting_bytes == 40
    assert len(fetched) == len(set(fetched))
    assert ahead.take((0, 3)) == bytes((0, 3))  # a new pass
    assert list(ahead._waiting) == [4]


def test_two_readers_far_from_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "_all", weakref.WeakSet())
    ahead = read_ahead.ReadAhead(bytes, 1, (200,), ("item",))
    for i in range(10):
        for at in (i, 100 + i):
            ahead.take((at,))
    assert sorted(ahead._waiting) == [*range(10, 26), *range(110, 126)]
