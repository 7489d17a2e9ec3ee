"""Command line of the campaigns: options, printed problems, and a table of outcomes."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable

#: The name of a case, such as the kind of its data; its seed; and its problems. None: `uqeval`
#: refuses it.
Result = tuple[str, int, list[str] | None]
#: The largest number of problems of a case that are printed.
_MOST = 6


def parser(doc: str | None, reports: int) -> argparse.ArgumentParser:
    """Return a parser of the options that all campaigns have; `doc`: that of the module."""
    found = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else "")
    found.add_argument("--reports", type=int, default=reports)
    found.add_argument("--seed", type=int, default=0)
    return found


def summarize(results: Iterable[Result]) -> int:
    """Print problems as they are found, then the outcomes; return the exit status."""
    counts: Counter[tuple[str, str]] = Counter()
    for name, seed, problems in results:
        outcome = "refused" if problems is None else "wrong" if problems else "right"
        counts[name, outcome] += 1
        if problems:
            print(f"{name}, seed {seed}: {len(problems)} problems")
            print(*(f"    {text[-1500:]}" for text in problems[:_MOST]), sep="\n", flush=True)
    for (name, outcome), count in sorted(counts.items()):
        print(f"{name:<16} {outcome:<8} {count:5}")
    return int(any(outcome == "wrong" for _, outcome in counts))
