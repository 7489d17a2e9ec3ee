"""The environment as a CycloneDX 1.6 list: this Python and all packages that it can import."""

from __future__ import annotations

import platform
from importlib.metadata import distributions
from typing import Any

from uqeval.errors import UsageError


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
