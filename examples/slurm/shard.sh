#!/bin/bash
#SBATCH --cpus-per-task=8
#SBATCH --mem=8G
#SBATCH --time=04:00:00
# One shard of one round: counts the next pass over its items. Submitted by submit.sh.
set -euo pipefail
fitted=()
if [ "$ROUND" -gt 1 ]; then
    fitted=(--fitted "$OUT/fitted.json")
fi
uqeval "$@" --part "$SLURM_ARRAY_TASK_ID/$SHARDS" -o "$OUT/parts/$SLURM_ARRAY_TASK_ID.json" \
    --workers "${SLURM_CPUS_PER_TASK:-1}" --quiet --resume ${fitted[@]+"${fitted[@]}"}
