#!/usr/bin/env python3
"""Send the fixtures of the kinds to a real cluster and to vigild, and show where the answers differ.

usage: diff.py KUBECONFIG (--vigild PROGRAM | --ours KUBECONFIG) [--kubectl PROGRAM]
               [--only TEXT] [--show N] [--updates] [--max N]

Each object of tests/kinds/fixtures is posted to both with dryRun=All, so nothing is changed and no
namespace is made: namespaced objects go to "default". Compared are status, reason, message, causes,
warnings, and of what is accepted the whole object after defaulting, but for what a server chooses (uids,
times, revisions, managedFields, addresses and ports that nobody gave), what admission of a cluster adds to
pods and nodes, and the order of causes (CHOSEN and below). --updates also compares updates: then the object before the update is created in a
namespace of its own, which is deleted at the end; objects without a namespace are left out. --only takes
records whose file or name has that text, --show prints so many differences (20), --max is how many may
differ before the exit status is 1 (0).

Whoever is meant by KUBECONFIG must be allowed to create these kinds. kubectl speaks to both sides (`kubectl
proxy`), so every way of logging in that kubectl knows will do.
"""
import argparse
import copy
import glob
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_S = 60
# Where a value is chosen by the server, or added by admission of a real cluster: removed on both sides.
CHOSEN = ("metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.managedFields",
          "metadata.generation", "spec.clusterIP", "spec.clusterIPs", "spec.healthCheckNodePort",
          "spec.ipFamilies", "spec.ipFamilyPolicy", "spec.serviceAccount", "spec.serviceAccountName", "spec.priority", "spec.preemptionPolicy",
          "spec.username", "spec.uid", "spec.groups", "spec.extra", "status.lastPhaseTransitionTime")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MANAGED = re.compile(r',\\"managedFields\\":\[\{.*?\}\](?=[,}])')
GENERATED = re.compile(r"(-)[bcdfghjklmnpqrstvwxz2456789]{5}\b")


class Failed(Exception):
    """Something without which nothing can be compared."""


def line_of(process, pattern, what):
    """The first group of the first line that matches; the process may take a while to say it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        found = re.search(pattern, line)
        if found:
            return found.group(1)
        if not line and process.poll() is not None:
            break
    raise Failed(f"{what} does not start")


class Server:
    """One side, behind `kubectl proxy`."""

    def __init__(self, kubectl, kubeconfig, name):
        self.name, self.conn, self.kinds = name, None, {}
        self.proxy = subprocess.Popen([kubectl, "--kubeconfig", kubeconfig, "proxy", "--port", "0"],
                                      stdout=subprocess.PIPE, text=True)
        try:
            self.port = int(line_of(self.proxy, r"127\.0\.0\.1:(\d+)", f"kubectl proxy to {name}"))
            self.learn_kinds()
        except BaseException:
            self.close()
            raise

    def close(self):
        self.proxy.terminate()
        self.proxy.wait()

    def send(self, method, path, body=None):
        for again in (True, False):
            try:
                if not self.conn:
                    self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
                headers = {"Content-Type": "application/json", "User-Agent": "vigil-diff"}
                self.conn.request(method, path, json.dumps(body) if body is not None else None, headers)
                r = self.conn.getresponse()
                text = r.read()
                break
            except (http.client.HTTPException, OSError):
                self.conn = None
                if not again:
                    raise
        warnings = [v for k, v in r.getheaders() if k.lower() == "warning"]
        try:
            return r.status, warnings, json.loads(text)
        except ValueError:
            return r.status, warnings, text.decode("utf-8", "replace")

    def get(self, path):
        status, _, answer = self.send("GET", path)
        if status != 200:
            raise Failed(f"{self.name}: GET {path}: {status} {answer}")
        return answer

    def learn_kinds(self):
        """(apiVersion, kind) -> (path of its version, resource, namespaced)"""
        versions = [("/api/v1", "v1")]
        for group in self.get("/apis")["groups"]:
            versions += [("/apis/" + v["groupVersion"], v["groupVersion"]) for v in group["versions"]]
        for path, version in versions:
            for r in self.get(path)["resources"]:
                if "/" not in r["name"] and "create" in r["verbs"]:
                    self.kinds[version, r["kind"]] = (path, r["name"], r["namespaced"])


class Vigil:
    """A server of ours with data of its own, and without controllers, which would change what is compared."""

    def __init__(self, program):
        self.dir = tempfile.mkdtemp(prefix="vigil-diff-")
        self.process = subprocess.Popen([program, "--data-dir", self.dir, "--secure-port", "0", "--controllers="],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            line_of(self.process, "^(vigild) ready on ", "vigild")
        except BaseException:
            self.close()
            raise
        self.kubeconfig = os.path.join(self.dir, "admin.kubeconfig")

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- what is compared ----

def remove(v, path):
    """Take away what `path` names, at the root and in templates."""
    steps = path.split(".")
    for step in steps[:-1]:
        v = v.get(step) if isinstance(v, dict) else None
    if isinstance(v, dict):
        v.pop(steps[-1], None)


def without_token_mounts(spec):
    """What the admission of service accounts adds to a pod."""
    is_ours = lambda v: not str(v.get("name", "")).startswith("kube-api-access-")
    for where, key in [(spec, "volumes")] + [(c, "volumeMounts") for k in ("containers", "initContainers")
                                             for c in spec.get(k) or []]:
        if where.get(key):
            where[key] = [v for v in where[key] if is_ours(v)]
            if not where[key]:
                del where[key]


def without_condition_taints(spec):
    """What the admission of nodes adds to a new one."""
    spec["taints"] = [t for t in spec.get("taints") or [] if t.get("key") != "node.kubernetes.io/not-ready"]
    if not spec["taints"]:
        del spec["taints"]


def in_order(status):
    """The original looks at the members of a map in any order, and so tells of them."""
    causes = (status.get("details") or {}).get("causes")
    if causes and len(causes) > 1:
        causes.sort(key=lambda c: (c.get("field", ""), c.get("message", "")))
        status["message"] = re.sub(r": \[.*\]$", ": <causes>", status.get("message", ""), flags=re.S)


def normal(v, sent):
    v = copy.deepcopy(v)
    if isinstance(v, dict) and v.get("kind") != "Status":
        for path in CHOSEN:
            if not path.startswith("metadata.") and given(sent, path):
                continue
            remove(v, path)
        if isinstance(v.get("spec"), dict) and v.get("kind") == "Pod":
            without_token_mounts(v["spec"])
        if isinstance(v.get("spec"), dict) and v.get("kind") == "Node":
            without_condition_taints(v["spec"])
        for port in (v.get("spec") or {}).get("ports") or [] if v.get("kind") == "Service" else []:
            port.pop("nodePort", None)
    elif isinstance(v, dict):
        in_order(v)
    text = UUID.sub("<uuid>", TIME.sub("<time>", json.dumps(v, sort_keys=True)))
    text = MANAGED.sub("", text)
    if isinstance(sent, dict) and (sent.get("metadata") or {}).get("generateName"):
        text = GENERATED.sub(r"\1<generated>", text)
    return json.loads(text)


def given(sent, path):
    for step in path.split("."):
        if not isinstance(sent, dict) or step not in sent:
            return False
        sent = sent[step]
    return True


def same(a, b, sent):
    return a[0] == b[0] and sorted(a[1]) == sorted(b[1]) and normal(a[2], sent) == normal(b[2], sent)


def is_there_already(answer):
    return answer[0] == 409 and isinstance(answer[2], dict) and answer[2].get("reason") == "AlreadyExists"


# ---- sending ----

def at(server, record, ns):
    """The path for this record's kind, and whether it has namespaces; None: not served."""
    o = record["object"]
    found = server.kinds.get((o.get("apiVersion"), o.get("kind")))
    if not found:
        return None, False
    path, resource, namespaced = found
    return (f"{path}/namespaces/{ns}/{resource}" if namespaced else f"{path}/{resource}"), namespaced


def in_namespace(obj, ns):
    obj = copy.deepcopy(obj)
    if ns:
        obj.setdefault("metadata", {})["namespace"] = ns
    return obj


def create(server, record, ns):
    path, namespaced = at(server, record, ns)
    return server.send("POST", path + "?dryRun=All", in_namespace(record["object"], ns if namespaced else None))


def update(server, record, ns):
    """The answer to the update, or None if what was before it is not accepted."""
    path, _ = at(server, record, ns)
    status, _, made = server.send("POST", path, in_namespace(record["old"], ns))
    if status != 201:
        return None
    target = f"{path}/{made['metadata']['name']}"
    obj = in_namespace(record["object"], ns)
    obj["metadata"].setdefault("name", made["metadata"]["name"])
    obj["metadata"].pop("uid", None)
    obj["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    answer = server.send("PUT", target + ("/status" if record.get("status") else "") + "?dryRun=All", obj)
    server.send("DELETE", target + "?gracePeriodSeconds=0&propagationPolicy=Background")
    return answer


class Tally:
    def __init__(self):
        self.same, self.differs, self.left_out = 0, [], {}

    def leave_out(self, why):
        self.left_out[why] = self.left_out.get(why, 0) + 1

    def add(self, name, ours, theirs, sent):
        if same(ours, theirs, sent):
            self.same += 1
        else:
            self.differs.append((name, normal_answer(ours, sent), normal_answer(theirs, sent)))


def normal_answer(a, sent):
    return f"{a[0]} {a[1] if a[1] else ''} {json.dumps(normal(a[2], sent))}"


def compare(ours, theirs, record, name, own_ns, tally):
    path, namespaced = at(theirs, record, "default")
    if not path:
        tally.leave_out("the cluster does not serve the kind")
    elif not at(ours, record, "default")[0]:
        tally.leave_out("vigil does not serve the kind")
    elif "old" not in record:
        answers = create(ours, record, "default"), create(theirs, record, "default")
        if is_there_already(answers[1]):
            tally.leave_out("there is an object of that name")
        else:
            tally.add(name, *answers, record["object"])
    elif not own_ns:
        tally.leave_out("updates (--updates)")
    elif not namespaced:
        tally.leave_out("updates of what has no namespace")
    else:
        answers = update(ours, record, own_ns), update(theirs, record, own_ns)
        if None in answers:
            tally.leave_out("updates of what is not accepted as it was before")
        else:
            tally.add(name, *answers, record["object"])


def records(only):
    for path in sorted(glob.glob(os.path.join(HERE, "fixtures", "*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            for line in f:
                if line.strip() and not line.startswith("#"):
                    record = json.loads(line)
                    name = f"{os.path.basename(path)[:-6]}: {record['name']}"
                    if only in name:
                        yield name, record


def run(ours, theirs, args):
    tally, own_ns = Tally(), None
    try:
        if args.updates:
            own_ns = f"vigil-diff-{os.getpid()}"
            for server in (ours, theirs):
                status, _, answer = server.send("POST", "/api/v1/namespaces", {"metadata": {"name": own_ns}})
                if status != 201:
                    raise Failed(f"{server.name}: no namespace {own_ns}: {answer}")
        for name, record in records(args.only):
            compare(ours, theirs, record, name, own_ns, tally)
    finally:
        if own_ns:
            theirs.send("DELETE", f"/api/v1/namespaces/{own_ns}")
    return tally


def report(tally, show):
    for name, ours, theirs in tally.differs[:show]:
        i = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        begin = max(0, i - 100)
        print(f"--- {name}\n  ours   {ours[:40]} ...{ours[begin:i + 300]}\n"
              f"  theirs {theirs[:40]} ...{theirs[begin:i + 300]}")
    for why, n in sorted(tally.left_out.items()):
        print(f"{n} not compared: {why}")
    print(f"{tally.same} answers are the same, {len(tally.differs)} differ")


def arguments():
    p = argparse.ArgumentParser(description="fixtures against a real cluster")
    p.add_argument("kubeconfig")
    p.add_argument("--vigild")
    p.add_argument("--ours")
    p.add_argument("--kubectl", default=os.environ.get("KUBECTL") or shutil.which("kubectl") or "kubectl")
    p.add_argument("--only", default="")
    p.add_argument("--show", type=int, default=20)
    p.add_argument("--max", type=int, default=0)
    p.add_argument("--updates", action="store_true")
    args = p.parse_args()
    if not args.vigild and not args.ours:
        p.error("want --vigild or --ours")
    return args


def main():
    args, opened = arguments(), []
    try:
        ours = args.ours
        if not ours:
            opened.append(Vigil(args.vigild))
            ours = opened[-1].kubeconfig
        for kubeconfig, name in ((ours, "vigil"), (args.kubeconfig, "the cluster")):
            opened.append(Server(args.kubectl, kubeconfig, name))
        tally = run(opened[-2], opened[-1], args)
    except (Failed, OSError) as e:
        print(f"diff: {e}", file=sys.stderr)
        return 2
    finally:
        for x in reversed(opened):
            x.close()
    report(tally, args.show)
    return 1 if len(tally.differs) > args.max else 0


if __name__ == "__main__":
    sys.exit(main())
