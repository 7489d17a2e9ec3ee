"""A fixed sample of the faults that `benchmarks/faults.py` puts into every command."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from injection import CASES, Bench, Injection, build_shim, forking


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("faults")
    try:
        library = build_shim(folder)
    except FileNotFoundError as error:
        pytest.skip(f"faults are injected by a library in C, and there is {error}")
    return Bench(folder / "bench", forking(library))


def _sample() -> Iterator[tuple[str, str, str, int]]:
    """Command, operation, kind, and which of its calls, from the last one on."""
    for command in ("reduce", "convert", "writer, overwrite", "select"):
        for operation, kind in (
            ("write", "ENOSPC"), ("write", "KILL"), ("open", "EIO"), ("rename", "EIO"),
            ("rename", "KILL"), ("fsync", "EIO"), ("fsync", "KILL"), ("unlink", "KILL"),
        ):  # fmt: skip
            yield command, operation, kind, 0
            if operation in ("write", "rename", "fsync"):
                yield command, operation, kind, 1
    for command in ("gate", "tc"):
        for operation, kind in (("write", "ENOSPC"), ("rename", "KILL"), ("open", "EIO")):
            yield command, operation, kind, 0
    yield "reduce", "fsync", "TERM", 1


SAMPLE = list(_sample())


@pytest.mark.parametrize("command", dict.fromkeys(command for command, *_ in SAMPLE))
def test_outputs_are_whole_whatever_fails(bench: Bench, command: str) -> None:
    case, found = CASES[command], []
    for _, operation, kind, back in (one for one in SAMPLE if one[0] == command):
        k = bench.counts(case, True)[operation] - back
        if k > 0:
            found.append(bench.run(Injection(case, operation, k, kind, True)))
    assert not [f"{one}: {text}" for one in found for text in one.defects]
    assert {one.outcome for one in found} & {"refused", "killed"}


@pytest.mark.parametrize(("operation", "kind"), [("rename", "KILL"), ("fsync", "EIO")])
def test_a_report_and_its_states_are_the_older_or_the_new(
    bench: Bench, operation: str, kind: str
) -> None:
    case = CASES["pavpu"]
    last = bench.counts(case, True)[operation]
    found = [bench.run(Injection(case, operation, last - k, kind, True)) for k in range(3)]
    assert not [f"{one}: {text}" for one in found for text in one.defects]
