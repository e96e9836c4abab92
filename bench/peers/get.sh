#!/usr/bin/env bash
# get.sh DIRECTORY - the peers that are built: DIRECTORY/etcd and DIRECTORY/kube-apiserver, through the Go module
# proxy, kept between runs. The first time takes minutes. Without Go it says so and ends well: what is missing is not
# measured. A folder with both, built elsewhere, can be named by VG_PEERS instead.
set -euo pipefail

ETCD=3.6.8
KUBE=1.36.4

dir=$1
mkdir -p "$dir"
dir=$(realpath "$dir")

# A module of ours that asks for one program; go.mod's other lines come from standard input.
build() { # NAME PACKAGE LDFLAGS
    local work=$dir/src-$1
    rm -rf "$work" && mkdir -p "$work"
    { printf 'module vigil/bench/peers\n\ngo 1.24\n\n' && cat; } >"$work/go.mod"
    echo "peers: building $1 (once; it takes minutes)"
    if (cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=mod go build -ldflags="-s -w $3" -o "$work/program" "$2") \
        >"$dir/$1.log" 2>&1; then
        mv "$work/program" "$dir/$1"
    else
        echo "peers: $1 could not be built, so it is not measured: $(tail -n 1 "$dir/$1.log")" >&2
    fi
    rm -rf "$work"
}

# kube-apiserver's own modules are at v0.0.0 in its go.mod, by way of folders that a proxy does not serve: each is named
# at the version that was published with it.
kube_modules() {
    local file
    file=$(cd "$dir" && go mod download -json "k8s.io/kubernetes@v$KUBE" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    printf 'require k8s.io/kubernetes v%s\n\nreplace (\n' "$KUBE"
    sed -n 's|^[[:space:]]*\(k8s.io/[a-z0-9.-]*\) => ./staging/.*|\1|p' "$file" | sort -u |
        while read -r module; do printf '\t%s => %s v0.%s\n' "$module" "$module" "${KUBE#1.}"; done
    printf ')\n'
}

main() {
    exec 9>"$dir/lock"
    flock 9
    if [ -x "$dir/etcd" ] && [ -x "$dir/kube-apiserver" ]; then return 0; fi
    if ! command -v go >/dev/null; then
        echo "peers: there is no go to build etcd and kube-apiserver with: vigild is measured without them"
        return 0
    fi
    if [ ! -x "$dir/etcd" ]; then
        build etcd go.etcd.io/etcd/server/v3 "" <<<"require go.etcd.io/etcd/server/v3 v$ETCD"
    fi
    if [ ! -x "$dir/kube-apiserver" ]; then
        kube_modules | build kube-apiserver k8s.io/kubernetes/cmd/kube-apiserver \
            "-X k8s.io/component-base/version.gitVersion=v$KUBE"
    fi
}

main
