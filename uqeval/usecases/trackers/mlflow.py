"""MLflow: one run per report, in an experiment of the configured tracking server."""

from __future__ import annotations

import logging
import re
import tempfile
import time
from pathlib import Path
from typing import Any

from uqeval.errors import OutputError, UsageError, cut, quoted
from uqeval.usecases.trackers.entry import Entry, import_library, reason_of

#: MLflow's limits: values in one call, and characters of a text.
_METRICS, _PARAMETERS, _NAME, _TEXT = 1000, 100, 250, 6000


class Mlflow:
    """An experiment, by its name. `MLFLOW_TRACKING_URI` sets the server or the folder."""

    def __init__(self, experiment: str) -> None:
        import_library("mlflow")
        if not experiment.strip():
            raise UsageError("--mlflow needs the name of an experiment, such as --mlflow releases.")
        self._experiment = experiment

    def add(self, entry: Entry) -> str:
        """Write a report as a run: metrics, parameters, tags, figures, the page and the report.

        Raises `OutputError` if MLflow refuses it; the run is then marked as failed.
        """
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient

        logging.getLogger("mlflow").setLevel(logging.WARNING)  # hides a line for each new table
        try:
            client = MlflowClient()
            experiment = client.get_experiment_by_name(self._experiment)
            number = (
                client.create_experiment(self._experiment)
                if experiment is None
                else experiment.experiment_id
            )
            run = client.create_run(number, run_name=entry.name).info.run_id
            try:
                _fill(client, run, entry)
            except BaseException:
                client.set_terminated(run, "FAILED")
                raise
            client.set_terminated(run)
        except (MlflowException, OSError) as error:
            raise OutputError(
                f"--mlflow {quoted(self._experiment)}: MLflow refuses it: {reason_of(error)}. "
                "Check MLFLOW_TRACKING_URI."
            ) from error
        return f"logged {entry.name} to MLflow: experiment {cut(self._experiment)}, run {run}"


def _fill(client: Any, run: str, entry: Entry) -> None:
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    metrics = [Metric(name, v, now, entry.step) for name, v in _named(entry.scores()).items()]
    parameters = [Param(name, text[:_TEXT]) for name, text in _named(entry.settings()).items()]
    for start in range(0, len(metrics), _METRICS):
        client.log_batch(run, metrics=metrics[start : start + _METRICS])
    for start in range(0, len(parameters), _PARAMETERS):
        client.log_batch(run, params=parameters[start : start + _PARAMETERS])
    client.set_tag(run, "mlflow.note.content", entry.findings())
    client.log_text(run, entry.html, "page.html")
    client.log_text(run, entry.report.to_json(), "report.json")
    with tempfile.TemporaryDirectory(prefix="uqeval-") as folder:
        for picture in entry.pictures:
            (Path(folder) / f"{picture.name}.png").write_bytes(picture.png)
        client.log_artifacts(run, folder, "figures")


def _named(values: dict[str, Any]) -> dict[str, Any]:
    """Return values by names that MLflow takes: without brackets and other marks, all different."""
    named: dict[str, Any] = {}
    for address, value in values.items():
        name = re.sub(r"[^\w.\- /]+", "_", address, flags=re.ASCII)[:_NAME]
        number = 1
        while name in named:
            number += 1
            name = f"{name[: _NAME - 5]}_{number}"
        named[name] = value
    return named
