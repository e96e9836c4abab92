#!/usr/bin/env bash
# columns.sh <vigild> <cache> <columns_compare> - rows of tables of random objects, by Kubernetes' own printers and by ours. In
# the long round only (VG_LONG=1): the first time the build takes a while.
. "$(dirname "$0")/lib.sh"
. "$here/peers_get.sh"
[ "${VG_LONG:-0}" = 1 ] || skip "Kubernetes' printers are met in the long round (VG_LONG=1)"
compare=$3
printers=printers_$peers_version-$(cksum <"$here/columns/main.go" | cut -d' ' -f1)
get_printers() {
    local dir=$cache/printers
    peers_module "$dir"
    cp "$here/columns/main.go" "$dir/main.go"
    go_in "$dir" mod tidy
    go_in "$dir" build -ldflags='-s -w' -o "$cache/$printers" .
}
need_go
[ -x "$cache/$printers" ] || rm -f "$cache/printers.done"
get printers
seed=${VG_SEED:-$RANDOM$RANDOM}
echo "seed=$seed"
"$cache/$printers" "$seed" 200 >lines
"$compare" <lines
