"""subresources.py <vigild> - what lies below an object: ephemeral containers, resize, approval, and what only a node
could answer. The expected answers are a kube-apiserver's."""
import base64
import json
import sys

from vigild import check, equal, has, main, openssl

PODS = "/api/v1/namespaces/default/pods"
REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def post(v, path, body, status=201):
    a = v.ask(path, "POST", body=body)
    equal(a.status, status, a.body)
    return a.json


def patch(v, path, body, status=200, headers=None):
    a = v.ask(path, "PATCH", body=json.dumps(body), headers=headers or STRATEGIC)
    equal(a.status, status, a.body)
    return a.json


def make_pod(v, name="p", **more):
    spec = {"containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}], **more.pop("spec", {})}
    return post(v, PODS, {"metadata": {"name": name, **more}, "spec": spec})


def managers(obj):
    return {(m["manager"], m.get("subresource")): m["fieldsV1"] for m in obj["metadata"]["managedFields"]}


# ---- ephemeral containers ----

def test_a_container_is_added_and_stays(case):
    v = case.start()
    make_pod(v)
    path = PODS + "/p/ephemeralcontainers"
    equal(v.ask(path).json["kind"], "Pod")
    made = patch(v, path + "?fieldManager=m", {
        "metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"},
        "spec": {"containers": [{"name": "c", "image": "other"}], "ephemeralContainers": [{"name": "dbg", "image": "busybox"}]}})
    equal([made["spec"]["ephemeralContainers"][0]["name"], made["metadata"]["generation"]], ["dbg", 2])
    equal([made["spec"]["containers"][0]["image"], made["metadata"].get("labels"), made["status"]["phase"]],
          ["nginx", None, "Pending"], "all else")
    equal(list(managers(made)[("m", "ephemeralcontainers")]), ["f:spec"])
    equal(list(managers(made)[("m", "ephemeralcontainers")]["f:spec"]), ["f:ephemeralContainers"])
    has(patch(v, path, {"spec": {"ephemeralContainers": [{"name": "dbg", "image": "x"}]}}, 422)["message"],
        'existing ephemeral containers "dbg" may not be changed')
    has(patch(v, path, {"spec": {"ephemeralContainers": [{"name": "dbg", "$patch": "delete"}]}}, 422)["message"],
        'existing ephemeral containers "dbg" may not be removed')
    more = patch(v, path, {"spec": {"ephemeralContainers": [{"name": "dbg2", "image": "busybox", "targetContainerName": "c"}]}})
    equal(sorted(c["name"] for c in more["spec"]["ephemeralContainers"]), ["dbg", "dbg2"])
    put = v.ask(path, "PUT", body={**more, "metadata": {"name": "p", "resourceVersion": "1"}})
    equal([put.status, put.json["reason"]], [409, "Conflict"])
    equal(patch(v, PODS + "/none/ephemeralcontainers", {}, 404)["message"], 'pods "none" not found')
    equal(v.ask(path, "DELETE").status, 405)


def test_mirror_pods_have_none(case):
    v = case.start()
    make_pod(v, annotations={"kubernetes.io/config.mirror": "x"}, spec={"nodeName": "n"})
    has(patch(v, PODS + "/p/ephemeralcontainers", {"spec": {"ephemeralContainers": [{"name": "d", "image": "b"}]}}, 422)["message"],
        'Pod "p" is invalid: []: Forbidden: static pods do not support ephemeral containers')
    has(patch(v, PODS + "/p/resize", {}, 422)["message"], "[]: Forbidden: static pods cannot be resized")


# ---- resize ----

def resize(v, status=200, name="p", container="c", **resources):
    return patch(v, f"{PODS}/{name}/resize?fieldManager=m", {"spec": {"containers": [{"name": container, "resources": resources}]}}, status)


def test_cpu_and_memory_are_resized(case):
    v = case.start()
    make_pod(v, spec={"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Always"}]})
    pod = resize(v, requests={"cpu": "150m", "memory": "1Gi"})
    equal(pod["spec"]["containers"][0]["resources"], {"requests": {"cpu": "150m", "memory": "1Gi"}})
    equal(pod["metadata"]["generation"], 2)
    equal(managers(pod)[("m", "resize")],
          {"f:spec": {"f:containers": {'k:{"name":"c"}': {"f:resources": {"f:requests": {"f:cpu": {}, "f:memory": {}}}}}}})
    has(resize(v, 422, requests={"memory": None})["message"], "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed")
    has(resize(v, 422, requests={"ephemeral-storage": "1Gi"})["message"], "spec: Forbidden: only cpu and memory resources are mutable")
    make_pod(v, "q", spec={"containers": [{"name": "c", "image": "x"}]})
    has(resize(v, 422, "q", limits={"cpu": "150m", "memory": "1Gi"})["message"],
        'spec: Invalid value: "BestEffort": Pod QOS Class may not change as a result of resizing')
    has(resize(v, 422, container="new", requests={"cpu": "1"})["message"], "containers may not be added or removed on resize")
    of_init = patch(v, PODS + "/p/resize", {"spec": {"initContainers": [{"name": "i", "image": "y", "resources": {"requests": {"cpu": "1"}}}]}})
    equal([of_init["spec"]["initContainers"][0]["image"], of_init["spec"]["initContainers"][0]["resources"]["requests"]["cpu"]], ["x", "1"])
    dry = v.ask(PODS + "/p/resize?dryRun=All", "PATCH", headers=STRATEGIC,
                body=json.dumps({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "7"}}}]}}))
    equal(dry.json["spec"]["containers"][0]["resources"]["requests"]["cpu"], "7")
    equal(v.ask(PODS + "/p/resize").json["spec"]["containers"][0]["resources"]["requests"]["cpu"], "150m")


def test_the_amounts_of_a_whole_pod(case):
    v = case.start()
    make_pod(v, spec={"resources": {"requests": {"cpu": "1"}}})
    equal(patch(v, PODS + "/p/resize", {"spec": {"resources": {"requests": {"cpu": "2"}}}})["spec"]["resources"], {"requests": {"cpu": "2"}})
    has(patch(v, PODS + "/p/resize", {"spec": {"resources": None}}, 422)["message"], "spec.resources: Forbidden: pod-level resources cannot be removed")


def test_a_resize_may_be_applied(case):
    v = case.start()
    make_pod(v)
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "200m"}}}]}}
    a = patch(v, PODS + "/p/resize?fieldManager=m1&force=true", body, headers=APPLY)
    equal(a["spec"]["containers"][0]["resources"]["requests"]["cpu"], "200m")
    body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "300m"
    equal(patch(v, PODS + "/p/resize?fieldManager=m2", body, 409, APPLY)["details"]["causes"][0]["message"],
          'conflict with "m1" with subresource "resize"')


# ---- approval ----

def make_request(case, v, name):
    key, csr = case.path("x.key"), case.path("x.csr")
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    openssl("req", "-new", "-key", key, "-subj", "/CN=joe", "-out", csr)
    with open(csr, "rb") as f:
        request = base64.b64encode(f.read()).decode()
    post(v, REQUESTS, {"metadata": {"name": name},
                       "spec": {"request": request, "signerName": "example.com/x", "usages": ["client auth"]}})


def condition(kind, **more):
    return {"type": kind, "status": "True", **more}


def decide(v, name, conditions, status=200, sub="approval", **more):
    return patch(v, f"{REQUESTS}/{name}/{sub}", {"status": {"conditions": conditions, **more}}, status, MERGE)


def test_a_request_is_approved_once(case):
    v = case.start()
    make_request(case, v, "a")
    made = decide(v, "a", [condition("Approved", reason="R")], certificate="Zm9v")
    equal(made["status"].get("certificate"), None)
    first = made["status"]["conditions"][0]
    check(first["lastUpdateTime"] and first["lastTransitionTime"], first)
    again = decide(v, "a", [condition("Approved", reason="R2", lastUpdateTime="2020-01-01T00:00:00Z")])["status"]["conditions"][0]
    equal([again["reason"], again["lastUpdateTime"], again["lastTransitionTime"]],
          ["R2", "2020-01-01T00:00:00Z", first["lastTransitionTime"]])
    has(decide(v, "a", [condition("Denied")], 422)["message"], 'updates may not remove a condition of type "Approved"')
    has(decide(v, "a", [condition("Approved"), condition("Denied")], 422)["message"], "Approved and Denied conditions are mutually exclusive")


def test_status_does_not_approve(case):
    v = case.start()
    make_request(case, v, "a")
    has(decide(v, "a", [condition("Approved")], 422, "status")["message"], 'updates may not add a condition of type "Approved"')
    failed = decide(v, "a", [condition("Failed")], 200, "status")["status"]["conditions"][0]
    check(failed["lastUpdateTime"], failed)
    decide(v, "a", [condition("Failed"), condition("Denied", reason="no")])
    kept = decide(v, "a", [condition("Failed"), condition("Denied", reason="other")], 200, "status")
    equal([c.get("reason") for c in kept["status"]["conditions"]], [None, "no"])
    put = v.ask(REQUESTS + "/a", "PUT", body={**kept, "spec": {**kept["spec"], "signerName": "other.com/y"}, "status": {}})
    equal([put.status, put.json["spec"]["signerName"], len(put.json["status"]["conditions"])], [200, "example.com/x", 2])


# ---- what a node would answer ----

def refused(v, path, code, message, method="GET"):
    a = v.ask(path, method)
    equal([a.status, a.json["message"]], [code, message], path)


def test_a_pod_without_a_host(case):
    v = case.start()
    make_pod(v)
    a = v.ask(PODS + "/p/log")
    equal([a.status, a.body], [204, b""])
    refused(v, PODS + "/p/log?container=x", 400, "container x is not valid for pod p")
    refused(v, PODS + "/p/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax')
    refused(v, PODS + "/p/log?limitBytes=0", 422, 'PodLogOptions "p" is invalid: limitBytes: Invalid value: 0: must be greater than 0')
    for sub in ("exec?command=ls", "attach", "portforward"):
        for method in ("GET", "POST"):
            refused(v, f"{PODS}/p/{sub}", 400, "pod p does not have a host assigned", method)
            refused(v, f"{PODS}/q/{sub}", 404, 'pods "q" not found', method)
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        refused(v, PODS + "/p/proxy/some/path?x=1", 400, "address not allowed", method)
        refused(v, PODS + "/q:80/proxy", 404, 'pods "q" not found', method)
    make_pod(v, "two", spec={"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]})
    refused(v, PODS + "/two/log", 400, "a container name must be specified for pod two, choose one of: [a b]")


def test_there_is_no_node_to_ask(case):
    v = case.start()
    nobody = "there is no node to ask: vigil does not connect to nodes"
    make_pod(v, spec={"nodeName": "n"})
    refused(v, PODS + "/p/log", 404, 'nodes "n" not found')
    refused(v, "/api/v1/nodes/n/proxy", 404, 'nodes "n" not found')
    refused(v, "/api/v1/nodes/a:b:c:d/proxy", 400, 'invalid node request "a:b:c:d"')
    post(v, "/api/v1/nodes", {"metadata": {"name": "n"}})
    for sub in ("log", "exec", "attach", "portforward"):
        refused(v, f"{PODS}/p/{sub}", 503, nobody)
    refused(v, "/api/v1/nodes/https:n:10250/proxy/metrics", 503, nobody)
    services = "/api/v1/namespaces/default/services"
    refused(v, services + "/s/proxy", 404, 'services "s" not found')
    post(v, services, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    refused(v, services + "/s/proxy/", 503, 'no endpoints available for service "s"')
    refused(v, services + "/s:81/proxy", 503, 'no service port 81 found for service "s"')


def test_every_subresource_of_discovery_answers(case):
    """With a Status or an object, and never with "not implemented" or "not allowed"."""
    v = case.start()
    methods = {"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}
    groups = ["/api/v1"] + ["/apis/" + x["groupVersion"] for g in v.ask("/apis").json["groups"] for x in g["versions"]]
    asked = 0
    for path in groups:
        for r in v.ask(path).json["resources"]:
            for verb in r["verbs"] if "/" in r["name"] else []:
                resource, sub = r["name"].split("/")
                scope = "/namespaces/default" if r["namespaced"] else ""
                headers = STRATEGIC if verb == "patch" else {"Content-Type": "application/json"}
                a = v.ask(f"{path}{scope}/{resource}/none/{sub}", methods[verb], headers=headers,
                          body=None if verb in ("get", "delete") else "{}")
                check(a.status in (400, 404, 422), f"{verb} {path} {r['name']}: {a.status} {a.body}")
                equal(a.json["kind"], "Status")
                asked += 1
    check(asked > 100, asked)


if __name__ == "__main__":
    main(sys.modules[__name__])
