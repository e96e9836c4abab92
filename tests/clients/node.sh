#!/usr/bin/env bash
# node.sh <vigild> <cache> - @kubernetes/client-node: objects of every kind there and back, and its
# informer, through a kill -9 of the server.
. "$(dirname "$0")/lib.sh"
command -v node npm >/dev/null || skip "no node and npm"
node -e 'process.exit(parseInt(process.versions.node) >= 18 ? 0 : 1)' || skip "node is older than 18"
version=1.4.0
get_node() {
    rm -rf "$cache/node"
    mkdir -p "$cache/node"
    cd "$cache/node"
    printf '{"private":true}\n' >package.json
    HOME=$home npm install --no-audit --no-fund "@kubernetes/client-node@$version"
}
get node
# Modules are looked up from where the file is.
cp "$here/informer.mjs" "$here/roundtrip.mjs" "$cache/node/"
start_server
python3 "$here/examples.py" >examples
ok node "$cache/node/roundtrip.mjs" "$KUBECONFIG" examples
cat out

talk_to node "$cache/node/informer.mjs" "$KUBECONFIG"

say 'create a 1' 'add a 1'
say 'patch a 2' 'update a 2'
say 'create b 1' 'add b 1'
say 'delete b' 'delete b'
kill_server
start_server
say 'patch a 3' 'update a 3'
say 'create c 1' 'add c 1'
say 'lists' 'lists 1'
stop_server
echo "the informer of client-node follows, also through a kill"
