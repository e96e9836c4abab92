"""bench.py - vigil bench against vigild: a small run of each scenario, what it finds, that it finds an
event that is lost or comes twice, and that nothing of it stays behind. Called with vigild, vigil-bench,
vigil and the manual page of vigil-bench. No figure is judged: machines differ."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "vigild"))
from vigild import LIMIT_S, check, equal, free_port, has, main, wait_for  # noqa: E402

BENCH, VIGIL, MAN = (os.path.abspath(p) for p in (sys.argv.pop(2), sys.argv.pop(2), sys.argv.pop(2)))
# The smallest run that still is one.
SMALL = ("--watchers", "4", "--objects", "30", "--events", "4", "--seconds", "0.5", "--lists", "2", "--page", "10",
         "--clients", "4", "--scale", "0.002", "--settle", "0", "--nodes", "5")


def command(server, *args):
    return [BENCH, "bench", "--kubeconfig", server.path("admin.kubeconfig"), *args]


def bench(case, server, *args, status=0, extra=SMALL):
    """The results of a run."""
    out = case.path("run.json")
    r = subprocess.run([*command(server, *args), *extra, "--json", out], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=5 * LIMIT_S, check=False)
    equal(r.returncode, status, f"exit status of {args}, with {r.stdout!r} and {r.stderr!r}")
    for word in ("Sanitizer", "runtime error:", "Assertion"):
        check(word not in r.stderr, r.stderr)
    with open(out, encoding="utf-8") as f:
        run = json.load(f)
    equal(run["format"], "vigil-bench/1", "format")
    equal([p["comm"] for p in run["server"]["processes"]], ["vigild"], "processes")
    check(run["machine"]["cores"] >= 1 and run["server"]["version"], run)
    for result in run["results"]:
        check(all(isinstance(v, (int, float)) for v in result["metrics"].values()), result)
        check(0 <= result["tool"]["cpu_share"] <= 1, result["tool"])
    nothing_left(server)
    return run["results"]


def namespaces(server):
    items = server.ask("/api/v1/namespaces").json["items"]
    return [i["metadata"]["name"] for i in items if i["metadata"]["name"].startswith("vigil-bench")]


def nothing_left(server):
    equal(namespaces(server), [], "namespaces that are left")
    for path in ("/api/v1/pods", "/api/v1/configmaps", "/apis/coordination.k8s.io/v1/leases"):
        left = [i["metadata"]["name"] for i in server.ask(path).json["items"]
                if "vigil-bench" in i["metadata"]["namespace"]]
        equal(left, [], f"left at {path}")


def well(result, *metrics):
    equal(result["error"], None, "error")
    for name in metrics:
        check(name in result["metrics"], f"{result['scenario']} has no {name}: {result['metrics']}")
    for name in ("lost", "duplicates", "ended", "healthy_ended", "refused"):
        equal(result["metrics"].get(name, 0), 0, f"{name} of {result}")


METRICS = {
    "fill": ("creates_per_s", "server_cpu_us_per_create", "p50_ms", "p99_ms", "server_rss_bytes", "server_anon_bytes",
             "server_anon_bytes_per_object"),
    "list": ("server_cpu_ms_per_list", "wall_ms_per_list", "bytes_per_list"),
    "page": ("server_cpu_ms_per_list", "wall_ms_per_list", "bytes_per_list", "pages"),
    "fanout": ("server_cpu_us_per_event", "events_per_s", "p50_ms", "p99_ms", "lost", "duplicates"),
    "idle": ("server_anon_bytes_per_watcher",),
    "churn": ("updates_per_s", "server_cpu_us_per_update", "lost", "ended"),
    "latency": ("ack_p50_ms", "ack_p99_ms", "event_p50_ms", "event_p99_ms", "after_ack_p50_ms", "lost"),
    "slow": ("healthy_p50_ms", "healthy_p99_ms", "healthy_ended", "stalled_ended", "alone_p50_ms", "lost"),
    "mixed": ("lease_p50_ms", "create_p99_ms", "status_p50_ms", "delete_p50_ms", "kubelet_event_p50_ms",
              "informer_event_p99_ms", "server_cpu_share", "server_anon_bytes", "lost"),
    "relist": ("relists", "s_until_all_caught_up", "server_cpu_s"),
}


def test_all_is_every_scenario_but_relist(case):
    server = case.start()
    results = bench(case, server, "all")
    equal(sorted(r["scenario"] for r in results), sorted(set(METRICS) - {"relist"}), "scenarios")
    for result in results:
        well(result, *METRICS[result["scenario"]])
    listed = next(r for r in results if r["scenario"] == "list")
    equal(listed["metrics"]["items"], 30, "objects listed")
    equal(next(r for r in results if r["scenario"] == "page")["metrics"]["pages"], 3, "pages")


def test_every_way_to_carry_events(case):
    server = case.start()
    results = bench(case, server, "fanout", "--media", "json,protobuf", "--http", "1.1,2", "--selector",
                    "all,node,label", "--streams", "3")
    equal(len(results), 12, "results")
    for result in results:
        well(result, *METRICS["fanout"])
    ways = {(r["params"]["media"], r["params"]["http"], r["params"]["selector"]) for r in results}
    equal(len(ways), 12, "ways")


def test_lists_in_every_form(case):
    server = case.start()
    results = bench(case, server, "list", "page", "--media", "json,protobuf", "--http", "1.1,2", "--gzip", "off,on",
                    "--selector", "all,node,label", extra=(*SMALL, "--objects", "60"))  # more than 128 KB
    equal(len(results), 24 + 4, "results")
    for result in results:
        well(result, *METRICS[result["scenario"]])
    whole = {(r["params"]["media"], r["params"]["gzip"]): r["metrics"]["bytes_per_list"] for r in results
             if r["scenario"] == "list" and r["params"]["selector"] == "all"}
    check(whole["json", True] < whole["json", False] and whole["protobuf", False] < whole["json", False], whole)
    check(all(r["metrics"]["items"] == 12 for r in results if r["params"].get("selector") == "node"), results)


def test_other_scenarios_by_http2_and_protobuf(case):
    server = case.start("--controllers=*")  # these remove namespaces, elsewhere the bench does it itself
    results = bench(case, server, "fill", "idle", "churn", "latency", "slow", "mixed", "--http", "2", "--media",
                    "protobuf", "--streams", "3")
    equal(len(results), 6, "results")
    for result in results:
        well(result, *METRICS[result["scenario"]])


def test_config_maps_and_the_plain_port(case):
    port = free_port()
    server = case.start("--insecure-port", str(port), "--authorization-mode=AlwaysAllow")
    out = case.path("plain.json")
    r = subprocess.run([BENCH, "fill", "list", "churn", "--server", f"http://127.0.0.1:{port}", "--kind", "configmaps",
                        "--bytes", "100", *SMALL, "--json", out, "-q"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=5 * LIMIT_S, check=False)
    equal((r.returncode, r.stdout), (0, ""), r.stderr)
    with open(out, encoding="utf-8") as f:
        results = json.load(f)["results"]
    for result in results:
        well(result, *METRICS[result["scenario"]])
        equal((result["params"]["tls"], result["params"]["kind"]), (False, "configmaps"), "how")
    nothing_left(server)


RESTART = """
import os, signal, subprocess, sys, time
pid_file, out, first, *command = sys.argv[1:]
pid = int(open(pid_file).read()) if os.path.exists(pid_file) else int(first)
os.kill(pid, signal.SIGKILL)
while True:  # until the port and the directory of the one that was killed are free
    with open(out, "w") as f:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
    while server.poll() is None and "ready on" not in open(out).read():
        time.sleep(0.01)
    if server.poll() is None:
        break
open(pid_file, "w").write(str(server.pid))
"""


def test_a_restart_under_informers(case):
    server = case.start()
    pid_file, script = case.path("pid"), case.write("restart.py", RESTART)
    command_line = " ".join([sys.executable, script, pid_file, case.path("out"), str(server.process.pid), case.binary,
                             "--data-dir", server.dir, "--secure-port", str(server.port), "--controllers="])
    try:
        results = bench(case, server, "relist", "--media", "json,protobuf", "--http", "1.1,2", "--streams", "3",
                        "--restart-command", command_line)
        equal(len(results), 4, "results")
        for result in results:
            well(result, *METRICS["relist"])
            equal(result["metrics"]["relists"], 0, "relists")
    finally:
        with open(pid_file, encoding="utf-8") as f:
            os.kill(int(f.read()), signal.SIGKILL)
    server.process.wait()
    case.servers.remove(server)


def test_relist_without_a_way_to_restart_is_refused(case):
    server = case.start()
    (result,) = bench(case, server, "relist", status=1)
    has(result["error"], "--restart-command")


class Meddler(threading.Thread):
    """Between the bench and the plain port: one event of one watch is dropped, or told twice."""

    def __init__(self, port, twice):
        super().__init__(daemon=True)
        self.port, self.twice, self.is_done, self.lock = port, twice, False, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.own = self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.port))
            for pair in ((client, server, False), (server, client, True)):
                threading.Thread(target=self.carry, args=pair, daemon=True).start()

    def meddle(self, data):
        chunk = re.search(rb"[0-9a-f]+\r\n\{\"type\":\"MODIFIED\"[^\n]*vgb~0000000004~[^\n]*\n\r\n", data)
        with self.lock:
            if not chunk or self.is_done:
                return data
            self.is_done = True
        return data[:chunk.start()] + chunk.group() * (2 if self.twice else 0) + data[chunk.end():]

    def carry(self, source, to, is_answer):
        try:
            held = b""
            while data := source.recv(65536):
                data, held = held + data, b""
                # A chunk that has not come whole is held back.
                if is_answer and b'"type":"MODIFIED"' in data:
                    end = data.rfind(b"\n\r\n") + 3
                    data, held = self.meddle(data[:end]), data[end:]
                to.sendall(data)
        except OSError:
            pass
        to.close()


def meddled(case, twice):
    port = free_port()
    server = case.start("--insecure-port", str(port), "--authorization-mode=AlwaysAllow")
    meddler = Meddler(port, twice)
    out = case.path("meddled.json")
    # One client: then every event has a chunk of its own.
    r = subprocess.run([BENCH, "fanout", "--server", f"http://127.0.0.1:{meddler.own}", *SMALL, "--clients", "1",
                        "--patience", "5", "--json", out, "-q"], capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=5 * LIMIT_S, check=False)
    check(meddler.is_done, "nothing was meddled with")
    equal(r.returncode, 3, f"exit status: {r.stderr}")
    meddler.listener.close()
    nothing_left(server)
    with open(out, encoding="utf-8") as f:
        return json.load(f)["results"][0]["metrics"]


def test_an_event_that_is_lost_is_told(case):
    metrics = meddled(case, False)
    equal((metrics["lost"], metrics["duplicates"]), (1, 0), "lost and duplicates")


def test_an_event_that_comes_twice_is_told(case):
    metrics = meddled(case, True)
    equal((metrics["lost"], metrics["duplicates"]), (0, 1), "lost and duplicates")


def test_an_interrupt_cleans_up(case):
    server = case.start()
    for number in (signal.SIGINT, signal.SIGTERM):
        with subprocess.Popen([*command(server, "churn"), *SMALL, "--seconds", "3000"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True) as p:
            wait_for("watchers and writers", lambda: any(
                i["metadata"].get("annotations", {}).get("vigil-bench", "") > "vgb~0000000100"
                for i in server.ask("/api/v1/pods").json["items"]))
            p.send_signal(number)
            _, err = p.communicate(timeout=LIMIT_S)
        equal(p.returncode, 130, f"exit status: {err}")
        nothing_left(server)


def test_a_server_elsewhere_is_not_touched(_case):
    r = subprocess.run([BENCH, "list", "--server", "http://192.0.2.7:6443"], capture_output=True, text=True,
                       timeout=LIMIT_S, check=False)
    equal(r.returncode, 1, "exit status")
    has(r.stderr, "--yes-really-this-server 192.0.2.7:6443")


def test_who_is_not_let_in_is_told(case):
    server = case.start()
    r = subprocess.run([BENCH, "list", "--server", server.url, "--certificate-authority", server.path("pki/ca.crt"),
                        "--token", "wrong"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    equal(r.returncode, 1, "exit status")
    has(r.stderr, "401")
    r = subprocess.run([BENCH, "list", "--server", server.url], capture_output=True, text=True, timeout=LIMIT_S,
                       check=False)
    equal(r.returncode, 1, "exit status")
    has(r.stderr, "certificate")
    equal(namespaces(server), [], "namespaces")


def test_help_and_manual_know_every_flag(_case):
    with open(os.path.join(HERE, "../../src/cli/bench/options.c"), encoding="utf-8") as f:
        flags = re.findall(r'^    \{"([a-z-]+)", ', f.read(), re.M)
    check(len(flags) > 30, flags)
    text = subprocess.run([BENCH, "bench", "--help"], capture_output=True, text=True, check=True).stdout
    with open(MAN, encoding="utf-8") as f:
        man = f.read().replace("\\-", "-")
    for flag in flags:
        check(f"--{flag}" in text, f"--{flag} is not in --help")
        check(f"--{flag}" in man, f"--{flag} is not in the manual")
    for scenario in METRICS:
        check(f'.B {scenario}\n' in man, f"{scenario} is not in the manual")
    if shutil.which("groff"):
        r = subprocess.run(["groff", "-man", "-Tascii", "-ww", MAN], capture_output=True, check=False)
        equal(r.stderr, b"", "groff's complaints")


def test_vigil_hands_over(case):
    os.symlink(VIGIL, case.path("vigil"))
    os.symlink(BENCH, case.path("vigil-bench"))
    r = subprocess.run([case.path("vigil"), "help", "bench"], capture_output=True, text=True, check=True)
    has(r.stdout, "vigil bench SCENARIO")
    r = subprocess.run([case.path("vigil"), "bench", "nothing"], capture_output=True, text=True, check=False)
    equal(r.returncode, 2, "exit status")
    has(r.stderr, "there is no scenario")


if __name__ == "__main__":
    main(sys.modules[__name__])
