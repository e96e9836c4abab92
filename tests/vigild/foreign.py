"""foreign.py <vigild> - on an etcd in which others write what we cannot read (VG_VIGILD_ETCD): it is told of, it
harms nobody, and nobody writes over it."""
import base64
import json
import sys
import urllib.request

from vigild import equal, has, main, wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def put(case, key, value):
    """By etcd's own door."""
    body = {"key": base64.b64encode(key.encode()).decode(), "value": base64.b64encode(value).decode()}
    request = urllib.request.Request(case.etcds["data"].url + "/v3/kv/put", json.dumps(body).encode())
    with urllib.request.urlopen(request) as answer:
        equal(answer.status, 200)


def test_what_cannot_be_read(case):
    v = case.start()
    v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "good"}})
    put(case, "/registry/configmaps/default/bad", b"k8s:enc:aescbc:v1:key1:secret")
    bad = CONFIGMAPS + "/bad"
    wait_for("it is told of", lambda: "key=/registry/configmaps/default/bad" in v.stderr())
    body = {"metadata": {"name": "bad"}}
    for path, method, sent in ((bad, "GET", None), (CONFIGMAPS, "POST", body), (bad, "PUT", body),
                               (bad, "DELETE", None)):
        a = v.ask(path, method, body=sent)
        equal((method, a.status), (method, 500), a.body)
        has(a.json["message"] + json.dumps(a.json.get("details", {})), "read" if method == "POST" else "")
    equal([o["metadata"]["name"] for o in v.ask(CONFIGMAPS).json["items"]], ["good"])
    put(case, "/registry/configmaps/default/bad", json.dumps(
        {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "bad", "namespace": "default", "uid": "u"}}
    ).encode())
    wait_for("it can be read again", lambda: v.ask(bad).status == 200)
    equal(v.ask(bad, "DELETE").status, 200)


if __name__ == "__main__":
    main(sys.modules[__name__])
