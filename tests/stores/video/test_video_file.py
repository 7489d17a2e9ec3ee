"""Video files and streams, with a real file of a few frames."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from uqeval.errors import StoreError
from uqeval.stores.video.frames import open_frames
from uqeval.stores.video.video_file import VideoFile, stream

COUNT, HEIGHT, WIDTH = 7, 48, 64


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frame i is red on the left, of the brightness 30 · i, and blue on the right."""
    path = tmp_path_factory.mktemp("video") / "v.avi"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter_fourcc(*"MJPG"), 10, (WIDTH, HEIGHT))
    for i in range(COUNT):
        frame = np.zeros((HEIGHT, WIDTH, 3), np.uint8)
        frame[:, : WIDTH // 2, 2] = 30 * i
        frame[:, WIDTH // 2 :, 0] = 200
        writer.write(frame)
    writer.release()
    return path


def number_of(frame: np.ndarray) -> int:
    return round(float(frame[:, : WIDTH // 4, 0].mean()) / 30)


def test_a_video(video: Path) -> None:
    frames = open_frames(video)
    assert isinstance(frames, VideoFile)
    assert len(frames) == COUNT and frames.names is None and frames.sequential
    assert frames.where_of(2) == f"{video}, frame 2"
    for i in range(COUNT):
        frame = frames.read(i)
        assert frame.shape == (HEIGHT, WIDTH, 3) and frame.dtype == np.uint8
        assert frame.flags.c_contiguous and number_of(frame) == i
        assert frame[:, -5:, 2].min() > 150 and frame[:, -5:, 0].max() < 50  # red, green, blue
        assert frames.size(i) == (HEIGHT, WIDTH)
    assert frames.fingerprint() == open_frames(str(video)).fingerprint()
    assert not frames.arrays


def test_any_order_of_reads(video: Path) -> None:
    frames = open_frames(video)
    for i in (0, 1, 1, 4, 2, 6, 6, 0, 5):
        assert number_of(frames.read(i)) == i


def test_a_frame_is_decoded_once_for_both_its_pairs(
    video: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from uqeval.stores.video import video_file

    decoded: list[object] = []
    plain = video_file._next
    monkeypatch.setattr(video_file, "_next", lambda c: decoded.append(c) or plain(c))
    frames = open_frames(video)
    for i in range(COUNT - 1):
        assert number_of(frames.read(i)) == i and number_of(frames.read(i + 1)) == i + 1
    assert len(decoded) == COUNT and len(set(map(id, decoded))) == 1


def test_threads(video: Path) -> None:
    frames = open_frames(video)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda i: number_of(frames.read(i)), range(COUNT))) == list(
            range(COUNT)
        )


class Announces:
    """A capture that announces other numbers than there are."""

    def __init__(self, capture: Any, **told: float) -> None:
        self._capture = capture
        self._told = {getattr(cv2, f"CAP_PROP_FRAME_{k.upper()}"): v for k, v in told.items()}

    def get(self, what: int) -> float:
        return float(self._told.get(what, self._capture.get(what)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._capture, name)


def announcing(video: Path, monkeypatch: pytest.MonkeyPatch, **told: float) -> VideoFile:
    from uqeval.stores.video import video_file

    plain = video_file._open_capture
    monkeypatch.setattr(
        video_file, "_open_capture", lambda source: Announces(plain(source), **told)
    )
    return VideoFile(video)


def test_a_video_that_ends_early(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = announcing(video, monkeypatch, count=12)
    assert len(frames) == 12
    for i in (7, 7, 11):
        with pytest.raises(StoreError, match=r"v\.avi ends early: frame 7 of the 12 .*--limit 6"):
            frames.read(i)
    assert number_of(frames.read(6)) == 6


def test_a_video_without_a_single_frame(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from uqeval.stores.video import video_file

    frames = VideoFile(video)
    monkeypatch.setattr(video_file, "_next", lambda capture: None)
    with pytest.raises(StoreError, match="frame 0 of the 7") as caught:
        frames.read(0)
    assert "--limit" not in str(caught.value) and "ffmpeg" in str(caught.value)


@pytest.mark.parametrize("count", [0, -1, float("nan"), -9.2e18, 9.2e18])
def test_a_video_of_unknown_length(
    video: Path, monkeypatch: pytest.MonkeyPatch, count: float
) -> None:
    with pytest.raises(StoreError, match=r"has no frame count.*ffmpeg"):
        announcing(video, monkeypatch, count=count)


def test_a_size_that_changes(video: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = announcing(video, monkeypatch, width=32)
    with pytest.raises(StoreError, match=r"frame 3 is 64 × 48 pixels, the video 32 × 48"):
        frames.read(3)


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv", ".MOV", ".webm"])
@pytest.mark.parametrize("data", [b"", b"no video, but text" * 99])
def test_files_that_are_no_video(tmp_path: Path, suffix: str, data: bytes) -> None:
    path = tmp_path / f"v{suffix}"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=rf"v{suffix}: OpenCV finds no video"):
        open_frames(path)
    with pytest.raises(StoreError, match="finds no video"):
        stream(str(path))


def test_a_video_cut_short(video: Path, tmp_path: Path) -> None:
    data = video.read_bytes()
    for n in range(0, len(data), len(data) // 9):
        path = tmp_path / f"{n}.avi"
        path.write_bytes(data[:n])
        try:
            frames = open_frames(path)
            found = [number_of(frames.read(i)) for i in range(len(frames))]
        except StoreError as error:
            assert f"{n}.avi" in str(error)
        else:
            assert found == list(range(len(found)))


def test_a_stream(video: Path) -> None:
    assert [number_of(frame) for frame in stream(str(video))] == list(range(COUNT))


def test_a_stream_that_is_left(video: Path) -> None:
    frames = stream(str(video))
    assert number_of(next(frames)) == 0
    frames.close()  # type: ignore[attr-defined]
    assert list(frames) == []


def test_streams_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"No such file.*rtsp"):
        stream(str(tmp_path / "none.mp4"))
    with pytest.raises(StoreError, match="camera 9731"):
        stream("9731")
    with socket.socket() as free:  # bound, and nobody listens
        free.bind(("127.0.0.1", 0))
        with pytest.raises(StoreError, match="http://127"):
            stream(f"http://127.0.0.1:{free.getsockname()[1]}/v.mjpg")
