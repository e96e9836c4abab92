#!/usr/bin/env bash
# control_plane.sh <vigild> <cache> <node_agent> - a stock kube-controller-manager and kube-scheduler drive
# vigild: kubectl creates a Deployment, they make its ReplicaSet and pods and bind these, examples/node_agent
# runs them. Then scaling, a new image and a delete, while both and vigild itself are killed and come
# back. In the long round only (VG_LONG=1): the first time the build takes a while.
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
. "$here/peers_get.sh"
agent=$3 # absolute
[ "${VG_LONG:-0}" = 1 ] ||
    skip "a real kube-controller-manager and kube-scheduler are met in the long round (VG_LONG=1)"
peers_have control_plane kube-controller-manager
kubectl_of recent
k() { ok "$kubectl" "$@"; }

# ---- programs that are started again whenever they end, as leaders do that lose their lease ----

kept=()
keep() {
    local name=$1
    shift
    kept+=("$name")
    (
        while [ ! -e stop ]; do
            "$@" >>"$name.log" 2>&1 </dev/null &
            echo $! >"$name.pid"
            wait $! 2>/dev/null || true
            sleep 1
        done
    ) &
    background+=($!)
}
kill_kept() { kill -KILL "$(cat "$1.pid")" 2>/dev/null || true; }
end_all() {
    local name
    touch "$work/stop"
    for name in "${kept[@]}"; do kill_kept "$work/$name"; done
    clean_up
}
trap end_all EXIT
show_and_fail() {
    local name
    for name in "${kept[@]}"; do
        grep -E '^[EFW]' "$name.log" | tail -n 15 | cut -c 1-300 | sed "s/^/  $name: /" >&2
    done
    fail "$@"
}

# component NAME FLAGS...: a stock program, which leads by a short lease so that a killed one is soon
# replaced, and serves its own health on a free port.
component() {
    local name=$1 free
    shift
    free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    keep "$name" "$peers/$name" --kubeconfig "$KUBECONFIG" --leader-elect=true \
        --leader-elect-lease-duration=6s --leader-elect-renew-deadline=4s --leader-elect-retry-period=1s \
        --bind-address 127.0.0.1 --secure-port "$free" --cert-dir "$work/$name-certs" "$@"
}

# ---- what must come to be ----

# pods_are N IMAGE: so many, on both nodes, each Running that image; no other is left.
pods_are() {
    local what='{.spec.nodeName} {.status.phase} {.spec.containers[0].image} {.metadata.deletionTimestamp}'
    "$kubectl" get pods -l app=web -o "jsonpath={range .items[*]}$what{'\n'}{end}" >pods &&
        [ "$(wc -l <pods)" -eq "$1" ] && [ "$(grep -cE "^node-[12] Running $2 \$" pods)" -eq "$1" ] &&
        [ "$(cut -d ' ' -f 1 pods | sort -u | wc -l)" -eq 2 ]
}
# status_is N: the Deployment counts what its pods report, and nobody has more to do.
status_is() {
    "$kubectl" rollout status deployment/web --timeout=10s && [ "$("$kubectl" get deployment web -o \
        'jsonpath={.status.replicas} {.status.readyReplicas} {.status.updatedReplicas}')" = "$1 $1 $1" ]
}
none_left() { [ -z "$("$kubectl" get deployments,replicasets,pods -o name)" ]; }
# settled N IMAGE WHEN
settled() {
    last="waiting for $1 pods"
    until_true 180 pods_are "$1" "$2" || { cp pods out && show_and_fail "not $1 pods, bound and running"; }
    until_true 60 status_is "$1" || show_and_fail "the Deployment's status does not count $1"
    echo "$1 pods are bound, run and are counted $3"
}

start_server
for node in node-1 node-2; do
    keep "$node" "$agent" --node "$node" --root "$work/$node" --poll-seconds 1
done
ok openssl genrsa -out sa.key 2048
component kube-controller-manager --service-account-private-key-file "$work/sa.key" \
    --root-ca-file "$work/data/pki/ca.crt"
component kube-scheduler

one=registry.example/web:1 two=registry.example/web:2
k create deployment web --image=$one --replicas=3
settled 3 $one "after create deployment"

kill_kept kube-controller-manager
k scale deployment web --replicas=8
settled 8 $one "though the controller manager was killed"
kill_kept kube-scheduler
k scale deployment web --replicas=12
settled 12 $one "though the scheduler was killed"
k scale deployment web --replicas=6
kill_server
sleep 8 # longer than a lease: both have to lead anew
start_server
settled 6 $one "though vigild was killed meanwhile"
k set image deployment/web web=$two
kill_server
kill_kept kube-controller-manager
kill_kept kube-scheduler
start_server
settled 6 $two "after a new image and a kill of all three"
k get replicasets -o 'jsonpath={range .items[*]}{.spec.replicas} {.status.replicas}{"\n"}{end}'
[ "$(sort out)" = "0 0"$'\n'"6 6" ] || fail "not one ReplicaSet of each image"

k delete deployment web
until_true 120 none_left || show_and_fail "the garbage collector leaves something"

# ---- the other kinds that make pods, in a namespace that is deleted with all of it ----

cat >many.yaml <<'YAML'
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: rs}
spec:
  replicas: 2
  selector: {matchLabels: {app: rs}}
  template:
    metadata: {labels: {app: rs}}
    spec: {containers: [{name: c, image: registry.example/c:1}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: sts}
spec:
  replicas: 3
  serviceName: sts
  selector: {matchLabels: {app: sts}}
  template:
    metadata: {labels: {app: sts}}
    spec: {containers: [{name: c, image: registry.example/c:1}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: ds}
spec:
  selector: {matchLabels: {app: ds}}
  template:
    metadata: {labels: {app: ds}}
    spec: {containers: [{name: c, image: registry.example/c:1}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  parallelism: 2
  template:
    metadata: {labels: {app: job}}
    spec: {containers: [{name: c, image: registry.example/c:1}], restartPolicy: Never}
YAML
k create namespace many
k create -n many -f many.yaml
count_is() { [ "$("$kubectl" get -n many "$1" -o "jsonpath={$2}")" = "$3" ]; }
for want in replicasets/rs=.status.readyReplicas=2 statefulsets/sts=.status.readyReplicas=3 \
    daemonsets/ds=.status.numberReady=2 jobs/job=.status.active=2; do
    IFS== read -r what where count <<<"$want"
    until_true 120 count_is "$what" "$where" "$count" || show_and_fail "$what does not get $count pods"
done
k delete namespace many --timeout=120s # its pods end first
refused 'namespaces "many" not found' "$kubectl" get namespace many
echo "replica set, stateful set, daemon set and job have their pods, and leave with their namespace"

# What says that an answer of vigild was not what they expect.
unfit='could not find the requested resource|proto: |unable to decode|is invalid: |UnsupportedMediaType|NotAcceptable'
grep -hE "$unfit" kube-*.log >out || true
[ ! -s out ] || fail "they do not take some answers"
stop_server
echo "a stock controller manager and scheduler drive vigild, also through kills"
