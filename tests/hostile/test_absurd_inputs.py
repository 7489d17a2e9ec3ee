"""Absurd inputs end with status 2 and a short message, whichever command reads them."""

from __future__ import annotations

import copy
import json
import shutil
import struct
import warnings
from pathlib import Path
from typing import Any

import forged
import numpy as np
import pytest
from command import EXECUTABLE, environment, refused, run_forked
from small_stores import save_complete

import uqeval
from uqeval.config import load_config
from uqeval.errors import UqevalError, all_listed, cut, listed, number_flaw, quoted
from uqeval.gate.saved_verdicts import load_verdicts
from uqeval.metrics.failure_columns import best_aurc, harmonic
from uqeval.records.folder import load_reports
from uqeval.stores.files.numpy_files import open_npy
from uqeval.stores.names import read_names_file
from uqeval.stores.states.blocks import PackedItems
from uqeval.stores.states.entries import block_of
from uqeval.stores.zarr.group import open_zarr

DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_complete(tmp_path_factory.mktemp("absurd") / "s.zarr")


def changed(store: Path, key: str, change: Any) -> Any:
    """Return the error of opening a store with a changed document at `key`."""
    path = store / key
    before = path.read_bytes()
    try:
        document = change(json.loads(before))
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        with pytest.raises(UqevalError) as found:
            group = open_zarr(str(store))
            raise group.unreadable["probs"]
        return str(found.value)
    finally:
        path.write_bytes(before)


@pytest.mark.parametrize(
    ("key", "change", "says"),
    [
        ("zarr.json", lambda d: d | {"attributes": [1]}, "expected an object"),
        ("zarr.json", lambda d: d | {"attributes": "x" * 9999}, "more)…"),
        ("zarr.json", lambda d: '{"a": ' + DEEP, "nested too deeply"),
        ("probs/zarr.json", lambda d: '{"a": ' + DEEP, "nested too deeply"),
        ("probs/zarr.json", lambda d: d | {"attributes": 3}, "expected an object"),
        ("probs/zarr.json", lambda d: d | {"dimension_names": [1, 2, 3, 4, 5]}, "list of names"),
        (
            "probs/zarr.json",
            lambda d: (
                d
                | {"chunk_key_encoding": {"name": "default", "configuration": {"separator": True}}}
            ),
            "expected '/' or '.'",
        ),
    ],
)
def test_metadata(store: Path, key: str, change: Any, says: str) -> None:
    message = changed(store, key, change)
    assert says in message
    assert len(message) < 600


@pytest.mark.parametrize("header", [b"{'descr': '<f4', 'shape': (", b"{'descr': [", b"(" * 5000])
def test_npy_headers(header: bytes, tmp_path: Path) -> None:
    path = tmp_path / "p.npy"
    head = header.ljust(6000)
    path.write_bytes(b"\x93NUMPY\x02\x00" + len(head).to_bytes(4, "little") + head)
    with pytest.raises(UqevalError, match="is not a NumPy file"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        open_npy(str(path))


@pytest.mark.parametrize(
    "read",
    [uqeval.Report.load, load_verdicts, load_reports, read_names_file],
    ids=["report", "verdicts", "reports", "names"],
)
def test_json_that_is_nested_deeply(read: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(DEEP)
    with pytest.raises(UqevalError, match="nested too deeply"):
        read(path)


@pytest.mark.parametrize("read", [uqeval.Report.load, load_verdicts, load_reports])
def test_json_with_a_key_twice(read: Any, tmp_path: Path) -> None:
    """A person who reads the file sees another value than the program that takes the last."""
    path = tmp_path / "x.json"
    path.write_text('{"results": {"ece": 0.01, "mce": 0.2, "ece": 0.5}}')
    with pytest.raises(UqevalError, match="the key 'ece' is there twice"):
        read(path)


def test_yaml_bombs(tmp_path: Path) -> None:
    path = tmp_path / "u.yaml"
    bomb = "a: &a [x]\n" + "".join(
        f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    for text in (DEEP, "{a: " * 3_000, bomb, "- " * 3_000):
        path.write_text(text)
        with pytest.raises(UqevalError) as found:
            load_config(path)
        assert len(str(found.value)) < 500


@pytest.mark.parametrize("value", [10**20, float("inf"), float("nan"), -(10**20), 2**31])
@pytest.mark.parametrize("option", ["stride", "window", "accuracy_threshold"])
def test_numbers_that_no_option_can_mean(value: float, option: str, tmp_path: Path) -> None:
    assert number_flaw(option, [3, value]) is not None
    with pytest.raises(UqevalError, match=f"^{option}[= ]"):
        uqeval.evaluate(
            np.full((1, 2, 8, 8), 0.5, "f4"), np.zeros((1, 8, 8), "u1"), {"pavpu": {option: value}}
        )
    spelled = {"inf": ".inf", "nan": ".nan"}.get(str(value), str(value))
    path = tmp_path / "u.yaml"
    path.write_text(
        f"stores: {{a: {{predictions: p}}}}\nevaluate: {{a: {{pavpu: {{{option}: {spelled}}}}}}}\n"
    )
    with pytest.raises(UqevalError, match=rf"u\.yaml:2: evaluate\.a\.pavpu\.{option}: "):
        load_config(path)


def test_seeds_and_values_of_the_data_may_be_large() -> None:
    assert number_flaw("seed", 2**63 - 1) is None
    assert number_flaw("invalid", float("nan")) is None
    assert number_flaw("window", True) is None


def test_lists_have_whole_names() -> None:
    names = [f"array_of_the_network_{i:02}" for i in range(30)]
    assert listed(names[:5]) == all_listed(names[:5]) == ", ".join(names[:5])
    assert listed(names) == ", ".join(names[:5]) + " and 25 more"
    text, _, more = all_listed(names).partition(" and ")
    whole = text.split(", ")
    assert whole == names[: len(whole)] and more == f"{30 - len(whole)} more"
    assert 200 - len(names[0]) - len(", ") < len(text) <= 200
    assert all_listed(iter(["a" * 90, "b" * 108, "c"])) == f"{'a' * 90}, {'b' * 108} and 1 more"
    assert all_listed([]) == listed([]) == ""


@pytest.mark.parametrize(
    "hostile",
    ["A" * 9999, "a b " * 999, "a, b; c. " * 999, "\x1b[31m" * 999, "'" * 9999,
     "\ud800\u202e\n" * 999, forged.VARIED, [forged.VARIED] * 9, {forged.VARIED: 1},
     Path("a b/" * 999)],
)  # fmt: skip
def test_messages_repeat_little(hostile: object) -> None:
    for text in (cut(hostile), quoted(hostile), listed([hostile] * 2), all_listed([hostile] * 2)):
        assert len(text) < 220 and "more)…" in text and not forged.repeated(text)
        assert text.isprintable()
        assert str(UqevalError(text)) == text
    assert str(UqevalError(f"x\x1b[2J{'y' * 999}")) == rf"x\x1b[2J{'y' * 999}"


def test_a_page_of_reports_without_the_path_of_a_store(store: Path) -> None:
    from uqeval.report.page.html import to_html

    report = uqeval.evaluate(store, None, ["segmentation"], workers=1)
    other = copy.deepcopy(report)
    del other.inputs["predictions"][0]["path"]
    assert "<td>–</td>" in to_html({"a": report, "b": other})


def test_harmonic_numbers_take_no_loop_over_counts() -> None:
    assert harmonic(2, 4) == pytest.approx(1 / 3 + 1 / 4)
    assert 0 < best_aurc(2**52, 2**51) < 1
    for a, b in ((-(10**12), 10), (11, 10)):
        with pytest.raises(ValueError, match="harmonic"):
            harmonic(a, b)


def forged_report(store: Path, name: str, entry: str, change: Any) -> Path:
    """A report beside states of which an entry was changed, every checksum fitting again."""
    folder = store.parent
    whole, path = folder / "whole.states.zip", folder / f"{name}.json"
    if not whole.exists():
        report = uqeval.evaluate(store, None, ["pavpu", "segmentation"], states=whole, workers=1)
        report.save(folder / "whole.json")
    entries = forged.entries_of(whole)
    if (block := block_of(entry)) is not None:
        states = PackedItems(entries[entry], block[2]).states(10**6)
        entries[entry] = PackedItems.of([change(states[0]), *states[1:]]).data
    else:
        entries[entry] = change(entries[entry])
    digest = forged.write_entries(folder / f"{name}.states.zip", entries)
    record = json.loads((folder / "whole.json").read_bytes())
    record |= {"states": f"{name}.states.zip", "states_digest": digest}
    path.write_text(json.dumps(record))
    return path


def of_index(**changes: Any) -> Any:
    """Change keys of an index, or drop those that are None."""

    def change(data: bytes) -> bytes:
        index = json.loads(data) | changes
        return json.dumps({k: v for k, v in index.items() if v is not None}).encode()

    return change


def negative(data: bytes) -> bytes:
    """Make the first count of a state -10⁹."""
    return data[:4] + struct.pack("<q", -(10**9)) + data[12:]


@pytest.mark.parametrize(
    ("name", "entry", "change", "says"),
    [
        ("count", "0/0-2", negative, "damaged or forged: class_counts.labelled holds the count -1"),
        ("settings", "index.json", of_index(settings=None), "`settings` is missing"),
        ("range", "index.json", of_index(metrics={"pavpu.pavpu": {"range": ["x" * 999, 1]}}),
         "expected a number"),
        ("direction", "index.json", of_index(metrics={"pavpu.pavpu": {"direction": "up"}}),
         "'up'; expected one of higher, lower"),
    ],
)  # fmt: skip
def test_merge_of_forged_states(name: str, entry: str, change: Any, says: str, store: Path) -> None:
    forged_report(store, name, entry, change)
    message = refused(run_forked("merge", f"{name}.json", "-o", "-", cwd=store.parent))
    assert says in message
    assert len(message) < 600


def test_a_report_beside_states_of_another_run(store: Path, tmp_path: Path) -> None:
    """Refused by every command that takes a report, also where it does not read the states."""
    path = forged_report(store, "moved", "index.json", lambda data: data)
    (tmp_path / "gate.yaml").write_text("pavpu.pavpu: {min: 0.001}\n")
    shutil.copy(path, tmp_path / "moved.json")
    alone = run_forked("gate", "moved.json", "gate.yaml", cwd=tmp_path)  # without the states
    assert alone.status == 0
    other = uqeval.evaluate(store, None, ["pavpu"], states=tmp_path / "moved.states.zip", workers=1)
    assert other.states_digest != json.loads(path.read_bytes())["states_digest"]
    for command in (
        ["gate", "moved.json", "gate.yaml"], ["gate", ".", "gate.yaml"], ["select", "moved.json"],
        ["report", "moved.json", "-o", "p.html"], ["compare", "moved.json", "moved.json"],
        ["merge", "moved.json"],
    ):  # fmt: skip
        refused(run_forked(*command, cwd=tmp_path), "are not the states of moved.json")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pavpu", "s.zarr", "--stride", str(10**20)], "--stride"),
        (["pavpu", "s.zarr", "--ci", "nan"], "--ci"),
        (["pavpu", "s.zarr", "-o", f"{'x' * 250}.json"], "too long"),
        (["pavpu", "s.zarr", "-o", "/dev/full"], "No space left"),
        (["pavpu", "s.zarr", "-o", "loop"], "loop cannot be written: Too many levels of symb"),
        (["reduce", "s.zarr", "-o", "loop"], "loop is not a Zarr store"),
        (["convert", "wide.npy", "c.zarr"], "has the shape (2, 4, 16, 0), which is empty along x"),
        (["convert", "wide", "c.zarr"], "claims to be 0 × 16 pixels"),
        (["pavpu", "s.zarr", "--names", "same.json"], "more)…"),
        (["pavpu", "s.zarr", "--threshold", "\x1b[31m" + "9" * 9999], "more)…"),
    ],
    ids=lambda v: str(v)[:40],
)
def test_commands(arguments: list[str], says: str, store: Path) -> None:
    if not (store.parent / "loop").is_symlink():
        (store.parent / "loop").symlink_to("loop")
    np.save(store.parent / "wide.npy", np.zeros((2, 4, 16, 0), np.float32))
    (store.parent / "wide").mkdir(exist_ok=True)
    header = struct.pack(">IIBBBBB", 0, 16, 8, 0, 0, 0, 0)
    (store.parent / "wide/a.png").write_bytes(
        b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + header + bytes(50)
    )
    (store.parent / "same.json").write_text(json.dumps(["a b " * 999] * 3))
    message = refused(run_forked(*arguments, cwd=store.parent))
    assert says in message
    assert "\x1b" not in message
    assert len(message) < 900


def test_a_working_folder_that_is_gone(store: Path, tmp_path: Path) -> None:
    import subprocess

    gone = tmp_path / "gone"
    gone.mkdir()
    script = f'cd "{gone}" && rmdir "{gone}" && exec "{EXECUTABLE}" run s.zarr'
    done = subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, check=False, env=environment()
    )
    assert done.returncode == 2, done.stderr
    assert "the working folder was removed" in done.stderr and "Traceback" not in done.stderr
