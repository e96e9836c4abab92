#!/usr/bin/env python3
"""watch_model.py VIGILD - every watcher sees exactly the filtered history, whatever happens.

Random writes are made to a real vigild and to a model: a list of changes in the order of their
revisions. Watchers with random selectors, starting points and reading speeds run beside; some stall
for a while, some for ever, some are cut off. In the middle the server is killed with SIGKILL and
started again on the same data, and everybody reconnects with the last revision that they saw. At
the end each stream is compared with the filtered list, event by event: exactly once, in order,
right type, right content, right revision. Nobody may be told to list anew.

The seed is printed; VG_SEED=n runs it again, VG_LONG=1 runs more.
"""
import json
import os
import random
import sys
import tempfile
import threading
import time

from stream import Client, Gone, Server, WatchStream
from vigild import LIMIT_S

NS = "model"
PATH = f"/api/v1/namespaces/{NS}/configmaps"
TIERS = ["a", "b", "c", None]
WRITERS = 4


class Change:
    """One change of one object: before and after are contents, None when absent."""

    def __init__(self, rev, name, before, after):
        self.rev, self.name, self.before, self.after = rev, name, before, after


class Model:
    def __init__(self):
        self.objects = {}  # name -> content
        self.changes = []
        self.lock = threading.Condition()
        self.rev = 0
        self.is_over = False

    def add(self, changes):
        with self.lock:
            for c in sorted(changes, key=lambda c: c.rev):
                assert c.rev == self.rev + 1, f"revision {c.rev} follows {self.rev}"
                self.rev = c.rev
                self.changes.append(c)
                if c.after is None:
                    del self.objects[c.name]
                else:
                    self.objects[c.name] = c.after
            self.lock.notify_all()

    def state_at(self, rev, matches):
        """Names that matched at a revision, with the revision of their content."""
        state = {}
        for c in self.changes:
            if c.rev > rev:
                break
            state[c.name] = (c.after, c.rev)
        return {n: (o, r) for n, (o, r) in state.items() if o is not None and matches(n, o)}

    def expected(self, after, matches):
        for c in self.changes:
            if c.rev <= after:
                continue
            was = c.before is not None and matches(c.name, c.before)
            now = c.after is not None and matches(c.name, c.after)
            if was and now:
                yield "MODIFIED", c.name, c.rev, c.after
            elif now:
                yield "ADDED", c.name, c.rev, c.after
            elif was:
                yield "DELETED", c.name, c.rev, c.before


def content(tier, value):
    return {"tier": tier, "v": value}


def body(name, c):
    labels = {"tier": c["tier"]} if c["tier"] else {}
    return {"kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"name": name, "namespace": NS, "labels": labels},
            "data": {"v": c["v"]}}


def read_content(obj):
    return content(obj["metadata"].get("labels", {}).get("tier"), obj["data"]["v"])


class Selector:
    """A way to ask, and what it means."""

    def __init__(self, rng):
        kind = rng.randrange(5)
        tier = rng.choice(["a", "b", "c"])
        if kind == 0:
            self.query, self.matches = "", lambda n, o: True
        elif kind == 1:
            self.query, self.matches = f"labelSelector=tier%3D{tier}", lambda n, o: o["tier"] == tier
        elif kind == 2:
            self.query, self.matches = f"labelSelector=tier!%3D{tier}", lambda n, o: o["tier"] != tier
        elif kind == 3:
            self.query, self.matches = "labelSelector=tier+in+(a,b)", lambda n, o: o["tier"] in ("a", "b")
        else:
            name = f"o{rng.randrange(20)}"
            self.query, self.matches = f"fieldSelector=metadata.name%3D{name}", lambda n, o: n == name


class Watcher(threading.Thread):
    """A reader with its own pace. What it saw is checked when all is over."""

    def __init__(self, server, model, seed):
        super().__init__(daemon=True)
        self.rng = random.Random(seed)
        self.seed = seed
        self.server, self.model = server, model
        self.selector = Selector(self.rng)
        self.pace = self.rng.choice(["fast", "fast", "slow", "naps", "stalls", "leaves"])
        self.with_state = self.rng.random() < 0.4
        self.start_rev = self.last = 0
        self.seen = []
        self.state = {}
        self.reconnects = 0
        self.error = None

    def url(self):
        query = f"{PATH}?watch=1&allowWatchBookmarks=true&{self.selector.query}"
        if self.with_state and self.last == 0:
            return query + "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        return query + f"&resourceVersion={self.last}"

    def connect(self):
        # The server may be down for a moment.
        for _ in range(600):
            try:
                small = 4096 if self.pace in ("slow", "naps", "stalls") else None
                stream = WatchStream(self.server, self.url(), receive_buffer=small)
                if stream.status == 200:
                    return stream
                if stream.status not in (429, 503):
                    raise AssertionError(f"refused: {stream.refusal}")
            except (Gone, ConnectionError, OSError):
                pass
            time.sleep(0.1)
        raise AssertionError("the server did not come back")

    def take(self, event):
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            raise AssertionError(f"told to list anew: {obj.get('message')}")
        rev = int(obj["metadata"]["resourceVersion"])
        if kind == "BOOKMARK":
            if obj["metadata"].get("annotations", {}).get("k8s.io/initial-events-end") == "true":
                assert self.start_rev == 0, "two ends of the initial events"
                self.start_rev = rev
                self.state, self.seen = {s[1]: (s[3], s[2]) for s in self.seen}, []
            assert rev >= self.last, f"bookmark {rev} after {self.last}"
            self.last = max(self.last, rev)
            return
        in_state = self.with_state and self.start_rev == 0
        if not in_state:
            assert rev > self.last, f"{kind} at {rev} after {self.last}"
            self.last = rev
        self.seen.append((kind, obj["metadata"]["name"], rev, read_content(obj)))

    def is_done(self):
        with self.model.lock:
            if not self.model.is_over:
                return False
            if self.with_state and self.start_rev == 0:
                return False
            return len(self.seen) >= sum(1 for _ in self.model.expected(self.start_rev, self.selector.matches))

    def follow(self, stream):
        size = 512 if self.pace == "slow" else 65536
        stream.client.sock.settimeout(0.3)
        while not self.is_done():
            try:
                event = stream.next(size)
            except TimeoutError:
                continue
            if event is None:
                return
            self.take(event)
            if self.pace == "slow":
                time.sleep(0.002)
            if self.pace == "naps" and self.rng.random() < 0.02:
                time.sleep(self.rng.random())
            if self.pace == "leaves" and self.rng.random() < 0.01 and not self.model.is_over:
                return
            if self.pace == "stalls" and len(self.seen) == 20:
                while not self.model.is_over:
                    time.sleep(0.05)

    def run(self):
        try:
            if not self.with_state:
                with self.model.lock:
                    known = [c.rev for c in self.model.changes]
                self.start_rev = self.last = self.rng.choice(known[len(known) // 3:])
            while not self.is_done():
                stream = self.connect()
                try:
                    self.follow(stream)
                except Gone:
                    pass
                finally:
                    stream.close()
                # A state that was cut short is asked for again.
                if self.with_state and self.start_rev == 0:
                    self.seen, self.last = [], 0
                self.reconnects += 1
        except BaseException as e:  # noqa: every failure is told at the end
            self.error = e

    def check(self):
        what = f"watcher seed={self.seed} pace={self.pace} {self.selector.query or 'all'} from {self.start_rev}"
        if self.error:
            return f"{what}: {type(self.error).__name__}: {self.error}"
        if self.is_alive():
            return f"{what}: still waits after {len(self.seen)} events at {self.last}"
        if self.with_state:
            state = self.model.state_at(self.start_rev, self.selector.matches)
            if state != self.state:
                return f"{what}: the state differs: {state} is not {self.state}"
        for i, want in enumerate(self.model.expected(self.start_rev, self.selector.matches)):
            if i >= len(self.seen) or self.seen[i] != want:
                return f"{what}: event {i}: expected {want}, got {self.seen[i:i + 1]}"
        return None


class Writer:
    """Several connections; a round sends one change on each and awaits all."""

    def __init__(self, server, model, rng):
        self.server, self.model, self.rng = server, model, rng
        self.clients = []
        self.count = 0

    def connect(self):
        self.clients = [Client(self.server) for _ in range(WRITERS)]

    def plan(self):
        """Changes of different objects, at most one of them a delete: its answer has no revision."""
        plans, has_delete = [], False
        for name in self.rng.sample([f"o{i}" for i in range(20)], WRITERS):
            before = self.model.objects.get(name)
            self.count += 1
            if before is not None and not has_delete and self.rng.random() < 0.3:
                has_delete = True
                plans.append((name, before, None))
            else:
                text = f"{self.count}-" + "x" * self.rng.choice([10, 400, 3000])
                plans.append((name, before, content(self.rng.choice(TIERS), text)))
        return plans

    @staticmethod
    def send(client, name, before, after):
        if after is None:
            client.send("DELETE", f"{PATH}/{name}")
        elif before is None:
            client.send("POST", PATH, body(name, after))
        else:
            client.send("PUT", f"{PATH}/{name}", body(name, after))

    def round(self):
        plans = self.plan()
        for client, plan in zip(self.clients, plans):
            self.send(client, *plan)
        changes, unknown = [], []
        for client, (name, before, after) in zip(self.clients, plans):
            status, fields = client.head()
            answer = client.body(fields)
            assert status in (200, 201), f"{name}: {status} {answer[:300]}"
            if after is None:
                unknown.append(Change(0, name, before, None))
            else:
                rev = int(json.loads(answer)["metadata"]["resourceVersion"])
                changes.append(Change(rev, name, before, after))
        for c in unknown:
            taken = {x.rev for x in changes}
            c.rev = next(r for r in range(self.model.rev + 1, self.model.rev + WRITERS + 1) if r not in taken)
            changes.append(c)
        self.model.add(changes)

    def interrupted_round(self):
        """Send, kill before all answers are there, and find out what happened. What was acknowledged
        must be there; the rest may be or not."""
        plans = self.plan()
        for client, plan in zip(self.clients, plans):
            self.send(client, *plan)
        acknowledged = set()
        if self.rng.random() < 0.7:
            for client, plan in zip(self.clients[:self.rng.randrange(1, WRITERS)], plans):
                status, fields = client.head()
                client.body(fields)
                assert status in (200, 201)
                acknowledged.add(plan[0])
        self.server.kill()
        for client in self.clients:
            client.close()
        self.server.start()
        self.connect()
        changes, deleted = [], None
        for name, before, after in plans:
            status, obj = self.clients[0].ask("GET", f"{PATH}/{name}")
            now = read_content(obj) if status == 200 else None
            assert now in (before, after), f"{name} is neither as before nor as written: {status}"
            if now == after:
                if after is None:
                    deleted = Change(0, name, before, None)
                else:
                    changes.append(Change(int(obj["metadata"]["resourceVersion"]), name, before, after))
            else:
                assert name not in acknowledged, f"an acknowledged write of {name} is lost"
        if deleted:
            taken = {x.rev for x in changes}
            deleted.rev = next(r for r in range(self.model.rev + 1, self.model.rev + WRITERS + 1) if r not in taken)
            changes.append(deleted)
        self.model.add(changes)


def await_all(crowd):
    """Until all have ended, or none has got on for LIMIT_S."""
    seen, end = -1, 0
    while any(w.is_alive() for w in crowd):
        now, seen_now = time.monotonic(), sum(len(w.seen) for w in crowd)
        if seen_now != seen:
            seen, end = seen_now, now + LIMIT_S
        if now > end:
            return
        time.sleep(0.05)


def run(binary, seed, rounds, watchers, kills, parent):
    rng = random.Random(seed)
    server = Server(binary, parent, ["--etcd-compaction-interval=0"])  # who stalls to the end is not sent away
    try:
        model = Model()
        writer = Writer(server, model, rng)
        writer.connect()
        status, ns = writer.clients[0].ask("POST", "/api/v1/namespaces",
                                           {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NS}})
        assert status == 201, ns
        model.rev = int(ns["metadata"]["resourceVersion"])
        for _ in range(10):
            writer.round()
        crowd = []
        kill_at = {rounds * (i + 1) // (kills + 1) for i in range(kills)}
        for i in range(rounds):
            if len(crowd) < watchers and i % max(1, rounds // (2 * watchers)) == 0:
                crowd.append(Watcher(server, model, rng.randrange(1 << 30)))
                crowd[-1].start()
            if i in kill_at:
                writer.interrupted_round()
            else:
                writer.round()
        with model.lock:
            model.is_over = True
        await_all(crowd)
        problems = [p for p in (w.check() for w in crowd) if p]
        events = sum(len(w.seen) for w in crowd)
        print(f"seed {seed}: {len(model.changes)} changes, {len(crowd)} watchers, {events} events, "
              f"{sum(w.reconnects for w in crowd) - len(crowd)} reconnects, {kills} kills, {len(problems)} wrong")
        for p in problems[:10]:
            print("  " + p[:600])
        if problems:
            print(server.tail())
        return not problems
    finally:
        server.close()


def main():
    binary = sys.argv[1]
    seed = int(os.environ.get("VG_SEED") or random.SystemRandom().randrange(1 << 30))
    long = bool(os.environ.get("VG_LONG"))
    print(f"VG_SEED={seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="vg-wire-") as parent:
        ok = run(binary, seed, rounds=2000 if long else 300, watchers=120 if long else 40,
                 kills=6 if long else 2, parent=parent)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
