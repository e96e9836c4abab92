"""flow.py - from `kubectl create -f replicaset.yaml` to running pods, with examples/: vigild, the
ReplicaSet controller, the scheduler and two node agents, any of which is killed at any time.

Called with vigild, the directory of the examples, and the one where clients are kept. At every quiet
point: as many pods as each ReplicaSet asks for and no other, all Running and ready, each on a node
whose agent lives and in whose runtime it runs, nothing else running there, status right. VG_SEED
repeats the choices of a run; VG_LONG=1 makes 20 runs."""
import http.server
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "vigild"))
from vigild import Case, Failed, Vigild, check, equal, free_port  # noqa: E402

YAML = os.path.join(ROOT, "examples", "replicaset.yaml")
NODES = ("node-1", "node-2")
SETS = "/apis/apps/v1/namespaces/default/replicasets"
PODS = "/api/v1/namespaces/default/pods"
QUIET_S = 120  # only a flow that does not heal reaches it
LONG = os.environ.get("VG_LONG", "0") == "1"
FAULTS = ("Sanitizer", "runtime error:", "Assertion")


def manifest(name, image="i"):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": image}]}}


def find_kubectl(clients):
    """A kubectl of the machine, or one that another test has fetched; None: by plain requests."""
    kept = [os.path.join(clients, "debian/usr/bin/kubectl")]
    return shutil.which("kubectl") or next((k for k in kept if os.access(k, os.X_OK)), None)


class Lag:
    """The way to the server for one who shall hear of changes late: plain HTTP, and every piece of a
    watch is held back for a while."""
    HELD_S = 0.3

    def __init__(self, flow):
        self.flow = flow
        self.listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self.accept, daemon=True).start()
        self.kubeconfig = flow.case.write("lag.kubeconfig", json.dumps({
            "current-context": "lag", "users": [],
            "contexts": [{"name": "lag", "context": {"cluster": "lag"}}],
            "clusters": [{"name": "lag", "cluster": {
                "server": f"http://127.0.0.1:{self.listener.getsockname()[1]}"}}]}))

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.flow.server.plain_port))
            except OSError:
                return
            is_watch = threading.Event()
            for pump in (self.ask, self.answer):
                threading.Thread(target=pump, args=(client, server, is_watch), daemon=True).start()

    @staticmethod
    def ask(client, server, is_watch):
        try:
            while data := client.recv(65536):
                if b"watch=" in data.split(b"\r\n", 1)[0]:
                    is_watch.set()
                server.sendall(data)
            server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # either side has left

    def answer(self, client, server, is_watch):
        try:
            while data := server.recv(65536):
                if is_watch.is_set():
                    time.sleep(self.HELD_S)
                client.sendall(data)
        except OSError:
            pass
        client.close()
        server.close()


class Part:
    """A program that is killed and started again; what it says stays in one file."""

    def __init__(self, flow, name, *args):
        self.flow, self.name, self.args = flow, name, args
        self.kubeconfig = flow.kubeconfig
        self.log = flow.case.path(name + ".log")
        self.process = None
        self.start()

    def start(self):
        env = {**os.environ, "KUBECONFIG": self.kubeconfig}
        with open(self.log, "a", encoding="utf-8") as out:
            self.process = subprocess.Popen(self.args, stdout=out, stderr=out, env=env)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self):
        """Told to end it does, and leaves nothing behind."""
        if self.has_lost_its_lease():
            return
        self.process.send_signal(signal.SIGTERM)
        equal(self.process.wait(timeout=QUIET_S), 0, f"exit status of {self.name}")

    def has_lost_its_lease(self):
        """Then a leader ends, and whoever runs it starts it again."""
        return self.process.poll() is not None and self.text().endswith("lost the lease: failed\n")

    def tend(self):
        if self.has_lost_its_lease():
            self.start()

    def verify(self):
        self.tend()
        check(self.process.poll() is None, f"{self.name} ended by itself: {self.text()[-2000:]}")
        for word in FAULTS:
            check(word not in self.text(), f"{self.name}: {self.text()[-4000:]}")


class Server:
    name = "vigild"

    def __init__(self, flow):
        self.flow, self.port, self.plain_port = flow, free_port(), free_port()
        self.vigild = None
        self.start()

    def start(self):
        self.vigild = Vigild(self.flow.case.binary, self.flow.case.path("data"), "--insecure-port",
                             str(self.plain_port), secure_port=self.port)
        self.flow.case.servers.append(self.vigild)

    def kill(self):
        self.vigild.kill()

    def text(self):
        return self.vigild.stderr()

    def verify(self):
        for word in FAULTS:
            check(word not in self.text(), self.text()[-4000:])


class Flow:
    """All the programs, and what is asked of them: `wanted` is replicas by name."""

    def __init__(self, case, programs, kubectl, elect=False):
        self.case, self.kubectl = case, kubectl
        self.kubeconfig = case.path("data/admin.kubeconfig")
        self.wanted, self.static = {}, set()
        self.server = Server(self)
        program = lambda name: os.path.join(programs, name)  # noqa: E731
        self.parts = [self.server]
        flags = ("--leader-elect", "2") if elect else ()
        for i in range(2 if elect else 1):
            self.parts.append(Part(self, f"controller-{i}", program("replicaset_controller"), *flags))
        self.parts.append(Part(self, "scheduler", program("scheduler")))
        for node in NODES:
            os.mkdir(case.path(node + "-manifests"))
            self.parts.append(Part(self, node, program("node_agent"), "--node", node, "--root",
                                   case.path(node), "--manifests", case.path(node + "-manifests"),
                                   "--poll-seconds", "1"))

    # ---- what a user does ----

    def ask(self, path, method="GET", body=None, content_type="application/json"):
        headers = {"Content-Type": content_type} if body else {}
        return self.server.vigild.ask(path, method, body=json.dumps(body) if body else None,
                                      headers=headers)

    def run(self, *args, **kw):
        env = {**os.environ, "KUBECONFIG": self.kubeconfig, "HOME": self.case.dir}
        r = subprocess.run([self.kubectl, *args], capture_output=True, text=True, env=env,
                           timeout=QUIET_S, check=False, **kw)
        check(r.returncode == 0, f"kubectl {' '.join(args)}: {r.stdout}{r.stderr}")
        return r.stdout

    def create(self, name, replicas):
        with open(YAML, encoding="utf-8") as f:
            text = f.read().replace("web", name).replace("replicas: 3", f"replicas: {replicas}")
        if self.kubectl:
            self.run("create", "-f", "-", input=text)
        else:
            template = {"metadata": {"labels": {"app": name}}, "spec": manifest(name)["spec"]}
            equal(self.ask(SETS, "POST", {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
                "spec": {"replicas": replicas, "template": template,
                         "selector": {"matchLabels": {"app": name}}}}).status, 201)
        self.wanted[name] = replicas

    def scale(self, name, replicas):
        if self.kubectl:
            self.run("scale", "rs", name, f"--replicas={replicas}")
        else:
            equal(self.ask(f"{SETS}/{name}", "PATCH", {"spec": {"replicas": replicas}},
                           "application/merge-patch+json").status, 200)
        self.wanted[name] = replicas

    def delete(self, name):
        if self.kubectl:
            self.run("delete", "rs", name, "--wait=false")
        else:
            equal(self.ask(f"{SETS}/{name}", "DELETE").status, 200)
        del self.wanted[name]

    def delete_pod(self, name):
        r = self.ask(f"{PODS}/{name}", "DELETE")
        check(r.status in (200, 404), r.text)

    def pods(self):
        return self.ask(PODS).json["items"]

    # ---- the quiet point ----

    def unrest(self):
        """What is not as it shall be; None: all is. What is wrong must be wrong in one look."""
        sets = {s["metadata"]["name"]: s for s in self.ask(SETS).json["items"]}
        pods = self.pods()
        if sorted(sets) != sorted(self.wanted):
            return f"sets {sorted(sets)}, wanted {self.wanted}"
        owned = {name: [] for name in sets}
        mirrors = set()
        for pod in pods:
            meta, where = pod["metadata"], pod["spec"].get("nodeName")
            if "deletionTimestamp" in meta or where not in NODES:
                return f"{meta['name']} on {where} is not settled"
            ready = [c["status"] for c in pod["status"].get("conditions", []) if c["type"] == "Ready"]
            if pod["status"]["phase"] != "Running" or ready != ["True"]:
                return f"{meta['name']} is {pod['status']['phase']}, ready {ready}"
            if "kubernetes.io/config.mirror" in meta.get("annotations", {}):
                mirrors.add(meta["name"])
                continue
            (owner,) = meta["ownerReferences"]
            if sets.get(owner["name"], {"metadata": {"uid": 0}})["metadata"]["uid"] != owner["uid"]:
                return f"{meta['name']} is an orphan of {owner['name']}"
            owned[owner["name"]].append(pod)
        if mirrors != self.static:
            return f"mirrors {mirrors}, wanted {self.static}"
        for name, replicas in self.wanted.items():
            status = sets[name].get("status", {})
            got = (len(owned[name]), status.get("replicas", 0), status.get("readyReplicas", 0),
                   status.get("observedGeneration"))
            want = (replicas, replicas, replicas, sets[name]["metadata"]["generation"])
            if got != want:
                return f"{name}: pods and status are {got}, wanted {want}"
        return self.runtime_unrest(pods)

    def runtime_unrest(self, pods):
        for node in NODES:
            here = [p["metadata"] for p in pods if p["spec"]["nodeName"] == node]
            want = sorted(m.get("annotations", {}).get("kubernetes.io/config.mirror", m["uid"])
                          for m in here)
            try:
                got = sorted(os.listdir(self.case.path(node)))
            except FileNotFoundError:
                got = []
            if got != want:
                return f"{node} runs {got}, wanted {want}"
        return None

    def quiet(self):
        """Wait for it; then it stays: nobody corrects what was right."""
        end, why = time.monotonic() + QUIET_S, None
        while True:
            for part in self.parts[1:]:
                part.tend()
            why = self.unrest()
            if why is None:
                before = {p["metadata"]["uid"] for p in self.pods()}
                time.sleep(0.3)
                after = {p["metadata"]["uid"] for p in self.pods()}
                why = self.unrest()
                if why is None and before == after:
                    break
            check(time.monotonic() < end, f"does not come to rest: {why}")
            time.sleep(0.05)
        for part in self.parts:
            part.verify()

    def done(self):
        for part in self.parts[1:]:
            part.kill()
        self.case.done()

    def show(self):
        for part in self.parts:
            print(f"---- {part.name}\n{part.text()[-3000:]}", flush=True)


# ---- the tests ----

def test_nothing_is_made_twice(flow):
    """Expectations: though the controller sees late what it did, scaling makes and ends as many pods
    as it takes."""
    lag = Lag(flow)
    controller = flow.parts[1]
    controller.kill()
    controller.kubeconfig = lag.kubeconfig
    controller.start()
    flow.create("web", 3)
    flow.quiet()
    first = flow.ask(PODS).json["metadata"]["resourceVersion"]
    flow.scale("web", 30)
    flow.quiet()
    flow.scale("web", 2)
    flow.quiet()
    r = flow.ask(f"{PODS}?watch=1&resourceVersion={first}&timeoutSeconds=4")  # all of it, on a busy machine too
    events = [json.loads(line) for line in r.text.splitlines()]
    for kind, count in (("ADDED", 27), ("DELETED", 28)):
        names = [e["object"]["metadata"]["name"] for e in events if e["type"] == kind]
        equal(len(names), count, f"number of {kind}")
        equal(len(set(names)), count, f"pods {kind}")
    per_node = [len(os.listdir(flow.case.path(n))) for n in NODES]
    equal(sum(per_node), 2, "pods that run")
    flow.delete("web")
    flow.quiet()
    lag.listener.close()


def test_sources_are_merged(flow):
    """Pods of a file and of a URL run beside those of the API, and are seen there."""
    listing = {"items": [manifest("from-url")]}

    class Pods(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps({"apiVersion": "v1", "kind": "PodList", **listing}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pods)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    agent = next(p for p in flow.parts if p.name == "node-1")
    agent.kill()
    agent.args += ("--manifest-url", f"http://127.0.0.1:{web.server_address[1]}/pods")
    agent.start()
    flow.create("web", 2)
    path = flow.case.path("node-1-manifests/one.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(manifest("from-file"), f)
    flow.static = {"from-file-node-1", "from-url-node-1"}
    flow.quiet()
    mirrors = lambda: {p["metadata"]["name"]: p["metadata"] for p in flow.pods()  # noqa: E731
                       if p["metadata"]["name"] in flow.static}
    before = mirrors()
    flow.delete_pod("from-file-node-1")  # a mirror comes back as long as its pod runs
    flow.quiet()
    check(mirrors()["from-file-node-1"]["uid"] != before["from-file-node-1"]["uid"], "the mirror stayed")
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(manifest("from-file", image="another"), f)
    os.rename(path + ".new", path)  # another manifest is another pod
    listing["items"] = []
    flow.static = {"from-file-node-1"}
    end = time.monotonic() + QUIET_S
    while True:
        flow.quiet()
        hashes = mirrors()["from-file-node-1"]["annotations"]["kubernetes.io/config.hash"]
        if hashes != before["from-file-node-1"]["annotations"]["kubernetes.io/config.hash"]:
            break
        check(time.monotonic() < end, "the changed manifest is not taken up")
    flow.server.kill()  # static pods do not need the server
    agent.kill()
    agent.start()
    check(os.listdir(flow.case.path("node-1")), "static pods end when the server does")
    flow.server.start()
    os.unlink(path)
    flow.static = set()
    flow.quiet()
    web.shutdown()
    web.server_close()


def act(flow, dice):
    """Something a user does. Returns its words."""
    names = sorted(flow.wanted)
    what = dice.choice(["scale"] * 4 + ["create"] * 2 + ["delete", "delete pods"])
    if what == "create" or not names:
        name = f"s{dice.randrange(1000)}"
        if name not in flow.wanted and len(names) < 4:
            flow.create(name, dice.randrange(6))
            return f"create {name} {flow.wanted[name]}"
        what = "scale"
    name = dice.choice(names)
    if what == "scale":
        flow.scale(name, dice.randrange(9))
        return f"scale {name} {flow.wanted[name]}"
    if what == "delete":
        flow.delete(name)
        return f"delete {name}"
    some = [p["metadata"]["name"] for p in flow.pods() if dice.random() < 0.4]
    for pod in some:
        flow.delete_pod(pod)
    return f"delete pods {' '.join(some)}"


def chaos(flow, dice):
    """Random kills between, during and after what users do."""
    flow.create("web", 3)
    for _ in range(6):
        said = [act(flow, dice)]
        if dice.random() < 0.5:
            time.sleep(dice.random() * 0.3)  # into the work that it made
        victims = dice.sample(flow.parts, dice.choice((1, 1, 2, len(flow.parts))))
        for part in victims:
            part.kill()
        said.append("kill " + " ".join(p.name for p in victims))
        if flow.server not in victims and dice.random() < 0.5:
            said.append(act(flow, dice))  # while somebody is away
        time.sleep(dice.choice((0, 0, dice.random())))
        dice.shuffle(victims)
        for part in victims:
            part.start()
        if dice.random() < 0.3:
            said.append(act(flow, dice))
        print("  " + "; ".join(said), flush=True)
        flow.quiet()


def in_a_flow(test, *args, elect=False):
    vigild, programs, clients = (os.path.abspath(p) for p in sys.argv[1:4])
    flow = Flow(Case(vigild), programs, find_kubectl(clients), elect=elect)
    try:
        test(flow, *args)
        for part in flow.parts[1:]:
            part.end()
            part.process = subprocess.Popen(["true"])
            for word in FAULTS:
                check(word not in part.text(), f"{part.name}: {part.text()[-4000:]}")
        flow.case.finish()
    except BaseException:
        flow.show()
        raise
    finally:
        flow.done()


def main():
    print("kubectl:", find_kubectl(os.path.abspath(sys.argv[3])) or "none, plain requests", flush=True)
    chosen = sys.argv[4:]
    for test in (test_nothing_is_made_twice, test_sources_are_merged):
        if not chosen or test.__name__ in chosen:
            in_a_flow(test)
            print(f"ok    {test.__name__}", flush=True)
    if chosen and "chaos" not in chosen:
        return
    seed = int(os.environ.get("VG_SEED", 0)) or random.SystemRandom().randrange(1, 1 << 32)
    for run in range(20 if LONG else 2):
        elect = (seed + run) % 3 == 0
        print(f"run {run + 1}: seed={seed + run}{' with leader election' if elect else ''}", flush=True)
        began = time.monotonic()
        in_a_flow(chaos, random.Random(seed + run), elect=elect)
        print(f"ok    run {run + 1} in {time.monotonic() - began:.1f} s", flush=True)


try:
    main()
except Failed as e:
    sys.exit(f"FAIL  {e}")
