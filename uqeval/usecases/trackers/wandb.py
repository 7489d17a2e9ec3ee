"""Weights & Biases: one run per report in a project; `WANDB_MODE=offline` keeps it local."""

from __future__ import annotations

import tempfile
from pathlib import Path

from uqeval.errors import OutputError, UsageError, cut, quoted
from uqeval.usecases.trackers.entry import Entry, import_library, reason_of


class Wandb:
    """A project, by its name."""

    def __init__(self, project: str) -> None:
        import_library("wandb")
        if not project.strip() or set(project) & set("/\\#?%:"):
            raise UsageError(
                f"--wandb {quoted(project)}: expected the name of a project, not empty and "
                "without / \\ # ? % :."
            )
        self._project = project

    def add(self, entry: Entry) -> str:
        """Write a report as a run: scores, settings, figures, the page and the report.

        Scores have the names of `Report.scalars`, because W&B accepts letters, digits and
        underscores. Raises `OutputError` if W&B refuses it.
        """
        import wandb

        try:
            with (
                tempfile.TemporaryDirectory(prefix="uqeval-") as folder,
                wandb.init(
                    project=self._project, name=entry.name, config=entry.settings(),
                    notes=entry.findings(), settings=wandb.Settings(silent=True, console="off"),
                ) as run,
            ):  # fmt: skip
                run.log(entry.report.scalars(), step=entry.step)
                for picture in entry.pictures:
                    path = Path(folder) / f"{picture.name}.png"
                    path.write_bytes(picture.png)
                    image = wandb.Image(str(path), caption=picture.title)
                    run.log({f"figures/{picture.name}": image}, step=entry.step)
                run.log({"page": wandb.Html(entry.html, inject=False)}, step=entry.step)
                report = Path(folder) / "report.json"
                report.write_text(entry.report.to_json(), encoding="utf-8")
                artifact = wandb.Artifact(f"report-{run.id}", type="uqeval-report")
                artifact.add_file(str(report))
                run.log_artifact(artifact)
                where = run.dir if run.offline else run.url
        except OSError as error:
            raise OutputError(
                f"--wandb {quoted(self._project)} cannot be written: {cut(error)}."
            ) from error
        except wandb.errors.Error as error:
            raise OutputError(
                f"--wandb {quoted(self._project)}: W&B refuses it: {reason_of(error)}. Log in "
                "(wandb login), or keep it on this machine: WANDB_MODE=offline."
            ) from error
        return f"logged {entry.name} to W&B: {cut(where)}"
