#!/usr/bin/env bash
# tour.sh <vigild> <cache> <docs/clients.md> - the tour in that text, executed: every line after "$ "
# of its section is run in one shell, and what the text shows below must come, "..." standing for
# anything. Only a free port is added to the server's command.
tour=$(realpath "$3")
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
kubectl_of recent
unset KUBECONFIG
mkdir bin build
ln -s "$kubectl" bin/kubectl
ln -s "$(dirname "$tour")" docs
export PATH=$work/bin:$PATH
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '#!/bin/sh\nexec %q --secure-port %s "$@"\n' "$vigild" "$port" >build/vigild
chmod +x build/vigild

# Does the file out begin with these lines, "..." being any text?
shown() {
    local text
    text=$(sed -e 's/[][\\.*^$+?(){}|]/\\&/g' -e 's/\\\.\\\.\\\./.*/g' -e "s/6443/$port/" <<<"$1")
    local n=0 line
    while IFS= read -r line; do
        n=$((n + 1))
        sed -n "${n}p" out | grep -qE -- "^$line\$" || return 1
    done <<<"$text"
}

steps=0
# step COMMAND LINES: what it prints may take a while to come when it runs in the background.
step() {
    [ -n "$1" ] || return 0
    last=$1
    echo "\$ $1"
    steps=$((steps + 1))
    # A file for each: background jobs write on into theirs.
    : >"out.$steps"
    ln -sf "out.$steps" out
    eval "$1" >"out.$steps" 2>err || status=$?
    # Jobs of the tour end with it.
    mapfile -t background < <(jobs -p)
    [ "$status" -eq 0 ] || fail "the tour stops here"
    [ -z "$2" ] || until_true 30 shown "$2" || fail "the tour shows: $2"
}

command='' expected=''
while IFS= read -r line; do
    case $line in
    '$ '*)
        step "$command" "$expected"
        command=${line#\$ } expected=
        ;;
    *) expected+=${expected:+$'\n'}$line ;;
    esac
done < <(sed -n '/^## A tour/,/^## /s/^    //p' "$tour")
step "$command" "$expected"
[ "$steps" -ge 8 ] || fail "there is no tour"
echo "the tour of $steps commands goes as it is written"
