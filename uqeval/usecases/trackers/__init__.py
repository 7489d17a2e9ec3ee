"""Write reports to TensorBoard, MLflow and Weights & Biases, and items to FiftyOne."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uqeval.usecases.trackers.entry import Tracker


def open_trackers(
    tensorboard: str | None = None, mlflow: str | None = None, wandb: str | None = None
) -> list[Tracker]:
    """Return trackers: a folder of TensorBoard, an experiment of MLflow, a project of W&B.

    Raises `UsageError` for a library that is not installed, and for a name or folder that a tracker
    does not take.
    """
    trackers: list[Tracker] = []
    if tensorboard is not None:
        from uqeval.usecases.trackers.tensorboard import TensorBoard

        trackers.append(TensorBoard(tensorboard))
    if mlflow is not None:
        from uqeval.usecases.trackers.mlflow import Mlflow

        trackers.append(Mlflow(mlflow))
    if wandb is not None:
        from uqeval.usecases.trackers.wandb import Wandb

        trackers.append(Wandb(wandb))
    return trackers
