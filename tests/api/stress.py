#!/usr/bin/env python3
"""Many clients write the same few objects in every way there is, and some leave before the answer.

usage: stress.py SERVER ENGINE [OPERATIONS]

SERVER is a program that prints "port N" and serves until its input ends (serve.c). Whatever the
order of things, no request may be answered with a 5xx, no connection may be cut by the server, and
the server must end well. VG_SEED repeats a run as far as threads can be repeated.
"""
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import threading

THREADS = 8
JSON = {"Content-Type": "application/json"}
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
COLLECTIONS = {
    "pods": "/api/v1/namespaces/ns/pods",
    "configmaps": "/api/v1/namespaces/ns/configmaps",
    "events": "/api/v1/namespaces/ns/events",
    "deployments": "/apis/apps/v1/namespaces/ns/deployments",
    "jobs": "/apis/batch/v1/namespaces/ns/jobs",
    "leases": "/apis/coordination.k8s.io/v1/namespaces/ns/leases",
    "namespaces": "/api/v1/namespaces",
}
DELETE_OPTIONS = ("", "?gracePeriodSeconds=0", "?propagationPolicy=Foreground",
                  "?propagationPolicy=Background", "?dryRun=All")


def some_object(rng, kind, name):
    meta = {"name": name}
    if rng.random() < 0.3:
        meta["finalizers"] = ["x.io/%d" % rng.randrange(2)]
    if kind == "configmaps":
        return {"metadata": meta, "data": {"a": str(rng.randrange(5))}}
    if kind == "events":
        return {"metadata": meta, "message": "x", "involvedObject": {"namespace": "ns"}}
    spec = {}
    if kind in ("deployments", "jobs"):
        pod = {"containers": [{"name": "c", "image": "i"}]}
        spec = {"template": {"metadata": {"labels": {"a": "b"}}, "spec": pod}}
    if kind == "deployments":
        spec.update(replicas=rng.randrange(3), selector={"matchLabels": {"a": "b"}})
    if kind == "jobs":
        pod["restartPolicy"] = "Never"
    if kind == "pods" and rng.random() < 0.5:
        spec["nodeName"] = "n"
    return {"metadata": meta, "spec": spec}


def some_request(rng):
    kind, base = rng.choice(sorted(COLLECTIONS.items()))
    name = "o%d" % rng.randrange(3)
    one, obj = base + "/" + name, some_object(rng, kind, name)
    choices = [
        ("POST", base, JSON, obj),
        ("PUT", one, JSON, obj),
        ("PUT", one + "/status", JSON, dict(obj, status={"x": 1})),
        ("PATCH", one, MERGE, {"metadata": {"labels": {"a": str(rng.randrange(9))}}}),
        ("PATCH", one, MERGE, {"metadata": {"finalizers": None}}),
        ("PATCH", one, STRATEGIC, {"metadata": {"annotations": {"a": "b"}}}),
        ("DELETE", one + rng.choice(DELETE_OPTIONS), {}, None),
        ("GET", one, {}, None),
    ]
    if kind != "namespaces":
        choices.append(("DELETE", base + rng.choice(("", "?limit=1")), {}, None))
    else:
        choices.append(("PUT", one + "/finalize", JSON, {"metadata": {"name": name}, "spec": {}}))
    if kind == "pods":
        choices.append(("POST", one + "/binding", JSON,
                        {"metadata": {"name": name}, "target": {"name": "n"}}))
        choices.append(("POST", one + "/eviction", JSON, {"metadata": {"name": name}}))
    if kind == "deployments":
        choices.append(("PATCH", one + "/scale", MERGE, {"spec": {"replicas": rng.randrange(4)}}))
    return rng.choice(choices)


def leave(port, method, path, headers, body):
    """Send a request and reset the connection."""
    data = json.dumps(body) if body is not None else ""
    lines = ["%s: %s" % h for h in headers.items()] + ["Content-Length: %d" % len(data)]
    text = "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n%s\r\n\r\n%s" % (method, path, "\r\n".join(lines), data)
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(text.encode())
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def work(port, seed, operations, wrong):
    rng = random.Random(seed)
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        for _ in range(operations):
            request = some_request(rng)
            if rng.random() < 0.05:
                leave(port, *request)
                continue
            method, path, headers, body = request
            conn.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = conn.getresponse()
            text = answer.read()
            if answer.status >= 500:
                wrong.append((request, answer.status, text[:300]))
    except (OSError, http.client.HTTPException) as e:
        wrong.append(repr(e))


def main():
    server = subprocess.Popen([sys.argv[1], sys.argv[2]], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    port = int(server.stdout.readline().split()[1])
    operations = int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    seed = int(os.environ.get("VG_SEED") or random.randrange(1 << 32))
    print("seed=%d" % seed)
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    conn.request("POST", "/api/v1/namespaces", '{"metadata":{"name":"ns"}}', JSON)
    conn.getresponse().read()
    wrong = []
    threads = [threading.Thread(target=work, args=(port, seed + i, operations // THREADS, wrong))
               for i in range(THREADS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    conn.close()
    server.stdin.close()
    code = server.wait()
    for w in wrong[:10]:
        print(w)
    if code:
        print("the server ended with %d" % code)
    return 1 if wrong or code else 0


if __name__ == "__main__":
    sys.exit(main())
