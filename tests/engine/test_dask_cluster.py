"""Counting on a Dask cluster: the same bits as threads, whatever happens to the workers."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pinned
import pytest
from command import run_forked
from scenes import zarr_group
from small_stores import save

import uqeval
from uqeval.engine import dask_cluster, dask_executor, remote
from uqeval.engine.dask_cluster import DaskCluster
from uqeval.engine.dask_executor import Workers
from uqeval.engine.options import RunOptions
from uqeval.errors import ChangedError, ClusterError, DataError, UsageError
from uqeval.inputs import InputOptions, open_inputs
from uqeval.inputs.opened import last_digits
from uqeval.metrics import COMPANIONS, FAMILIES
from uqeval.stores.states.saved import SavedStates
from uqeval.tallies.segmentation import ClassCounts

pytestmark = pytest.mark.on_disk

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
Status = distributed.core.Status

CASES = ("classes", "a part", "patches by class", "calibrations", "numbers", "members", "n-mercis",
         "divergence", "annotators", "video", "tracks")  # fmt: skip


@pytest.fixture(scope="module")
def folder(disk: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=disk))  # a worker may come back to this module
    pinned.stores(folder)
    save(folder / "out.zarr", {"probs": pinned.probabilities(1)})
    return folder


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster of two workers in this process."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, memory_limit=0,
            dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        yield client


def given(name: str) -> dict[str, Any]:
    """The arguments of a pinned case, without intervals, which workers do not compute."""
    case = {k: v for k, v in pinned.CASES[name].items() if k not in pinned.CUT}
    return {"predictions": None, "labels": None, **case}


def without_times(report: Any) -> dict[str, Any]:
    """A report without what depends on the machine and on paths."""
    left_out = {"timing", "states", "states_digest"}
    return {k: v for k, v in report.record().items() if k not in left_out}


@pytest.mark.parametrize("name", CASES)
def test_the_same_bits_as_threads(folder: Path, client: Any, name: str) -> None:
    with chdir(folder):
        reports, states = [], []
        for executor in (None, client):
            own = given(name) | {"states": "own.zip", "executor": executor}
            reports.append(uqeval.evaluate(**own))
            states.append(Path("own.zip").read_bytes())
            Path("own.zip").unlink()
    assert without_times(reports[0]) == without_times(reports[1])
    assert states[0] == states[1]


def test_recalibration_has_the_same_bits(folder: Path, client: Any) -> None:
    """Its fit has a pass for each step of Newton's method."""
    parts = {"isotonic": True, "vector": True, "temperature": False, "adaptive": False}
    own: dict[str, Any] = {"metrics": {"calibration": parts}}
    with chdir(folder):
        threads, cluster = (
            uqeval.evaluate("p.zarr", None, **own, executor=executor) for executor in (None, client)
        )
    assert without_times(threads) == without_times(cluster)


def test_a_sweep_has_the_same_bits(folder: Path, client: Any) -> None:
    own = {"metrics": ["pavpu", "failure"], "samples": [1, 2, 4], "repeats": 2}
    with chdir(folder):
        threads, cluster = (
            uqeval.sweep("p.zarr", None, **own, executor=executor) for executor in (None, client)
        )
    assert without_times(threads) == without_times(cluster)


class Killer:
    """Progress that kills a worker at the first sign of life of each pass."""

    def __init__(self, client: Any) -> None:
        self.client, self.killed, self._due = client, 0, False

    def begin(self, activity: str, items: int) -> None:
        self._due = True

    def advance(self, nbytes: int, items: int) -> None:
        if self._due:
            self._due = False
            self.killed += 1
            nannies = self.client.cluster.workers.values()
            running = [nanny for nanny in nannies if nanny.pid and nanny.status == Status.running]
            with suppress(ProcessLookupError):  # it is gone already, and another will follow
                os.kill(running[0].pid, signal.SIGKILL)

    def end(self) -> None: ...


@pytest.fixture(scope="module")
def processes() -> Iterator[DaskCluster]:
    """A cluster of three processes; one that is killed is followed by another at once."""
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        loaded = ["distributed", "numba", "uqeval.engine.remote", "uqeval.inputs.opening"]
        distributed.utils.get_mp_context().set_forkserver_preload(loaded)
        with DaskCluster("local:3") as cluster:
            yield cluster


#: What each family needs beside its default settings.
KILLED: dict[str, dict[str, Any]] = {
    "pavpu": {}, "calibration": {}, "failure": {}, "sparsification": {}, "image_failure": {},
    "conformal": {"metrics": {"conformal": {"fit_on": "fit.txt", "alpha": 0.4}}},
    "ood": {"out": ["out.zarr"]}, "annotators": {"predictions": "raters.zarr"},
    "regression": {"predictions": "n.zarr"},
    "nmerci": {"predictions": "n.zarr"},
    "divergence": {"reference": "q.zarr"},
    "tc": {"predictions": None, "video": "v.zarr"},
}  # fmt: skip


def _blocked() -> bool:
    return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_workers_ignore_the_interrupt_of_a_terminal(processes: DaskCluster) -> None:
    """Ctrl+C goes to all processes of a run; the first one ends the workers."""
    assert not _blocked()
    assert all(processes.client.run(_blocked).values())


def test_slices_have_the_same_bits(folder: Path, tmp_path: Path, processes: DaskCluster) -> None:
    """Also scores by rank of slices, which are those of a run over their items."""
    (tmp_path / "items.csv").write_text(pinned.SLICES)
    own = {"metrics": {"nmerci": {"depth_step": 10}}, "slices": tmp_path / "items.csv"}
    threads, cluster = (
        uqeval.evaluate(folder / "n.zarr", None, **own, executor=executor)
        for executor in (None, processes.client)
    )
    assert without_times(threads) == without_times(cluster)
    assert cluster.slices and not any(part["approximate"] for part in cluster.slices.values())


@pytest.mark.parametrize("family", [name for name in FAMILIES if name not in COMPANIONS])
def test_killed_processes_change_nothing(
    folder: Path, tmp_path: Path, processes: DaskCluster, family: str
) -> None:
    killer = Killer(processes.client)
    with chdir(folder):
        reports, states = [], []
        for own in ({}, {"executor": processes.client, "progress": killer}):
            given = {"predictions": "p.zarr", "labels": None, "metrics": family}
            own |= given | KILLED[family] | {"states": tmp_path / "own.zip"}
            reports.append(uqeval.evaluate(**own))
            states.append((tmp_path / "own.zip").read_bytes())
            (tmp_path / "own.zip").unlink()
    assert killer.killed == reports[1].timing["passes"] >= 1
    assert without_times(reports[0]) == without_times(reports[1])
    assert states[0] == states[1]
    methods = [report.timing.get("flow_seconds", {}) for report in reports]
    assert methods[0].keys() == methods[1].keys()
    assert bool(methods[1]) == (family == "tc") and all(s > 0 for s in methods[1].values())


def test_maps_that_the_cache_of_a_worker_refuses(
    folder: Path, tmp_path: Path, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uqeval.stores.map_cache.has_room", lambda *_: False)
    texts = []
    for executor in (None, client):
        own = {"metrics": "segmentation", "map_cache": tmp_path / "cache", "executor": executor}
        texts.append(uqeval.evaluate(folder / "p.zarr", None, **own).warnings)
    assert texts[0] == texts[1]
    assert "the maps of 7 of 7 items are not cached: the disk has less than" in texts[1][-1]


@pytest.mark.parametrize("is_dense", [True, False])
def test_workers_write_the_maps_of_their_items(tmp_path: Path, client: Any, is_dense: bool) -> None:
    from uqeval.usecases.reduce import reduce

    path = tmp_path / "p.zarr"
    generator = np.random.default_rng(0)
    names = [f"i{item}" for item in range(9)]
    size = (6, 5) if is_dense else None
    with uqeval.PredictionWriter(path, names=names, samples=2, classes=3, size=size) as writer:
        for item, name in enumerate(names):
            own = (6, 5 if is_dense or item % 2 else 4)
            probs = generator.dirichlet(np.ones(3), (2, *own)).transpose(0, 3, 1, 2)
            writer.add(name, probs.astype(np.float32))
            writer.add_labels(name, np.zeros(own, np.uint8))
    stores = []
    for target in (tmp_path / "threads", tmp_path / "dask"):
        with DaskCluster(client) as cluster:
            options = RunOptions(cluster=cluster if target.name == "dask" else None)
            reduce(open_inputs(str(path), None, InputOptions()), target, options=options)
        files = sorted(file for file in target.rglob("*") if file.is_file())
        stores.append({str(file.relative_to(target)): file.read_bytes() for file in files})
    assert stores[0] == stores[1]
    assert len(stores[0]) > 9


def test_maps_of_workers_have_the_modes_of_the_client(
    folder: Path, tmp_path: Path, processes: DaskCluster
) -> None:
    from uqeval.usecases.reduce import reduce

    before = next(iter(processes.client.run(os.umask, 0o077).values()))
    modes = []
    try:
        for cluster in (None, processes):
            target = tmp_path / f"{cluster is None}.zarr"
            inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
            reduce(inputs, target, options=RunOptions(cluster=cluster))
            modes.append({str(p.relative_to(target)): p.stat().st_mode for p in target.rglob("*")})
    finally:
        processes.client.run(os.umask, before)
    assert len(modes[0]) > 9 and modes[0] == modes[1]


def test_maps_are_written_where_all_workers_see_them(folder: Path) -> None:
    from uqeval.usecases.reduce import _Writing

    writing = _Writing(str(folder / "not-there"), True, ("entropy",), {}, {}, {}, 1)
    failed = remote.run_job(replace(job_of(folder, id="writes", maps=("entropy",)), work=writing))
    assert isinstance(failed, remote.Failed)
    assert "the worker does not see the new store" in failed.message


def test_workers_check_all_values(tmp_path: Path, client: Any) -> None:
    from uqeval.usecases.inspect import inspect

    probs = np.full((6, 2, 2, 4, 4), 0.5, np.float32)
    probs[4, 0, 0, 0, 0] = np.nan
    path = zarr_group(tmp_path / "p", {"probs": (probs, {"chunks": (1, 2, 2, 4, 4)}),
                                       "labels": np.zeros((6, 4, 4), np.uint8)})  # fmt: skip
    with DaskCluster(client) as cluster:
        threads, dask = (
            inspect(str(path), full=True, machine=RunOptions(1, cluster=c)) for c in (None, cluster)
        )
    assert len(threads.problems) == 1 and "item 4" in threads.problems[0]
    assert dask.problems == threads.problems
    assert dask.values == threads.values
    assert dask.values["items_checked"] == 6


def test_states_of_an_earlier_run_are_reused(folder: Path, client: Any, tmp_path: Path) -> None:
    states = tmp_path / "own.zip"
    with chdir(folder):
        first, again = (
            uqeval.evaluate("p.zarr", None, "pavpu", states=states, executor=client)
            for _ in range(2)
        )
    assert first.timing["items_reused"] == 0
    assert again.timing["items_reused"] == first.inputs["items"]
    assert without_times(first) == without_times(again)


# What goes wrong


def test_an_error_names_the_worker(tmp_path: Path, client: Any) -> None:
    probs = np.full((6, 2, 2, 4, 4), 0.5, np.float32)
    probs[4, 0, 0, 0, 0] = np.nan
    path = zarr_group(tmp_path / "p", {"probs": (probs, {"chunks": (1, 2, 2, 4, 4)}),
                                       "labels": np.zeros((6, 4, 4), np.uint8)})  # fmt: skip
    with pytest.raises(DataError, match=r"^worker inproc://[^ ]+: .*item 4: 1 of 64"):
        uqeval.evaluate(path, None, "segmentation", executor=client)


def test_arrays_in_memory_are_refused(client: Any) -> None:
    probs = np.full((2, 1, 2, 4, 4), 0.5, np.float32)
    with pytest.raises(UsageError, match="an array in memory cannot be read by the workers"):
        uqeval.evaluate(probs, np.zeros((2, 4, 4), int), "segmentation", executor=client)


def test_workers_on_other_processors_are_named(
    folder: Path, client: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their exp has other last digits. The states record the digests of all workers."""
    monkeypatch.setattr(remote, "last_digits", lambda: "other")
    states = tmp_path / "s.zip"
    with chdir(folder):
        report = uqeval.evaluate("p.zarr", metrics="pavpu", states=states, executor=client)
    (warning,) = [text for text in report.warnings if "another kind of processor" in text]
    workers = client.scheduler_info()["workers"]
    assert any(address in warning for address in workers) and "exp and log" in warning
    assert SavedStates.of_run(states).index["last_digits"] == ["other"]
    with chdir(folder):  # this process would continue with other digits
        again = uqeval.evaluate("p.zarr", metrics="pavpu", states=states)
    assert again.timing["items_reused"] == 0
    assert SavedStates.of_run(states).index["last_digits"] == [last_digits()]


def test_other_versions_are_refused(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    own = remote.versions()
    monkeypatch.setattr(dask_cluster, "versions", lambda: own | {"numpy": "0.1"})
    with (
        pytest.raises(UsageError, match=rf"[12] Dask workers .*numpy 0\.1.*numpy {own['numpy']}"),
        DaskCluster(client),
    ):
        pass


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("local:0", "expected the address of a scheduler"),
        ("here", "expected the address of a scheduler"),
        ("scheduler-file:missing.json", "there is no such file"),
        ("scheduler-file: missing.json", "scheduler-file:missing.json: there is no such file"),
        ("tcp://127.0.0.1:1", "no scheduler answers there"),
    ],
)
def test_no_cluster(address: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "_PATIENCE", 0.2)
    with pytest.raises(UsageError, match=message), DaskCluster(address):
        pass
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


@pytest.mark.parametrize("closes", [False, True])
def test_another_server(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a dashboard, or a scheduler that is stopped: Dask would wait for ever."""
    monkeypatch.setattr(dask_cluster, "_PATIENCE", 0.2)
    message = "no scheduler answers there" if closes else "does not answer as a Dask scheduler"
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[Any] = []

        def accept() -> None:
            with suppress(OSError):  # the server was closed
                while True:
                    connection, _ = server.accept()
                    connection.close() if closes else accepted.append(connection)

        thread = Thread(target=accept, daemon=True)
        thread.start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"

        async def in_a_loop() -> None:
            with DaskCluster(address):
                pass

        with pytest.raises(UsageError, match=rf"{message}.*8787 (is )?that of (its|the) dashboard"):
            asyncio.run(in_a_loop())
        server.shutdown(socket.SHUT_RDWR)
    for connection in accepted:
        connection.close()
    thread.join(10)


@pytest.mark.parametrize(
    "place", ["user:SECRET@127.0.0.1:1", "u:SEC/RET@a@127.0.0.1:1", "127.0.0.1:1?sig=SECRET"]
)
def test_secrets_of_addresses_are_not_repeated(place: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(f'{{"address": "tcp://{place}"}}')
    for address in (f"tcp://{place}", f"scheduler-file:{tmp_path / 's.json'}"):
        with (
            pytest.raises(
                UsageError, match=r"tcp://127\.0\.0\.1:1: the address has a user"
            ) as found,
            DaskCluster(address),
        ):
            pass
        assert "SEC" not in str(found.value) and "RET" not in str(found.value)


@pytest.mark.parametrize(
    ("content", "flaw"),
    [
        (b"", "it is empty"),
        (b"not json", r"it is not JSON \("),
        (b"\xff\xfe", r"it is not JSON \("),
        (b"{}", "it has no `address`"),
        (b"[1]", "it has no `address`"),
        (b'{"address": 3}', "it has no `address`"),
        (b'{"address": "here"}', "it has no `address`"),
    ],
)
def test_damaged_scheduler_files(content: bytes, flaw: str, tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    message = rf"s\.json is not a scheduler file: {flaw}.*Start `dask scheduler --scheduler-file"
    with pytest.raises(UsageError, match=message), DaskCluster(f"scheduler-file:{path}"):
        pass


def test_clients_that_cannot_be_used(client: Any) -> None:
    own = distributed.Client(client.cluster, set_as_default=False)
    own.close()
    with pytest.raises(UsageError, match=r"the distributed\.Client is closed"), DaskCluster(own):
        pass

    async def in_the_loop_of_the_client() -> None:
        probs, labels = np.full((1, 2, 3, 4, 4), 1 / 3), np.zeros((1, 4, 4), np.uint8)
        async with (
            distributed.LocalCluster(
                n_workers=0, processes=False, asynchronous=True, dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
            ) as cluster,
            distributed.Client(cluster, asynchronous=True, set_as_default=False) as waiting,
        ):  # fmt: skip
            with pytest.raises(UsageError, match=r"^executor.* without asynchronous=True, or call"):
                uqeval.evaluate(probs, labels, "segmentation", executor=waiting)

    asyncio.run(in_the_loop_of_the_client())


@pytest.mark.parametrize("executor", [3, "tcp", ["tcp://a"]])
def test_an_executor_that_is_no_client(executor: object) -> None:
    probs, labels = np.full((1, 2, 3, 4, 4), 1 / 3), np.zeros((1, 4, 4), np.uint8)
    with pytest.raises(UsageError, match=r"^executor.*; expected (the|a) "):
        uqeval.evaluate(probs, labels, "segmentation", executor=executor)


def test_dask_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UsageError, match="pip install distributed"), DaskCluster("local:1"):
        pass


class Future:
    """A future of a worker that counts here, or dies if its items hold `bad`."""

    status = "pending"

    def __init__(self, job: remote.Job, bad: int) -> None:
        self.job, self.bad = job, bad

    def add_done_callback(self, ended: Any) -> None:
        ended(self)

    def result(self) -> Any:
        if self.bad in self.job.items:
            raise distributed.scheduler.KilledWorker("task", "worker", 3)
        return remote.run_job(self.job), "tcp://here"


class Deadly:
    """A client whose workers die with item 3."""

    def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
        return [Future(job, 3) for job in jobs]

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {"tcp://here": {}}}

    async def gather(self, futures: list[Any], asynchronous: bool) -> list[Any]:
        return [future.result() for future in futures]

    def sync(self, work: Any) -> Any:
        return asyncio.run(work())

    def cancel(self, futures: list[Any]) -> None: ...

    def run(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {}


def test_the_item_that_kills_workers_is_named(folder: Path) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Deadly())
    inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
    name = inputs.source.names[3]
    with pytest.raises(ClusterError, match=f"the workers that read item {name} died each time"):
        evaluate(inputs, {"segmentation": {}}, RunOptions(cluster=cluster))


def test_a_sequence_whose_tracks_kill_workers_is_never_split(folder: Path) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Deadly())
    options = InputOptions(video=str(folder / "v.zarr"), whole_sequences=True)
    inputs = open_inputs(None, None, options)
    first, last = inputs.source.names[0], "north_015"
    with pytest.raises(ClusterError, match=f"that read items {first} to {last} died each time"):
        evaluate(
            inputs, {"tc": pinned.CASES["tracks"]["metrics"]["tc"]}, RunOptions(cluster=cluster)
        )


class Backwards(Deadly):
    """A client with one worker, which does the last of its jobs first."""

    def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
        done: list[Any] = []
        working = Thread(
            target=lambda: done.extend(remote.run_job(job) for job in reversed(jobs)), daemon=True
        )
        working.start()
        working.join(timeout=60)
        assert len(done) == len(jobs), "a job waits for pairs of another"
        return [Ended((own, "tcp://here")) for own in reversed(done)]


class Ended(Future):
    """A future that has a result."""

    status = "finished"

    def __init__(self, value: Any) -> None:
        self.value = value

    def result(self) -> Any:
        return self.value


def test_few_results_are_fetched_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs have ended, on many workers; the client never holds more results than it says."""
    monkeypatch.setattr(dask_executor, "_AT_ONCE", 3)
    sizes: list[int] = []

    class Fast(Deadly):
        async def gather(self, futures: list[Any], asynchronous: bool) -> list[Any]:
            sizes.append(len(futures))
            return [future.result() for future in futures]

        def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
            return [Ended((remote.Done(job.items, 0, last_digits()), "tcp://here")) for job in jobs]

    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Fast())
    inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
    executor = cluster.executor(inputs, RunOptions(), ("label",))
    jobs = [range(n, n + 1) for n in range(40)]
    assert [items for items, *_ in executor.each(len, jobs)] == jobs
    assert max(sizes) == 3 and sum(sizes) == 40


def test_a_worker_may_have_later_sequences_first(folder: Path) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Backwards())
    reports = []
    for own in (None, cluster):
        options = InputOptions(video=str(folder / "v.zarr"), whole_sequences=True)
        inputs = open_inputs(None, None, options)
        metrics = {"tc": pinned.CASES["tracks"]["metrics"]["tc"]}
        reports.append(without_times(evaluate(inputs, metrics, RunOptions(cluster=own))))
    assert reports[0] == reports[1]
    source = next(reversed(remote._runs.values())).inputs.source
    assert not source._shared._frames, "frames are kept for the job at hand only"


class Slow(Deadly):
    """A client whose results take longer than a run is ready to wait at first."""

    sent = 0

    def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
        self.sent += len(jobs)
        assert self.sent < 50, "jobs are sent again and again"
        return [Future(job, -1) for job in jobs]

    async def gather(self, futures: list[Any], asynchronous: bool) -> list[Any]:
        await asyncio.sleep(0.05)
        return [future.result() for future in futures]


def test_a_slow_network_does_not_repeat_jobs_for_ever(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    monkeypatch.setattr(dask_executor, "_PATIENCE", 0.01)
    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Slow())
    inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
    report = evaluate(inputs, {"segmentation": {}}, RunOptions(cluster=cluster))
    assert report.inputs["items"] == 7


def test_a_full_disk_of_a_worker_is_no_dead_scheduler(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(remote, "_run_state", full)
    failed = remote.run_job(job_of(folder, id="full"))
    assert isinstance(failed, remote.Failed)
    assert "No space left on device" in str(failed.error("worker w"))


def test_the_log_level_of_a_program_is_restored(client: Any) -> None:
    logger = logging.getLogger("distributed")
    level = logger.level
    with DaskCluster(client):
        pass
    assert logger.level == level


class Leaving(Deadly):
    """A client whose scheduler is gone after the first jobs."""

    def __init__(self) -> None:
        self.jobs = 0

    def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
        before, self.jobs = self.jobs, self.jobs + len(jobs)
        return [Future(job, -1) if n < 2 else Lost() for n, job in enumerate(jobs, before)]


class Lost(Future):
    """A future whose scheduler is gone."""

    def __init__(self) -> None: ...

    def result(self) -> Any:
        raise distributed.CancelledError("lost")


class Waiting(Future):
    """A future that no worker ever has."""

    def __init__(self) -> None: ...

    def add_done_callback(self, ended: Any) -> None: ...


class Empty(Deadly):
    """A client whose workers are all gone."""

    def map(self, _: Any, jobs: list[remote.Job], **options: Any) -> list[Any]:
        return [Waiting() for _ in jobs]

    def scheduler_info(self, **_: Any) -> dict[str, Any]:
        return {"workers": {}}


def test_a_run_ends_when_all_workers_are_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    monkeypatch.setattr(dask_executor, "_ALONE", 0.02)
    monkeypatch.setattr(dask_executor, "_PATIENCE_FOR_HOME", 0.01)
    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Empty())
    inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
    with pytest.raises(ClusterError, match=r"has had no worker for 0\.02 s\. Start .* --resume"):
        evaluate(inputs, {"segmentation": {}}, RunOptions(cluster=cluster))


def test_what_was_counted_is_kept_when_the_scheduler_is_gone(tmp_path: Path) -> None:
    from uqeval.usecases.evaluate import run as evaluate

    cluster = DaskCluster("tcp://here")
    cluster._workers = Workers(Leaving())
    probs = np.full((600, 1, 2, 1, 1), 0.5, np.float32)
    path = zarr_group(tmp_path / "p", {"probs": (probs, {"chunks": (256, 1, 2, 1, 1)}),
                                       "labels": np.zeros((600, 1, 1), np.uint8)})  # fmt: skip
    time.sleep(0.03)  # what was written just now has no stamp
    inputs = open_inputs(str(path), None, InputOptions())
    states = tmp_path / "own.states.zip"
    own = RunOptions(cluster=cluster, states=states)
    with pytest.raises(
        ClusterError, match=r"scheduler is lost .* --resume if the command has it"
    ) as caught:
        evaluate(inputs, {"segmentation": {}}, own)
    assert "--resume continues from it" in caught.value.__notes__[0]
    report = evaluate(inputs, {"segmentation": {}}, RunOptions(states=states, resume=True))
    assert report.timing["items_reused"] > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [states.name, path.name]


def job_of(folder: Path, **other: Any) -> remote.Job:
    """A job of the first two items of a store."""
    inputs = open_inputs(str(folder / "p.zarr"), None, InputOptions())
    assert inputs.recipe is not None
    run_ = remote.Run("own", inputs.recipe.with_absolute_paths(), ("label", "prediction"), 1,
                      10**8, inputs.fingerprint, remote.versions())  # fmt: skip
    counting = remote.CountTallies((ClassCounts(pinned.C),), (), False)
    return remote.Job(replace(run_, **other), range(2), counting)


def test_a_worker_that_sees_another_store(folder: Path) -> None:
    failed = remote.run_job(job_of(folder, id="other", fingerprint="0"))
    assert isinstance(failed, remote.Failed)
    error = failed.error("worker w")
    assert isinstance(error, ChangedError)
    assert "worker w: " in str(error) and "differs from what the client has opened" in str(error)


def test_a_worker_that_came_later_with_other_versions(folder: Path) -> None:
    failed = remote.run_job(job_of(folder, versions=remote.versions() | {"numba": "0.1"}))
    assert isinstance(failed, remote.Failed)
    assert "the client has 0.1" in failed.message


def test_a_worker_drops_what_it_keeps(folder: Path) -> None:
    assert isinstance(remote.run_job(job_of(folder)), remote.Done)
    assert "own" in remote._runs
    remote.close_run("own")
    assert "own" not in remote._runs


def test_the_command(folder: Path, tmp_path: Path, processes: DaskCluster) -> None:
    paths = [str(folder / "p.zarr"), "-q"]
    for options in ([], ["--dask", processes.client.scheduler.address]):
        out = str(tmp_path / f"{len(options)}.json")
        ended = run_forked("pavpu", *paths, "-o", out, *options, cwd=tmp_path)
        assert ended.status == 0, ended.stderr
        assert ended.stderr == ""
    one, other = (uqeval.Report.load(tmp_path / f"{n}.json") for n in (0, 2))
    assert without_times(one) == without_times(other)


def test_a_dask_that_cannot_be_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as without /proc."""
    (tmp_path / "distributed.py").write_text("raise RuntimeError('process PID not found')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "distributed", raising=False)
    words = r"`distributed` cannot be loaded: process PID not found\. Where /proc is not mounted"
    with pytest.raises(UsageError, match=words), DaskCluster("local:1"):
        pass
