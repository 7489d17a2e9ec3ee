"""Run commands in forks of a process that has loaded all modules, so that they start at once.

The fork runs `uqeval.cli.start.main`, which is all that the executable does, with streams, a
folder, an environment and an end of its own. What depends on how a process begins, such as the
encoding of its streams or its limits, is for the executable itself.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

#: Modules that commands load.
LIBRARIES = (
    "cv2", "jinja2", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
    "matplotlib.figure", "numcodecs", "numpy", "PIL.Image", "PIL.PngImagePlugin", "rich.progress",
    "rich.table", "typer._adapters", "typer.rich_utils", "zarr",
)  # fmt: skip

#: The figures of pages on which none is drawn.
NOTHING_DRAWN = "<svg></svg>"

#: What is run once before any fork, on the tiny inputs of tests: it loads most kernels.
_ONCE = (
    "run uqeval.yaml -o out", "gate out/s.json uqeval.yaml", "tc v.npz", "annotators raters.npz",
    "conformal p.npz --fit-on fit.txt --alpha 0.4",
)  # fmt: skip
_STORES = """\
stores: {s: {predictions: p.npz}, n: {predictions: r.npz}}
gate: {segmentation.pixel_accuracy: {min: 0.01}}
"""

#: Lets commands compile in their own processes: there is one for each core.
_ALONE = ExitStack()

#: The fixed length of a number on the socket, which has no message boundaries.
_WIDTH = 16


class Parent:
    """The process that forks, one for each process of tests; it ends with it."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._lock = threading.Lock()
        self._socket, other = socket.socketpair()
        with other:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(other.fileno())],
                pass_fds=[other.fileno()], env=environment, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def run(
        self, arguments: list[str], cwd: Path | None, environment: dict[str, str], timeout: float,
        reader: str = "", watch: Callable[[int], None] | None = None, figures: bool = False,
    ) -> tuple[int, str, str]:  # fmt: skip
        """Status, stdout and stderr of `uqeval ARGUMENTS`, the streams being pipes.

        `reader` of a stream: "stdout gone": nobody reads it any more; "stdout none": it is closed
        from the beginning; "stdout full": it is a file on a full disk; or "stderr" of these.
        `watch` is called with the id of the process, which it may send signals. Without `figures`
        none is drawn, which takes most of the time of a page.
        """
        asked = {
            "arguments": arguments, "cwd": str(cwd or Path.cwd()), "environment": environment,
            "reader": reader, "figures": figures,
        }  # fmt: skip
        ends = [os.pipe(), os.pipe()]
        with self._lock, ThreadPoolExecutor(2) as readers:
            data = json.dumps(asked).encode()
            socket.send_fds(self._socket, [struct.pack("q", len(data))], [w for _, w in ends])
            self._socket.sendall(data)
            for _, write in ends:
                os.close(write)
            texts = [readers.submit(_read, read) for read, _ in ends]
            pid = self._number()
            if watch is not None:
                watch(pid)
            self._socket.settimeout(timeout)
            try:
                status = self._number()
            except TimeoutError:
                with suppress(ProcessLookupError):  # it has ended this moment
                    os.kill(pid, signal.SIGKILL)
                self._socket.settimeout(None)
                self._number()
                raise subprocess.TimeoutExpired(["uqeval", *arguments], timeout) from None
            finally:
                self._socket.settimeout(None)
            return status, texts[0].result(), texts[1].result()

    def _number(self) -> int:
        return int(self._socket.recv(_WIDTH, socket.MSG_WAITALL))


def _read(fd: int) -> str:
    with open(fd) as stream:
        return stream.read()


@cache
def parent() -> Parent:
    """The parent of this process's commands."""
    from command import environment

    return Parent(environment(GITHUB_ACTIONS="", GITHUB_STEP_SUMMARY=""))


@cache
def load() -> None:
    """Import, compile and make once what most commands need."""
    from importlib import import_module
    from pkgutil import walk_packages

    import uqeval

    own = [module.name for module in walk_packages(uqeval.__path__, "uqeval.")]
    for name in [*(name for name in own if "__main__" not in name), *LIBRARIES]:
        with suppress(ImportError):  # of an extra that is not installed
            import_module(name)
    import typer.main

    from uqeval.cli.entry import COMMANDS, app
    from uqeval.config.model import options_model
    from uqeval.config.options import commands
    from uqeval.usecases.compiling import compiling_ahead

    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        group.get_command(None, name)
    typer.main.get_command = lambda typer_instance: group
    for name in commands():
        options_model(name)
    _ALONE.enter_context(compiling_ahead((), 1))
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()),
    ):  # fmt: skip
        _run_once(Path(folder), group)


def _run_once(folder: Path, group: Any) -> None:
    """Load the kernels that most commands run, the templates of pages, and readers of records."""
    from option_inputs import write_all

    from uqeval.report.page import html

    write_all(folder)
    (folder / "uqeval.yaml").write_text(_STORES)
    with chdir(folder), mock.patch.object(html, "inline_svg", return_value=NOTHING_DRAWN):
        for line in _ONCE:
            group.main(line.split(), standalone_mode=False)


def _serve(requests: socket.socket) -> Any:
    """Fork for each request; return the request in each fork, and None in the parent at the end."""
    while True:
        head, fds, _, _ = socket.recv_fds(requests, 8, 2)
        if not head:
            return None
        data = requests.recv(struct.unpack("q", head)[0], socket.MSG_WAITALL)
        pid = os.fork()
        if pid == 0:
            for fd, stream in zip(fds, (1, 2), strict=True):
                os.dup2(fd, stream)
                os.close(fd)
            requests.close()
            return json.loads(data)
        for fd in fds:
            os.close(fd)
        requests.sendall(b"%*d" % (_WIDTH, pid))
        _, status = os.waitpid(pid, 0)
        requests.sendall(b"%*d" % (_WIDTH, os.waitstatus_to_exitcode(status)))


def draw_nothing(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Leave the figures of a page empty."""
    from uqeval.report.page import html

    set_attribute(html, "inline_svg", lambda *figure: NOTHING_DRAWN)


def _lose(fd: int, reader: str) -> None:
    """Make a stream one that takes nothing; see `Parent.run`."""
    if reader == "gone":
        read, write = os.pipe()
        os.close(read)
    elif reader == "full":
        write = os.open("/dev/full", os.O_WRONLY)
    os.close(fd)
    if reader != "none":
        os.dup2(write, fd)
        os.close(write)


def _run(asked: dict[str, Any]) -> None:
    """Be `uqeval ARGUMENTS`, or `python -c SCRIPT`."""
    from uqeval.cli.start import main

    try:
        os.chdir(asked["cwd"])
    except OSError:
        os._exit(99)  # no status of uqeval
    os.environ.clear()
    os.environ.update(asked["environment"])
    tempfile.tempdir = None
    if not asked["figures"]:
        draw_nothing(setattr)
    sys.argv = ["uqeval", *asked["arguments"]]
    stream, _, reader = asked["reader"].partition(" ")
    if reader:
        _lose({"stdout": 1, "stderr": 2}[stream], reader)
    # A text stream reads the properties of its file when it is opened, so open it again.
    closed = stream if reader == "none" else ""
    sys.stdout = None if closed == "stdout" else open(1, "w")  # noqa: SIM115
    sys.stderr = (
        None if closed == "stderr" else open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    )
    if asked["arguments"][:1] == ["-c"]:
        exec(asked["arguments"][1], {"__name__": "__main__"})
        _end_now()
    main()


def _end_now() -> None:
    """End a script as Python does, without unloading all modules: that takes longer than most."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(0)


if __name__ == "__main__":
    gc.disable()  # imports leave little garbage
    sys.modules["forked"] = sys.modules[__name__]  # scripts that load everything find it loaded
    load()
    gc.freeze()
    gc.enable()
    if (asked := _serve(socket.socket(fileno=int(sys.argv[1])))) is not None:
        _run(asked)
