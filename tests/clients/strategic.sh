#!/usr/bin/env bash
# strategic.sh <vigild> <cache> <strategic_apply> - random strategic merge patches, applied by Kubernetes' own code and by
# ours. For the long round: it builds a Go program.
. "$(dirname "$0")/lib.sh"
[ "${VG_LONG:-0}" = 1 ] || skip "patches meet Kubernetes' own code in the long round (VG_LONG=1)"
need_go
ours=$3 # an absolute path: the test runs elsewhere
version=v0.36.4
oracle=strategic_$version-$(cksum <"$here/strategic/main.go" | cut -d' ' -f1)
get_strategic() {
    local dir=$cache/strategic
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$here/strategic/main.go" "$dir/main.go"
    printf 'module vigil/clients/strategic\n\ngo 1.24\n' >"$dir/go.mod"
    go_in "$dir" get "k8s.io/api@$version" "k8s.io/apimachinery@$version"
    go_in "$dir" build -ldflags='-s -w' -o "$cache/$oracle" .
}
[ -x "$cache/$oracle" ] || rm -f "$cache/strategic.done"
get strategic
python3 "$here/strategic/compare.py" "${VG_SEED:-$RANDOM$RANDOM}" 20000 "$cache/$oracle" "$ours"
