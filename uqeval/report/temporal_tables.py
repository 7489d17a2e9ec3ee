"""Tables of temporal consistency."""

from __future__ import annotations

from typing import Any

from uqeval.errors import number_of
from uqeval.keys import Key, family_of
from uqeval.report.schema import Report
from uqeval.report.table import Table, shown

_SCORES = {
    "mtc": "mTC",
    "mtc_no_warp": "no warp",
    "mtc_pooled": "pooled",
    "pixel_agreement": "agreement",
    "coverage": "coverage",
}
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
    columns = ["model", "flow", *_SCORES.values()]
    rows = [
        [record["model"], record["flow"]["id"], *(shown(record[name]) for name in _SCORES)]
        for record in records
    ]
    extras: list[tuple[str, str, str]] = [
        ("occluded", "mtc", "mTC visible"),
        ("tracks", "consistency", "tracks C26"),
        ("correlation", "r", "r(mIoU)"),
    ]
    for part, field, heading in extras:
        if any(part in record for record in records):
            columns.append(heading)
            for row, record in zip(rows, records, strict=True):
                row.append(shown(record.get(part, {}).get(field)))
    if any("miou_mean" in record for record in records):
        columns.append("mIoU")
        for row, record in zip(rows, records, strict=True):
            row.append(shown(record.get("miou_mean")))
    if len({(row[0], row[1]) for row in rows}) < len(rows):  # they differ in a choice besides
        columns.insert(2, "variant")
        for row, key in zip(rows, keys, strict=True):
            row.insert(2, Key.parse(key).variant or "")
    pairs = records[0]["pairs"]
    return Table(
        "Temporal consistency",
        columns,
        rows,
        f"mean over {number_of(pairs, 'pair')} of frames; a constant prediction has 1, so read it "
        "beside mIoU, and compare models on one flow only.",
        left=frozenset({0, 1, 2} if "variant" in columns else {0, 1}),
    )


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
    return Table(
        "How well the flow fits",
        ["flow", "MSE warped", "MSE no warp", "median px", "p99 px", "out of frame", "cuts",
         "s a pair"],
        rows,
        "MSE: squared difference of grey in [0, 1]; a warp that is worse than none is no flow.",
    )  # fmt: skip


def _sequences(record: dict[str, Any], key: str) -> Table:
    names = ("frames", "pairs", "gaps", "mtc", "mtc_no_warp", "coverage", "mse_warp")
    rows = [
        [row["sequence"], *(shown(row[name]) for name in names)]
        for row in record["sequences"][:_MOST]
    ]
    total = len(record["sequences"])
    note = f"{_MOST} of {total} sequences; the report holds all." if total > _MOST else ""
    columns = ["sequence", "frames", "pairs", "gaps", "mTC", "no warp", "coverage", "MSE warped"]
    return Table(f"By sequence ({key})", columns, rows, note)


def _per_class(record: dict[str, Any], key: str) -> Table:
    rows = [
        [str(row["name"]), shown(row["iou"]), shown(row["pixels"])] for row in record["per_class"]
    ]
    return Table(
        f"By class ({key})", ["class", "IoU over time", "pixels"], rows,
        "IoU of the counts of all pairs.",
    )  # fmt: skip
