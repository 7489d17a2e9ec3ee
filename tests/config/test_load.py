"""`uqeval.yaml`: valid content, paths, and messages about mistakes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import typer.main

from uqeval.cli.declared import shared_options
from uqeval.cli.entry import app
from uqeval.config import Config, Store, json_schema, load_config, load_rules, no_file
from uqeval.config.messages import COMMAND_LINE_ONLY
from uqeval.config.options import commands
from uqeval.errors import UsageError
from uqeval.inputs import InputOptions
from uqeval.settings import options_of
from uqeval.usecases.run.outcome import RunSettings

ROOT = Path(__file__).parents[2]

INTERFACE = """
stores:
  city:  {predictions: preds.zarr, labels: labels/}
  depth: {predictions: depth.zarr, target: kitti/}
  drive: {video: video/}
evaluate:                       # metric settings are the options of its command, with underscores
  city:  {pavpu: {window: 4, uncertainty: [entropy, mutual_information]}, calibration: {bins: 15}}
  depth: {nmerci: {alpha: 95}, sparsification: {error: rmse}}
output: out/
gate:
  pavpu.pavpu:                     {min: 0.78, confidence: 0.95}
  city/calibration.ece:            {max: 0.02, max_rise: 0.005, id: PER-17, why: over-confident}
  pavpu[mutual_information].surplus: {min: 0.1}
  pavpu.per_class.pedestrian.pavpu: {min: 0.6}
  segmentation.miou@weather=night: {max_drop: 0.01, inconclusive: pass}
"""


def load(folder: Path, text: str) -> Config:
    (folder / "uqeval.yaml").write_text(text, "utf-8")
    return load_config(folder / "uqeval.yaml")


def test_the_file_of_the_interface(tmp_path: Path) -> None:
    config = load(tmp_path, INTERFACE)
    assert config.stores["city"].predictions == str(tmp_path / "preds.zarr")
    assert config.stores["depth"].target == str(tmp_path / "kitti")
    assert config.output == str(tmp_path / "out")
    assert config.metrics_of("city") == {
        "pavpu": {"window": 4, "uncertainty": ["entropy", "mutual_information"]},
        "calibration": {"bins": 15},
    }
    assert config.metrics_of("drive") is None
    rules = load_rules(tmp_path / "uqeval.yaml")
    assert [rule.line for rule in rules] == [11, 12, 13, 14, 15]
    assert rules[1].limits.id == "PER-17" and rules[4].limits.inconclusive == "pass"


def test_the_example_is_valid() -> None:
    config = load_config(ROOT / "examples" / "uqeval.yaml")
    assert set(config.stores) == {"city", "night", "depth"} and len(config.gate) == 5
    assert load_rules(ROOT / "examples" / "gate.yaml")


def test_a_number_stays_one_where_an_option_takes_either(tmp_path: Path) -> None:
    text = "stores: {a: {predictions: x}}\nevaluate: {a: {pavpu: {threshold: [0.4, mean, 1e-3]}}}"
    metrics = load(tmp_path, text).metrics_of("a")
    assert metrics == {"pavpu": {"threshold": [0.4, "mean", 0.001]}}


def test_paths_of_options_lie_beside_the_file(tmp_path: Path) -> None:
    text = (
        "stores: {a: {predictions: [x.zarr, 's3://bucket/y.zarr'], names: n.json, limit: 3}}\n"
        "evaluate: {a: {calibration: {fit_on: fit.txt}, segmentation: }}\n"
        "slices: {table: items.csv, by: [weather, [weather, city]]}\nci: 0.9\ngroup_by: drive"
    )
    config = load(tmp_path, text)
    assert config.stores["a"].predictions == [str(tmp_path / "x.zarr"), "s3://bucket/y.zarr"]
    assert config.stores["a"].options() == {"names": str(tmp_path / "n.json"), "limit": 3}
    assert config.metrics_of("a") == {
        "calibration": {"fit_on": str(tmp_path / "fit.txt")}, "segmentation": {}
    }  # fmt: skip
    assert config.slices is not None and config.slices.table == str(tmp_path / "items.csv")


@pytest.mark.parametrize(
    ("dask", "expected"),
    [
        ("scheduler-file:s.json", "scheduler-file:{}/s.json"), ("local:2", "local:2"),
        ("scheduler-file: s.json ", "scheduler-file:{}/s.json"),
        ("scheduler-file: ", "scheduler-file: "),
        ("scheduler-file:/s.json", "scheduler-file:/s.json"), ("tcp://h:8786", "tcp://h:8786"),
    ],
)  # fmt: skip
def test_the_file_of_a_scheduler_lies_beside_the_file(
    dask: str, expected: str, tmp_path: Path
) -> None:
    text = f"stores: {{a: {{predictions: x.zarr}}}}\nevaluate: {{a: {{pavpu: }}}}\ndask: '{dask}'"
    assert load(tmp_path, text).dask == expected.format(tmp_path)


def test_maps_of_regions_lie_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "areas").mkdir()
    text = (
        "stores: {a: {predictions: x.zarr, depth_map: d, region: [map:areas/, map:areas:3, map:x,"
        " 'boundary:8']}, b: {predictions: x.zarr, region: map:areas}}\n"
    )
    stores, areas = load(tmp_path, text).stores, f"map:{tmp_path / 'areas'}"
    assert stores["a"].options() == {
        "region": [areas, f"{areas}:3", "map:x", "boundary:8"], "depth_map": str(tmp_path / "d"),
    }  # fmt: skip
    assert stores["b"].options() == {"region": [areas]}


def test_another_name_of_a_metric_is_accepted_with_a_note(tmp_path: Path) -> None:
    text = "stores: {d: {video: v}}\nevaluate:\n  d:\n    temporal: {flow: dis, tracks: true}"
    config = load(tmp_path, text)
    assert config.metrics_of("d") == {"tc": {"flow": "dis", "tracks": True}}
    place = f"{tmp_path / 'uqeval.yaml'}:4: evaluate.d.temporal"
    assert config.notes == (f"{place}: `temporal` is called `tc`; use that name.",)
    with pytest.raises(UsageError, match=r":4: evaluate\.d\.tc: an empty list"):
        load(tmp_path, text.replace("dis", "[]"))
    with pytest.raises(UsageError, match="another name of tc, which is given too; leave one out"):
        load(tmp_path, text + "\n    tc: {}")


def test_another_name_of_an_option_is_accepted_with_a_note(tmp_path: Path) -> None:
    text = "stores: {d: {predictions: p}}\nevaluate:\n  d:\n    sweep: {metrics: [pavpu]}"
    config = load(tmp_path, text)
    assert config.metrics_of("d") == {"sweep": {"metric": ["pavpu"]}}
    place = f"{tmp_path / 'uqeval.yaml'}:4: evaluate.d.sweep.metrics"
    assert config.notes == (f"{place}: `metrics` is called `metric`; use that name.",)


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("m.csv", []), ("{table: m.csv}", []), ("{table: m.csv, by: a}", ["a"]),
        ("{table: m.csv, by: [a, [a, b]]}", ["a", ["a", "b"]]),
    ],
)  # fmt: skip
def test_forms_of_slices(tmp_path: Path, text: str, by: list[Any]) -> None:
    slices = load(tmp_path, f"slices: {text}").slices
    assert slices is not None and slices.table == str(tmp_path / "m.csv") and slices.by == by


def test_links_in_the_folder_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    config = load(folder, "stores: {a: {predictions: link/x.zarr}}")
    assert config.stores["a"].predictions == str(folder / "link/x.zarr")


#: Every place of a file that holds a path.
PLACES = pytest.mark.parametrize(
    "where",
    [
        "stores: {{a: {{predictions: {0}}}}}", "stores: {{a: {{predictions: [x, {0}]}}}}",
        "stores: {{a: {{predictions: x, labels: {0}}}}}",
        "stores: {{a: {{predictions: x, names: {0}}}}}",
        "stores: {{a: {{predictions: x}}}}\nevaluate: {{a: {{pavpu: {{threshold_from: {0}}}}}}}",
        "stores: {{a: {{predictions: x}}}}\nevaluate: {{a: {{calibration: {{fit_on: {0}}}}}}}",
        "output: {0}", "slices: {{table: {0}, by: [a]}}",
    ],
)  # fmt: skip


@PLACES
@pytest.mark.parametrize("path", ["C:\\x", "file:///etc/x", "a\\0b", "~nobody-here/x"])
def test_what_is_no_path_of_this_machine(tmp_path: Path, where: str, path: str) -> None:
    with pytest.raises(
        UsageError, match=r"uqeval.yaml:\d: .*(Windows|'/etc/x'|zero|does not have)"
    ):
        load(tmp_path, where.format(f'"{path}"' if "\\0" in path else f"'{path}'"))


@PLACES
@pytest.mark.parametrize("path", ["/data/x", "../x", "a/../../x", "~/x", "s3://bucket/x"])
def test_data_lie_anywhere(tmp_path: Path, where: str, path: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    config = load(tmp_path, where.format(f"'{path}'"))
    there = [path for store in config.stores.values() for path in store.paths()]
    there += [str(config.output), config.slices.table if config.slices else ""]
    for options in (config.metrics_of(name) for name in config.evaluate):
        there += [str(value) for own in (options or {}).values() for value in own.values()]
    expected = {"/data/x": "/data/x", "~/x": "/home/me/x", "s3://bucket/x": "s3://bucket/x"}
    assert expected.get(path, str(tmp_path / path)) in there


def test_a_path_may_contain_a_dollar(tmp_path: Path) -> None:
    (tmp_path / "$a").touch()
    store = load(tmp_path, "stores: {a: {predictions: $a}}").stores["a"]
    assert store.predictions == str(tmp_path / "$a")


def test_a_file_of_another_ending_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert no_file() == "no uqeval.yaml in this folder"
    (tmp_path / "uqeval.yml").touch()
    assert no_file() == "no uqeval.yaml in this folder (it has uqeval.yml; rename that file)"


def test_all_bad_paths_are_told_at_once(tmp_path: Path) -> None:
    text = "stores:\n  a: {predictions: ['C:\\x', 'file:///y'], labels: /z}\noutput: 'D:\\w'\n"
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert message.count("uqeval.yaml:2: stores.a.predictions: ") == 2
    assert message.count("uqeval.yaml:3: output: ") == 1 and "labels" not in message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stors: {}", "uqeval.yaml:1: stors: unknown key; did you mean 'stores'?"),
        (
            "stores: {a: {predictions: x}}\nevaluate: {a: {miou: {}}}",
            "did you mean segmentation (it computes miou)?",
        ),
        (
            "stores: {a: {predictions: x}}\nevaluate: {a: {ece: {}}}",
            "mean calibration or annotators (they compute ece)?",
        ),
        ("evaluate: {a: [pavpu]}", "expected keys with values, such as {pavpu: {}}."),
        ("stores: {a: x.zarr}", "expected keys with values, such as {predictions: x.zarr}."),
        ("regions: [x]", "regions: unknown key; it belongs to another place: `stores: {NAME: {reg"),
        (
            "stores: {a: {predictions: x, ci: 0.9}}",
            "stores.a.ci: unknown key; it belongs to another place: `ci: …` at the top level.",
        ),
        (
            "stores: {a: {predictions: x, window: 4}}",
            "another place: `evaluate: {STORE: {pavpu: {window: …}}}`.",
        ),
        (
            "stores: {a: {predictions: x}}\nevaluate: {a: {pavpu: {region: [x]}}}",
            "region: unknown key; it belongs to another place: `stores: {NAME: {region: …}}`.",
        ),
        ("calibration: {}", "another place: `evaluate: {STORE: {calibration: {}}}`."),
        (
            "stores: {a: {predictions: x}}\nevaluate: {a: {failure: {images: true}}}",
            "images: unknown key; ranking of whole images has a key of its own: "
            "`image_failure: {}`.",
        ),
        (
            "stores: {a: {predictions: x}}\nevaluate: {a: {failure: {risk: miou}}}",
            "has a key of its own: `image_failure: {risk: …}`.",
        ),
        (
            "stores: {a: {predictions: x}}\nevaluate: {pavpu: {}}",
            ":2: evaluate.pavpu is a command, and no store of this file; indent it below",
        ),
        ("workers: 1\nstores: {a: {predictons: x}}", ":2: stores.a.predictons: unknown key"),
        ("stores: {a: {predictions: 3}}", "stores.a.predictions: 3; expected a text"),
        ("stores: {a: {predictions: []}}", "stores.a.predictions"),
        ("stores: {a: {labels: x}}", "stores.a names no predictions"),
        (
            "stores: {a: {predictions: x, missing_chunks: maybe}}",
            "'maybe'; expected one of error or fill.",
        ),
        ("stores: {a/b: {predictions: x}}", "stores.a/b"),
        ("stores: [x]", ":1: stores: "),
        ("stores:", ":1: stores: "),
        ("evaluate: {a: {pavpu: {}}}", "evaluate.a is not a store"),
        ("workers: two", "workers: 'two'; expected a whole number."),
        ("workers: 0", "workers: "),
        ("ci: 95", "ci: "),
        ("memory: 512", "memory: "),
        ("gate: {pavpu.pavpu: {minn: 1}}", "minn: unknown key; did you mean 'min'?"),
        ("gate: {pavpu: {min: 1}}", "is not an address of a value; did you mean pavpu.pavpu?"),
        ("gate: {failure: {min: 1}}", "is not an address of a value, it names no field"),
        ("baseline: base/", "baseline: unknown key; it is an option of a command: uqeval run --ba"),
        ("single_file: true", "single_file: unknown key; it is an option of a command: uqeval run"),
        ("ci: 0,95", "ci: '0,95'; expected a number. A decimal number has a point: write 0.95."),
        ("gate: {rules: [{a.b: {min: 1}}]}", ":1: 'rules' is not an address of a value"),
        ("gate: {rules: {a.b: {min: 1}}}", ":1: 'rules' is not an address of a value"),
        ("gate: {a.b: {min: 1}, a/a.b: {min: 1}, 'a.\"b\"': {min: 2}}", "has a rule on line 1"),
        ("stores: {.: {predictions: x}}", ": '.'; expected a name without / and \\, not only of"),
        ("stores: {'. .': {predictions: x}}", ": '. .'; expected a name without"),
        ("slices: {tabel: m.csv}", ":1: slices.tabel: unknown key; did you mean 'table'?"),
        ("slices: {table: m.csv, column: w}", "slices.column: unknown key; expected one of table"),
        ("slices: {by: w}", ":1: slices lacks the key 'table'; give it."),
        ("slices: {table: m.csv, by: 3}", "slices.by: 3; expected a list."),
        ("slices: 3", ":1: slices: 3; expected a path, or {table: PATH, by: [COLUMN, ...]}."),
        ("slices: [m.csv]", ":1: slices: expected a path, or {table: PATH, by: [COLUMN, ...]}."),
        ("slices: 'C:\\m.csv'", "is a Windows path"),
        ("stores: {a: {predictions: x, region: }}", ":1: stores.a.region: null; the key has no"),
        ("stores: {a: {predictions: x, region: [boundry:4]}}", ":1: stores.a.region: `region: 'bo"),
        ("stores: {a: {predictions: x, region: 'class:'}}", "stores.a.region: `region: 'class:'`;"),
        (
            "stores: {a: {predictions: x}}\nevaluate:\n  a: {pavpu: {}}\n  calibration: {bins: 15}",
            ":4: evaluate.calibration is a command, and no store of this file; indent it below",
        ),
        ("stores: {a: {predictions: x}}\nevaluate: {temporal: {}}", "is a command, and no store"),
        ("stores: {a: {predictions: $DATA/x}}", ":1: stores.a.predictions: '$DATA/x': variables"),
        ("output: '${OUT}/x'", ":1: output: '${OUT}/x': variables are not expanded; write the"),
        ("ci:", ":1: ci: null; the key has no value"),
        ("slices:", "slices: null; the key has no"),
        ("", "is empty"),
        ("- a", "holds a list"),
        ("3", "holds a int"),
    ],
)
def test_mistakes(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("{pavp: {}}", "evaluate.a.pavp: unknown command; did you mean 'pavpu'?"),
        ("{pavpu: {windw: 3}}", ":2: evaluate.a.pavpu.windw: unknown key; did you mean 'window'?"),
        ("{pavpu: {window: four}}", "window: 'four'; expected a whole number or a list."),
        ("{pavpu: {window: 4.5}}", "window: 4.5; expected a whole number"),
        ("{pavpu: {window: [4, true]}}", "evaluate.a.pavpu.window: "),
        ("{pavpu: {window: 0}}", "a.pavpu: --window 0; expected a whole number of at least 1"),
        ("{pavpu: {window: []}}", "an empty list"),
        ("{calibration: {edge: middle}}", "--edge 'middle'; expected one of"),
        ("{ece: {}}", "did you mean calibration or annotators (they compute ece)?"),
        ("{pavpu: 3}", "evaluate.a.pavpu: "),
        ("[pavpu]", "evaluate.a: expected keys with values, such as {pavpu: {}}."),
        ("{calibration: {fit_on: }}", ":2: evaluate.a.calibration.fit_on: null; the key has no"),
    ],
)  # fmt: skip
def test_mistakes_in_options(tmp_path: Path, options: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, f"stores: {{a: {{predictions: x}}}}\nevaluate: {{a: {options}}}")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a.b: {}", "no limit; give one of min, max"),
        ("a.b: 0.7", "0.7; expected keys with values, such as {min: 0.7}."),
        ("a.b: {min: yes}", "'yes'; expected a number"),
        ("a.b: {min: '1'}", "expected a number"), ("a.b: {min: true}", "expected a number"),
        ("a.b: {min: .nan}", "finite"), ("a.b: {max: .inf}", "finite"),
        ("a.b: {min: 1, max: 0}", "no value is at least 1.0 and at most 0.0"),
        ("a.b: {min: 0, confidence: 95}", "95; expected a number below 1. For 95 %, write 0.95."),
        ("a.b: {min: 0,55}", "a.b.55: unknown key; a decimal number has a point: write min: 0.55."),
        ("a.b: {min: '0,5'}", "expected a number. A decimal number has a point: write 0.5."),
        ("a.b: {min: 0, 55: 1}", "a.b.55: unknown key; expected one of"),
        ("segmentation: {miou: {min: 0.5, max: 0.9}}", "write segmentation.miou: {min: 0.5, max"),
        ("segmentation: {per_class: {car: {iou: {min: 0}}}}", "segmentation.per_class.car.iou: {"),
        ("miou: {min: 0.5}", "is not an address of a value; did you mean segmentation.miou?"),
        ("ece: {max: 0.5}", "did you mean calibration.ece or annotators.ece?"),
        ("gate: {tracks: {min: 0.5}}", "is not an address of a value, it names no field"),
        ("gate: {miou: {min: 0.5}}", ":1: 'miou' is not an address"),
        ("a.b: {min: 0, undefined: skip}", "'skip'; expected one of fail or pass"),
        ("a.b: {min: 0, id: 17}", "a.b.id: 17; expected a text."),
        ("a.b: 3", ":1: a.b: 3; expected keys with values, such as {min: 3}."),
        ("a.b: {min: 1, max_drop: }", "rules.yaml:1: a.b.max_drop: null; the key has no value"),
        ("a.b: {min: 1, confidence: }", "a.b.confidence: null; the key has no value"),
        ("a.b:\n  min: 1\n  why:", "rules.yaml:3: a.b.why: null; the key has no value"),
        ("a.b: {min: 1, waive: {until: 2027-01-01, by: a, why: b, at_least: }}",
         "a.b.waive.at_least: null; the key has no value"),
        ("a.b: {max: true}", "a.b.max: true; expected a number"),
        ("gat: {a.b: {min: 1}}", "did you mean 'gate'?"), ("gate: {}", "has no rules under gate:"),
        ("stores: {}", "has no rules under gate:"), ("{}", "has no rules"),
    ],
)  # fmt: skip
def test_mistakes_in_rules(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_rules(path)
    assert says in str(caught.value)


def test_the_schema_has_no_null_for_keys() -> None:
    for name in ("Limits", "Waiver", "Store", "Slices"):
        own = json_schema()["$defs"][name]
        assert "null" not in repr(own) and not [
            None for p in own["properties"].values() if None in p.values()
        ]


def test_options_are_those_of_the_commands() -> None:
    group: Any = typer.main.get_command(app)
    known = {name: group.get_command(None, name) for name in group.list_commands(None)}
    shared = set(shared_options()) | set(Store.model_fields)
    shared |= {"paths", "context"}
    for command, options in commands().items():
        if command not in known:
            continue  # segmentation comes with the others
        of_command = {option.name for option in known[command].params} - shared
        if command == "failure":  # `failure --images` is the family image_failure
            of_command -= {"images", *commands()["image_failure"]}
        assert of_command <= set(options), command
    sweep = {o.name for o in known["sweep"].params} - shared
    assert sweep | {"reference", "seed"} == set(commands()["sweep"])


def test_input_options_are_those_of_the_library() -> None:
    paths = {"predictions", "labels", "target", "reference", "images"}
    names = {field.name for field in dataclasses.fields(InputOptions)}
    names -= {
        "part",
        "fitted",
        "whole_sequences",
        "read_maps",
        "items",
    }  # of the command line, and of no user
    assert set(Store.model_fields) == names | paths


def test_the_schema_knows_what_the_file_may_hold() -> None:
    schema = json_schema()
    assert set(schema["properties"]) == set(Config.model_fields)
    (per_store,) = schema["properties"]["evaluate"]["patternProperties"].values()
    of_a_store = per_store["anyOf"][0]
    window = of_a_store["properties"]["pavpu"]["anyOf"][0]["properties"]["window"]
    assert {"type": "integer", "minimum": 1} in window["anyOf"] and "Side" in window["description"]
    border = of_a_store["properties"]["pavpu"]["anyOf"][0]["properties"]["border"]
    assert {"enum": ["drop", "partial", "pad"]} in border["anyOf"]
    assert schema["additionalProperties"] is False
    path, table = schema["properties"]["slices"]["anyOf"]
    assert path["type"] == "string"
    assert table == {"$ref": "#/$defs/Slices"}
    slices = schema["$defs"]["Slices"]
    assert slices["required"] == ["table"]
    assert [own["type"] for own in slices["properties"]["by"]["anyOf"]] == ["string", "array"]


def test_errors_at_a_place(tmp_path: Path) -> None:
    config = load(tmp_path, "stores: {a: {predictions: x}}")
    with (
        pytest.raises(UsageError, match=r"uqeval\.yaml:1: stores\.a: give --names\.$"),
        config.errors_at("stores", "a"),
    ):
        raise UsageError("give --names.")
    without_file = Config.model_validate({"stores": {"a": {"predictions": "x"}}})
    with (
        pytest.raises(UsageError, match=r"^give --names\.$"),
        without_file.errors_at("stores", "a"),
    ):
        raise UsageError("give --names.")


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("{0}/my preds: no arrays.", "predictions"),
        ("{0}/my preds is unfinished.", "predictions"),
        ("{0}/my preds, item 2: no ids.", "predictions"),
        ("{0}/my preds b is unfinished.", "labels"),
        ("{0}/my predsx is unfinished.", None),
        ("{0}/other is unfinished.", None),
        ("probs is the kind.", None),
    ],
)
def test_an_error_that_begins_with_a_path_has_the_place_of_its_key(
    message: str, key: str | None, tmp_path: Path
) -> None:
    paths = "predictions: my preds, labels: my preds b, kind: probs"
    config = load(tmp_path, f"stores: {{a: {{{paths}}}}}\nevaluate: {{a: {{pavpu: }}}}")
    text = message.format(tmp_path)
    with pytest.raises(UsageError) as caught, config.errors_at("stores", "a"):
        raise UsageError(text)
    place = "stores.a" if key is None else f"stores.a.{key}"
    assert str(caught.value) == f"{tmp_path}/uqeval.yaml:1: {place}: {text}"


def test_options_of_the_command_line_only_are_those_of_a_run() -> None:
    keys = {*Config.model_fields}
    assert set(options_of(RunSettings)) >= COMMAND_LINE_ONLY and not keys & COMMAND_LINE_ONLY
