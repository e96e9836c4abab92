"""controllers.py <vigild> - what vigild does by itself: every namespace gets its service account and the
certificate, a namespace that is deleted is emptied first, and what nobody owns any more goes. Each by its
switch; all of it goes on after a kill."""
import sys

from vigild import Failed, check, equal, has, main, wait_for

ALL = "--controllers=*"
CONFIGMAPS = "/api/v1/namespaces/{}/configmaps"
SECRETS = "/api/v1/namespaces/{}/secrets"
JSON_MERGE = {"Content-Type": "application/merge-patch+json"}


def make(v, path, name, **metadata):
    a = v.ask(path, "POST", body={"metadata": {"name": name, **metadata}})
    equal(a.status, 201, a.body)
    return a.json


def owner(o, blocks=False):
    ref = {"apiVersion": "v1", "kind": o.get("kind", "ConfigMap"), "name": o["metadata"]["name"],
           "uid": o["metadata"]["uid"]}
    return {**ref, "blockOwnerDeletion": True} if blocks else ref


def names(v, path):
    return [o["metadata"]["name"] for o in v.ask(path).json["items"]]


def is_gone(v, path):
    return v.ask(path).status == 404


def delete(v, path, policy=None):
    a = v.ask(path + (f"?propagationPolicy={policy}" if policy else ""), "DELETE")
    check(a.status in (200, 202), a.body)


def own(v, path):
    """Those that the test made."""
    return [n for n in names(v, path) if n != "kube-root-ca.crt"]


# ---- what every namespace gets ----

def test_service_account_and_certificate(case):
    v = case.start(ALL)
    make(v, "/api/v1/namespaces", "mine")
    for ns in ("default", "kube-system", "kube-public", "kube-node-lease", "mine"):
        wait_for(ns, lambda ns=ns: not is_gone(v, f"/api/v1/namespaces/{ns}/serviceaccounts/default"))
        wait_for(ns, lambda ns=ns: not is_gone(v, CONFIGMAPS.format(ns) + "/kube-root-ca.crt"))
    c = v.ask(CONFIGMAPS.format("mine") + "/kube-root-ca.crt").json
    equal(c["data"], {"ca.crt": open(v.path("pki/ca.crt"), encoding="utf-8").read()})
    has(c["metadata"]["annotations"]["kubernetes.io/description"], "API server")


def test_they_come_back(case):
    v = case.start(ALL)
    path = CONFIGMAPS.format("default") + "/kube-root-ca.crt"
    account = "/api/v1/namespaces/default/serviceaccounts/default"
    wait_for("the first", lambda: not is_gone(v, path) and not is_gone(v, account))
    uid = v.ask(account).json["metadata"]["uid"]
    delete(v, account)
    wait_for("another", lambda: not is_gone(v, account) and v.ask(account).json["metadata"]["uid"] != uid)
    equal(v.ask(path, "PATCH", body='{"data":{"ca.crt":"forged","more":"x"}}', headers=JSON_MERGE).status, 200)
    wait_for("the right certificate", lambda: list(v.ask(path).json["data"]) == ["ca.crt"] and
             v.ask(path).json["data"]["ca.crt"] != "forged")


def test_what_every_cluster_has(case):
    v = case.start(ALL)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    wait_for("classes", lambda: names(v, classes) == ["system-cluster-critical", "system-node-critical"])
    equal(v.ask(classes + "/system-node-critical").json["value"], 2000001000)
    wait_for("range", lambda: names(v, "/apis/networking.k8s.io/v1/servicecidrs") == ["kubernetes"])
    path = "/api/v1/namespaces/default/services/kubernetes"
    wait_for("service", lambda: not is_gone(v, path))
    s = v.ask(path).json["spec"]
    equal([s["clusterIP"], s["ports"][0]["port"], s["ports"][0]["targetPort"]], ["10.0.0.1", 443, v.port])
    delete(v, path)
    wait_for("it comes back", lambda: not is_gone(v, path))


# ---- namespaces ----

def test_a_namespace_is_emptied_and_goes(case):
    v = case.start(ALL)
    make(v, "/api/v1/namespaces", "x")
    for i in range(20):
        make(v, CONFIGMAPS.format("x"), f"c{i}")
        make(v, SECRETS.format("x"), f"s{i}")
    v.ask("/api/v1/namespaces/x/events", "POST", body={
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "x"}, "reason": "r", "message": "m"})
    delete(v, "/api/v1/namespaces/x")
    wait_for("it is gone", lambda: is_gone(v, "/api/v1/namespaces/x"))
    equal(names(v, SECRETS.format("x")) + names(v, CONFIGMAPS.format("x")) +
          names(v, "/api/v1/namespaces/x/events"), [])
    make(v, "/api/v1/namespaces", "x")  # the name is free


def test_what_is_left_is_told(case):
    v = case.start(ALL)
    make(v, "/api/v1/namespaces", "x")
    held = CONFIGMAPS.format("x") + "/held"
    make(v, CONFIGMAPS.format("x"), "held", finalizers=["example.com/hold"])
    delete(v, "/api/v1/namespaces/x")

    def conditions():
        status = v.ask("/api/v1/namespaces/x").json["status"]
        return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status.get("conditions", [])}

    def told(kind, *want):
        """At last: a first look may have seen what was about to go."""
        try:
            wait_for(kind, lambda: conditions().get(kind, ())[:len(want)] == want)
        except Failed:
            equal(conditions().get(kind), want, kind)
    told("NamespaceContentRemaining", "True", "SomeResourcesRemain",
         "Some resources are remaining: configmaps. has 1 resource instances")
    told("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain",
         "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances")
    told("NamespaceDeletionContentFailure", "False")
    equal(v.ask(held, "PATCH", body='{"metadata":{"finalizers":null}}', headers=JSON_MERGE).status, 200)
    wait_for("it is gone", lambda: is_gone(v, "/api/v1/namespaces/x"))


def test_pods_go_before_the_rest(case):
    v = case.start(ALL)
    make(v, "/api/v1/namespaces", "x")
    make(v, SECRETS.format("x"), "needed")
    pods = "/api/v1/namespaces/x/pods"
    a = v.ask(pods, "POST", body={"metadata": {"name": "p"}, "spec": {
        "nodeName": "n", "containers": [{"name": "c", "image": "i"}]}})
    equal(a.status, 201, a.body)
    delete(v, "/api/v1/namespaces/x")
    wait_for("the pod is told to end", lambda: "deletionTimestamp" in v.ask(pods + "/p").json["metadata"])
    wait_for("conditions", lambda: v.ask("/api/v1/namespaces/x").json["status"].get("conditions"))
    check(not is_gone(v, SECRETS.format("x") + "/needed"), "what the pod may need is there")
    delete(v, pods + "/p?gracePeriodSeconds=0")  # its node has ended it
    wait_for("it is gone", lambda: is_gone(v, "/api/v1/namespaces/x"))


def test_emptying_goes_on_after_a_kill(case):
    v = case.start("--controllers=")
    make(v, "/api/v1/namespaces", "x")
    for i in range(50):
        make(v, SECRETS.format("x"), f"s{i}")
    delete(v, "/api/v1/namespaces/x")
    v.kill()
    v = case.start(ALL)
    wait_for("it begins", lambda: len(names(v, SECRETS.format("x"))) < 50 or is_gone(v, "/api/v1/namespaces/x"))
    v.kill()
    v = case.start(ALL)
    wait_for("it is gone", lambda: is_gone(v, "/api/v1/namespaces/x"))
    equal(names(v, SECRETS.format("x")), [])


# ---- owners ----

def family(v, policy_of_children=(), ns="default"):
    """a owns s0 to s4; s0 owns t0; both a and b own both."""
    maps, secrets = CONFIGMAPS.format(ns), SECRETS.format(ns)
    a, b = make(v, maps, "a"), make(v, maps, "b")
    for i in range(5):
        s = make(v, secrets, f"s{i}", ownerReferences=[owner(a, *policy_of_children)])
        if i == 0:
            make(v, secrets, "t0", ownerReferences=[owner({**s, "kind": "Secret"}, *policy_of_children)])
    make(v, secrets, "both", ownerReferences=[owner(a), owner(b)])
    make(v, secrets, "free")
    return a, b


def test_dependents_go_with_their_owner(case):
    v = case.start(ALL)
    _, b = family(v)
    delete(v, CONFIGMAPS.format("default") + "/a")
    wait_for("dependents go, and theirs", lambda: names(v, SECRETS.format("default")) == ["both", "free"])
    wait_for("it names one owner", lambda: v.ask(SECRETS.format("default") + "/both").json["metadata"]["ownerReferences"] ==
             [owner(b)])
    delete(v, CONFIGMAPS.format("default") + "/b")
    wait_for("the last owner is gone", lambda: names(v, SECRETS.format("default")) == ["free"])


def test_orphans_stay(case):
    v = case.start(ALL)
    _, b = family(v)
    delete(v, CONFIGMAPS.format("default") + "/a", "Orphan")
    wait_for("the owner is gone", lambda: is_gone(v, CONFIGMAPS.format("default") + "/a"))
    equal(names(v, SECRETS.format("default")), ["both", "free", "s0", "s1", "s2", "s3", "s4", "t0"])
    s1 = v.ask(SECRETS.format("default") + "/s1").json["metadata"]
    check("ownerReferences" not in s1, s1)
    equal(v.ask(SECRETS.format("default") + "/both").json["metadata"]["ownerReferences"], [owner(b)])


def test_foreground_waits_for_those_who_block(case):
    v = case.start(ALL)
    family(v, policy_of_children=(True,))
    held = SECRETS.format("default") + "/t0"
    equal(v.ask(held, "PATCH", body='{"metadata":{"finalizers":["example.com/hold"]}}',
                headers=JSON_MERGE).status, 200)
    delete(v, CONFIGMAPS.format("default") + "/a", "Foreground")
    wait_for("who can go goes", lambda: names(v, SECRETS.format("default")) == ["both", "free", "s0", "t0"])
    a = v.ask(CONFIGMAPS.format("default") + "/a").json["metadata"]
    equal(a["finalizers"], ["foregroundDeletion"])  # s0 blocks it, t0 blocks s0
    wait_for("it waits too", lambda: v.ask(SECRETS.format("default") + "/s0").json["metadata"].get("finalizers") ==
             ["foregroundDeletion"])
    equal(v.ask(held, "PATCH", body='{"metadata":{"finalizers":null}}', headers=JSON_MERGE).status, 200)
    wait_for("the owner is gone, last", lambda: is_gone(v, CONFIGMAPS.format("default") + "/a"))
    equal(names(v, SECRETS.format("default")), ["both", "free"])


def test_a_wrong_owner_is_no_owner(case):
    v = case.start(ALL)
    maps, secrets = CONFIGMAPS.format("default"), SECRETS.format("default")
    a = make(v, maps, "a")
    wrong = {**owner(a), "uid": "00000000-0000-0000-0000-000000000000"}
    make(v, secrets, "other-uid", ownerReferences=[wrong])
    make(v, secrets, "unknown-kind", ownerReferences=[{**wrong, "apiVersion": "example.com/v1", "kind": "Thing"}])
    wait_for("who names another uid goes, who cannot be judged stays", lambda: names(v, secrets) == ["unknown-kind"])


def test_owners_that_went_unseen(case):
    v = case.start("--controllers=")
    family(v)
    delete(v, CONFIGMAPS.format("default") + "/a")
    v.kill()
    v = case.start(ALL)
    wait_for("found at the start", lambda: names(v, SECRETS.format("default")) == ["both", "free"])


def test_of_many_kinds_and_scopes(case):
    v = case.start(ALL)
    roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
    r = v.ask(roles, "POST", body={"metadata": {"name": "r"}, "rules": []}).json
    ref = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "r",
           "uid": r["metadata"]["uid"]}
    make(v, "/api/v1/namespaces", "x")
    for path in (SECRETS.format("x"), CONFIGMAPS.format("default"), "/api/v1/namespaces/x/serviceaccounts"):
        make(v, path, "child", ownerReferences=[ref])
    delete(v, roles + "/r")
    for path in (SECRETS.format("x"), CONFIGMAPS.format("default"), "/api/v1/namespaces/x/serviceaccounts"):
        wait_for(path, lambda path=path: is_gone(v, path + "/child"))


# ---- how others find it ----

def test_endpoints_of_the_server(case):
    endpoints = "/api/v1/namespaces/default/endpoints/kubernetes"
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"

    def told(v):
        a = v.ask(endpoints)
        return a.status == 200 and a.json["subsets"]

    def subsets(address, v):
        return [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": v.port, "protocol": "TCP"}]}]
    v = case.start(ALL, "--advertise-address", "192.0.2.9")
    wait_for("endpoints", lambda: told(v) == subsets("192.0.2.9", v))
    equal(v.ask(endpoints).json["metadata"]["labels"], {"endpointslice.kubernetes.io/skip-mirror": "true"})
    wait_for("the slice", lambda: not is_gone(v, slices))
    s = v.ask(slices).json
    equal((s["addressType"], s["endpoints"], s["ports"], s["metadata"]["labels"]),
          ("IPv4", [{"addresses": ["192.0.2.9"], "conditions": {"ready": True}}],
           [{"name": "https", "protocol": "TCP", "port": v.port}], {"kubernetes.io/service-name": "kubernetes"}))
    delete(v, endpoints)
    wait_for("they come back", lambda: told(v) == subsets("192.0.2.9", v))
    # Another server is found elsewhere, and the certificate says its name.
    v.kill()
    v = case.start(ALL, "--advertise-address", "192.0.2.10")
    wait_for("the new address", lambda: told(v) == subsets("192.0.2.10", v))
    wait_for("the new slice", lambda: v.ask(slices).json["endpoints"][0]["addresses"] == ["192.0.2.10"])
    equal(v.ask(slices).json["ports"][0]["port"], v.port)
    r = case.run("--data-dir", "x", "--advertise-address", "127.0.0.1")
    has(r.stderr, "--advertise-address: 127.0.0.1 is not an address")


def test_nobody_else_reaches_it(case):
    """On loopback alone there is nothing to tell."""
    v = case.start(ALL)
    path = CONFIGMAPS.format("kube-system") + "/extension-apiserver-authentication"
    wait_for("the last of them", lambda: not is_gone(v, path))
    equal(names(v, "/api/v1/namespaces/default/endpoints"), [])


def test_certificates_of_clients(case):
    v = case.start(ALL)
    path = CONFIGMAPS.format("kube-system") + "/extension-apiserver-authentication"
    wait_for("the config map", lambda: not is_gone(v, path))
    with open(v.path("pki/client-ca.crt"), encoding="utf-8") as f:
        own_ca = f.read()
    equal(v.ask(path).json["data"], {"client-ca-file": own_ca})
    # What another server has put there stays.
    other = {"client-ca-file": "# other\n", "requestheader-allowed-names": "[]"}
    equal(v.ask(path, "PATCH", body={"data": other}, headers=JSON_MERGE).status, 200)
    v.kill()
    v = case.start(ALL)
    wait_for("both", lambda: v.ask(path).json["data"]["client-ca-file"] == "# other\n" + own_ca)
    equal(v.ask(path).json["data"]["requestheader-allowed-names"], "[]")


# ---- switches ----

def test_each_has_its_switch(case):
    v = case.start("--controllers=*,-serviceaccount-controller,-garbage-collector-controller")
    wait_for("certificate", lambda: own(v, CONFIGMAPS.format("default")) != names(v, CONFIGMAPS.format("default")))
    family(v)
    delete(v, CONFIGMAPS.format("default") + "/a")
    make(v, "/api/v1/namespaces", "x")
    delete(v, "/api/v1/namespaces/x")
    wait_for("namespaces are emptied", lambda: is_gone(v, "/api/v1/namespaces/x"))
    equal(names(v, "/api/v1/serviceaccounts"), [])
    check("s0" in names(v, SECRETS.format("default")), "nobody collects")


def test_a_name_that_is_none(case):
    r = case.run("--data-dir", "x", "--controllers=nosuch")
    equal(r.returncode, 2)
    has(r.stderr, '--controllers: "nosuch" is not in the list of known controllers')


if __name__ == "__main__":
    main(sys.modules[__name__])
