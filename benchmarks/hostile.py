"""Run commands on thousands of mutants of every kind of input, and print what became of them.

    python benchmarks/hostile.py --count 5000 --seed 1
    python benchmarks/hostile.py --count 300 --kind states --kind reports
    python benchmarks/hostile.py --seed 7 --kind states:105  # one mutant again
    python benchmarks/hostile.py --leaves 2  # every entry of reports and states, twice

A mutant that ends badly (a traceback, a signal, more than 10 s or too much memory, a warning of a
library, a score out of its range) is printed below the table with its number, file and command; the
status is 1 then. `tests/hostile/` runs a fixed sample.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

CAMPAIGN = Path(__file__).parents[1] / "tests" / "helpers" / "campaign.py"


def main() -> None:
    """Run the campaign and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5000, help="how many mutants, in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--kind", action="append", default=[], help="only of this kind of files, or KIND:NUMBER"
    )
    parser.add_argument(
        "--leaves", type=int, default=0, metavar="TURNS",
        help="replace every entry of reports and states instead, so many times each",
    )  # fmt: skip
    parser.add_argument("--every", type=int, default=1, help="only every so-many-th entry")
    asked = parser.parse_args()
    print("| kind | mutants | status 0 | 1 | 2 | other | most seconds | most MB more | bad |")
    print("|---|---|---|---|---|---|---|---|---|")
    found = []
    with tempfile.TemporaryDirectory(prefix="uqeval-hostile-") as folder:
        given = [str(Path(folder) / "all"), str(asked.count), str(asked.seed), *asked.kind]
        if asked.leaves:
            given[1:] = [str(asked.every), str(asked.leaves), "leaves"]
        with subprocess.Popen(
            [sys.executable, str(CAMPAIGN), *given], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                found.append(json.loads(line))
                print(row(found[-1]), flush=True)
    bad = [(own["kind"], problem) for own in found for problem in own["problems"]]
    print(f"{sum(own['mutants'] for own in found)} mutants, {len(bad)} ended badly")
    for kind, problem in bad:
        print(f"- {kind} {problem['number']}: {problem['file']}: uqeval {problem['command']}")
        print(f"  {problem['problem']}")
    sys.exit(1 if bad or process.returncode else 0)


def row(own: dict[str, Any]) -> str:
    """One kind of files as a row of the table."""
    statuses = dict(own["statuses"])
    known = [statuses.pop(status, 0) for status in ("0", "1", "2")]
    cells = [own["kind"], own["mutants"], *known, sum(statuses.values()), f"{own['seconds']:.1f}",
             own["bytes"] // 10**6, len(own["problems"])]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
