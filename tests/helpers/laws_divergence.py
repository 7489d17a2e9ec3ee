"""Examples and a slow oracle of the tally behind the divergence from a reference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from uqeval.tallies._contract import Tally
from uqeval.tallies.divergence import Divergence

State = dict[str, Any]
Maps = dict[str, Any]

EXAMPLES: tuple[Tally, ...] = (Divergence(), Divergence(clip=0.01))


def _divergence(tally: Any, items: Sequence[Maps]) -> State:
    total, finite, infinite = [], 0, 0
    for maps in items:
        p, q = maps["mean_probs"], maps["reference/mean_probs"]
        for y in range(p.shape[1]):
            for x in range(p.shape[2]):
                a, b = ([max(float(v), tally.clip) for v in m[:, y, x]] for m in (p, q))
                if tally.clip:
                    a, b = [v / sum(a) for v in a], [v / sum(b) for v in b]
                if any(v > 0 and w == 0 for v, w in zip(a, b, strict=True)):
                    infinite += 1
                    continue
                finite += 1
                total += [v * math.log(v / w) for v, w in zip(a, b, strict=True) if v > 0]
    return {"total": [math.fsum(total)], "finite": [finite], "infinite": [infinite]}


ORACLES: dict[type[Tally], Callable[[Any, Sequence[Maps]], State]] = {Divergence: _divergence}
