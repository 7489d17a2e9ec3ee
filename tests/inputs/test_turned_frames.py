"""The EXIF orientation of frames is not applied: a warning says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import small_videos
from command import refused
from PIL import Image

import uqeval
from uqeval.errors import StoreError
from uqeval.inputs.live import Live, Patience
from uqeval.inputs.options import InputOptions
from uqeval.stores.video.image_folder import ImageFolder, turned

#: How many quarters a viewer turns the stored pixels anticlockwise, by EXIF orientation.
QUARTERS = {1: 0, 3: 2, 6: 3}


def saved(folder: Path, orientation: int, suffix: str, turns: int) -> Path:
    """A video whose frames a viewer shows upright, except those before the last `turns`."""
    own = small_videos.video()
    small_videos.save_images(folder / "predictions", own.predictions)
    (folder / "frames").mkdir()
    exif = Image.Exif()
    exif[0x112] = orientation
    for k, (name, frame) in enumerate(own.frames.items()):
        path = folder / f"frames/{name}{suffix}"
        if k < len(own.frames) - turns:
            Image.fromarray(frame).save(path)
        else:
            Image.fromarray(np.rot90(frame, -QUARTERS[orientation])).save(path, exif=exif)
    return folder


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
@pytest.mark.parametrize("turns", [1, 5])
def test_a_warning(tmp_path: Path, suffix: str, turns: int) -> None:
    video = saved(tmp_path / "v", 3, suffix, turns)
    warnings = uqeval.evaluate(None, None, "tc", video=video, workers=1).warnings
    (text,) = [text for text in warnings if "EXIF" in text]
    first = small_videos.numbered(5)[-turns]
    assert text.startswith(f"{video}/frames/{first}{suffix} has the EXIF orientation 3. Viewers")
    assert "exiftran" in text and "exif_transpose" in text
    warned: list[str] = []
    list(Live(None, InputOptions(video=str(video)), Patience(), warn=warned.append))
    assert warned == ([text] if turns == 5 else [])


def test_other_sizes(tmp_path: Path) -> None:
    video = saved(tmp_path / "v", 6, ".jpg", 5)
    says = "predictions are 36×48 (height×width), the frame is 48×36. ", "EXIF orientation 6"
    run = uqeval.evaluate
    refused(lambda: run(None, None, "tc", video=video, workers=1), *says, error=StoreError)
    plain = saved(tmp_path / "w", 1, ".jpg", 5)
    for path in (plain / "predictions").iterdir():
        Image.open(path).transpose(Image.Transpose.ROTATE_90).save(path)
    with pytest.raises(StoreError) as caught:
        run(None, None, "tc", video=plain, workers=1)
    assert "EXIF" not in str(caught.value) and "resize nearest" in str(caught.value)


def test_upright_frames(tmp_path: Path) -> None:
    """Pillow turns TIFF files itself."""
    for orientation, suffix in ((1, ".jpg"), (6, ".tif")):
        video = saved(tmp_path / suffix, orientation, suffix, 5)
        frames = ImageFolder(video / "frames")
        assert frames.size(0) == frames.read(0).shape[:2] == (36, 48)
        assert not turned(frames, 0)
        assert not uqeval.evaluate(None, None, "tc", video=video, workers=1).warnings
