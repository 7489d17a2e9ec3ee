"""The files that a safety case needs: a statement to be signed, results, environment, README."""

from uqeval.usecases.evidence.collecting import Evidence, collect
from uqeval.usecases.evidence.writing import write_evidence

__all__ = ["Evidence", "collect", "write_evidence"]
