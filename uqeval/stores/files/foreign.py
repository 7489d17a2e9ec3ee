"""Unsupported files of other tools, and a line of Python that converts each."""

from __future__ import annotations

import shlex
from pathlib import Path

_TORCH = (
    "import numpy, torch; numpy.save({to!r}, torch.load({path!r}, map_location='cpu', "
    "weights_only=True).float().numpy())"
)
_PICKLE = (
    "import numpy, pickle; numpy.save({to!r}, numpy.asarray(pickle.load(open({path!r}, 'rb'))))"
)
_MEDICAL = (
    "import numpy, SimpleITK; numpy.save({to!r}, "
    "SimpleITK.GetArrayFromImage(SimpleITK.ReadImage({path!r})))"
)
_UNPICKLED = "unpickling runs code from the file, so uqeval never does it; convert files you trust"
_NEVER_READ = "of medical images only NIfTI labels are read"

#: By suffix: why a file is not read, and the code that converts it to `.npy`.
_FOREIGN = {
    ".pt": (_UNPICKLED, _TORCH),
    ".pth": (_UNPICKLED, _TORCH),
    ".ckpt": (_UNPICKLED, _TORCH),
    ".pkl": (_UNPICKLED, _PICKLE),
    ".pickle": (_UNPICKLED, _PICKLE),
    ".mha": (_NEVER_READ, _MEDICAL),
    ".nrrd": (_NEVER_READ, _MEDICAL),
}


def how_to_convert(path: str | Path) -> str:
    """Return the command that converts a file, or the first file of a folder; empty if none is
    known.
    """
    local = Path(path)
    files = (
        sorted(file for file in local.iterdir() if file.is_file()) if local.is_dir() else [local]
    )
    for file in files:
        for end, (description, line) in _FOREIGN.items():
            if file.name.lower().endswith(end):
                to = str(file)[: -len(end)] + ".npy"
                code = line.format(path=str(file), to=to)
                quoted = f'"{code}"' if not set(code) & set('"$`\\!') else shlex.quote(code)
                instruction = "Convert each file like this" if local.is_dir() else "Convert it"
                return f" {instruction} ({description}): python -c {quoted}"
    return ""
