"""evictions.py <vigild> - evictions keep to budgets of disruption. The expected answers are a kube-apiserver's."""
import json
import sys
import threading

from vigild import check, equal, has, main

PODS = "/api/v1/namespaces/default/pods"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
MERGE = {"Content-Type": "application/merge-patch+json"}
VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def expect(a, status):
    equal(a.status, status, a.body)
    return a.json


def make_pod(v, name, phase="Running", ready=True, node="n", labels=None):
    expect(v.ask(PODS, "POST", body={"metadata": {"name": name, "labels": labels or {"app": "a"}},
                                     "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]}}), 201)
    status = {"phase": phase, "conditions": [READY] if ready else []}
    expect(v.ask(f"{PODS}/{name}/status", "PATCH", body=json.dumps({"status": status}), headers=MERGE), 200)


def make_budget(v, name, spec=None, **status):
    spec = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1, **(spec or {})}
    expect(v.ask(BUDGETS, "POST", body={"metadata": {"name": name}, "spec": spec}), 201)
    set_budget(v, name, **{"observedGeneration": 1, "currentHealthy": 2, "desiredHealthy": 1, "disruptionsAllowed": 1,
                           "expectedPods": 2, **status})


def set_budget(v, name, **status):
    expect(v.ask(f"{BUDGETS}/{name}/status", "PATCH", body=json.dumps({"status": status}), headers=MERGE), 200)


def budget(v, name):
    return v.ask(f"{BUDGETS}/{name}").json["status"]


def evict(v, name, version="v1", query="", **more):
    return v.ask(f"{PODS}/{name}/eviction{query}", "POST",
                 body={"apiVersion": "policy/" + version, "kind": "Eviction", "metadata": {"name": name}, **more})


def refused(a, cause, retry=None):
    s = expect(a, 429)
    equal([s["message"], s["reason"]], [VIOLATES, "TooManyRequests"])
    equal(s["details"]["causes"], [{"reason": "DisruptionBudget", "message": cause}])
    equal([s["details"].get("retryAfterSeconds"), a.headers.get("retry-after")], [retry, str(retry) if retry else None])


def condition(v, name, kind="DisruptionTarget"):
    return [c for c in v.ask(f"{PODS}/{name}").json["status"].get("conditions", []) if c["type"] == kind]


def test_without_a_budget_it_goes(case):
    v = case.start()
    for name, version in (("a", "v1"), ("b", "v1beta1")):
        make_pod(v, name)
        equal(expect(evict(v, name, version), 201),
              {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})
        pod = v.ask(f"{PODS}/{name}").json
        equal(pod["metadata"]["deletionGracePeriodSeconds"], 30)
        equal([(c["reason"], c["message"], c["status"]) for c in condition(v, name)],
              [("EvictionByEvictionAPI", "Eviction API: evicting", "True")])
    equal(expect(evict(v, "c"), 404)["message"], 'pods "c" not found')
    equal(expect(v.ask(PODS + "/a/eviction", "POST", body={"metadata": {"name": "b"}}), 400)["message"],
          "name in URL does not match name in Eviction object")
    has(expect(evict(v, "a", "v1alpha1"), 400)["message"], 'no kind "Eviction" is registered for version "policy/v1alpha1"')


def test_a_budget_allows_one(case):
    v = case.start()
    make_budget(v, "one")
    make_pod(v, "a")
    make_pod(v, "b")
    expect(evict(v, "a", query="?dryRun=All"), 201)
    expect(evict(v, "a", deleteOptions={"dryRun": ["All"]}), 201)
    equal([budget(v, "one")["disruptionsAllowed"], condition(v, "a")], [1, []])
    expect(evict(v, "a"), 201)
    left = budget(v, "one")
    equal([left["disruptionsAllowed"], list(left["disruptedPods"])], [0, ["a"]])
    equal([(c["type"], c["status"], c["reason"]) for c in left["conditions"]], [("DisruptionAllowed", "False", "InsufficientPods")])
    refused(evict(v, "b"), "The disruption budget one does not allow evicting pods currently")
    equal([v.ask(PODS + "/b").json["metadata"].get("deletionTimestamp"), condition(v, "b")], [None, []])
    set_budget(v, "one", currentHealthy=1)
    refused(evict(v, "b"), "The disruption budget one needs 1 healthy pods and has 1 currently")
    set_budget(v, "one", conditions=[{**left["conditions"][0], "reason": "SyncFailed", "message": "broken"}])
    refused(evict(v, "b"), "The disruption budget one does not allow evicting pods currently because it failed sync: broken")
    set_budget(v, "one", observedGeneration=0)
    refused(evict(v, "b"), "The disruption budget one is still being processed by the server.", 10)
    expect(evict(v, "a"), 201)  # it is going already


def test_several_budgets_are_not_supported(case):
    v = case.start()
    make_pod(v, "a")
    make_budget(v, "one")
    make_budget(v, "two", {"selector": {}})
    equal(expect(evict(v, "a"), 500)["message"],
          "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    make_pod(v, "b", labels={"app": "b"})
    expect(evict(v, "b"), 201)
    equal([budget(v, n)["disruptionsAllowed"] for n in ("one", "two")], [1, 0])


def test_pods_that_count_for_nothing(case):
    v = case.start()
    make_budget(v, "one", disruptionsAllowed=0)
    for phase, node in (("Succeeded", "n"), ("Failed", "n"), ("Pending", "")):
        make_pod(v, phase.lower(), phase, ready=False, node=node)
        expect(evict(v, phase.lower()), 201)
        equal(v.ask(f"{PODS}/{phase.lower()}").status, 404)
    equal(budget(v, "one").get("disruptedPods"), None)


def test_pods_that_are_not_ready(case):
    v = case.start()
    make_budget(v, "one", disruptionsAllowed=0, currentHealthy=1)
    make_pod(v, "a", ready=False)
    expect(evict(v, "a"), 201)  # the others suffice
    set_budget(v, "one", currentHealthy=0)
    make_pod(v, "b", ready=False)
    refused(evict(v, "b"), "The disruption budget one needs 1 healthy pods and has 0 currently")
    expect(v.ask(BUDGETS + "/one", "DELETE"), 200)
    make_budget(v, "two", {"unhealthyPodEvictionPolicy": "AlwaysAllow"}, disruptionsAllowed=0, currentHealthy=0)
    expect(evict(v, "b"), 201)
    make_pod(v, "c")
    refused(evict(v, "c"), "The disruption budget two needs 1 healthy pods and has 0 currently")


def test_options_of_the_deletion(case):
    v = case.start()
    make_pod(v, "a")
    has(expect(evict(v, "a", deleteOptions={"preconditions": {"uid": "x"}}), 409)["message"], "the UID in the precondition (x) does not match")
    has(expect(evict(v, "a", deleteOptions={"preconditions": {"resourceVersion": "1"}}), 409)["message"],
        "the ResourceVersion in the precondition (1) does not match")
    equal(condition(v, "a"), [])
    has(expect(evict(v, "a", deleteOptions={"propagationPolicy": "x"}), 422)["message"], "propagationPolicy: Unsupported value")
    has(expect(evict(v, "a", deleteOptions={"ignoreStoreReadErrorWithClusterBreakingPotential": True}), 422)["message"],
        "can not be set for pod eviction")
    meta = v.ask(PODS + "/a").json["metadata"]
    options = {"gracePeriodSeconds": 7, "preconditions": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}}
    expect(evict(v, "a", deleteOptions=options), 201)
    equal(v.ask(PODS + "/a").json["metadata"]["deletionGracePeriodSeconds"], 7)


def test_many_at_once_take_no_more_than_there_is(case):
    v = case.start()
    make_budget(v, "one", disruptionsAllowed=5, currentHealthy=20)
    names = [f"p{i}" for i in range(16)]
    for name in names:
        make_pod(v, name)
    answers = {}

    def run(name):
        answers[name] = evict(v, name).status

    threads = [threading.Thread(target=run, args=(n,)) for n in names]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(sorted(answers.values()), [201] * 5 + [429] * 11)
    gone = sorted(n for n in names if v.ask(f"{PODS}/{n}").json["metadata"].get("deletionTimestamp"))
    equal(gone, sorted(n for n, s in answers.items() if s == 201))
    equal([budget(v, "one")["disruptionsAllowed"], sorted(budget(v, "one")["disruptedPods"])], [0, gone])
    check(("vigild", "status") in [(m["manager"], m.get("subresource")) for m in v.ask(BUDGETS + "/one").json["metadata"]["managedFields"]],
          "who wrote it")


if __name__ == "__main__":
    main(sys.modules[__name__])
