#!/usr/bin/env python3
"""Random writes of several managers, sent to two servers: do objects and managedFields agree?

usage: managers_diff.py SERVER [--seed N] [--rounds N]

SERVER is as for replay.py. VG_PEER is the URL of a kube-apiserver with its token: https://token@127.0.0.1:port. Each
round makes an object and lets managers create, update, patch and apply it, forced or not, on the object, its
status and its scale; after each request status code, message, and the object without what a server chooses
must be the same on both. What to repeat a failure with is printed first.
"""
import http.client
import json
import os
import random
import ssl
import subprocess
import sys
import urllib.parse

from replay import Client, normal

MANAGERS = ["m1", "m2", "m3", "m4"]
NAMESPACE = "managers-diff"


class Peer(Client):
    """The same over TLS, with a token."""
    def __init__(self, url):
        u = urllib.parse.urlparse(url)
        super().__init__(u.port)
        self.token = u.username

    def send(self, method, path, headers=None, body=None):
        conn = http.client.HTTPSConnection("127.0.0.1", self.port, context=ssl._create_unverified_context())
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        conn.request(method, path, data, {"Authorization": "Bearer " + self.token, "User-Agent": "", **(headers or {})})
        r = conn.getresponse()
        text = r.read()
        conn.close()
        try:
            return r.status, [], json.loads(text)
        except ValueError:
            return r.status, [], text.decode()


def some(r, options, most=3):
    return r.sample(options, r.randint(0, min(most, len(options))))


def labels(r):
    return {k: r.choice(["1", "2"]) for k in some(r, ["a", "b", "c"])}


def meta(r, name):
    m = {"name": name}
    if r.random() < 0.4:
        m["labels"] = labels(r)
    if r.random() < 0.3:
        m["annotations"] = labels(r)
    if r.random() < 0.2:
        m["finalizers"] = some(r, ["e.com/a", "e.com/b", "e.com/c"])
    return m


def container(r, name, full):
    c = {"name": name}
    if full or r.random() < 0.7:
        c["image"] = r.choice(["i:1", "i:2"])
    if r.random() < 0.5:
        c["env"] = [{"name": n, "value": r.choice("12")} for n in some(r, ["A", "B", "C"])]
    if r.random() < 0.5:
        c["ports"] = [{"containerPort": p, "protocol": r.choice(["TCP", "UDP"])} if r.random() < 0.5 else
                      {"containerPort": p} for p in some(r, [80, 443, 8080])]
    if r.random() < 0.3:
        c["resources"] = {"requests": {"cpu": r.choice(["1", "2"])}}
    if r.random() < 0.2:
        c["command"] = r.choice([["a"], ["b", "c"]])
    return c


def config_map(r, name, full):
    o = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta(r, name)}
    if full or r.random() < 0.9:
        o["data"] = labels(r)
    if r.random() < 0.2:
        o["binaryData"] = {"x": r.choice(["MQ==", "Mg=="])}
    return o


def template(r, full):
    names = ["c1"] + some(r, ["c2", "c3"]) if full else some(r, ["c1", "c2", "c3"])
    spec = {"containers": [container(r, n, full or n != "c1") for n in names]}
    if r.random() < 0.3:
        spec["tolerations"] = [{"key": k, "operator": "Exists"} for k in some(r, ["a", "b"])]
    if r.random() < 0.3:
        spec["nodeSelector"] = labels(r)
    if r.random() < 0.2:
        spec["terminationGracePeriodSeconds"] = r.choice([5, 6])
    return {"metadata": {"labels": {"app": "x", **labels(r)}}, "spec": spec}


def deployment(r, name, full):
    o = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(r, name), "spec": {}}
    if full:
        o["spec"]["selector"] = {"matchLabels": {"app": "x"}}
    if full or r.random() < 0.7:
        o["spec"]["template"] = template(r, full)
    if r.random() < 0.5:
        o["spec"]["replicas"] = r.choice([0, 1, 2])
    if r.random() < 0.2:
        o["spec"]["strategy"] = {"type": "Recreate"} if r.random() < 0.3 else {
            "rollingUpdate": {"maxSurge": r.choice([1, "30%"])}}
    return o


def status_of(r, name, kind):
    conditions = [{"type": t, "status": r.choice(["True", "False"])} for t in some(r, ["A", "B", "C"])]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "status": {"conditions": conditions, "observedGeneration": r.choice([1, 2])}}


KINDS = [("configmaps", "/api/v1", config_map), ("deployments", "/apis/apps/v1", deployment)]


def request(r, path, name, resource, make):
    """Method, path, Content-Type and body of one write; None for a body: what is there, changed."""
    who = f"fieldManager={r.choice(MANAGERS)}"
    force = "&force=true" if r.random() < 0.5 else ""
    how = r.random()
    if resource == "deployments" and how < 0.12:
        return ("PATCH", f"{path}/status?{who}{force}", "application/apply-patch+yaml",
                status_of(r, name, "Deployment"))
    if resource == "deployments" and how < 0.18:
        return ("PATCH", f"{path}/scale?{who}", "application/merge-patch+json",
                {"spec": {"replicas": r.choice([0, 1, 2, 3])}})
    if how < 0.55:
        return ("PATCH", f"{path}?{who}{force}", "application/apply-patch+yaml", make(r, name, r.random() < 0.6))
    if how < 0.70:
        body = make(r, name, False)
        for k in ("apiVersion", "kind"):
            body.pop(k)
        return ("PATCH", f"{path}?{who}", "application/merge-patch+json", body)
    if how < 0.80:
        body = make(r, name, False)
        return ("PATCH", f"{path}?{who}", "application/strategic-merge-patch+json", body)
    if how < 0.85:
        return ("PATCH", f"{path}?{who}", "application/merge-patch+json",
                {"metadata": {"managedFields": r.choice([[], [{}]])}})
    return ("PUT", f"{path}?{who}", "application/json", make(r, name, True))


def look(answer):
    return normal(answer[2]) if isinstance(answer[2], (dict, list)) else answer[2]




def main():
    args = sys.argv[1:]
    seed = int(args[args.index("--seed") + 1]) if "--seed" in args else random.randrange(1 << 30)
    rounds = int(args[args.index("--rounds") + 1]) if "--rounds" in args else 50
    if not os.environ.get("VG_PEER"):
        sys.exit("VG_PEER names no kube-apiserver")
    server = None
    if not args[0].isdigit():
        server = subprocess.Popen([args[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        args[0] = server.stdout.readline().split()[1]
    sides = [Client(int(args[0])), Peer(os.environ["VG_PEER"])]
    for s in sides:
        s.send("POST", "/api/v1/namespaces", {"Content-Type": "application/json"}, {"metadata": {"name": NAMESPACE}})
    failures = n = 0
    for i in range(rounds):
        r = random.Random(seed + i)
        resource, root, make = r.choice(KINDS)
        name = f"r{seed + i}"
        collection = f"{root}/namespaces/{NAMESPACE}/{resource}"
        path = f"{collection}/{name}"
        steps = []
        if r.random() < 0.5:
            steps.append(("POST", f"{collection}?fieldManager={r.choice(MANAGERS)}", "application/json",
                          make(r, name, True)))
        while len(steps) < 8:
            steps.append(request(r, path, name, resource, make))
        for k, (method, target, ctype, body) in enumerate(steps):
            got = [s.send(method, target, {"Content-Type": ctype}, body) for s in sides]
            n += 1
            if got[0][0] != got[1][0] or look(got[0]) != look(got[1]):
                failures += 1
                a, b = (json.dumps(look(g), sort_keys=True) for g in got)
                at = max(0, next((x for x, (p, q) in enumerate(zip(a, b)) if p != q), 0) - 200)
                print(f"--- seed {seed + i} step {k}: {method} {target} {ctype}\n  body {json.dumps(body)}\n"
                      f"  ours {got[0][0]} ...{a[at:at + 700]}\n  peer {got[1][0]} ...{b[at:at + 700]}")
                break
        for s in sides:
            s.send("PATCH", path, {"Content-Type": "application/merge-patch+json"}, {"metadata": {"finalizers": None}})
            s.send("DELETE", path)
    if server:
        server.stdin.close()
        server.wait()
    print(f"seed {seed}: {n} requests, {failures} of {rounds} rounds differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
