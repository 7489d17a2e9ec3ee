#!/bin/bash
#SBATCH --cpus-per-task=2
#SBATCH --mem=16G
#SBATCH --time=01:00:00
# After a round of all shards: submits the next round, or joins the shards after the last one.
# Submitted by submit.sh.
set -euo pipefail
left=$(uqeval merge --fit "$OUT/parts" -o "$OUT/fitted.json" --quiet)
echo "round $ROUND is counted; $left"
if [ "$left" = done ]; then
    read -ra options <<< "${MERGE_ARGS:-}"
    uqeval merge "$OUT/parts" -o "$OUT/report.json" ${options[@]+"${options[@]}"}
else
    ROUND=$((ROUND + 1)) "$SCRIPTS/submit.sh" "$@"
fi
