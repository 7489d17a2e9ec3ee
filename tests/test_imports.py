"""The arrows of the house, as tables: who imports what, read from the sources with `ast`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import uqeval

ROOT = Path(uqeval.__file__).parent

#: Libraries that are imported in one room only.
HOMES = {
    "numba": {"kernels"},
    "zarr": {"stores", "selftest"},
    "h5py": {"stores"},
    "numcodecs": {"stores", "selftest"},
    "cv2": {"maps", "stores", "selftest", "verify"},
    "typer": {"cli"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "yaml": {"config"},
}

#: What a room imports of others when it runs (not for types): rooms, or single modules of them.
ARROWS = {
    "publishing": {"errors", "files", "untrusted", "stores.leftovers"},
    "kernels": set(),
    "files": set(),
    "untrusted": {"errors", "files"},
    "stores": {"errors", "files", "publishing", "untrusted", "stores.spare"},
    "maps": {"errors", "kernels", "stores"},
    "tallies": {"errors", "kernels", "maps.names", "maps.video_names"},
    # The last two read small files that an option names: a report, a list of items.
    "metrics": {
        "errors",
        "tallies",
        "maps.names",
        "maps.flow_method",
        "report.schema",
        "stores.names",
    },
    "sizes": {"errors"},
    "engine": {"errors", "sizes", "maps", "tallies", "stores"},
    # A report keys its intervals by address.
    "report": {"errors", "files", "publishing", "untrusted", "gate.addresses"},
    "gate": {"errors", "files", "untrusted", "report"},
    "compare": {
        "errors",
        "report",
        "gate",
        "statistics.few",
        "statistics.methods",
        "statistics.paired_comparison",
    },
    # Recomputes: of what it verifies it may see the inputs and stores, and no formula.
    "verify": {"errors", "files", "inputs", "report", "stores", "untrusted"},
    "evidence": {
        "errors",
        "files",
        "publishing",
        "report",
        "selftest",
        "stores",
        "untrusted",
        "verify",
    },
    "config": {"errors", "files", "metrics", "gate"},
    "statistics": {
        "errors",
        "files",
        "tallies",
        "metrics",
        "stores",
        "report",
        "gate.addresses",
        "gate.resampling",
        "gate.notes",
    },
}

#: Libraries that a room may not import at all.
NEVER = {
    "report": {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL"},
    "gate": {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL"},
    "compare": {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL"},
    "config": {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL"},
    "errors": {"numpy", "pydantic"},
    "files": {"numpy"},
    "publishing": {"numpy", "zarr"},
}

#: Rooms that import these inside functions only, so that listing metrics loads neither.
LATE = {"metrics": {"numpy", "uqeval.kernels"}, "tallies": {"numpy", "uqeval.kernels"}}

#: What help, completion and the gate may not load.
HEAVY = ("numpy", "numba", "zarr", "numcodecs", "cv2", "PIL", "matplotlib", "jinja2")


@dataclass(frozen=True)
class Import:
    """One import of one module: `late` inside a function, `typing` for type checkers only."""

    file: str
    line: int
    room: str
    target: str
    late: bool
    typing: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"

    @property
    def library(self) -> str:
        return self.target.split(".")[0]

    @property
    def place(self) -> str:
        """Of our own modules: the path below `uqeval`, "maps.names"."""
        return self.target.partition(".")[2]


def imports_of(path: Path) -> Iterator[Import]:
    relative = path.relative_to(ROOT)
    package = ["uqeval", *relative.parts[:-1]]
    room = relative.parts[0].removesuffix(".py")

    def walk(node: ast.AST, late: bool, typing: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            deeper = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            only = typing
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                only = typing or child in node.body
            targets: list[str] = []
            if isinstance(child, ast.Import):
                targets = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) + 1 - child.level] if child.level else []
                module = ".".join([*base, *([child.module] if child.module else [])])
                # `from uqeval.maps import names` is an import of `uqeval.maps.names`.
                targets = [
                    f"{module}.{alias.name}" if _is_module(f"{module}.{alias.name}") else module
                    for alias in child.names
                ]
            for target in targets:
                yield Import(str(relative), child.lineno, room, target, deeper, only)
            yield from walk(child, deeper, only)

    yield from walk(ast.parse(path.read_text("utf-8")), False, False)


def _is_module(name: str) -> bool:
    parts = name.split(".")
    path = ROOT.joinpath(*parts[1:])
    return parts[0] == "uqeval" and (path.is_dir() or path.with_suffix(".py").is_file())


IMPORTS = [found for path in sorted(ROOT.rglob("*.py")) for found in imports_of(path)]


def shown(found: list[Import]) -> str:
    return "\n".join(map(str, found))


def test_the_sources_are_read() -> None:
    assert len(IMPORTS) > 200
    assert {"kernels", "stores", "maps", "tallies", "metrics", "engine", "report", "cli"} <= {
        found.room for found in IMPORTS
    }
    assert any(found.late for found in IMPORTS)
    assert any(found.typing for found in IMPORTS)


@pytest.mark.parametrize("library", HOMES)
def test_a_library_stays_in_its_room(library: str) -> None:
    strays = [i for i in IMPORTS if i.library == library and i.room not in HOMES[library]]
    assert not strays, shown(strays)


@pytest.mark.parametrize("room", ARROWS)
def test_a_room_imports_only_what_it_stands_on(room: str) -> None:
    allowed = {room, *ARROWS[room]}
    strays = [
        i
        for i in IMPORTS
        if i.room == room and i.library == "uqeval" and not i.typing
        and not any(f"{i.place}.".startswith(f"{place}.") for place in allowed)
    ]  # fmt: skip
    assert not strays, shown(strays)


@pytest.mark.parametrize("room", NEVER)
def test_a_room_never_imports(room: str) -> None:
    strays = [i for i in IMPORTS if i.room == room and i.library in NEVER[room] and not i.typing]
    assert not strays, shown(strays)


@pytest.mark.parametrize("room", LATE)
def test_a_room_imports_late(room: str) -> None:
    strays = [
        i
        for i in IMPORTS
        if i.room == room and not i.late and not i.typing
        and any(f"{i.target}.".startswith(f"{name}.") for name in LATE[room])
    ]  # fmt: skip
    assert not strays, shown(strays)


def test_the_engine_sees_no_metric_and_metrics_see_no_pixel() -> None:
    # For types neither: not even the name is needed there.
    strays = [i for i in IMPORTS if i.room == "engine" and i.place.startswith("metrics")]
    strays += [
        i
        for i in IMPORTS
        if i.room == "metrics"
        and i.place.startswith(("maps.sources", "maps.reduction", "stores"))
        and i.place != "stores.names"
    ]
    assert not strays, shown(strays)


def test_nobody_imports_tests_or_upwards() -> None:
    strays = [i for i in IMPORTS if i.library in ("tests", "naive", "scenes", "laws", "pytest")]
    rooms = set(ARROWS) - {"gate"}
    strays += [i for i in IMPORTS if i.room in rooms and i.place.split(".")[0] in ("cli", "run")]
    assert not strays, shown(strays)


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if "|" in line}


@pytest.mark.parametrize(
    "statement",
    [
        "import uqeval",
        "import uqeval.cli",
        "import uqeval.compare, uqeval.cli.compare",
        "import uqeval.metrics; uqeval.metrics.METRICS",
        "import uqeval.tallies; uqeval.tallies.TALLIES",
        "import uqeval.config; uqeval.config.json_schema()",
        "import uqeval; uqeval.Report; uqeval.evaluate; uqeval.UqevalError",
        "import sys; sys.argv = ['uqeval', '--version']\n"
        "try:\n import uqeval.cli; uqeval.cli.main()\nexcept SystemExit: pass",
        "import sys; sys.argv = ['uqeval', '--help']\n"
        "try:\n import uqeval.cli; uqeval.cli.main()\nexcept SystemExit: pass",
    ],
)
def test_what_starts_at_once(statement: str) -> None:
    loaded = loaded_by(statement)
    assert "uqeval" in loaded
    heavy = [name for name in HEAVY if name in loaded]
    assert not heavy, f"{statement} loads {heavy}"


def test_public_names_are_there() -> None:
    for name in uqeval.__all__:
        assert getattr(uqeval, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        uqeval.nonsense  # noqa: B018
