"""Command lines that together need every kernel of a command, on the stores of `warming.py`.

`{out}` is the folder of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator

_DTYPES = ("f2", "f4", "f8")
#: Inputs with samples of class probabilities, with one prediction, and others of classes.
_SAMPLES = (
    *(f"probs-{dtype}.npz" for dtype in _DTYPES), "probs-u1", "probs-u2",
    *(f"{kind}-{dtype}.npz" for kind in ("logits", "two", "many", "large")
      for dtype in ("f2", "f4")),
)  # fmt: skip
_SINGLE = (*(f"single-{dtype}.npz" for dtype in _DTYPES), "single-u1", "single-u2")
_CLASSES = (*_SAMPLES, *_SINGLE, "foreground-f2.npz", "foreground-f4.npz")
_FIVE_CLASSES = tuple(s for s in _CLASSES if s.startswith(("probs", "single", "logits", "large")))
_ROWS = ("rows-f2.npz", "rows-f4.npz")
_MAPS = ("maps-f2.npz", "maps-f4.npz")
_MEMBERS = tuple(f"{kind}-{d}.npz" for kind in ("members", "samples") for d in _DTYPES)
_NUMBERS = (
    *(f"{kind}-{dtype}.npz" for kind in ("numbers", "logarithms") for dtype in _DTYPES),
    *_MEMBERS, *(f"large-numbers-{dtype}.npz" for dtype in _DTYPES),
)  # fmt: skip
_NUMBER_ROWS = tuple(f"number-rows-{dtype}.npz" for dtype in _DTYPES)
_INTERVALS = "--ci 0.9 --draws 100"
_UNCERTAINTIES = "entropy confidence expected_entropy mutual_information variation_ratio std"
_ALL_UNCERTAINTIES = " ".join(f"--uncertainty {name}" for name in _UNCERTAINTIES.split())
#: Options of a family that need other kernels than the default options.
_OPTIONS = {
    "pavpu": (
        _ALL_UNCERTAINTIES, "--uncertainty entropy --log-base 2", "--threshold p80",
        "--threshold 0.5 --threshold range:0.3 --threshold max-surplus --threshold median",
        "--window 3 --stride 1 --border partial --border pad --border drop",
        "--threshold-scope class", "--threshold median --threshold-scope class",
        "--threshold-scope item", "--accuracy-threshold 0.75",
        "--top-k 2", "--definition ma", "--definition torch-uncertainty-0.13",
        "--definition uncertainty-baselines", "--definition a-klass", "--region boundary:3",
    ),
    "calibration": (
        "--bins 10", "--edge upper --at-one own", "--edge upper-float32",
        "--estimator kumar-l2 --estimator kumar-l1 --estimator roelofs-sweep",
        "--temperature-of samples --temperature-of mean", "--no-temperature",
        "--isotonic --vector",
        "--region boundary:3",
    ),
    "failure": (
        _ALL_UNCERTAINTIES, "--threshold p80", "--threshold 0.5", "--region boundary:3",
        "--images", "--images --confidence patch-max --patch 4",
    ),
    "ood": (
        _ALL_UNCERTAINTIES, _INTERVALS, "--aggregation max",
        "--aggregation p50 --aggregation patch-max --aggregation sum",
    ),
    "sparsification": (
        "--error brier --error zero-one --scope set --scope item",
        "--grid every-rank", "--definition gustafsson-code", _ALL_UNCERTAINTIES,
        "--definition torch-uncertainty-0.13", "--definition mono-uncertainty",
    ),
    "regression": (
        "--distribution gaussian --distribution laplace", "--grid closed", "--grid 5-95",
        "--definition gustafsson-code", "--definition uncertainty-toolbox", "--invalid 0",
        "--proportion quantile",
    ),
    "nmerci": (
        "--alpha 95 --alpha 50", "--depth-step 5", "--interpolation inverted_cdf",
        "--over kept", "--definition public-code", "--definition trimmed-mae",
    ),
    "sparsification of numbers": (
        "--error rmse --error mae --scope set --scope item", "--grid every-rank",
        "--error mse --error abs-rel", "--definition gustafsson-code",
        "--definition mono-uncertainty",
    ),
    "tc": (
        "--flow file", "--flow file --grid previous", "--flow file --average pooled",
        "--flow file --occlusion fb", "--flow file --tracks --track-everywhere",
        "--flow file --definition vspw", "--flow dis --tracks", "--flow farneback",
        "--flow file --out-of-frame clamp", "--flow file --definition etc --classes 4",
        f"--flow file {_INTERVALS}",
    ),
}  # fmt: skip
#: Stores on which the options of a family are used.
_WITH_OPTIONS = ("probs-f2.npz", "probs-f4.npz", "large-f2.npz")
_NUMBERS_WITH_OPTIONS = ("numbers-f4.npz", "numbers-f8.npz", "large-numbers-f4.npz")


def _of_family(name: str) -> Iterator[str]:
    """Yield the command lines of a metric family."""
    if name == "tc":
        for store in ("video.npz", "labelled-video.npz"):
            yield from (f"tc {store} {options}" for options in _OPTIONS["tc"])
        return
    if name == "ood":
        for store in _FIVE_CLASSES:  # both sets have as many samples
            yield f"ood {store} {'outside-single' if store in _SINGLE else 'outside'}.npz"
        yield from (f"ood probs-f4.npz outside.npz {options}" for options in _OPTIONS["ood"])
        yield "ood rows-f2.npz rows-f4.npz"
        yield from (f"ood {store} --ood-mask 4" for store in _WITH_OPTIONS)
        yield from (
            f"ood probs-{dtype}.npz --ood-mask masks.npz --definition bravo" for dtype in _DTYPES
        )
        return
    is_of_classes = name not in ("regression", "nmerci")
    if is_of_classes:
        rows = () if name == "pavpu" else _ROWS
        yield from (f"{name} {store}" for store in (*_CLASSES, "banded.npz", *rows))
        yield from (f"{name} {store} {_INTERVALS}" for store in ("probs-f4.npz", "many-f4.npz"))
        yield from (f"{name} {s} {options}" for s in _WITH_OPTIONS for options in _OPTIONS[name])
    if name == "sparsification":
        yield f"sparsification table.npz {_INTERVALS}"
    if name in ("pavpu", "failure"):
        yield from (f"{name} {store} {_ALL_UNCERTAINTIES}" for store in _SAMPLES)
        yield from (f"{name} {store} --uncertainty entropy --classes 5" for store in _MAPS)
    if name in ("regression", "nmerci", "sparsification"):
        options_of = _OPTIONS.get(f"{name} of numbers", _OPTIONS[name])
        yield from (f"{name} {store}" for store in (*_NUMBERS, *_NUMBER_ROWS))
        yield f"{name} numbers-f4.npz {_INTERVALS}"
        yield from (
            f"{name} {s} {options}" for s in _NUMBERS_WITH_OPTIONS for options in options_of
        )


FAMILIES = (
    "pavpu",
    "calibration",
    "failure",
    "ood",
    "regression",
    "nmerci",
    "sparsification",
    "tc",
)
_REPORTS = tuple(
    f"failure {store} -o {{out}}/{name}.json"
    for name, store in (("a", "probs-f4.npz"), ("b", "probs-f2.npz"))
)
_OTHERS = {
    "sweep": (
        *(f"sweep {store} --samples 1,2 --repeats 2" for store in (*_SAMPLES, *_MEMBERS)),
        *(f"sweep probs-{d}.npz --reference probs-f4.npz --samples 1,2 --repeats 2"
          for d in _DTYPES),
    ),
    "divergence": (
        *(f"divergence {store} single-f4.npz" for store in _FIVE_CLASSES
          if not store.startswith("large")),
        "divergence large-f2.npz large-f4.npz",
        *(f"divergence {store} numbers-f4.npz" for store in _NUMBERS
          if not store.startswith("large")),
    ),
    "conformal": tuple(
        f"conformal {store} --fit-on calibration.txt --alpha 0.5 --method lac --method aps "
        "--method aps-randomised"
        for store in (*_SAMPLES, *_SINGLE) if not store.startswith("large")
    ),
    "annotators": tuple(
        f"annotators {store} annotations.npz" for store in _FIVE_CLASSES
        if not store.startswith("large")
    ),
    "observe": ("observe video.npz", "observe video.npz --occlusion fb"),
    "select": (_REPORTS[0], "select {out}/a.json"),
    "merge": (_REPORTS[0], f"merge {{out}}/a.json {_INTERVALS} -o {{out}}/merged.json"),
    "compare": (
        *_REPORTS, "compare {out}/a.json {out}/b.json",
        *(f"sparsification table.npz -o {{out}}/{name}.json" for name in ("c", "d")),
        "compare {out}/c.json {out}/d.json",
    ),
    "report": (_REPORTS[0], "report {out}/a.json -o {out}/page.html"),
    "reduce": tuple(f"reduce {store} -o {{out}}/{store}.zarr" for store in _CLASSES),
    "selftest": ("selftest",),
    "inspect": tuple(f"inspect {store} --full" for store in (*_CLASSES, *_NUMBERS)),
}  # fmt: skip


def command_lines(command: str) -> list[str]:
    """Return command lines that together use all kernels of a command; empty if it uses none."""
    if command in FAMILIES:
        # Tables need no kernels, and take a quarter of the time.
        return [f"{line} --quiet" for line in _of_family(command)]
    if command in ("run", "demo"):
        return [line for family in FAMILIES for line in command_lines(family)]
    return list(_OTHERS.get(command, ()))
