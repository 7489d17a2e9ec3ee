"""Reports with known values, to test rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uqeval.config import load_rules
from uqeval.errors import StoreError
from uqeval.gate import Interval, Mover, Rule, Units
from uqeval.records.folder import Named
from uqeval.records.report import Report


def row(cls: int | str, name: str, value: float) -> dict[str, Any]:
    return {"class": cls, "name": name, "pavpu": value}


def items(**values: float) -> list[dict[str, Any]]:
    return [{"name": name, "pavpu": {"pavpu": value}} for name, value in values.items()]


def report(pavpu: float | None = 0.8, **changes: Any) -> Report:
    """Three items; classes road, traffic.light and mixed; slices of weather, and of city too."""
    record: dict[str, Any] = {"uncertainty": "entropy", "pavpu": pavpu, "phi": None, "n_ac": 7}
    record["phi_reason"] = "all patches are certain"
    record["per_class"] = [
        row(0, "road", 0.9), row(1, "traffic.light", 0.4), row("mixed", "mixed", 0.5)
    ]  # fmt: skip
    record["surplus_peak"] = None
    record["surplus_peak_reason"] = "no peak"
    if pavpu is None:
        record["pavpu_reason"] = "no patch was counted"
    night = {
        "items": 1, "small": True, "results": {"pavpu": {"pavpu": 0.5}},
        "intervals": {"pavpu.pavpu": {"level": 0.9, "low": 0.4, "high": 0.6, "approximate": True}},
    }  # fmt: skip
    fields: dict[str, Any] = {
        "uqeval_version": "0.1.0",
        "inputs": {"labels": {"fingerprint": "f"}, "ignore_index": 255},
        "settings": {"pavpu": {"window": 4, "threshold": "mean", "threshold_from": None}},
        "results": {
            "pavpu": record, "pavpu[window=7]": {"pavpu": 0.7},
            "failure": {"risk_at_coverage": {"80": 0.03}, "auroc": 0.9},
            "calibration": {"ece": 0.02, "temperature": {"value": 1.5, "ece": 0.01}},
            "nmerci": {"by_depth": [{"lower": 0, "nmerci": 0.2}, {"lower": 8, "nmerci": 0.3}]},
        },
        "items": items(a=0.9, b=0.6, c=0.7),
        "intervals": {
            "pavpu.pavpu": {"level": 0.95, "low": 0.75, "high": 0.85, "approximate": False},
            'pavpu.per_class."traffic.light".pavpu': {"level": 0.95, "low": 0.3, "high": 0.5},
        },
        "slices": {"weather=night,city=x": {"items": 1, "results": {"pavpu": {"pavpu": 0.3}}},
                   "weather=night": night},
    }  # fmt: skip
    return Report(**fields | changes)


def named(name: str = "city", value: float | None = 0.8, **changes: Any) -> Named:
    return Named(name, Path(f"{name}.json"), report(value, **changes))


def rules(folder: Path, text: str) -> list[Rule]:
    (folder / "rules.yaml").write_text(text, "utf-8")
    return load_rules(folder / "rules.yaml")


class Known:
    """A resampler with fixed answers."""

    def __init__(self, interval: Interval, change: Interval | None = None) -> None:
        self.given, self.given_change = interval, change
        self.asked: list[tuple[Any, ...]] = []
        self.moved: list[tuple[Path, Path | None]] = []

    def units(self, report: Path, address: Any) -> Units:
        raise StoreError(f"{report} has no states beside it.")

    def interval(self, report: Path, address: Any, level: float) -> Interval:
        self.asked.append((report, str(address), level))
        return self.given

    def change(
        self, report: Path, baseline: Path, address: Any, level: float, relative: bool
    ) -> Interval:
        self.asked.append((report, baseline, str(address), level, relative))
        assert self.given_change is not None
        return self.given_change

    def movers(
        self, report: Path, baseline: Path | None, address: Any, count: int, sign: int
    ) -> list[Mover]:
        self.moved.append((report, baseline))
        return [Mover("c", influence=-0.2 * sign)]

    def group_movers(
        self, report: Path, baseline: Path | None, address: Any, count: int, sign: int
    ) -> list[Mover]:
        return []
