#!/usr/bin/env bash
# cov.sh - runs the tests of the cov preset; prints coverage per file, and per line as HTML.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

dir=build/cov
raw=$dir/profraw
configure cov
compile $dir
rm -rf $raw
mkdir -p $raw
LLVM_PROFILE_FILE=$PWD/$raw/%p-%m.profraw ctest --preset cov --quiet --no-tests=error \
    --parallel "$(jobs_at_once)" </dev/null || complain "cov: some tests failed; see make test"
find $raw -name '*.profraw' >$dir/profiles.txt
llvm-profdata-14 merge -sparse -input-files=$dir/profiles.txt -o $dir/tests.profdata
rm -rf $raw

# llvm-cov wants every binary that ran, and the rooms' libraries for what no test links: the first as
# an argument, the others as -object. Headers seen through a room's door are counted in their room.
objects=()
while IFS= read -r -d '' binary; do
    objects+=(-object "$binary")
done < <(find $dir -type f \( -name 'libvg_*.a' -o -perm -u+x -name '*_test' \
    -o -perm -u+x -name 'fuzz_*' \) -print0 | sort -z)
common=("${objects[@]:1}" "-instr-profile=$dir/tests.profdata"
    -ignore-filename-regex='(_test\.c|/fuzz_[a-z0-9_]+\.c|/tests/|/rooms/)')
llvm-cov-14 show "${common[@]}" -format=html -output-dir=$dir/html
llvm-cov-14 report "${common[@]}"
say "line by line: $dir/html/index.html"
