"""Run the commands that read reports on reports of random data, and check what they write.

`python benchmarks/random_commands.py --reports 100 --seed 1` prints, with the seed, each command
that ends with an exception other than an error of `uqeval`, each page with a dead link, two equal
ids or text that is not escaped, and each gate whose verdict in Python is another one. Exit status 1
if there are any. Data are those of `random_settings.py`, with names that need escapes.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import typer
import yaml

from benchmarks import campaigns
from benchmarks.random_settings import KINDS, Case, Scene
from uqeval.errors import UqevalError
from uqeval.records.addresses import Address
from uqeval.records.report import Report

#: Names of items and of classes. The first has a tag that no page has.
_NAMES = (
    "x<zz>y", "q&amp;r", 'd"q', "it's", "ü_ö", "100%", "a#1", "p,q", "=1+1", "[red]x", "a.b",
    "0010", "-n", "$HOME", "{x}", "`t`", "a|b", "long" * 30,
)  # fmt: skip
_FORMATS = ("table", "json", "csv", "markdown")


class Page(HTMLParser):
    """The tags, ids and addresses of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.tags, self.ids = path, set[str](), Counter[str]()
        self.addresses: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Add a tag, its id and the addresses that it names."""
        self.tags.add(tag)
        for name, value in attrs:
            if name == "id" and value:
                self.ids[value] += 1
            elif name == "for" and value:
                self.addresses.append(f"#{value}")
            elif name in ("href", "src") and value:
                self.addresses.append(value)

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the page."""
        yield from (f"two ids {name}" for name, count in self.ids.items() if count > 1)
        if "zz" in self.tags:
            yield "a name is not escaped"
        for address in self.addresses:
            path, _, anchor = address.partition("#")
            if address.startswith(("http:", "https:", "data:")):
                continue
            if not path and anchor and anchor not in self.ids and unquote(anchor) not in self.ids:
                yield f"dead link {address}"
            if path and not (self.path.parent / unquote(path)).exists():
                yield f"no file {path}"


class Commands:
    """Commands that are run in this process, and their problems."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def run(self, *arguments: str) -> int:
        """Run `uqeval ARGUMENTS`; return its status, 2 for an error of uqeval."""
        from uqeval.cli.entry import app

        texts = io.StringIO()
        try:
            with contextlib.redirect_stdout(texts), contextlib.redirect_stderr(texts):
                status = app(list(arguments), prog_name="uqeval", standalone_mode=False)
        except UqevalError:
            return 2
        except typer.Exit as end:
            status = end.exit_code
        except Exception as error:  # a traceback is what is looked for
            if hasattr(error, "format_message"):  # of wrong arguments
                return 2
            self.problems.append(f"uqeval {' '.join(arguments)}: {traceback.format_exc()[-1500:]}")
            return 3
        for name in arguments:
            if name.endswith(".html") and Path(name).exists():
                page = Page(Path(name))
                self.problems += [f"uqeval {' '.join(arguments)}: {p}" for p in page.problems()]
        return int(status or 0)


def named(scene: Scene, case: Case, items: int, classes: int) -> Case:
    """Return the case with names for its items and classes."""
    options = dict(case.options)
    if items <= len(_NAMES):
        options["names"] = scene.choose.sample(_NAMES, items)
    if classes:
        options["class_names"] = scene.choose.sample(_NAMES, classes)
    return replace(case, options=options)


def pictures(case: Case) -> list[str]:
    """Return the options of a page that shows pictures of items."""
    if not case.stores:
        return ["--gallery", "2", "--video", str(case.options["video"])]
    predictions, *truth = case.stores
    options = ["--gallery", "2", "--predictions", predictions]
    for path in truth:
        options += ["--labels", path]
    if names := case.options.get("names"):
        Path("names.json").write_text(json.dumps(names), "utf-8")
        options += ["--names", "names.json"]
    return options


def rules_of(scene: Scene, report: Report) -> dict[str, Any]:
    """Return rules about some scores of a report."""
    addresses = [
        Address.of_key(key, (name,)).within
        for key, record in report.results.items()
        for name, value in record.items()
        if isinstance(value, float) or f"{name}_reason" in record
    ]
    rules: dict[str, Any] = {}
    for address in scene.choose.sample(addresses, min(4, len(addresses))):
        limit = {scene.one("min", "max"): scene.one(0, 0.5, 1)}
        if scene.often(0.4):
            limit = {scene.one("max_drop", "max_rise", "max_drop_relative"): scene.one(0, 0.05)}
        rules[address] = limit | ({"undefined": "pass"} if scene.often(0.3) else {})
    return rules


def gate(commands: Commands, rules: dict[str, Any]) -> None:
    """Judge a report by the command and in Python."""
    from uqeval.config import load_rules
    from uqeval.gate import judge
    from uqeval.records.folder import load_reports
    from uqeval.statistics import resampler

    Path("rules.yaml").write_text(yaml.safe_dump(rules), "utf-8")
    baseline = any("drop" in name or "rise" in name for rule in rules.values() for name in rule)
    options = ("--baseline", "other.json") if baseline else ()
    status = commands.run("gate", "report.json", "rules.yaml", *options, "-o", "verdicts.json")
    if status in (0, 1):
        loaded = load_rules("rules.yaml")
        before = load_reports("other.json") if baseline else []
        addresses = resampler(rule.address for rule in loaded)
        verdict = judge(load_reports("report.json"), loaded, before, addresses)
        if verdict.passed != (status == 0):
            commands.problems.append(f"the gate's status is {status}, not that of Python: {rules}")
        commands.run("report", "report.json", "--verdicts", "verdicts.json", "-o", "gated.html")


def problems_of(kind: str, seed: int) -> list[str] | None:
    """Evaluate a case in the working folder and run commands on its report; return what is wrong.

    None for data or settings that `evaluate` refuses.
    """
    scene = Scene(seed)
    case = KINDS[kind](scene)
    cut: dict[str, Any] = {"ci": 0.9, "draws": 200} if scene.often(0.4) else {}
    try:
        report = case.report(**cut)
        of_items = case.options.get("out") is None and kind not in ("video", "conformal")
        if of_items and scene.often(0.7):
            names = report.inputs.get("class_names") or ()
            case = named(scene, case, len(report.items), len(names))
        for name in ("report", "other"):
            states = f"{name}.states.zip"
            report = case.report(states=states, **cut)
            report.save(f"{name}.json")
    except UqevalError:
        return None
    commands, form = Commands(), scene.one(*_FORMATS)
    gallery = pictures(case) if scene.often(0.5) else []
    commands.run("report", "report.json", "-o", "page.html", *gallery)
    commands.run("select", "report.json", "--format", form)
    commands.run("merge", "report.json", "-o", "merged.json", "--format", form)
    commands.run("compare", "report.json", "other.json", "--all", "--format", form)
    commands.run("compare", "report.json", "other.json", "--per-class", "-o", "compared.html")
    of_both = [*gallery, *gallery[2:4]] if case.stores else []  # one --predictions for each report
    commands.run("report", "report.json", "other.json", "-o", "both.html", *of_both)
    if rules := rules_of(scene, report):
        gate(commands, rules)
    if Path("merged.json").exists():
        first, second = (json.loads(Path(f"{name}.json").read_text("utf-8"))["items"]
                         for name in ("report", "merged"))  # fmt: skip
        if first != second:
            commands.problems.append("merge of a report changes its items")
    return commands.problems


def cases(reports: int, seed: int) -> Iterator[tuple[str, int, list[str] | None]]:
    """Yield kind, seed and problems of so many cases, each in a temporary folder."""
    for number in range(seed * 1_000_000, seed * 1_000_000 + reports):
        kind = list(KINDS)[number % len(KINDS)]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            yield kind, number, problems_of(kind, number)


def main() -> int:
    """Run the cases that the options name; return the exit status."""
    options = campaigns.parser(__doc__, reports=100).parse_args()
    return campaigns.summarize(cases(options.reports, options.seed))


if __name__ == "__main__":
    raise SystemExit(main())
