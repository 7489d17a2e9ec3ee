"""Verify a report: recompute it from the predictions by plain NumPy, apart from all that counts.

Nothing here uses the kernels, maps, tallies or metrics of uqeval; reading the stores is shared.
"""

from uqeval.usecases.verify.record import Verification
from uqeval.usecases.verify.verifying import verify

__all__ = ["Verification", "verify"]
