"""Paths in a settings file: relative to its folder, absolute, from a home folder, or URLs."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

from uqeval.errors import quoted


def is_url(path: str) -> bool:
    """Return whether a path is a URL, which stays as it is."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme.isascii() and scheme.isalnum() and scheme.lower() != "file"


def anchored(path: str, folder: Path) -> str:
    """Return a path of a file in `folder`, relative to the working folder.

    Raises `ValueError` for an invalid path.
    """
    if is_url(path):
        return path
    if "\0" in path:
        raise ValueError(f"{quoted(path)} contains a zero character; expected a path")
    if "://" in path:
        path_in_url = path.partition("://")[2]
        raise ValueError(
            f"{quoted(path)} is neither a path nor a supported URL; write {quoted(path_in_url)}"
        )
    if PureWindowsPath(path).drive:
        raise ValueError(f"{quoted(path)} is a Windows path; write the path on this machine")
    try:
        return str(folder / Path(path).expanduser())
    except RuntimeError:
        raise ValueError(
            f"{quoted(path)} is in the home folder of a user that this machine does not have; "
            "write the whole path"
        ) from None
