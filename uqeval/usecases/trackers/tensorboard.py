"""TensorBoard: one run per report, as event files that `tensorboard --logdir` shows."""

from __future__ import annotations

import io
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

from uqeval.disk.outputs import refuse_url, write
from uqeval.disk.publishing import writing
from uqeval.errors import UsageError, cut
from uqeval.usecases.trackers.entry import Entry, import_library


class TensorBoard:
    """A folder of runs. A run has the name of its report; the page is next to its events."""

    def __init__(self, folder: str) -> None:
        import_library("tensorboard", "tensorboard.summary.writer.record_writer")
        refuse_url(folder)
        if Path(folder).exists() and not Path(folder).is_dir():
            raise UsageError(f"--tensorboard {cut(folder)} is a file; name a folder.")
        self._folder = Path(folder)

    def add(self, entry: Entry) -> str:
        """Write scores, figures, settings and findings as one step of a run.

        Raises `OutputError` if the folder cannot be written.
        """
        run = self._folder / run_name(entry.name)
        with writing(run):
            run.mkdir(parents=True, exist_ok=True)
        # TensorBoard's own writer is a thread, which prints errors and loses the events.
        name = f"{time.time():.0f}.{socket.gethostname()}.{os.getpid()}.{time.time_ns()}"
        write(run / f"events.out.tfevents.{name}", _events(entry))
        write(run / "page.html", entry.html)
        return f"logged {entry.name} to TensorBoard: tensorboard --logdir {cut(self._folder)}"


def run_name(name: str) -> str:
    """Return the folder of a run: the name of its report, without parts of a path that lead out of
    the folder of runs.
    """
    parts = PurePath(name).parts
    steps = ["_" if part == ".." else part for part in parts if part != "/"]
    return str(PurePath(*steps)) if steps else "report"


def _events(entry: Entry) -> bytes:
    """Return the content of a file of events."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    buffer = io.BytesIO()
    records = RecordWriter(buffer)
    events = [Event(wall_time=time.time(), file_version="brain.Event:2")]
    events += [
        Event(wall_time=time.time(), step=entry.step, summary=Summary(value=[value]))
        for value in _values(entry)
    ]
    for event in events:
        records.write(event.SerializeToString())
    return buffer.getvalue()


def _values(entry: Entry) -> Iterator[Any]:
    """Yield the values of a summary: numbers, images, texts."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    for address, score in entry.scores().items():
        yield Summary.Value(tag=address, simple_value=score)
    for picture in entry.pictures:
        width, height = picture.size
        image = Summary.Image(
            height=height, width=width, colorspace=4, encoded_image_string=picture.png
        )
        yield Summary.Value(tag=f"figures/{picture.name}", image=image)
    rows = "\n".join(f"| {name} | {text} |" for name, text in entry.settings().items())
    yield _text("settings", f"| setting | value |\n|---|---|\n{rows}")
    yield _text("findings", entry.findings())


def _text(tag: str, text: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.compat.proto.tensor_pb2 import TensorProto
    from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
    from tensorboard.plugins.text.metadata import create_summary_metadata

    shape = TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)])
    tensor = TensorProto(dtype="DT_STRING", string_val=[text.encode()], tensor_shape=shape)
    metadata = create_summary_metadata(display_name=tag, description="")
    return Summary.Value(tag=tag, metadata=metadata, tensor=tensor)
