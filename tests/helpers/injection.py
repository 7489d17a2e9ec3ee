"""Inject faults into commands, and check the result of each.

A command runs with `shim.c` loaded and armed: its k-th write, open, rename, fsync or unlink fails,
or kills it. Then it runs again at the same place without a fault.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked
import numpy as np
import small_stores as small
import small_videos
from command import environment
from number_stores import numbers
from PIL import Image

from uqeval.errors import StoreError, UqevalError
from uqeval.records.folder import Named
from uqeval.stores.states.saved import SavedStates
from uqeval.stores.zarr.writer import is_complete

HERE = Path(__file__).parent

OPERATIONS = ("write", "open", "rename", "fsync", "unlink")
KINDS = ("EIO", "ENOSPC", "KILL", "TERM")
_FIRED = 7
_WORDS = {"EIO": os.strerror(5), "ENOSPC": os.strerror(28)}
_TIMEOUT = 120

_WRITER = """
import numpy as np
from uqeval import PredictionWriter, UqevalError
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
try:
    options = dict(names=["a", "b"], samples=2, classes=3, size=(6, 8), resume=True)
    with PredictionWriter("out/w.zarr", overwrite=OVERWRITE, **options) as writer:
        for k, name in enumerate("ab"):
            probs = np.random.default_rng(k).dirichlet([1] * 3, (2, 6, 8))
            writer.add(name, probs.transpose(0, 3, 1, 2))
            writer.add_labels(name, np.zeros((6, 8), np.uint8))
except UqevalError as error:
    print(f"uqeval: {error}", file=sys.stderr, flush=True)
    import os; os._exit(2)
import os; os._exit(0)
"""

#: `uqeval demo`, with few and small images.
_DEMO = """
import sys
from uqeval.cli.start import main
from uqeval.usecases.demo import demo
demo.__kwdefaults__.update(items=2, samples=2, size=(64, 96))
sys.argv = ["uqeval", "demo", "out/demo", "-q"]
main()
"""

#: `uqeval selftest`, with the only group of checks that writes files.
_SELFTEST = """
import sys
from uqeval.cli.start import main
from uqeval.usecases.selftest import selftest
selftest.__defaults__ = (("codecs",), *selftest.__defaults__[1:])
sys.argv = ["uqeval", "selftest", "-o", "out/s.json", "-q"]
main()
"""


@dataclass(frozen=True)
class Case:
    """A command, run in a folder with `in/`; `outputs` are what it leaves."""

    name: str
    arguments: tuple[str, ...]
    outputs: tuple[str, ...] = ()
    again: bool = True
    environment: Mapping[str, str] = field(default_factory=dict)


def _evaluating(name: str, *paths: str) -> Case:
    outputs = ("out/r.json", "out/r.states.zip", "out/i.csv")
    return Case(name, (name, *paths, "-o", outputs[0], "--csv", outputs[2], "-q"), outputs)


def _cases() -> Iterator[Case]:
    yield _evaluating("pavpu", "in/complete.zarr")
    yield _evaluating("calibration", "in/preds.zarr", "in/labels")
    yield _evaluating("failure", "in/complete.zarr", "--map-cache", "out/maps", "--ci", "0.9")
    yield _evaluating("sparsification", "in/complete.zarr", "--memory", "1MB")
    yield _evaluating("divergence", "in/preds.zarr", "in/complete.zarr")
    yield _evaluating("ood", "in/complete.zarr", "--ood-mask", "1")
    yield _evaluating("annotators", "in/raters.zarr")
    yield _evaluating("regression", "in/numbers.npz")
    yield _evaluating("nmerci", "in/numbers.npz")
    yield _evaluating("conformal", "in/preds.zarr", "in/labels", "--fit-on", "in/fit.txt",
                      "--alpha", "0.5")  # fmt: skip
    yield Case(
        "sweep", ("sweep", "in/complete.zarr", "--repeats", "2", "-o", "out/r.json", "-q"),
        ("out/r.json",),
    )  # fmt: skip
    yield _evaluating("tc", "in/video", "--flow-cache", "out/flow")
    yield Case("observe", ("observe", "in/video", "-o", "out/lines.jsonl"), ("out/lines.jsonl",))
    yield Case("select", ("select", "in/r.json", "-o", "out/s.csv"), ("out/s.csv",))
    yield Case(
        "merge", ("merge", "in/r.json", "--ci", "0.9", "-o", "out/r.json", "-q"),
        ("out/r.json", "out/r.states.zip"),
    )  # fmt: skip
    yield Case(
        "gate", ("gate", "in/r.json", "in/rules.yaml", "-o", "out/v.json", "--junit", "out/v.xml",
                 "--markdown", "out/v.md"), ("out/v.json", "out/v.xml", "out/v.md"),
    )  # fmt: skip
    yield Case("compare", ("compare", "in/r.json", "in/s.json", "-o", "out/c.csv"), ("out/c.csv",))
    yield Case(
        "report", ("report", "in/r.json", "-o", "out/r.html", "--figures", "out/figures",
                   "--predictions", "in/complete.zarr", "--gallery", "1"),
        ("out/r.html", "out/figures"),
    )  # fmt: skip
    yield Case("run", ("run", "in/uqeval.yaml", "-o", "out/run", "-q"), ("out/run",))
    yield Case(
        "reduce", ("reduce", "in/complete.zarr", "-o", "out/m.zarr", "--overwrite"), ("out/m.zarr",)
    )
    yield Case(
        "convert", ("convert", "in/softmax.npy", "out/c.zarr", "--overwrite"), ("out/c.zarr",)
    )
    yield Case(
        "gallery", ("report", "in/t.json", "-o", "out/r.html", "--gallery", "1",
                    "--video", "in/video"), ("out/r.html",),
    )  # fmt: skip
    yield Case("inspect", ("inspect", "in/complete.zarr", "--full"))
    yield Case("schema", ("schema",))
    yield Case("warmup", ("warmup", "gate"))
    yield Case("selftest", ("-c", _SELFTEST), ("out/s.json",))
    yield Case(
        "verify", ("verify", "in/r.json", "in/complete.zarr", "-o", "out/v.json"), ("out/v.json",)
    )
    yield Case(
        "evidence", ("evidence", "in/r.json", "--selftest", "in/selftest.json", "--verify",
                     "in/verification.json", "-o", "out/evidence", "-q"), ("out/evidence",),
    )  # fmt: skip
    yield Case("demo", ("-c", _DEMO), ("out/demo",), again=False)
    for overwrite in (False, True):
        yield Case(
            "writer, overwrite" if overwrite else "writer",
            ("-c", _WRITER.replace("OVERWRITE", str(overwrite))), ("out/w.zarr",),
        )  # fmt: skip


CASES = {case.name: case for case in _cases()}


def build_shim(folder: Path) -> Path:
    """Compile the shim; `FileNotFoundError` where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no C compiler (cc, gcc)")
    library = folder / "shim.so"
    command = [
        compiler,
        "-shared",
        "-fPIC",
        "-O1",
        "-o",
        str(library),
        str(HERE / "shim.c"),
        "-ldl",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return library


def forking(library: Path) -> forked.Parent:
    """A process that forks commands with the shim loaded."""
    return forked.Parent(environment(GITHUB_ACTIONS="", LD_PRELOAD=str(library)))


def make_inputs(folder: Path, parent: forked.Parent, of_evidence: bool) -> None:
    """All that the commands read. `of_evidence`: also what evidence and the gallery read."""
    folder.mkdir(parents=True)
    small.save_complete(folder / "complete.zarr")
    small.save_predictions(folder / "preds.zarr")
    raters = np.stack([small.labels(seed=seed) for seed in range(2)], axis=1)
    small.save(folder / "raters.zarr", {"probs": small.probs(), "labels": raters})
    small.save_label_folder(folder / "labels")
    np.savez(folder / "numbers.npz", allow_pickle=False, **numbers())
    np.save(folder / "softmax.npy", small.probs())
    film = small_videos.video(small_videos.numbered(3))
    for kind in ("frames", "predictions", "labels"):
        (folder / "video" / kind).mkdir(parents=True)
        for name, image in getattr(film, kind).items():
            Image.fromarray(image).save(folder / "video" / kind / f"{name}.png")
    (folder / "fit.txt").write_text("\n".join(small.NAMES[:2]))
    (folder / "rules.yaml").write_text("pavpu.pavpu: {min: 0.001, confidence: 0.9}\n")
    (folder / "uqeval.yaml").write_text(
        "stores: {a: {predictions: complete.zarr}, b: {predictions: numbers.npz}}\n"
        "evaluate:\n  a: {pavpu: {}}\n  b: {regression: {}}\ngate: {a/pavpu.pavpu: {min: 0.001}}\n"
    )
    # A gate draws as often as the intervals of its report.
    pavpu = "pavpu complete.zarr -q --ci 0.8 --draws 100"
    commands = [f"{pavpu} --window 4 -o r.json", f"{pavpu} --window 8 -o s.json"]
    if of_evidence:
        commands += [
            "tc video -q -o t.json", "verify r.json complete.zarr -o verification.json",
            "selftest -q -o selftest.json",
        ]  # fmt: skip
    for command in commands:
        status, _, stderr = parent.run(command.split(), folder, environment(), _TIMEOUT)
        assert status == 0, stderr


@dataclass
class Injection:
    """One fault in one run of a command, and its outcome."""

    case: Case
    operation: str
    k: int
    kind: str
    old: bool
    outcome: str = ""
    defects: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        old = "over an older output" if self.old else "at a new place"
        return f"{self.case.name}, {old}: {self.kind} at {self.operation} {self.k}"


class Bench:
    """Runs injections in folders below `root`."""

    def __init__(self, root: Path, parent: forked.Parent, of_evidence: bool = True) -> None:
        self.root, self._parent = root, parent
        self.inputs = root / "inputs"
        if not self.inputs.exists():
            make_inputs(self.inputs, parent, of_evidence)
        self._before = _contents(self.inputs)
        self._references: dict[tuple[str, bool], tuple[Path, list[int]]] = {}
        self._number = 0

    def counts(self, case: Case, old: bool) -> dict[str, int]:
        """How many calls of each operation the command makes."""
        return dict(zip(OPERATIONS, self._reference(case, old)[1], strict=False))

    def run(self, injection: Injection) -> Injection:
        """Inject one fault and check the result; set `outcome` and `defects`."""
        case, place = injection.case, self._place(injection.case, injection.old)
        reference = self._reference(case, injection.old)[0]
        at = f"{injection.operation} {injection.k} {injection.kind}"
        status, out, told, counts = self._execute(case, place, at)
        defects = injection.defects
        if not counts[_FIRED]:
            injection.outcome = "not reached"
        elif status == -9:
            injection.outcome = "killed"
        elif injection.kind == "TERM" and status == 143:
            injection.outcome = "terminated"
        else:
            injection.outcome = {0: "survived", 2: "refused"}.get(status, f"status {status}")
        if injection.kind == "KILL" and counts[_FIRED] and status != -9:
            defects.append(f"status {status} though killed")
        failed_check = case.name == "selftest" and status == 3 and _WORDS["EIO"] in told
        if status not in (0, 2, -9, 143) and not failed_check:
            defects.append(f"status {status}: {told[-300:]}")
        if "Traceback" in told + out:
            defects.append(f"traceback: {told[-600:]}")
        if status == 2 and injection.kind in _WORDS:
            if _WORDS[injection.kind] not in told:
                defects.append(f"message without the errno's text: {told!r}")
            if not any(part in told for part in _names(place)):
                defects.append(f"message names no file: {told!r}")
        if status != -9 and (injection.operation, injection.kind) != ("unlink", "EIO"):
            left = [own.name for own in (place / "tmp").iterdir()]
            if left:
                defects.append(f"temporary files left: {left}")
        if _contents(place / "in") != self._before:
            defects.append("an input was changed")
        for name in case.outputs:
            found = place / name
            if case.name == "run" and status == 2:  # a store that failed is in the verdicts
                (found / "verdicts.json").unlink(missing_ok=True)
            good = [reference / name] + ([self._old(case) / name] if injection.old else [])
            if not found.exists():
                if injection.old and status != 0:
                    defects.append(f"{name}: the older output is gone")
                elif status == 0:
                    defects.append(f"{name}: status 0 and no output")
                continue
            if failed_check or (case.name == "demo" and status != 0):
                continue
            if case.name == "writer" and status != 0 and is_complete(found) is False:
                continue  # the message says it, and the next run continues
            wrong = [_difference(found, one) for one in good]
            if None not in wrong and not (case.name == "observe" and status != 0):
                defects.append(f"{name}: {wrong[0]}")
        defects += _mixed(place / "out", killed=status == -9)
        self._check_again(case, place, reference, defects)
        if not defects:
            shutil.rmtree(place)
        return injection

    def _check_again(self, case: Case, place: Path, reference: Path, defects: list[str]) -> None:
        if case.name == "demo" and (place / "out/demo/out/index.html").exists():
            return
        status, _, told, _ = self._execute(case, place, "")
        if status != 0:
            defects.append(f"the next run ends with {status}: {told[-300:]}")
            return
        for name in case.outputs:
            if difference := _difference(place / name, reference / name, after=True):
                defects.append(f"after the next run, {name}: {difference}")
        wanted = {own.relative_to(reference) for own in (reference / "out").rglob("*")}
        left = {own.relative_to(place) for own in (place / "out").rglob("*")} - wanted
        left = {own for own in left if own.parts[1] not in ("maps", "flow")}
        # Python itself tests the temporary folder with a file of a random name.
        left |= {own.relative_to(place) for own in (place / "tmp").glob("uqeval-*")}
        if left:
            defects.append(f"left after the next run: {sorted(map(str, left))[:4]}")

    def _old(self, case: Case) -> Path:
        return self.root / f"older {case.name}"

    def _reference(self, case: Case, old: bool) -> tuple[Path, list[int]]:
        """Return the folder of a run without faults, and its calls."""
        if (case.name, old) not in self._references:
            place = self._place(case, old)
            status, _, told, counts = self._execute(case, place, "")
            assert status == 0, (case.name, status, told)
            self._references[case.name, old] = place, counts
        return self._references[case.name, old]

    def _place(self, case: Case, old: bool) -> Path:
        self._number += 1
        place = self.root / f"run{self._number}"
        shutil.copytree(self.inputs, place / "in")
        (place / "tmp").mkdir()
        if not old:
            (place / "out").mkdir()
            return place
        if not self._old(case).exists():
            shutil.copytree(self._reference(case, False)[0] / "out", self._old(case) / "out")
            for name in case.outputs:
                _age(self._old(case) / name)
        shutil.copytree(self._old(case) / "out", place / "out")
        return place

    def _execute(self, case: Case, place: Path, at: str) -> tuple[int, str, str, list[int]]:
        counts = place.parent / f"{place.name}.counts"
        counts.write_bytes(bytes(64))
        armed = environment(
            FAULT_FOLDER=str(place), FAULT_COUNTS=str(counts), FAULT_AT=at,
            TMPDIR=str(place / "tmp"), GITHUB_ACTIONS="", LD_PRELOAD="",
        )  # fmt: skip
        given = list(case.arguments)
        own = armed | dict(case.environment)
        ended = self._parent.run(given, place, own, _TIMEOUT)
        found = list(struct.unpack("8q", counts.read_bytes()))
        counts.unlink()
        return (*ended, found)


def _contents(folder: Path) -> dict[str, bytes]:
    files = (own for own in sorted(folder.rglob("*")) if own.is_file())
    return {str(own.relative_to(folder)): own.read_bytes() for own in files}


def _names(place: Path) -> list[str]:
    return ["in/", "out/", "stdout", str(place)]


def _age(path: Path) -> None:
    """Replace an output by another valid one."""
    if path.is_dir() and (path / "zarr.json").exists():
        (path / "older").touch()
    elif path.is_dir():
        for own in path.iterdir():
            _age(own)
    elif path.suffix in (".json", ".csv", ".md", ".html", ".xml", ".svg", ".jsonl"):
        path.write_text(path.read_text() + "\n")


def _difference(found: Path, wanted: Path, after: bool = False) -> str | None:
    """Return the difference of an output from another one; None if they are equal."""
    if found.is_dir():
        if (wanted / "zarr.json").exists():
            there = _contents(found)
            if not after:  # a writer that was killed has not removed its own folder
                there = {k: v for k, v in there.items() if not k.startswith(".uqeval/")}
            return None if there == _contents(wanted) else "another store, or half of one"
        hidden = [own.name for own in found.iterdir() if own.name.startswith(".")]
        for own in found.iterdir():
            if own.name in hidden or own.name.endswith(".old"):
                continue
            if not (wanted / own.name).exists():
                return f"{own.name} is unexpected"
            if text := _difference(own, wanted / own.name, after):
                return f"{own.name}: {text}"
        return None
    if not found.exists():
        return "is not there"
    try:
        return None if _content(found) == _content(wanted) else "another content"
    except (ValueError, UqevalError) as error:
        return f"cannot be read: {error}"


def _content(path: Path) -> Any:
    read: dict[str, Callable[[Path], Any]] = {
        ".json": lambda own: _timeless(json.loads(own.read_text()), "demo" in own.parts),
        ".jsonl": lambda own: [_timeless(json.loads(x)) for x in own.read_text().split("\n") if x],
        ".zip": lambda own: (SavedStates(own).index["items"], SavedStates(own).parameters()),
        ".html": lambda own: own.read_text().rstrip()[-7:],
        ".svg": lambda own: own.read_text().rstrip()[-6:],
        ".xml": lambda own: own.read_text().rstrip()[-13:],
        ".md": lambda own: _TIME.sub("", own.read_text().rstrip()),
    }
    reader = read.get(path.suffix)
    return path.read_bytes().rstrip() if reader is None else reader(path)


#: Times and checksums in a text.
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z|[0-9a-f]{64}")
#: Keys of JSON files whose values differ between two runs.
_TIMES = {
    "timing", "states_digest", "latency_ms", "read", "uqeval_version", "sha256", "finished",
    "seconds", "seconds_by_group", "timestamp", "serialNumber", "checksum",
}  # fmt: skip


def _timeless(value: Any, new_inputs: bool = False) -> Any:
    """Return a JSON value without times. `new_inputs`: the run made its inputs itself, and their
    fingerprints contain the times of the files."""
    if isinstance(value, dict):
        left_out = _TIMES | ({"fingerprint"} if new_inputs else set())
        return {k: _timeless(v, new_inputs) for k, v in value.items() if k not in left_out}
    if isinstance(value, list):  # a cache that cannot be written causes only a warning
        return [_timeless(v, new_inputs) for v in value if "items are not cached: " not in str(v)]
    return value


def _mixed(folder: Path, killed: bool) -> list[str]:
    """Return the problem if states do not belong to the report beside them.

    Only a killed run may leave such states, and only if the report's own states still exist under
    their other name.
    """
    found = []
    for report in folder.rglob("*.json"):
        try:
            Named.load(report)
        except StoreError as error:
            if "are not the states" in str(error) and not (killed and "mv " in str(error)):
                found.append(f"a report beside states of another run: {error}")
    return found
