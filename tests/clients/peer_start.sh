# peer_start.sh - a kube-apiserver with etcd, of those that peers_get.sh built, in the test's directory.
# Sourced after peers_get.sh.
# shellcheck shell=bash

# etcd, certificates, a token, a kubeconfig, and `control`, which starts and kills the API server.
start_peers() {
    local client peer api
    read -r client peer api < <(python3 -c 'import socket
s = [socket.socket() for _ in range(3)]
for x in s: x.bind(("127.0.0.1", 0))
print(*(x.getsockname()[1] for x in s))')
    ok openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout tls.key \
        -out tls.crt -days 2 -subj /CN=kube-apiserver -addext subjectAltName=IP:127.0.0.1
    ok openssl genrsa -out sa.key 2048
    echo 'sesame,admin,1,"system:masters"' >tokens.csv
    "$peers/etcd" --data-dir etcd --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$client" \
        --advertise-client-urls "http://127.0.0.1:$client" --listen-peer-urls "http://127.0.0.1:$peer" \
        --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
        --initial-cluster "default=http://127.0.0.1:$peer" >etcd.log 2>&1 </dev/null &
    background+=($!)
    cat >kubeconfig <<END
current-context: peer
clusters: [{name: peer, cluster: {server: "https://127.0.0.1:$api", certificate-authority: "$work/tls.crt"}}]
users: [{name: admin, user: {token: sesame}}]
contexts: [{name: peer, context: {cluster: peer, user: admin}}]
END
    cat >control <<END
#!/bin/sh
cd "$work" || exit 1
runs() { grep -qs '^State:[[:space:]]*[^Z]' "/proc/\$(cat pid)/status"; }
if [ "\$1" = kill ]; then
    kill -KILL "\$(cat pid)" || exit 1
    while runs; do sleep 0.02; done
    exit 0
fi
if [ -e pid ] && runs; then exit 0; fi
"$peers/kube-apiserver" --etcd-servers http://127.0.0.1:$client --bind-address 127.0.0.1 \\
    --secure-port $api --tls-cert-file tls.crt --tls-private-key-file tls.key \\
    --token-auth-file tokens.csv --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 \\
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file sa.key \\
    --service-account-signing-key-file sa.key --disable-admission-plugins ServiceAccount \\
    --etcd-compaction-interval 5s >>server.log 2>&1 </dev/null &
echo \$! >pid
for i in \$(seq 1200); do
    curl -sf --cacert tls.crt -H 'Authorization: Bearer sesame' -o /dev/null \\
        "https://127.0.0.1:$api/api/v1/namespaces/default" &&
        curl -sf --cacert tls.crt -H 'Authorization: Bearer sesame' -o /dev/null \\
        "https://127.0.0.1:$api/readyz" && exit 0
    sleep 0.1
done
exit 1
END
    chmod +x control
    trap 'kill -KILL "$(cat "$work/pid")" 2>/dev/null || true; clean_up' EXIT
    ./control start || fail "kube-apiserver does not get ready"
}
