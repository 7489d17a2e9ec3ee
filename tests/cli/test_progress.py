"""Progress bars."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import run_script

from uqeval.cli.streams import rate_text


@pytest.mark.parametrize(
    ("nbytes", "items", "seconds", "text"),
    [
        (3_920, 10, 10.0, "1 items/s"),  # 392 bytes/s say nothing
        (3_920, 9, 10.0, ""),
        (0, 50_000, 10.0, "5,000 items/s"),  # maps kept from an earlier pass
        (10_000_000, 3, 10.0, "1.0 MB/s"),
        (9_999_999, 3, 10.0, ""),
        (10_000_000, 3, 0.05, ""),
    ],
)
def test_a_rate_says_something(nbytes: int, items: int, seconds: float, text: str) -> None:
    assert rate_text(nbytes, items, seconds) == text


def test_a_bar_without_a_thread_shows_the_cursor_again(tmp_path: Path) -> None:
    script = """
import os, threading
from uqeval.cli.streams import _Bar

os.environ["FORCE_COLOR"] = "1"
threading.stack_size(1 << 46)
try:
    _Bar().begin("Evaluating", 3)
except RuntimeError as error:
    print(error)
"""
    done = run_script(script, tmp_path)
    assert (done.status, done.stdout) == (0, "can't start new thread\n"), done.stderr
    assert done.stderr.rfind("\x1b[?25h") > done.stderr.rfind("\x1b[?25l") >= 0
