#!/usr/bin/env bash
# peer.sh <vigild> <cache> <hello_informer> <longhaul_test> - libvigil against a real kube-apiserver with
# etcd, built through the Go module proxy and kept in the cache: the README's program, and the long haul
# with the server killed and started again. In the long round only (VG_LONG=1): the first time the build
# takes a while. VG_CLUSTER=<kubeconfig> takes that cluster instead, which is never killed; the test
# writes into it: configmaps and pods of "default", and nodes.
. "$(dirname "$0")/lib.sh"
. "$here/peers_get.sh"
. "$here/peer_start.sh"
hello=$3 longhaul=$4 # absolute
[ "${VG_LONG:-0}" = 1 ] || skip "a real kube-apiserver is met in the long round (VG_LONG=1)"

if [ -n "${VG_CLUSTER:-}" ]; then
    cp "$VG_CLUSTER" kubeconfig
    control=()
else
    peers_have peers kube-apiserver
    start_peers
    control=("$work/control")
fi
export KUBECONFIG=$work/kubeconfig

talk_to "$hello"
sees_line() { until_true 120 grep -qE -- "$1" seen || fail "hello_informer does not print: $1"; }
sees_line '^[0-9]+ pods$'
"$longhaul" "$KUBECONFIG" "${control[@]}" >haul.log 2>&1 || {
    tail -n 60 haul.log >&2
    fail "the long haul"
}
cat haul.log
sees_line '^(added|found) default/x'
sees_line '^(deleted|vanished) default/x'
echo "informers follow a real kube-apiserver, also through its kills"
