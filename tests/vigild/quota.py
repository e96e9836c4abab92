"""quota.py <vigild> - quotas: what objects use is counted in the transaction that makes them, so that many who come at
once get exactly what there is; what goes is counted anew. Texts are kube-apiserver's."""
import sys
import threading

from vigild import Vigild, ask_on, check, equal, main, wait_for

CONTROLLER = "--controllers=resourcequota-controller"
PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"
SERVICES = "/api/v1/namespaces/default/services"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
MERGE = {"Content-Type": "application/merge-patch+json"}
SMALL = {"requests": {"cpu": "100m", "memory": "100Mi"}, "limits": {"cpu": "1", "memory": "200Mi"}}


def post(v, path, body, status=201):
    a = v.ask(path, "POST", body=body)
    equal(a.status, status, a.text)
    return a.json


def refused(v, path, body, message):
    equal(post(v, path, body, 403)["message"], message)


def patch(v, path, body, status=200):
    a = v.ask(path, "PATCH", body=body, headers=MERGE)
    equal(a.status, status, a.text)
    return a.json


def pod(name, resources=None, **spec):
    container = {"name": "c", "image": "x:1", **({"resources": resources} if resources else {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def named(name, **spec):
    return {"metadata": {"name": name}, **({"spec": spec} if spec else {})}


def used(v, name="q"):
    return v.ask(f"{QUOTAS}/{name}").json.get("status", {}).get("used")


def wait_used(v, want, name="q"):
    def is_so():
        status = v.ask(f"{QUOTAS}/{name}").json.get("status", {})
        return status.get("used") == want
    try:
        wait_for(want, is_so)
    except Exception:
        equal(used(v, name), want)
        raise


def quota(v, hard, want, name="q", **spec):
    """A quota that has been counted."""
    post(v, QUOTAS, named(name, hard=hard, **spec))
    wait_used(v, want, name)
    equal(v.ask(f"{QUOTAS}/{name}").json["status"]["hard"], hard)


# ---- one after the other ----

def test_pods(case):
    v = case.start(CONTROLLER)
    post(v, PODS, pod("before", SMALL))
    hard = {"limits.memory": "1Gi", "pods": "3", "requests.cpu": "1", "requests.example.com/gpu": "2"}
    quota(v, hard, {"limits.memory": "200Mi", "pods": "1", "requests.cpu": "100m", "requests.example.com/gpu": "0"})
    refused(v, PODS, pod("a"), 'pods "a" is forbidden: failed quota: q: must specify limits.memory for: c; '
                               'requests.cpu for: c')
    refused(v, PODS, pod("a", SMALL, initContainers=[{"name": "i", "image": "x"}, {"name": "b", "image": "x"}]),
            'pods "a" is forbidden: failed quota: q: must specify limits.memory for: b,i; requests.cpu for: b,i')
    gpu = {"requests": {"cpu": "500m", "example.com/gpu": "2"}, "limits": {"memory": "200Mi", "example.com/gpu": "2"}}
    post(v, PODS, pod("a", gpu))
    equal(used(v), {"limits.memory": "400Mi", "pods": "2", "requests.cpu": "600m", "requests.example.com/gpu": "2"})
    refused(v, PODS, pod("b", {"requests": {"cpu": "2"}, "limits": {"memory": "2Gi", "cpu": "3"}}),
            'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=2, used: '
            'limits.memory=400Mi,requests.cpu=600m, limited: limits.memory=1Gi,requests.cpu=1')
    refused(v, PODS, pod("b", gpu), 'pods "b" is forbidden: exceeded quota: q, requested: requests.cpu=500m,'
                                    'requests.example.com/gpu=2, used: requests.cpu=600m,requests.example.com/gpu=2, '
                                    'limited: requests.cpu=1,requests.example.com/gpu=2')
    # A dry run uses nothing, nor does what is refused: the name is taken.
    equal(v.ask(PODS + "?dryRun=All", "POST", body=pod("b", SMALL)).status, 201)
    equal(v.ask(PODS, "POST", body=pod("a", SMALL)).status, 409)
    equal(used(v)["pods"], "2")
    post(v, PODS, pod("b", SMALL))
    refused(v, PODS, pod("c", SMALL),
            'pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3')
    # What has come to its end does not count, nor what is gone.
    patch(v, PODS + "/b/status", {"status": {"phase": "Succeeded"}})
    wait_for("one less", lambda: used(v)["pods"] == "2")
    equal(v.ask(PODS + "/a", "DELETE").status, 200)
    wait_used(v, {"limits.memory": "200Mi", "pods": "1", "requests.cpu": "100m", "requests.example.com/gpu": "0"})
    # More is allowed from now on, and something else.
    patch(v, QUOTAS + "/q", {"spec": {"hard": {"pods": "10", "count/pods": "2", "requests.cpu": None}}})
    wait_used(v, {"count/pods": "2", "limits.memory": "200Mi", "pods": "1", "requests.example.com/gpu": "0"})
    refused(v, PODS, pod("c", SMALL),
            'pods "c" is forbidden: exceeded quota: q, requested: count/pods=1, used: count/pods=2, limited: '
            'count/pods=2')
    equal(v.ask(QUOTAS + "/q", "DELETE").status, 200)
    post(v, PODS, pod("c"))


def test_counts(case):
    v = case.start(CONTROLLER)
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    quota(v, {"count/deployments.apps": "1", "count/nosuch.group": "2", "resourcequotas": "1", "secrets": "1"},
          {"count/deployments.apps": "0", "resourcequotas": "1", "secrets": "0"})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    post(v, deployments, named("d", **spec))
    refused(v, deployments, named("e", **spec),
            'deployments.apps "e" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, used: '
            'count/deployments.apps=1, limited: count/deployments.apps=1')
    secrets = "/api/v1/namespaces/default/secrets"
    post(v, secrets, named("s"))
    refused(v, secrets, named("t"),
            'secrets "t" is forbidden: exceeded quota: q, requested: secrets=1, used: secrets=1, limited: secrets=1')
    refused(v, QUOTAS, named("other", hard={"pods": "1"}),
            'resourcequotas "other" is forbidden: exceeded quota: q, requested: resourcequotas=1, used: '
            'resourcequotas=1, limited: resourcequotas=1')
    # Of another namespace nothing is counted.
    post(v, "/api/v1/namespaces", named("free"))
    post(v, secrets.replace("default", "free"), named("t"))
    equal(v.ask(secrets + "/s", "DELETE").status, 200)
    wait_for("nothing left", lambda: used(v)["secrets"] == "0")
    # PUT and apply may create too.
    a = v.ask(secrets + "/t?fieldManager=m", "PATCH", body={"apiVersion": "v1", "kind": "Secret", **named("t")},
              headers={"Content-Type": "application/apply-patch+yaml"})
    equal(a.status, 201, a.text)
    equal(used(v)["secrets"], "1")


def test_services(case):
    v = case.start(CONTROLLER)
    quota(v, {"services": "3", "services.loadbalancers": "1", "services.nodeports": "3"},
          {"services": "0", "services.loadbalancers": "0", "services.nodeports": "0"})

    def service(name, **spec):
        return named(name, ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "b"}], **spec)
    post(v, SERVICES, service("a"))
    post(v, SERVICES, service("b", type="NodePort"))
    refused(v, SERVICES, service("c", type="NodePort"),
            'services "c" is forbidden: exceeded quota: q, requested: services.nodeports=2, used: '
            'services.nodeports=2, limited: services.nodeports=3')
    post(v, SERVICES, service("d", type="LoadBalancer", allocateLoadBalancerNodePorts=False))
    equal(used(v), {"services": "3", "services.loadbalancers": "1", "services.nodeports": "2"})
    equal(patch(v, SERVICES + "/a", {"spec": {"type": "LoadBalancer"}}, 403)["message"],
          'services "a" is forbidden: exceeded quota: q, requested: services.loadbalancers=1,services.nodeports=2, '
          'used: services.loadbalancers=1,services.nodeports=2, limited: services.loadbalancers=1,'
          'services.nodeports=3')
    ports = [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}]
    patch(v, SERVICES + "/b", {"spec": {"type": "ClusterIP", "ports": ports}})
    wait_for("ports given back", lambda: used(v)["services.nodeports"] == "0")
    patch(v, SERVICES + "/a", {"spec": {"type": "NodePort"}})
    equal(used(v)["services.nodeports"], "2")


def test_claims(case):
    v = case.start(CONTROLLER)
    gold = "gold.storageclass.storage.k8s.io/"
    quota(v, {gold + "persistentvolumeclaims": "2", gold + "requests.storage": "5Gi", "requests.storage": "10Gi"},
          {gold + "persistentvolumeclaims": "0", gold + "requests.storage": "0", "requests.storage": "0"})

    def claim(name, size, **spec):
        return named(name, accessModes=["ReadWriteOnce"], resources={"requests": {"storage": size}}, **spec)
    post(v, CLAIMS, claim("a", "4Gi"))
    post(v, CLAIMS, claim("b", "4Gi", storageClassName="gold"))
    refused(v, CLAIMS, claim("c", "1.5Gi", storageClassName="gold"),
            f'persistentvolumeclaims "c" is forbidden: exceeded quota: q, requested: {gold}requests.storage=1536Mi, '
            f'used: {gold}requests.storage=4Gi, limited: {gold}requests.storage=5Gi')
    equal(used(v), {gold + "persistentvolumeclaims": "1", gold + "requests.storage": "4Gi", "requests.storage": "8Gi"})


def test_scopes(case):
    v = case.start(CONTROLLER)
    post(v, "/apis/scheduling.k8s.io/v1/priorityclasses", {**named("high"), "value": 5})
    quota(v, {"pods": "1"}, {"pods": "0"}, "best", scopes=["BestEffort"])
    quota(v, {"pods": "1"}, {"pods": "0"}, "ending", scopes=["Terminating", "NotBestEffort"])
    expression = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    quota(v, {"pods": "1"}, {"pods": "0"}, "high", scopeSelector={"matchExpressions": [expression]})
    quota(v, {"pods": "1"}, {"pods": "0"}, "far", scopes=["CrossNamespacePodAffinity"])
    message = 'pods "x" is forbidden: exceeded quota: {}, requested: pods=1, used: pods=1, limited: pods=1'
    term = {"topologyKey": "k", "labelSelector": {}, "namespaces": ["other"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name, more in (("best", {}), ("ending", {"resources": SMALL, "activeDeadlineSeconds": 5}),
                       ("high", {"resources": SMALL, "priorityClassName": "high"}),
                       ("far", {"resources": SMALL, "affinity": affinity})):
        post(v, PODS, pod("of-" + name, **more))
        refused(v, PODS, pod("x", **more), message.format(name))
    post(v, PODS, pod("free", SMALL))
    post(v, PODS, pod("free-too", SMALL))
    # An update that brings a pod into a scope counts it there.
    equal(patch(v, PODS + "/free", {"spec": {"activeDeadlineSeconds": 9}}, 403)["message"],
          message.replace('"x"', '"free"').format("ending"))
    for name in ("best", "ending", "high", "far"):
        equal(used(v, name), {"pods": "1"}, name)


def test_nobody_counts(case):
    """As on a server without its controller manager: nothing is limited that nobody has counted."""
    v = case.start()
    post(v, QUOTAS, named("q", hard={"pods": "0"}))
    post(v, PODS, pod("a"))
    equal(used(v), None)
    a = v.ask(QUOTAS + "/q/status", "PATCH", body={"status": {"hard": {"pods": "1"}}}, headers=MERGE)
    equal(a.status, 200, a.text)
    refused(v, PODS, pod("b"), 'pods "b" is forbidden: status unknown for quota: q, resources: pods')
    v = case.start("--disable-admission-plugins=ResourceQuota", CONTROLLER, data="other")
    quota(v, {"pods": "0"}, {"pods": "0"})
    post(v, PODS, pod("a"))


def test_it_goes_on_after_a_kill(case):
    v = case.start(CONTROLLER)
    quota(v, {"pods": "2"}, {"pods": "0"})
    post(v, PODS, pod("a"))
    v.kill()
    v = case.start(CONTROLLER)
    post(v, PODS, pod("b"))
    equal(post(v, PODS, pod("c"), 403)["reason"], "Forbidden")
    equal(v.ask(PODS + "/a", "DELETE").status, 200)
    wait_used(v, {"pods": "1"})
    post(v, PODS, pod("c"))


# ---- all at once ----

def race(servers, n, make):
    """Each of n clients asks until it is refused; how many answers there were of each status."""
    lock, counts = threading.Lock(), {}

    def client(i):
        server = servers[i % len(servers)]
        connection = server.connect(server.admin())
        for k in range(20):
            path, body = make(i, k)
            status = ask_on(connection, path, "POST", body).status
            with lock:
                counts[status] = counts.get(status, 0) + 1
            if status != 201:
                break
        connection.close()
    threads = [threading.Thread(target=client, args=(i,)) for i in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return counts


def test_race(case):
    """32 clients, some on each server where several share a store, and ten places."""
    v = case.start(CONTROLLER)
    servers = [v]
    if case.etcds:
        servers.append(Vigild(case.binary, case.path("second"), "--etcd-servers", case.etcds["data"].url, CONTROLLER))
        case.servers.append(servers[1])
    quota(v, {"count/configmaps": "100", "pods": "10"}, {"count/configmaps": "0", "pods": "0"})
    for s in servers:
        wait_for("the quota", lambda s=s: used(s))
    counts = race(servers, 32, lambda i, k: (PODS, pod(f"p-{i}-{k}")))
    equal(counts, {201: 10, 403: 32})
    equal(len(v.ask(PODS).json["items"]), 10)
    equal(used(v)["pods"], "10")


def test_race_with_the_first_count(case):
    """Pods that come while nobody has counted yet are counted all the same, and the count stays exact while they come
    and go."""
    v = case.start(CONTROLLER)
    stop = threading.Event()

    def churn(i):
        connection = v.connect(v.admin())
        k = 0
        while not stop.is_set():
            k += 1
            if ask_on(connection, PODS, "POST", pod(f"p-{i}-{k}")).status == 201 and k % 2:
                ask_on(connection, f"{PODS}/p-{i}-{k}", "DELETE")
        connection.close()
    threads = [threading.Thread(target=churn, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    try:
        post(v, QUOTAS, named("q", hard={"pods": "200"}))
        wait_for("many", lambda: len(v.ask(PODS).json["items"]) >= 190)
    finally:
        stop.set()
        for t in threads:
            t.join()
    n = len(v.ask(PODS).json["items"])
    wait_used(v, {"pods": str(n)})
    check(n <= 200, f"{n} were let in")


if __name__ == "__main__":
    main(sys.modules[__name__])
