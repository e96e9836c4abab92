# lib.sh - what the tests with real clients share. Source it with the server's binary as $1 and the
# directory where clients are kept between runs as $2. The test goes to an empty directory of its
# own, removed at the end together with every process it started. A test is a list of steps; the
# first that does not hold ends it and shows the command, its status and what it printed.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C.UTF-8
unset KUBECONFIG

vigild=$(realpath "$1")
mkdir -p "$2"
cache=$(realpath "$2")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d "${TMPDIR:-/tmp}/vigil-clients.XXXXXX")
home=$HOME
export HOME=$work KUBECONFIG=$work/data/admin.kubeconfig
background=()
server=

# Background processes may be gone already: that is fine.
clean_up() {
    local pid
    for pid in "${background[@]}" $server; do
        { kill -KILL "$pid" && wait "$pid"; } 2>/dev/null || true
    done
    rm -rf "$work"
}
trap clean_up EXIT
cd "$work"
: >out >err >server.log

status=0
last=
# run COMMAND...: what it says is in the files out and err, how it ended in $status.
run() {
    last="$*"
    status=0
    timeout 120 "$@" >out 2>err </dev/null || status=$?
}
fail() {
    {
        echo "FAILED: $*"
        echo "  after: $last (status $status)"
        head -n 40 out | cut -c 1-400 | sed 's/^/  out: /'
        head -n 20 err | cut -c 1-400 | sed 's/^/  err: /'
        tail -n 20 server.log | cut -c 1-400 | sed 's/^/  server: /'
    } >&2
    exit 1
}
# ok COMMAND...: it succeeds. refused TEXT COMMAND...: it does not, and says that.
ok() {
    run "$@"
    [ "$status" -eq 0 ] || fail "status 0 expected"
}
refused() {
    local text=$1
    shift
    run "$@"
    [ "$status" -ne 0 ] || fail "a refusal expected"
    cat out err | grep -qF -- "$text" || fail "it does not say: $text"
}
out_is() { [ "$(cat out)" = "$1" ] || fail "stdout is not: $1"; }
out_has() { grep -qF -- "$1" out || fail "stdout does not have: $1"; }
out_lacks() { if grep -qF -- "$1" out; then fail "stdout has: $1"; fi; }

# Cannot run here: said aloud, and counted as skipped.
skip() {
    echo "SKIPPED: $*"
    exit 77
}

# until_true SECONDS COMMAND...: wait for something that another process does.
until_true() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$deadline" ] || return 1
        sleep 0.05
    done
}

# ---- the server ----

port=0
# start_server FLAGS...: with the data of this test; after a kill on the same port again.
start_server() {
    rm -f ready # what an earlier start said
    "$vigild" --data-dir data --secure-port "$port" --controllers= "$@" >ready 2>>server.log </dev/null &
    server=$!
    last="vigild --data-dir data --secure-port $port --controllers= $*"
    until_true 120 grep -q '^vigild ready on ' ready || fail "the server does not get ready"
    port=$(sed -n 's|^vigild ready on https://[^ ]*:\([0-9]*\).*|\1|p' ready)
    url=https://127.0.0.1:$port
}
# The server as the power cut leaves it.
kill_server() {
    kill -KILL "$server"
    wait "$server" 2>/dev/null || true
    server=
}
stop_server() {
    kill -TERM "$server"
    status=0
    last="vigild, told to end"
    wait "$server" || status=$?
    server=
    [ "$status" -eq 0 ] || fail "the server does not end well"
    if grep -qE 'runtime error|Sanitizer' server.log; then fail "the server has a fault"; fi
}

# The admin's certificate as files, for clients that read no kubeconfig.
credentials() {
    local part
    for part in certificate-authority client-certificate client-key; do
        sed -n "s/^ *$part-data: *\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$KUBECONFIG" |
            head -n 1 | base64 -d >"$part.pem"
        [ -s "$part.pem" ] || fail "admin.kubeconfig has no $part"
    done
}

# ---- programs that take commands and print what they see ----

talk_to() {
    mkfifo commands
    "$@" <commands >seen 2>seen.err &
    background+=($!)
    exec 8>commands
}
# sees TEXT: it prints that line sooner or later, or has.
sees() {
    until_true 120 grep -qxF -- "$1" seen && return 0
    cp seen out
    cp seen.err err
    fail "it does not print: $1"
}
# say COMMAND TEXT: tell it to do something, and wait until it saw the result.
say() {
    last="told: $1"
    echo "$1" >&8
    sees "$2"
}

# ---- clients, kept in $cache between runs ----

# get NAME: calls get_NAME unless it was done; two tests may ask at once.
get() {
    exec 9>"$cache/$1.lock"
    flock 9
    if [ ! -e "$cache/$1.done" ]; then
        ("get_$1") >"$cache/$1.log" 2>&1 </dev/null || {
            tail -n 20 "$cache/$1.log" >&2
            echo "FAILED: $1 could not be installed; see above" >&2
            exit 1
        }
        touch "$cache/$1.done"
    fi
    exec 9>&-
}

need_go() {
    command -v go >/dev/null || skip "no go"
    # Before 1.21 go does not fetch the toolchain that a module asks for.
    go version | grep -qE 'go(1\.(2[1-9]|[3-9][0-9])|[2-9])' || skip "go is older than 1.21"
}
# go_in DIRECTORY ARGUMENTS...: go with the user's own caches.
go_in() {
    local dir=$1
    shift
    (cd "$dir" && HOME=$home GOFLAGS=-mod=mod go "$@")
}
