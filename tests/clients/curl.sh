#!/usr/bin/env bash
# curl.sh <vigild> <cache> - requests as one types them by hand: lists and watches by URL, on HTTP/1.1
# with chunks and lines that arrive as writes happen.
. "$(dirname "$0")/lib.sh"
command -v curl >/dev/null || skip "no curl"
start_server
credentials
c() {
    ok curl -sS --cacert certificate-authority.pem --cert client-certificate.pem \
        --key client-key.pem "$@"
}
pod() {
    printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"%s","labels":{"app":"%s"}},' "$1" "$2"
    printf '"spec":{%s"containers":[{"name":"c","image":"i:1"}]}}' "$3"
}
post() { c -f -XPOST -H 'Content-Type: application/json' -d "$(pod "$@")" "$url/api/v1/namespaces/default/pods"; }

# Of the list that was just read.
list_version() {
    sed -n 's/^    "resourceVersion": "\([0-9]*\)".*/\1/p' out | head -n 1 | grep . ||
        fail "the list has no resourceVersion"
}
# events_are "TYPE TYPE..." FILE
events_are() {
    local types
    types=$(grep -o '^{"type":"[A-Z]*"' "$2" | sed 's/.*:"//; s/"//' | paste -sd' ')
    [ "$types" = "$1" ] || fail "the events are: $types"
}

echo "-- one URL: a list, or with watch a stream"
c "$url/api/v1/pods"
out_has '"kind": "PodList"'
post a web ''
c "$url/api/v1/pods"
out_has '"name": "a"'
rv=$(list_version)
c -H 'Accept: application/yaml' "$url/api/v1/namespaces/default/pods/a"
out_has 'kind: Pod'

echo "-- /api/v1/watch/pods?watch=yes: chunked, one event in a line"
curl -sS -i --http1.1 --no-buffer --cacert certificate-authority.pem --cert client-certificate.pem \
    --key client-key.pem "$url/api/v1/watch/pods?watch=yes" >stream 2>stream.err &
background+=($!)
watch=$!
until_true 120 grep -q '"type":"ADDED".*"name":"a"' stream || fail "no ADDED of what is there"
cp stream out
grep -qi '^transfer-encoding: chunked' stream || fail "not chunked"
grep -qi '^content-type: application/json' stream || fail "not JSON"
post b db ''
until_true 120 grep -q '"type":"ADDED".*"name":"b"' stream || fail "no ADDED of what is new"
c -f -XPATCH -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"labels":{"x":"1"}}}' \
    "$url/api/v1/namespaces/default/pods/b"
until_true 120 grep -q '"type":"MODIFIED".*"name":"b"' stream || fail "no MODIFIED"
c -f -XDELETE "$url/api/v1/namespaces/default/pods/b?gracePeriodSeconds=0"
until_true 120 grep -q '"type":"DELETED".*"name":"b"' stream || fail "no DELETED"
kill "$watch"
# A pod's end begins with its deletionTimestamp: that is a change of its own.
events_are "ADDED ADDED MODIFIED MODIFIED DELETED" stream

echo "-- create, edit, delete: exactly three events"
maps=$url/api/v1/namespaces/default/configmaps
c "$maps"
rv_maps=$(list_version)
c -f -XPOST -H 'Content-Type: application/yaml' --data-binary \
    $'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\n' "$maps"
c -f -XPATCH -H 'Content-Type: application/merge-patch+json' -d '{"data":{"n":"1"}}' "$maps/m"
c -f -XDELETE "$maps/m"
c "$maps?watch=1&resourceVersion=$rv_maps&timeoutSeconds=3"
events_are "ADDED MODIFIED DELETED" out

echo "-- a watch from a version continues after it, and ends by timeoutSeconds"
c "$url/api/v1/pods?watch=1&resourceVersion=$rv&timeoutSeconds=1"
[ "$(grep -c '"type":"ADDED"' out)" -eq 1 ] || fail "one ADDED after $rv expected"
out_has '"type":"DELETED"'

echo "-- selectors"
post scheduled db '"nodeName":"n1",'
c "$url/api/v1/pods?fieldSelector=spec.nodeName%3D"
out_has '"name": "a"'
out_lacks '"name": "scheduled"'
c "$url/api/v1/pods?fieldSelector=spec.nodeName%3Dn1"
out_lacks '"name": "a"'
out_has '"name": "scheduled"'
c "$url/api/v1/pods?labelSelector=app+in+(web,x)"
out_has '"name": "a"'
out_lacks '"name": "scheduled"'
c "$url/api/v1/watch/namespaces/default/pods/a?timeoutSeconds=1"
[ "$(grep -c '"type":"ADDED"' out)" -eq 1 ] || fail "one pod by its name expected"
c -w '%{http_code}' "$url/api/v1/watch/namespaces/default/pods/a?fieldSelector=metadata.name%3Db"
out_has 400
c "$url/api/v1/pods?limit=1"
out_has '"continue": "'
token=$(sed -n 's/.*"continue": "\([^"]*\)".*/\1/p' out)
c "$url/api/v1/pods?limit=1&continue=$token"
out_has '"name": "scheduled"'

echo "-- refusals are Status objects"
c -w '%{http_code}' "$url/api/v1/namespaces/default/pods/none"
out_has '"reason": "NotFound"'
out_has 404
c -w '%{http_code}' -XPOST -H 'Content-Type: text/x' -d x "$url/api/v1/namespaces/default/pods"
out_has 415
c "$url/healthz"
out_is ok
c "$url/version"
out_has '"gitVersion"'
ok curl -sS --cacert certificate-authority.pem -w '%{http_code}' "$url/api/v1/pods"
grep -qE '40[13]' out || fail "a stranger is let in"

stop_server
echo "curl does what the texts show"
