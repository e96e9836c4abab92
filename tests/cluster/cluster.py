#!/usr/bin/env python3
"""cluster.py SERVER ETCD SLOW_DISK [long] - several API servers on three etcd members, and things that break.

ETCD is a program, or a variable that names one, as VG_ETCD_36.
With `long` it runs in the long round only.

SERVER is vigild, or a kube-apiserver, for which the same must hold, or one of each, parted by a comma. Two of them
serve three members.
Writers, readers and watchers use both throughout, while members and servers are killed, stopped, cut
off and slowed down, one after the other and in an order by chance. At the end truth.py compares what
everybody was told with what etcd says has happened.

VG_SEED=n runs it again, VG_ROUNDS=n (VG_LONG=1: 20) so often in a row, with other seeds;
VG_FAULTS=a,b,c chooses the faults; VG_MEDIA=application/vnd.kubernetes.protobuf the stored form.
"""
import os
import random
import shutil
import sys
import tempfile
import time

from members import Cluster, Failed, LIMIT_S, enter_private_network, program, skip, wait_for
from load import NS, PATH, SHARED, Notes, Reader, Watcher, Write, Writer, body
from servers import server_of
from stream import Client
from truth import Truth, brief
import vigild

PREFIX = f"/registry/configmaps/{NS}/"


class Scene:
    """The cluster, the servers and those who use them, for one round."""

    def __init__(self, seed, options):
        self.seed, self.rng, self.options = seed, random.Random(seed), options
        self.dir = tempfile.mkdtemp(prefix="vigil-cluster-")
        self.notes, self.servers, self.workers, self.watchers = Notes(), [], [], []
        self.cluster = None

    def start(self):
        self.cluster = Cluster(self.dir, self.options.etcd, self.options.is_private, self.options.slow_disk)
        self.start_servers()

    def start_servers(self):
        for name, path in zip(("A", "B"), self.options.servers * 2):
            self.servers.append(server_of(path, self.dir, name, self.cluster.urls,
                                          ["--storage-media-type", self.options.media]))

    def ask(self, server, method, path, content=None):
        client = Client(server, timeout=LIMIT_S)
        try:
            return client.ask(method, path, content)
        finally:
            client.close()

    def begin(self):
        """The namespace and the shared objects; then everybody starts."""
        a = self.servers[0]
        status, ns = self.ask(a, "POST", "/api/v1/namespaces",
                              {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NS}})
        if status != 201:
            raise Failed(f"no namespace: {ns}")
        start = int(ns["metadata"]["resourceVersion"])
        for i, name in enumerate(SHARED):
            w = Write("create", name, f"t9999.{i}", a.name)
            status, obj = self.ask(a, "POST", PATH, body(name, w.token, "", 5))
            if status != 201:
                raise Failed(f"no {name}: {obj}")
            w.outcome, w.rev = "acked", int(obj["metadata"]["resourceVersion"])
            self.notes.add(w)
        seeds = [self.rng.randrange(1 << 30) for _ in range(100)]
        self.workers = [Writer(self.servers, self.notes, seeds.pop(), i) for i in range(4)]
        self.workers += [Reader(self.servers, self.notes, seeds.pop()) for _ in range(2)]
        self.watchers = [Watcher(self.servers, self.notes, seeds.pop(), start) for _ in range(self.options.watchers)]
        for w in self.workers + self.watchers:
            w.start()

    def progress(self, count=10):
        """Every server acknowledges again."""
        before = {s.name: self.notes.acked(s.name) for s in self.servers}
        for s in self.servers:
            wait_for(f"writes at {s.name}", lambda s=s: self.notes.acked(s.name) >= before[s.name] + count)

    def check_workers(self):
        for w in self.workers + self.watchers:
            if w.error:
                raise Failed(f"{w}: {type(w.error).__name__}: {w.error}")

    def finish(self):
        """Everybody ends; what is wrong."""
        self.notes.is_over = True
        for w in self.workers:
            w.join(LIMIT_S)
        truth = Truth(self.cluster.history(PREFIX), PREFIX)
        reader = Reader(self.servers, self.notes, 0)
        for server in self.servers:
            reader.read_now(server)
        end = time.monotonic() + LIMIT_S
        for w in self.watchers:
            w.truth = truth
        for w in self.watchers:
            w.join(max(0.1, end - time.monotonic()))
        problems = [f"{w}: {type(w.error).__name__}: {w.error}" for w in self.workers if w.error]
        problems += truth.check_writes(self.notes.writes)
        problems += truth.check_lists(self.notes.lists)
        for w in self.watchers:
            problems += truth.check_watcher(w)
        self.tell(truth)
        relisted = [w for w in self.watchers if w.relists]
        if relisted and all(s.kind == "vigild" for s in self.servers):
            problems += [f"told 410 though nothing was compacted: {w} {w.ends}" for w in relisted]
        return problems

    def tell(self, truth):
        counts = {}
        for w in self.notes.writes:
            counts[w.outcome] = counts.get(w.outcome, 0) + 1
        print(f"  {len(truth.changes)} changes, writes {counts}, {len(self.notes.lists)} lists, {len(self.watchers)} watchers: "
              f"{sum(len(w.seen) for w in self.watchers)} events, {sum(w.moves for w in self.watchers)} moves, "
              f"{sum(w.relists for w in self.watchers)} relists", flush=True)

    def close(self):
        self.notes.is_over = True
        for s in self.servers:
            if s.alive():
                s.kill()
        if self.cluster:
            self.cluster.close()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- what breaks; each returns how to mend it ----

def kill_leader(scene):
    m = scene.cluster.leader()
    m.kill()
    return m.heal


def follower(scene):
    leader = scene.cluster.leader()
    return scene.rng.choice([m for m in scene.cluster.members if m is not leader])


def kill_follower(scene):
    m = follower(scene)
    m.kill()
    return m.heal


def kill_server(scene):
    s = scene.rng.choice(scene.servers)
    s.kill()
    return s.start


def pause_leader(scene):
    m = scene.cluster.leader()
    m.pause()
    return m.heal


def pause_follower(scene):
    m = follower(scene)
    m.pause()
    return m.heal


def cut(scene, which):
    m = scene.rng.choice([scene.cluster.leader(), follower(scene)])
    m.cut(which)
    return m.heal


def cut_peers(scene):
    return cut(scene, "p")


def cut_clients(scene):
    return cut(scene, "c")


def cut_all(scene):
    return cut(scene, "cp")


def slow_leader(scene):
    m = scene.cluster.leader()
    m.set_slowness(scene.rng.choice([50, 300]))
    return m.heal


def slow_follower(scene):
    m = follower(scene)
    m.set_slowness(scene.rng.choice([100, 1000]))
    return m.heal


FAULTS = [kill_leader, kill_server, kill_follower, pause_leader, pause_follower, slow_leader, slow_follower,
          cut_peers, cut_clients, cut_all]


class Options:
    def __init__(self):
        self.is_long = bool(os.environ.get("VG_LONG"))
        if "long" in sys.argv[4:] and not self.is_long:
            skip("this is for the long round (VG_LONG=1)")
        self.servers = [program(p) for p in sys.argv[1].split(",")]
        self.etcd, self.slow_disk = program(sys.argv[2]), program(sys.argv[3])
        self.is_private = enter_private_network()
        self.media = os.environ.get("VG_MEDIA", "application/json")
        self.watchers = 24 if self.is_long else 12
        self.rounds = int(os.environ.get("VG_ROUNDS") or (20 if self.is_long else 1))
        self.faults = [f for f in FAULTS if self.is_private or not f.__name__.startswith("cut")]
        names = os.environ.get("VG_FAULTS")
        if names:
            self.faults = [f for f in self.faults if f.__name__ in names.split(",")]
        self.check_slow_disk()
        if not self.is_private:
            print("SKIPPED here: cutting the network needs network namespaces; the rest runs on loopback")

    def check_slow_disk(self):
        status = os.spawnlp(os.P_WAIT, self.slow_disk, self.slow_disk, "/dev/null", "true")
        if status != 0:
            print("SKIPPED here: slow disks need seccomp's user notification")
            self.slow_disk = None
            self.faults = [f for f in self.faults if not f.__name__.startswith("slow")]


def plan(rng, options):
    """The long rounds have every fault; the short one has a leader, a server, and one by chance."""
    faults = list(options.faults)
    if not options.is_long and len(faults) > 3:
        faults = [kill_leader, kill_server, rng.choice([f for f in faults if f not in (kill_leader, kill_server)])]
    rng.shuffle(faults)
    return faults


def run(seed, options):
    print(f"VG_SEED={seed}", flush=True)
    scene = Scene(seed, options)
    try:
        scene.start()
        print(f"  etcd {scene.cluster.version()}, {' and '.join(s.kind for s in scene.servers)}", flush=True)
        scene.begin()
        scene.progress()
        for fault in plan(scene.rng, options):
            began = time.monotonic()
            mend = fault(scene)
            time.sleep(0.3 + scene.rng.random() * (4 if options.is_long else 1.5))
            mend()
            scene.cluster.heal()
            scene.progress()
            print(f"  {fault.__name__}: all write again after {time.monotonic() - began:.1f} s", flush=True)
            scene.check_workers()
        problems = scene.finish()
        if not problems:
            for s in scene.servers:
                s.close()
    except (Failed, vigild.Failed) as e:
        problems = [str(e)]
        for w in scene.notes.writes[-5:]:
            print(f"  last: {w}")
    finally:
        if sys.exc_info()[0] or problems:
            for s in scene.servers:
                print(f"--- {s.name}\n{s.stderr()[-3000:]}")
            print(scene.cluster.logs(1500) if scene.cluster else "")
        scene.close()
    for p in problems[:20]:
        print("  " + brief(p)[:1500])
    return not problems


def main():
    options = Options()
    seed = int(os.environ.get("VG_SEED") or random.SystemRandom().randrange(1 << 30))
    good = 0
    for i in range(options.rounds):
        if not run(seed + i, options):
            print(f"FAILED in round {i + 1} of {options.rounds}, VG_SEED={seed + i}")
            sys.exit(1)
        good += 1
    print(f"{good} rounds, nothing lost, nobody misled")


if __name__ == "__main__":
    main()
