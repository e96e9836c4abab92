#!/usr/bin/env python3
"""orphans.py VIGILD - controllers conclude nothing from what they have not been told, and overwrite nobody.

An owner is deleted with propagationPolicy=Orphan or Foreground while the garbage collector is off. It
starts after a restart, with so many objects that it learns of the owner long before it learns of the
dependents."""
import http.client
import json
import sys
import time

import vigild
from vigild import check, equal, free_port, wait_for

NS = "/api/v1/namespaces/default"
MANY = 15000   # more than a watch is told in one turn
CHILDREN = 10
ROUNDS = 60     # of a race
CONTENT = 100   # of a namespace that is emptied
PIPELINED = 200


class Plain:
    """The plain port, with many creates on their way at once."""

    def __init__(self, port):
        self.port = port
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=vigild.LIMIT_S)

    def ask(self, path, method="GET", body=None):
        return vigild.ask_on(self.connection, path, method, body)

    def create_many(self, path, bodies):
        """All of them must be made."""
        self.connection.connect()
        sock, text = self.connection.sock, b""
        for at in range(0, len(bodies), PIPELINED):
            some = bodies[at:at + PIPELINED]
            for body in some:
                data = json.dumps(body).encode()
                sock.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                             f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
            while text.count(b"HTTP/1.1 ") < len(some) or not text.endswith(b"}\n"):
                text += sock.recv(1 << 20)
            equal(text.count(b"HTTP/1.1 201"), len(some), "creates")
            text = b""
        self.connection.close()


def secrets(n):
    return [{"metadata": {"name": f"s{i}"}} for i in range(n)]


def start(case, controllers, port):
    case.start("--insecure-port", str(port), f"--controllers={controllers}")
    return Plain(port)


def children(owner):
    """They come last in the order of keys, and so in what a watch tells of the state."""
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
                 "blockOwnerDeletion": True}
    return [{"metadata": {"name": f"z{i}", "ownerReferences": [reference]}} for i in range(CHILDREN)]


def delete_before_a_restart(case, policy):
    """The owner, deleted and held by its finalizer; then the same store with all controllers."""
    port = free_port()
    plain = start(case, "", port)
    owner = plain.ask(f"{NS}/configmaps", "POST", {"metadata": {"name": "owner"}}).json
    plain.create_many(f"{NS}/secrets", secrets(MANY) + children(owner))
    equal(plain.ask(f"{NS}/configmaps/owner", "DELETE", {"propagationPolicy": policy}).status, 200, "delete")
    equal(plain.ask(f"{NS}/configmaps/owner").status, 200, "the owner waits")
    equal(case.servers[-1].end(), 0, "exit status")
    return start(case, "*", port)


def test_orphans_stay(case):
    plain = delete_before_a_restart(case, "Orphan")
    wait_for("the owner to go", lambda: plain.ask(f"{NS}/configmaps/owner").status == 404)
    for i in range(CHILDREN):
        child = plain.ask(f"{NS}/secrets/z{i}")
        equal(child.status, 200, f"the orphan {i}")
        check("ownerReferences" not in child.json["metadata"], f"the orphan {i} still names its owner")


def test_foreground_waits_for_dependents(case):
    plain = delete_before_a_restart(case, "Foreground")

    def is_gone():
        some_left = plain.ask(f"{NS}/secrets/z{CHILDREN - 1}").status == 200
        is_there = plain.ask(f"{NS}/configmaps/owner").status == 200
        check(is_there or not some_left, "the owner went before its dependents")
        return not is_there
    wait_for("the owner to go", is_gone)


def test_a_finalizer_that_was_acknowledged_holds_the_namespace(case):
    """Added while the namespace is being emptied. What was answered 200 must be there when the controller is done."""
    port = free_port()
    plain = start(case, "*", port)
    held = 0
    for i in range(ROUNDS):
        path = f"/api/v1/namespaces/n{i}"
        equal(plain.ask("/api/v1/namespaces", "POST", {"metadata": {"name": f"n{i}"}}).status, 201, "create")
        plain.create_many(f"{path}/configmaps", secrets(CONTENT))
        equal(plain.ask(path, "DELETE").status, 200, "delete")
        time.sleep(i / 1000)  # later and later in the controller's run
        namespace = plain.ask(path)
        if namespace.status != 200:
            continue
        namespace = namespace.json
        namespace["spec"]["finalizers"] = ["kubernetes", "example.com/held"]
        if plain.ask(f"{path}/finalize", "PUT", namespace).status != 200:
            continue

        def is_settled(path=path):
            now = plain.ask(path)
            return now.status == 404 or now.json["spec"]["finalizers"] == ["example.com/held"]
        wait_for("the controller", is_settled)
        equal(plain.ask(path).status, 200, f"namespace {i}, whose finalizer was acknowledged,")
        held += 1
    check(held > 0, "no finalizer came in time")


if __name__ == "__main__":
    vigild.main(sys.modules[__name__])
