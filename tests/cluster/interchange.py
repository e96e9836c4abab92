#!/usr/bin/env python3
"""interchange.py VIGILD KUBE_APISERVER ETCD - both programs on one etcd show the same objects.

Objects of many kinds are written by one of them, in JSON and in protobuf; the other is started on the same
etcd and must show each the same: as JSON every member, as protobuf every byte, in a list and alone. Then
both write to the objects of the other, which must still be read the same."""
import json
import os
import shutil
import sys
import tempfile

from members import Cluster, Failed, LIMIT_S, enter_private_network, program, skip
from servers import KubeApiserver, VigildOnEtcd
from stream import Client

JSON, PROTOBUF = "application/json", "application/vnd.kubernetes.protobuf"
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
    {"name": "c", "image": "web:1", "ports": [{"containerPort": 80}],
     "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}},
     "env": [{"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
     "readinessProbe": {"httpGet": {"path": "/", "port": 80}}}]}}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "job:1"}]}}}
SELECTOR = {"matchLabels": {"app": "web"}}

# (path of the collection, kind, api version, what is in it)
OBJECTS = [
    ("/api/v1/namespaces", "Namespace", "v1", {}),
    ("/api/v1/nodes", "Node", "v1", {"spec": {"podCIDR": "10.1.0.0/24", "taints": [{"key": "k", "effect": "NoSchedule"}]}}),
    ("/api/v1/namespaces/default/configmaps", "ConfigMap", "v1",
     {"data": {"a": "1", "b": "\u00fc\u4e16\U0001f600<&>"}, "binaryData": {"c": "AAEC"}}),
    ("/api/v1/namespaces/default/secrets", "Secret", "v1", {"stringData": {"p": "sesame"}, "type": "Opaque"}),
    ("/api/v1/namespaces/default/serviceaccounts", "ServiceAccount", "v1", {}),
    ("/api/v1/namespaces/default/pods", "Pod", "v1", {"spec": {**TEMPLATE["spec"], "nodeName": "n1"}}),
    ("/api/v1/namespaces/default/podtemplates", "PodTemplate", "v1", {"template": TEMPLATE}),
    ("/api/v1/namespaces/default/replicationcontrollers", "ReplicationController", "v1",
     {"spec": {"replicas": 2, "selector": {"app": "web"}, "template": TEMPLATE}}),
    ("/api/v1/namespaces/default/persistentvolumeclaims", "PersistentVolumeClaim", "v1",
     {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
    ("/api/v1/persistentvolumes", "PersistentVolume", "v1",
     {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}}}),
    ("/api/v1/namespaces/default/limitranges", "LimitRange", "v1",
     {"spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]}}),
    ("/api/v1/namespaces/default/resourcequotas", "ResourceQuota", "v1", {"spec": {"hard": {"pods": "10k"}}}),
    ("/api/v1/namespaces/default/endpoints", "Endpoints", "v1",
     {"subsets": [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"port": 80}]}]}),
    ("/apis/apps/v1/namespaces/default/deployments", "Deployment", "apps/v1",
     {"spec": {"replicas": 3, "selector": SELECTOR, "template": TEMPLATE}}),
    ("/apis/apps/v1/namespaces/default/replicasets", "ReplicaSet", "apps/v1",
     {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("/apis/apps/v1/namespaces/default/statefulsets", "StatefulSet", "apps/v1",
     {"spec": {"selector": SELECTOR, "template": TEMPLATE, "serviceName": "web"}}),
    ("/apis/apps/v1/namespaces/default/daemonsets", "DaemonSet", "apps/v1",
     {"spec": {"selector": SELECTOR, "template": TEMPLATE}}),
    ("/apis/apps/v1/namespaces/default/controllerrevisions", "ControllerRevision", "apps/v1",
     {"revision": 3, "data": {"any": ["thing", 1, None]}}),
    ("/apis/batch/v1/namespaces/default/cronjobs", "CronJob", "batch/v1",
     {"spec": {"schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB}}}),
    ("/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers", "HorizontalPodAutoscaler", "autoscaling/v2",
     {"spec": {"maxReplicas": 5, "scaleTargetRef": {"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"}}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/ingresses", "Ingress", "networking.k8s.io/v1",
     {"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}}),
    ("/apis/networking.k8s.io/v1/namespaces/default/networkpolicies", "NetworkPolicy", "networking.k8s.io/v1",
     {"spec": {"podSelector": SELECTOR, "ingress": [{"ports": [{"port": 80}]}]}}),
    ("/apis/networking.k8s.io/v1/ingressclasses", "IngressClass", "networking.k8s.io/v1", {"spec": {"controller": "x.io/y"}}),
    ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", "PodDisruptionBudget", "policy/v1",
     {"spec": {"minAvailable": "50%", "selector": SELECTOR}}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", "Role", "rbac.authorization.k8s.io/v1",
     {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", "RoleBinding", "rbac.authorization.k8s.io/v1",
     {"roleRef": {"kind": "Role", "name": "x", "apiGroup": "rbac.authorization.k8s.io"},
      "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}]}),
    ("/apis/storage.k8s.io/v1/storageclasses", "StorageClass", "storage.k8s.io/v1", {"provisioner": "x.io/y"}),
    ("/apis/storage.k8s.io/v1/csidrivers", "CSIDriver", "storage.k8s.io/v1", {"spec": {}}),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", "PriorityClass", "scheduling.k8s.io/v1", {"value": 1000}),
    ("/apis/coordination.k8s.io/v1/namespaces/default/leases", "Lease", "coordination.k8s.io/v1",
     {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.123456Z"}}),
    ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", "EndpointSlice", "discovery.k8s.io/v1",
     {"addressType": "IPv4", "endpoints": [{"addresses": ["10.1.0.1"], "conditions": {"ready": True}}],
      "ports": [{"port": 80}]}),
    ("/apis/events.k8s.io/v1/namespaces/default/events", "Event", "events.k8s.io/v1",
     {"eventTime": "2026-01-02T03:04:05.123456Z", "reason": "Tested", "action": "Test", "type": "Normal",
      "note": "n", "reportingController": "x.io/y", "reportingInstance": "z",
      "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}}),
]


def body_of(kind, version, name, content):
    return {"kind": kind, "apiVersion": version, "metadata": {
        "name": name, "labels": {"made": "here"}, "annotations": {"x.io/note": "a \"quoted\" note"}}, **content}


class Talk:
    """Requests to one server."""

    def __init__(self, server):
        self.server = server

    def ask(self, method, path, body=None, accept=JSON):
        client = Client(self.server, timeout=LIMIT_S)
        try:
            client.send(method, path, body, [("Accept", accept)])
            status, fields = client.head()
            return status, client.body(fields)
        finally:
            client.close()

    def get(self, path, accept=JSON):
        status, data = self.ask("GET", path, None, accept)
        if status != 200:
            raise Failed(f"{self.server.name}: GET {path}: {status} {data[:300]}")
        return json.loads(data) if accept == JSON else data


def create_all(talk, name):
    # Without white space: where a value has no type (RawExtension), kube-apiserver keeps the text in protobuf
    # as it was sent, vigild keeps its meaning.
    for path, kind, version, content in OBJECTS:
        text = json.dumps(body_of(kind, version, name, content), separators=(",", ":")).encode()
        status, data = talk.ask("POST", path, text)
        if status != 201:
            raise Failed(f"{talk.server.name}: cannot make {kind}: {status} {data[:500]}")


def differ(path, what, a, b, problems):
    if a == b:
        return
    if isinstance(a, bytes):
        at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        problems.append(f"{path}: {what}: bytes differ at {at}: {a[max(0, at - 20):at + 40]!r} and {b[max(0, at - 20):at + 40]!r}")
    else:
        problems.append(f"{path}: {what}: {json.dumps(a, sort_keys=True)[:900]}\n    and {json.dumps(b, sort_keys=True)[:900]}")


def compare_all(a, b, name, when):
    problems = []
    for path, _, _, _ in OBJECTS:
        one = f"{path}/{name}"
        differ(one, "as JSON", a.get(one), b.get(one), problems)
        differ(one, "as protobuf", a.get(one, PROTOBUF), b.get(one, PROTOBUF), problems)
        lists = [{o["metadata"]["name"]: o for o in t.get(path)["items"]} for t in (a, b)]
        differ(path, "as a list", *lists, problems)
    if problems:
        raise Failed(f"{when}: {len(problems)} differ\n  " + "\n  ".join(problems[:8]))
    print(f"  {when}: {len(OBJECTS)} kinds, the same in JSON and protobuf, alone and in lists", flush=True)


def change_all(talk, name):
    """A label to each: what the other wrote is decoded and stored anew."""
    for path, kind, _, _ in OBJECTS:
        client = Client(talk.server, timeout=LIMIT_S)
        client.send("PATCH", f"{path}/{name}", {"metadata": {"labels": {"changed": talk.server.name}}},
                    [("Content-Type", "application/merge-patch+json")])
        status, fields = client.head()
        data = client.body(fields)
        client.close()
        if status != 200:
            raise Failed(f"{talk.server.name}: cannot change {kind}: {status} {data[:500]}")


def run(vigild, kube, etcd, media, is_private):
    directory = tempfile.mkdtemp(prefix="vigil-interchange-")
    cluster, servers = Cluster(directory, etcd, is_private, members=1), []
    try:
        flags = ["--storage-media-type", media]
        print(f"{media}, etcd {cluster.version()}", flush=True)
        ours = VigildOnEtcd(vigild, directory, "vigild", cluster.urls, flags)
        servers.append(ours)
        create_all(Talk(ours), "by-vigild")
        theirs = KubeApiserver(kube, directory, "kube", cluster.urls, flags)
        servers.append(theirs)
        compare_all(Talk(ours), Talk(theirs), "by-vigild", "written by vigild, then kube-apiserver is started")
        create_all(Talk(theirs), "by-kube")
        compare_all(Talk(ours), Talk(theirs), "by-kube", "written by kube-apiserver while vigild runs")
        ours.close()
        ours.start()
        compare_all(Talk(ours), Talk(theirs), "by-kube", "vigild is started on what kube-apiserver wrote")
        change_all(Talk(ours), "by-kube")
        change_all(Talk(theirs), "by-vigild")
        for name in ("by-kube", "by-vigild"):
            compare_all(Talk(ours), Talk(theirs), name, f"{name}, changed by the other")
        for path, _, _, _ in OBJECTS:
            for talk, name in ((Talk(ours), "by-kube"), (Talk(theirs), "by-vigild")):
                status, data = talk.ask("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})
                if status not in (200, 202):
                    raise Failed(f"{talk.server.name}: cannot delete {path}/{name}: {status} {data[:300]}")
        ours.close()
    except Failed:
        for s in servers:
            print(f"--- {s.name}\n{s.stderr()[-2000:]}")
        raise
    finally:
        for s in servers:
            if s.alive():
                s.kill()
        cluster.close()
        shutil.rmtree(directory, ignore_errors=True)


def main():
    if not os.environ.get("VG_LONG"):
        skip("a real kube-apiserver is met in the long round (VG_LONG=1)")
    vigild, kube, etcd = (program(p) for p in sys.argv[1:4])
    is_private = enter_private_network()
    try:
        for media in (JSON, PROTOBUF):
            run(vigild, kube, etcd, media, is_private)
    except Failed as e:
        print(f"FAILED: {e}")
        sys.exit(1)


if __name__ == "__main__":
    main()
