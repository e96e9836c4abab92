#!/usr/bin/env bash
# bench_parts.sh - runs what `tools/build.sh --bench` built; each table also goes to build/bench/<name>.txt.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

benches=(json object storage tree cacher net server client_parts client)

ran=0 failed=0
mkdir -p build/bench
for name in "${benches[@]}"; do
    binary=build/release/bench/$name/bench_$name
    if [ ! -x "$binary" ]; then
        complain "bench: there is no $binary"
        continue
    fi
    say "== bench/$name"
    ran=$((ran + 1))
    if ! "$binary" </dev/null | tee "build/bench/$name.txt"; then
        complain "bench: bench_$name failed or missed its bar, see above"
        failed=$((failed + 1))
    fi
done
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
