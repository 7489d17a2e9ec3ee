"""Data and options that do not fit together, each refused with a message about what to do."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import refused, run_forked
from number_stores import numbers
from small_stores import C, N, labels, probs

import uqeval

#: Commands on the stores of `folder`, and a part of the message of each.
CASES = {
    "pavpu p.npy other.npz": "must have the same kind, but these have p.npy: probs; other.npz",
    "pavpu p.npy target.npz": "holds std, target, but no `labels`.",
    "pavpu both.npz l.npy": "both.npz holds both probs and logits; keep one of them.",
    "pavpu p.npy l.npy --region map:other.npz": (
        "holds bar, foo; expected one map, in an array 'labels'."
    ),
    "pavpu p.npy l.npy --region map:l.npy --depth-map text.npy": "text.npy",
    "pavpu p.npy l.npy --threshold-scope item --threshold-scope set --curve-range set": (
        "--curve-range"
    ),
    "pavpu p.npy l.npy --part 3/2": "--part 3/2; expected K/N, the K-th of N shards, such as 2/3.",
    "ood p.npy": "no OUT given with p.npy; give IN OUT, or --ood-mask for pixels inside IN.",
    "ood p.npy p.npy": "p.npy is in two sets; give each store once.",
    "ood p.npy q.npy --ood-mask 2": (
        "--ood-mask is for out-of-distribution pixels inside the images of one set, given as "
        "PREDS [LABELS], and q.npy holds predictions."
    ),
    "ood p.npy --ood-mask other.npz": "other.npz holds bar, foo; expected ids [item, y, x]",
    "regression free.npz --invalid 0": "--invalid is for a target, and free.npz has none.",
    "regression free.npz other.npz": "holds bar, foo; expected `mean` with one of",
    "regression n.npz --disparity both": "--disparity needs --baseline-focal BF; give that too.",
    "regression minus.npz --baseline-focal 2": "predicted disparities are 0 or less, and",
    "sparsification n.npz --grid every-rank --error rmse": "expected --error mse.",
    "sweep p.npy l.npy --samples 1,x": "--samples '1,x'; expected whole numbers with commas",
    "sweep p.npy l.npy --resume": "--resume works only for a shard of a sweep",
    "tc v.npz --classes 70000": "70000 classes; at most 65535 can be evaluated.",
    "tc v.npz --flow farneback:flags=3": "flags; expected 0, or 256 for a Gaussian window.",
    "verify r.json --all --items 5": "--all takes all items, so --items and --seed have no effect",
    "compare r.json r.json": "r.json is given twice.",
    "compare r.json s.json --name a": "--name gives 1 name for 2 models",
    "compare r.json s.json -o c.html --layout models": "applies to tables, not to a page.",
    "report r.json r.json -o c.html": "r.json is given twice.",
    "report r.json --maps entropy --item 0 --figures f --video v.npz": "--maps is for reports of",
    "report r.json --predictions p.npy": "are for --gallery N, --item NAME and --fiftyone NAME.",
    "report r.json --gallery 1 --predictions p.npy --labels l.npy --images gone": (
        "images gone is not a folder of images"
    ),
    "report r.json --gallery 1 --predictions p.npy --labels l.npy --model x": "--model",
    "evidence r.json r.json -o e": "are both called r; give each report its own name.",
    "evidence r.json -o e --verify s3://bucket/v.json": (
        "s3://bucket/v.json is a URL, and evidence collects local files."
    ),
    "evidence s3://bucket/r.json -o e": "s3://bucket/r.json is a URL",
    "evidence r.json -o gone/e": "does not exist; make it, or name another.",
    "evidence r.json -o e --verdicts no.json": "no.json",
    "merge r.json r.json": "r.states.zip is given twice.",
    "selftest -o r.states.zip": (
        "r.states.zip is the states of a report, which -o would overwrite; give -o another name, "
        "or remove the file."
    ),
    "pavpu p.npy l.npy -o r.states.zip": "r.states.zip is the states of a report",
    "pavpu p.npy l.npy --csv r.json": "r.json is a report, which --csv would overwrite; give --csv",
    "gate r.json rule.yaml --junit s.states.zip": "s.states.zip is the states of a report",
    "gate r.json rule.yaml -o s.json": "s.json is a report, which -o would overwrite",
    "gate r.json rule.yaml --markdown s.json": "s.json is a report, which --markdown would",
    "verify r.json -o s.json": "s.json is a report, which -o would overwrite",
    "select r.json -o s.json": "s.json is a report, which -o would overwrite",
    "report r.json -o s.json": "s.json is a report, which -o would overwrite",
    "compare r.json s.json -o other.json": "other.json is a self-test, which -o would overwrite",
    "merge r.json -o other.json": "other.json is a self-test, which -o would overwrite",
    "pavpu p.npy l.npy --csv=": "--csv is given as ''; give the name of a file.",
    "gate r.json rule.yaml --junit=": "--junit is given as ''; give the name of a file.",
    "gate r.json empty.yaml": "empty.yaml is empty; expected keys with values.",
    "gate r.json list.yaml": "list.yaml holds a list; expected keys with values.",
    "gate r.json tag.yaml": "tag.yaml:1: the tag 'tag:yaml.org,2002:int'; write plain values",
    "gate r.json deep.yaml": "deep.yaml is nested too deeply.",
    "inspect empty": "empty",
    "convert keyed out.zarr --key c": "holds a, b, but no 'c'. Give the name of one of them as",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refused")
    np.save(folder / "p.npy", probs())
    np.save(folder / "q.npy", probs(seed=1))
    np.save(folder / "l.npy", labels())
    np.save(folder / "text.npy", np.full(labels().shape, "a"))
    np.savez(folder / "other.npz", foo=labels(), bar=labels())
    np.savez(folder / "both.npz", probs=probs(), logits=probs())
    arrays = numbers()
    np.savez(folder / "n.npz", **arrays)
    np.savez(folder / "free.npz", mean=arrays["mean"], std=arrays["std"])
    np.savez(folder / "target.npz", target=arrays["target"], std=arrays["std"])
    np.savez(folder / "minus.npz", **arrays | {"mean": -np.abs(arrays["mean"])})
    frames = np.random.default_rng(0).integers(0, 255, (N, 24, 32, 3)).astype(np.uint8)
    np.savez(folder / "v.npz", frames=frames, predictions=labels() % C)
    (folder / "keyed").mkdir()
    (folder / "empty").mkdir()
    np.savez(folder / "keyed" / "one.npz", a=probs()[0], b=probs()[0])
    for name in "rs":
        report = uqeval.evaluate(
            folder / "p.npy", folder / "l.npy", ("pavpu",), states=folder / f"{name}.states.zip"
        )
        report.save(folder / f"{name}.json")
    (folder / "no.json").write_text(json.dumps({"schema": 1}))
    (folder / "rule.yaml").write_text("pavpu.pavpu: {min: 0.001}\n")
    (folder / "other.json").write_text('{\n  "schema": "uqeval.selftest/1",\n  "checks": []\n}')
    for name, text in {"empty": "", "list": "[1]", "tag": "a: !!int 3", "deep": "[" * 999}.items():
        (folder / f"{name}.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("command", CASES)
def test_refused(command: str, folder: Path) -> None:
    before = {path.name for path in folder.iterdir()}
    refused(run_forked(*command.split(), cwd=folder), CASES[command])
    assert {path.name for path in folder.iterdir()} == before
