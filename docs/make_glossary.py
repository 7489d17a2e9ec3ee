"""Write `docs/glossary.md` from the list of metrics; `tests/test_docs.py` compares."""

from __future__ import annotations

from pathlib import Path

from uqeval.glossary import families, family_label, label

PAGE = Path(__file__).with_name("glossary.md")
#: Words of the pages, the commands and the reports that are no scores.
WORDS = {
    "baseline": "An earlier report, from which the gate measures drops and rises.",
    "confidence": "The probability of the predicted class. In a rule of the gate: the level of the "
    "interval that must keep the limit.",
    "coverage": "Share of pixels that are kept when the least certain ones are rejected. Of an "
    "interval: share of targets inside it. Of a video: share of pixels that are compared.",
    "definition": "A named set of choices, such as `paper`, that fixes a metric.",
    "entropy": "Uncertainty of the mean probabilities: 0 if one class has probability 1.",
    "gate": "Limits for scores, and the verdicts whether a report keeps them.",
    "interval": "Range of values that a score plausibly has on other items of the same kind.",
    "item": "What is evaluated one by one: an image, or a pair of frames of a video.",
    "maps": "Numbers for each pixel, such as the prediction and its entropy.",
    "member": "One network of an ensemble.",
    "mixed patch": "A patch with pixels of several ground-truth classes.",
    "mutual information": "Part of the entropy on which the samples disagree: what the network "
    "does not know.",
    "oracle": "The best possible order of pixels: by their true error.",
    "patch": "A window of 4×4 pixels (`--window`).",
    "region": "A part of each image that is evaluated separately, such as borders of classes.",
    "report": "All scores, settings and items of an evaluation, as JSON.",
    "risk": "Error rate of the pixels that are kept.",
    "sample": "One of several predictions for an image, by dropout or by a member of an ensemble.",
    "slice": "A group of items with the same value in a table, such as all images at night.",
    "states": "Counts and sums of each item, from which scores, intervals and slices are computed "
    "again without the predictions. Also: tallies.",
    "store": "The file or folder with predictions, labels or targets.",
    "threshold": "The uncertainty above which a patch or a pixel counts as uncertain.",
    "unit": "What is resampled for an interval: an item, a group of items, a stretch of a video.",
    "variant": "A metric with another value of an option: `pavpu[window=8]`.",
    "verdict": "Whether one limit of the gate is kept: pass, fail, inconclusive, or waived.",
    "void": "Pixels without a label, which leave every count (`--ignore-index`).",
}
HEAD = """# Glossary

The words of pages, tables and reports. The first table has general words, the second one the scores
that pages show first, with their keys in reports. [scores.md](scores.md) has all scores.
`python docs/make_glossary.py` writes this page from the list of metrics.
"""


def page() -> str:
    """Return the text of the page."""
    words = [f"| {word} | {meaning} |" for word, meaning in sorted(WORDS.items())]
    rows = {
        (label(name, metric.field).lower(), metric.id): f"| {label(name, metric.field)} | "
        f"{family_label(name)} | `{metric.id}` | {metric.meaning} |"
        for name, family in families().items()
        for metric in family.metrics
        if metric.headline
    }
    scores = [
        row.replace("p(accurate | certain)", "p(accurate \\| certain)").replace(
            "p(uncertain | inaccurate)", "p(uncertain \\| inaccurate)"
        )
        for _, row in sorted(rows.items())
    ]
    return "\n".join(
        [HEAD, "## Words", "", "| word | meaning |", "|---|---|", *words, "", "## Scores", "",
         "| score | metric | key | meaning |", "|---|---|---|---|", *scores, ""]
    )  # fmt: skip


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
