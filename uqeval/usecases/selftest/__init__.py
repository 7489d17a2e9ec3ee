"""Self-test: known answers on this machine, with the installed versions.

Kernels against plain NumPy, the papers' worked examples, videos with a known answer, codecs, and
golden reports. All data are made from seeds; nothing is read but this package.
"""

from uqeval.usecases.selftest.record import Check, Selftest, selftest

__all__ = ["Check", "Selftest", "selftest"]
