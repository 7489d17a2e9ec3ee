#!/bin/bash
# Evaluate a set of predictions as a job array, in as many rounds as its metrics need.
#
#     SHARDS=64 OUT=/shared/report ./submit.sh calibration /shared/preds.zarr /shared/labels
#
# The arguments are those of one uqeval command without -o and --part. OUT is a folder on a disk
# that all nodes share. Round 1 is submitted now. Each round submits the next (fit.sh), until
# OUT/report.json is there. Options, as variables:
#   SBATCH_ARGS  of sbatch, such as "--partition=long --account=me"
#   ARRAY        the array, with a limit of running jobs: ARRAY=1-64%16
#   MERGE_ARGS   of the report, such as "--ci 0.95"
#   ROUND        after a failed job: the round to repeat, as the log of fit.sh says; shards that
#                were counted are not counted again
set -euo pipefail
export SHARDS=${SHARDS:?number of shards, such as SHARDS=64}
export OUT=${OUT:?folder of the results, on a shared disk}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export ROUND=${ROUND:-1}
mkdir -p "$OUT/parts"
if [ "$ROUND" = 1 ]; then
    rm -f "$OUT/fitted.json"  # of an earlier evaluation
fi
# Jobs may not see this folder: Slurm runs copies of the scripts.
export SCRIPTS=${SCRIPTS:-$here}
read -ra extra <<< "${SBATCH_ARGS:-}"

shards=$(sbatch --parsable "${extra[@]}" --job-name=uqeval-shards --export=ALL \
    --array="${ARRAY:-1-$SHARDS}" --output="$OUT/parts/%a.log" --open-mode=append \
    "$SCRIPTS/shard.sh" "$@")
# afterok: if a shard fails, the chain ends here.
fit=$(sbatch --parsable "${extra[@]}" --job-name=uqeval-fit --export=ALL \
    --dependency="afterok:${shards%%;*}" --kill-on-invalid-dep=yes --output="$OUT/fit.log" --open-mode=append \
    "$SCRIPTS/fit.sh" "$@")
echo "round $ROUND: shards: job ${shards%%;*}, then fit: job ${fit%%;*}"
