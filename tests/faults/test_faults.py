"""A fixed sample of the faults that `benchmarks/faults.py` puts into every command."""

from __future__ import annotations

import pytest
from injection import CASES, Bench, Injection, build_shim, forking

from uqeval.cli.entry import COMMANDS

#: By command: operation, kind of fault, and the calls that it meets, from 1 on; 0 is the last
#: call, -1 the one before. All over an older output, but those with "new".
SAMPLE = {
    "convert": (
        "write ENOSPC 0", "write KILL -1", "open EIO 0", "rename EIO 0", "rename KILL -1 0",
        "fsync EIO -1 0", "fsync KILL 0", "fsync TERM -1", "unlink KILL 0", "unlink EIO 1 2 new",
    ),
    "writer": (
        "open EIO 1 4 5", "write EIO 7 new", "fsync KILL 0 new", "rename KILL 5 new",
        "unlink KILL 1 new",
    ),
    "writer, overwrite": (
        "write ENOSPC 0", "write KILL -1", "rename EIO 0", "rename KILL -1 0", "fsync EIO 0",
        "fsync KILL 0", "unlink KILL 0",
    ),
    "select": (
        "write ENOSPC 0", "write KILL -1 0", "open EIO 0", "rename EIO 0", "rename KILL -1 0",
        "fsync EIO 0", "fsync KILL 0", "unlink EIO 0",
    ),
    "gate": ("write ENOSPC 0", "rename KILL 0", "rename TERM 1"),
    # A report and its states are the older ones or the new ones, whichever rename is met.
    "pavpu": ("rename KILL -3 -2 -1 0", "fsync EIO -1 0", "rename EIO 0", "unlink TERM 1"),
}  # fmt: skip


def test_every_command_has_a_case() -> None:
    """`demo` and `selftest` run as scripts that make them small."""
    tried = {
        case.name if case.arguments[0] == "-c" else case.arguments[0] for case in CASES.values()
    }
    assert set(COMMANDS) <= tried


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("faults")
    try:
        library = build_shim(folder)
    except FileNotFoundError as error:
        pytest.skip(f"faults are injected by a library in C, and there is {error}")
    return Bench(folder / "bench", forking(library), of_evidence=False)


@pytest.mark.parametrize("command", SAMPLE)
def test_outputs_are_whole_whatever_fails(bench: Bench, command: str) -> None:
    case, found = CASES[command], []
    for line in SAMPLE[command]:
        operation, kind, *calls = line.removesuffix(" new").split()
        old = not line.endswith(" new")
        for k in map(int, calls):
            call = k if k > 0 else bench.counts(case, old)[operation] + k
            found.append(bench.run(Injection(case, operation, call, kind, old)))
    assert not [f"{one}: {text}" for one in found for text in one.defects]
    assert {one.outcome for one in found} & {"refused", "killed"}
