"""The working folder of tests of `verify`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def folder(made_once: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of the stores and reports that a module makes once, with their times."""
    copy = tmp_path / "work"
    shutil.copytree(made_once, copy)  # copies times
    monkeypatch.chdir(copy)
    return copy
