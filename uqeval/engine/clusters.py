"""Find the cluster for a run."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from uqeval.errors import UsageError

if TYPE_CHECKING:
    from uqeval.engine.options import Cluster, MachineOptions
    from uqeval.engine.passes import Items, Turn
    from uqeval.engine.remote import Work


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


class ClusterExecutor(Protocol):
    """Executor of one run on a cluster."""

    def count(self, turn: Turn) -> Generator[Items, None, None]:
        """Yield the states of the items of a turn, in order."""

    def each(
        self, work: Work, batches: Iterable[range] | None = None
    ) -> Generator[tuple[range, Any, int], None, None]:
        """Yield the results of `work` on ranges of items, in order: range, value, bytes read.

        `batches`: the items of each job; by default all items.
        """

    def end(self) -> None:
        """Let the workers close the stores of the run, and delete its maps."""
