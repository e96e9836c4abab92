#!/usr/bin/env bash
# session.sh <vigild> <cache> debian|recent - session.txt, typed into a shell by session.py: every command must show
# what a cluster without nodes shows. The same transcript is held against a stock kube-apiserver, with those
# controllers of kube-controller-manager that vigild has itself, in the long round (VG_LONG=1);
# VG_SESSION_STOCK=1 does only that. VG_SESSION_WRITE=1 corrects the transcript by what is shown.
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
. "$here/peers_get.sh"
. "$here/peer_start.sh"
kubectl_of "$3"
case $3 in recent) age=new ;; *) age=old ;; esac
mkdir bin
ln -s "$kubectl" bin/kubectl
export PATH=$work/bin:$PATH TZ=UTC

# session URL CA vigil|stock: the user admin, known by a token, in a directory of its own.
session() {
    local write=() place=$work/$3
    [ -z "${VG_SESSION_WRITE:-}" ] || write=(--write)
    mkdir "$place"
    cat >"$place/config" <<END
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "$1", certificate-authority: "$2"}}]
users: [{name: admin, user: {token: sesame}}]
contexts: [{name: here, context: {cluster: here, user: admin}}]
END
    (cd "$place" && HOME=$place KUBECONFIG=$place/config \
        python3 "$here/session.py" "$here/session.txt" "$age" "$3" "${write[@]}") || exit 1
}

stock_session() {
    local free
    peers_have peers kube-apiserver
    peers_have control_plane kube-controller-manager
    start_peers
    free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    "$peers/kube-controller-manager" --kubeconfig "$work/kubeconfig" --leader-elect=false --bind-address 127.0.0.1 \
        --secure-port "$free" --cert-dir "$work/certs" --root-ca-file tls.crt --service-account-private-key-file sa.key \
        --controllers namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller \
        --controllers garbage-collector-controller,resourcequota-controller >manager.log 2>&1 </dev/null &
    background+=($!)
    session "$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' kubeconfig)" "$work/tls.crt" stock
}

if [ -z "${VG_SESSION_STOCK:-}" ]; then
    echo 'sesame,admin,1,"system:masters"' >tokens
    start_server --controllers='*' --token-auth-file "$work/tokens"
    session "$url" "$work/data/pki/ca.crt" vigil
    # Whoever ended a watch in between, it was not the server, for a reason of its own.
    ok "$kubectl" get --raw /metrics
    if grep -E '^vigil_watch_ends_total\{reason="(stalled|pinned|continuity|internal|unreadable)"\} [1-9]' out >ends; then
        fail "the server ended watches: $(cat ends)"
    fi
    stop_server
fi
if [ "${VG_LONG:-0}" = 1 ] || [ -n "${VG_SESSION_STOCK:-}" ]; then stock_session; fi
