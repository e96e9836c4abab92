#!/usr/bin/env bash
# kubectl.sh <vigild> <cache> debian|recent - kubectl against the server, over TLS with the
# admin.kubeconfig of the first start: create, get, apply, replace, patch, label, annotate, scale,
# watch, delete, by manifests as people have them.
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
which=$3
kubectl_of "$which"
k() { ok "$kubectl" "$@"; }
no() {
    local text=$1
    shift
    refused "$text" "$kubectl" "$@"
}

cat >two.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
  labels: {app: demo}
data:
  plain: "1"
  multi: |
    a
    b
---
apiVersion: v1
kind: Secret
metadata:
  name: hidden
stringData:
  password: x
YAML
cat >web.yaml <<'YAML'
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web}
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: web:1
        env:
        - {name: A, value: "1"}
        - {name: B, value: "2"}
      - name: side
        image: side:1
YAML

start_server

echo "-- what is there"
k version
k api-versions
out_has apps/v1
k api-resources
out_has deployments
k get namespaces -o name
out_has namespace/default
k get namespaces
out_has default

echo "-- explain"
if [ "$which" = recent ]; then
    k explain deployment
    out_has 'Keeps equal pods running'
    out_has 'What is wanted.'
    k explain deployment.spec.replicas
    out_has 'How many pods shall run.'
    k explain pods.spec.containers.livenessProbe
    out_has 'It is started anew when this fails.'
    out_lacks '<no description>'
    k explain pod --recursive
    out_has terminationGracePeriodSeconds
else
    k explain pods.spec.containers
    out_has 'A program that runs in a pod.'
fi

echo "-- create -f"
k create -f two.yaml
out_is "configmap/one created
secret/hidden created"
no 'configmaps "one" already exists' create -f two.yaml
k create -f web.yaml
out_is "deployment.apps/web created"
k delete -f web.yaml
out_has 'deployment.apps "web" deleted'

echo "-- get"
k get configmap one -o jsonpath='{.data.multi}'
out_is "a
b"
k get cm one -o json
out_has '"plain": "1"'
k get cm one -o yaml
out_has '  multi: |'
k get cm one -o wide
out_has one
k get cm -l app=demo -o name
out_is configmap/one
k get cm -l app!=demo -o name
out_lacks configmap/one
k get cm --field-selector metadata.name=one -o name
out_is configmap/one
k get cm,secret -A -o name
out_has secret/hidden
no 'configmaps "none" not found' get cm none

echo "-- apply -f, thrice"
k apply -f web.yaml
out_is "deployment.apps/web created"
k apply -f web.yaml
out_is "deployment.apps/web unchanged"
k get deployment web -o jsonpath='{.metadata.generation} {.metadata.resourceVersion}'
before=$(cat out)
sed -e 's/web:1/web:2/' -e '/name: A/d' web.yaml >web2.yaml
k apply -f web2.yaml
out_is "deployment.apps/web configured"
k get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}'
out_is "web:2 side:1"
k get deployment web -o jsonpath='{.spec.template.spec.containers[0].env[*].name}'
out_is B
k get deployment web -o jsonpath='{.metadata.generation} {.metadata.resourceVersion}'
[ "${before%% *}" -lt "$(cut -d' ' -f1 out)" ] || fail "the generation does not rise"
[ "${before##* }" -lt "$(cut -d' ' -f2 out)" ] || fail "the resourceVersion does not rise"
k diff -f web2.yaml
out_is ""

echo "-- replace"
k get cm one -o json
sed 's/"plain": "1"/"plain": "2"/' out >one.json
k replace -f one.json
out_is "configmap/one replaced"
no 'the object has been modified' replace -f one.json
k get cm one -o jsonpath='{.data.plain}'
out_is 2

echo "-- patch"
k patch cm one --type merge -p '{"data":{"more":"3","multi":null}}'
k patch cm one --type json -p '[{"op":"add","path":"/data/json","value":"4"}]'
k get cm one -o jsonpath='{.data}'
out_has '"json":"4"'
out_has '"more":"3"'
out_lacks multi
k patch deployment web -p \
    '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:2"}]}}}}'
k get deployment web -o jsonpath='{.spec.template.spec.containers[*].image}'
out_is "web:2 side:2"
k patch cm one --type merge -p '{"data":{"more":"3"}}'
out_has "patched (no change)"

echo "-- label, annotate"
k label cm one tier=back
k label cm one tier=front --overwrite
no 'already has a value' label cm one tier=back
k label cm one app-
k annotate cm one note='x y'
k get cm one -o jsonpath='{.metadata.labels} {.metadata.annotations.note}'
out_is '{"tier":"front"} x y'

echo "-- scale"
k scale deployment web --replicas=3
out_is "deployment.apps/web scaled"
k get deployment web -o jsonpath='{.spec.replicas}'
out_is 3
k scale deployment web --current-replicas=3 --replicas=2
k get deployment web -o jsonpath='{.spec.replicas}'
out_is 2

echo "-- edit, set image, generated names, finalizers"
EDITOR="sed -i s/web:2/web:3/" k edit deployment web
k get deployment web -o jsonpath='{.spec.template.spec.containers[0].image}'
out_is web:3
k set image deployment/web side=side:3
k get deployment web -o jsonpath='{.spec.template.spec.containers[1].image}'
out_is side:3
cat >generated.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata:
  generateName: gen-
  finalizers: [vigil.example/hold]
YAML
k create -f generated.yaml -o name
name=$(cat out)
grep -qE '^configmap/gen-[a-z0-9]{5}$' out || fail "the name is not generated"
k delete "$name" --wait=false
k get "$name" -o jsonpath='{.metadata.deletionTimestamp}'
out_has T
"$kubectl" wait --for=delete "$name" --timeout=120s >waited 2>&1 &
waiting=$!
k patch "$name" --type merge -p '{"metadata":{"finalizers":null}}'
# It may have come too late to wait for anything.
wait "$waiting" || grep -q 'no matching resources' waited || fail "$(cat waited)"
no 'not found' get "$name"

# By typed clients, which send protobuf.
echo "-- create KIND"
k create namespace shop
out_is "namespace/shop created"
k -n shop create configmap settings --from-literal=a=1 --from-literal=b=two
k -n shop get cm settings -o jsonpath='{.data}'
out_is '{"a":"1","b":"two"}'
no 'configmaps "settings" already exists' -n shop create configmap settings
k -n shop create secret generic pass --from-literal=p=x
k -n shop get secret pass -o jsonpath='{.data.p} {.type}'
out_is 'eA== Opaque'
k -n shop create serviceaccount robot
k -n shop create deployment front --image=front:1 --replicas=2 --port=80
k -n shop get deployment front -o jsonpath='{.spec.replicas} {.spec.template.spec.containers[0].image}'
out_is '2 front:1'
k -n shop create job once --image=once:1 -- run it
k -n shop get job once -o jsonpath='{.spec.template.spec.containers[0].command}'
out_is '["run","it"]'
if [ "$which" = recent ]; then # the other one asks for batch/v1beta1
    k -n shop create cronjob often --image=often:1 --schedule='*/5 * * * *'
    k -n shop create job now --from=cronjob/often
    k -n shop get job now -o jsonpath='{.metadata.ownerReferences[0].kind}'
    out_is CronJob
fi
k -n shop scale deployment front --replicas=4
k -n shop run one-off --image=one:1 --restart=Never
k -n shop get pod one-off -o jsonpath='{.spec.restartPolicy}'
out_is Never
k -n shop delete pod one-off --now
k -n shop delete deployment,job,cronjob,cm,secret,sa --all

echo "-- get --watch"
"$kubectl" get cm -w -o name >watched 2>watch.err &
background+=($!)
until_true 120 grep -q configmap/one watched || fail "the watch does not show what is there"
k label cm one seen=yes
cat >three.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: three}
YAML
k create -f three.yaml
until_true 120 grep -q configmap/three watched || fail "the watch does not show what is new"
[ "$(grep -c configmap/one watched)" -ge 2 ] || fail "the watch does not show what changed"

echo "-- apply --server-side"
cat >side.yaml <<'YAML'
apiVersion: v1
kind: ConfigMap
metadata: {name: side}
data: {a: "1", b: "2"}
YAML
sed 's/a: "1"/a: "5"/; s/, b: "2"//' side.yaml >side2.yaml
k apply --server-side -f side.yaml
out_has 'configmap/side serverside-applied'
no 'conflict with "kubectl": .data.a' apply --server-side --field-manager=other -f side2.yaml
k apply --server-side --field-manager=other --force-conflicts -f side2.yaml
k get cm side -o 'jsonpath={.data.a}{.data.b} {.metadata.managedFields[*].manager}'
out_is "52 kubectl other"
sed -i '/^data:/s/.*/data: {a: "5"}/' side.yaml
k apply --server-side -f side.yaml
k get cm side -o 'jsonpath={.data}'
out_lacks '"b"'
k delete cm side

echo "-- delete"
k delete cm three
out_has 'configmap "three" deleted'
k delete -f two.yaml
no 'configmaps "one" not found' get cm one
k delete deployment --all
k get deployments -o name
out_is ""
k get all -o name
out_lacks deployment

stop_server
echo "kubectl ($which) does its work"
