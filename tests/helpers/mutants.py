"""Seeded mutants of all kinds of input files, changed at random or on purpose.

`TARGETS` lists the files of a folder of small inputs, how each is changed, and the commands that
read it.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import random
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import forged
from small_stores import save

from uqeval.stores.compression import compressed, decompressed
from uqeval.stores.states.entries import pack_text

Mutate = Callable[[bytes, random.Random], bytes]
ChangeFile = Callable[[Path, random.Random], None]

#: Replacements of a value of a document.
NASTY: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 10**6, 10**12, 2**63, -(10**9), 10**300, 1.5, 1e308, -1e308,
    float("nan"), float("inf"), "", "x", "\x1b[31mred\x07", "A" * 5000, "a b " * 2000,
    "<script>alert(1)</script>", "../../etc/passwd", [], {}, [[]], [1, 2], {"a": 1}, [None],
    "\ud800", forged.VARIED,
)  # fmt: skip
NUMBERS = (0, 1, -1, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
DEEP = 100_000


def of_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, cut, drop, double, zero or fill in some bytes; put an odd number somewhere."""
    if not data:
        return bytes(rng.randrange(256) for _ in range(8))
    held = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5, 20))):
        at, size = rng.randrange(len(held) or 1), rng.choice((1, 2, 4, 16, 64))
        what = rng.randrange(7)
        if what == 0 and held:
            held[at % len(held)] ^= 1 << rng.randrange(8)
        elif what == 1:
            del held[at : at + size]
        elif what == 2:
            held[at:at] = held[at : at + size]
        elif what == 3:
            held[at : at + size] = bytes(len(held[at : at + size]))
        elif what == 4:
            held[at : at + size] = rng.randbytes(size)
        elif what == 5:
            order = rng.choice("<>")
            held[at : at + 4] = struct.pack(f"{order}I", rng.choice(NUMBERS) & 0xFFFFFFFF)
        elif rng.random() < 0.3:
            del held[at:]
    return bytes(held)


def of_head(size: int) -> Mutate:
    """Change the first bytes of a file: its header."""
    return lambda data, rng: of_bytes(data[:size], rng) + data[size:]


def of_text(data: bytes, rng: random.Random) -> bytes:
    """Replace a word of a text by an odd one, or change its bytes."""
    if rng.random() < 0.3:
        return of_bytes(data, rng)
    words = data.split(b" ")
    odd = (
        b"", b"{", b"[", b"(", b"'", b'"', b"-1", b"1e999", b".nan", b".inf", b"9" * 20,
        b"&a", b"*a", b"!!python/object:os.system", b"\x00", b"\x1b[2J", b"\xff\xfe", b"- " * 500,
        b"A" * 5000, forged.VARIED.encode(),
        b"{a: " * 200, b"[" * 2000, b"None", b"True", b"a,b,c", b"\n", b"..", b"'|O'",
    )  # fmt: skip
    words[rng.randrange(len(words))] = rng.choice(odd)
    return b" ".join(words)


def of_json(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop or double a value of a JSON document, or nest it deeply."""
    draw = rng.random()
    if draw < 0.05:
        return of_bytes(data, rng)
    if draw < 0.07:
        return rng.choice((b"[" * DEEP, b'{"a":' * DEEP, b"[" * DEEP + b"]" * DEEP))
    document = json.loads(data)
    if draw < 0.1:
        nested = json.dumps(document)[:-1] + ', "deep": ' + "[" * DEEP + "]" * DEEP + "}"
        return nested.encode()
    for _ in range(rng.choice((1, 1, 2))):
        places = list(_places(document))
        if not places:
            break
        # Choose the depth first, because few entries are near the top and they matter as much.
        depth = rng.choice(sorted({len(place) for place in places}))
        place = rng.choice([own for own in places if len(own) == depth])
        holder = document
        for key in place[:-1]:
            holder = holder[key]
        if rng.random() < 0.2:
            del holder[place[-1]]
        elif rng.random() < 0.2 and isinstance(holder, list):
            holder.append(holder[place[-1]])
        else:
            holder[place[-1]] = rng.choice(NASTY)
    return json.dumps(document).encode()


def _places(value: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    keys: Any = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(min(len(value), 20))
    for key in keys:
        yield (*above, key)
        yield from _places(value[key], (*above, key))


def of_states(path: Path, rng: random.Random) -> None:
    """Change one entry of a states file, and let checksums fit again nine times in ten."""
    if rng.random() < 0.1:
        path.write_bytes(of_bytes(path.read_bytes(), rng))
        return
    entries = forged.entries_of(path)
    index = rng.random() < 0.6
    name = "index.json" if index else rng.choice([n for n in entries if n != "index.json"])
    if name.endswith(".json"):
        entries[name] = of_json(entries[name], rng)
    else:
        raw = decompressed(entries[name], 1 << 30, exactly=False)
        if rng.random() < 0.7 and len(raw) > 12:  # a count
            at = 4 + 8 * rng.randrange(max((len(raw) - 4) // 8, 1))
            value = rng.choice((-(10**9), -1, 0, 1, 10**6, 10**9, 2**53, 2**62, 0x7FF8 << 48))
            raw = raw[:at] + struct.pack("<q", value) + raw[at + 8 :]
        else:
            raw = of_bytes(raw, rng)
        entries[name] = compressed(raw)
    if rng.random() < 0.05:
        del entries[name]
    if index and name in entries and rng.random() < 0.1:  # the compressed text itself
        text = entries.pop(name)
        entries[f"{name}.z"] = of_bytes(pack_text(lambda: [text]), rng)
    digest = forged.write_entries(path, entries)
    report = path.with_name(path.name.replace(".states.zip", ".json"))
    document = json.loads(report.read_bytes())
    document["states_digest"] = digest
    report.write_text(json.dumps(document))


def of_fits(data: bytes, rng: random.Random) -> bytes:
    """Change a value, and let the digest fit again nine times in ten."""
    changed = of_json(data, rng)
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(changed)
        if rng.random() < 0.9 and isinstance(record, dict) and record.pop("digest", None):
            text = json.dumps(record, sort_keys=True)
            digest = hashlib.sha256(text.encode()).hexdigest()
            changed = json.dumps(record | {"digest": digest}).encode()
    return changed


def of_npz(data: bytes, rng: random.Random) -> bytes:
    """Change the bytes of a zip."""
    return of_bytes(data, rng)


def of_cached(path: Path, rng: random.Random) -> None:
    """Change values of a cached array, and let its checksum fit."""
    import numpy as np

    from uqeval.stores.map_cache import write_checked

    values = np.load(path)
    odd = CACHED[values.dtype.kind]
    for _ in range(rng.choice((1, 1, 20))):
        at = slice(None) if rng.random() < 0.2 else rng.randrange(values.size)
        with np.errstate(over="ignore"):
            values.reshape(-1)[at] = np.array(rng.choice(odd)).astype(values.dtype)
    write_checked(path, values)


def of_verdicts(data: bytes, rng: random.Random) -> bytes:
    """Change a value, and let the checksum fit nine times in ten."""
    changed = of_json(data, rng)
    return forged.with_checksum(changed) if rng.random() < 0.9 else changed


def of_evidence(data: bytes, rng: random.Random) -> bytes:
    """Change a record, in JSON or in YAML."""
    return of_verdicts(data, rng) if data.startswith(b"{") else of_yaml(data, rng)


def of_yaml(data: bytes, rng: random.Random) -> bytes:
    """Replace, drop or double a value of a YAML document; or change its text."""
    if rng.random() < 0.15:
        return of_text(data, rng)
    import yaml

    return of_json(json.dumps(yaml.safe_load(data), default=str).encode(), rng)


#: Replacements of a value of a cached array, by the kind of its dtype.
CACHED: dict[str, tuple[Any, ...]] = {
    "u": (0, 3, 4, 5, 128, 200, 254, 255), "i": (-(2**62), -1, 0, 1, 2**62),
    "f": (float("nan"), float("inf"), -float("inf"), -1.0, -0.0, 1e-40, 1.0, 3.0, 1e30, 1e300),
}  # fmt: skip
CHANGES_FILE: tuple[Any, ...] = (of_states, of_cached)


@dataclass(frozen=True)
class Target:
    """A kind of files, how they change, and the commands that read them."""

    kind: str
    #: Patterns, for files that `prepare` leaves in `kept/`.
    files: tuple[str, ...]
    mutate: Mutate | ChangeFile
    commands: tuple[str, ...]
    #: Commands whose outputs, in `kept/`, depend on the folder in which they run.
    prepare: tuple[str, ...] = ()
    #: Whether a command that succeeds must give the results that it has without the change.
    same: bool = False

    def change(self, folder: Path, file: str, rng: random.Random) -> None:
        """Change a file in place."""
        path = folder / file
        if self.mutate in CHANGES_FILE:
            self.mutate(path, rng)  # type: ignore[arg-type]
        else:
            path.write_bytes(self.mutate(path.read_bytes(), rng))  # type: ignore[arg-type]


_M = "--memory 64MB --workers 1"
_CLASSES = tuple(
    f"{command} {{store}} {_M} {more}"
    for command, more in (
        ("pavpu", "-o -"), ("calibration", "-o -"), ("failure", "-o -"), ("inspect", "--full"),
        ("sparsification", "-o -"), ("sweep", "-o -"), ("reduce", "-o out/m.zarr"),
        ("run", "-o out/run"), ("divergence", "--format json"),
    )
)  # fmt: skip


def _over(store: str, *more: str) -> tuple[str, ...]:
    own = [c.replace("{store}", store) for c in _CLASSES if "divergence" not in c]
    return (*own, f"divergence {store} {store} -o - {_M}", f"convert {store} out/c.zarr", *more)


#: Few draws, because the test is not about resampling.
_CI = "--ci 0.9 --draws 100"
_GATES = "gate r.json gate.yaml"
_SAVED = (
    _GATES, f"{_GATES} --baseline b.json", "gate n.json gate_n.yaml",
    "compare r.json b.json --draws 100", "compare n.json n2.json --all --per-class --draws 100",
    "report n.json -o out/p.html", "report n.json b.json -o out/p.html",
    "report t.json -o out/p.html", "select r.json", "select t.json", "merge r.json -o -",
    f"merge r.json {_CI} -o -", f"merge n.json {_CI} -o -", f"merge t.json {_CI} -o -",
    "merge r.json --slices items.csv -o -", "merge r.json --threshold 0.5 -o -",
    "merge r.json b.json -o -", f"pavpu c3.zarr --threshold-from r.json -o - {_M}",
)  # fmt: skip
_MAPPED = tuple(
    f"{command} --map-cache kept/maps -o - {_M}"
    for command in ("pavpu c3.zarr", "calibration c3.zarr", "failure c3.zarr", "nmerci d3.zarr",
                    "regression d3.zarr", "failure c3.zarr --region boundary:2")
)  # fmt: skip
_FLOWN = tuple(
    f"tc video --flow-cache kept/flow -o - {_M}{more}" for more in ("", " --tracks --occlusion fb")
)
_COUNTED = tuple(
    f"{command} -o kept/{name}.json --format json {_M}"
    for name, command in (("f", "failure c3.zarr"), ("c", "calibration c3.zarr"),
                          ("n", "nmerci d3.zarr"), ("t", "tc video"))
)  # fmt: skip
_TRACKS = "--flow file --flow-path flo --flow-forward-path back --tracks --occlusion fb"


def _rated(labels: str) -> tuple[str, ...]:
    """Commands that take the labels of several annotators."""
    given = f"p.npy {labels} -o - {_M}"
    return tuple(f"{command} {given}" for command in ("annotators", "failure", "calibration"))


TARGETS = (
    Target("zarr v3 metadata", ("c3.zarr/zarr.json", "c3.zarr/probs/zarr.json",
                                "c3.zarr/labels/zarr.json"), of_json, _over("c3.zarr")),
    Target("zarr v2 metadata", ("c2.zarr/.zgroup", "c2.zarr/.zattrs", "c2.zarr/probs/.zarray",
                                "c2.zarr/labels/.zarray"), of_json, _over("c2.zarr")),
    Target("regression metadata", ("d3.zarr/zarr.json", "d3.zarr/mean/zarr.json"), of_json, (
        f"regression d3.zarr -o - {_M}", f"nmerci d3.zarr pfm -o - {_M}",
        f"sparsification d3.zarr -o - {_M}", f"inspect d3.zarr {_M}")),
    Target("chunks", ("c3.zarr/probs/c/0/0/0/0/0", "c3.zarr/labels/c/1/0/0",
                      "c2.zarr/probs/0.0.0.0.0", "c2.zarr/labels/1.0.0"), of_bytes,
           (*_over("c3.zarr"), *_over("c2.zarr"))),
    Target(".npy headers", ("p.npy",), of_head(128), _over("p.npy", f"pavpu p.npy l -o - {_M}")),
    Target(".npz", ("p.npz",), of_npz, _over("p.npz")),
    Target("label PNG", ("l/a.png",), of_bytes, (f"pavpu p.npy l --names names.json -o - {_M}",
                                                 f"inspect p.npy l --names names.json {_M}")),
    Target("KITTI PNG", ("kitti/a.png",), of_bytes, (f"nmerci d3.zarr kitti -o - {_M}",)),
    Target("PFM", ("pfm/a.pfm",), of_bytes, (f"regression d3.zarr pfm -o - {_M}",)),
    Target("flo", ("flo/f_0001.flo",), of_bytes, (
        f"tc video --flow file --flow-path flo -o - {_M}",)),
    Target("frames", ("video/frames/f_0001.png", "video/predictions/f_0001.png"), of_bytes, (
        f"tc video -o - {_M}", "observe video")),
    Target("CSV", ("items.csv",), of_text, (
        "merge r.json --slices items.csv -o -", f"merge r.json --slices items.csv {_CI} -o -",
        f"failure c3.zarr --slices items.csv -o - {_M}")),
    Target("names", ("names.json",), of_json, (f"pavpu p.npy l --names names.json -o - {_M}",
                                               "convert p.npy out/c.zarr --names names.json")),
    Target("YAML", ("uqeval.yaml", "gate.yaml"), of_text, ("run -o out/run", _GATES)),
    Target("reports", ("r.json", "n.json", "t.json", "b.json"), of_json, _SAVED),
    Target("verdicts", ("v.json",), of_verdicts, (
        "report t.json --verdicts v.json -o out/p.html",)),
    Target("states", ("r.states.zip", "n.states.zip", "t.states.zip", "b.states.zip"),
           of_states, _SAVED),
    Target("states of shards", ("part1.states.zip", "part2.states.zip"), of_states, (
        "merge --fit part1.states.zip part2.states.zip -o out/f.json",
        f"pavpu c3.zarr --part 1/2 --fitted fitted.json -o part1.json {_M}")),
    Target("fits", ("fitted.json",), of_fits, (
        f"pavpu c3.zarr --part 1/2 --fitted fitted.json -o part1.json {_M}",)),
    Target("HDF5", ("p.h5",), of_bytes, _over("p.h5")),
    Target("zipped zarr", ("c3.zip",), of_bytes, _over("c3.zip")),
    Target("NIfTI", ("nii/a.nii", "nii/b.nii.gz"), of_bytes, (
        f"pavpu p.npy nii --names names.json -o - {_M}",
        f"inspect p.npy nii --names names.json {_M}")),
    Target("maps of regions", ("l/a.png",), of_bytes, (
        f"failure c3.zarr --region map:l -o - {_M}", f"ood c3.zarr --ood-mask l -o - {_M}")),
    Target("depth maps", ("depth.npy",), of_head(128), (
        f"calibration c3.zarr --region depth:9-10 --depth-map depth.npy -o - {_M}",)),
    Target("lists of items", ("some.json",), of_json, (
        f"conformal c3.zarr --fit-on some.json --alpha 0.5 -o - {_M}",
        f"calibration c3.zarr --fit-on some.json --isotonic -o - {_M}")),
    Target("lists in text", ("names.txt", "some.txt"), of_text, (
        f"pavpu p.npy l --names names.txt -o - {_M}",
        f"conformal c3.zarr --fit-on some.txt --alpha 0.5 -o - {_M}")),
    Target("caches of maps", ("kept/maps/*/*.npy",), of_bytes, _MAPPED, _MAPPED, same=True),
    Target("forged caches of maps", ("kept/maps/*/*.npy",), of_cached, _MAPPED, _MAPPED),
    Target("caches of flow", ("kept/flow/*/*.npy",), of_bytes, _FLOWN, _FLOWN, same=True),
    Target("forged caches of flow", ("kept/flow/*/*.npy",), of_cached, _FLOWN, _FLOWN),
    Target("states to resume", ("kept/*.states.zip", "kept/*.json"), of_bytes,
           tuple(f"{command} --resume" for command in _COUNTED), _COUNTED, same=True),
    Target("forged states to resume", ("kept/*.states.zip",), of_states,
           tuple(f"{command} --resume" for command in _COUNTED), _COUNTED),
    Target("flow of tracks", ("flo/f_0001.flo", "back/f_0002.flo"), of_bytes, (
        f"tc video {_TRACKS} -o - {_M}", f"tc video {_TRACKS} --grid previous -o - {_M}")),
    Target("labels of videos", ("of_video/f_0001.png",), of_bytes, (
        f"tc video --labels of_video -o - {_M}", f"tc video --pseudo-labels of_video -o - {_M}",
        f"tc video --region map:of_video -o - {_M}", f"tc video of_video -o - {_M}")),
    Target("video files", ("film.avi",), of_bytes, (
        f"tc film.avi film_ids -o - {_M}", "observe film.avi film_ids")),
    Target("tables of items", ("risks.csv",), of_text, (
        f"failure c3.zarr --images --risk column:risk --item-table risks.csv -o - {_M}",)),
    Target("annotators", ("raters.npy",), of_head(128), _rated("raters.npy")),
    Target("annotators' folders", ("raters/r0/a.png", "raters/r1/b.png"), of_bytes,
           _rated("raters --annotator-folders --names names.json")),
    Target("annotators' metadata", ("rated.zarr/zarr.json", "rated.zarr/labels/zarr.json"),
           of_json, _rated("rated.zarr --names names.json")),
    Target("settings", ("classes.yaml", "numbers.yaml", "sets.yaml"), of_yaml, (
        "run classes.yaml -o out/run", "run numbers.yaml -o out/run", "run sets.yaml -o out/run")),
    Target("rules", ("rules.yaml",), of_yaml, (
        "gate r.json rules.yaml --baseline o.json",
        "gate r.json rules.yaml -o - --junit out/g.xml --markdown out/g.md --baseline o.json")),
    Target("baselines", ("o.json", "t.json"), of_json, (
        "gate r.json rules.yaml --baseline o.json",
        "observe video --flow farneback --alarm-from t.json")),
    Target("evidence", ("v.json", "gate_t.yaml", "kept/selftest.json", "kept/verification.json"),
           of_evidence, (
        "evidence t.json --verdicts v.json --rules gate_t.yaml --verify kept/of_t.json -o out/e",
        "evidence r.json --selftest kept/selftest.json --verify kept/verification.json -o out/e",
        ), ("selftest -q -o kept/selftest.json",
            "verify r.json c3.zarr -q -o kept/verification.json",
            "verify t.json video video/predictions -q -o kept/of_t.json")),
)  # fmt: skip


def build(folder: Path) -> None:
    """Make small inputs of every kind, and reports with their states."""
    import numpy as np
    from PIL import Image

    import uqeval
    from uqeval.config import load_rules
    from uqeval.gate import judge
    from uqeval.records.folder import digests_of, load_reports
    from uqeval.report.verdict_files import to_json
    from uqeval.statistics import resampler
    from uqeval.usecases.rounds.fitting import fit_shards

    rng = np.random.default_rng(0)
    names, shape = ["a", "b", "c"], (16, 24)
    z = rng.normal(size=(3, 2, 4, *shape)) * 2
    probs = (np.exp(z) / np.exp(z).sum(2, keepdims=True)).astype("f4")
    labels = rng.integers(0, 4, (3, *shape)).astype("u1")
    labels[:, :2] = 255
    known = {"names": names, "class_names": ["road", "car", "person", "sky"]}
    mean = rng.normal(10, 2, (3, *shape)).astype("f4")
    arrays = {"mean": mean, "std": rng.uniform(0.5, 2, mean.shape).astype("f4"),
              "target": mean + rng.normal(0, 1, mean.shape).astype("f4")}  # fmt: skip
    for path, own, version in (
        ("c3.zarr", {"probs": probs, "labels": labels}, 3),
        ("c2.zarr", {"probs": probs, "labels": labels}, 2), ("d3.zarr", arrays, 3),
    ):  # fmt: skip
        save(folder / path, own, known, form=version)
    np.save(folder / "p.npy", probs)
    np.savez(folder / "p.npz", probs=probs, labels=labels)
    for name in ("l", "kitti", "pfm", "flo", "video/frames", "video/predictions", "out"):
        (folder / name).mkdir(parents=True)
    for i, name in enumerate(names):
        Image.fromarray(labels[i]).save(folder / "l" / f"{name}.png")
        depth = (arrays["target"][i] * 256).clip(1).astype("u2")
        Image.fromarray(depth).save(folder / "kitti" / f"{name}.png")
        head = f"Pf\n{shape[1]} {shape[0]}\n-1.0\n".encode()
        (folder / "pfm" / f"{name}.pfm").write_bytes(head + arrays["target"][i][::-1].tobytes())
        (folder / "video/frames" / f"f_{i:04}.png").touch()
        frame = rng.integers(0, 255, (*shape, 3)).astype("u1")
        Image.fromarray(frame).save(folder / "video/frames" / f"f_{i:04}.png")
        Image.fromarray(labels[i] % 4).save(folder / "video/predictions" / f"f_{i:04}.png")
        flow = struct.pack("<fii", 202021.25, shape[1], shape[0])
        (folder / "flo" / f"f_{i:04}.flo").write_bytes(flow + np.zeros((*shape, 2), "f4").tobytes())
    _build_other_formats(folder, probs, labels, names)
    _build_of_options(folder, labels, names)
    (folder / "names.json").write_text(json.dumps(names))
    (folder / "items.csv").write_text("name,weather,city\na,sun,x\nb,rain,y\nc,sun,y\n")
    (folder / "uqeval.yaml").write_text(
        "stores:\n  city: {predictions: c3.zarr}\n  depth: {predictions: d3.zarr}\n"
        "evaluate:\n  city: {pavpu: {window: 4, uncertainty: [entropy, mutual_information]}, "
        "calibration: {bins: 15}}\n  depth: {nmerci: {alpha: 95}}\noutput: out/\nworkers: 1\n"
        "memory: 64MB\nci: 0.9\ndraws: 100\nslices: {table: items.csv, by: [weather]}\n"
    )  # fmt: skip
    (folder / "gate.yaml").write_text(
        "pavpu.pavpu: {min: 0.1, confidence: 0.9}\nsegmentation.miou: {min: 0.1}\n"
        "calibration.ece: {max: 0.9, confidence: 0.9}\n"
        "failure.e_aurc: {max: 0.9, confidence: 0.9}\n"
    )
    (folder / "gate_n.yaml").write_text("nmerci.nmerci: {max: 9, confidence: 0.9}\n")
    (folder / "gate_t.yaml").write_text(
        "temporal.mtc_pooled: {min: 0.1, why: a film}\ntemporal.mtc: {max: 0.01, why: too good}\n"
    )
    families: Any = {"pavpu": {"curve_range": "0:1.4", "threshold": "0.7"}, "calibration": {},
                     "failure": {}, "sparsification": {}}  # fmt: skip
    cut = {"ci": 0.9, "draws": 100, "slices": folder / "items.csv", "slice_by": ["weather"]}
    runs: Any = {
        "r": (folder / "c3.zarr", families, cut), "o": (folder / "c3.zarr", families, cut),
        "b": (folder / "c2.zarr", families, {}),
        "n": (folder / "d3.zarr", {"nmerci": {}, "regression": {}, "sparsification": {}}, {}),
        "n2": (folder / "d3.zarr", {"nmerci": {}, "regression": {}}, {}),
        "t": (None, {"tc": {}}, {"video": folder / "video"}),
    }  # fmt: skip
    for name, (store, metrics, options) in runs.items():
        report = uqeval.evaluate(
            store, None, metrics, states=folder / f"{name}.states.zip", workers=1, **options
        )
        report.save(folder / f"{name}.json")
    for k in (1, 2):
        uqeval.evaluate(
            folder / "c3.zarr", None, {"pavpu": {}}, states=folder / f"part{k}.states.zip",
            part=f"{k}/2", workers=1,
        ).save(folder / f"part{k}.json")  # fmt: skip
    shards = [folder / f"part{k}.states.zip" for k in (1, 2)]
    fit_shards(shards, folder / "fitted.json")
    rules, reports = load_rules(folder / "gate_t.yaml"), load_reports(folder / "t.json")
    judgement = judge(reports, rules, [], resampler((rule.address for rule in rules), reports))
    rules_digest = hashlib.sha256((folder / "gate_t.yaml").read_bytes()).hexdigest()
    read = {"report": "t.json", "sha256": digests_of(reports, [], rules_digest)}
    (folder / "v.json").write_text(to_json(judgement, read))
    with zipfile.ZipFile(folder / "r.states.zip") as archive:
        assert archive.comment


def _build_other_formats(folder: Path, probs: Any, labels: Any, names: list[str]) -> None:
    """The same predictions and labels in other formats, and files that options name."""
    import h5py
    import numpy as np
    from naive_nifti import nifti

    with h5py.File(folder / "p.h5", "w") as file:
        file["probs"], file["labels"] = probs, labels
        file["probs"].attrs["names"] = names
    with zipfile.ZipFile(folder / "c3.zip", "w") as archive:
        for path in sorted((folder / "c3.zarr").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder / "c3.zarr"))
    (folder / "nii").mkdir()
    for ids, name in zip(labels, ("a.nii", "b.nii.gz", "c.nii"), strict=True):
        data = nifti(ids[None])
        (folder / "nii" / name).write_bytes(gzip.compress(data) if name[-1] == "z" else data)
    np.save(folder / "depth.npy", np.full(labels.shape, 9.5, "f4"))
    (folder / "some.json").write_text(json.dumps(names[:2]))
    (folder / "some.txt").write_text("a\nb\n")
    (folder / "names.txt").write_text("a\nb\nc\n")


def _build_of_options(folder: Path, labels: Any, names: list[str]) -> None:
    """Write files that only some options read, and an empty folder for outputs of other runs."""
    import cv2
    import numpy as np
    from PIL import Image

    (folder / "kept").mkdir()
    (folder / "risks.csv").write_text("name,risk\na,0.5\nb,0.25\nc,1\n")
    raters = np.stack([labels, np.roll(labels, 1, 1), np.roll(labels, 2, 2)], axis=1)
    np.save(folder / "raters.npy", raters)
    save(folder / "rated.zarr", {"labels": raters}, {"names": names})
    for r in range(raters.shape[1]):
        (folder / "raters" / f"r{r}").mkdir(parents=True)
        for i, name in enumerate(names):
            Image.fromarray(raters[i, r]).save(folder / "raters" / f"r{r}" / f"{name}.png")
    for name in ("back", "of_video", "film_ids"):
        (folder / name).mkdir()
    film = cv2.VideoWriter(
        str(folder / "film.avi"), cv2.VideoWriter.fourcc(*"MJPG"), 10, labels.shape[:0:-1]
    )
    for i, ids in enumerate(labels):
        Image.fromarray(ids).save(folder / "of_video" / f"f_{i:04}.png")
        Image.fromarray(ids % 4).save(folder / "film_ids" / f"{i:06}.png")
        frame = Image.open(folder / "video/frames" / f"f_{i:04}.png")
        film.write(np.asarray(frame)[..., ::-1])
        flow = (folder / "flo" / f"f_{i:04}.flo").read_bytes()
        (folder / "back" / f"f_{i:04}.flo").write_bytes(flow)
    film.release()
    for name, text in SETTINGS.items():
        (folder / f"{name}.yaml").write_text(text + OF_RUN)
    (folder / "rules.yaml").write_text(RULES)


#: Settings of runs, with every section, by file.
SETTINGS = {
    "classes": """\
stores:
  city: {predictions: c3.zarr, ignore_index: 255, region: ['boundary:2']}
  rated: {predictions: p.npy, labels: raters.npy, names: names.json}
evaluate:
  city: {pavpu: {window: [2, 4], threshold: [mean, 0.7]}, failure: {}}
  rated: {annotators: {distance: dice}}
gate:
  city/pavpu.pavpu: {min: 0.1, id: A-1, why: known}
""",
    "numbers": """\
stores:
  depth: {predictions: [d3.zarr], invalid: [0], baseline_focal: 3}
evaluate:
  depth: {nmerci: {alpha: 95}, regression: {levels: 9}}
""",
    "sets": """\
stores:
  drive: {video: video, flow_path: flo, labels: of_video}
  sets: {predictions: c3.zarr, ood_mask: l}
evaluate:
  drive: {tc: {flow: file, least_pixels: 2}}
  sets: {ood: {uncertainty: entropy}}
""",
}
OF_RUN = """\
output: out/
workers: 1
memory: 64MB
ci: 0.9
draws: 100
seed: 3
slices: {table: items.csv, by: [weather]}
"""
#: Rules with every kind of limit.
RULES = """\
pavpu.pavpu: {min: 0.1, confidence: 0.9, inconclusive: pass, id: A-1, why: text}
segmentation.miou: {min: 0.1, max: 0.9, undefined: pass}
segmentation.per_class.car.iou: {min: 0.1}
segmentation.miou@weather=sun: {min: 0.1}
calibration.ece: {max: 0.01, waive: {until: 2090-01-01, by: me, why: known, at_most: 0.99}}
failure.auroc: {max_drop: 0.5, max_drop_relative: 0.5}
failure.e_aurc: {max_rise: 0.5, max_rise_relative: 0.5, confidence: 0.9}
"""
