#!/usr/bin/env bash
# diff.sh <vigild> <cache> - what `make test-diff` does: the fixtures of the kinds against another
# server. That is a vigild here, which must answer alike; and a kube-apiserver, which must too, in the
# long round (VG_LONG=1), or any cluster that VG_CLUSTER=<kubeconfig> names.
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
. "$here/peers_get.sh"
. "$here/peer_start.sh"
kubectl_of recent
compare() { run python3 "$here/../kinds/diff.py" "$@" --vigild "$vigild" --kubectl "$kubectl"; }

start_server
ok "$kubectl" get all -A -o name
cp out before
compare "$KUBECONFIG" --updates --only de
[ "$status" -eq 0 ] || fail "two servers of ours differ"
grep -qE '^[0-9]{3} answers are the same, 0 differ$' out || fail "it compares too little"
ok "$kubectl" get namespaces -o jsonpath='{.items[?(@.status.phase=="Active")].metadata.name}'
out_lacks vigil-diff
ok "$kubectl" get all -A -o name
diff before out || fail "something is left"
# A cluster that is not there is told from one that differs.
compare nosuch.kubeconfig
[ "$status" -eq 2 ] || fail "a cluster that is not there is no difference"
stop_server

if [ -n "${VG_CLUSTER:-}" ]; then
    compare "$VG_CLUSTER"
    cat out
elif [ "${VG_LONG:-0}" = 1 ]; then
    peers_have peers kube-apiserver
    start_peers
    compare "$work/kubeconfig" --updates
    [ "$status" -eq 0 ] || fail "kube-apiserver answers otherwise"
    cat out
else
    echo "a kube-apiserver is met in the long round (VG_LONG=1)"
fi
echo "answers can be compared with any cluster's"
