#!/usr/bin/env bash
# test.sh [more|long] - the tests, in three rounds (CONTRIBUTING.md says what runs where):
#   (none)  make test: ASan+UBSan, and TSan on the threaded core
#   more    make test-more: what make test leaves out, TSan on the whole server
#   long    make test-long: both, with VG_LONG=1, and tests with the label `long`
# A test that fails has failed. Only tests with other people's programs (labels `clients` and
# `cluster`), where other programs and the clock decide too, are run a second time, alone and with their seed;
# one that passes then is named at the end, and the log of its first run is kept.
# The last line is `N passed, N failed` (`, N skipped` when some were); the exit status agrees.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

trap 'exit 130' INT
round=${1:-test}
timeout=600 # a machine that is ten times as slow needs minutes for what takes one
second_chances=3 # more failures than this in a preset are no accident
kept=build/test-logs # of tests that failed, by preset and name
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

# Half of a test's time is waiting, for servers to start and timeouts to pass: one more than there are processors.
tests_at_once() { echo $(($(jobs_at_once) + 1)); }

# One line per finished test; what ctest says beyond that is in its log.
run_ctest() {
    steady ctest --preset "$@" --output-junit junit.xml --timeout "$timeout" --no-tests=error \
        --parallel "$(tests_at_once)" </dev/null 2>&1 |
        grep -a --line-buffered -E '^ *[0-9]+/[0-9]+ Test +#' || true
}

# The seed that a failed test printed, or nothing.
seed_of() {
    awk '!seed && match($0, /seed=[0-9]+/) { seed = substr($0, RSTART + 5, RLENGTH - 5) }
         END { print seed }' "$1"
}

# What a person needs of a failed test: the end of its output and how to run it again.
report_failure() {
    local preset=$1 name=$2 log=$3 seed
    seed=$(seed_of "$log")
    complain "---- FAILED $preset: $name; the end of its output, all of it is in $log:"
    tail -n 60 "$log" >&2
    complain "---- again: ${seed:+VG_SEED=$seed }ctest --preset $preset -R '^$name\$'"
}

# Whether other programs and the clock decide, and no sanitizer spoke.
may_run_again() {
    local preset=$1 name=$2 log=$3
    if [ "$(count -E 'Sanitizer|runtime error:' <"$log")" -gt 0 ]; then return 1; fi
    [ "$(ctest --preset "$preset" -N -R "^$name\$" -L 'clients|cluster' 2>/dev/null |
        count -E "^ *Test +#[0-9]+: ")" -eq 1 ]
}

# Alone, and with the same seed if it had one.
passes_alone() {
    local preset=$1 name=$2 log=$3 seed
    seed=$(seed_of "$log")
    [ -z "$seed" ] || local -x VG_SEED=$seed
    steady ctest --preset "$preset" --timeout "$timeout" -R "^$name\$" --quiet </dev/null >/dev/null 2>&1
}

# Shows every failed test; counts those that stay failed in the caller's failed_here.
judge_failures() {
    local preset=$1 logs=$2 log name names
    mapfile -t names < <(failed_names "$logs/LastTestsFailed.log")
    cp "$logs/LastTest.log" "$logs/First.log"
    for name in "${names[@]}"; do
        log=$kept/$preset-$name.log
        output_of "$logs/First.log" "$name" >"$log"
        report_failure "$preset" "$name" "$log"
        if [ "${#names[@]}" -le "$second_chances" ] && may_run_again "$preset" "$name" "$log" &&
            passes_alone "$preset" "$name" "$log"; then
            complain "---- $name passed when it was run again, alone"
            unsteady+=("$preset:$name")
        else
            failed_here=$((failed_here + 1))
        fi
    done
}

# What the tests chosen by these ctest arguments execute, one ninja target per line.
targets_of() { python3 tools/test_targets.py "$@"; }

# build_for PRESET [arguments for test_targets.py]: everything, or what those tests need.
build_for() {
    local preset=$1 targets=()
    shift
    configure "$preset" || return 1
    if [ $# -gt 0 ]; then
        mapfile -t targets < <(targets_of "build/$preset" "$@")
        [ "${#targets[@]}" -gt 0 ] || { complain "no test of $preset needs anything" && return 1; }
    fi
    compile "build/$preset" "${targets[@]}"
}

# run_tests PRESET ctest arguments...: of a preset that has been built.
run_tests() {
    local preset=$1 dir=build/$1 total failed_here=0 idle=0
    local logs=$dir/Testing/Temporary
    say "== $preset: test"
    rm -f "$logs"/LastTest*.log "$dir/junit.xml"
    run_ctest "$@"
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

# run_preset PRESET [--only LABEL] [--without LABELS]: builds and runs the tests that these choose. With
# TSan in the short round only what they need is built: that is a third of the whole.
run_preset() {
    local preset=$1 chosen=() build=()
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --only) chosen+=(-L "$2") ;;
        --without) chosen+=(-LE "$2") ;;
        esac
        shift 2
    done
    [ "$preset-$round" != tsan-test ] || build=(threaded 'more|long')
    say "== $preset: build"
    if ! build_for "$preset" "${build[@]}"; then
        fail_preset "$preset" "it does not build, see above"
    else
        run_tests "$preset" "${chosen[@]}"
    fi
}

rm -rf "$kept"
mkdir -p "$kept"
case $round in
test)
    run_preset asan --without 'more|long'
    run_preset tsan --without 'more|long'
    ;;
more)
    run_preset asan --only more --without long
    run_preset tsan --only more --without long
    ;;
long)
    export VG_LONG=1
    timeout=3600
    run_preset asan
    run_preset tsan
    ;;
*)
    complain "test.sh: no round '$round'; rounds are more and long"
    exit 2
    ;;
esac
[ ${#unsteady[@]} -eq 0 ] ||
    say "needed a second run, alone: ${unsteady[*]}; the logs of the first are in $kept"
say "$cases cmocka cases ran in $SECONDS s"
result="$passed passed, $failed failed"
if [ "$skipped" -gt 0 ]; then result+=", $skipped skipped"; fi
say "$result" | tee build/test-result
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
