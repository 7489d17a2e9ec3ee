"""Write a page with pictures in a folder; old pages stay complete until the new one is written."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from uqeval.disk.files import as_given
from uqeval.disk.outputs import write
from uqeval.disk.publishing import writing
from uqeval.errors import OutputError, cut
from uqeval.report.page.exhibits import PictureFiles
from uqeval.threads import Threads

#: Names of pictures: hashes of their bytes. Other files of the folder are not touched.
_NAME = re.compile(r"[0-9a-f]{32}\.png")
_WRITERS = 8
#: The link to the page of all stores, in the template of a report.
_LINK = b'<nav class="breadcrumb"'


def folder_of(page: str | Path) -> Path:
    """Return the folder of a page's pictures: `out/city.pictures` of `out/city.html`."""
    return Path(page).with_suffix(".pictures")


def picture_files(page: str | Path, is_single: bool) -> PictureFiles | None:
    """Return the files for the pictures of a page; None if the page must embed them.

    `page`: a path, a URL, or - for stdout, next to which there is no folder.
    """
    if is_single or str(page) == "-" or "://" in as_given(str(page)):
        return None
    return PictureFiles(link_to(folder_of(page).name))


def link_to(path: str) -> str:
    """Return a relative path as a link of a page; its bytes need not be UTF-8."""
    return quote(os.fsencode(path))


def is_of_run(page: Path) -> bool:
    """Return whether `uqeval run` wrote a page: its page of a store links to that of all stores."""
    try:
        return page.is_file() and _LINK in page.read_bytes()
    except OSError:  # the writer reports it
        return False


def write_page(page: str | Path, text: str, pictures: PictureFiles | None) -> None:
    """Write a page after its pictures, then remove pictures that it does not use.

    A picture has the name of its content, so an interrupted command leaves the old page complete.
    Raises `OutputError`.
    """
    files = pictures.files if pictures else {}
    folder = folder_of(page)
    if files:
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"{cut(folder)} cannot be made a folder: {error.strerror}. It is for the pictures "
                "of the page; --single-file needs none."
            ) from error
        new = [name for name, data in files.items() if _size(folder / name) != len(data)]
        with Threads(_WRITERS) as threads:
            threads.map(lambda name: write(folder / name, files[name]), new)
    write(page, text)
    if pictures is not None:
        _remove_others(folder, set(files))


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() and not path.is_symlink() else None


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove pictures of earlier pages, and the folder if it is empty."""
    if not folder.is_dir() or folder.is_symlink():
        return
    with writing(folder):
        for path in folder.iterdir():
            if _NAME.fullmatch(path.name) and path.name not in names:
                path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
