"""Messages to callers in Python name keywords; those of commands name flags. All are sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command import refused, run_forked, run_uqeval

import uqeval
from uqeval.argument_types import checks_types
from uqeval.errors import UsageError
from uqeval.records.folder import load_reports
from uqeval.spelling import (
    as_commands,
    as_flags,
    as_keys,
    as_keywords,
    spelled,
)
from uqeval.usecases.run.outcome import keys_of_file


@pytest.mark.parametrize(
    ("text", "keywords"),
    [
        ("give --missing-chunks fill, or write it.", "give missing_chunks fill, or write it."),
        ("--fit-on needs it; leave out --no-temperature.",
         "fit_on needs it; leave out temperature=False."),
        ("--labels and --pseudo-labels exclude each other",
         "labels and pseudo_labels exclude each other"),
        ("--part 9/4; expected K/N", "part=9/4; expected K/N"),
        ("give --ci LEVEL, such as --ci 0.95.", "give ci=LEVEL, such as ci=0.95."),
        ("--kind 'x'; expected", "kind='x'; expected"),
        ("Give --flow dis, or --flow dis:fast.", "Give flow dis, or flow dis:fast."),
        ("give -o FILE.", "give states=FILE."),
        ("run `uqeval merge --fit SHARDS -o FILE` and --fitted FILE",
         "run `uqeval merge --fit SHARDS -o FILE` and fitted=FILE"),
        ("add --kind=logits, or", "add kind='logits', or"),
        ("Ids: uqeval run x.zarr LABELS --classes N. Or give --classes.",
         "Ids: uqeval run x.zarr LABELS --classes N. Or give classes."),
        ("Start `dask worker ADDRESS --nthreads=1`, then --dask local:N",
         "Start `dask worker ADDRESS --nthreads=1`, then dask local:N"),
        ("a--b, 3 --- 4 and x=--", "a--b, 3 --- 4 and x=--"),
    ],
)  # fmt: skip
def test_flags_become_keywords(text: str, keywords: str) -> None:
    assert spelled(text) == keywords
    assert spelled(keywords) == keywords


@pytest.mark.parametrize(
    ("text", "of_file"),
    [
        ("give --ignore-index 255.", "give `ignore_index: 255`."),
        ("give --ignore-index, or --label-map.", "give `ignore_index:`, or `label_map:`."),
        ("leave out --no-temperature.", "leave out `temperature: false`."),
        ("add --kind=logits, or", "add `kind: logits`, or"),
        ("--fit-on FILE; --ci 0.95 shows it", "`fit_on: FILE`; --ci 0.95 shows it"),
        ("give -o DIR, not `uqeval run --kind x`", "give -o DIR, not `uqeval run --kind x`"),
    ],
)  # fmt: skip
def test_options_of_a_file_become_keys(text: str, of_file: str) -> None:
    with as_keys(keys_of_file()):
        with as_flags():
            assert spelled(text) == of_file
        assert spelled(text, "output") == as_keywords(of_file, "output")


@pytest.mark.parametrize(
    ("text", "with_command"),
    [
        ("--fit-on FILE names others", "uqeval calibration --fit-on FILE names others"),
        ("use --resize nearest (--ci 0.9)", "use uqeval tc --resize nearest (--ci 0.9)"),
        ("`uqeval tc --resize nearest` does", "`uqeval tc --resize nearest` does"),
    ],
)  # fmt: skip
def test_options_that_a_command_lacks_have_their_command(text: str, with_command: str) -> None:
    with as_commands({"fit_on": "calibration", "resize": "tc"}), as_flags():
        assert spelled(text) == with_command


def test_errors_that_leave_a_run_with_a_file_name_its_keys() -> None:
    with pytest.raises(UsageError, match=r"^give `kind: logits` and ci=0.9$"), as_keys({"kind"}):
        raise UsageError("give --kind=logits and --ci 0.9")


def test_stores_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ids = np.zeros((2, 4, 4), np.uint8)
    ids[0, 0, 0] = 77
    np.savez("bad.npz", probs=np.full((2, 3, 4, 4), 1 / 3, np.float32), labels=ids)
    np.savez("none.npz", probs=np.full((2, 3, 4, 4), 1 / 3, np.float32))
    stores = "bad: {predictions: bad.npz}, none: {predictions: none.npz}"
    Path("u.yaml").write_text(
        f"stores: {{{stores}, from: {{predictions: bad.npz, ignore_index: 77}}}}\n"
        "evaluate: {bad: {failure: }, none: {failure: }, from: {pavpu: "
        "{threshold_from: no.json}}}\n"
    )
    failed = uqeval.run_config("u.yaml").failed
    assert "Give `ignore_index:`." in failed["bad"]
    assert "Give the store the key `labels:`" in failed["none"]
    assert failed["from"].endswith("expected a report, as Report.save writes it.")
    Path("w.yaml").write_text(
        "stores: {a: {predictions: bad.npz, ignore_index: 77}}\n"
        "evaluate: {a: {pavpu: , calibration: }}\ngate: {pavpu.pavpu: {min: 0.9}}\n"
    )
    advice = run_forked("run", "w.yaml", "-o", "w", cwd=tmp_path)
    assert "`fit_on: FILE` names other items" in advice.stderr and "--fit-on" not in advice.stderr
    assert "use `threshold_from: REPORT`" in " ".join(advice.stdout.split())
    of_command = run_forked("run", "u.yaml", cwd=tmp_path)
    refused(of_command, "Give `ignore_index:`.", "expected a report, as -o writes it.")


def test_names_of_files_that_python_writes(tmp_path: Path) -> None:
    refused(lambda: uqeval.Report.load("none.json"), "expected a report, as Report.save writes it.")
    refused(lambda: uqeval.fit_shards("none.json", "f.json"), "a report, as Report.save writes it.")
    refused(lambda: uqeval.merge("no.states.zip"), "the states file that states= writes.")
    refused(lambda: load_reports(tmp_path), "expected what Report.save writes.")


def test_the_output_of_a_function_is_not_its_states() -> None:
    @checks_types()
    def run_like(output: str) -> None:
        raise UsageError("give another folder with -o DIR")

    refused(lambda: run_like("out"), "give another folder with output=DIR")


#: Methods that raise none of the errors with options.
_QUIET = {"close", "missing", "record", "to_json", "json_pieces", "refuse_not_finite"}


@pytest.mark.parametrize("name", sorted(set(uqeval.__all__) - {"__version__"}))
def test_every_public_function_spells_keywords(name: str) -> None:
    """`wraps` marks the decorated ones."""
    public = getattr(uqeval, name)
    if isinstance(public, type) and issubclass(public, Exception):
        return
    functions = {name: public}
    if isinstance(public, type):
        functions = {
            key: getattr(value, "__func__", value) for key, value in vars(public).items()
            if (callable(value) or isinstance(value, classmethod)) and not key.startswith("_")
            and key not in _QUIET
        }  # fmt: skip
    assert functions and all(hasattr(function, "__wrapped__") for function in functions.values())


def test_a_frame_with_ids_that_are_no_classes() -> None:
    frame, ids = np.zeros((8, 8, 3), np.uint8), np.full((8, 8), 255, np.uint16)
    observer = uqeval.TemporalObserver(classes=300)
    refused(lambda: observer.update(frame, ids), "give ignore_index=255.")
    refused(
        lambda: uqeval.TemporalObserver(classes=3).update(frame, ids - 5),
        "Give ignore_index, or classes.",
    )


def test_the_caller_determines_the_spelling(tmp_path: Path) -> None:
    store, labels = tmp_path / "probs.npy", tmp_path / "labels.npy"
    np.save(store, np.full((2, 3, 4, 4), 1 / 3, np.float32))
    np.save(labels, np.zeros((2, 4, 4), np.uint8))
    call = (lambda: uqeval.evaluate(store, labels, "segmentation", missing_chunks="x"),
            lambda: uqeval.evaluate(store, labels, {"calibration": {"temperature_of": "y"}}),
            lambda: uqeval.evaluate(store, labels, draws=200))  # fmt: skip
    refused(call[0], "missing_chunks='x'; expected one of error, fill")
    refused(call[1], "temperature_of='y'")
    refused(call[2], "draws and seed need intervals; give ci=LEVEL, such as ci=0.95")
    refused(run_uqeval("pavpu", store, labels, "--draws", "200"), "such as --ci 0.95")


def test_warnings_of_reports_have_the_spelling_of_the_caller(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], (4, 8, 8)).transpose(0, 3, 1, 2).astype(np.float32)
    labels, states = rng.integers(0, 3, (4, 8, 8)).astype(np.uint8), tmp_path / "s.states.zip"
    evaluator = uqeval.Evaluator(metrics="calibration")
    evaluator.update(probs, labels, list("abcd"))
    np.save(tmp_path / "p.npy", probs)
    np.save(tmp_path / "l.npy", labels)
    for report, option in (
        (uqeval.evaluate(probs, labels, "calibration", states=states), "fit_on=FILE"),
        (uqeval.merge(states), "fit_on=FILE"),
        (evaluator.report(), "fit_on=FILE"),
        (uqeval.sweep(np.stack([probs, probs], 1), labels, "calibration", limit=2), "(limit)"),
    ):
        assert any(option in text for text in report.warnings), report.warnings
        assert not any("--" in text for text in report.warnings)
    done = run_uqeval("calibration", tmp_path / "p.npy", tmp_path / "l.npy")
    assert "--fit-on FILE" in done.stdout + done.stderr


#: Verbs whose subject stands before them: `PATH is unfinished`, not `PATH: is unfinished`.
_VERBS = (
    "is|are|was|were|has|have|had|holds?|cannot|can|could|does|may|must|will|names(?! of)|lacks?|"
    "contains?|needs?|belongs?|begins?|ends?|starts?|lies|comes?|exists?|repeats?|matches|differs?|"
    "changed|appears?|claims?|looks|declares?|verifies|judges|writes|reads|says|gives|takes"
)
#: A colon between a subject and such a verb; not in a question (`Calibration: is it right?`), and
#: not after the star of a footnote.
_SPLIT = re.compile(rf"[^\s*]: (?:{_VERBS})\b(?!(?:[^.]|\.\d)*\?)")
_READERS = {"partition", "rpartition", "split", "rsplit", "removeprefix"}


def _split_sentences(code: str) -> list[int]:
    """Return the lines of texts with a colon between a subject and its verb."""
    nodes = _nodes(code)
    docstrings = {id(own.value) for own in nodes if isinstance(own, ast.Expr)}
    parts = {id(part) for own in nodes if isinstance(own, ast.JoinedStr) for part in own.values}
    others = docstrings | parts
    return [
        own.lineno
        for own in nodes
        if isinstance(own, ast.expr) and id(own) not in others and _SPLIT.search(_text_of(own))
    ]


@cache
def _nodes(code: str) -> list[ast.AST]:
    """Return all nodes of a file's code; both tests of all files look at them."""
    return list(ast.walk(ast.parse(code)))


def _text_of(node: ast.AST) -> str:
    """Return a text, with `{}` for the values of an f-string; empty for other nodes."""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) or "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _readers_of_colons(code: str) -> list[int]:
    """Return the lines of calls that take a text apart at a colon and a space, as prose has it."""
    return [
        call.lineno
        for call in _nodes(code)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        and call.func.attr in _READERS
        and any(isinstance(part, ast.Constant) and ": " in str(part.value)
                for argument in call.args for part in ast.walk(argument))
    ]  # fmt: skip


def _sources() -> Iterator[tuple[Path, str]]:
    root = Path(uqeval.__file__).parent
    for path in sorted(root.rglob("*.py")):
        yield path.relative_to(root), path.read_text("utf-8")


def test_a_message_has_no_colon_between_its_subject_and_its_verb() -> None:
    bad = [f"{path}:{line}" for path, code in _sources() for line in _split_sentences(code)]
    assert not bad, f"write `{{path}} is …`, not `{{path}}: is …`: {bad}"
    for text in ("{path}: is unfinished", "{p}::{q}: holds", "'{p}': cannot be read", "x: has no"):
        assert _split_sentences(f'f"{text}."') == [], "an expression is no message"
        assert _split_sentences(f'm = f"{text}."') == [1]
        assert _split_sentences(f'm = (f"{text[:-3]}"\n"{text[-3:]}")') == [1]
    for text in ("{p} is unfinished", "{p}: the labels", "{p}: names of items", "Sigma: is it 3?"):
        assert not _split_sentences(f'm = f"{text}"')


def test_no_code_reads_the_text_before_a_colon_of_a_message() -> None:
    bad = [f"{path}:{line}" for path, code in _sources() for line in _readers_of_colons(code)]
    assert not bad, f"keep the parts of a message beside it, and do not take it apart: {bad}"
    for call in ('m.partition(": ")', 'm.split(": ", 1)', 'm.removeprefix(f"{place}: ")'):
        assert _readers_of_colons(call) == [1]
    assert not _readers_of_colons('key.partition(":")')
