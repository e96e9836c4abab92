#!/usr/bin/env python3
"""Replay recorded writes of a real kube-apiserver against a server and count what agrees.

usage: replay.py SERVER VECTORS [--show N] [--only TEXT] [--category NAME]

SERVER is a program that prints "port N" and serves until its input ends (serve.c), or a port.
VECTORS holds invalid/*.jsonl and patches/*.jsonl (tests/vectors/README.md says what a record is);
VG_VECTORS in the environment takes its place. Each record's requests are sent, and the answer to the last one
is compared after normalising what a server may choose: uids, times, revisions, generated names. A
record that differs must fall into one of the CATEGORIES below, each of which names what is not
built yet; any other difference is a failure. --category shows the records of one of them ("all": of
all). Fewer than AGREE_MIN that agree are one too.
"""
import collections
import glob
import http.client
import json
import os
import re
import subprocess
import sys

SERVED = tuple(["/api/v1/"] + ["/apis/" + g for g in (
    "admissionregistration.k8s.io/v1/", "apiextensions.k8s.io/v1/", "apiregistration.k8s.io/v1/", "apps/v1/",
    "authentication.k8s.io/v1/", "authorization.k8s.io/v1/", "autoscaling/v1/", "autoscaling/v2/", "batch/v1/", "certificates.k8s.io/v1/", "coordination.k8s.io/v1/", "discovery.k8s.io/v1/",
    "events.k8s.io/v1/", "flowcontrol.apiserver.k8s.io/v1/", "networking.k8s.io/v1/", "node.k8s.io/v1/", "policy/v1/",
    "rbac.authorization.k8s.io/v1/", "resource.k8s.io/v1/", "scheduling.k8s.io/v1/", "storage.k8s.io/v1/")])
NAMESPACE = "veci-ns"
# Raise it when more agree.
AGREE_MIN = 4215
# Differences that are expected for now, and what will end them.
CATEGORIES = {
    "schema-validation": "a rule that is not covered (docs/kinds.md): CEL, and empty lists inside of a difference",
    "schema-defaults": "a value that admission or another component sets",
    "schema-unknown": "an unknown or repeated field in an object that differs otherwise",
    "unserved": "a method, subresource or kind that is not served yet",
    "allocation": "a service without a name: there the books of addresses refuse it first",
}

METADATA = re.compile(r"metadata\.(name|namespace|generateName|labels|annotations|ownerReferences|"
                      r"finalizers|uid|generation|creationTimestamp|deletion\w+|resourceVersion)\b")
# Names that follow from the rest of the object, or are something else than a name.
NAME_OF_KIND = re.compile(r"metadata\.name: .*(must be `?spec\.|must be a valid IP address)")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
RECORD_REV = re.compile(r"(in record \()\d+(\))")
SHOWN_REV = re.compile(r'(resourceVersion\\*":\\*")\d+')


class Client:
    def __init__(self, port):
        self.port = port
        self.conn = None

    def send(self, method, path, headers=None, body=None):
        data = None
        if body is not None:
            data = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
            data = data.encode()
        sent = {k: v for k, v in (headers or {}).items() if k != "Authorization"}
        sent.setdefault("User-Agent", "")
        for again in (True, False):
            try:
                if not self.conn:
                    self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                self.conn.putrequest(method, path.replace(" ", "%20"), skip_accept_encoding=True)
                for k, v in sent.items():
                    self.conn.putheader(k, v)
                if data is not None or method in ("POST", "PUT", "PATCH"):
                    self.conn.putheader("Content-Length", str(len(data or b"")))
                self.conn.endheaders()
                if data:
                    self.conn.send(data)
                r = self.conn.getresponse()
                text = r.read()
                break
            except (http.client.HTTPException, OSError):
                self.conn = None
                if not again:
                    raise
        warnings = [v for k, v in r.getheaders() if k.lower() == "warning"]
        try:
            answer = json.loads(text)
        except ValueError:
            answer = text.decode("utf-8", "replace")
        return r.status, warnings, answer


def normal_text(s):
    s = TIME.sub("<time>", UUID.sub("<uuid>", s))
    return SHOWN_REV.sub(r"\1<rev>", RECORD_REV.sub(r"\1<rev>\2", s))


GENERATED = re.compile(r"^(Bad_|x{58})[a-z0-9]{5}$|^(.*-)[bcdfghjklmnpqrstvwxz2456789]{5}$")


def manager(entry):
    return [str(entry.get(k)) for k in ("manager", "operation", "apiVersion", "subresource", "fieldsV1")]


def in_one_order(causes_):
    """The original's order of conflicts with several managers is a map's."""
    if all(isinstance(c, dict) and c.get("reason") == "FieldManagerConflict" for c in causes_):
        return sorted(causes_, key=lambda c: (c["message"], c["field"]))
    return causes_


def normal(v, key=""):
    if isinstance(v, dict):
        return {k: normal(x, k) for k, x in v.items()}
    if isinstance(v, list) and key == "causes":
        v = in_one_order(v)
    if isinstance(v, list) and key == "managedFields":
        return sorted((normal(x) for x in v), key=manager)  # their order follows their times
    if isinstance(v, list):
        return [normal(x, key) for x in v]
    if isinstance(v, str):
        if key in ("resourceVersion",):
            return "<rev>"
        if key in ("creationTimestamp", "deletionTimestamp"):
            return "<time>"
        if key in ("clusterIP", "clusterIPs") and v.startswith("10.0.0."):
            return "<ip>"
        v = normal_text(v)
        return re.sub(r"\b(Bad_|x{58})[a-z0-9]{5}\b", r"\1<gen>", v)
    if key in ("nodePort", "healthCheckNodePort") and 30000 <= v <= 32767:
        return "<port>"
    return v


def fill(v, answers, pattern):
    """Placeholders in a text or tree, by the answers so far."""
    if isinstance(v, str):
        def value(m):
            at = answers[int(m.group(1))]
            for step in re.split(r"[./]", m.group(2).strip("/.")):
                at = at[int(step)] if isinstance(at, list) else at[step]
            return str(at)
        return pattern.sub(value, v)
    if isinstance(v, dict):
        return {k: fill(x, answers, pattern) for k, x in v.items()}
    if isinstance(v, list):
        return [fill(x, answers, pattern) for x in v]
    return v


def expand(body):
    if isinstance(body, dict) and set(body) == {"repeat", "element"}:
        return [body["element"]] * body["repeat"]
    return body


# ---- what differs, and why ----

def causes(answer):
    return (answer.get("details") or {}).get("causes") or [] if isinstance(answer, dict) else []


def fields_of(answer):
    return [c.get("field", "") for c in causes(answer)]


def is_status(answer):
    return isinstance(answer, dict) and answer.get("kind") == "Status"


def category(record, status, warnings, answer, got_status, got_warnings, got):
    text = answer.get("message", "") if is_status(answer) else ""
    headers = record.get("headers") or {}
    ctype = headers.get("Content-Type", "")
    if "clusterIP" in text or "failed to allocate IP" in text:
        return "allocation"
    if "unknown field" in text or any("unknown field" in w for w in warnings):
        return "schema-unknown"
    if status == 422 and any(not METADATA.match(f) for f in fields_of(answer)):
        return "schema-validation"
    if status == 422 and NAME_OF_KIND.search(text):
        return "schema-validation"
    if record["path"].startswith("/api/v1/componentstatuses") or record["method"] == "BOGUS":
        return "unserved"
    if status < 300 and got_status < 300 and without_metadata(answer) != without_metadata(got) \
            and (only_metadata(answer) == only_metadata(got)
                 or SET_BY_KIND.search(json.dumps(only_metadata(answer)))):
        return "schema-defaults"
    if status < 300 and got_status < 300 and warnings != got_warnings:
        return "schema-validation"
    return None


def without_metadata(v):
    return {k: x for k, x in v.items() if k != "metadata"} if isinstance(v, dict) else v


# Metadata that kinds or admission set by themselves in the original.
SET_BY_KIND = re.compile(r"kubernetes\.io/pvc?-protection|deprecated\.daemonset|controller-uid|job-name")


def only_metadata(v):
    m = normal(v.get("metadata")) if isinstance(v, dict) else None
    if isinstance(m, dict):
        m.pop("generation", None)
        m.pop("managedFields", None)
    return m


# ---- running ----

class Tally:
    def __init__(self, wanted):
        self.by_file = collections.defaultdict(collections.Counter)
        self.failures = []
        self.shown = []  # of the category that was asked for
        self.wanted = wanted

    def add(self, name, record, want, got):
        status, warnings, answer = want
        same = (got[0] == status and normal(got[2]) == normal(answer)
                and [normal_text(w) for w in got[1]] == [normal_text(w) for w in warnings])
        if same:
            self.by_file[name]["agrees"] += 1
            return
        why = category(record, status, warnings, answer, got[0], got[1], got[2])
        self.by_file[name][why or "DIFFERS"] += 1
        if not why:
            self.failures.append((record["id"], record, want, got))
        elif self.wanted in (why, "all"):
            self.shown.append((record["id"], record, want, got))


def warnings_of(record):
    w = (record.get("response_headers") or {}).get("Warning")
    return [] if w is None else w if isinstance(w, list) else [w]


def clean_up(client, paths):
    for path in paths:
        client.send("PATCH", path, {"Content-Type": "application/merge-patch+json"},
                    {"metadata": {"finalizers": None}})
        client.send("DELETE", path + "?gracePeriodSeconds=0&propagationPolicy=Background")
        if re.fullmatch(r"/api/v1/namespaces/[^/]+", path):
            name = path.rsplit("/", 1)[1]
            client.send("PUT", path + "/finalize", {"Content-Type": "application/json"},
                        {"metadata": {"name": name}, "spec": {"finalizers": []}})


def object_path(path, answer):
    path = path.split("?")[0]
    name = (answer.get("metadata") or {}).get("name") if isinstance(answer, dict) else None
    if not name or is_status(answer):
        return None
    return path if path.endswith("/" + name) else path + "/" + name


# Reads that are replayed here: of what a node would answer.
SUBRESOURCE = re.compile(r"/pods/[^/]+/(exec|log|attach|portforward|proxy)\b")
SETUP = re.compile(r"\$\{(\d+)\.([^}]*)\}")
STEP = re.compile(r"\{\{(\d+):([^}]*)\}\}")


def run_invalid(client, name, record, tally):
    made, answers = [], []
    for s in record.get("setup") or []:
        path = fill(s["path"], answers, SETUP)
        st, _, a = client.send(s["method"], path, s.get("headers"), fill(s.get("body"), answers, SETUP))
        answers.append(a)
        if st == 201 and object_path(path, a):
            made.append(object_path(path, a))
    path = fill(record["path"], answers, SETUP)
    got = client.send(record["method"], path, record.get("headers"),
                      fill(record.get("body"), answers, SETUP))
    if got[0] in (200, 201) and record["method"] in ("POST", "PUT") and object_path(path, got[2]):
        made.append(object_path(path, got[2]))
    tally.add(name, record, (record["status"], warnings_of(record), record["response"]), got)
    clean_up(client, [p for p in dict.fromkeys(made) if p.split("/")[-1] != NAMESPACE])


def run_patch(client, name, case, tally):
    answers = []
    for step in case["steps"]:
        path = fill(step["path"], answers, STEP)
        body = fill(expand(step.get("body")), answers, STEP)
        got = client.send(step["method"], path, step.get("headers"), body)
        answers.append(got[2])
    last = dict(case["steps"][-1], id=case["id"], setup=case["steps"][:-1])
    warnings = last.get("warning") or []
    tally.add(name, last, (last["status"], warnings, last["response"]), got)
    clean_up(client, [case["object"]])


def records(pattern):
    for path in sorted(glob.glob(pattern)):
        with open(path) as f:
            for line in f:
                yield os.path.basename(path)[:-6], json.loads(line)


def make_namespace(client, name):
    client.send("POST", "/api/v1/namespaces", {"Content-Type": "application/json"},
                {"metadata": {"name": name}})


def replay(vectors, client, only, wanted):
    tally = Tally(wanted)
    make_namespace(client, NAMESPACE)
    make_namespace(client, "default")  # unless the server has made it
    for name, r in records(vectors + "/invalid/*.jsonl"):
        if name != "list-options" and r["path"].startswith(SERVED) and only in r["id"] \
                and (r["method"] != "GET" or SUBRESOURCE.search(r["path"])):
            run_invalid(client, name, r, tally)
    with open(vectors + "/patches/fixtures.json") as f:
        for fixture in json.load(f)["objects"]:
            if fixture["path"] == "/api/v1/namespaces":
                make_namespace(client, fixture["body"]["metadata"]["name"])
    for name in ("json", "merge", "strategic", "apply"):
        for _, case in records(f"{vectors}/patches/{name}.jsonl"):
            if case["object"].startswith(SERVED) and only in case["id"]:
                run_patch(client, "patches-" + name, case, tally)
    return tally


def report(tally, show, only):
    total = collections.Counter()
    for name, counts in sorted(tally.by_file.items()):
        total.update(counts)
        print(f"{name}: " + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))
    print("all: " + ", ".join(f"{k} {v}" for k, v in sorted(total.items())))
    for rid, record, want, got in (tally.failures + tally.shown)[:show]:
        a, b = json.dumps(normal(want[2]), sort_keys=True), json.dumps(normal(got[2]), sort_keys=True)
        at = max(0, next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), 0) - 150)
        print(f"--- {rid}: {record['method']} {record['path']}\n"
              f"  body {json.dumps(record.get('body'))[:300]}\n"
              f"  want {want[0]} {want[1]} ...{a[at:at + 600]}\n"
              f"  got  {got[0]} {got[1]} ...{b[at:at + 600]}")
    return 1 if tally.failures or (not only and total["agrees"] < AGREE_MIN) else 0


def main():
    args = sys.argv[1:]
    show = int(args[args.index("--show") + 1]) if "--show" in args else 20
    only = args[args.index("--only") + 1] if "--only" in args else ""
    wanted = args[args.index("--category") + 1] if "--category" in args else None
    vectors = os.environ.get("VG_VECTORS", args[1])
    server = None
    if not args[0].isdigit():
        server = subprocess.Popen([args[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        args[0] = server.stdout.readline().split()[1]
    tally = replay(vectors, Client(int(args[0])), only, wanted)
    if server:
        server.stdin.close()
        if server.wait() != 0:
            print(f"the server ended with {server.returncode}")
            return 1
    return report(tally, show, only)


if __name__ == "__main__":
    sys.exit(main())
