#!/usr/bin/env python3
"""restart_model.py VIGILD - resumed watches on many kinds, through restarts, on busy processors.

A little is written to each of twenty kinds, and then much to one of them. So a start reads its history in
several pieces, and most kinds are only in the first ones. vigild is ended with SIGTERM or SIGKILL in the
middle of writes and started again. Then some kinds are watched from revisions of the past: by a watcher
that has followed from the beginning and goes on from what it saw last, and by newcomers that start at a
random old revision. In most rounds more processes than there are cores spin meanwhile, so that the
threads of a start are interrupted anywhere.

Then each of these kinds gets one more update, the fence. A watch that has seen the fence must have seen
everything before it: the events of each stream are compared with the model, which knows what every write
was answered. Missing, repeated, reordered or invented events fail the test; so does 410, since nothing is
compacted. A fence may hide that its kind was quiet; so the other kinds stay quiet until a later restart,
and after a while all begins anew on an empty store.

VG_SEED=n repeats a run as far as the scheduler allows. VG_ROUNDS=n makes n restarts; VG_LONG=1 makes 400.
VG_VIGILD_ETCD=36 runs it on etcd, which keeps running while vigild restarts.
"""
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import sys
import time

import vigild
from vigild import LIMIT_S, Failed, check, free_port, wait_for

NS = "restarts"
RULES = {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
ROLE = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}

# (resource, group/version, kind, is namespaced, the rest of a valid object). The first one is busy.
KINDS = [
    ("configmaps", "v1", "ConfigMap", True, {}),
    ("leases", "coordination.k8s.io/v1", "Lease", True, {}),
    ("secrets", "v1", "Secret", True, {}),
    ("serviceaccounts", "v1", "ServiceAccount", True, {}),
    ("endpoints", "v1", "Endpoints", True, {}),
    ("limitranges", "v1", "LimitRange", True, {"spec": {"limits": []}}),
    ("nodes", "v1", "Node", False, {}),
    ("csidrivers", "storage.k8s.io/v1", "CSIDriver", False, {"spec": {}}),
    ("endpointslices", "discovery.k8s.io/v1", "EndpointSlice", True, {"addressType": "IPv4", "endpoints": []}),
    ("networkpolicies", "networking.k8s.io/v1", "NetworkPolicy", True, {"spec": {"podSelector": {}}}),
    ("ingressclasses", "networking.k8s.io/v1", "IngressClass", False, {"spec": {"controller": "a.b/c"}}),
    ("roles", "rbac.authorization.k8s.io/v1", "Role", True, RULES),
    ("clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", False, RULES),
    ("rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding", True, ROLE),
    ("clusterrolebindings", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", False, ROLE),
    ("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", False, {"value": 7}),
    ("storageclasses", "storage.k8s.io/v1", "StorageClass", False, {"provisioner": "a.b/c"}),
    ("runtimeclasses", "node.k8s.io/v1", "RuntimeClass", False, {"handler": "runc"}),
    ("poddisruptionbudgets", "policy/v1", "PodDisruptionBudget", True, {"spec": {"minAvailable": 1}}),
    ("controllerrevisions", "apps/v1", "ControllerRevision", True, {"revision": 1, "data": {"a": 1}}),
]
NAMES = 4       # objects of a kind that come and go, beside the fence
WRITES = 60     # to all kinds, before a burst
BURST = 4000    # at most, to the busy kind after them; a start reads batches of 1,000
PIPELINED = 50  # requests of a burst that are on their way at once
FENCED = 5      # kinds that are watched and fenced after a restart
NEWCOMERS = 8   # watches of each of them, but one of the busy kind
STORE_RESTARTS = 2 * len(KINDS) // FENCED  # of one store: every kind is fenced twice



class Change:
    """One change of one object. The answer to a delete has no revision: `rev` is 0 until a watch tells."""

    def __init__(self, verb, name, value, rev):
        self.verb, self.name, self.value, self.rev = verb, name, value, rev

    def __repr__(self):
        return f"{self.verb} {self.name}={self.value}@{self.rev}"


class Kind:
    def __init__(self, resource, version, kind, is_namespaced, rest):
        self.resource, self.version, self.kind, self.rest = resource, version, kind, rest
        self.is_namespaced = is_namespaced
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        self.path = f"{root}/namespaces/{NS}/{resource}" if is_namespaced else f"{root}/{resource}"
        self.objects = {}  # name -> the object as it was answered last
        self.changes = []  # in the order in which they were answered: of each object in order
        self.fence = 0     # revision of the last fence

    def body(self, name, value):
        meta = {"name": name, "labels": {"by": "model"}, "annotations": {"v": value}}
        return {"apiVersion": self.version, "kind": self.kind, "metadata": meta, **self.rest}

    def expected(self, after):
        return sorted((c for c in self.changes if c.rev > after), key=lambda c: c.rev)

    def note_delete(self, name, rev):
        """A watch tells at which revision an object went; all watches must agree."""
        rivals = [c for c in self.changes if c.name == name]
        for i, c in enumerate(rivals):
            low = rivals[i - 1].rev if i else 0
            high = rivals[i + 1].rev if i + 1 < len(rivals) else sys.maxsize
            if c.verb == "DELETED" and not c.rev and low < rev < high:
                c.rev = rev


class Connection:
    """Plain HTTP/1.1; several requests may be on their way."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.text = b""

    def send(self, method, path, body=None):
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        self.sock.sendall(head.encode() + b"\r\n" + data)

    def more(self):
        got = self.sock.recv(262144)
        if not got:
            raise ConnectionError("closed")
        self.text += got

    def until(self, mark):
        while mark not in self.text:
            self.more()
        head, self.text = self.text.split(mark, 1)
        return head

    def take(self, n):
        while len(self.text) < n:
            self.more()
        got, self.text = self.text[:n], self.text[n:]
        return got

    def answer(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        body = b""
        if "content-length" in fields:
            body = self.take(int(fields["content-length"]))
        elif fields.get("transfer-encoding") == "chunked":
            while n := int(self.until(b"\r\n"), 16):
                body += self.take(n + 2)[:-2]
            self.take(2)
        return int(lines[0].split(" ")[1]), json.loads(body or b"null")

    def ask(self, method, path, body=None):
        self.send(method, path, body)
        return self.answer()

    def close(self):
        self.sock.close()


class Server:
    """vigild on one data directory and one plain port, restarted at will."""

    def __init__(self, case, data):
        self.case, self.data, self.port = case, data, free_port()
        self.flags = ["--insecure-port", str(self.port), "--etcd-compaction-interval=0"]
        self.process = None

    def start(self):
        self.process = self.case.start(*self.flags, data=self.data)

    def stop(self, number):
        code = self.process.end(number)
        self.process.check_faults()
        check(number == signal.SIGKILL or code == 0, f"vigild ended with {code}: {self.process.stderr()[-2000:]}")
        self.case.servers.remove(self.process)

    def connect(self):
        def attempt():
            try:
                return Connection(self.port)
            except OSError:
                return None
        return wait_for("the plain port", attempt)


class Watch:
    """One stream. Gets on by pump(); `seen` holds its changes, in order."""

    def __init__(self, server, kind, after):
        self.kind, self.start, self.last = kind, after, after
        self.seen = []
        self.connection = None
        self.connect(server)

    def connect(self, server):
        """Goes on behind what it saw last."""
        self.connection = server.connect()
        self.head_is_read = False
        self.body = b""
        self.connection.send("GET", f"{self.kind.path}?watch=1&labelSelector=by%3Dmodel&resourceVersion={self.last}")
        self.connection.sock.setblocking(False)

    def where(self):
        return f"watch of {self.kind.resource} from {self.start}"

    def pump(self):
        """Takes what has come. False: the connection is over."""
        try:
            got = self.connection.sock.recv(262144)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.connection.text += got
        self.parse()
        return bool(got)

    def pump_rest(self):
        """The server is gone: takes all that it had sent."""
        while self.pump() and self.head_is_read:
            pass

    def parse(self):
        c = self.connection
        if not self.head_is_read:
            if b"\r\n\r\n" not in c.text:
                return
            head, c.text = c.text.split(b"\r\n\r\n", 1)
            status = int(head.split(b" ")[1])
            check(status == 200, f"{self.where()}: {status} {c.text[:400]!r}")
            self.head_is_read = True
        while b"\r\n" in c.text:
            size, rest = c.text.split(b"\r\n", 1)
            n = int(size, 16)
            if len(rest) < n + 2:
                break
            self.body += rest[:n]
            c.text = rest[n + 2:]
        *lines, self.body = self.body.split(b"\n")
        for line in lines:
            self.event(json.loads(line))

    def event(self, event):
        verb, meta = event["type"], event["object"].get("metadata", {})
        check(verb != "ERROR", f"{self.where()} was ended: {event['object']}")
        rev, name = int(meta["resourceVersion"]), meta["name"]
        check(rev > self.last, f"{self.where()}: {verb} {name} at {rev} after {self.last}")
        self.last = rev
        if verb == "DELETED":
            self.kind.note_delete(name, rev)
        self.seen.append(Change(verb, name, meta["annotations"]["v"], rev))

    def verify(self):
        want = [(c.verb, c.name, c.value, c.rev) for c in self.kind.expected(self.start) if c.rev <= self.kind.fence]
        got = [(c.verb, c.name, c.value, c.rev) for c in self.seen if c.rev <= self.kind.fence]
        if want == got:
            return
        at = next((i for i, (w, g) in enumerate(zip(want, got)) if w != g), min(len(want), len(got)))
        raise Failed(f"{self.where()} differs at event {at} of {len(want)}: expected {want[at:at + 3]}, "
                     f"got {got[at:at + 3]} ({len(got)} events in all)")

    def close(self):
        self.connection.close()


class Writer:
    """All writes. Several are on their way on one connection, each of another object."""

    def __init__(self, server, kinds, rng):
        self.server, self.kinds, self.rng = server, kinds, rng
        self.connection, self.count = None, 0

    def plan(self, kind, name):
        """One write that must succeed: what it does is said by the resource version that it expects."""
        self.count += 1
        value, old = str(self.count), kind.objects.get(name)
        if old is None:
            return "ADDED", name, value, ("POST", kind.path, kind.body(name, value))
        expects = old["metadata"]["resourceVersion"]
        if name != "fence" and self.rng.random() < 0.15:
            before = old["metadata"]["annotations"]["v"]
            body = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"resourceVersion": expects}}
            return "DELETED", name, before, ("DELETE", f"{kind.path}/{name}", body)
        new = json.loads(json.dumps(old))
        new["metadata"]["annotations"]["v"] = value
        return "MODIFIED", name, value, ("PUT", f"{kind.path}/{name}", new)

    def took_effect(self, kind, plan, obj):
        verb, name, value, _ = plan
        if verb == "DELETED":
            kind.objects.pop(name)
            kind.changes.append(Change(verb, name, value, 0))
        else:
            kind.objects[name] = obj
            kind.changes.append(Change(verb, name, value, int(obj["metadata"]["resourceVersion"])))

    def batch(self, picks, kill=None):
        """Writes of different objects, all at once. `kill` is called while they are on their way."""
        plans = [(kind, self.plan(kind, name)) for kind, name in picks]
        done = 0
        try:
            for _, plan in plans:
                self.connection.send(*plan[3])
            if kill:
                for _ in range(self.rng.randrange(len(plans))):
                    self.finish(*plans[done])
                    done += 1
                kill()
            while done < len(plans):
                self.finish(*plans[done])
                done += 1
        except OSError:
            check(kill, "the connection broke")
        return plans[done:]

    def finish(self, kind, plan):
        status, obj = self.connection.answer()
        check(status in (200, 201), f"{plan[3][0]} {plan[3][1]}: {status} {obj}")
        self.took_effect(kind, plan, obj)

    def resolve(self, plans):
        """These were not answered: what became of them?"""
        for kind, plan in plans:
            status, obj = self.connection.ask("GET", f"{kind.path}/{plan[1]}")
            check(status in (200, 404), f"GET {kind.path}/{plan[1]}: {status} {obj}")
            value = obj["metadata"]["annotations"]["v"] if status == 200 else None
            if value == (None if plan[0] == "DELETED" else plan[2]):
                self.took_effect(kind, plan, obj)

    def picks(self):
        """Objects of the next batch, each once."""
        return [(k, f"o{self.rng.randrange(NAMES)}") for k in self.rng.sample(self.kinds, 5)]

    def burst(self, n):
        """Many updates of one object, which expect nothing: a connection serves them in order."""
        kind = self.kinds[0]
        for _ in range(n // PIPELINED):
            values = [str(self.count + 1 + i) for i in range(PIPELINED)]
            self.count += PIPELINED
            for value in values:
                self.connection.send("PUT", f"{kind.path}/fence", kind.body("fence", value))
            for value in values:
                status, obj = self.connection.answer()
                check(status == 200, f"PUT: {status} {obj}")
                self.took_effect(kind, ("MODIFIED", "fence", value, None), obj)

    def fence(self, kinds):
        for kind in kinds:
            left = self.batch([(kind, "fence")])
            check(not left, "a fence was not answered")
            kind.fence = int(kind.objects["fence"]["metadata"]["resourceVersion"])


class Run:
    """The life of one store."""

    def __init__(self, case, data, rng):
        self.rng = rng
        self.server = Server(case, data)
        self.kinds = [Kind(*row) for row in KINDS]
        self.writer = Writer(self.server, self.kinds, rng)
        self.events = 0
        self.newcomers, self.quiet = [], []
        self.server.start()
        self.writer.connection = self.server.connect()
        self.writer.connection.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
        self.oldest = int(self.writer.connection.ask("GET", "/api/v1/namespaces")[1]["metadata"]["resourceVersion"])
        self.followers = [Watch(self.server, k, self.oldest) for k in self.kinds]
        self.writer.fence(self.kinds[:1])

    def write(self):
        for _ in range(WRITES // FENCED):
            check(not self.writer.batch(self.writer.picks()), "a write was not answered")
        self.writer.burst(self.rng.randint(BURST // 5, BURST))
        self.quiet = self.rng.sample(self.kinds, len(self.kinds))

    def restart(self):
        """In the middle of a batch to the busy kind; what was on its way is asked for afterwards."""
        number = self.rng.choice([signal.SIGTERM, signal.SIGKILL])
        picks = [(self.kinds[0], f"o{i}") for i in range(NAMES)]
        left = self.writer.batch(picks, kill=lambda: self.server.stop(number))
        self.writer.connection.close()
        self.server.start()
        self.writer.connection = self.server.connect()
        self.writer.resolve(left)

    def resume(self, kinds):
        """Everybody comes back at once."""
        for w in self.followers:
            w.pump_rest()
            w.close()
            w.connect(self.server)
        now = max(c.rev for k in self.kinds for c in k.changes)
        for kind in [k for k in kinds for _ in range(1 if k == self.kinds[0] else NEWCOMERS)]:
            after = self.oldest if self.rng.random() < 0.5 else self.rng.randint(self.oldest, now)
            self.newcomers.append(Watch(self.server, kind, after))

    def await_fence(self, kinds):
        waiting = {w.connection.sock: w for w in self.followers + self.newcomers if w.kind in kinds}
        with selectors.DefaultSelector() as s:
            for sock in waiting:
                s.register(sock, selectors.EVENT_READ)
            end = time.monotonic() + LIMIT_S
            for w in list(waiting.values()):
                self.advance(s, waiting, w)
            while waiting:
                ready = s.select(1)
                for key, _ in ready:
                    if key.fileobj in waiting:
                        self.advance(s, waiting, waiting[key.fileobj])
                end = time.monotonic() + LIMIT_S if ready else end
                if time.monotonic() > end:
                    w = next(iter(waiting.values()))
                    raise Failed(f"{w.where()} never came to the fence {w.kind.fence}: {w.seen[-2:]}, last {w.last}")

    @staticmethod
    def advance(selector, waiting, w):
        check(w.pump() or w.last >= w.kind.fence, f"{w.where()} was closed at {w.last}, before {w.kind.fence}")
        if w.last >= w.kind.fence:
            selector.unregister(w.connection.sock)
            del waiting[w.connection.sock]

    def verify(self, kinds):
        for w in self.followers + self.newcomers:
            if w.kind in kinds:
                w.verify()
                self.events += sum(1 for c in w.seen if c.rev <= w.kind.fence)
        for w in self.newcomers:
            w.close()
        self.newcomers = []

    def round(self):
        """One restart, and a look at kinds that nobody has written to since the burst."""
        if not self.quiet:
            self.write()
        kinds, self.quiet = self.quiet[:FENCED], self.quiet[FENCED:]
        self.restart()
        self.resume(kinds)
        self.writer.fence(kinds)
        self.await_fence(kinds)
        self.verify(kinds)

    def close(self):
        for w in self.followers + self.newcomers:
            w.close()
        self.server.stop(signal.SIGTERM)
        if self.server.data in self.server.case.etcds:
            self.server.case.etcds.pop(self.server.data).kill()


def spin(n):
    """Processes that want a processor each, until they are killed."""
    code = "import os\np = os.getppid()\nwhile os.getppid() == p:\n    for _ in range(1 << 22): pass\n"
    return [subprocess.Popen([sys.executable, "-c", code]) for _ in range(n)]


def signal_all(spinners, number):
    for s in spinners:
        s.send_signal(number)


def restarts():
    if os.environ.get("VG_ROUNDS"):
        return int(os.environ["VG_ROUNDS"])
    return 400 if os.environ.get("VG_LONG") else 16


def test_resumed_watches_miss_nothing(case):
    seed = int(os.environ.get("VG_SEED") or random.SystemRandom().randrange(1 << 30))
    print(f"seed={seed}", flush=True)
    rng, run = random.Random(seed), None
    spinners = spin((os.cpu_count() or 1) + 1)
    done = events = 0
    try:
        while done < restarts():
            run = Run(case, f"store{done}", rng)
            for _ in range(STORE_RESTARTS):
                signal_all(spinners, signal.SIGCONT if done % 3 else signal.SIGSTOP)
                run.round()
                done += 1
            events += run.events
            run.close()
            print(f"{done} restarts, {events} events", flush=True)
    finally:
        print(f"ended after {done} restarts", flush=True)
        signal_all(spinners, signal.SIGKILL)
        for s in spinners:
            s.wait()


if __name__ == "__main__":
    vigild.main(sys.modules[__name__])
