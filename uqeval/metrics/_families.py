"""The families of metrics by name, loaded when they are looked up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

from uqeval.metrics._family import Family


class _Families(MutableMapping[str, Family]):
    """Families by name; a module is loaded when its family is looked up."""

    def __init__(self, modules: dict[str, str]) -> None:
        self._modules = modules
        self._families: dict[str, Family] = {}

    def __getitem__(self, name: str) -> Family:
        if name not in self._families:
            module = import_module(f"uqeval.metrics.{self._modules[name]}")
            self._families[name] = module.FAMILY
        return self._families[name]

    def __setitem__(self, name: str, family: Family) -> None:
        self._families[name] = family
        self._modules.setdefault(name, name)

    def __delitem__(self, name: str) -> None:
        del self._modules[name], self._families[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def names_in_reports(self) -> dict[str, str]:
        """Return the name of each family by its key in reports, which is the name of its module."""
        loaded = {name: family.in_reports for name, family in self._families.items()}
        return {loaded.get(name, module): name for name, module in self._modules.items()}


class _InReports(Mapping[str, Family]):
    """The families by their names in reports."""

    def __getitem__(self, name: str) -> Family:
        return FAMILIES[FAMILIES.names_in_reports()[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES.names_in_reports())

    def __len__(self) -> int:
        return len(FAMILIES)


#: The only list of families, by name, with the module that defines `FAMILY`. Runs, columns of
#: reports, directions of the gate and tables of the docs come from it.
FAMILIES = _Families({
    "segmentation": "segmentation",
    "pavpu": "pavpu",
    "calibration": "calibration",
    "failure": "failure",
    "image_failure": "image_failure",
    "sparsification": "sparsification",
    "regression": "regression",
    "nmerci": "nmerci",
    "divergence": "divergence",
    "ood": "ood",
    "conformal": "conformal",
    "annotators": "annotators",
    "tc": "temporal",
})  # fmt: skip
FAMILIES_IN_REPORTS = _InReports()
