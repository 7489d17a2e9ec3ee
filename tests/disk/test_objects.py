"""Reports, states and tables at a server of objects: written whole, or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import object_server
import pytest
from command import Outcome, refused, run_forked
from object_server import SECRET, Fault, ObjectServer
from small_stores import CLASS_NAMES, NAMES, labels, probs, save

from uqeval.disk import object_access
from uqeval.disk.objects import ObjectFile
from uqeval.disk.staging import staging
from uqeval.errors import OutputError, StoreError, UsageError
from uqeval.stores.states.saved import SavedStates

pytest.importorskip("obstore")
SCHEMES = pytest.mark.parametrize("scheme", ["s3", "gs"])


@pytest.fixture(scope="module")
def preds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    attributes = {"class_names": CLASS_NAMES, "names": NAMES}
    arrays = {"probs": probs(), "labels": labels()}
    return save(tmp_path_factory.mktemp("local") / "preds.zarr", arrays, attributes)


@pytest.fixture
def server(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ObjectServer]:
    """An empty bucket; the environment has its address. Two retries, without a wait."""
    for retries in ("FIRST", "LATER"):
        monkeypatch.setattr(object_access, retries, {"max_retries": 2})
    with object_server.object_server() as served:
        account = served.google(tmp_path_factory.mktemp("account"))
        for name, value in (served.environment | account).items():
            monkeypatch.setenv(name, value)
        yield served


def uqeval_run(*arguments: str | Path, cwd: Path) -> Outcome:
    outcome = run_forked(*arguments, cwd=cwd)
    assert SECRET not in outcome.stdout + outcome.stderr
    return outcome


def test_commands_write_to_urls_and_read_from_them(
    server: ObjectServer, preds: Path, tmp_path: Path
) -> None:
    """The files are those of a local run; nothing in them shows the temporary folder."""
    for command, source, options in (
        ("failure", preds, ()),
        ("merge", "s3://bucket/runs/failure.json", ("--ci", "0.9", "--draws", "100")),
    ):  # fmt: skip
        outputs = (f"s3://bucket/runs/{command}.json", f"s3://bucket/{command}.csv")
        outcome = uqeval_run(
            command, source, *options, "-o", outputs[0], "--csv", outputs[1], "-q", cwd=tmp_path
        )
        assert outcome == Outcome(0, "", "")
    assert set(server.objects) == {
        "failure.csv", "merge.csv",
        *(f"runs/{name}.{end}" for name in ("failure", "merge") for end in ("json", "states.zip")),
    }  # fmt: skip
    whole, merged = (json.loads(server.objects[f"runs/{n}.json"]) for n in ("failure", "merge"))
    assert whole["results"]["failure"]["auroc"] == merged["results"]["failure"]["auroc"]
    rules = "failure.auroc: {min: 0.99}\nfailure.aurc: {max: 0.99, confidence: 0.9}\n"
    (tmp_path / "gate.yaml").write_text(rules)
    verdicts = ("-o", "s3://bucket/v.json", "--junit", "s3://bucket/v.xml")
    outcome = uqeval_run(
        "gate", "s3://bucket/runs/merge.json", "gate.yaml", *verdicts, cwd=tmp_path
    )
    assert outcome.status == 1, outcome.stderr
    assert json.loads(server.objects["v.json"])["report"] == "s3://bucket/runs/merge.json"
    both = ("s3://bucket/runs/failure.json", "s3://bucket/runs/merge.json")
    outcome = uqeval_run(
        "compare", *both, "--draws", "100", "-o", "s3://bucket/c.json", cwd=tmp_path
    )
    assert outcome.status == 0, outcome.stderr
    outcome = uqeval_run("report", both[1], "-o", "s3://bucket/p.html", cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    outcome = uqeval_run("select", both[0], cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    for key, data in server.objects.items():
        assert b"/objects/s3/" not in data and SECRET.encode() not in data, key
    assert [path.name for path in tmp_path.iterdir()] == ["gate.yaml"]


def test_shards_continue_from_their_states(
    server: ObjectServer, preds: Path, tmp_path: Path
) -> None:
    """As on a disk; the numbers are those of the whole run, and `verify` reads the report."""
    shards = [f"s3://bucket/parts/{k}/r.json" for k in (1, 2)]
    merge = ("merge", *(shard.replace(".json", ".states.zip") for shard in shards))
    fitted: tuple[str, ...] = ()
    for _ in range(6):
        for k, shard in enumerate(shards, 1):
            part = ("pavpu", preds, "--part", f"{k}/2", *fitted, "-o", shard)
            outcome = uqeval_run(*part, cwd=tmp_path)
            assert outcome.status == 0, outcome.stderr
            assert "uqeval merge --fit SHARDS -o fitted.json" in " ".join(outcome.stderr.split())
        outcome = uqeval_run(*merge, "--fit", "-o", "s3://bucket/fitted.json", cwd=tmp_path)
        fitted = ("--fitted", "s3://bucket/fitted.json")
        if outcome.stdout == "done\n":
            break
        assert outcome.status == 0, outcome.stderr
    assert outcome.stdout == "done\n"
    refused(
        uqeval_run("pavpu", preds, "--part", "1/2", *fitted, "-o", shards[0], cwd=tmp_path),
        "s3://bucket/fitted.json: all passes are counted",
    )
    assert uqeval_run(*merge, "-o", "s3://bucket/m.json", cwd=tmp_path).status == 0
    assert uqeval_run("pavpu", preds, "-o", "whole.json", "-q", cwd=tmp_path).status == 0
    whole = json.loads((tmp_path / "whole.json").read_text())
    assert json.loads(server.objects["m.json"])["results"] == whole["results"]
    outcome = uqeval_run("verify", "s3://bucket/m.json", preds, "--all", cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    (tmp_path / "u.yaml").write_text(f"stores: {{s: {{predictions: {preds}}}}}\n")
    refused(
        uqeval_run("run", "u.yaml", "--part", "1/2", *fitted, "-o", "s3://bucket/r", cwd=tmp_path),
        "s3://bucket/r is a URL, and the states of the previous round are read from a disk only",
    )


def test_small_files_are_read_from_urls(server: ObjectServer, preds: Path, tmp_path: Path) -> None:
    """Neither the report nor its states show the temporary folder."""
    outcome = uqeval_run("pavpu", preds, "-o", "s3://bucket/first.json", "-q", cwd=tmp_path)
    assert outcome.status == 0, outcome.stderr
    from_first = ("--threshold-from", "s3://bucket/first.json", "-o", "r.json", "-q")
    assert uqeval_run("pavpu", preds, *from_first, cwd=tmp_path).status == 0
    report = json.loads((tmp_path / "r.json").read_text())
    for record in (report, SavedStates.of_run(tmp_path / "r.states.zip").index):
        assert record["settings"]["pavpu"]["threshold_from"] == "s3://bucket/first.json"
    server.objects["items.csv"] = b"name,city\naachen,a\nbonn,b\ncelle,b\n"
    for command, source in (("pavpu", preds), ("merge", "r.json")):
        slices = (command, source, "--slices", "s3://bucket/items.csv", "-o", "s.json", "-q")
        assert uqeval_run(*slices, cwd=tmp_path) == Outcome(0, "", "")
        report = json.loads((tmp_path / "s.json").read_text())
        assert set(report["slices"]) == {"city=a", "city=b"}
    assert "/objects/s3/" not in (tmp_path / "s.json").read_text()
    server.objects["items.csv"] = b"name,city\naachen,a\n"
    refused(uqeval_run(*slices, cwd=tmp_path), "s3://bucket/items.csv: 2 of 3 items have no row")
    server.objects["gate.yaml"] = b"pavpu.pavpu: {min: 0.99}\n"
    gate = ("gate", "r.json", "s3://bucket/gate.yaml", "-o", "v.json")
    assert uqeval_run(*gate, cwd=tmp_path).status == 1
    verdicts = json.loads((tmp_path / "v.json").read_text())
    assert verdicts["rules"] == "s3://bucket/gate.yaml"
    server.objects["v.json"] = (tmp_path / "v.json").read_bytes()
    page = ("report", "r.json", "--verdicts", "s3://bucket/v.json", "-o", "page.html")
    assert uqeval_run(*page, cwd=tmp_path).status == 0
    server.objects["gate.yaml"] = b"pavpu.pavpo: {min: 0.99}\n"
    refused(uqeval_run(*gate, cwd=tmp_path), "s3://bucket/gate.yaml:1: pavpu.pavpo")


def test_refusals_leave_everything_as_it_was(
    server: ObjectServer, preds: Path, tmp_path: Path
) -> None:
    server.objects["r.json"] = b"{}"
    before = dict(server.objects)
    store = f"stores: {{s: {{predictions: {preds}}}}}\n"
    (tmp_path / "u.yaml").write_text(
        f"{store}evaluate: {{s: {{pavpu: {{}}}}}}\noutput: s3://bucket/r\n"
    )
    merge = ("merge", "s3://bucket/r.json", "-o", "s3://bucket/r.json")
    for arguments, says in (
        (merge, "s3://bucket/r.json is the input s3://bucket/r.json; give the output another"),
        (("failure", "s3://bucket/p", "-o", "s3://bucket/p/r.json"), "is inside the input s3://b"),
        (("failure", "s3a://bucket/p", "-o", "s3://bucket/p/r.json"), "is inside the input s3a://"),
        (("pavpu", "s3://bucket/p", "--map-cache", "s3://bucket/p/maps"), "is inside the input"),
        (("pavpu", f"file://{preds}"), f"is a file of this machine; give its path: {preds}"),
        (("failure", preds, "-o", "s3://bucket/x.json", "--resume"), "is a URL, and the states of"),
        (("failure", preds, "-o", "s3://bucket/a//b.json"), "without empty parts, '.' and '..'"),
        (("failure", preds, "-o", "s3://none/r.json"), "there is no such bucket"),
        (("failure", preds, "-o", f"s3://me:{SECRET}@bucket/r.json"), "contains credentials"),
        (
            ("failure", preds, "-o", "https://host/r.json"),
            "is a URL to which nothing can be written",
        ),
        (("reduce", preds, "-o", "s3://bucket/m.zarr"), "local"),
        (("run", "u.yaml"), "s3:/bucket/r is a URL, and a local folder is expected"),
        (("run", preds, "-o", "s3://bucket"), "s3://bucket holds objects already; expected a new"),
        (("demo", "s3://bucket/demo"), "is a URL, and a local folder is expected"),
        (
            ("gate", "s3://bucket/none.json"),
            "s3://bucket/none.json: there is no such object; expected a report or states",
        ),
        (
            ("gate", "r.json", "s3://bucket/none.yaml"),
            "no such object; expected a file of rules. Check the URL.",
        ),
        (
            ("pavpu", preds, "--slices", "s3://bucket/none.csv"),
            "no such object; expected a table of items. Check the URL.",
        ),
        (
            ("pavpu", preds, "--slices", "s3://bucket/i.csv", "-o", "s3://bucket/i.csv"),
            "s3://bucket/i.csv is the input s3://bucket/i.csv",
        ),
        (
            ("report", "r.json", "--verdicts", "s3://bucket/none.json"),
            "no such object; expected a file of verdicts. Check the URL.",
        ),
        (("select", "s3://bucket/r.json"), "s3://bucket/r.json"),
        (("failure", preds, "--bad", "-o", "s3://bucket/q.json"), "--bad"),
    ):
        refused(uqeval_run(*arguments, cwd=tmp_path), says)
    assert server.objects == before
    assert not any(key.startswith("PUT") for key in server.requests)
    assert [path.name for path in tmp_path.iterdir()] == ["u.yaml"]


def test_the_folder_of_a_run_is_new(server: ObjectServer, preds: Path, tmp_path: Path) -> None:
    """A store that fails leaves the others there; the second run needs another folder."""
    stores = f"stores: {{s: {{predictions: {preds}}}, t: {{predictions: none.zarr}}}}\n"
    (tmp_path / "u.yaml").write_text(
        f"{stores}evaluate: {{s: {{pavpu: {{}}}}, t: {{pavpu: {{}}}}}}\n"
    )
    run = ("run", "u.yaml", "-o", "s3://bucket/runs/8/", "-q")
    outcome = uqeval_run(*run, cwd=tmp_path)
    assert outcome.status == 2 and "none.zarr" in outcome.stderr
    names = {"index.html", "s.csv", "s.html", "s.json", "s.states.zip"}
    assert set(server.objects) == {f"runs/8/{name}" for name in names}
    order = [key.rpartition("/")[2] for key in server.requests if key.startswith("PUT")]
    assert order[0] == "s.states.zip" and order[-1] == "index.html"
    before = dict(server.objects)
    says = "s3://bucket/runs/8 holds objects already; expected a new folder for each run"
    refused(uqeval_run(*run, cwd=tmp_path), says)
    assert server.objects == before
    assert not any(b"/objects/s3/" in data for data in before.values())


@SCHEMES
def test_two_runs_do_not_mix(server: ObjectServer, scheme: str, tmp_path: Path) -> None:
    """The second of two runs at one URL changes neither the report nor the states."""
    with staging() as first, staging() as second:
        for staged, text in ((first, "first"), (second, "second")):
            path = Path(staged.output(f"{scheme}://bucket/r.json"))
            path.write_text(text)
            path.with_name("r.states.zip").write_text(f"{text} states")
        first.put()
        refused(
            second.put, f"{scheme}://bucket/r.states.zip: another process wrote it during this run"
        )
    assert server.objects == {"r.json": b"first", "r.states.zip": b"first states"}
    with staging() as third:  # a later run replaces both
        path = Path(third.output(f"{scheme}://bucket/r.json"))
        path.write_text("third")
        third.put()
    assert server.objects == {"r.json": b"third", "r.states.zip": b"first states"}


@SCHEMES
def test_an_object_that_was_deleted_meanwhile(server: ObjectServer, scheme: str) -> None:
    server.objects["r.json"] = b"old"
    with staging() as staged:
        Path(staged.output(f"{scheme}://bucket/r.json")).write_text("new")
        del server.objects["r.json"]
        refused(staged.put, "another process wrote it", error=OutputError)
    assert not server.objects


@SCHEMES
@pytest.mark.parametrize("status", [500, 503, 504])
def test_a_write_is_repeated_also_if_only_its_answer_was_lost(
    server: ObjectServer, scheme: str, status: int, tmp_path: Path
) -> None:
    server.fault = lambda key, number: Fault(status) if key[:3] == "PUT" and not number else None
    (tmp_path / "r").write_text("text")
    ObjectFile(f"{scheme}://bucket/r.json", OutputError).replace(tmp_path / "r", None)
    assert server.objects["r.json"] == b"text"


def test_a_server_that_fails_for_good(server: ObjectServer, tmp_path: Path) -> None:
    server.fault = lambda key, number: Fault(500)
    file = ObjectFile("s3://bucket/r.json", OutputError)
    refused(file.version, "the server answers 500", error=OutputError)
    (tmp_path / "r").write_text("text")
    refused(lambda: file.replace(tmp_path / "r", None), "cannot be written", error=OutputError)


def test_an_object_is_measured_before_it_is_fetched(server: ObjectServer) -> None:
    server.objects["r.json"] = bytes(1000)
    says = "s3://bucket/r.json has 1,000 bytes; expected at most 999"
    refused(lambda: ObjectFile("s3://bucket/r.json").read(999), says, error=StoreError)
    assert ObjectFile("s3://bucket/r.json").read(1000) == bytes(1000)
    assert ObjectFile("s3://bucket/none").read(1) is None
    for url in ("s3://bucket/folder/", "s3://bucket"):
        refused(lambda url=url: ObjectFile(url), "names no object", error=StoreError)
    with staging() as staged:
        refused(lambda: staged.output("s3://bucket/../r.json"), "'..'", error=UsageError)
