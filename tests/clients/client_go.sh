#!/usr/bin/env bash
# client_go.sh <vigild> <cache> - client-go as controllers use it: informers that stream their initial
# list (WatchList), metadata informers, typed writes, leader election; through a kill -9 of the server
# without a second list.
. "$(dirname "$0")/lib.sh"
need_go
version=v0.36.4
# The name changes with the program, so that an old build is never used.
controller=controller_$version-$(cksum <"$here/controller.go" | cut -d' ' -f1)
get_controller() {
    local dir=$cache/controller
    rm -rf "$dir"
    mkdir -p "$dir"
    cp "$here/controller.go" "$dir/main.go"
    printf 'module vigil/clients/controller\n\ngo 1.24\n' >"$dir/go.mod"
    go_in "$dir" get "k8s.io/client-go@$version" "k8s.io/api@$version" \
        "k8s.io/apimachinery@$version"
    go_in "$dir" build -ldflags='-s -w' -o "$cache/$controller" .
}
[ -x "$cache/$controller" ] || rm -f "$cache/controller.done"
get controller
start_server
talk_to "$cache/$controller" "$KUBECONFIG"

sees 'synced 0'
say 'create a 1' 'add a 1'
sees 'meta-add a 1'
say 'update a 2' 'update a 2'
sees 'meta-update a 2'
say 'create b 1' 'add b 1'
say 'delete b' 'delete b 1'
sees 'meta-delete b 1'
say lead leads
say count 'lists 0 streamed 1'

kill_server
start_server
say 'update a 3' 'update a 3'
sees 'meta-update a 3'
say 'create c 1' 'add c 1'
sees 'meta-add c 1'
# What was there before is not told again, and nothing was listed: the watch went on.
say count 'lists 0 streamed 1'
[ "$(grep -c '^add a' seen)" -eq 1 ] || fail "an object is told twice"
stop_server
echo "client-go's informers follow, also through a kill"
