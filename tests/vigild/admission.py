"""admission.py <vigild> - what the plugins of admission set and refuse, in kube-apiserver's words: priorities of pods,
limit ranges, default classes, runtime classes. Each by its switch."""
import sys

from vigild import equal, has, main

PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
RANGES = "/api/v1/namespaces/default/limitranges"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
MERGE = {"Content-Type": "application/merge-patch+json"}


def post(v, path, body, status=201):
    a = v.ask(path, "POST", body=body)
    equal(a.status, status, a.text)
    return a.json


def refused(v, path, body, message):
    equal(post(v, path, body, 403)["message"], message)


def pod(name, resources=None, **spec):
    container = {"name": "c", "image": "x:1", **({"resources": resources} if resources else {})}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def priority_class(name, value, **more):
    return {"metadata": {"name": name}, "value": value, **more}


def limit_range(name, *items):
    return {"metadata": {"name": name}, "spec": {"limits": list(items)}}


# ---- priorities ----

def priority_of(o):
    return [o["spec"].get(k) for k in ("priorityClassName", "priority", "preemptionPolicy")]


def test_priority_of_a_class(case):
    v = case.start()
    equal(priority_of(post(v, PODS, pod("plain"))), [None, 0, "PreemptLowerPriority"])
    refused(v, PODS, pod("a", priorityClassName="none"),
            'pods "a" is forbidden: no PriorityClass with name none was found')
    o = pod("a", priorityClassName="none")
    o["metadata"] = {"generateName": "gen-"}
    refused(v, PODS, o, 'pods "gen-" is forbidden: no PriorityClass with name none was found')
    post(v, PRIORITIES, priority_class("high", 1000, preemptionPolicy="Never"))
    equal(priority_of(post(v, PODS, pod("b", priorityClassName="high"))), ["high", 1000, "Never"])
    post(v, PODS, pod("c", priorityClassName="high", priority=1000))
    refused(v, PODS, pod("d", priorityClassName="high", priority=5),
            'pods "d" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority '
            'admission controller computed 1000 from the given PriorityClass name')
    refused(v, PODS, pod("d", priorityClassName="high", preemptionPolicy="PreemptLowerPriority"),
            'pods "d" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided '
            'in pod spec; priority admission controller computed Never from the given PriorityClass name')
    # Nobody owns what the server set, and an update need not say it.
    a = v.ask(PODS + "/b").json
    equal("'f:priority'" in str(a["metadata"]["managedFields"]), False, a)
    a = v.ask(PODS + "/b", "PUT", body=pod("b", priorityClassName="high"))
    equal(priority_of(a.json), ["high", 1000, "Never"], a.text)
    a = v.ask(PODS + "/b", "PATCH", body={"spec": {"priority": 3}}, headers=MERGE)
    equal(a.status, 422, a.text)


def test_default_of_all(case):
    v = case.start()
    post(v, PRIORITIES, priority_class("usual", 7, globalDefault=True))
    equal(priority_of(post(v, PODS, pod("a"))), ["usual", 7, "PreemptLowerPriority"])
    message = ('priorityclasses.scheduling.k8s.io "{}" is forbidden: PriorityClass usual is already marked as '
               'default. Only one default can exist')
    refused(v, PRIORITIES, priority_class("other", 8, globalDefault=True), message.format("other"))
    post(v, PRIORITIES, priority_class("other", 8))
    a = v.ask(PRIORITIES + "/other", "PATCH", body={"globalDefault": True}, headers=MERGE)
    equal((a.status, a.json["message"]), (403, message.format("other")))
    a = v.ask(PRIORITIES + "/usual", "PATCH", body={"globalDefault": False}, headers=MERGE)
    equal(a.status, 200, a.text)
    equal(priority_of(post(v, PODS, pod("b"))), [None, 0, "PreemptLowerPriority"])
    equal(v.ask(PRIORITIES + "/other", "PATCH", body={"globalDefault": True}, headers=MERGE).status, 200)
    equal(priority_of(post(v, PODS, pod("c"))), ["other", 8, "PreemptLowerPriority"])
    equal(v.ask(PRIORITIES + "/other", "DELETE").status, 200)
    equal(priority_of(post(v, PODS, pod("d"))), [None, 0, "PreemptLowerPriority"])


# ---- limit ranges ----

CONTAINERS = {"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}, "defaultRequest": {"cpu": "100m"},
              "min": {"cpu": "50m"}, "max": {"cpu": "2", "memory": "1Gi"}, "maxLimitRequestRatio": {"cpu": "10"}}


def test_limit_range_gives(case):
    v = case.start()
    post(v, RANGES, limit_range("l", CONTAINERS))
    o = pod("a", initContainers=[{"name": "i", "image": "x", "resources": {"limits": {"cpu": "1"}}}])
    o["metadata"]["annotations"] = {"a": "b", "z": "y"}
    o = post(v, PODS, o)
    equal(o["spec"]["containers"][0]["resources"],
          {"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "512Mi"}})
    equal(o["spec"]["initContainers"][0]["resources"],
          {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "1", "memory": "512Mi"}})
    equal(list(o["metadata"]["annotations"].items()),
          [("a", "b"),
           ("kubernetes.io/limit-ranger",
            "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c; "
            "memory request for init container i; memory limit for init container i"), ("z", "y")])
    equal(o["status"]["qosClass"], "Burstable")
    # Another namespace has none of it, and a pod that says all is as it says.
    post(v, "/api/v1/namespaces", {"metadata": {"name": "free"}})
    o = post(v, PODS.replace("default", "free"), pod("a"))
    equal((o["spec"]["containers"][0]["resources"], o["metadata"].get("annotations")), ({}, None))
    says = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}}
    o = post(v, PODS, pod("b", says))
    equal((o["spec"]["containers"][0]["resources"], o["metadata"].get("annotations")), (says, None))


def test_limit_range_refuses(case):
    v = case.start()
    post(v, RANGES, limit_range("l", CONTAINERS))
    refused(v, PODS, pod("a", {"limits": {"cpu": "3"}}),
            'pods "a" is forbidden: maximum cpu usage per Container is 2, but limit is 3')
    refused(v, PODS, pod("a", {"requests": {"cpu": "10m"}, "limits": {"memory": "2Gi"}}),
            'pods "a" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, maximum memory usage '
            'per Container is 1Gi, but limit is 2Gi, cpu max limit to request ratio per Container is 10, but provided '
            'ratio is 50.000000]')
    refused(v, PODS, pod("a", {"requests": {"cpu": "60m"}, "limits": {"cpu": "1"}}),
            'pods "a" is forbidden: cpu max limit to request ratio per Container is 10, but provided ratio is '
            '16.666667')
    equal(v.ask(RANGES + "/l", "DELETE").status, 200)
    post(v, PODS, pod("a", {"limits": {"cpu": "3"}}))
    post(v, RANGES, limit_range("m", {"type": "Pod", "max": {"cpu": "1", "memory": "600Mi"}, "min": {"cpu": "200m"}}))
    refused(v, PODS, pod("b"),
            'pods "b" is forbidden: [minimum cpu usage per Pod is 200m.  No request is specified, maximum cpu usage '
            'per Pod is 1.  No limit is specified, maximum memory usage per Pod is 600Mi.  No limit is specified]')
    init = [{"name": "side", "image": "x", "restartPolicy": "Always", "resources": {"limits": {"cpu": "300m"}}},
            {"name": "first", "image": "x", "resources": {"limits": {"cpu": "800m"}}}]
    refused(v, PODS, pod("b", {"limits": {"cpu": "200m", "memory": "1Mi"}}, initContainers=init),
            'pods "b" is forbidden: maximum cpu usage per Pod is 1, but limit is 1100m')


def claim(name, size, **spec):
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                 "resources": {"requests": {"storage": size}}, **spec}}


def test_limit_range_of_claims(case):
    v = case.start()
    post(v, RANGES, limit_range("l", {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"},
                                      "max": {"storage": "10Gi"}}))
    refused(v, CLAIMS, claim("a", "500Mi"), 'persistentvolumeclaims "a" is forbidden: minimum storage usage per '
                                            'PersistentVolumeClaim is 1Gi, but request is 500Mi')
    refused(v, CLAIMS, claim("a", "20Gi"), 'persistentvolumeclaims "a" is forbidden: maximum storage usage per '
                                           'PersistentVolumeClaim is 10Gi, but request is 20Gi')
    post(v, CLAIMS, claim("a", "5Gi"))


# ---- classes ----

def test_default_classes(case):
    v = case.start()
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    equal(post(v, CLAIMS, claim("before", "1Gi"))["spec"].get("storageClassName"), None)
    for name, says in (("slow", "false"), ("fast", "true")):
        post(v, classes, {"metadata": {"name": name, "annotations":
                                       {"storageclass.kubernetes.io/is-default-class": says}}, "provisioner": "x"})
    equal(post(v, CLAIMS, claim("a", "1Gi"))["spec"]["storageClassName"], "fast")
    equal(post(v, CLAIMS, claim("b", "1Gi", storageClassName=""))["spec"]["storageClassName"], "")
    equal(post(v, CLAIMS, claim("c", "1Gi", storageClassName="slow"))["spec"]["storageClassName"], "slow")
    o = claim("d", "1Gi")
    o["metadata"]["annotations"] = {"volume.beta.kubernetes.io/storage-class": "slow"}
    equal(post(v, CLAIMS, o)["spec"].get("storageClassName"), None)
    post(v, "/apis/networking.k8s.io/v1/ingressclasses",
         {"metadata": {"name": "front", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}},
          "spec": {"controller": "x.io/y"}})
    o = {"metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 1}}}}}
    equal(post(v, "/apis/networking.k8s.io/v1/namespaces/default/ingresses", o)["spec"]["ingressClassName"], "front")


def test_runtime_class(case):
    v = case.start()
    post(v, "/apis/node.k8s.io/v1/runtimeclasses",
         {"metadata": {"name": "vm"}, "handler": "h", "overhead": {"podFixed": {"cpu": "10m", "memory": "1Mi"}},
          "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}})
    o = post(v, PODS, pod("a", runtimeClassName="vm", nodeSelector={"c": "d"}))["spec"]
    equal((o["overhead"], o["nodeSelector"]), ({"cpu": "10m", "memory": "1Mi"}, {"a": "b", "c": "d"}))
    equal([t["key"] for t in o["tolerations"]], ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "k"])
    refused(v, PODS, pod("b", runtimeClassName="none"),
            'pods "b" is forbidden: pod rejected: RuntimeClass "none" not found')
    refused(v, PODS, pod("b", runtimeClassName="vm", nodeSelector={"a": "c"}),
            'pods "b" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] '
            '= c')
    refused(v, PODS, pod("b", runtimeClassName="vm", overhead={"cpu": "11m"}),
            'pods "b" is forbidden: pod rejected: Pod\'s Overhead doesn\'t match RuntimeClass\'s defined Overhead')
    refused(v, PODS, pod("b", overhead={"cpu": "11m"}),
            'pods "b" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead')


# ---- accounts ----

TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def test_service_accounts(case):
    v = case.start("--enable-admission-plugins=ServiceAccount")
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    refused(v, PODS, pod("a"), 'pods "a" is forbidden: error looking up service account default/default: '
                               'serviceaccount "default" not found')
    post(v, accounts, {"metadata": {"name": "default"}})
    o = post(v, PODS, pod("a", initContainers=[{"name": "i", "image": "x", "volumeMounts":
                                                [{"name": "own", "mountPath": TOKEN_PATH}]}],
                          volumes=[{"name": "own", "emptyDir": {}}]))["spec"]
    equal((o["serviceAccountName"], o["serviceAccount"]), ("default", "default"))
    volume = o["volumes"][1]
    equal(volume["name"].startswith("kube-api-access-"), True, volume)
    equal([list(s) for s in volume["projected"]["sources"]], [["serviceAccountToken"], ["configMap"], ["downwardAPI"]])
    equal(o["containers"][0]["volumeMounts"], [{"name": volume["name"], "readOnly": True, "mountPath": TOKEN_PATH}])
    equal(len(o["initContainers"][0]["volumeMounts"]), 1)
    post(v, accounts, {"metadata": {"name": "quiet"}, "automountServiceAccountToken": False,
                       "imagePullSecrets": [{"name": "pull"}]})
    o = post(v, PODS, pod("b", serviceAccountName="quiet"))["spec"]
    equal((o.get("volumes"), o["imagePullSecrets"]), (None, [{"name": "pull"}]))
    o = post(v, PODS, pod("c", serviceAccountName="quiet", automountServiceAccountToken=True))["spec"]
    equal(len(o["volumes"]), 1)


# ---- switches ----

def test_switches(case):
    v = case.start("--disable-admission-plugins=Priority,LimitRanger,ServiceAccount",
                   "--enable-admission-plugins=TaintNodesByCondition")
    post(v, RANGES, limit_range("l", CONTAINERS))
    o = post(v, PODS, pod("a", priorityClassName="none"))["spec"]
    equal((o.get("priority"), o["containers"][0]["resources"]), (None, {}))
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    equal(post(v, "/api/v1/nodes", {"metadata": {"name": "n"}})["spec"]["taints"], [taint])
    for flag, why in (("--enable-admission-plugins=Nosuch", 'enable-admission-plugins plugin "Nosuch" is unknown'),
                      ("--enable-admission-plugins=PodSecurity", '"PodSecurity" is not served by vigil'),
                      ("--disable-admission-plugins=NamespaceLifecycle", "always on")):
        r = case.run("--data-dir", "x", flag)
        equal(r.returncode != 0, True, flag)
        has(r.stderr, why)


def test_without_a_cache(case):
    """What admission goes by is in memory also when nothing else is."""
    v = case.start("--watch-cache=false")
    post(v, PRIORITIES, priority_class("high", 1000))
    equal(priority_of(post(v, PODS, pod("a", priorityClassName="high"))), ["high", 1000, "PreemptLowerPriority"])
    equal(v.ask(PRIORITIES + "/high").status, 200)


if __name__ == "__main__":
    main(sys.modules[__name__])
