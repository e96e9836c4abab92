#!/usr/bin/env bash
# build.sh [--bench] [target...] - builds the release preset and links what it made into build/.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# What users run or link, as it comes to exist.
products=(vigild vigil vigil-store vigil-copy vigil-bench libvigil.a libvigil.so)

link_products() {
    local name made
    for name in "${products[@]}"; do
        made=$(cd build && find release -name "$name" ! -type d ! -path '*/rooms/*' -print -quit)
        if [ -n "$made" ]; then
            ln -sfn "$made" "build/$name"
        fi
    done
}

bench=OFF
if [ "${1:-}" = --bench ]; then
    bench=ON
    shift
fi
configure release -DVIGIL_BENCH=$bench
compile build/release "$@"
link_products
