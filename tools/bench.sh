#!/usr/bin/env bash
# bench.sh [--quick] - builds, gets the peers, measures vigild beside them for what is left of BENCH_SECONDS, and makes
# docs/benchmarks.md, its charts and the README's table from what was found. --quick: one small round into build/bench,
# and nothing in docs/ changes. VG_PEERS names a folder with etcd and kube-apiserver that are built already.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

# In all, so that 20 minutes are enough also where everything has to be built first.
: "${BENCH_SECONDS:=1150}"

out=docs/benchmarks/run.json
args=()
if [ "${1:-}" = --quick ]; then
    out=build/bench/run.json
    args=(--quick)
fi
tools/build.sh --bench vigild vigil_cli vigil-bench bench_floors
if [ -z "${VG_PEERS:-}" ]; then
    VG_PEERS=build/peers
    bench/peers/get.sh "$VG_PEERS"
fi
mkdir -p build/bench
python3 -B bench/peers/peers.py --peers "$VG_PEERS" --seconds $((BENCH_SECONDS - SECONDS)) --out "$out" --verbose "${args[@]}"
build/vigil bench report --html build/bench/index.html "$out"
if [ ${#args[@]} -gt 0 ]; then
    build/vigil bench report --summary - "$out"
else
    tools/bench_page.sh
    sed -n '/^<!-- bench -->/,/^<!-- bench ends -->/p' README.md
fi
say "bench: the whole of it is build/bench/index.html; took $SECONDS s"
