#!/usr/bin/env bash
# tour.sh <vigild> <cache> <text> <title> [<examples>] - the section of a text that begins with that
# title, executed: every line after "$ " is run in one shell, and what the text shows below must come,
# "..." standing for anything, and any pod, node and time for those that are shown. Only a free port is
# added to the server's command.
tour=$(realpath "$3")
title=$4
examples=${5:+$(realpath "$5")}
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
kubectl_of recent
unset KUBECONFIG
mkdir bin build
ln -s "$kubectl" bin/kubectl
root=$(realpath "$here/../..")
ln -s "$root/docs" docs
ln -s "$root/examples" examples
if [ -n "$examples" ]; then
    mkdir build/release
    ln -s "$examples" build/release/examples
fi
export PATH=$work/bin:$PATH
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
printf '#!/bin/sh\nexec %q --secure-port %s "$@"\n' "$vigild" "$port" >build/vigild
chmod +x build/vigild

# Does the file out begin with these lines, "..." being any text?
shown() {
    local text
    text=$(sed -e 's/[][\\.*^$+?(){}|]/\\&/g' -e 's/\\\.\\\.\\\./.*/g' -e "s/6443/$port/" \
        -e 's/web-[a-z0-9]\{5\}/web-[a-z0-9]{5}/g' -e 's/node-[0-9]/node-[0-9]/g' \
        -e 's/^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] /[0-9:]{8} /' <<<"$1")
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
    [ -z "$2" ] || until_true 120 shown "$2" || fail "the tour shows: $2"
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
done < <(sed -n "/^## $title/,/^## /s/^    //p" "$tour")
step "$command" "$expected"
[ "$steps" -ge 8 ] || fail "there is no tour"
echo "the tour of $steps commands goes as it is written"
