"""Writes `docs/scores.md` from the list of metrics; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path

from uqeval.metrics import FAMILIES, Metric

PAGE = Path(__file__).with_name("scores.md")
HEAD = """# All scores

Each score has an address, which rules of the gate and `compare --metric` take. `better` is the
better direction; a score without one only describes. The page of a report shows the same sentences.
`python docs/make_scores.py` writes this page from the list of metrics.
"""


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for name, family in FAMILIES.items():
        table = ["| score | says | better | range | if it is bad | undefined when | source |",
                 "|---|---|---|---|---|---|---|"]  # fmt: skip
        own = [one for one in family.metrics if not one.field.startswith("per_class.")]
        table += [_row(metric) for metric in own]
        more = "" if len(own) == len(family.metrics) else "\nEach of them by class, too: "
        rest = [m.id for m in family.metrics if m not in own]
        more += ", ".join(f"`{one}`" for one in rest[:1]) + (" and so on.\n" if rest else "")
        parts.append(f"## {name}\n\n" + "\n".join(table) + "\n" + more)
    return "\n".join(parts)


def _row(metric: Metric) -> str:
    low, high = (f"{end:g}" if end is not None else "∞" for end in metric.range)
    ends = f"{'−' * (metric.range[0] is None)}{low} … {high}"
    cells = [f"`{metric.id}`", metric.meaning, metric.direction or "", ends, metric.advice,
             metric.undefined, metric.reference]  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
