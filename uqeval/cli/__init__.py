"""The command line: one file a command, errors to messages and exit statuses here.

0 done; 1 a gate failed, and nothing else; 2 could not do it; 3 a bug, with its traceback;
130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from types import FrameType

import typer

from uqeval import __version__
from uqeval.cli import pavpu, reduce
from uqeval.errors import UqevalError

app = typer.Typer(
    name="uqeval",
    help="Decide whether a vision model's uncertainty can be trusted, from what it saved.",
    epilog="Documentation: README.md and docs/ of the project. Every number's definition: docs/metrics.md.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"uqeval {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None: ...


app.command("pavpu")(pavpu.pavpu)
app.command("reduce")(reduce.reduce)


def main() -> None:
    """Run the command line; the process ends with the status that `uqeval.cli` lists."""
    signal.signal(signal.SIGTERM, _terminated)
    try:
        app(prog_name="uqeval")
    except UqevalError as error:
        typer.echo(f"uqeval: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does: no error, and no second attempt at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        typer.echo("uqeval: interrupted; nothing was written.", err=True)
        sys.exit(130)
    except MemoryError:
        typer.echo("uqeval: out of memory; give a lower --memory or fewer --workers.", err=True)
        sys.exit(2)
    except Exception:
        traceback.print_exc()
        typer.echo(f"uqeval {__version__}: this is a bug; please report it with the lines above.", err=True)
        sys.exit(3)


def _terminated(number: int, frame: FrameType | None) -> None:
    # As an exception, so that temporary files are removed on the way out.
    raise SystemExit(128 + number)
