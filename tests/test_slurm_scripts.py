"""The scripts for Slurm give the report of a single run, with a stand-in for `sbatch`.

The stand-in puts jobs into a queue, and the tests run them: arrays, dependencies and the variables
of Slurm are as Slurm has them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import run_forked
from small_stores import labels, probs, save

SCRIPTS = Path(__file__).parents[1] / "examples" / "slurm"

#: Writes its arguments and its environment to the queue, and prints the number of the job.
SBATCH = """#!/bin/bash
set -e
number=$(($(ls "$QUEUE" | wc -l) + 1))
mkdir "$QUEUE/$number"
printf '%s\\0' "$@" > "$QUEUE/$number/arguments"
env -0 > "$QUEUE/$number/environment"
echo "$number;cluster"
"""

#: Lets the tests run the command, in a fork.
UQEVAL = """#!/bin/bash
own=$(mktemp -d "$REQUESTS.XXXXXX")
mkfifo "$own/status"
printf '%s\\0' "$PWD" "$@" > "$own/arguments"
echo "$own" > "$REQUESTS"
read -r status < "$own/status"
cat "$own/stdout"
cat "$own/stderr" >&2
exit "$status"
"""


@dataclass
class Slurm:
    """A cluster with one queue, in a folder."""

    folder: Path
    #: By number of a job, whether all of its tasks ended well.
    ended: dict[int, bool] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return os.environ | {
            "PATH": path, "QUEUE": str(self.folder / "queue"),
            "REQUESTS": str(self.folder / "requests"),
        }  # fmt: skip

    def submit(self, *arguments: str, **variables: str) -> str:
        done = subprocess.run(
            [str(SCRIPTS / "submit.sh"), *arguments], env=self.environment | variables,
            capture_output=True, text=True, check=False, timeout=60, cwd=self.folder,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self) -> None:
        """Run the jobs in the queue, and those that they submit."""
        while waiting := [n for n in range(1, 99) if n not in self.ended and self._job(n).exists()]:
            self._run(waiting[0])

    def _job(self, number: int) -> Path:
        return self.folder / "queue" / str(number)

    def _run(self, number: int) -> None:
        arguments = _parts(self._job(number) / "arguments")
        entries = _parts(self._job(number) / "environment")
        environment = dict(entry.split("=", 1) for entry in entries)
        at = next(i for i, text in enumerate(arguments) if not text.startswith("-"))
        options = dict(text.removeprefix("--").partition("=")[::2] for text in arguments[:at])
        assert "parsable" in options
        before = options.get("dependency", "").removeprefix("afterok:")
        if before and not self.ended[int(before)]:
            self.ended[number] = False  # Slurm cancels it
            return
        assert options["output"].startswith("/") and options["export"] == "ALL"
        assert os.access(arguments[at], os.X_OK)
        statuses = []
        for task in _tasks(options.get("array")):
            own = {} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)}
            output = options["output"].replace("%a", str(task))
            with Path(output).open("ab") as log:
                statuses.append(
                    subprocess.run(
                        arguments[at:], env=environment | own | {"SLURM_JOB_ID": str(number)},
                        stdout=log, stderr=log, check=False, timeout=60, cwd=self.folder,
                    ).returncode
                )  # fmt: skip
        self.ended[number] = not any(statuses)


def _parts(path: Path) -> list[str]:
    return path.read_text().split("\0")[:-1]


def _tasks(array: str | None) -> list[int | None]:
    if array is None:
        return [None]
    match = re.fullmatch(r"([0-9]+)-([0-9]+)(%[0-9]+)?", array)
    assert match is not None, array
    return list(range(int(match[1]), int(match[2]) + 1))


@contextmanager
def commands(slurm: Slurm) -> Iterator[None]:
    """Answer the stand-in for `uqeval` from a fork of a process that has loaded what it needs."""
    fifo = slurm.folder / "requests"
    os.mkfifo(fifo)
    descriptor = os.open(fifo, os.O_RDWR)

    def answer() -> None:
        with os.fdopen(os.dup(descriptor)) as requests:
            for line in requests:
                own = Path(line.strip())
                if not own.name:
                    return
                folder, *arguments = _parts(own / "arguments")
                done = run_forked(*arguments, cwd=Path(folder))
                (own / "stdout").write_text(done.stdout)
                (own / "stderr").write_text(done.stderr)
                (own / "status").write_text(f"{done.status}\n")

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        os.write(descriptor, b"\n")
        thread.join()
        os.close(descriptor)


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[Slurm]:
    (tmp_path / "bin").mkdir()
    (tmp_path / "queue").mkdir()
    for name, text in (("sbatch", SBATCH), ("uqeval", UQEVAL)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    save(tmp_path / "s.zarr", {"probs": probs(4), "labels": labels(4)}, {"names": list("abcd")})
    found = Slurm(tmp_path)
    with commands(found):
        yield found


def report(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    return {k: v for k, v in record.items() if k not in ("timing", "states", "states_digest")}


@pytest.mark.parametrize("shards", [1, 2])
def test_the_scripts_give_the_report_of_a_single_run(slurm: Slurm, shards: int) -> None:
    folder = slurm.folder
    run = ("sparsification", "s.zarr")
    out = folder / "out"
    said = slurm.submit(*run, SHARDS=str(shards), OUT=str(out), MERGE_ARGS="--ci 0.9")
    assert said == "round 1: shards: job 1, then fit: job 2\n"
    slurm.run()
    assert slurm.ended == dict.fromkeys(range(1, 5), True)  # two rounds
    log = (out / "fit.log").read_text()
    assert "round 1 is counted; next: sparsification" in log
    assert "round 2 is counted; done" in log
    done = run_forked(*run, "-q", "--ci", "0.9", "-o", "whole.json", cwd=folder)
    assert done.status == 0, done.stderr
    assert report(out / "report.json") == report(folder / "whole.json")


def test_a_shard_that_fails_ends_the_chain(slurm: Slurm) -> None:
    out = slurm.folder / "out"
    slurm.submit("regression", "s.zarr", SHARDS="2", OUT=str(out))
    slurm.run()
    assert slurm.ended == {1: False, 2: False}
    assert not (out / "report.json").exists() and not (out / "fitted.json").exists()
    assert "s.zarr holds class predictions" in (out / "parts" / "2.log").read_text()


def test_the_manifests_of_kubernetes() -> None:
    """They were not run on a cluster: their texts agree with each other and with the commands."""
    folder = SCRIPTS.with_name("kubernetes")
    config, shards = yaml.safe_load_all((folder / "shards.yaml").read_text())
    (fit,) = yaml.safe_load_all((folder / "fit.yaml").read_text())
    assert shards["spec"]["completionMode"] == "Indexed"
    assert shards["spec"]["completions"] == int(config["data"]["SHARDS"])
    script = (folder / "rounds.sh").read_text()
    for job in (shards, fit):
        assert job["kind"] == "Job" and job["metadata"]["name"] in script
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": config["metadata"]["name"]}}]
        used = set(re.findall(r"\$\{?([A-Z_]+)", container["args"][0]))
        assert used <= {*config["data"], "JOB_COMPLETION_INDEX"}
        done = subprocess.run(["bash", "-n", "-c", container["args"][0]], check=False)
        assert done.returncode == 0
