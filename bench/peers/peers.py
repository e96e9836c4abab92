#!/usr/bin/env python3
"""peers.py - vigild and its peers, measured by the same scenarios in turn, several rounds interleaved, so that noise
hits all alike; writes one file that `vigil bench report` makes tables, charts and pages from.

A round starts each API server afresh, times that, runs `vigil bench` on it and ends it; then come etcd's bare watch
and the bare loops that send the same bytes. Rounds are made while there is time for another: --seconds. The second
one has the far ends of the growth curves (100,000 objects, 10,000 watchers), and so has every third from there. What fails is in the file as a
failure, what is missing on this machine is said and left out.
"""

import argparse
import contextlib
import datetime
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import bars
import etcd_watch
import servers

STEP_LIMIT_S = 400  # one call of vigil bench; only a broken server takes as long
ROUNDS_MAX = 12
IDLE_S = 3  # until an empty server that is ready has done what it does at its start
SOON_S = 1  # the same, where its memory as such is not what is asked for

# What is asked of each API server in a round: arguments of vigil bench, in parts. Each part has a server, and an etcd,
# that has held nothing before: `store` fills it and leaves the objects, `steps` come on top of them. A step that has
# to do with memory comes to a server that was started anew (FRESH). Clients show a token, or where it is said
# (CERTIFICATE) a certificate.
FRESH, CERTIFICATE = "fresh ", "certificate "
NEAR = [
    {
        "objects": 0,
        "steps": [
            "fill list page --objects 1000 --lists 3",
            FRESH + "idle --watchers 1000 --http 2",
            FRESH + "idle --watchers 1000 --http 1.1",
            FRESH + CERTIFICATE + "idle --watchers 1000 --http 1.1",
        ],
    },
    {
        "store": "fill list page --objects 10000 --selector all,node --media json,protobuf --gzip off,on --lists 2",
        "objects": 10000,
        "steps": [
            "fanout --watchers 10 --events 400",
            "fanout --watchers 100 --events 150",
            "fanout --watchers 1000 --events 40",
            "fanout --watchers 1000 --selector node --events 200",
            "fanout --watchers 1000 --media protobuf --events 40",
            "fanout --watchers 1000 --http 2 --events 40",
            "churn --watchers 10 --seconds 2",
            "latency --watchers 1000 --rate 20 --events 60",
            "slow --watchers 100 --seconds 2",
            "mixed --scale 0.04 --seconds 3",
            "relist --watchers 100 --objects 1000",
        ],
    },
]
FAR = [
    {
        "store": "fill list --objects 100000 --lists 2",
        "objects": 100000,
        "steps": ["fanout --watchers 10000 --events 5"],
    },
]
QUICK = [
    {
        "objects": 0,
        "steps": ["fill list page --objects 100 --lists 2", FRESH + "idle --watchers 20",
                  FRESH + CERTIFICATE + "idle --watchers 20"],
    },
    {
        "store": "fill list --objects 200 --lists 2",
        "objects": 200,
        "steps": ["fanout --watchers 10,30 --events 20", "latency --watchers 10 --rate 50 --events 20",
                  "churn --watchers 10 --seconds 1", "relist --watchers 10 --objects 100"],
    },
]
LATENCY_WATCHERS = 1000
OBJECTS_NEAR, OBJECTS_FAR = NEAR[-1]["objects"], FAR[-1]["objects"]


def say(text):
    print(f"peers: {text}", flush=True)


def failure(scenario, why):
    return {"scenario": scenario, "params": {}, "error": str(why)[:150]}


class Bench:
    def __init__(self, args):
        self.args = args
        self.began = time.monotonic()
        self.peers = {}  # name: {"name", "version", ...}, in the order of their first result
        self.runs = []
        self.machine = {}
        self.load = round(os.getloadavg()[0], 2)

    def left(self):
        return self.args.seconds - (time.monotonic() - self.began)

    def add(self, name, version, round_number, results, **more):
        self.peers.setdefault(name, {"name": name, "version": version, **more})
        self.runs.append({"peer": name, "round": round_number, "results": results})

    def file(self):
        order = [bars.OURS, "vigild on etcd", bars.KUBE, "etcd watch", bars.FLOOR, "send() loop"]
        return {"format": "vigil-bench-peers/1",
                "version": self.vigil_version,
                "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "machine": self.machine,
                "peers": sorted(self.peers.values(), key=lambda p: order.index(p["name"])),
                "bars": bars.rows(self.runs),
                "runs": self.runs}

    # ---- one API server ----

    def tool(self, server, words, kubeconfig):
        """Results of one call of vigil bench, and the server's version."""
        words = words.split()
        out = server.path("result.json")
        with contextlib.suppress(FileNotFoundError):
            os.remove(out)
        # What a step has made is thrown away with the server: removing it would take longer than measuring.
        command = [self.args.vigil, "bench", *words, "--kubeconfig", kubeconfig, "--json", out, "--quiet",
                   "--settle", "1", "--keep"]
        if server.etcd:
            command += ["--etcd-port", str(server.etcd.port)]
        if "relist" in words:
            command += ["--restart-command", server.restart_script()]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  timeout=STEP_LIMIT_S)
            found = json.load(open(out))
        except subprocess.TimeoutExpired:
            return [failure(words[0], f"vigil bench took more than {STEP_LIMIT_S} s")], None
        except (OSError, ValueError):
            lines = done.stderr.decode(errors="replace").strip().splitlines() or ["it said nothing"]
            return [failure(words[0], f"vigil bench ended with {done.returncode}: {lines[-1]}")], None
        self.machine = {**found.get("machine", {}), "load": self.load}
        return found["results"], found.get("server", {}).get("version")

    def step(self, server, words, results):
        began = time.monotonic()
        kubeconfig = server.kubeconfig
        if words.startswith(FRESH):
            words = words[len(FRESH):]
            self.start_anew(server)
        if words.startswith(CERTIFICATE):
            words = words[len(CERTIFICATE):]
            kubeconfig = server.certificate_kubeconfig
        found, version = self.tool(server, words, kubeconfig)
        results += found
        if self.args.verbose:
            failed = [r["error"] for r in found if r.get("error")]
            say(f"    {words}: {time.monotonic() - began:.1f} s {failed or ''}")
        return version

    def start_anew(self, server, idle_s=SOON_S):
        server.kill()
        ms = server.start()
        time.sleep(0 if self.args.quick else idle_s)
        return ms

    def timed_start(self, server, objects, results):
        ms = self.start_anew(server, SOON_S if objects else IDLE_S)
        results.append({"scenario": "start", "params": {"objects": objects}, "error": None,
                        "metrics": {"ready_ms": ms, "server_anon_bytes": servers.anonymous_bytes(server.pids)}})

    def part(self, server, part, results):
        version = None
        server.start()  # the first start makes certificates, roles and the like
        if "store" in part:
            self.step(server, FRESH + part["store"], results)
        self.timed_start(server, part["objects"], results)
        for words in part["steps"]:
            version = self.step(server, words, results) or version
        return version

    def parts(self, is_far):
        return QUICK if self.args.quick else FAR if is_far else NEAR

    def far_seconds(self, name):
        """How long the far end's objects take to make, by what was measured near."""
        rates = [r["metrics"]["creates_per_s"] for run in self.runs if run["peer"] == name for r in run["results"]
                 if r["scenario"] == "fill" and r.get("metrics") and r["params"]["objects"] == OBJECTS_NEAR]
        return OBJECTS_FAR / rates[-1] if rates else 0

    def part_of_round(self, name, make, part, results):
        etcd, server = None, None
        try:
            etcd = servers.Etcd(self.args.etcd, self.dir) if name.endswith("etcd") else None
            server = make(etcd)
            return self.part(server, part, results)
        except (RuntimeError, OSError, subprocess.SubprocessError) as e:
            results.append(failure("start", e))
            return None
        finally:
            for it in (server, etcd):
                if it:
                    it.stop()

    def server_round(self, name, make, round_number, is_far):
        results, version = [], None
        began = time.monotonic()
        if is_far and self.far_seconds(name) > min(STEP_LIMIT_S, self.left() / 2):
            say(f"  {name}: {OBJECTS_FAR} objects would take {self.far_seconds(name):.0f} s: left out")
            return []
        for part in self.parts(is_far):
            version = self.part_of_round(name, make, part, results) or version
        if name != bars.KUBE:
            version = self.vigil_version
        if name.endswith("etcd"):
            version = f"{version or '-'}, etcd {self.etcd_version}"
        self.add(name, version or "-", round_number, results)
        self.save()  # whatever ends the rest
        say(f"  {name}: {time.monotonic() - began:.0f} s")
        return results

    # ---- floors ----

    def etcd_round(self, round_number, watchers, event_bytes):
        results, etcd = [], None
        try:
            etcd = servers.Etcd(self.args.etcd, self.dir)
            for n in watchers:
                results.append(etcd_watch.fanout(etcd.port, etcd.pid, n, event_bytes))
        except (RuntimeError, OSError) as e:
            results.append(failure("fanout", e))
        finally:
            if etcd:
                etcd.stop()
        self.add("etcd watch", f"etcd {self.etcd_version}, plain TCP", round_number, results)

    def floor_round(self, round_number, watchers, event_bytes, lists):
        command = [self.args.floors, "--fanout", ",".join(map(str, watchers)), "--event-bytes", str(event_bytes)]
        if lists:
            command += ["--list", ",".join(f"{n}:{size}" for n, size in sorted(lists.items()))]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=STEP_LIMIT_S)
        if done.returncode != 0:
            say("  the floors could not be measured")
            return
        for peer in json.loads(done.stdout):
            more = self.soonest(peer["results"]) if peer["name"] == bars.FLOOR else []
            self.add(peer["name"], peer["version"], round_number, peer["results"] + more, floor=True)

    def soonest(self, results):
        """How soon the last of the watchers, and half of them, can have an event that a loop on each core sends."""
        cores = self.machine.get("cores", 1)
        return [{"scenario": "latency", "params": {"watchers": r["params"]["watchers"]}, "error": None,
                 "metrics": {"after_ack_p50_ms": ms / 2, "after_ack_p99_ms": ms * 0.99}}
                for r in results if r["scenario"] == "fanout" and r["params"]["watchers"] == LATENCY_WATCHERS
                for ms in [r["metrics"]["server_cpu_us_per_event"] * r["params"]["watchers"] / cores / 1e3]]

    # ---- rounds ----

    def round(self, round_number, is_far):
        say(f"round {round_number}{', far ends' if is_far else ''}; {self.left():.0f} s left")
        ours = self.server_round(bars.OURS, lambda etcd: servers.Vigild(self.args.vigild, self.dir), round_number,
                                 is_far)
        if self.args.etcd:
            self.server_round("vigild on etcd", lambda etcd: servers.Vigild(self.args.vigild, self.dir, etcd),
                              round_number, is_far)
        if self.args.etcd and self.args.kube:
            self.server_round(bars.KUBE, lambda etcd: servers.Kube(self.args.kube, self.dir, etcd), round_number,
                              is_far)
        began = time.monotonic()
        watchers, event_bytes, lists = what_was_sent(ours)
        if watchers and self.args.etcd:
            self.etcd_round(round_number, watchers, event_bytes)
        if watchers and self.args.floors:
            self.floor_round(round_number, watchers, event_bytes, lists)
        say(f"  floors: {time.monotonic() - began:.0f} s")

    def all_rounds(self):
        """Near, far, near, near, far, near, near ...; each kind counts its own rounds."""
        count, took, turn = [0, 0], [0.0, 0.0], 0
        while max(count) < ROUNDS_MAX and (turn == 0 or not self.args.quick):
            is_far = turn % 3 == 1
            turn += 1
            if count[is_far] and self.left() < took[is_far] * 1.1 or not count[is_far] and self.left() < took[0] * 1.2:
                if not is_far:
                    break
                continue
            began = time.monotonic()
            count[is_far] += 1
            self.round(count[is_far], is_far)
            took[is_far] = time.monotonic() - began
            self.save()

    def save(self):
        with open(self.args.out + ".new", "w") as f:
            json.dump(self.file(), f, indent=1)
            f.write("\n")
        os.replace(self.args.out + ".new", self.args.out)

    def run(self):
        self.vigil_version = version_of(self.args.vigild, "--version")
        self.etcd_version = version_of(self.args.etcd, "--version") if self.args.etcd else None
        self.dir = tempfile.mkdtemp(prefix="peers.", dir=os.path.realpath(self.args.dir))
        try:
            self.all_rounds()
        finally:
            shutil.rmtree(self.dir, ignore_errors=True)


def what_was_sent(results):
    """Watchers, bytes of an event and of lists, for the loops that send the same."""
    watchers, sizes, lists = [], [], {}
    for r in results:
        p, m = r.get("params", {}), r.get("metrics") or {}
        is_plain = p.get("media") == "json" and p.get("http") == "1.1" and p.get("selector") == "all"
        if r["scenario"] == "fanout" and is_plain and m.get("bytes_per_event"):
            watchers.append(p["watchers"])
            sizes.append(m["bytes_per_event"])
        if r["scenario"] == "list" and is_plain and not p.get("gzip") and m.get("bytes_per_list"):
            lists[p["objects"]] = round(m["bytes_per_list"])
    return watchers, round(max(sizes, default=0)), lists


def version_of(binary, flag):
    text = subprocess.run([binary, flag], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout.decode()
    return text.split("\n")[0].split(":")[-1].split(" ")[-1].strip()


def program(path):
    return path if path and os.access(path, os.X_OK) else None


def parse():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--vigil", default="build/vigil", help="or vigil-bench, which it runs")
    p.add_argument("--vigild", default="build/vigild")
    p.add_argument("--floors", default="build/release/bench/peers/bench_floors")
    p.add_argument("--peers", default="build/peers", help="a folder with etcd and kube-apiserver")
    p.add_argument("--dir", default="build", help="data is kept in a new folder below it")
    p.add_argument("--seconds", type=float, default=900, help="no round begins that would end later")
    p.add_argument("--quick", action="store_true", help="one small round, to see that all works")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--out", default="docs/benchmarks/run.json")
    args = p.parse_args()
    args.etcd = program(os.path.join(args.peers, "etcd"))
    args.kube = program(os.path.join(args.peers, "kube-apiserver"))
    args.floors = program(args.floors)
    for name in ("vigil", "vigild"):
        if not program(getattr(args, name)):
            sys.exit(f"peers: there is no program {getattr(args, name)}; `make bench` builds it")
    for name in ("etcd", "kube", "floors"):
        if not getattr(args, name):
            say(f"there is no program for {name}: not measured")
    return args


def main():
    args = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    os.makedirs(os.path.dirname(args.out) or ".", exist_ok=True)
    bench = Bench(args)
    bench.run()
    failed = sum(1 for run in bench.runs for r in run["results"] if r.get("error"))
    say(f"{len(bench.runs)} runs, {failed} failures; see {args.out}")
    return 1 if failed and args.quick else 0


if __name__ == "__main__":
    sys.exit(main())
