"""Print the lowest version of each library that pyproject.toml allows, as constraints of pip.

    python packaging/lowest.py > lowest.txt && pip install '.[cloud,dask,hdf5]' -c lowest.txt

`.ci/run` tests with them: a bound that nobody tries is soon too low.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_BOUND = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9][0-9.]*)")
#: Extras that only developers install.
_OF_DEVELOPERS = {"bench", "docs", "examples", "test"}


def lowest() -> dict[str, str]:
    """Return the lowest version of each library, by its name. Raises `ValueError` for a library
    without one."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    own_extras = (needed for extra, needed in extras if extra not in _OF_DEVELOPERS)
    versions = {}
    for requirement in (r for needed in (project["dependencies"], *own_extras) for r in needed):
        bound = _BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"{requirement}: expected a lowest version, such as numpy>=2.0")
        versions[bound[1]] = bound[2]
    return versions


if __name__ == "__main__":
    print("\n".join(f"{name}=={version}" for name, version in lowest().items()))
