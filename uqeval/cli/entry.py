"""The command line: its commands, errors as messages, and exit statuses.

0 done; 1 only the gate failed; 2 an error that the user can fix; 3 a bug, with its traceback;
130 interrupted; 141 the reader of stdout closed it too early; 143 terminated;
129 its terminal was closed.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import FrameType
from typing import Any, NoReturn

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from uqeval.cli.parsing import Command, check_quickly, replace_command, show_type
from uqeval.cli.streams import (
    BROKEN_PIPE,
    drop_invalid_numbers,
    guard_streams,
    lost_output,
    silence,
    tell,
)
from uqeval.disk.locks import release_all
from uqeval.errors import NO_MEMORY, UqevalError, cut, did_you_mean, quoted, shortage
from uqeval.spelling import as_flags
from uqeval.threads import SIGNALS, uninterrupted
from uqeval.version import VERSION

#: Commands in the order of help, with the first line of their help, so that `uqeval --help` imports
#: no command. Command x is in x.py. Without such a file it belongs to a metric family, and
#: `evaluating.command_of` makes it.
COMMANDS = {
    "run": "Evaluate everything, with one read per store: reports, one page, and the gate's "
    "verdict.",
    "pavpu": "Patch accuracy vs patch uncertainty: are the wrong patches the uncertain ones?",
    "calibration": "Confidence vs accuracy: are 90 % of the pixels with confidence 0.9 correct?",
    "failure": "Failure detection: are wrong pixels less certain than correct ones?",
    "ood": "Out-of-distribution detection: is the model less certain about what it does not know?",
    "regression": "Regression: are the predicted standard deviations as large as the errors?",
    "nmerci": "n-MeRCI: does the predicted uncertainty follow the error, at any scale?",
    "sparsification": "Sparsification: does the error fall when you remove the least certain "
    "pixels?",
    "conformal": "Conformal prediction: sets of classes, or intervals, that contain the truth.",
    "annotators": "Several annotators: do the predictions disagree where people disagree?",
    "sweep": "Show how many samples are enough: each metric for M samples, mean ± std over "
    "subsets.",
    "divergence": "KL(PREDS ‖ REFERENCE): how far are the predictions from a reference "
    "distribution?",
    "tc": "TC and mTC: is a video segmentation stable over time?",
    "observe": "Measure TC online: print one JSON line per new frame, and raise alarms.",
    "select": "List the images or frames to label next: the worst first, without their neighbours.",
    "merge": "Join the saved states of several machines or shards into one report.",
    "gate": "Check reports against rules. Status 0: all hold; 1: a rule fails; 2: not judged.",
    "compare": "Compare models: scores, paired differences with intervals, and ranks.",
    "report": "Write an HTML page: scores, figures, tables and the worst items.",
    "reduce": "Convert sample stacks to per-pixel maps once, for all later evaluations.",
    "inspect": "Check a store before you evaluate it: arrays, missing chunks, values, memory "
    "and time.",
    "convert": "Convert saved predictions to a checked Zarr store that is fast to read.",
    "schema": "Print the JSON Schema of uqeval.yaml, for completion and checks in editors; or "
    "check files.",
    "warmup": "Compile the loops of commands and save them for later runs, such as in a "
    "container image.",
    "selftest": "Check that this installation computes known answers on this machine.",
    "verify": "Recompute a report from its predictions with independent code in plain NumPy.",
    "evidence": "Collect the files for a safety case: a statement to sign, results, "
    "environment, README.",
    "demo": "Create small synthetic stores, evaluate them, and write reports.",
}


#: Typer's error for wrong arguments: newer versions contain a copy of click, older ones import it.
_Mistake: Any = typer.BadParameter.__mro__[1]


#: Names of options that are less similar (0 to 1) are not suggested.
_SIMILAR = 0.7


@contextmanager
def _short_mistakes() -> Iterator[None]:
    """Shorten the text of the command line that Typer's messages repeat, and leave out names of
    options that are not similar.
    """
    try:
        yield
    except _Mistake as error:
        error.message = cut(error.message, 400)
        if possible := getattr(error, "possibilities", None):
            error.possibilities = _similar(error.option_name, possible)
        raise


def _similar(option: str, names: Sequence[str]) -> list[str]:
    """Return the names of options that were probably meant by an unknown one, of those that Typer
    found, the most similar first: it also compares the hyphens before them."""
    from difflib import SequenceMatcher

    if longer := [name for name in names if name.startswith(option)]:
        return longer
    text = option.strip("-")
    return [n for n in names if SequenceMatcher(None, text, n.strip("-")).ratio() >= _SIMILAR]


def _command(name: str) -> tuple[Callable[..., None], Any]:
    """Return the function of a command, and the class that reads its arguments."""
    if find_spec(f"uqeval.cli.{name}") is None:
        from uqeval.cli.options import command_of

        return command_of(name), Command
    module = import_module(f"uqeval.cli.{name}")
    # A module with another way of reading arguments has its own `Command`.
    return getattr(module, name), getattr(module, "Command", Command)


class _Commands(TyperGroup):
    """Group of commands that imports only the requested command, so that it starts fast."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command by name; None for an unknown name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            single_app = typer.Typer(add_completion=False)
            function, read_by = _command(cmd_name)
            single_app.command(cmd_name, cls=read_by)(function)
            self.commands[cmd_name] = typer.main.get_command(single_app)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the requested command; suggest a similar name for an unknown one."""
        args = replace_command(args)
        is_strange = args and args[0] not in COMMANDS and not args[0].startswith("-")
        if is_strange and (hint := did_you_mean(args[0], COMMANDS, "")):
            ctx.fail(f"No such command {quoted(args[0])}; {hint}")
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments before the command; shorten messages about them."""
        with _short_mistakes():
            return super().make_context(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options before the command."""
        check_quickly(self.get_params(ctx))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; shorten messages about its arguments."""
        from uqeval.disk.outputs import links_found_once

        gc.freeze()
        # Python's threshold of 700 costs a tenth of a small run: imports, and figures of a page,
        # allocate much and leave little garbage.
        gc.set_threshold(100_000)
        gc.enable()
        with _short_mistakes(), links_found_once():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        for parameter in self.get_params(ctx):
            show_type(parameter)
        loaded = self.commands
        self.commands = {name: TyperCommand(name, help=line) for name, line in COMMANDS.items()}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = loaded


app = typer.Typer(
    name="uqeval",
    cls=_Commands,
    help="Find out whether you can trust a vision model's uncertainty, from saved predictions.",
    epilog="Definitions of all scores: docs/metrics.md. Supported file formats: docs/stores.md.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        typer.echo(f"uqeval {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None: ...


def main() -> None:
    """Run the command line, and end the process with one of the statuses above."""
    # Imports leave no garbage: collect none until the command runs.
    gc.disable()
    # uqeval has its own threads; additional threads of NumPy's library would compete with them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    ended: list[int] = []
    atexit.register(_exit_now, ended)  # Python calls first what was registered last
    try:
        with as_flags():
            _run()
    except SystemExit as leaving:
        if isinstance(leaving.code, int | None):
            ended.append(leaving.code or 0)
        raise
    finally:
        with uninterrupted():
            release_all()
        # Nothing is left to do; a signal would only interrupt how Python ends.
        for number in _raising():
            signal.signal(number, _exit_at_once)


def _exit_now(ended: Sequence[int]) -> None:
    """End the process now, without unloading modules, which takes longer than many runs."""
    try:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    except UqevalError as error:  # stdout
        tell(f"uqeval: {error}")
        ended = [*ended, next(filter(None, ended[-1:]), 2)]
    except BrokenPipeError:
        ended = [*ended, next(filter(None, ended[-1:]), BROKEN_PIPE)]
    except ValueError:
        return  # a stream is closed; Python reports that itself
    if ended:
        os._exit(ended[-1])


def _raising() -> list[int]:
    """Return the signals that raise an exception; not those that the caller lets be ignored, such
    as SIGHUP under nohup, and SIGINT in the background of a script."""
    return [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]


def _run() -> None:
    silence()
    drop_invalid_numbers()
    # Otherwise pydantic searches all installed packages for its plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "1")
    if "_UQEVAL_COMPLETE" in os.environ:
        # Shells read one candidate per line, so Typer must not wrap the help of an option.
        os.environ["TERMINAL_WIDTH"] = "100000"
    guard_streams()
    sys.unraisablehook = _resend
    for number in _raising():
        signal.signal(number, _raise)
    try:
        app(prog_name="uqeval")
    except SystemExit as leaving:
        # Typer and rich turn these two errors into exits with other statuses.
        if _is_caused_by(leaving, KeyboardInterrupt):
            _end_with_signal(signal.SIGINT, leaving)
        if _is_of_library(leaving):
            _end_with_bug()
        if _raised and leaving.code == 128 + _raised[-1][0]:
            _end_with_signal(_raised[-1][0], leaving)
        if notes := _notes(leaving):
            tell(" ".join(["uqeval: stopped before the end.", *notes]))
        _end_without_output(leaving)
        raise
    except BrokenPipeError:
        sys.exit(BROKEN_PIPE)
    except UqevalError as error:
        for line in [f"uqeval: {error}", *_notes(error)]:
            tell(line)
        sys.exit(2)
    except RecursionError:  # only inputs can be nested deeply
        tell("uqeval: an input file is nested too deeply; check whether it is damaged.")
        sys.exit(2)
    except OSError as error:  # the disk, the working folder, or a library that cannot be loaded
        if (text := shortage(error)) is not None:
            _end_at_limit(text)
        prefix = "" if error.filename is None else f"{cut(os.fsdecode(error.filename))}: "
        if not prefix and isinstance(error, FileNotFoundError):
            prefix = "the working folder was removed; change to an existing folder: "
        tell(f"uqeval: {prefix}{error.strerror or cut(error)}.")
        sys.exit(2)
    except MemoryError:
        _end_at_limit(NO_MEMORY)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also of libraries: status 1 would say that a rule failed
        if not _raised and (text := shortage(error)) is not None:
            _end_at_limit(text)
        # Python wraps an interrupt while it makes a class, such as at an import; pydantic raises
        # an error of its own in place of it.
        if _raised or _is_caused_by(error, KeyboardInterrupt):
            _end_with_signal(_raised[-1][0] if _raised else signal.SIGINT, error)
        _end_with_bug()


def _end_with_signal(number: int, error: BaseException) -> NoReturn:
    """Say that a signal ended the command, with the notes of its exception, and exit."""
    how = "interrupted" if number == signal.SIGINT else "stopped"
    tell(" ".join([f"uqeval: {how} before the end.", *_notes(error)]))
    sys.exit(128 + number)


def _end_with_bug() -> NoReturn:
    """Print the traceback of the current exception, and exit."""
    traceback.print_exc()
    typer.echo(f"uqeval {VERSION}: this is a bug; please report it with the lines above.", err=True)
    sys.exit(3)


def _end_at_limit(text: str) -> NoReturn:
    """Print what is short, and exit at once: libraries fail again when they end."""
    typer.echo(f"uqeval: {text}", err=True)
    release_all()
    _exit_now([2])
    sys.exit(2)  # a stream is closed


def _is_of_library(leaving: SystemExit) -> bool:
    """Return whether a library exits with status 1 or a text: only commands say that a rule failed.

    Typer does so for an `EOFError`. With a closed pipe, `_end_without_output` sets the status.
    """
    means_failed = leaving.code == 1 or not isinstance(leaving.code, int | None)
    is_of_command = isinstance(leaving.__context__, typer.Exit)
    return means_failed and not is_of_command and not _is_caused_by(leaving, BrokenPipeError)


def _is_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Return whether `error` is a `kind`, or was raised because of one."""
    while error is not None and not isinstance(error, kind):
        error = error.__cause__ or error.__context__
    return error is not None


def _end_without_output(leaving: SystemExit) -> None:
    """Say that output was lost; exit with an error status if the work itself succeeded."""
    broken = _is_caused_by(leaving, BrokenPipeError)  # then Typer or rich has set the status
    if isinstance(lost := lost_output(), UqevalError):
        tell(f"uqeval: {lost}")
    if leaving.code and not broken:
        return
    if isinstance(lost, UqevalError):
        sys.exit(2)
    if lost is not None or broken:
        sys.exit(BROKEN_PIPE)


def _notes(error: BaseException | None) -> list[str]:
    """Return the notes of an error, or of the error that caused it."""
    while error is not None and not getattr(error, "__notes__", ()):
        error = error.__cause__ or error.__context__
    return list(getattr(error, "__notes__", ()))


def _resend(ignored: Any) -> None:
    """Send a signal again if its exception was raised in a destructor.

    Python prints exceptions of destructors and continues. The signal comes from another thread and
    a little later, because the destructor is still running here.
    """
    error = ignored.exc_value
    code = error.code if isinstance(error, SystemExit) else 128 + signal.SIGINT
    is_ours = isinstance(error, SystemExit | KeyboardInterrupt)
    if not is_ours or not isinstance(code, int) or code <= 128:
        sys.__unraisablehook__(ignored)
        return
    sent = threading.Event()

    def send() -> None:
        _raised.clear()  # its exception removed nothing
        sent.set()
        os.kill(os.getpid(), code - 128)

    is_early = True
    while is_early:
        timer = threading.Timer(0.01, send)
        timer.daemon = True
        sent.clear()
        try:
            with uninterrupted():
                timer.start()
            is_early = False
        except (KeyboardInterrupt, SystemExit):
            # On a busy machine, it comes before the thread is known to run, so the destructor still
            # runs, too. Another signal has the same effect as the one that is sent.
            is_early = sent.is_set()


#: The signals whose exception was raised, and when.
_raised: list[tuple[int, float]] = []
#: Seconds after a signal in which callers remove their temporary files. Further signals, such as
#: those to the whole group of processes, do nothing then; later ones end what takes longer.
_CLEANING = 2.0


def _is_cleaning() -> bool:
    return bool(_raised) and time.monotonic() < _raised[-1][1] + _CLEANING


def _raise(number: int, frame: FrameType | None) -> None:
    if _is_cleaning():
        return
    # An exception lets all callers remove their temporary files.
    _raised.append((number, time.monotonic()))
    raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


def _exit_at_once(number: int, frame: FrameType | None) -> None:
    if not _is_cleaning():  # else the process already ends, with the status of the first signal
        os._exit(128 + number)
