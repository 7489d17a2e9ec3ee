"""The layers of packages, and where libraries may be imported; read from the sources with `ast`."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest

import uqeval
import uqeval.metrics

ROOT = Path(uqeval.__file__).parent

#: Libraries that are imported in one package only.
HOMES = {
    "numba": {"kernels"},
    "zarr": {"stores"},
    "h5py": {"stores"},
    "numcodecs": {"stores"},
    "cv2": {"maps", "stores", "usecases.selftest", "usecases.verify"},
    "dask": {"engine.dask_cluster", "engine.dask_executor"},
    "distributed": {"engine.dask_cluster", "engine.dask_executor"},
    "tensorboard": {"usecases.trackers"},
    "mlflow": {"usecases.trackers"},
    "wandb": {"usecases.trackers"},
    "fiftyone": {"usecases.trackers"},
    "typer": {"cli"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "yaml": {"config"},
    # Its locks are not safe from interrupts, see `uqeval/threads.py`.
    "concurrent": {"threads", "maps.frame_ids"},
}

#: Packages import packages of lower layers only, for types too. The lowest is first.
LAYERS = (
    ("arrays", "errors", "keys", "special", "unicode_names", "version"),
    ("spelling", "threads"),
    ("argument_types",),
    ("disk", "kernels", "settings"),
    ("records", "stores"),
    ("maps",),
    ("tallies",),
    ("metrics",),
    ("glossary", "inputs", "statistics"),
    ("engine", "gate", "writer"),
    ("compare", "config"),
    ("report",),
    ("usecases",),
    ("cli",),
)

#: Packages that import less than their layer allows: packages, or single modules of them.
LESS = {
    "stores": {
        "arrays", "disk", "errors", "kernels.reading", "spelling", "threads", "unicode_names",
    },
    "stores.states": {
        "arrays", "disk", "errors", "spelling", "stores.compression", "threads", "unicode_names",
    },
    "stores.zarr": {
        "arrays", "disk", "errors", "stores.array", "stores.attribute_arrays",
        "stores.axis_names", "stores.bfloat16", "stores.buffer_pool", "stores.compression",
        "stores.contents", "stores.coordinates", "stores.file_values", "stores.kinds",
        "stores.map_names", "stores.names", "stores.orders", "stores.shared_attributes",
        "stores.watch", "threads",
    },
    "records": {"argument_types", "disk", "errors", "keys", "spelling", "unicode_names"},
    # Files that an option names: a report with a threshold, a list or table of items. Addresses of
    # fields and of intervals.
    "metrics": {
        "argument_types", "arrays", "errors", "kernels", "keys", "maps", "records.addresses",
        "records.intervals", "records.report", "settings", "stores.item_table", "stores.names",
        "tallies", "unicode_names",
    },
    "statistics": {
        "arrays", "disk", "errors", "kernels", "keys", "metrics", "records", "settings", "special",
        "stores", "tallies", "threads",
    },
    "engine": {
        "arrays", "disk", "errors", "inputs", "maps", "metrics._driver", "metrics._evaluation",
        "settings", "statistics.options", "stores", "tallies", "threads",
    },
    "gate": {"disk", "errors", "glossary", "keys", "records", "special"},
    "compare": {"errors", "gate", "glossary", "keys", "records", "statistics"},
    "report": {
        "compare", "disk", "errors", "gate", "glossary", "inputs.options", "keys", "metrics",
        "records", "settings", "statistics.options", "threads",
    },
    "config": {
        "disk", "engine.options", "errors", "gate", "inputs.options", "keys", "metrics", "settings",
        "spelling", "statistics.options",
    },
    # Recomputes: of what it verifies it may see the inputs, stores and records of metrics, and no
    # formula.
    "usecases.verify": {
        "arrays", "version", "keys", "disk", "errors", "glossary", "inputs", "records", "stores",
        "unicode_names",
    },
    "usecases.evidence": {
        "disk", "errors", "gate", "glossary", "keys", "records", "report", "stores",
        "usecases.selftest", "usecases.verify", "version",
    },
}  # fmt: skip

#: Libraries that a package may not import at all.
_LIGHT = {"numpy", "numba", "zarr", "numcodecs", "cv2", "PIL"}
NEVER = {
    "records": _LIGHT,
    "report": _LIGHT,
    "gate": _LIGHT,
    "compare": _LIGHT,
    "config": _LIGHT,
    "errors": {"numpy", "pydantic"},
    "disk": {"keys", "numpy", "zarr"},
}

#: Packages that import these inside functions only, so that listing metrics loads neither; NumPy
#: they have from `uqeval.arrays`.
LATE = {"metrics": {"numpy", "uqeval.kernels"}, "tallies": {"numpy", "uqeval.kernels"}}

#: What help, completion and the gate may not load.
HEAVY = ("numpy", "numba", "zarr", "numcodecs", "cv2", "PIL", "matplotlib", "jinja2")


@dataclass(frozen=True)
class Import:
    """One import of one module: `late` inside a function, `typing` for type checkers only.

    `face`: the package whose name is imported, in `from package import name`; else empty.
    """

    file: str
    line: int
    module: str
    target: str
    late: bool
    typing: bool
    face: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"

    def within(self, *places: str) -> bool:
        """Whether the module that imports lies in one of these packages."""
        return below(self.module, places)

    @property
    def library(self) -> str:
        return self.target.split(".")[0]

    @property
    def place(self) -> str:
        """Of our own modules: the path below `uqeval`, "maps.names"."""
        return self.target.partition(".")[2]


def below(module: str, places: Iterable[str]) -> bool:
    """Whether a module is one of `places`, or lies in it."""
    return any(f"{module}.".startswith(f"{place}.") for place in places)


#: What an import is, or can lie in; expressions, most of a file, hold none.
STATEMENTS = (ast.stmt, ast.excepthandler, ast.match_case)


def _module_of(path: Path, root: Path) -> str:
    """The module of a file, without `uqeval`; that of `uqeval/__init__.py` is `__init__`."""
    return ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path, root: Path = ROOT) -> Iterator[Import]:
    relative = path.relative_to(root)
    package = ["uqeval", *relative.parts[:-1]]
    module_of_file = _module_of(path, root)

    def walk(node: ast.AST, late: bool, typing: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, STATEMENTS):
                continue
            deeper = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            only = typing
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                only = typing or child in node.body
            targets: list[str] = []
            face = ""
            if isinstance(child, ast.Import):
                targets = [alias.name for alias in child.names]
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) + 1 - child.level] if child.level else []
                module = ".".join([*base, *([child.module] if child.module else [])])
                face = module
                # `from uqeval.maps import names` is an import of `uqeval.maps.names`.
                targets = [
                    f"{module}.{alias.name}"
                    if _is_module(f"{module}.{alias.name}", root)
                    else module
                    for alias in child.names
                ]
            for target in targets:
                yield Import(
                    str(relative), child.lineno, module_of_file, target, deeper, only, face
                )
            yield from walk(child, deeper, only)

    yield from walk(ast.parse(path.read_text("utf-8")), False, False)


@cache
def _is_module(name: str, root: Path) -> bool:
    parts = name.split(".")
    path = root.joinpath(*parts[1:])
    return parts[0] == "uqeval" and (path.is_dir() or path.with_suffix(".py").is_file())


@cache
def all_imports() -> list[Import]:
    return [found for path in sorted(ROOT.rglob("*.py")) for found in imports_of(path)]


def shown(found: list[Import]) -> str:
    return "\n".join(map(str, found))


def test_the_sources_are_read() -> None:
    assert len(all_imports()) > 200
    assert any(found.late for found in all_imports())
    assert any(found.typing for found in all_imports())


def test_every_package_has_its_layer() -> None:
    packages = {found.module.partition(".")[0] for found in all_imports()} - {
        "__init__",
        "__main__",
    }
    assert packages <= set(chain(*LAYERS)), packages - set(chain(*LAYERS))


@pytest.mark.parametrize("height", range(len(LAYERS)), ids=lambda n: "-".join(LAYERS[n]))
def test_imports_go_down(height: int) -> None:
    below_it = set(chain(*LAYERS[:height]))
    strays = [
        i
        for package in LAYERS[height]
        for i in all_imports()
        if i.within(package) and i.library == "uqeval" and i.place
        and not below(i.place, {package} | below_it)
    ]  # fmt: skip
    assert not strays, shown(strays)


@pytest.mark.parametrize("library", HOMES)
def test_a_library_stays_in_its_package(library: str) -> None:
    strays = [i for i in all_imports() if i.library == library and not i.within(*HOMES[library])]
    assert not strays, shown(strays)


@pytest.mark.parametrize("package", LESS)
def test_a_package_imports_only_what_it_stands_on(package: str) -> None:
    strays = [
        i
        for i in all_imports()
        if i.within(package) and i.library == "uqeval"
        and i.place and not below(i.place, {package, *LESS[package]})
    ]  # fmt: skip
    assert not strays, shown(strays)


def test_no_modules_import_each_other() -> None:
    """Not even inside functions or for types: of two that do, neither can be read alone."""
    assert not (circle := _circle(_arrows(all_imports(), ROOT))), " imports ".join(circle)


def _arrows(imports: Iterable[Import], root: Path) -> dict[str, set[str]]:
    """The modules that each module imports, also through the face of a lazy package.

    A face, `__init__.py`, is lazy if it has `__getattr__`, which imports at the first use of a
    name, perhaps by a string. `from package import name` calls it, also for the name of a module.
    Strings elsewhere are registries, such as that of metrics: their f-strings do not say which
    modules of a package they mean.
    """
    follows: dict[str, set[str]] = defaultdict(set)
    faces = {_module_of(path, root): path for path in root.rglob("__init__.py") if _is_lazy(path)}
    for found in imports:
        if found.library != "uqeval":
            continue
        targets = {found.place or "__init__"}
        face = found.face.partition(".")[2]
        # All modules lie in `uqeval`: for them, only names that are no modules are of its face.
        if face in faces and found.within(face):
            targets.add(face)
        follows[found.module] |= targets - {found.module}
    modules = {_module_of(path, root) for path in root.rglob("*.py")}
    for face, path in faces.items():
        for prefix in _imported_by_string(path):
            follows[face] |= {module for module in modules if module.startswith(prefix)} - {face}
    return follows


def _is_lazy(path: Path) -> bool:
    """Whether a file defines or imports `__getattr__`."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
    return "__getattr__" in names


def _imported_by_string(path: Path) -> Iterator[str]:
    """The beginnings of names, without `uqeval.`, that a file gives to `import_module`."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            text = node.args[0]
            first = text.values[0] if isinstance(text, ast.JoinedStr) else text
            if isinstance(first, ast.Constant) and str(first.value).startswith("uqeval."):
                yield str(first.value).removeprefix("uqeval.")


def _circle(follows: dict[str, set[str]]) -> list[str]:
    """A circle among these arrows; empty if there is none."""
    done: set[str] = set()

    def walk(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        found = next(filter(None, (walk(m, [*path, module]) for m in follows.get(module, ()))), [])
        done.add(module)
        return found

    return next(filter(None, (walk(module, []) for module in list(follows))), [])


def test_a_circle_is_found() -> None:
    assert _circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert _circle({"a": {"b", "c"}, "b": {"c"}}) == []


@pytest.mark.parametrize(
    ("face", "inner", "circle"),
    [
        # The face takes over a function that imports the package again.
        ("from uqeval.p.a import __getattr__", "def f():\n from uqeval.p import b", "p p.a p"),
        (
            "def __getattr__(name):\n from uqeval.p.a import f\n return f",
            "def g():\n from uqeval.p import f",
            "p p.a p",
        ),
        (
            "def __getattr__(name):\n return import_module(f'uqeval.p.{name}')",
            "from uqeval.p import b",
            "p p.a p",
        ),
        ("def __getattr__(name):\n from uqeval.p.a import f", "import uqeval.p.b as b", ""),
        ("from uqeval.p.b import f", "from uqeval.p import b", ""),  # no lazy face
    ],
)
def test_a_circle_through_a_lazy_face_is_found(
    tmp_path: Path, face: str, inner: str, circle: str
) -> None:
    (tmp_path / "p").mkdir()
    sources = {"__init__.py": "", "p/__init__.py": face, "p/a.py": inner, "p/b.py": "f = 1"}
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    imports = [i for path in sorted(tmp_path.rglob("*.py")) for i in imports_of(path, tmp_path)]
    found = _circle(_arrows(imports, tmp_path))
    assert set(found) == set(circle.split())


def test_a_circle_through_the_root_is_found(tmp_path: Path) -> None:
    lazy = "def __getattr__(name):\n from uqeval.a import f\n return f"
    for name, text in {"__init__.py": lazy, "a.py": "from uqeval import f"}.items():
        (tmp_path / name).write_text(text)
    imports = [i for path in sorted(tmp_path.rglob("*.py")) for i in imports_of(path, tmp_path)]
    assert set(_circle(_arrows(imports, tmp_path))) == {"__init__", "a"}


@pytest.mark.parametrize("package", NEVER)
def test_a_package_never_imports(package: str) -> None:
    never = NEVER[package]
    strays = [i for i in all_imports() if i.within(package) and i.library in never and not i.typing]
    assert not strays, shown(strays)


@pytest.mark.parametrize("package", LATE)
def test_a_package_imports_late(package: str) -> None:
    strays = [
        i
        for i in all_imports()
        if i.within(package) and not i.late and not i.typing and below(i.target, LATE[package])
    ]
    assert not strays, shown(strays)


def test_the_engine_sees_no_metric_and_metrics_see_no_pixel() -> None:
    strays = [
        i
        for i in all_imports()
        if i.within("metrics")
        and (below(i.place, ["maps.sources", "maps.reduction"]) or below(i.place, ["stores"]))
        and i.place not in ("stores.names", "stores.item_table")
    ]
    assert not strays, shown(strays)


def test_nobody_imports_tests() -> None:
    strays = [
        i for i in all_imports() if i.library in ("tests", "naive", "scenes", "laws", "pytest")
    ]
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
        "import uqeval.cli.entry",
        "import uqeval.compare, uqeval.cli.compare",
        "import uqeval.metrics; uqeval.metrics.METRICS",
        "import pkgutil, uqeval.tallies as t\n"
        "for m in pkgutil.iter_modules(t.__path__): __import__(f'{t.__name__}.{m.name}')",
        "import uqeval.config; uqeval.config.json_schema()",
        "import uqeval; uqeval.Report; uqeval.evaluate; uqeval.UqevalError",
        "import sys; sys.argv = ['uqeval', '--version']\n"
        "try:\n import uqeval.cli.start; uqeval.cli.start.main()\nexcept SystemExit: pass",
        "import sys; sys.argv = ['uqeval', '--help']\n"
        "try:\n import uqeval.cli.start; uqeval.cli.start.main()\nexcept SystemExit: pass",
    ],
)
def test_what_starts_at_once(statement: str) -> None:
    loaded = loaded_by(statement)
    assert "uqeval" in loaded
    heavy = [name for name in HEAVY if name in loaded]
    assert not heavy, f"{statement} loads {heavy}"


@pytest.mark.parametrize("package", [uqeval, uqeval.metrics])
def test_public_names_are_there(package: ModuleType) -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        package.nonsense  # noqa: B018


#: What only some commands need.
OWN = tuple(
    f"uqeval.{module}."
    for module in (
        *(f"metrics.{name}" for name in (*uqeval.metrics.FAMILIES, "temporal")),
        "gate", "tallies.patches", "tallies.ranks", "tallies.temporal", "tallies.reliability",
    )
)  # fmt: skip


def test_a_command_loads_its_family_and_no_gate() -> None:
    script = (
        "import sys, uqeval.metrics, uqeval.report.markdown, uqeval.tallies.patches\n"
        "uqeval.metrics.FAMILIES['pavpu']\n"
        "print(*sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    families = {module for module in run.stdout.split() if f"{module}.".startswith(OWN)}
    assert families == {"uqeval.metrics.pavpu", "uqeval.tallies.patches"}


def test_families_by_their_names_in_reports() -> None:
    known = uqeval.metrics.FAMILIES_IN_REPORTS
    assert list(known) == [family.in_reports for family in uqeval.metrics.FAMILIES.values()]
    assert known["temporal"] is uqeval.metrics.FAMILIES["tc"]


def _names_of_faces() -> list[str]:
    """Imports of a package's own names by modules that lie in it."""
    packages = {path.parent for path in ROOT.rglob("__init__.py")} - {ROOT}
    faces = {".".join(path.relative_to(ROOT.parent).parts) for path in packages}
    return [
        str(found)
        for found in all_imports()
        if found.target in faces and f"uqeval.{found.module}.".startswith(f"{found.target}.")
    ]


def test_no_module_imports_a_name_of_the_face_of_its_package() -> None:
    assert not (strays := _names_of_faces()), "\n".join(strays)


def test_the_face_of_the_command_line_lists_names_only() -> None:
    tree = ast.parse((ROOT / "cli" / "__init__.py").read_text())
    kinds = {type(node) for node in tree.body}
    assert kinds <= {ast.Expr, ast.ImportFrom, ast.Assign}


def test_completion_lists_the_public_names() -> None:
    assert dir(uqeval) == sorted(uqeval.__all__)
