"""Writes `docs/scores.md` from the list of metrics; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path

from uqeval.metrics import FAMILIES, Metric

PAGE = Path(__file__).with_name("scores.md")
HEAD = """# All scores

Rules of the gate and `compare --metric` take the address in the first column. `better`: the better
direction; a score without a direction is a description. The page of a report shows the same
sentences. `python docs/make_scores.py` writes this page from the list of metrics.
"""


def page() -> str:
    """Return the text of the page."""
    parts = [HEAD]
    for name, family in FAMILIES.items():
        table = ["| score | meaning | better | range | if it is bad | undefined when | source |",
                 "|---|---|---|---|---|---|---|"]  # fmt: skip
        by_class = [m for m in family.metrics if m.field.startswith("per_class.")]
        table += [_row(metric) for metric in family.metrics if metric not in by_class]
        example = by_class[0].id.replace("per_class.", "per_class.NAME.") if by_class else ""
        note = f"\nAlso by class: `{example}` and so on.\n" if by_class else ""
        parts.append(f"## {name}\n\n" + "\n".join(table) + "\n" + note)
    return "\n".join(parts)


def _row(metric: Metric) -> str:
    low, high = (f"{end:g}" if end is not None else "∞" for end in metric.range)
    ends = f"{'−' * (metric.range[0] is None)}{low} … {high}"
    cells = [f"`{metric.id}`", metric.meaning, metric.direction or "", ends, metric.advice,
             metric.undefined, metric.reference]  # fmt: skip
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    PAGE.write_text(page())
