#!/bin/bash
# Evaluate a set of predictions on Kubernetes, in as many rounds as its metrics need.
#
#     ./rounds.sh        # after editing shards.yaml and fit.yaml
#
# OUT (shards.yaml) must have no fitted.json of an earlier evaluation. After a failed round, repair
# what its logs say and start this script again: it repeats the round; shards that were counted are
# not counted again.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

run() {  # JOB FILE: run a Job anew, and wait for its end
    kubectl delete job "$1" --ignore-not-found
    kubectl apply -f "$here/$2"
    while true; do
        ended=$(kubectl get job "$1" -o \
            'jsonpath={.status.conditions[?(@.status=="True")].type}')
        case "$ended" in
            *Complete*) return 0 ;;
            *Failed*)
                kubectl logs "job/$1" --tail=20 --prefix >&2 || true
                echo "$1 failed" >&2
                return 1 ;;
        esac
        sleep "${POLL:-10}"
    done
}

left=
while [ "$left" != done ]; do
    run uqeval-shards shards.yaml
    run uqeval-fit fit.yaml
    left=$(kubectl logs job/uqeval-fit --tail=1)
    echo "$left"
done
