"""`uqeval observe`: temporal consistency online, one JSON line per frame."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from uqeval.arrays import np
from uqeval.cli import options as o
from uqeval.cli.declared import Shared, with_options
from uqeval.cli.streams import tell, warn
from uqeval.disk.files import stream_of
from uqeval.errors import UsageError
from uqeval.inputs.options import InputOptions
from uqeval.maps.names import void_of
from uqeval.metrics.temporal_settings import TemporalSettings
from uqeval.settings import Settings, same_option, shared_option

if TYPE_CHECKING:
    from uqeval.inputs.live import Live
    from uqeval.records.report import Report

_FLOW, _ALARM, _WAIT = "Optical flow", "Alarms", "Waiting for frames"


@dataclass(frozen=True)
class ObserveOptions(Settings):
    """The options of `uqeval observe`."""

    # fmt: off
    flow: str = shared_option(
        "dis:fast", "Optical flow: dis:ultrafast, dis:fast, dis (dis:medium), farneback or tvl1. "
        "Parameters follow the name: farneback:winsize=21.", metavar="METHOD", panel=_FLOW)
    flow_scale: float = same_option(TemporalSettings, "flow_scale", several=False)
    occlusion: str = same_option(
        TemporalSettings, "occlusion", help="With fb, also report `tc_visible`, without pixels "
        "that a forward-backward check finds occluded; needs a second flow.")
    alarm: float | None = shared_option(
        None, "Raise an alarm if TC is below this value.", metavar="BELOW", panel=_ALARM)
    alarm_from: str | None = shared_option(
        None, "Take the alarm limit from a report of `uqeval tc` with the same flow: a quantile "
        "of its TC_t.", metavar="REPORT", panel=_ALARM)
    alarm_model: str | None = shared_option(
        None, "Take the limit from the TC_t of this model, if the --alarm-from report has several.",
        metavar="NAME", panel=_ALARM, needs="alarm_from")
    alarm_quantile: float = shared_option(
        0.05, "Quantile that --alarm-from takes: about this fraction of frames like those of the "
        "report raises an alarm.",
        metavar="SHARE", panel=_ALARM, needs="alarm_from")
    follow: bool = shared_option(
        False, "Wait for new frames and predictions until interrupted.", panel=_WAIT)
    poll: float = shared_option(
        0.2, "Look for new frames at this interval.", metavar="SECONDS", panel=_WAIT,
        needs="follow")
    timeout: float | None = shared_option(
        None, "Stop after this time without a new frame.", metavar="SECONDS", panel=_WAIT,
        needs="follow")
    output: str | None = shared_option(
        None, "Also write the lines to a file.", flags=("-o", "--output"), metavar="FILE",
        panel="Output")
    quiet: bool = shared_option(
        False, "Print no summary.", flags=("-q", "--quiet"), panel="Output")
    limit: int | None = same_option(InputOptions, "limit", help="Stop after N frames.")
    # fmt: on

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.poll <= 0 or (self.timeout is not None and self.timeout < 0):
            raise UsageError(
                f"--poll {self.poll:g} with --timeout {self.timeout}; expected "
                "seconds, above 0 for --poll and at least 0 for --timeout."
            )
        if self.alarm_from is not None and self.alarm is not None:
            raise UsageError("--alarm and --alarm-from exclude each other; give one of them.")

    def temporal(self) -> TemporalSettings:
        """Return the settings of the flow and of the scores."""
        return TemporalSettings(
            flow=self.flow, flow_scale=self.flow_scale, occlusion=self.occlusion
        )

    def alarm_report(self) -> Report | None:
        """Return the report that gives the alarm."""
        if self.alarm_from is None:
            return None
        from uqeval.records.report import Report

        return Report.load(self.alarm_from)

    def alarm_below(self, report: Report | None) -> float | None:
        """Return the TC below which a frame raises an alarm: a number, or from a report."""
        if report is None:
            return self.alarm
        from uqeval.usecases.alarm_limit import alarm_from

        return alarm_from(report, self.alarm_quantile, self.temporal(), self.alarm_model)


@with_options("ignore_index", "classes", "sum_tolerance", "missing_chunks", of=ObserveOptions)
def observe(
    shared: Shared,
    settings: ObserveOptions,
    video: Annotated[str, typer.Argument(
        metavar="VIDEO", show_default=False,
        help="A folder with `frames/` and `predictions/`, a folder of images, a store with "
        "`frames`, a video file, the number of a camera, or the URL of a stream.")],
    predictions: Annotated[str | None, typer.Argument(
        metavar="[PREDS]", show_default=False,
        help="Predictions of the frames: a folder of PNGs of class ids, or a store with "
        "`predictions`, `probs` or `logits`. Matched to frames by name. For a video file or "
        "a camera, in natural order of names.")] = None,
) -> None:  # fmt: skip
    """Measure TC online: print one JSON line per new frame, and raise alarms.

    Uses only past frames and constant memory. With the same --flow, TC equals that of `uqeval tc`,
    whose default flow differs. If TC is null, the line says why: first frame, gap, new sequence.

    Example: uqeval observe video/ --follow --alarm 0.6 | jq 'select(.alarm)'
    """
    from uqeval.cli.finish import Output, check_outputs
    from uqeval.engine.heap import keep_freed_memory
    from uqeval.inputs.live import Live, Patience

    keep_freed_memory()
    output, quiet = settings.output, settings.quiet
    if output is not None and output != "-":
        read_paths = [path for path in (video, predictions, settings.alarm_from) if path]
        check_outputs(Output(output), inputs=read_paths)
    report = settings.alarm_report()
    below = settings.alarm_below(report)
    options = InputOptions(video=video, limit=settings.limit, **shared.values_of(*o.READING))
    waiting = (lambda _: None) if quiet else tell
    patience = Patience(settings.follow, settings.poll, settings.timeout, waiting)

    def tell_warning(text: str) -> None:
        warn([text], quiet)

    live = Live(predictions, options, patience, warn=tell_warning)
    summary = _Summary(below)
    lines = _observed(live, settings, below, report, tell_warning)
    first = list(islice(lines, 1))  # before the output is opened, which empties a file of that name
    with _lines(output) as streams, summary.printed(quiet):
        for line in chain(first, lines):
            summary.add(line)
            _print(json.dumps(line, allow_nan=False), streams)


def _observed(
    live: Live,
    options: ObserveOptions,
    alarm: float | None,
    report: Report | None,
    tell_warning: Callable[[str], None],
) -> Iterator[dict[str, Any]]:
    """Yield the JSON line of each new frame. `report`: where the alarm is from."""
    from uqeval.usecases.alarm_limit import refuse_other_step, refuse_other_void
    from uqeval.usecases.observe import TemporalObserver

    observer: TemporalObserver | None = None
    is_first_pair = True
    settings = options.temporal()
    for frame in islice(live, options.limit):
        if observer is None:  # classes and the void id are known after the first frame
            if report is not None:
                refuse_other_void(report, live.void, settings, options.alarm_model)
            observer = TemporalObserver(
                settings.flow, flow_scale=settings.flow_scale, occlusion=settings.occlusion,
                alarm=alarm, classes=live.classes, ignore_index=void_of(live.classes),
            )  # fmt: skip
        if frame.alone is not None:
            observer.reset(frame.alone)
        elif is_first_pair and report is not None:
            is_first_pair = False
            if warning := refuse_other_step(report, frame.step):
                tell_warning(warning)
        scores = dataclasses.asdict(observer.update(frame.rgb, frame.ids, name=frame.name))
        line = {"frame": scores.pop("name"), "sequence": frame.sequence, "tc": scores.pop("tc")}
        if (reason := scores.pop("reason")) is not None:
            line["tc_reason"] = reason
        if settings.occlusion != "fb":
            del scores["tc_visible"]
        yield line | scores


@contextmanager
def _lines(output: str | None) -> Iterator[list[IO[str]]]:
    """Yield the outputs for the lines: stdout, and the file of -o."""
    from uqeval.disk.publishing import writing

    if output is None or output == "-":
        yield [sys.stdout]
        return
    stream = stream_of(output)
    with writing(output):
        # Append to an existing output, as the shell's >> does.
        descriptor = output if stream is None else os.dup(stream)
        # Closed below.
        file = open(descriptor, "w", encoding="utf-8", opener=_appending)  # noqa: SIM115
    try:
        yield [sys.stdout, file]
    finally:
        with writing(output):  # closing flushes, and may fail again
            file.close()


def _appending(path: str, flags: int) -> int:
    """Open a file so that each line is written at its end, also after `logrotate` has cut it."""
    return os.open(path, flags | os.O_APPEND, 0o666)


def _print(text: str, streams: list[IO[str]]) -> None:
    from uqeval.disk.publishing import writing

    for stream in streams:
        with writing("stdout" if stream is sys.stdout else str(stream.name)):
            stream.write(text + "\n")
            stream.flush()


#: The interval of the summary uses the last pairs: at least this number, at most twice as many.
_MOST_PAIRS = 1 << 17


class _Summary:
    """Summary of all lines, from a bounded number of values."""

    def __init__(self, alarm: float | None) -> None:
        self._alarm = alarm
        self._frames = self._pairs = self._alarms = 0
        self._tc = self._latency = self._longest = 0.0
        self._values, self._sequences = array("d"), array("l")
        self._numbers: dict[str, int] = {}

    def add(self, line: dict[str, Any]) -> None:
        """Add one line to the summary."""
        self._frames += 1
        self._latency += line["latency_ms"]
        self._longest = max(self._longest, line["latency_ms"])
        self._alarms += line["alarm"] is True
        if line["tc"] is not None:
            self._pairs += 1
            self._tc += line["tc"]
        if line["mse_identity"] is not None or line["tc"] is not None:  # a pair
            number = self._numbers.setdefault(line["sequence"], len(self._numbers))
            self._values.append(math.nan if line["tc"] is None else line["tc"])
            self._sequences.append(number)
        if len(self._values) >= 2 * _MOST_PAIRS:
            del self._values[:_MOST_PAIRS], self._sequences[:_MOST_PAIRS]

    @contextmanager
    def printed(self, quiet: bool) -> Iterator[None]:
        """Print the summary at the end, also after an error; not if stdout was closed."""
        try:
            yield
        except BrokenPipeError:
            quiet = True
            raise
        finally:
            if self._frames and not quiet:
                text, warnings = self._mean()
                tell(self._line(text))
                warn(warnings, quiet)

    def _mean(self) -> tuple[str, Sequence[str]]:
        """Return the mean TC with its interval, and the warnings about it."""
        if not self._pairs:
            return "no pair", ()
        text = f"mean TC {self._tc / self._pairs:.4f}"
        if all(math.isnan(value) for value in self._values):
            return text, ()
        from uqeval.statistics.methods import NoBounds
        from uqeval.statistics.series import series_mean

        names = list(self._numbers)
        mean = series_mean(np.array(self._values), [names[n] for n in self._sequences])
        units = mean.resampling
        lag1 = "" if units.lag1 is None else f"lag-1 autocorrelation {units.lag1:.2f}, "
        equal_values = f"{lag1}about {units.effective:.0f} independent pairs"
        if isinstance(mean.bounds, NoBounds):
            return f"{text} ({equal_values})", mean.warnings or [
                f"no interval: {mean.bounds.reason}."
            ]
        noun = {"batch": "batches"}.get(units.unit, f"{units.unit}s")
        count = f"{units.units} {noun}"
        if len(self._values) < self._pairs:
            count += f" of the last {len(self._values):,} pairs"
        ends = f"[{mean.bounds.low:.4f}, {mean.bounds.high:.4f}]"
        return f"{text} {ends} (level {mean.level}, from {count}, {equal_values})", mean.warnings

    def _line(self, mean: str) -> str:
        alarms = "" if self._alarm is None else f"{self._alarms} alarms below {self._alarm:.4f}, "
        return (
            f"{self._frames} frames, {mean}, {alarms}latency {self._latency / self._frames:.1f} "
            f"ms on average, {self._longest:.1f} ms at most."
        )
