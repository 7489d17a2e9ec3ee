"""All benchmarks of speed, uqeval and its peers in one run: `python -m benchmarks`.

Prints one table and keeps a JSON. Each row is measured in a process of its own: median wall and CPU
seconds of five calls, files in the page cache, and the peak memory. `×` is the time divided by that
of the yardstick, the row above that has no ratio. On a busy machine, ratios of wall times need
`--turns 5`, which measures the rows of a group in turn.

`--check OLD.json` compares the ratios with those of an earlier run on the same kind of machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import (
    of_clusters,
    of_commands,
    of_items,
    of_maps,
    of_numbers,
    of_regions,
    of_reports,
    of_stores,
)
from benchmarks.common import Case, Cost, Setup, measure, measure_here, median
from uqeval.engine.options import usable_cpus
from uqeval.version import VERSION

GROUPS: dict[str, Callable[[Setup], Iterator[Case]]] = {
    group.__name__: group
    for group in (
        of_maps.maps, of_maps.subnormal, of_maps.patches, of_stores.reading, of_stores.workers,
        of_stores.peers, of_stores.small, of_stores.pixels, of_items.items, of_items.classes,
        of_numbers.ranks, of_regions.regions, of_reports.reports, of_clusters.cluster,
        of_commands.tc, of_commands.observer, of_commands.start, of_commands.first,
    )
}  # fmt: skip
#: A ratio that is larger than before by more than this share is a regression.
TOLERANCE = 0.25
_WIDTH = 62


def machine() -> dict[str, Any]:
    """Return the properties of the machine that times depend on."""
    model = platform.processor()
    if (info := Path("/proc/cpuinfo")).exists():
        lines = info.read_text().splitlines()
        model = next((v.partition(":")[2].strip() for v in lines if v.startswith("model name")), "")
    return {"cpu": model, "cpus": usable_cpus(), "system": platform.system()}


def rows_of(
    name: str, setup: Setup, repeats: int, turns: int, here: bool
) -> Iterator[dict[str, Any]]:
    """Measure a group, and print its rows; those of libraries that are missing are named."""
    group = GROUPS[name]
    print(f"\n{name}: {(group.__doc__ or '').splitlines()[0]}", flush=True)
    print(f"{'':<{_WIDTH}} {'wall s':>8} {'CPU s':>8} {'peak MB':>8} {'× wall':>8} {'× CPU':>8}")
    cases = list(group(setup))
    base: dict[str, Any] | None = None
    for case, cost in zip(cases, _costs_of(cases, repeats, turns, here), strict=True):
        if isinstance(cost, str):
            print(f"{case.name:<{_WIDTH}} {cost}", flush=True)
            if case.yardstick:
                base = None
            kind = "failed" if case.is_possible else "left_out"
            yield {"group": name, "name": case.name, kind: cost if case.is_possible else case.needs}
            continue
        row: dict[str, Any] = {
            "group": name, "name": case.name, "seconds": cost.seconds, "cpu": cost.cpu,
            "peak_mb": cost.peak,
        }  # fmt: skip
        line = f"{case.name:<{_WIDTH}} {cost.seconds:8.3f} {cost.cpu:8.3f} {cost.peak:8.0f}"
        if case.yardstick:
            base = row
        elif base:
            row |= {
                "yardstick": base["name"], "ratio": cost.seconds / base["seconds"],
                "cpu_ratio": cost.cpu / max(base["cpu"], 1e-9),
            }  # fmt: skip
            line += f" {row['ratio']:8.3g} {row['cpu_ratio']:8.3g}"
        print(line, flush=True)
        yield row


def _costs_of(cases: Sequence[Case], repeats: int, turns: int, here: bool) -> Iterator[Cost | str]:
    """Yield the cost of each case, the median of its turns; or why there is none.

    With several turns all cases are measured one after another, then again: what else the machine
    does then changes all of them alike.
    """
    costs: list[list[Cost]] = [[] for _ in cases]
    for turn in range(turns):
        for case, own in zip(cases, costs, strict=True):
            reason = "" if case.is_possible else f"left out: {case.needs} is not installed"
            if case.is_possible and len(own) == turn:
                try:
                    own.append((measure_here if here else measure)(case, repeats))
                except Exception as error:  # one that fails does not end the others
                    reason = f"failed: {' '.join(str(error).split())}"
            if turn == turns - 1:
                yield median(own) if len(own) == turns else reason or "failed in an earlier turn"


def compare(old: dict[str, Any], new: dict[str, Any]) -> int:
    """Print the ratios that grew; return 1 if there are any, 2 if the runs cannot be compared."""
    for field in ("machine", "tiny"):
        if old[field] != new[field]:
            print(f"\nnot comparable: {field} was {old[field]}, is {new[field]}")
            return 2
    before = {(row["group"], row["name"]): row for row in old["rows"] if "cpu_ratio" in row}
    # By CPU: other work on the machine changes it less.
    pairs = [
        (row, before[row["group"], row["name"]]["cpu_ratio"])
        for row in new["rows"]
        if "cpu_ratio" in row and (row["group"], row["name"]) in before
    ]
    slower = [(row, was) for row, was in pairs if row["cpu_ratio"] > was * (1 + TOLERANCE)]
    print(f"\n{len(pairs)} rows compared with the earlier run, {len(slower)} slower")
    for row, was in slower:
        print(f"{row['group']}, {row['name']}: {was:.3g} × CPU before, {row['cpu_ratio']:.3g} now")
    return 1 if slower else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, keep; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    # fmt: off
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP",
                        help=", ".join(GROUPS))
    parser.add_argument("--predictions", nargs="*", default=[], metavar="STORE",
                        help="stores of real samples; their labels in the folder labels/ beside")
    parser.add_argument("--million", action="store_true", help="also a million items of one pixel")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--turns", type=int, default=1,
                        help="measure all rows of a group this often, in turn (default: 1)")
    parser.add_argument("--workers", type=int, default=min(usable_cpus(), 2))
    parser.add_argument("--folder", type=Path, default=Path("build/bench"), help="for made data")
    parser.add_argument("--json", type=Path, help="default: results.json in --folder")
    parser.add_argument("--check", type=Path, metavar="OLD.json", help="an earlier run")
    parser.add_argument("--tiny", action="store_true", help="show that it works; times say nothing")
    parser.add_argument("--here", action="store_true", help="measure in this process")
    # fmt: on
    options = parser.parse_args(arguments)
    old = json.loads(options.check.read_text()) if options.check else None
    setup = Setup(
        options.folder, options.workers, options.tiny, options.million, tuple(options.predictions)
    )
    new: dict[str, Any] = {
        "version": VERSION, "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(), "load": os.getloadavg()[0], "tiny": options.tiny,
    }  # fmt: skip
    print(f"uqeval {VERSION} on {new['machine']['cpus']} × {new['machine']['cpu']}")
    new["rows"] = [
        row
        for name in options.only
        for row in rows_of(name, setup, options.repeats, options.turns, options.here)
    ]
    path = options.json or options.folder / "results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(new, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"\nkept in {path}")
    failed = any("failed" in row for row in new["rows"])
    return max(int(failed), compare(old, new) if old else 0)


if __name__ == "__main__":
    sys.exit(main())
