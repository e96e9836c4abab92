#!/usr/bin/env bash
# codec.sh <vigild> <cache> <codec_compare> - objects that Go filled at random, in Go's protobuf and
# JSON, against ours.
. "$(dirname "$0")/lib.sh"
need_go
compare=$3
version=v0.36.4
fill=fill_$version-$(cksum <"$here/fill.go" | cut -d' ' -f1)
get_fill() {
    local dir=$cache/fill
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$here/fill.go" "$dir/main.go"
    printf 'module vigil/clients/fill\n\ngo 1.24\n' >"$dir/go.mod"
    go_in "$dir" get "k8s.io/client-go@$version" "k8s.io/api@$version" \
        "k8s.io/apimachinery@$version" "k8s.io/apiextensions-apiserver@$version" \
        "k8s.io/kube-aggregator@$version"
    go_in "$dir" build -ldflags='-s -w' -o "$cache/$fill" .
}
[ -x "$cache/$fill" ] || rm -f "$cache/fill.done"
get fill
seed=${VG_SEED:-$RANDOM$RANDOM}
echo "seed=$seed"
"$cache/$fill" "$seed" 20 >lines
"$compare" <lines
