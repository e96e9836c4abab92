#!/usr/bin/env bash
# access.sh <vigild> <cache> <vectors> - a recent kubectl asks what there is and who may do it: the
# whole table of api-resources, which is a stock cluster's; auth whoami, auth can-i and its list;
# componentstatuses. The expected table is api_resources.txt, and that is compared with the recorded
# discovery of a real server (tests/vectors).
. "$(dirname "$0")/lib.sh"
. "$here/kubectl_get.sh"
kubectl_of recent
vectors=${VG_VECTORS:-$3}
k() { ok "$kubectl" "$@"; }
alice() { ok "$kubectl" --kubeconfig "$work/alice.kubeconfig" "$@"; }

printf '%s\n' 'good,root,u1,"system:masters"' 'weak,alice,u2,"devs,ops"' >tokens
start_server --token-auth-file "$work/tokens"
"$kubectl" config view --raw >alice.kubeconfig
"$kubectl" --kubeconfig alice.kubeconfig config unset users >/dev/null
"$kubectl" --kubeconfig alice.kubeconfig config set-credentials alice --token weak >/dev/null
"$kubectl" --kubeconfig alice.kubeconfig config set-context --current --user alice >/dev/null

echo "-- api-resources"
k api-resources --no-headers -o wide --sort-by name
sed -e 's/  */ /g' -e 's/ $//' out | sort >got
sort "$here/api_resources.txt" >want
diff want got >differs || fail "api-resources is not a stock cluster's: $(cat differs)"
python3 "$here/api_resources.py" "$vectors" | sort >recorded
[ -s recorded ] || fail "no recorded discovery in $vectors"
diff recorded want >differs || fail "api_resources.txt is not what was recorded: $(cat differs)"

echo "-- auth whoami"
k auth whoami -o jsonpath='{.status.userInfo.username}'
who=$(cat out)
[ -n "$who" ] || fail "nobody"
k auth whoami
out_has "$who"
out_has system:masters

echo "-- auth can-i"
k auth can-i create pods
out_is yes
k auth can-i get /metrics
out_is yes
k auth can-i --list
out_has '*.*'
# kubectl ends with 1 when the answer is no.
refused no "$kubectl" --kubeconfig alice.kubeconfig auth can-i create pods
alice auth can-i create selfsubjectaccessreviews.authorization.k8s.io
out_is yes
alice auth can-i --list
out_has selfsubjectreviews.authentication.k8s.io
out_lacks '*.*'
alice auth whoami -o jsonpath='{.status.userInfo}'
out_is '{"groups":["devs","ops","system:authenticated"],"uid":"u2","username":"alice"}'

echo "-- reviews"
# review KIND GROUP SPEC: the status of the answer.
review() {
    printf '{"apiVersion":"%s/v1","kind":"%s","spec":%s}' "$2" "$1" "$3" >review.json
    k create -f review.json --validate=false -o jsonpath='{.status}'
}
review SubjectAccessReview authorization.k8s.io \
    '{"user":"alice","resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}}'
out_is '{"allowed":false}'
review SubjectAccessReview authorization.k8s.io \
    '{"groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"pods"}}'
out_is '{"allowed":true}'
review TokenReview authentication.k8s.io '{"token":"weak"}'
out_has '"username":"alice"'
out_has '"authenticated":true'
review TokenReview authentication.k8s.io '{"token":"wrong"}'
out_is '{"error":"invalid bearer token","user":{}}'
refused 'at least one of user or group must be specified' "$kubectl" create --validate=false \
    -f <(echo '{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{}}')

echo "-- componentstatuses"
k get componentstatuses -o jsonpath='{.items[*].metadata.name} {.items[*].conditions[0].message}'
out_is 'etcd-0 ok'
k get cs etcd-0 -o jsonpath='{.conditions[0].status}'
out_is True
k get cs --field-selector metadata.name=scheduler -o name
out_is ''
refused 'componentstatus "scheduler" not found' "$kubectl" get cs scheduler

stop_server
echo "kubectl learns who may do what"
