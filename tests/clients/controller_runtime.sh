#!/usr/bin/env bash
# controller_runtime.sh <vigild> <cache> - a small operator on controller-runtime: leader election,
# cached reads, status, finalizers, owned objects, scale.
. "$(dirname "$0")/lib.sh"
. "$here/go_get.sh"
need_go
go_program controller_runtime sigs.k8s.io/controller-runtime@v0.24.1
start_server
ok "$program" "$KUBECONFIG"
out_has ok
cat out
stop_server
echo "an operator on controller-runtime does its work"
