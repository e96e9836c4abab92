# lib.sh - what the tests of vigil-store share. Source it with the binary as $1: it goes to an empty
# directory of its own, which is removed at the end. A test is a list of steps; the first that does
# not hold ends it and shows the command, its status and what it printed.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C
unset VIGIL_STORE_DIR

bin=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/vigil-store-test.XXXXXX")
background=()

# Background processes may be gone already: that is fine.
clean_up() {
    local pid
    for pid in "${background[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean_up EXIT
cd "$work"

status=0
last=
# run ARGS...: vigil-store with these; what it says is in the files out and err, how it ended in
# $status.
run() {
    last="vigil-store $*"
    status=0
    "$bin" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
}

fail() {
    {
        echo "FAILED: $*"
        echo "  after: $last (status $status)"
        sed 's/^/  out: /' "$work/out" | head -n 20
        sed 's/^/  err: /' "$work/err" | head -n 20
    } >&2
    exit 1
}

# ok ARGS...: it succeeds. refused STATUS TEXT ARGS...: it ends so and says that on stderr, and
# nothing on stdout.
ok() {
    run "$@"
    [ "$status" -eq 0 ] || fail "status 0 expected"
}
refused() {
    local want=$1 text=$2
    shift 2
    run "$@"
    [ "$status" -eq "$want" ] || fail "status $want expected"
    grep -qF -- "$text" "$work/err" || fail "stderr does not say: $text"
    [ ! -s "$work/out" ] || fail "nothing expected on stdout"
}

# What stdout is, exactly; or a line, or a piece of one, that it has.
out_is() { [ "$(cat "$work/out")" = "$1" ] || fail "stdout is not: $1"; }
out_has() { grep -qF -- "$1" "$work/out" || fail "stdout does not have: $1"; }
out_lines() { [ "$(wc -l <"$work/out")" -eq "$1" ] || fail "stdout does not have $1 lines"; }

# What a fact of stdout says; two blanks or more follow its name.
fact() { sed -n "s/^$1   *//p" "$work/out"; }
