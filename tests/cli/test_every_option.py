"""Every option of every command has an effect on its inputs, or the command refuses it.

`EFFECT` lists all options and the inputs that each of them changes something for. "any": all inputs
of its command. "permission": it allows what the data may turn out to need (`--missing-chunks fill`,
`--sum-tolerance`, `--resize nearest`), so that it is no error where they do not need it. All others
name what they need, and `REFUSED` has a command without it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import typer.main
from PIL import Image
from typer.testing import CliRunner

from uqeval.cli.entry import COMMANDS, app
from uqeval.errors import UqevalError

ANY, PERMISSION, CHECKED = "any", "permission", "checked when the inputs are opened"
STDOUT, LEVEL, TABLE = "a free stdout", "--ci", "--slices"

#: Of all commands that have an option of the name, unless `OF_COMMAND` says otherwise.
EFFECT = {
    # Outputs and the machine.
    "output": ANY, "csv": ANY, "quiet": ANY, "workers": ANY, "memory": ANY, "dask": ANY,
    "format": STDOUT,
    "states": "-o FILE", "resume": "-o FILE", "overwrite": PERMISSION,
    # Inputs.
    "store": "uqeval.yaml", "ignore_index": "labels, or the void of a video",
    "names": ANY, "classes": CHECKED, "class_names": ANY, "label_map": "label PNGs",
    "annotator_folders": "label PNGs",
    "kind": CHECKED, "axes": CHECKED, "missing_chunks": "Zarr (permission)",
    "sum_tolerance": "probs (permission)", "nan_samples": "samples (permission)",
    "invalid": "a target", "limit": ANY, "part": ANY, "fitted": "--part and -o FILE",
    "region": ANY,
    "depth_map": "a region of depths", "region_share": "a region",
    "baseline_focal": ANY, "disparity": "--baseline-focal", "median_scaling": "a target",
    "depth": ANY, "ence": ANY, "ence_bins": "--ence", "sigma_scale": ANY,
    "map_cache": "predictions, not a video",
    "labels": ANY, "reference": ANY, "video": ANY, "pseudo_labels": "no labels beside",
    "resize": PERMISSION, "flow_path": "--flow file", "flow_cache": "estimated flow",
    "flow_forward_path": "--flow file and both directions",
    # Intervals and slices.
    "ci": ANY, "draws": LEVEL, "seed": LEVEL, "slices": ANY, "slice_by": TABLE, "group_by": TABLE,
    "interval_method": LEVEL,
    # Families.
    "aggregation": ANY, "ood_mask": ANY, "distance": ANY, "distance_classes": ANY, "pairs": ANY,
    "disagreement": ANY, "ncc_ddof": ANY,
    "uncertainty": ANY, "window": ANY, "stride": ANY, "border": ANY, "void": ANY, "top_k": ANY,
    "log_base": "an entropy", "threshold": ANY, "threshold_from": "no --threshold beside",
    "threshold_scope": ANY, "curve_range": "one scope", "accuracy_threshold": ANY,
    "accuracy_op": ANY, "uncertainty_op": ANY, "deciles": ANY, "definition": ANY, "bins": ANY,
    "edge": ANY, "at_one": "--edge upper", "binary": "two classes", "clip": "probabilities",
    "adaptive": ANY, "estimator": ANY, "temperature": ANY, "temperature_of": "samples",
    "fit_on": "a temperature", "isotonic": ANY, "vector": ANY,
    "distribution": ANY, "levels": ANY, "grid": ANY, "proportion": ANY, "area": ANY, "alpha": ANY,
    "depth_step": ANY, "interpolation": ANY, "over": ANY, "mae": "--over all", "error": ANY,
    "scope": ANY, "steps": ANY, "keep": ANY, "ties": "--grid steps", "normalise": ANY,
    "end": "--grid steps", "flow": ANY, "flow_scale": "estimated flow", "occlusion": ANY,
    "tracks": ANY, "track_step": "--tracks", "track_length": "--tracks",
    "track_everywhere": "--tracks", "drop_cuts": PERMISSION, "absent": ANY, "average": ANY,
    "out_of_frame": ANY, "least_pixels": ANY,
}  # fmt: skip
OF_COMMAND = {
    "run": {
        "stores": ANY, "today": ANY, "baseline": "rules", "gate": PERMISSION, "gallery": ANY,
        "quiet": ANY, "single_file": PERMISSION,
        "uncertainty": "no file", "reference": "no file", "video": "no file", "resume": ANY,
    },
    "sweep": {
        "metric": ANY, "samples": ANY, "repeats": ANY, "seed": ANY, "error": "sparsification",
        "clip": "divergence",
    },
    "observe": {
        "alarm": ANY, "alarm_from": ANY, "alarm_model": "--alarm-from",
        "alarm_quantile": "--alarm-from", "follow": ANY, "poll": "--follow", "timeout": "--follow",
    },
    "select": {
        "count": ANY, "by": ANY, "min_gap": "pairs of a video", "per_sequence": "pairs of a video",
        "min_coverage": "pairs of a video", "keep_cuts": "pairs of a video",
    },
    "ood": {"patch": "--aggregation patch-max"},
    "failure": {
        "images": ANY, "risk": "--images", "confidence": "--images", "patch": "--images",
        "risk_limit": "--images", "item_table": "--images",
    },
    "conformal": {"fit_on": ANY, "method": ANY, "risk": ANY, "uncertainty": "a target"},
    "merge": {"allow_missing": PERMISSION, "threshold": "PAvPU", "fit": "shards and -o FILE"},
    "gate": {"baseline": "rules with drops or rises", "junit": ANY, "markdown": ANY, "github": ANY,
             "today": "a waiver"},
    "compare": {
        "replicates": ANY, "name": ANY, "against": ANY, "metric": ANY, "every": "no --metric",
        "per_class": ANY, "ci": "intervals", "intervals": ANY, "draws": "intervals",
        "seed": "intervals", "layout": "a table",
        "differences": "LaTeX",
    },
    "report": {
        "verdicts": ANY, "figures": ANY, "figure_format": "--figures", "gallery": ANY,
        "predictions": "--gallery", "video": "--gallery", "model": "--gallery and --video",
        "labels": "--gallery", "images": "--gallery", "names": "--gallery",
        "single_file": "--gallery",
        "item": "--figures", "maps": "--item", "by": "--item", "frames": "--item of a video",
        "box": "--item", "tensorboard": ANY, "mlflow": ANY, "wandb": ANY,
        "fiftyone": ANY,
        "step": "--tensorboard, --mlflow or --wandb",
    },
    "verify": {"items": "no --all", "all_": ANY, "seed": "no --all"},
    "evidence": {
        "verdicts": ANY, "rules": ANY, "selftest": ANY, "verify": ANY,
        "items": "a report without --verify",
    },
    "reduce": {"maps": ANY, "mean_probs": ANY},
    "inspect": {"full": ANY},
    "convert": {
        "key": "named arrays", "kind": "a bare array", "axes": "a bare array",
        "compression": "no --recommended", "recommended": ANY,
    },
}  # fmt: skip
FREE = {ANY, PERMISSION}


def options() -> list[tuple[str, str]]:
    """Return all options, as pairs of a command and a name."""
    group = typer.main.get_command(app)
    loaded = {name: group.get_command(None, name) for name in COMMANDS}  # type: ignore[attr-defined]
    return [
        (name, parameter.name)
        for name, command in loaded.items()
        for parameter in command.params
        if parameter.param_type_name != "argument"
    ]


def test_the_table_has_every_option() -> None:
    there = options()
    lacking = [
        (command, name)
        for command, name in there
        if name not in EFFECT and name not in OF_COMMAND.get(command, {})
    ]
    assert not lacking, "say in EFFECT which inputs they change something for"
    assert set(EFFECT) <= {name for _, name in there}
    assert {(c, n) for c, own in OF_COMMAND.items() for n in own} <= set(there)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of small data of every kind, and a report."""
    root = tmp_path_factory.mktemp("options")
    rng = np.random.default_rng(0)
    p = np.moveaxis(rng.dirichlet(np.ones(3), (2, 8, 8)), -1, 1).astype("f4")
    ids = rng.integers(0, 3, (2, 8, 8)).astype("u1")
    np.savez(root / "p.npz", probs=p, labels=ids)
    np.savez(root / "q.npz", probs=p)
    np.save(root / "p.npy", p)
    np.savez(root / "m.npz", mean=p[:, 0], std=p[:, 1])
    np.savez(root / "r.npz", mean=p[:, 0], std=p[:, 1], target=p[:, 2])
    for name in ("v/frames", "v/predictions", "ids"):
        (root / name).mkdir(parents=True)
        for i in range(2):
            rgb = np.repeat(ids[i, :, :, None], 3, 2) * 80
            Image.fromarray(rgb if name == "v/frames" else ids[i]).save(root / name / f"{i}.png")
    (root / "rules.yaml").write_text("calibration.ece: {max: 0.99}\n")
    (root / "gated.yaml").write_text(
        "stores: {a: {predictions: p.npz}}\nevaluate: {a: {calibration: {}}}\n"
        "gate: {calibration.ece: {max: 0.99}}\n"
    )
    (root / "draws.yaml").write_text("stores: {a: {predictions: p.npz}}\ndraws: 100\n")
    for name in ("c", "d"):
        done = CliRunner().invoke(
            app, ["calibration", str(root / "p.npz"), "-q", "-o", str(root / f"{name}.json")]
        )
        assert done.exit_code == 0, done.exception
    done = CliRunner().invoke(app, ["tc", str(root / "v"), "-q", "-o", str(root / "t.json")])
    assert done.exit_code == 0, done.exception
    digest = hashlib.sha256((root / "c.json").read_bytes()).hexdigest()
    verified = {"schema": "uqeval.verification/1", "report": {"sha256": digest}}
    (root / "verified.json").write_text(json.dumps(verified))
    return root


#: Commands with an option that has no effect: each exits with 2 and names the option.
REFUSED = [
    "calibration p.npz --resume", "calibration p.npz --states", "calibration p.npz --store a",
    "calibration q.npz --ignore-index 3", "calibration p.npz --classes 4",
    "calibration p.npz --kind logits", "calibration p.npz --axes NTCHW",
    "calibration p.npz --label-map cityscapes", "calibration p.npz --annotator-folders",
    "calibration p.npz --missing-chunks fill",
    "sparsification p.npz --nan-samples skip", "sparsification p.npz --invalid 0",
    "sparsification r.npz --ignore-index 3", "sparsification r.npz --sum-tolerance 0.1",
    "sparsification r.npz --nan-samples skip", "sparsification r.npz --kind probs",
    "sparsification r.npz --label-map cityscapes", "sparsification r.npz --classes 2",
    "calibration p.npz --draws 2000", "calibration p.npz --seed 0", "calibration p.npz --draws 300",
    "calibration p.npz --slice-by k", "calibration p.npz --group-by k",
    "calibration p.npz --interval-method percentile",
    "run p.npz --draws 2000 -o out", "run draws.yaml -o out", "run p.npz --baseline c.json -o out",
    "run p.npz --store a -o out",
    "run draws.yaml --reference p.npz -o out", "run draws.yaml --video v -o out",
    "run draws.yaml --uncertainty entropy -o out",
    "merge c.json --draws 2000", "merge c.json --seed 1", "merge c.json --threshold 0.3",
    "calibration p.npz --format csv -o -", "calibration p.npz --csv - --format markdown",
    "merge c.json --fit -o f.json", "calibration p.npz --fitted f.json",
    "merge c.json --format csv -o -", "gate c.json rules.yaml --format markdown -o -",
    "select c.json --format json -o -", "compare c.json d.json --format latex -o -",
    "gate c.json rules.yaml --today 2030-01-01",
    "gate c.json rules.yaml --baseline d.json", "gate c.json rules.yaml -q --format table",
    "gate c.json rules.yaml --format table -o -", "calibration p.npz -q --format table",
    "compare c.json d.json -q --format table", "inspect p.npz -q --format table",
    "select c.json --format table -o -", "merge c.json -q --format table",
    "run gated.yaml --baseline c.json -o out",
    "evidence c.json --verify verified.json --items 3 -o out",
    "compare c.json d.json --no-intervals --draws 300",
    "compare c.json d.json --layout models --format json", "compare c.json d.json --differences",
    "compare c.json --layout models --format latex --differences",
    "compare c.json d.json --no-intervals --draws 2000",
    "compare c.json d.json --no-intervals --seed 0",
    "compare c.json d.json --metrics calibration.ece --all",
    "compare c.json d.json --no-intervals --ci 0.9", "compare c.json --layout models --ci 0.9",
    "compare c.json --layout models --draws 300", "compare c.json --layout models --seed 3",
    "compare c.json --layout models --against c",
    "pavpu p.npz --uncertainty confidence --log-base 2",
    "failure p.npz --uncertainty confidence --log-base 2",
    "ood p.npz q.npz --patch 3", "ood p.npz --ood-mask 2 --aggregation max",
    "ood p.npz --ood-mask 2 --patch 3", "ood p.npz --ood-mask 2 --log-base 2",
    "failure p.npz --disparity both", "sparsification p.npz --disparity both",
    "failure p.npz --baseline-focal 3", "failure p.npz --median-scaling",
    "failure p.npz --risk dice", "failure p.npz --confidence sum", "failure p.npz --patch 3",
    "failure p.npz --risk-limit 0.3", "failure p.npz --item-table t.csv",
    "failure p.npz --images --item-table t.csv", "failure p.npz --images --patch 3",
    "failure p.npz --images --confidence segmentation.miou --uncertainty std",
    "failure p.npz --images --confidence segmentation.miou --log-base 2",
    "pavpu p.npz --threshold 0.3 --threshold-from c.json",
    "pavpu p.npz --curve-range 0:1 --threshold-scope item",
    "regression r.npz --disparity both", "regression m.npz --median-scaling",
    "regression r.npz --ence-bins 3", "regression r.npz --fit-on x",
    "pavpu p.npz --region-share 0.7", "pavpu p.npz --threshold-scope region",
    "calibration p.npz --depth-map p.npy", "pavpu p.npz --region class:0 --depth-map p.npy",
    "calibration p.npz --at-one own", "calibration p.npz --binary positive",
    "calibration p.npz --temperature-of samples --no-temperature",
    "calibration p.npz --fit-on x --no-temperature",
    "nmerci r.npz --over kept --mae trimmed", "sparsification p.npz --grid every-rank --end zero",
    "sparsification p.npz --grid every-rank --ties together",
    "divergence r.npz r.npz --clip 0.1", "divergence p.npz p.npy --missing-chunks fill",
    "sweep p.npz --error zero-one", "sweep p.npz --clip 0.1",
    "tc v --missing-chunks fill", "tc v --sum-tolerance 0.1", "tc v --kind logits",
    "tc v --axes NHW", "tc v --label-map cityscapes", "tc v --flow-path v --flow farneback",
    "tc v --absent current --least-pixels 4", "run p.npz --part 1/2 --gallery 2 -o out",
    "report t.json --gallery 1 --video v --images ids",
    "tc v --track-step 4", "tc v --track-length 4", "tc v --track-everywhere",
    "tc v --labels v/predictions --pseudo-labels p.npz",
    "observe v --poll 9", "observe v --timeout 9", "observe v --alarm-quantile 0.2",
    "observe v --alarm-model a", "observe v --sum-tolerance 0.1", "observe v --missing-chunks fill",
    "select c.json --min-gap 4", "select c.json --per-sequence 4", "select c.json --keep-cuts",
    "select c.json --min-coverage 0.1", "report c.json --figure-format pdf",
    "report c.json --model a", "report c.json --names n.txt", "report c.json --images ids",
    "report c.json --gallery 1 --predictions p.npz --model a", "report c.json --item a",
    "report c.json --single-file",
    "report c.json --maps label", "report c.json --by calibration.ece",
    "report c.json --frames 3", "report c.json --box 0:1,0:1",
    "report c.json --step 3",
    "verify c.json --all --items 3", "verify c.json --all --seed 3",
    "reduce p.npz -o m.zarr --label-map cityscapes", "reduce q.npz -o m.zarr --ignore-index 3",
    "inspect p.npz --missing-chunks fill", "inspect p.npz --label-map cityscapes",
    "inspect q.npz --ignore-index 3", "inspect p.npz --store a",
    "convert p.npy c.zarr --key probs", "convert p.npy c.zarr --missing-chunks fill",
    "convert ids c.zarr --key a", "convert ids c.zarr --kind probs", "convert ids c.zarr --axes HW",
    "convert p.npz c.zarr --kind logits --axes NCHW",
    "convert p.npy c.zarr --recommended --compression lz4",
]  # fmt: skip


@pytest.mark.parametrize("line", REFUSED)
def test_an_option_without_effect_is_refused(
    folder: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.glob("[!.]*"))
    ended = CliRunner().invoke(app, line.split())
    # The executable ends with 2 for the errors of uqeval; `inspect` lists some as problems.
    refused = isinstance(ended.exception, UqevalError)
    assert refused or ended.exit_code == 2, ended.output
    text = str(ended.exception) if refused else ended.output
    named = [word.lstrip("-") for word in line.split() if word.startswith("-")]
    assert any(name in text or name.replace("-", "_") in text for name in named), text
    assert (
        sorted(path.name for path in folder.glob("[!.]*")) == before
    )  # but hidden locks, nothing is written


def test_every_option_with_a_need_is_refused_somewhere() -> None:
    tried = {word.lstrip("-").replace("-", "_") for line in REFUSED for word in line.split()}
    tried |= {"every"} if "all" in tried else set()
    needs = {name for name, effect in EFFECT.items() if effect not in FREE}
    needs |= {n for own in OF_COMMAND.values() for n, effect in own.items() if effect not in FREE}
    # Those of flow are in tests/inputs/test_effects.py; `tc` has no --map-cache.
    assert needs - tried <= {"flow_cache", "flow_forward_path", "flow_scale", "map_cache"}
