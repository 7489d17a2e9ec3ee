"""Write the folder of the evidence, whole or not at all, with a record of the environment."""

from __future__ import annotations

import platform
import shutil
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from uqeval.disk.files import json_text, resolved
from uqeval.disk.locks import clear_beside
from uqeval.disk.outputs import refuse_file_name
from uqeval.disk.publishing import hidden_path, publish_folder, restore_folder, sync_tree
from uqeval.errors import OutputError, UsageError, cut
from uqeval.records.report import now
from uqeval.usecases.evidence.collecting import Evidence
from uqeval.usecases.evidence.readme import STATEMENT, readme
from uqeval.usecases.evidence.statement import statement

_README = "README.md"


def check_folder(path: str | Path, inputs: list[Path]) -> None:
    """Raise `UsageError` or `OutputError` for a folder that contains an input or other files."""
    refuse_file_name(path)
    target = resolved(path)
    for source in inputs:
        source_path = resolved(source)
        if source_path == target or target in source_path.parents:
            raise UsageError(
                f"{cut(path)} holds the input {cut(source)}; give another folder to -o."
            )
    if not target.parent.is_dir():
        raise OutputError(
            f"{cut(path)}: the folder {target.parent} does not exist; make it, or name another."
        )
    if target.is_dir():
        if any(target.iterdir()) and not (target / STATEMENT).is_file():
            raise OutputError(
                f"{cut(path)} holds other files; give an empty folder to -o, or one that an "
                "earlier uqeval evidence has written."
            )
    elif target.exists():
        raise OutputError(f"{cut(path)} is a file; give the name of a folder.")


def write_evidence(evidence: Evidence, folder: str | Path) -> list[str]:
    """Write all files into `folder`, in place of an earlier evidence there; return their names.

    Raises `UsageError`, and `OutputError` for a folder that cannot be written.
    """
    check_folder(folder, evidence.inputs())
    files, meanings = _files(evidence)
    created = now()
    meanings |= {STATEMENT: "in-toto Statement v1, predicate test-result v0.1: to be signed"}
    files[_README] = readme(evidence, meanings, created)
    files[STATEMENT] = statement(evidence, files)
    _write_files(files, resolved(folder), str(folder))
    return list(files)


def _files(evidence: Evidence) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return content and description of each file, except README and statement."""
    files: dict[str, bytes] = {}
    meanings: dict[str, str] = {}

    def add(name: str, data: bytes, description: str) -> None:
        if name in (*files, _README, STATEMENT):
            raise UsageError(f"a report has the name of another file, {name}; rename the report.")
        files[name], meanings[name] = data, description

    add("selftest.json", json_text(evidence.selftest).encode(), "the self-test of uqeval")
    add("environment.cdx.json", environment(), "the environment, CycloneDX 1.6")
    for file, description in ((evidence.verdicts_file, "the verdicts of uqeval gate"),
                      (evidence.rules_file, "the rules of the verdicts")):  # fmt: skip
        if file is not None and file.data is not None:
            add(file.name, file.data, description)
    for name, record in evidence.verifications.items():
        file_name, data = f"verification-{name}.json", json_text(record).encode()
        add(file_name, data, f"the independent recomputation of {name}")
    for name, file in evidence.report_files.items():
        add(file.name, file.data or b"", f"the report of {name}")
    return files, meanings


def _write_files(files: Mapping[str, bytes], target: Path, title: str) -> None:
    new = hidden_path(target)
    try:
        restore_folder(target)
        clear_beside(target)  # files that a killed process left
        new.mkdir()
        for name, data in files.items():
            (new / name).write_bytes(data)
        sync_tree(new)
        publish_folder(new, target)
    except OSError as error:
        raise OutputError(f"{title} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):
            shutil.rmtree(new, ignore_errors=True)


def check_library() -> None:
    """Raise `UsageError` where the library for CycloneDX is not installed."""
    try:
        import cyclonedx.model.bom
    except ImportError:
        raise UsageError(
            "the list of the environment needs cyclonedx-python-lib, which is not installed: "
            "pip install cyclonedx-python-lib"
        ) from None
    del cyclonedx


def packages() -> dict[str, str]:
    """Return the version of each installed package by its normalised name."""
    versions: dict[str, str] = {}
    for distribution in distributions():
        name = str(distribution.metadata["Name"] or "").lower().replace("_", "-").replace(".", "-")
        if name:
            versions.setdefault(name, distribution.version)
    return dict(sorted(versions.items()))


def environment() -> bytes:
    """Return the list as JSON. Raises `UsageError` without the library."""
    check_library()
    from cyclonedx.model import Property
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    installed = packages()

    def component(name: str, kind: Any) -> Any:
        purl = PackageURL("pypi", name=name, version=installed[name])
        return Component(
            type=kind, name=name, version=installed[name], purl=purl, bom_ref=purl.to_string()
        )

    bom = Bom()
    main = component("uqeval", ComponentType.APPLICATION)
    libraries = [component(name, ComponentType.LIBRARY) for name in installed if name != "uqeval"]
    python = Component(
        type=ComponentType.PLATFORM, name=platform.python_implementation(),
        version=platform.python_version(), bom_ref="python",
    )  # fmt: skip
    system = Component(
        type=ComponentType.OPERATING_SYSTEM, name=platform.system(), version=platform.release(),
        properties=[Property(name="uqeval:machine", value=platform.machine())], bom_ref="system",
    )  # fmt: skip
    bom.metadata.component = main
    for part in (*libraries, python, system):
        bom.components.add(part)
    bom.register_dependency(main, [*libraries, python])
    return (JsonV1Dot6(bom).output_as_string(indent=2) + "\n").encode()
