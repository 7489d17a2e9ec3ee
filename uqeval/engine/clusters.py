"""Which cluster counts the items of a run, if any."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.engine.options import Cluster, MachineOptions


def cluster_of(
    machine: MachineOptions, client: Any = None
) -> AbstractContextManager[Cluster | None]:
    """Return the cluster of a `distributed.Client` or of `--dask`, for a `with`; None without one.

    Raises `UsageError` if there are both; on entering, if it cannot be reached.
    """
    if client is None and machine.dask is None:
        return nullcontext()
    if client is not None and machine.dask is not None:
        raise UsageError("executor and dask exclude each other; give one of them.")
    from uqeval.engine.dask_cluster import DaskCluster

    return DaskCluster(machine.dask if client is None else client)
