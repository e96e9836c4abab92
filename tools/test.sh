#!/usr/bin/env bash
# test.sh - every test under ASan+UBSan, the threaded ones under TSan too, fuzz corpora included.
# The last line is `N passed, N failed` (`, N skipped` when some were); the exit status agrees.
# A test that fails is shown, and run once more, alone and with its seed: a busy machine is told from
# a bug. What passes then is counted as passed and named as unsteady; what a sanitizer found stays.
# VG_LONG=1 runs the long rounds of tests that have them, and gives each an hour.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

trap 'exit 130' INT
timeout=600 # a machine that is ten times as slow needs minutes for what takes one
if [ "${VG_LONG:-0}" = 1 ]; then timeout=3600; fi
second_chances=3 # more failures than this in a preset are no accident
passed=0 failed=0 skipped=0 cases=0 unsteady=()

# The output of one failed test, from ctest's log.
output_of() {
    awk -v name="$2" '
        / Testing: / { mine = ($3 == name) }
        mine && /^<end of output>/ { exit }
        mine && shown { print }
        mine && /^Output:/ { shown = 1 }' "$1"
}

# Tests that ctest calls failed, one name per line.
failed_names() {
    if [ -f "$1" ]; then sed 's/^[0-9]*://' "$1"; fi
}

# Tests that said they cannot run here; one whose binary is missing is failed instead.
skipped_names() {
    sed -n 's/.*<testcase name="\([^"]*\)".*status="\(notrun\|disabled\)".*/\1/p' "$1" |
        grep -avxFf <(failed_names "$2") || true
}

count() { grep -ac "$@" || true; }

# A preset that cannot be built or has no tests is one failure: silence must not look like success.
fail_preset() {
    complain "FAILED $1: $2"
    failed=$((failed + 1))
}

# One line per finished test; what ctest says beyond that is in its log.
run_ctest() {
    steady ctest --preset "$1" --output-junit junit.xml --timeout "$timeout" --no-tests=error \
        --parallel "$(jobs_at_once)" </dev/null 2>&1 |
        grep -a --line-buffered -E '^ *[0-9]+/[0-9]+ Test +#' || true
}

# The seed that a failed test printed, or nothing.
seed_of() {
    output_of "$1" "$2" |
        awk '!seed && match($0, /seed=[0-9]+/) { seed = substr($0, RSTART + 5, RLENGTH - 5) }
             END { print seed }'
}

# What a person needs of a failed test: the end of its output and how to run it again.
report_failure() {
    local preset=$1 name=$2 log=$3 seed
    seed=$(seed_of "$log" "$name")
    complain "---- FAILED $preset: $name; the end of its output:"
    output_of "$log" "$name" | tail -n 60 >&2
    complain "---- again: ${seed:+VG_SEED=$seed }ctest --preset $preset -R '^$name\$'"
}

sanitizer_spoke() { [ "$(output_of "$1" "$2" | count -E 'Sanitizer|runtime error:')" -gt 0 ]; }

# Alone, and with the same seed if it had one.
passes_alone() {
    local preset=$1 name=$2 log=$3 seed
    seed=$(seed_of "$log" "$name")
    [ -z "$seed" ] || local -x VG_SEED=$seed
    steady ctest --preset "$preset" --timeout "$timeout" -R "^$name\$" --quiet </dev/null >/dev/null 2>&1
}

# Shows every failed test; counts those that stay failed in the caller's failed_here.
judge_failures() {
    local preset=$1 logs=$2 log=$2/First.log name names
    mapfile -t names < <(failed_names "$logs/LastTestsFailed.log")
    cp "$logs/LastTest.log" "$log"
    for name in "${names[@]}"; do
        report_failure "$preset" "$name" "$log"
        if [ "${#names[@]}" -le "$second_chances" ] && ! sanitizer_spoke "$log" "$name" &&
            passes_alone "$preset" "$name" "$log"; then
            complain "---- $name passed when it was run again, alone"
            unsteady+=("$preset:$name")
        else
            failed_here=$((failed_here + 1))
        fi
    done
}

run_preset() {
    local preset=$1 dir=build/$1 total failed_here=0 idle=0
    local logs=$dir/Testing/Temporary
    say "== $preset: build"
    if ! configure "$preset" || ! compile "$dir"; then
        fail_preset "$preset" "it does not build, see above"
        return
    fi
    say "== $preset: test"
    rm -f "$logs"/LastTest*.log "$dir/junit.xml"
    run_ctest "$preset"
    total=$(count '<testcase ' "$dir/junit.xml" 2>/dev/null)
    if [ "${total:-0}" -eq 0 ]; then
        fail_preset "$preset" "no test ran"
        return
    fi
    cases=$((cases + $(sed -n 's/^\[=*\] \([0-9]*\) test(s) run\..*/\1/p' "$logs/LastTest.log" |
        awk '{ n += $1 } END { print n + 0 }')))
    idle=$(skipped_names "$dir/junit.xml" "$logs/LastTestsFailed.log" | wc -l)
    judge_failures "$preset" "$logs"
    passed=$((passed + total - failed_here - idle))
    failed=$((failed + failed_here))
    skipped=$((skipped + idle))
}

mkdir -p build
run_preset asan
run_preset tsan
[ ${#unsteady[@]} -eq 0 ] || say "unsteady, passed when run alone: ${unsteady[*]}"
say "$cases cmocka cases ran in $SECONDS s"
result="$passed passed, $failed failed"
if [ "$skipped" -gt 0 ]; then result+=", $skipped skipped"; fi
say "$result" | tee build/test-result
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
