#!/usr/bin/env bash
# tables.sh <vigild> <cache> debian|recent - what kubectl get shows: the columns of a stock cluster, by default,
# with -o wide and in watches, for objects of many kinds (tables.yaml) and what tables.txt says of them. Blanks
# are one, ages are AGE, uids UID; what a controller may add by itself is left out.
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
kubectl_of "$3"
k() { ok "$kubectl" "$@"; }

namespaced=pods,configmaps,secrets,services,endpoints,endpointslices,persistentvolumeclaims
namespaced+=,replicationcontrollers,limitranges,podtemplates,events,deployments.apps,replicasets.apps
namespaced+=,statefulsets.apps,daemonsets.apps,controllerrevisions,jobs,cronjobs.batch,horizontalpodautoscalers.autoscaling
namespaced+=,poddisruptionbudgets.policy
namespaced+=,ingresses.networking.k8s.io,networkpolicies.networking.k8s.io,rolebindings,roles,leases
cluster=(namespace/show node/n1 persistentvolume/pv1 storageclass/slow csidriver/csi.example.com priorityclass/high
    runtimeclass/rtc ingressclass/cls validatingwebhookconfiguration/vwc customresourcedefinition/things.example.com)

normal() {
    sed -E -e '/kube-root-ca.crt/d' -e 's/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UID/g' \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z/TIME/g' \
        -e 's/\b[0-9]+[smhdy]([0-9]+[smhd])?\b/AGE/g' -e 's/ +/ /g' -e 's/ $//' "$@"
}
# status KIND/NAME JSON: a merge patch of its status; kubectl 1.20 cannot.
status() {
    ok curl -sf --cacert certificate-authority.pem --cert client-certificate.pem \
        --key client-key.pem -X PATCH \
        -H 'Content-Type: application/merge-patch+json' -d "{\"status\":$2}" "$url/$1/status"
}
show() {
    echo "## kubectl get $*" >>shown
    k get "$@"
    normal out >>shown
}

start_server
credentials
k create -f "$here/tables.yaml"
api=api/v1/namespaces/show
status $api/pods/p1 '{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],
  "podIP":"10.1.1.1","podIPs":[{"ip":"10.1.1.1"}],"containerStatuses":[
  {"name":"c","ready":true,"restartCount":2,"image":"i","imageID":"i","state":{"running":{}},
   "lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-01-01T00:00:00Z"}}},
  {"name":"d","ready":false,"restartCount":5,"image":"i","imageID":"i","state":{"waiting":{"reason":"CrashLoopBackOff"}}}]}'
status $api/persistentvolumeclaims/pvc1 \
    '{"phase":"Bound","capacity":{"storage":"5Gi"},"accessModes":["ReadWriteOnce"]}'
status apis/apps/v1/namespaces/show/deployments/dep \
    '{"replicas":3,"updatedReplicas":2,"readyReplicas":1,"availableReplicas":1}'
status apis/batch/v1/namespaces/show/jobs/job '{"conditions":[{"type":"Suspended","status":"True"}]}'
status apis/autoscaling/v2/namespaces/show/horizontalpodautoscalers/hpa '{"currentReplicas":2,"desiredReplicas":2,
  "currentMetrics":[{"type":"Resource","resource":{"name":"cpu","current":{"averageUtilization":33,"averageValue":"1"}}}]}'
status apis/networking.k8s.io/v1/namespaces/show/ingresses/ing \
    '{"loadBalancer":{"ingress":[{"ip":"203.0.113.1"}]}}'

echo "-- get"
: >shown
show -n show pods
show -n show pod p1 -o wide --show-labels
show -n show "$namespaced"
show -n show "$namespaced" -o wide
show "${cluster[@]}"
show "${cluster[@]}" -o wide
show -n show pods --no-headers
show -n show pods -L app
show -A pods -l app=a
diff -u "$here/tables.txt" shown >out 2>&1 || fail "what is shown is not what tables.txt says"

echo "-- get --watch"
"$kubectl" get -n show configmaps --watch >watched 2>err </dev/null &
background+=($!)
last="kubectl get configmaps --watch"
until_true 120 grep -q '^cm ' watched || fail "the watch does not begin"
k create -n show configmap late --from-literal=a=b
until_true 120 grep -Eq '^late +1 ' watched || fail "the watch does not show what is new"
k patch -n show configmap late --type merge -p '{"data":{"c":"d"}}'
until_true 120 grep -Eq '^late +2 ' watched || fail "the watch does not show what is changed"
[ "$(grep -c '^NAME ' watched)" = 1 ] || fail "the watch has more than one head"
stop_server
