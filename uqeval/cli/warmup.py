"""`uqeval warmup`: compile the loops of commands, and save them."""

from __future__ import annotations

import io
import signal
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from uqeval.cli.entry import COMMANDS, app
from uqeval.cli.streams import console, printing
from uqeval.disk.locks import release_all
from uqeval.errors import UsageError, did_you_mean, quoted

if TYPE_CHECKING:
    from uqeval.usecases.warmup.warming import Warmup

#: Commands that use the loops of the metric families. They run last, so that the time of a loop
#: counts for its family.
_OF_FAMILIES = ("run", "demo")


def warmup(
    commands: Annotated[list[str] | None, typer.Argument(
        metavar="[COMMAND]...", show_default=False,
        help="Commands, such as pavpu or run. Default: all.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> None:  # fmt: skip
    """Compile the loops of commands and save them for later runs, such as in a container image.

    Runs the commands on small inputs of all data types. Saves the compiled loops in the folder
    NUMBA_CACHE_DIR if that is set, else in that of the installed package or in your home folder.
    Later runs load them, even if they cannot write to that folder.

    Example: NUMBA_CACHE_DIR=/opt/uqeval uqeval warmup run
    """
    from uqeval.usecases.warmup.warming import check_cache_folder, warm_up

    names = _checked(commands or [])
    check_cache_folder()
    results = warm_up(names, _run)
    if not quiet:
        _show([r for r in results if commands or r.compiled or r.loaded])


def _checked(names: Sequence[str]) -> list[str]:
    """Return the commands to warm up, all by default. Raises `UsageError` for an unknown name."""
    not_families = [name for name in COMMANDS if name not in ("warmup", *_OF_FAMILIES)]
    known = [*not_families, *_OF_FAMILIES]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known, "see uqeval --help.")
            raise UsageError(f"there is no command {quoted(name)} to compile for; {hint}")
    return list(dict.fromkeys(names)) or known


def _run(arguments: Sequence[str]) -> None:
    """Run a command line in this process, and discard its output."""
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            status = app(list(arguments), standalone_mode=False)
    except UsageError as error:
        raise AssertionError(f"uqeval {' '.join(arguments)}: {error}") from error
    finally:
        release_all()
    if status == 128 + signal.SIGINT:  # Typer returns it in place of the exception
        raise KeyboardInterrupt
    if status:
        raise AssertionError(f"uqeval {' '.join(arguments)} ended with status {status}")


def _show(results: Sequence[Warmup]) -> None:
    """Print how many loops each command needs, and where they are saved."""
    from uqeval.kernels._jit import cache_folders, target_cpu
    from uqeval.report.tables.table import text_table
    from uqeval.report.terminal import print_table

    rows = [
        [result.command, f"{result.compiled:,}", f"{result.loaded:,}", f"{result.seconds:.1f} s"]
        for result in results
    ]
    compiled, seconds = sum(r.compiled for r in results), sum(r.seconds for r in results)
    with printing():
        stdout = console()
        print_table(text_table("", ["", "compiled", "from the cache", "time"], rows), stdout)
        where = "".join(f" in {folder}" for folder in cache_folders())
        stdout.print(
            f"{compiled:,} loops compiled for the CPU {target_cpu()} in {seconds:.1f} s, saved"
            f"{where}", highlight=False, soft_wrap=True,
        )  # fmt: skip
