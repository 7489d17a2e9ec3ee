"""Every option of every evaluating command changes the results, or must not.

`CHANGES` and `KEEPS` have a line for each option that a command declares. A line is what is added
to the command, which `COMMANDS` gives its inputs. In "INPUTS | OPTION", the command has other
inputs, with {} for those of `COMMANDS`. Without the option, the inputs of some lines are refused.
The inputs are described in `option_inputs`.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import shlex
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import typer.main
from option_inputs import write_all
from typer.testing import CliRunner

from uqeval.cli.entry import app
from uqeval.errors import UqevalError, option_name
from uqeval.keys import Key
from uqeval.records.report import Report
from uqeval.report.command import command_of

COMMANDS = {
    "pavpu": "p.npz", "calibration": "p.npz", "failure": "p.npz", "sparsification": "p.npz",
    "regression": "r.npz", "nmerci": "r.npz", "tc": "v.npz", "ood": "p.npz out.npz",
    "conformal": "p.npz --fit-on fit.txt --alpha 0.4", "annotators": "raters.npz",
    "divergence": "p.npz q.npz", "sweep": "p.npz --metric segmentation",
    "run": "ids.npz --classes 3",
}  # fmt: skip
Lines = dict[str, str]


def with_inputs(lines: Lines, more: str) -> Lines:
    """Return lines that have inputs of their own, with more inputs."""
    return {n: line.replace(" |", f" {more} |") for n, line in lines.items() if line[0] not in "-{"}


LEVEL = "--ci 0.9 --interval-method percentile"
DRAWS = f"{LEVEL} --draws 100"
ANY = {
    "limit": "--limit 3", "part": "{} -o part.json | --part 1/2", "ci": "--ci 0.9 --draws 100",
    "interval_method": "{} --ci 0.9 --draws 100 | --interval-method percentile",
    "draws": f"{{}} {LEVEL} | --draws 200", "seed": f"{{}} {DRAWS} | --seed 1",
    "slices": "--slices items.csv", "slice_by": "{} --slices items.csv | --slice-by city",
    "group_by": f"{{}} {DRAWS} --slices items.csv --slice-by city | --group-by drive",
}  # fmt: skip
CLASSES = ANY | {
    "ignore_index": "void.npz | --ignore-index 2", "names": "unnamed.npz | --names names.txt",
    "class_names": "--class-names a,b,c", "classes": "ids.npz | --classes 4",
    "kind": "z.npy labels.npy | --kind logits", "axes": "nhwc.npy labels.npy | --axes NHWC",
    "label_map": "p.npz ids | --label-map cityscapes",
    "annotator_folders": "p.npz folders | --annotator-folders",
    "sum_tolerance": "sums.npz | --sum-tolerance 0.1",
    "missing_chunks": "gaps.zarr | --missing-chunks fill", "region": "--region class:0",
    "depth_map": "{} --region depth:1-5 | --depth-map depth.npy",
    "uncertainty": "--uncertainty confidence", "log_base": "--log-base 2",
}  # fmt: skip
OF_TARGETS = {
    "nan_samples": "nan.npz | --nan-samples skip", "invalid": "r.npz | --invalid 0.5",
    "baseline_focal": "r.npz | --baseline-focal 3",
    "disparity": "r.npz --baseline-focal 3 | --disparity both",
    "median_scaling": "r.npz | --median-scaling",
}  # fmt: skip
NUMBERS = ANY | OF_TARGETS | {
    "names": "unnamed_r.npz | --names names.txt", "axes": "hwn.npz target.npy | --axes HWN",
    "missing_chunks": "gaps_r.zarr | --missing-chunks fill", "region": "--region depth:1-3",
    "depth_map": "{} --region depth:1-5 | --depth-map depth_r.npy",
    "uncertainty": "--uncertainty other",
}  # fmt: skip
#: These options only check the data of the command, whose classes are known.
REFUSED = {"classes": "refused: --classes 4"}

#: Options that change the results.
CHANGES: dict[str, Lines] = {
    "pavpu": CLASSES | {
        "window": "--window 2", "stride": "--stride 1", "border": "--border partial",
        "void": "--void inaccurate", "top_k": "--top-k 2", "deciles": "--no-deciles",
        "region_share": "{} --region class:0 | --region-share 0.9", "threshold": "--threshold 0.3",
        "threshold_from": "--threshold-from pavpu.json",
        "threshold_scope": "--threshold-scope item", "curve_range": "--curve-range 0:2",
        "accuracy_threshold": "--accuracy-threshold 0.6", "accuracy_op": "--accuracy-op >=",
        "uncertainty_op": "{} --threshold 0 --window 1 | --uncertainty-op >=",
        "definition": "--definition ma",
    },
    "calibration": CLASSES | REFUSED | {
        "bins": "--bins 4", "edge": "{} --bins 4 | --edge upper",
        "at_one": "{} --edge upper | --at-one drop", "binary": "two.npz | --binary positive",
        "estimator": "--estimator kumar-l2", "clip": "--clip 0.1", "adaptive": "--no-adaptive",
        "temperature": "--no-temperature", "temperature_of": "--temperature-of samples",
        "isotonic": "--isotonic", "vector": "--vector", "fit_on": "--fit-on half.txt",
        "definition": "--definition torchmetrics",
    },
    "failure": CLASSES | with_inputs(OF_TARGETS, "--images") | {
        "images": "--images", "threshold": "--threshold 0.3",
        "threshold_from": "--threshold-from pavpu.json", "risk": "{} --images | --risk dice",
        "confidence": "{} --images | --confidence sum",
        "patch": "{} --images --confidence patch-max | --patch 2",
        "risk_limit": "{} --images | --risk-limit 0.9",
        "item_table": "{} --images --risk column:number | --item-table items.csv",
        "definition": "{} --images | --definition values-image",
    },
    "sparsification": CLASSES | OF_TARGETS | {
        "classes": "ids.npz --error zero-one | --classes 4",
        "error": "--error zero-one", "scope": "--scope item", "steps": "--steps 10",
        "keep": "{} --steps 7 | --keep quantile", "ties": "--ties together", "end": "--end zero",
        "normalise": "--normalise none", "grid": "--grid every-rank",
        "definition": "--definition gustafsson-code",
    },
    "conformal": CLASSES | with_inputs(
        {**CLASSES, **OF_TARGETS}, "--fit-on fit.txt --alpha 0.4",
    ) | REFUSED | {
        "names": "unnamed.npz --fit-on fit.txt --alpha 0.4 | --names drives.txt",
        "kind": "z.npy labels.npy --fit-on numbers.txt --alpha 0.4 | --kind logits",
        "axes": "nhwc.npy labels.npy --fit-on numbers.txt --alpha 0.4 | --axes NHWC",
        "limit": "--limit 5", "fit_on": "p.npz --alpha 0.4 | --fit-on fit.txt",
        "alpha": "p.npz --fit-on fit.txt --alpha 0.4 | --alpha 0.6", "method": "--method aps",
        "risk": "--risk fnr:1",
        "uncertainty": "r.npz --fit-on fit.txt --alpha 0.4 | --uncertainty other",
    },
    "regression": NUMBERS | {
        "distribution": "--distribution laplace", "levels": "--levels 9", "grid": "--grid closed",
        "proportion": "--proportion quantile", "area": "--area crossing", "depth": "--depth",
        "ence": "--ence", "ence_bins": "{} --ence | --ence-bins 4", "sigma_scale": "--sigma-scale",
        "fit_on": "{} --sigma-scale | --fit-on half.txt",
        "definition": "--definition uncertainty-toolbox",
    },
    "nmerci": NUMBERS | {
        "alpha": "--alpha 50", "depth_step": "--depth-step 3", "over": "--over kept",
        "interpolation": "--interpolation truncated", "mae": "--mae trimmed",
        "definition": "--definition public-code",
    },
    "tc": ANY | {
        "ignore_index": "frames.npz void_v.npz | --ignore-index 2",
        "names": "frames.npz w.npz | --names names_v.txt",
        "class_names": "--class-names a,b,c", "classes": "--classes 5",
        "kind": "frames.npz z_v.npy | --kind logits", "axes": "frames.npz hwn_v.npy | --axes HWN",
        "label_map": "{} --labels ids_v | --label-map cityscapes",
        "sum_tolerance": "frames.npz sums_v.npz | --sum-tolerance 0.1",
        "missing_chunks": "gaps_v.zarr | --missing-chunks fill", "region": "--region class:0",
        "depth_map": "{} --region depth:1-5 | --depth-map depth_v.npy",
        "labels": "--labels labels_v.npz", "pseudo_labels": "--pseudo-labels other.npz",
        "resize": "frames.npz small.npz | --resize nearest",
        "flow": "--flow dis", "flow_scale": "--flow-scale 0.5", "occlusion": "--occlusion fb",
        "flow_path": "{} --flow file | --flow-path other_flow.npy",
        "flow_forward_path": "{} --flow file --tracks | --flow-forward-path forward.npy",
        "absent": "{} --classes 5 | --absent zero", "least_pixels": "--least-pixels 400",
        "average": "--average pooled", "grid": "--grid previous", "drop_cuts": "--drop-cuts",
        "out_of_frame": "--out-of-frame clamp", "tracks": "--tracks",
        "track_step": "{} --tracks | --track-step 3",
        "track_length": "{} --tracks | --track-length 3",
        "track_everywhere": "{} --tracks | --track-everywhere", "definition": "--definition vspw",
        "slices": "--slices pairs.csv", "slice_by": "{} --slices pairs.csv | --slice-by city",
        "group_by": f"{{}} {DRAWS} --slices pairs.csv --slice-by city | --group-by drive",
    },
    "ood": CLASSES | with_inputs(CLASSES, "--ood-mask mask.npy") | {
        "kind": "z.npy z2.npy | --kind logits", "axes": "nhwc.npy nhwc2.npy | --axes NHWC",
        "class_names": "ids.npz --ood-mask mask.npy | --class-names a,b,c",
        "aggregation": "--aggregation max", "patch": "{} --aggregation patch-max | --patch 2",
        "ood_mask": "p.npz --ood-mask 1 | --ood-mask 2", "region": "--region box:0:0.5,0:1",
        "depth_map": "p.npz --ood-mask mask.npy --region depth:1-5 | --depth-map depth.npy",
        "definition": "p.npz --ood-mask mask.npy | --definition bravo",
        "slices": "--slices sets.csv", "slice_by": "{} --slices sets.csv | --slice-by city",
        "group_by": f"{{}} {DRAWS} --slices sets.csv --slice-by city | --group-by drive",
    },
    "annotators": CLASSES | REFUSED | {
        "ignore_index": "p.npz void_raters.npy | --ignore-index 2",
        "names": "unnamed.npz raters.npy | --names names.txt",
        "kind": "z.npy raters.npy | --kind logits", "axes": "nhwc.npy raters.npy | --axes NHWC",
        "label_map": "p.npz train_ids --annotator-folders | --label-map cityscapes",
        "sum_tolerance": "sums.npz raters.npy | --sum-tolerance 0.1",
        "missing_chunks": "gaps_raters.zarr | --missing-chunks fill",
        "distance": "--distance dice", "distance_classes": "--distance-classes foreground",
        "absent": "--absent agree", "pairs": "--pairs pooled", "ncc_ddof": "--ncc-ddof 1",
        "disagreement": "--disagreement entropy", "bins": "--bins 4", "clip": "--clip 0.1",
        "definition": "--definition values",
    },
    "divergence": ANY | {
        "names": "unnamed.npz unnamed.npz | --names names.txt",
        "kind": "z.npy z2.npy | --kind logits", "axes": "nhwc.npy nhwc2.npy | --axes NHWC",
        "sum_tolerance": "sums.npz q.npz | --sum-tolerance 0.1",
        "missing_chunks": "gaps.zarr q.npz | --missing-chunks fill",
        "invalid": "r.npz s.npz | --invalid 0.5", "clip": "--clip 0.01",
    },
    "sweep": CLASSES | OF_TARGETS | {
        "metric": "--metric failure", "reference": "--reference q.npz",
        "samples": "--samples 1", "repeats": "--repeats 1", "seed": "{} --repeats 1 | --seed 1",
        "error": "{} --metric sparsification | --error zero-one",
        "clip": "{} --reference q.npz | --clip 0.1",
    },
    "run": CLASSES | OF_TARGETS | {
        "part": "--part 1/2", "uncertainty": "p.npz | --uncertainty confidence",
        "reference": "p.npz | --reference q.npz", "video": "v.npz | --video frames.npz",
        "stores": "two.yaml | --store b", "today": "waived.yaml | --today 2030-01-02",
        "gate": "waived.yaml | --no-gate", "baseline": "drops.yaml | --baseline failure.json",
    },
}  # fmt: skip
#: These commands need one pass, and refuse a file of fits.
ONE_PASS = {"regression", "tc", "annotators", "divergence", "sweep"}
#: Options of the output and of the machine.
KEEPS: Lines = {
    "output": "-o other.json", "csv": "--csv other.csv", "format": "-o other.json --format csv",
    "states": "-o other.json --no-states", "quiet": "-q", "workers": "--workers 1",
    "memory": "--memory 300MB", "map_cache": "--map-cache cache", "flow_cache": "--flow-cache flow",
    "resume": "{} -o other.json | --resume", "dask": "--dask {dask}",
    # Of a run, whose output is a folder.
    "gallery": "--gallery 1", "single_file": "--single-file",
}  # fmt: skip
OWN_KEEPS = {
    ("sweep", "resume"): "{} --part 1/2 -o other.json | --resume", ("run", "resume"): "--resume",
    ("run", "output"): "-o elsewhere",
}  # fmt: skip
#: Options that replace the inputs of `COMMANDS` by those of a store in `uqeval.yaml`.
STORES = {
    "regression": "numbers", "nmerci": "numbers", "tc": "video", "ood": "sets",
    "annotators": "raters", "divergence": "compared",
}  # fmt: skip


#: All commands, made once: it takes a tenth of the time of these small runs.
GROUP = typer.main.get_command(app)


def options_of(command: str) -> list[str]:
    """Return the names of a command's options, as it declares them."""
    declared = GROUP.get_command(None, command).params  # type: ignore[attr-defined]
    return [one.name for one in declared if one.param_type_name != "argument"]


OPTIONS = [(command, option) for command in COMMANDS for option in options_of(command)]
CHANGING = [(c, o) for c, o in OPTIONS if o in CHANGES[c]]
KEEPING = [(c, o) for c, o in OPTIONS if o in KEEPS and o not in CHANGES[c]]


def numbers(report: dict[str, Any]) -> Any:
    """Return the results of a report, without the options among them."""
    results = {
        key: {n: v for n, v in own.items() if isinstance(settings.get(n, True), bool)}
        for key, own in report["results"].items()
        for settings in [report["settings"].get(key, {})]
    }
    intervals = {
        field: [one.get(name) for name in ("low", "high", "standard_error")]
        for field, one in report.get("intervals", {}).items()
    }
    return results, report["items"], intervals, report.get("slices"), report.get("numerics")


@cache
def results(command: str, line: str) -> Any:
    """Return the results of a command, or the message of its error as text."""
    words = line.split()
    made = words[words.index("-o") + 1] if "-o" in words else "out"
    if command == "run":
        shutil.rmtree(made, ignore_errors=True)
        words += [] if "-o" in words else ["-o", made]
    elif "--format" not in words:
        words += ["--format", "json"]
    with mock.patch("typer.testing._get_command", return_value=GROUP):
        ended = CliRunner().invoke(app, [command, *words])
    if isinstance(ended.exception, UqevalError) or (ended.exit_code and command != "run"):
        return str(ended.exception) + ended.output
    assert ended.exception is None or isinstance(ended.exception, SystemExit), ended.exception
    if command != "run":
        text = Path("other.json").read_text() if "--format csv" in line else ended.stdout
        return numbers(json.loads(text))
    records = {path.name: json.loads(path.read_text()) for path in Path(made).glob("*.json")}
    verdicts = records.pop("verdicts.json", {}).get("counts")
    return ({n: numbers(r) for n, r in records.items()}, verdicts) if records else ended.output


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Work in a folder of inputs; draw no pages, which no option of this file is about."""
    root = tmp_path_factory.mktemp("effects")
    write_all(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        patch.setattr("uqeval.report.page.html.to_html", lambda *_, **__: "")
        patch.setattr("uqeval.report.page.html.with_first_screen", lambda *_, **__: "")
        patch.setattr("uqeval.usecases.run.running.write_overview", lambda _: None)
        results("pavpu", "p.npz --threshold 0.2 -o pavpu.json")
        results("failure", "p.npz -o failure.json")
        yield
    results.cache_clear()  # its files are in this folder


@pytest.fixture(scope="module")
def dask() -> Iterator[str]:
    """Return the address of a cluster of one worker in this process."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, memory_limit=0,
        dashboard_address="127.0.0.1:0", silence_logs=logging.CRITICAL, protocol="tcp",
    ) as cluster:  # fmt: skip
        yield cluster.scheduler_address


def test_the_tables_have_every_option() -> None:
    others = {(c, o) for c in COMMANDS for o in ("store", "fitted") if o in options_of(c)}
    assert {*CHANGING, *KEEPING} | others == set(OPTIONS)


def both(command: str, line: str) -> tuple[Any, Any]:
    """Return the results without and with the option at the end of a line."""
    before, _, added = line.rpartition("|")
    before = (before.strip() or "{}").replace("{}", COMMANDS[command])
    words, flag = before.split(), added.split()[0]
    if flag in words:  # another value
        del words[words.index(flag) : words.index(flag) + 2]
    return results(command, before), results(command, f"{' '.join(words)} {added.strip()}")


@pytest.mark.parametrize(("command", "option"), CHANGING)
def test_an_option_changes_the_results(command: str, option: str) -> None:
    line = CHANGES[command][option]
    without, changed = both(command, line.removeprefix("refused:"))
    if line.startswith("refused:"):
        assert isinstance(changed, str)
        assert option_name(option) in changed or option in changed
        return
    assert not isinstance(changed, str), changed
    assert changed != without


@pytest.mark.parametrize(("command", "option"), KEEPING)
def test_an_option_keeps_the_results(
    command: str, option: str, request: pytest.FixtureRequest
) -> None:
    line = OWN_KEEPS.get((command, option), KEEPS[option])
    if option == "dask":
        line = line.replace("{dask}", request.getfixturevalue("dask"))
    without, same = both(command, line)
    assert not isinstance(same, str), same
    assert same == without


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "run"])
def test_fits_start_the_next_pass_of_a_shard(command: str) -> None:
    first, second, fits = (f"{command}.{name}.json" for name in ("1", "2", "fits"))
    inputs = COMMANDS[command]
    results(command, f"{inputs} --part 1/2 -o {first}")
    results(command, f"{inputs} --part 2/2 -o {second}")
    assert CliRunner().invoke(app, f"merge {first} {second} --fit -o {fits}".split()).exit_code == 0
    states = Path(f"{command}.1.states.zip").read_bytes()
    counted = results(command, f"{inputs} --part 1/2 -o {first} --fitted {fits}")
    if command in ONE_PASS:
        assert "all passes are counted" in counted
    else:
        assert not isinstance(counted, str), counted
        assert Path(f"{command}.1.states.zip").read_bytes() != states


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "run"])
def test_a_store_of_the_file_has_the_same_results(command: str) -> None:
    _, _, options = COMMANDS[command].partition(" --")
    line = f"--store {STORES.get(command, 'classes')}" + (f" --{options}" if options else "")
    same = results(command, line)
    assert not isinstance(same, str), same
    assert same == results(command, COMMANDS[command])


#: Commands with options of inputs that are not the defaults.
COPIED = [
    "pavpu unnamed.npz --names names.txt --region depth:1-5 --depth-map depth.npy --window 2",
    "pavpu p.npz --threshold-from pavpu.json --definition ma",
    "calibration gaps.zarr --missing-chunks fill --no-temperature",
    "failure void.npz --ignore-index 2 --threshold 0.3",
    "failure r.npz --images --invalid 0.5 --median-scaling --risk-limit 0.9",
    "sparsification nan.npz --nan-samples skip --grid every-rank",
    "conformal z.npy labels.npy --kind logits --fit-on numbers.txt --alpha 0.4",
    "regression r.npz --invalid 0.5 --baseline-focal 3 --disparity both",
    "nmerci hwn.npz target.npy --axes HWN --limit 3",
    "tc frames.npz other.npz --labels labels_v.npz --flow file --flow-path other_flow.npy",
    "tc v.npz --pseudo-labels other.npz --classes 5",
    "ood p.npz+q.npz out_members.npz --aggregation max",
    "ood p.npz --ood-mask 1",
    "annotators p.npz train_ids --annotator-folders --label-map cityscapes",
    "divergence gaps.zarr q.npz --missing-chunks fill --clip 0.01",
    # Options that some results of the command do not use.
    "pavpu p.npz --uncertainty entropy --uncertainty confidence --log-base 2",
    "pavpu p.npz --threshold-scope region --region box:0:0.5,0:1",
    "failure p.npz --images --confidence share --confidence max --threshold p90",
    "calibration p.npz --no-temperature --ci 0.9 --draws 100 --seed 3",
]


@pytest.mark.parametrize("line", COPIED)
def test_a_copied_command_gives_the_number_beside_it(line: str) -> None:
    def report_of(words: Sequence[str]) -> Report:
        Path("copied.json").unlink(missing_ok=True)
        with mock.patch("typer.testing._get_command", return_value=GROUP):
            ended = CliRunner().invoke(app, [*words, "-q", "-o", "copied.json"])
        assert ended.exit_code == 0, (words, ended.output, ended.exception)
        return Report.load("copied.json")

    report = report_of(line.split())
    for key, result in report.results.items():
        _, *words = shlex.split(command_of(report, key))
        if words[0] == "run":  # segmentation; it writes a folder
            assert "segmentation" in key
            continue
        plain = dataclasses.replace(Key.parse(key), variant=None)
        assert report_of(words).results[str(plain)] == result
