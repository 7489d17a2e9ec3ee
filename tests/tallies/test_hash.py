"""Tallies are keys of dicts, also those that another process has sent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from uqeval.tallies._errors import Error
from uqeval.tallies._values import Uncertainty
from uqeval.tallies.ranked_errors import RankedErrors


def ranked(name: str) -> RankedErrors:
    return RankedErrors(Uncertainty(name), Error("zero-one"), 3, True, 9, 13, ((0, 1), (1, 1)))


def test_equal_tallies_have_one_hash() -> None:
    assert ranked("entropy") is not ranked("entropy")
    assert {ranked("entropy"): 1}[ranked("entropy")] == 1
    assert ranked("confidence") not in {ranked("entropy"): 1}


def test_a_tally_of_another_process_is_found() -> None:
    tally = ranked("entropy")
    hash(tally)
    code = (
        "import dataclasses, pickle, sys\n"
        "tally = pickle.loads(sys.stdin.buffer.read())\n"
        "sys.exit(dataclasses.replace(tally) not in {tally: 1})\n"
    )
    other = os.environ | {"PYTHONHASHSEED": "1"}  # hashes of text differ by process
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(tally), env=other, check=True)
