"""SciPy's special functions without the rest of `scipy.special`."""

from __future__ import annotations

import subprocess
import sys

_CODE = """
import sys
from uqeval.special import special
functions = special()
assert "numpy.f2py" not in sys.modules
assert not {"scipy.special", "scipy.linalg"} & set(sys.modules)
import scipy.linalg.cython_lapack
import scipy.special
assert scipy.linalg.cython_lapack.__name__ == "scipy.linalg.cython_lapack"
assert scipy.linalg.inv([[2.0]]) == 0.5
for name in ("betaincinv", "ndtr", "stdtr", "stdtrit"):
    assert getattr(functions, name) is getattr(scipy.special, name), name
assert scipy.special.expit(0.0) == 0.5
"""


def test_functions_are_those_of_scipy_and_load_without_its_package() -> None:
    subprocess.run([sys.executable, "-c", _CODE], check=True, timeout=60)
