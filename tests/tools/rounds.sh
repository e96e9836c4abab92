#!/usr/bin/env bash
# rounds.sh SOURCE - what tools/test.sh and .ci/run make of a small project: which tests each round runs, that a
# failure stays one, and that only tests with other people's programs get a second run.
set -euo pipefail
source=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/vigil-rounds.XXXXXX")
trap 'rm -rf "$work"' EXIT
unset VG_LONG VG_SEED
mkdir "$work/tools" "$work/.ci"
cp "$source"/tools/{lib.sh,test.sh,test_targets.py} "$work/tools"
cp "$source/.ci/run" "$work/.ci"
cd "$work"

cat >CMakePresets.json <<'END'
{ "version": 6, "configurePresets": [
    { "name": "asan", "generator": "Ninja", "binaryDir": "${sourceDir}/build/asan" },
    { "name": "tsan", "generator": "Ninja", "binaryDir": "${sourceDir}/build/tsan" } ],
  "testPresets": [
    { "name": "asan", "configurePreset": "asan" },
    { "name": "tsan", "configurePreset": "tsan", "filter": { "include": { "label": "threaded" } } } ] }
END
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES NONE)
enable_testing()
file(STRINGS list lines)
foreach(line ${lines})
    string(REGEX MATCH "^([a-z_]+) ([a-z,]*) *(.*)$" all "${line}")
    string(REPLACE "," ";" labels "${CMAKE_MATCH_2}")
    set(name ${CMAKE_MATCH_1})
    # A program of the build, as the tests are: made when it is asked for.
    set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
    file(WRITE ${program}.in "#!/bin/sh\ncd ${CMAKE_SOURCE_DIR}\n${CMAKE_MATCH_3}\n")
    add_custom_command(OUTPUT ${program} COMMAND cp ${program}.in ${program} COMMAND chmod +x ${program})
    add_custom_target(make_${name} ALL DEPENDS ${program})
    add_test(NAME ${name} COMMAND ${program})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77)
endforeach()
END
printf 'test:\n\t@tools/test.sh\ntest-more:\n\t@tools/test.sh more\n' >Makefile

fail() {
    echo "FAILED: $*" >&2
    sed 's/^/  | /' out >&2
    exit 1
}
# run STATUS LAST-LINE COMMAND...: with the tests of stdin, each `name labels script`; labels may be "none".
run() {
    local want=$1 line=$2 status=0
    shift 2
    rm -rf build once-*
    cat >list
    "$@" >out 2>&1 </dev/null || status=$?
    [ "$status" -eq "$want" ] || fail "$*: status $status, expected $want"
    [ "$(tail -n 1 out)" = "$line" ] || fail "$*: the last line is not '$line'"
}
has() { grep -qF -- "$1" out || fail "the output lacks: $1"; }
lacks() { if grep -qF -- "$1" out; then fail "the output has: $1"; fi; }

# Each round runs its tests: `more` and `long` elsewhere, `threaded` twice.
tests='plain none true
core threaded true
server threaded,more true
slow more true
longest long [ "$VG_LONG" = 1 ]'
run 0 "3 passed, 0 failed" tools/test.sh <<<"$tests"
[ ! -e build/tsan/server ] || fail "TSan of the short round builds what it does not run"
run 0 "3 passed, 0 failed" tools/test.sh more <<<"$tests"
run 0 "7 passed, 0 failed" tools/test.sh long <<<"$tests"
run 0 "6 passed, 0 failed" .ci/run <<<"$tests"

# A failure is a failure, also when the test would pass alone.
once='[ -e "once-$(basename "$0")" ] || { touch "once-$(basename "$0")"; echo seed=7; exit 1; }'
core='core threaded true'
run 1 "2 passed, 1 failed" tools/test.sh <<<"$core
own none $once"
has "FAILED asan: own"
has "VG_SEED=7 ctest --preset asan -R '^own\$'"
lacks "second run"

# Other people's programs get a second run, with the seed; it is named and its log is kept.
run 0 "3 passed, 0 failed" tools/test.sh <<<"$core
foreign clients $once; [ \"\$VG_SEED\" = 7 ]"
has "needed a second run, alone: asan:foreign"
grep -q '^seed=7$' build/test-logs/asan-foreign.log || fail "the log of the first run is not kept"
run 1 "2 passed, 1 failed" tools/test.sh <<<"$core
foreign cluster false"
# Not when a sanitizer has spoken.
run 1 "2 passed, 1 failed" tools/test.sh <<<"$core
foreign clients ${once/seed=7/ThreadSanitizer: data race}"

# What is skipped is counted as such; what cannot be built, or has no tests, has failed.
run 0 "2 passed, 0 failed, 1 skipped" tools/test.sh <<<"$core
absent none exit 77"
run 1 "0 passed, 2 failed" tools/test.sh <<<""
run 1 "3 passed, 2 failed, 1 skipped" .ci/run <<<"plain none true
worse more false
absent none exit 77
core threaded,more true"
echo "the rounds run what they should"
