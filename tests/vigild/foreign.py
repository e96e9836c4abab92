"""foreign.py <vigild> - on an etcd in which others write what we cannot read (VG_VIGILD_ETCD): it is told of by its
key, no list and no watch that it concerns pretends that it is not there, nobody writes over it, and it can be removed."""
import base64
import json
import sys
import urllib.request

from vigild import check, equal, has, main, wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BAD = CONFIGMAPS + "/bad"
KEY = "/registry/configmaps/default/bad"
OPTION = "ignoreStoreReadErrorWithClusterBreakingPotential"
ENCRYPTED = b"k8s:enc:aescbc:v1:key1:secret"


def put(case, key, value):
    """By etcd's own door."""
    body = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
    request = urllib.request.Request(case.etcds["data"].url + "/v3/kv/put", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        equal(answer.status, 200)


def make(v, path, name):
    a = v.ask(path, "POST", body={"metadata": {"name": name}})
    equal(a.status, 201, a.body)


def names(v, path):
    a = v.ask(path)
    equal(a.status, 200, a.body)
    return [o["metadata"]["name"] for o in a.json["items"]]


def refused(a):
    equal((a.status, a.json["reason"]), (500, "InternalError"), a.body)
    has(a.json["message"], f'"{KEY}"')
    has(a.json["message"], OPTION)


def spoiled(case, *flags):
    """A server with a good object, and one beside it that cannot be read."""
    v = case.start(*flags)
    make(v, CONFIGMAPS, "good")
    put(case, KEY, ENCRYPTED)
    wait_for("it is told of", lambda: f"key={KEY}" in v.stderr())
    wait_for("it is seen", lambda: v.ask(CONFIGMAPS).status == 500)
    return v


def watch(v, path):
    connection = v.connect(v.admin())
    connection.request("GET", path)
    return connection, connection.getresponse()


def test_no_answer_is_without_it(case):
    v = spoiled(case)
    body = {"metadata": {"name": "bad"}}
    for path, method, sent in ((BAD, "GET", None), (BAD + "?resourceVersion=0", "GET", None),
                               (CONFIGMAPS, "POST", body), (BAD, "PUT", body), (BAD, "DELETE", None)):
        refused(v.ask(path, method, body=sent))
    some = [CONFIGMAPS, "/api/v1/configmaps", CONFIGMAPS + "?resourceVersion=0", CONFIGMAPS + "?limit=1",
            CONFIGMAPS + "?labelSelector=a%3Db", CONFIGMAPS + "?fieldSelector=metadata.name%3Dbad",
            CONFIGMAPS + "?watch=1", CONFIGMAPS + "?watch=1&resourceVersion=0",
            CONFIGMAPS + "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"]
    for path in some:
        refused(v.ask(path))
    refused(v.ask(CONFIGMAPS, "DELETE"))
    equal(names(v, "/api/v1/namespaces/kube-system/configmaps"), [])
    equal(names(v, CONFIGMAPS + "?fieldSelector=metadata.name%3Dgood"), ["good"])
    equal(v.ask(CONFIGMAPS + "/good").status, 200)
    equal(v.end(), 0)
    v = case.start()
    refused(v.ask(CONFIGMAPS))


def test_who_watches_is_told(case):
    v = case.start()
    make(v, CONFIGMAPS, "bad")
    connection, stream = watch(v, CONFIGMAPS + "?watch=1&sendInitialEvents=true&"
                               "resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
    events = [json.loads(stream.readline()) for _ in range(2)]
    equal([e["type"] for e in events], ["ADDED", "BOOKMARK"])
    put(case, KEY, ENCRYPTED)
    last = json.loads(stream.readline())
    equal((last["type"], last["object"]["code"], last["object"]["reason"]), ("ERROR", 500, "InternalError"))
    has(last["object"]["message"], KEY)
    equal(stream.readline(), b"", "the end")
    connection.close()
    equal(v.ask(BAD + f"?{OPTION}=true", "DELETE").status, 200)
    equal(names(v, CONFIGMAPS), [])  # the cache has seen it
    rev = events[1]["object"]["metadata"]["resourceVersion"]
    connection, stream = watch(v, CONFIGMAPS + f"?watch=1&resourceVersion={rev}")
    equal(json.loads(stream.readline())["object"]["code"], 410)  # it must list to learn that the object is gone
    connection.close()


def test_it_can_be_removed(case):
    v = spoiled(case)
    a = v.ask(CONFIGMAPS + f"/good?{OPTION}=true", "DELETE")
    equal((a.status, a.json["reason"]), (422, "Invalid"), a.body)
    has(a.json["message"], "is exclusively used to delete corrupt object(s)")
    a = v.ask(BAD, "DELETE", body={OPTION: True, "gracePeriodSeconds": 0, "dryRun": ["All"]})
    equal(a.status, 422, a.body)
    has(a.json["message"], "cannot be set together with .dryRun")
    has(a.json["message"], "cannot be set together with .gracePeriodSeconds")
    equal(v.ask(CONFIGMAPS + f"?{OPTION}=true", "DELETE").status, 422)
    refused(v.ask(BAD, "DELETE", body={OPTION: False}))
    a = v.ask(BAD, "DELETE", body={OPTION: True})
    equal((a.status, a.json["status"], a.json["details"]), (200, "Success", {"name": "bad", "kind": "ConfigMap"}))
    equal(names(v, CONFIGMAPS), ["good"])
    equal(v.ask(BAD).status, 404)
    make(v, CONFIGMAPS, "bad")  # the name is free


def test_it_can_be_repaired(case):
    v = spoiled(case)
    put(case, KEY, json.dumps({"kind": "ConfigMap", "apiVersion": "v1",
                               "metadata": {"name": "bad", "namespace": "default", "uid": "u"}}).encode())
    equal(v.ask(BAD).status, 200)
    equal(names(v, CONFIGMAPS), ["bad", "good"])
    equal(v.ask(BAD, "DELETE").status, 200)


def test_a_namespace_with_it_stays(case):
    v = case.start("--controllers=*")
    make(v, "/api/v1/namespaces", "x")
    put(case, "/registry/secrets/x/bad", ENCRYPTED)
    wait_for("it is seen", lambda: v.ask("/api/v1/namespaces/x/secrets").status == 500)
    check(v.ask("/api/v1/namespaces/x", "DELETE").status in (200, 202), "the delete is taken")

    def told():
        conditions = v.ask("/api/v1/namespaces/x").json["status"].get("conditions", [])
        return any(c["type"] == "NamespaceDeletionContentFailure" and c["status"] == "True" for c in conditions)
    wait_for("its conditions say so", told)
    equal(v.ask(f"/api/v1/namespaces/x/secrets/bad?{OPTION}=true", "DELETE").status, 200)
    wait_for("it goes", lambda: v.ask("/api/v1/namespaces/x").status == 404)


if __name__ == "__main__":
    main(sys.modules[__name__])
