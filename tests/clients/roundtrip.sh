#!/usr/bin/env bash
# roundtrip.sh <vigild> <cache> - a small and a large object of every kind, there and back with
# client-go: in protobuf, JSON and YAML, byte for byte as Go writes them.
. "$(dirname "$0")/lib.sh"
. "$here/go_get.sh"
need_go
go_program roundtrip "k8s.io/apiextensions-apiserver@$kube_version" "k8s.io/kube-aggregator@$kube_version"
python3 "$here/examples.py" >examples
start_server
ok "$program" "$KUBECONFIG" examples
cat out
stop_server
