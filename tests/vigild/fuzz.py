"""fuzz.py <vigild> - a fuzzer of the whole server: real sockets, plain and TLS, HTTP/1.1 and HTTP/2.

First requests of every verb, path and encoding, whole or damaged but well framed, one at a time: each must be answered,
or its connection closed, and a request that is refused or only reads must leave the store's revision as it was. Then
bytes that may be anything: heads and frames damaged too, cut at random places, pipelined, given up half-way. After
both the server must answer, hold no more memory than it may, end without a word from a sanitizer, and have the same
objects when it is started again.

The seed is printed, and of a failure the number of the round. VG_SEED=n repeats a run, VG_ROUND=n with it only that
round; VG_ROUNDS=n sets how many, VG_LONG=1 makes many."""
import json
import os
import random
import sys

from fuzz_requests import PROTOBUF, Generator, Resource, valid_objects
from fuzz_wire import DATA, H1, H2, OPENING, Closed, frame, h1_bytes, h2_frames, wild
from vigild import Failed, check, equal, free_port, main, wait_for

LONG = os.environ.get("VG_LONG", "0") not in ("", "0")
ROUNDS = int(os.environ.get("VG_ROUNDS", 60000 if LONG else 500))
SEED = int(os.environ.get("VG_SEED", random.SystemRandom().randrange(1 << 32)))
ONLY = os.environ.get("VG_ROUND")
# Resident memory may grow by this much: ASan keeps freed memory for a while, 16 MB of it here.
GROWTH_MAX = 400 << 20
# Of Doors.SORTS, in this proportion.
MIX = ("http", "http", "https", "https", "h2", "h2", "h2 plain", "https nobody", "h2 nobody")
# A refusal must not change the revision, nor may these methods.
READS = ("GET", "HEAD", "OPTIONS", "BREW")


def rounds():
    return [int(ONLY)] if ONLY else range(ROUNDS)


class Target:
    """The server, and how to look at it."""

    def __init__(self, case):
        self.plain_port = free_port()
        options = os.environ.get("ASAN_OPTIONS", "")
        self.server = case.start(f"--insecure-port={self.plain_port}", "--log-level=error",
                                 env={"ASAN_OPTIONS": options + ":quarantine_size_mb=16"})
        self.admin, self.nobody = self.server.admin(), self.server.context()
        self.look = H1(self.plain_port)

    def ask(self, path, method="GET", body=None, headers=None):
        return self.server.ask(path, method, body=body, headers=headers)

    def revision(self):
        """Of the store; every write raises it, and with no controllers only requests write."""
        self.look.send(b"GET /api/v1/namespaces/none/configmaps?limit=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        reader = self.look.reader
        check(b" 200 " in reader.line(), "the server does not list")
        size = 0
        while line := reader.line():
            if line.lower().startswith(b"content-length:"):
                size = int(line.split(b":")[1])
        return json.loads(reader.take(size))["metadata"]["resourceVersion"]

    def memory(self):
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS:"))

    def is_alive(self):
        return self.server.process.poll() is None

    def resources(self):
        found = []
        lists = ["/api/v1"] + ["/apis/" + v["groupVersion"] for g in self.ask("/apis").json["groups"] for v in g["versions"]]
        for path in lists:
            answer = self.ask(path).json
            found += [Resource(answer["groupVersion"], line) for line in answer["resources"]]
        return found

    def snapshot(self, resources):
        """Every object by its path, with its revision."""
        found = {}
        for r in resources:
            if "/" in r.name:
                continue
            answer = self.ask(f"{r.root}/{r.name}")
            if answer.status == 200:
                for item in answer.json.get("items") or []:
                    meta = item["metadata"]
                    found[r.root, r.name, meta.get("namespace"), meta["name"]] = meta.get("resourceVersion")
        return found


def protobufs(target):
    """Some objects in protobuf, as the server itself writes them."""
    found = []
    for path in ("/api/v1/namespaces/default", "/api/v1/namespaces/default/services/kubernetes", "/api/v1/namespaces",
                 "/api/v1/namespaces/fuzz/configmaps/seed", "/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=2"):
        answer = target.ask(path, headers={"Accept": PROTOBUF})
        if answer.status == 200:
            found.append(answer.body)
    check(found, "no protobuf to begin with")
    return found


# ---- well framed ----

class Doors:
    """A connection of each sort, opened anew when it has been used up."""

    # By name: the protocol, whether with TLS, whether as administrator.
    SORTS = {"http": (H1, False, True), "https": (H1, True, True), "h2": (H2, True, True),
             "h2 plain": (H2, False, True), "https nobody": (H1, True, False), "h2 nobody": (H2, True, False)}

    def __init__(self, target):
        self.target, self.open = target, {}

    def get(self, sort):
        kind, is_tls, is_admin = self.SORTS[sort]
        if sort not in self.open:
            t = self.target
            context = (t.admin if is_admin else t.nobody) if is_tls else None
            self.open[sort] = kind(t.server.port if is_tls else t.plain_port, context)
        return self.open[sort]

    def ask(self, sort, request):
        """The status; None: the connection was closed."""
        door = self.get(sort)
        try:
            status = door.ask(request)
        except Closed:
            status, door.is_used_up = None, True
        if door.is_used_up:
            door.close()
            del self.open[sort]
        return status


def framed_round(i, target, doors, made, tally):
    """`made` are what requests are generated from."""
    r = random.Random(f"{SEED} framed {i}")
    generator = Generator(r, *made)
    request, sort = generator.request(), r.choice(MIX)
    is_damaged = r.random() < 0.6
    if is_damaged:
        request = generator.damaged(request)
    before = target.revision()
    try:
        status = doors.ask(sort, request)
        after = target.revision()
    except (Closed, OSError, ValueError, KeyError) as e:
        raise Failed(f"seed={SEED} round={i}: {sort}: {e!r} after {request!r}") from e
    tally[f"{status}"] = tally.get(f"{status}", 0) + 1
    is_refused = status is None or status >= 400 or request.method in READS
    check(not is_refused or after == before,
          f"seed={SEED} round={i}: {sort}: {status}, and the revision went from {before} to {after}: {request!r}")


# ---- anything ----

def wild_h1(generator, r):
    out = b""
    for _ in range(r.choice((1, 1, 2, 5))):
        data = h1_bytes(generator.request(), r)
        out += generator.damaged_bytes(data) if r.random() < 0.6 else data
    return out


def wild_h2(generator, r):
    frames, stream = [], 1
    for _ in range(r.choice((1, 2, 6))):
        frames += h2_frames(generator.request(), stream, r)
        stream += r.choice((2, 2, 2, 0, 1, 100))
    for _ in range(r.choice((0, 1, 4))):
        odd = frame(r.randrange(12), r.randrange(256), r.choice((0, 1, 3, stream, 1 << 31)),
                    bytes(r.randrange(256) for _ in range(r.choice((0, 4, 5, 6, 8, 40)))))
        frames.insert(r.randrange(len(frames) + 1), odd)
    if r.random() < 0.2:
        r.shuffle(frames)
    if r.random() < 0.2:
        frames.append(frame(DATA, 0x8, 1, b"\xff" + b"x" * 10))
    out = b"".join(frames)
    return OPENING + (generator.damaged_bytes(out) if r.random() < 0.5 else out)


def wild_round(i, target, made):
    r = random.Random(f"{SEED} wild {i}")
    generator = Generator(r, *made)
    is_h2, is_tls = r.random() < 0.5, r.random() < 0.5
    data = wild_h2(generator, r) if is_h2 else wild_h1(generator, r)
    context = None
    if is_tls:
        context = target.admin if r.random() < 0.8 else target.nobody
    try:
        if is_tls and r.random() < 0.1:  # no handshake: bytes where TLS is spoken
            context = None
        wild(target.server.port if is_tls else target.plain_port, context, "h2" if is_h2 else "http/1.1", data, r)
    except OSError as e:
        if not target.is_alive():
            raise Failed(f"seed={SEED} round={i}: the server is gone: {e!r} after {data[:3000]!r}") from e
    check(target.is_alive(), f"seed={SEED} round={i}: the server is gone after {data[:3000]!r}")


def settled(target):
    """The revision, when requests whose clients went away have been done."""
    last = [None]

    def is_same():
        before, last[0] = last[0], target.revision()
        return before == last[0] and target.ask("/readyz").status == 200
    wait_for("the revision to settle", is_same)
    return last[0]


def test_no_request_breaks_the_server(case):
    print(f"seed={SEED}", flush=True)
    target = Target(case)
    for name in ("fuzz", "none"):
        equal(target.ask("/api/v1/namespaces", "POST", {"metadata": {"name": name}}).status, 201, "create")
    target.ask("/api/v1/namespaces/fuzz/configmaps", "POST", {"metadata": {"name": "seed"}, "data": {"a": "b"}})
    resources = target.resources()
    made, doors, tally = (resources, protobufs(target), valid_objects()), Doors(target), {}
    for i in list(rounds())[:100]:  # what the first requests build is not growth
        framed_round(i, target, doors, made, tally)
    start = target.memory()
    for i in list(rounds())[100:]:
        framed_round(i, target, doors, made, tally)
    print("      answers:", " ".join(f"{k}:{v}" for k, v in sorted(tally.items())), flush=True)
    check(ONLY or (tally.get("201", 0) > 0 and tally.get("400", 0) > 0), f"the requests say little: {tally}")
    for i in rounds():
        wild_round(i, target, made)
    settled(target)
    growth = target.memory() - start
    print(f"      resident memory grew by {growth >> 20} MB to {target.memory() >> 20} MB", flush=True)
    check(growth < GROWTH_MAX, f"memory grew by {growth} bytes")
    before = target.snapshot(resources)
    target.look.close()
    equal(target.server.end(), 0, "exit status")
    target.server.check_faults()
    again = Target(case)
    equal(again.snapshot(resources), before, "objects after the restart")


if __name__ == "__main__":
    main(sys.modules[__name__])
