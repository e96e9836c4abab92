#!/usr/bin/env bash
# get.sh DIRECTORY VERSION... - etcd of these versions, built through the Go module proxy and kept as
# DIRECTORY/etcd-VERSION between runs. The first time takes minutes. Without Go, or without Debian's
# own etcd beside them, it says so and ends with 77, which ctest counts as skipped; that it cannot be built where Go is is a failure.
set -euo pipefail

dir=$1
shift
mkdir -p "$dir"

# Where a version of etcd is built: a module that asks for nothing else.
build() {
    local version=$1 work=$dir/src-$1
    rm -rf "$work" && mkdir -p "$work"
    printf 'module vigil/tests/etcd\n\ngo 1.24\n\nrequire go.etcd.io/etcd/server/v3 v%s\n' "$version" >"$work/go.mod"
    (cd "$work" && CGO_ENABLED=0 GOFLAGS=-mod=mod go build -ldflags='-s -w' \
        -o "$work/etcd" go.etcd.io/etcd/server/v3)
    mv "$work/etcd" "$dir/etcd-$version"
    rm -rf "$work"
}

if [ ! -x /usr/bin/etcd ]; then
    echo "SKIPPED: no /usr/bin/etcd (Debian's package etcd-server); tests that need it are skipped, too"
    exit 77
fi
exec 9>"$dir/lock"
flock 9
for version in "$@"; do
    if [ -x "$dir/etcd-$version" ]; then continue; fi
    if ! command -v go >/dev/null; then
        echo "SKIPPED: no go to build etcd $version with; tests that need it are skipped, too"
        exit 77
    fi
    echo "building etcd $version into $dir"
    build "$version"
done
