"""Paths that a file names stay in its folder; links in there are followed."""

from __future__ import annotations

from pathlib import Path, PurePosixPath, PureWindowsPath


def is_url(path: str) -> bool:
    """Whether a path is a URL, which is taken as it stands."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme.isascii() and scheme.isalnum() and scheme.lower() != "file"


def anchored(path: str, folder: Path) -> str:
    """A path of a file in `folder`, from the working folder on. Raises `ValueError`."""
    if is_url(path):
        return path
    parts = PurePosixPath(path).parts
    if "\0" in path:
        raise ValueError("no path holds a zero character")
    if PurePosixPath(path).is_absolute() or PureWindowsPath(path).drive or path.startswith("~"):
        raise ValueError(f"{path!r} is absolute; write it from this file's folder on")
    if ".." in parts or "://" in path:
        raise ValueError(f"{path!r} leaves this file's folder; move the file up, or link to it")
    return str(folder / path)
