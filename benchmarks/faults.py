"""Every command with a fault at every write, open, rename, fsync and unlink that it makes.

    python benchmarks/faults.py [--most N] [--workers N] [COMMAND ...]

Prints a table of command × kind of fault × outcome, and every defect. `--most` takes so many places
of each operation, spread over all. Needs Linux and a C compiler.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
import injection as faults


def spread(count: int, most: int) -> list[int]:
    """At most `most` numbers of 1 … count, the first among them, and the last of several."""
    if count <= most:
        return list(range(1, count + 1))
    if most == 1:
        return [1]
    return sorted({1 + round(i * (count - 1) / (most - 1)) for i in range(most)})


def injections(bench: faults.Bench, case: faults.Case, most: int) -> Iterator[faults.Injection]:
    """All faults of a command."""
    for old in (False, True) if case.outputs and case.again else (False,):
        for operation, count in bench.counts(case, old).items():
            for kind in faults.KINDS:
                if kind == "ENOSPC" and operation not in ("write", "open", "fsync"):
                    continue
                # The first and the last calls of TERM differ only in what is cleaned up.
                for k in spread(count, max(most // 4, 2) if kind == "TERM" else most):
                    yield faults.Injection(case, operation, k, kind, old)


def campaign(name: str, library: Path, root: Path, most: int) -> list[faults.Injection]:
    """All faults of one command."""
    root.mkdir()
    bench = faults.Bench(root, faults.forking(library))
    return [bench.run(one) for one in injections(bench, faults.CASES[name], most)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", default=list(faults.CASES))
    parser.add_argument("--most", type=int, default=12)
    parser.add_argument("--workers", type=int, default=2)
    chosen = parser.parse_args()
    if unknown := [name for name in chosen.commands if name not in faults.CASES]:
        parser.error(f"no command {', '.join(unknown)}; there are {', '.join(faults.CASES)}")
    if chosen.most < 1:
        parser.error(f"--most {chosen.most}; expected at least 1")
    outcomes: Counter[tuple[str, str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(chosen.workers) as workers:
        library = faults.build_shim(Path(folder))
        jobs = {
            workers.submit(campaign, name, library, Path(folder) / str(n), chosen.most): name
            for n, name in enumerate(chosen.commands)
        }
        for job in as_completed(jobs):
            if (error := job.exception()) is not None:  # the table keeps the other commands
                outcomes[jobs[job], "none", "DEFECT"] += 1
                print(f"{jobs[job]}: the bench failed: {error!r}", flush=True)
                continue
            for one in job.result():
                outcomes[jobs[job], one.kind, "DEFECT" if one.defects else one.outcome] += 1
                for text in one.defects:
                    print(f"{one}: {text}", flush=True)
            own = [f"{kind} {outcome} {count}" for (name, kind, outcome), count
                   in sorted(outcomes.items()) if name == jobs[job]]  # fmt: skip
            print(f"{jobs[job]}: {', '.join(own)}; {outcomes.total()} so far", flush=True)
    columns = sorted({(kind, outcome) for _, kind, outcome in outcomes})
    print(f"\n{'command':20}" + "".join(f"{k + ' ' + o:>18}" for k, o in columns))
    for name in chosen.commands:
        row = "".join(f"{outcomes[name, k, o] or '':>18}" for k, o in columns)
        print(f"{name:20}{row}")
    defects = sum(count for (_, _, outcome), count in outcomes.items() if outcome == "DEFECT")
    print(f"{outcomes.total()} injections, {defects} with a defect")
    sys.exit(bool(defects))


if __name__ == "__main__":
    main()
