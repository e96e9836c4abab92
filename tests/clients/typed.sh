#!/usr/bin/env bash
# typed.sh <vigild> <cache> - the typed clients of client-go over protobuf: every verb, and informers
# that equal the server's state after random writes.
. "$(dirname "$0")/lib.sh"
. "$here/go_get.sh"
need_go
seed=${VG_SEED:-$RANDOM}
go_program typed
start_server
ok "$program" "$KUBECONFIG" "$seed"
out_has ok
cat out
stop_server
echo "typed clients speak protobuf (seed $seed)"
