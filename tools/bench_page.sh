#!/usr/bin/env bash
# bench_page.sh [--check [VIGIL]] - makes docs/benchmarks.md, its charts and the README's table of figures from
# docs/benchmarks/run.json, so that each figure shown is one of that file. --check: fails if they are not what it gives.
set -euo pipefail
. "$(dirname "$0")/lib.sh"

run=docs/benchmarks/run.json
to=.
vigil=${VIGIL:-build/vigil}
if [ "${1:-}" = --check ]; then
    vigil=${2:-$vigil}
    to=$(mktemp -d)
    trap 'rm -rf "$to"' EXIT
    mkdir -p "$to/docs/benchmarks"
fi

# The README with the table between its marks replaced by a file's lines.
readme_with() {
    awk -v table="$1" '
        /^<!-- bench ends -->$/ { skips = 0 }
        !skips { print }
        /^<!-- bench -->$/ { skips = 1; while ((getline line < table) > 0) print line }' README.md
}

"$vigil" bench report --charts "$to/docs/benchmarks" --markdown "$to/docs/benchmarks.md" \
    --notes docs/benchmarks/notes.md --summary "$to/docs/summary.md" "$run"
readme_with "$to/docs/summary.md" >"$to/README.new"
rm "$to/docs/summary.md"
if [ "$to" = . ]; then
    mv README.new README.md
    exit 0
fi
bad=0
same() {
    if ! cmp -s "$1" "$2"; then
        complain "bench_page: $2 is not what $run gives; run tools/bench_page.sh"
        bad=1
    fi
}
same "$to/README.new" README.md
same "$to/docs/benchmarks.md" docs/benchmarks.md
for chart in "$to"/docs/benchmarks/*.svg; do
    same "$chart" "docs/benchmarks/${chart##*/}"
done
for chart in docs/benchmarks/*.svg; do
    if [ ! -e "$to/$chart" ]; then
        complain "bench_page: $run does not give $chart"
        bad=1
    fi
done
exit $bad
