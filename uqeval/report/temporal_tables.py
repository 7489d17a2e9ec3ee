"""Tables of temporal consistency."""

from __future__ import annotations

from typing import Any

from uqeval.errors import number_of
from uqeval.keys import Key, family_of
from uqeval.report.glossary import headings
from uqeval.report.schema import Report
from uqeval.report.table import Table, shown, text_table, values

_SCORES = ("mtc", "mtc_no_warp", "mtc_pooled", "pixel_agreement", "coverage")
#: Scores that some records have, and the parts that they lie in.
_EXTRAS = ("occluded.mtc", "tracks.consistency", "correlation.r", "miou_mean")
#: Sequences that are shown; the report holds all.
_MOST = 20


def temporal_tables(report: Report) -> list[Table]:
    """Scores of every model and flow, then sequences and classes of the first one."""
    results = report.results
    keys = [key for key in results if family_of(key) == "temporal"]
    if not keys:
        return []
    found = [_scores(report, keys), _photometric(report, keys)]
    first = results[keys[0]]
    if len(first["sequences"]) > 1:
        found.append(_sequences(first, keys[0]))
    found.append(_per_class(first, keys[0]))
    return found


def _scores(report: Report, keys: list[str]) -> Table:
    records = [report.results[key] for key in keys]
    extras = [field for field in _EXTRAS if any(field.split(".")[0] in r for r in records)]
    columns = ["model", "flow", *headings("temporal", (*_SCORES, *extras))]
    rows = [
        [
            record["model"], record["flow"]["id"], *values(record, _SCORES),
            *(_extra(record, field) for field in extras),
        ]
        for record in records
    ]  # fmt: skip
    if len({(row[0], row[1]) for row in rows}) < len(rows):  # they differ in a choice besides
        columns.insert(2, "variant")
        for row, key in zip(rows, keys, strict=True):
            row.insert(2, Key.parse(key).variant or "")
    pairs = records[0]["pairs"]
    return text_table(
        "Temporal consistency",
        columns,
        rows,
        f"mean over {number_of(pairs, 'pair')} of frames; a constant prediction has 1, so read it "
        "beside mIoU, and compare models on one flow only.",
        left=frozenset({0, 1, 2} if "variant" in columns else {0, 1}),
    )


def _extra(record: dict[str, Any], field: str) -> str:
    """A score in a part that not every record has."""
    part, _, name = field.partition(".")
    own = record.get(part)
    return shown(own.get(name) if name and own is not None else own)


def _photometric(report: Report, keys: list[str]) -> Table:
    seconds = report.timing.get("flow_seconds", {})
    rows = []
    for flow in dict.fromkeys(report.results[key]["flow"]["id"] for key in keys):
        record = next(r for k in keys if (r := report.results[k])["flow"]["id"] == flow)
        spent = seconds.get(flow)
        rows.append(
            [
                flow,
                shown(record["mse_warp"], 5),
                shown(record["mse_identity"], 5),
                shown(record["flow_median"], 2),
                shown(record["flow_p99"], 2),
                shown(record["out_of_frame"]),
                shown(record["cuts"]),
                "" if spent is None else shown(spent / record["pairs"], 3),
            ]
        )
    return text_table(
        "How well the flow fits",
        ["flow", "MSE warped", "MSE no warp", "median px", "p99 px", "out of frame", "cuts",
         "s a pair"],
        rows,
        "MSE: squared difference of grey in [0, 1]; a warp that is worse than none is no flow.",
    )  # fmt: skip


def _sequences(record: dict[str, Any], key: str) -> Table:
    names = ("frames", "pairs", "gaps", "mtc", "mtc_no_warp", "coverage", "mse_warp")
    rows = [[row["sequence"], *values(row, names)] for row in record["sequences"][:_MOST]]
    total = len(record["sequences"])
    note = f"{_MOST} of {total} sequences; the report holds all." if total > _MOST else ""
    columns = ["sequence", *headings("temporal", names)]
    return text_table(f"By sequence ({key})", columns, rows, note)


def _per_class(record: dict[str, Any], key: str) -> Table:
    rows = [
        [str(row["name"]), shown(row["iou"]), shown(row["pixels"])] for row in record["per_class"]
    ]
    return text_table(
        f"By class ({key})", ["class", "IoU over time", "pixels"], rows,
        "IoU of the counts of all pairs.",
    )  # fmt: skip
