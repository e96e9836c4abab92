"""load.py - who uses the servers while things break: writers, watchers and readers, over real sockets.

Nobody here judges: each notes what it was told. truth.py compares the notes with what etcd itself says
has happened, when all is over. A write carries a token that no other has, so that it can be found in
etcd's history, whatever form its value has there."""
import json
import random
import threading
import time

from stream import Client, Gone, WatchStream

NS = "model"
PATH = f"/api/v1/namespaces/{NS}/configmaps"
TIERS = ["a", "b", "c", ""]
NAMES_EACH = 6
SHARED = ["shared-0", "shared-1"]
LOST = (Gone, ConnectionError, OSError, json.JSONDecodeError, ValueError)
REQUEST_S = 30  # after which a writer gives up on an answer


def body(name, token, tier, size, rv=None):
    meta = {"name": name, "namespace": NS}
    if tier:
        meta["labels"] = {"tier": tier}
    if rv:
        meta["resourceVersion"] = rv
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": meta,
            "data": {"v": f"[{token}|{tier}]" + "x" * size}}


class Write:
    """One request and what became of it: acked with a revision (0: a delete), refused, or unknown."""

    def __init__(self, verb, name, token, server, base=None):
        self.verb, self.name, self.token, self.server, self.base = verb, name, token, server, base
        self.outcome, self.rev, self.status, self.why = "unknown", 0, 0, ""

    def __repr__(self):
        return f"{self.verb} {self.name} [{self.token}] at {self.server}: {self.outcome} {self.status} rv={self.rev} {self.why}"


class Notes:
    """What everybody was told, in one place."""

    def __init__(self):
        self.lock = threading.Lock()
        self.writes = []
        self.lists = []
        self.newest = 0  # acknowledged
        self.acked_by = {}  # server -> how many
        self.is_over = False

    def add(self, write):
        with self.lock:
            self.writes.append(write)
            if write.outcome == "acked":
                self.newest = max(self.newest, write.rev)
                self.acked_by[write.server] = self.acked_by.get(write.server, 0) + 1

    def acked(self, server):
        with self.lock:
            return self.acked_by.get(server, 0)


class Worker(threading.Thread):
    """Runs until all is over; an exception that nobody expected is told at the end."""

    def __init__(self, servers, notes, seed):
        super().__init__(daemon=True)
        self.servers, self.notes, self.rng = servers, notes, random.Random(seed)
        self.error = None

    def run(self):
        try:
            while not self.notes.is_over:
                self.step()
        except BaseException as e:  # noqa: told at the end
            self.error = e

    def step(self):
        raise NotImplementedError


# ---- writers ----

class Writer(Worker):
    """Writes names of its own, and the shared ones with the revision that it read."""

    def __init__(self, servers, notes, seed, number):
        super().__init__(servers, notes, seed)
        self.number, self.count = number, 0
        self.server = servers[number % len(servers)]
        self.client = None
        self.there = {}  # name -> True, False, or None: not known

    def token(self):
        self.count += 1
        return f"t{self.number}.{self.count}"

    def connect(self):
        try:
            self.client = Client(self.server, timeout=REQUEST_S)
            return True
        except LOST:
            time.sleep(0.1)
            return False

    def lose(self):
        if self.client:
            self.client.close()
        self.client = None

    def ask(self, write, method, path, content):
        """Sends it and notes the outcome. The object that was answered, or None."""
        obj = None
        try:
            status, obj = self.client.ask(method, path, content)
            write.status = status
            if status in (200, 201, 202):
                write.outcome = "acked"
                write.rev = int((obj.get("metadata") or {}).get("resourceVersion") or 0) if method != "DELETE" else 0
            elif status in (404, 409, 429) or (status < 500 and status != 408):
                # Told that nothing was done: this must be true.
                write.outcome, write.why = "refused", obj.get("message", "")
            else:
                write.why = obj.get("message", "")
        except LOST as e:
            write.why = f"{type(e).__name__}: {e}"
            self.lose()
        self.notes.add(write)
        return obj

    def write_own(self):
        name = f"w{self.number}-{self.rng.randrange(NAMES_EACH)}"
        tier, size = self.rng.choice(TIERS), self.rng.choice([10, 300, 2000])
        there = self.there.get(name, False)
        if there and self.rng.random() < 0.25:
            w = Write("delete", name, self.token(), self.server.name)
            self.ask(w, "DELETE", f"{PATH}/{name}", None)
            after = False
        elif there:
            w = Write("update", name, self.token(), self.server.name)
            self.ask(w, "PUT", f"{PATH}/{name}", body(name, w.token, tier, size))
            after = True
        else:
            w = Write("create", name, self.token(), self.server.name)
            self.ask(w, "POST", PATH, body(name, w.token, tier, size))
            after = True
        if w.outcome == "acked":
            self.there[name] = after
        elif w.status == 404:
            self.there[name] = False
        elif w.status == 409:
            self.there[name] = True
        elif w.outcome == "unknown":
            time.sleep(0.05)

    def write_shared(self):
        """Compare and swap: only one of those who read a revision may replace it."""
        name = self.rng.choice(SHARED)
        try:
            status, now = self.client.ask("GET", f"{PATH}/{name}")
        except LOST:
            return self.lose()
        if status != 200:
            return time.sleep(0.05)
        rv = now["metadata"]["resourceVersion"]
        w = Write("swap", name, self.token(), self.server.name, base=int(rv))
        self.ask(w, "PUT", f"{PATH}/{name}", body(name, w.token, self.rng.choice(TIERS), 20, rv))
        return None

    def step(self):
        if not self.client and not self.connect():
            return
        if self.rng.random() < 0.25:
            self.write_shared()
        else:
            self.write_own()
        time.sleep(self.rng.random() * 0.02)


# ---- readers ----

class Reader(Worker):
    """Lists: as of now, as of a revision that another server told, and in pages from two servers."""

    def fetch(self, server, query):
        client = Client(server, timeout=REQUEST_S)
        try:
            return client.ask("GET", f"{PATH}?{query}")
        finally:
            client.close()

    def note(self, how, floor, at, items):
        content = {o["metadata"]["name"]: (int(o["metadata"]["resourceVersion"]), o["data"]["v"]) for o in items}
        with self.notes.lock:
            self.notes.lists.append((how, floor, at, content))

    def read_now(self, server):
        with self.notes.lock:
            floor = self.notes.newest
        status, obj = self.fetch(server, "")
        if status == 200:
            self.note(f"list at {server.name}", floor, int(obj["metadata"]["resourceVersion"]), obj["items"])

    def read_exact(self, server):
        with self.notes.lock:
            at = self.notes.newest
        status, obj = self.fetch(server, f"resourceVersion={at}&resourceVersionMatch=Exact") if at else (0, 0)
        if status == 200:
            self.note(f"list at {server.name} of exactly {at}", at, int(obj["metadata"]["resourceVersion"]), obj["items"])

    def read_pages(self, server):
        """Each page from another server; where a page ends is written differently by each program."""
        order = [server] + [s for s in self.servers if s is not server and s.kind == server.kind]
        items, token, at = [], "", 0
        for i in range(40):
            status, obj = self.fetch(order[i % len(order)], f"limit=5&continue={token}")
            if status != 200:
                if status == 400 or (status == 410 and i):
                    raise AssertionError(f"page {i} from {order[i % len(order)].name}: {status} {obj}")
                return
            at = at or int(obj["metadata"]["resourceVersion"])
            assert at == int(obj["metadata"]["resourceVersion"]), "pages of different revisions"
            items += obj["items"]
            token = obj["metadata"].get("continue", "")
            if not token:
                return self.note(f"pages that begin at {server.name}", 0, at, items)

    def step(self):
        server = self.rng.choice(self.servers)
        try:
            self.rng.choice([self.read_now, self.read_now, self.read_exact, self.read_pages])(server)
        except LOST:
            time.sleep(0.1)
        time.sleep(0.05 + self.rng.random() * 0.1)


# ---- watchers ----

class Selector:
    def __init__(self, rng):
        kind, tier = rng.randrange(5), rng.choice(["a", "b", "c"])
        if kind == 0:
            self.query, self.matches = "", lambda n, t: True
        elif kind == 1:
            self.query, self.matches = f"labelSelector=tier%3D{tier}", lambda n, t: t == tier
        elif kind == 2:
            self.query, self.matches = f"labelSelector=tier!%3D{tier}", lambda n, t: t != tier
        elif kind == 3:
            self.query, self.matches = "labelSelector=tier+in+(a,b)", lambda n, t: t in ("a", "b")
        else:
            name = rng.choice(SHARED + ["w0-0", "w1-1"])
            self.query, self.matches = f"fieldSelector=metadata.name%3D{name}", lambda n, t: n == name


class Watcher(Worker):
    """Follows one selector; goes to another server now and then, with the revision that it has."""

    def __init__(self, servers, notes, seed, start):
        super().__init__(servers, notes, seed)
        self.selector = Selector(self.rng)
        self.pace = self.rng.choice(["fast", "fast", "slow", "naps", "leaves", "leaves"])
        self.start_rev = self.last = start
        self.seen = []  # (type, name, revision, text)
        self.relists = self.moves = 0
        self.ends = []
        self.truth = None  # set when all is over
        self.server = self.rng.choice(servers)

    def is_done(self):
        return self.truth is not None and len(self.seen) >= len(self.truth.expected(self))

    def take(self, event):
        kind, obj = event["type"], event["object"]
        if kind == "ERROR":
            self.ends.append(f"{obj.get('code')} {obj.get('reason')} {obj.get('message')}")
            if obj.get("code") == 410:
                self.expired()
            return False
        rev = int(obj["metadata"]["resourceVersion"])
        if kind == "BOOKMARK":
            assert rev >= self.last, f"bookmark {rev} after {self.last}"
        else:
            assert rev > self.last, f"{kind} at {rev} after {self.last}"
            self.seen.append((kind, obj["metadata"]["name"], rev, obj["data"]["v"]))
        self.last = rev
        return True

    def expired(self):
        """410: begin anew with a list; what was seen before is judged by itself."""
        self.relists += 1
        self.last = 0

    def relist(self):
        client = Client(self.server, timeout=REQUEST_S)
        try:
            status, obj = client.ask("GET", f"{PATH}?{self.selector.query}")
        finally:
            client.close()
        if status != 200:
            raise Gone(f"{status} {obj.get('message')}")
        self.last = self.start_rev = int(obj["metadata"]["resourceVersion"])
        self.seen = []

    def follow(self, stream):
        stream.client.sock.settimeout(0.5)
        size = 512 if self.pace == "slow" else 65536
        while not self.is_done():
            try:
                event = stream.next(size)
            except TimeoutError:
                event = False
            if event is None:
                self.ends.append("end")
                return
            if event and not self.take(event):
                return
            if self.pace == "slow":
                time.sleep(0.002)
            if self.pace == "naps" and self.rng.random() < 0.02:
                time.sleep(self.rng.random())
            if self.pace == "leaves" and self.rng.random() < 0.03 and not self.notes.is_over:
                return

    def step(self):
        before, self.server = self.server, self.rng.choice(self.servers)
        self.moves += before is not self.server
        stream = None
        try:
            if not self.last:
                self.relist()
            # Small, but not so small that each packet waits for a probe of the window.
            small = 32768 if self.pace in ("slow", "naps") else None
            stream = WatchStream(self.server, f"{PATH}?watch=1&allowWatchBookmarks=true&{self.selector.query}"
                                 f"&resourceVersion={self.last}", receive_buffer=small)
            if stream.status == 200:
                self.follow(stream)
            elif stream.status == 410:
                self.ends.append(f"refused with 410: {stream.refusal.get('message')}")
                self.expired()
            else:
                self.ends.append(f"refused with {stream.status}: {stream.refusal.get('message')}")
                time.sleep(0.1)
        except LOST as e:
            self.ends.append(f"{type(e).__name__}: {e}")
            time.sleep(0.1)
        finally:
            if stream:
                stream.close()

    def run(self):
        try:
            while not self.is_done():
                self.step()
        except BaseException as e:  # noqa: told at the end
            self.error = e

    def __repr__(self):
        return f"watcher ({self.pace}, {self.selector.query or 'all'}, from {self.start_rev}, at {self.server.name}, {self.moves} moves, {self.relists} relists)"
