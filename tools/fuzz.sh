#!/usr/bin/env bash
# fuzz.sh [name...] - runs each fuzz target (or those named) for FUZZ_SECONDS, as many at once as
# there are cores. Starts from tests/corpus/<name> and from what earlier runs found, kept in
# build/fuzz-corpus/<name>; an input that breaks something lands in build/fuzz-artifacts.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

export FUZZ_SECONDS=${FUZZ_SECONDS:-60}
# 4 KiB: room for nesting, escapes and several records, short enough for thousands of runs a second.
export FUZZ_MAX_LEN=${FUZZ_MAX_LEN:-4096}
artifacts=build/fuzz-artifacts

# fuzz_one <name>: one line about the run; status 1 when it found something.
fuzz_one() {
    local name=$1 binary grown=build/fuzz-corpus/$1 seeds=tests/corpus/$1 log=$artifacts/$1.log
    local options=(-max_total_time="$FUZZ_SECONDS" -max_len="$FUZZ_MAX_LEN" -timeout=10
        -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$artifacts/$name-")
    binary=$(find build/fuzz -type f -name "$name" -perm -u+x -print -quit)
    mkdir -p "$grown"
    if [ -f "$seeds.dict" ]; then options+=(-dict="$seeds.dict"); fi
    if [ ! -d "$seeds" ]; then seeds=$grown; fi
    if steady "$binary" "${options[@]}" "$grown" "$seeds" >"$log" 2>&1 </dev/null; then
        printf '%-24s ok     %s runs, %s edges, %s inputs\n' "$name" "$(final_stat "$log")" \
            "$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)" "$(inputs_in "$grown" "$seeds")"
        return 0
    fi
    printf '%-24s FOUND  %s\n' "$name" \
        "$(grep -am 1 -E 'ERROR: |runtime error|Assertion|libFuzzer: ' "$log" || tail -n 1 "$log")"
    explain "$name" "$binary" "$log"
    return 1
}

final_stat() { sed -n 's/^stat::number_of_executed_units: *//p' "$1"; }
inputs_in() { find "$@" -type f | sort -u | wc -l; }

# What to do about a finding.
explain() {
    local input
    input=$(sed -n 's/.*Test unit written to //p' "$3" | tail -n 1)
    echo "    report: $3"
    if [ -n "$input" ]; then
        echo "    replay: $2 '$input'"
        echo "    keep:   cp '$input' tests/corpus/$1/   (make test replays it from then on)"
    fi
}

names=("$@")
if [ $# -eq 0 ]; then
    mapfile -t names < <(find src -name 'fuzz_*.c' -printf '%f\n' | sed 's/\.c$//' | sort)
fi
if [ ${#names[@]} -eq 0 ]; then
    complain "fuzz: there is no fuzz target (src/**/fuzz_*.c)"
    exit 1
fi
configure fuzz
compile build/fuzz "${names[@]}"
mkdir -p $artifacts
say "${#names[@]} fuzzers, $FUZZ_SECONDS s each, $(jobs_at_once) at once"
export artifacts
export -f steady fuzz_one final_stat inputs_in explain
if ! printf '%s\n' "${names[@]}" |
    xargs -n 1 -P "$(jobs_at_once)" bash -c 'out=$(fuzz_one "$1"); s=$?; echo "$out"; exit $s' fuzz; then
    complain "fuzz: there are findings, see FOUND above"
    exit 1
fi
