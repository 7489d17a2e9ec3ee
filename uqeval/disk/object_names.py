"""Messages for users: replace paths of staged local files by their URLs (see `staging`)."""

from __future__ import annotations

from pathlib import Path

#: Folders of files that stand for objects: `FOLDER/s3/bucket/key` for `s3://bucket/key`.
FOLDERS: list[Path] = []


def as_given(text: str) -> str:
    """Return a text with the paths of staged local files replaced by their URLs."""
    for folder in FOLDERS:
        if f"{folder}/" in text:
            for place in folder.iterdir():
                text = text.replace(f"{place}/", f"{place.name}://")
    return text
