#!/usr/bin/env bash
# diff.sh - sends the fixtures of the kinds to a real cluster and to a fresh vigild, and shows where
# the answers differ; tests/kinds/diff.py says how. KUBECONFIG says which cluster, DIFF_ARGS adds
# arguments (--updates, --only TEXT, --show N), KUBECTL names a kubectl if none is in the PATH.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

if [ -z "${KUBECONFIG:-}" ]; then
    complain "Which cluster? make test-diff KUBECONFIG=<file>
Objects are sent with dryRun=All: nothing is changed there. DIFF_ARGS=--updates also compares updates,
in a namespace that is made for it and deleted at the end."
    exit 2
fi
[ -r "$KUBECONFIG" ] || {
    complain "no such file: $KUBECONFIG"
    exit 2
}
kubectl=${KUBECTL:-$(command -v kubectl || find build/clients -path '*/kubectl-*/kubectl' -print -quit 2>/dev/null || true)}
[ -n "$kubectl" ] || {
    complain "no kubectl: install one, or say KUBECTL=<program>"
    exit 2
}
tools/build.sh vigild
# shellcheck disable=SC2086 # words
exec python3 tests/kinds/diff.py "$KUBECONFIG" --vigild build/vigild --kubectl "$kubectl" ${DIFF_ARGS:-}
