"""cli.py - vigil against vigild: what it prints, what it says when it cannot, how it ends, and what
it draws on a terminal. Called with vigild, vigil, its manual page and the folder of recorded answers (tests/vectors)."""
import atexit
import contextlib
import fcntl
import glob
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "vigild"))
from vigild import LIMIT_S, check, equal, free_port, has, main, wait_for  # noqa: E402

VIGIL, MAN, VECTORS = (os.path.abspath(sys.argv.pop(2)) for _ in range(3))


def environment(server):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES_")}
    return {**env, "KUBECONFIG": server.path("admin.kubeconfig") if server else "/nowhere/config",
            "TERM": "xterm"}


def vigil(server, *args, status=0):
    r = subprocess.run([VIGIL, *args], env=environment(server), capture_output=True, text=True,
                       stdin=subprocess.DEVNULL, timeout=LIMIT_S, check=False)
    equal(r.returncode, status, f"exit status of {args}, with {r.stdout!r} and {r.stderr!r}")
    for word in ("Sanitizer", "runtime error:", "Assertion"):
        check(word not in r.stderr, r.stderr)
    return r


def create(server, path, name, **more):
    answer = server.ask(path, "POST", body={"metadata": {"name": name}, **more})
    equal(answer.status, 201, f"status of creating {name}: {answer.text}")


def pod(server, name, ns="default", **labels):
    body = {"metadata": {"name": name, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}
    equal(server.ask(f"/api/v1/namespaces/{ns}/pods", "POST", body=body).status, 201, "status")


def patch(server, path, body):
    answer = server.ask(path, "PATCH", body=json.dumps(body),
                        headers={"Content-Type": "application/merge-patch+json"})
    equal(answer.status, 200, f"status of a patch: {answer.text}")


def rows(text):
    return [re.split(r" {3,}", line) for line in text.splitlines()]


class Other(http.server.BaseHTTPRequestHandler):
    """A server that is not vigild."""
    paths = {}

    def do_GET(self):  # pylint: disable=invalid-name
        body = self.paths.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Length", str(len((body or "").encode())))
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, *args):
        pass


@contextlib.contextmanager
def other_server(paths=None):
    Other.paths = paths or {}
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


# ---- get ----

def test_get(case):
    s = case.start()
    pod(s, "web", app="web")
    pod(s, "db", app="db")
    pod(s, "agent", ns="kube-system")
    for kind in ("pods", "pod", "po", "Pod"):
        equal([r[:4] for r in rows(vigil(s, "get", kind).stdout)],
              [["NAME", "READY", "STATUS", "RESTARTS"], ["db", "0/1", "Pending", "0"],
               ["web", "0/1", "Pending", "0"]], kind)
    check(re.fullmatch(r"\d+s", rows(vigil(s, "get", "po").stdout)[1][4]), "the age is no age")
    equal(rows(vigil(s, "get", "po", "-o", "wide").stdout)[1][5:], ["<none>"] * 4)  # as the server prints it
    equal([r[:2] for r in rows(vigil(s, "get", "pods", "-A").stdout)],
          [["NAMESPACE", "NAME"], ["default", "db"], ["default", "web"], ["kube-system", "agent"]])
    equal(vigil(s, "get", "pods", "-o", "name", "-n", "kube-system").stdout, "pod/agent\n")
    equal(vigil(s, "get", "pods", "-o", "name", "-l", "app=web").stdout, "pod/web\n")
    equal(vigil(s, "get", "pods", "-o", "name", "--field-selector=metadata.name=db").stdout,
          "pod/db\n")
    equal(vigil(s, "get", "pod/web", "-o", "name").stdout, "pod/web\n")
    equal(vigil(s, "get", "pods", "web", "-o", "name").stdout, "pod/web\n")
    listed = json.loads(vigil(s, "get", "pods", "-A", "-o", "json").stdout)
    equal([i["metadata"]["name"] for i in listed["items"]], ["db", "web", "agent"])
    equal(json.loads(vigil(s, "get", "pods", "web", "-o", "json").stdout),
          s.ask("/api/v1/namespaces/default/pods/web").json)
    equal(json.loads(vigil(s, "get", "cm", "-o", "json").stdout)["items"], [])
    equal(vigil(s, "get", "cm", "-o", "yaml").stdout, "apiVersion: v1\nitems: []\nkind: List\n")


def test_yaml(case):
    s = case.start()
    data = {"text": "one\n\n two\n", "odd": "\x1b[2J: - #", "no": "no", "n": "1"}
    create(s, "/api/v1/namespaces/default/configmaps", "a", data=data)
    create(s, "/api/v1/namespaces/default/configmaps", "b", data=data)
    one = vigil(s, "get", "cm/a", "-o", "yaml").stdout
    has(one, "apiVersion: v1\ndata:\n  ")
    has(one, "\nkind: ConfigMap\nmetadata:\n  creationTimestamp: ")
    check("\x1b" not in one, "a control character in YAML")
    body = one.replace("name: a\n", "name: c\n").replace("  resourceVersion:", "  x:")
    answer = s.ask("/api/v1/namespaces/default/configmaps?dryRun=All", "POST", body=body,
                   headers={"Content-Type": "application/yaml"})
    equal((answer.status, answer.json.get("data")), (201, data), "what the server reads of it")
    items = ""
    for text in (one, vigil(s, "get", "cm/b", "-o", "yaml").stdout):
        items += re.sub(r"(?m)^(?=.)", "  ", text).replace("  ", "- ", 1)
    equal(vigil(s, "get", "cm", "-o", "yaml").stdout, f"apiVersion: v1\nitems:\n{items}kind: List\n")
    w = Piped(s, "watch", "cm/a", "-o", "yaml")
    equal(w.line(), "--- # ADDED")
    equal(w.line(), "apiVersion: v1")
    w.end()


def test_columns(case):
    s = case.start()
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    create(s, "/apis/apps/v1/namespaces/default/deployments", "web",
           spec={"replicas": 3, "selector": {"matchLabels": {"a": "b"}}, "template": template})
    create(s, "/api/v1/nodes", "n1")
    patch(s, "/api/v1/nodes/n1/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    equal(rows(vigil(s, "get", "deploy").stdout)[1][:2], ["web", "0/3"])
    equal(rows(vigil(s, "get", "deployments.apps").stdout)[0],
          ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"])
    equal(vigil(s, "get", "deploy", "-o", "name").stdout, "deployment.apps/web\n")
    equal(rows(vigil(s, "get", "nodes").stdout)[1][:2], ["n1", "Ready"])
    equal(rows(vigil(s, "get", "ns", "default").stdout)[1][:2], ["default", "Active"])
    equal(rows(vigil(s, "get", "svc", "-A").stdout + "\n")[0][:1] in ([""], ["NAMESPACE"]), True)
    names = [r[0] for r in rows(vigil(s, "kinds").stdout)]
    check("pods" in names and "deployments" in names and "pods/log" not in names, names)


# ---- tables that the server makes ----

def table(*names, token=""):
    return json.dumps({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": token},
                       "columnDefinitions": [{"name": "Name"}, {"name": "Mood"}, {"name": "More", "priority": 1}],
                       "rows": [{"cells": [n, "fine", 1], "object": {"metadata": {"namespace": "x"}}} for n in names]})


def test_tables_of_the_server_are_used(case):
    check(case, "no case")
    kinds = {"resources": [{"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing",
                            "verbs": ["get", "list"]}]}
    of = "/api/v1/namespaces/default/things"
    paths = {"/api/v1": json.dumps(kinds), f"{of}?limit=500": table("a", "b", token="n/x="),
             f"{of}?limit=500&continue=n%2Fx%3D": table("c"), f"{of}/a": table("a"),
             "/api/v1/things?limit=500": table(), "/api/v1/namespaces/n/things?limit=500": table("z")}
    with other_server(paths) as url:
        server = ("--server", url)
        equal(rows(vigil(None, "get", "things", *server).stdout),
              [["NAME", "MOOD"], ["a", "fine"], ["b", "fine"], ["c", "fine"]])
        equal(rows(vigil(None, "get", "thing/a", "-o", "wide", *server).stdout),
              [["NAME", "MOOD", "MORE"], ["a", "fine", "1"]])
        has(vigil(None, "get", "things", "-A", *server).stderr, "No things found.")
        second, objects = f"{of}?limit=500&continue=n%2Fx%3D", {"items": [{"metadata": {"name": "c"}}]}
        Other.paths[second] = json.dumps(objects)
        has(vigil(None, "get", "things", *server, status=1).stderr, "a table for one page")
        Other.paths[f"{of}?limit=500"] = json.dumps({"metadata": {"continue": "n/x="}, **objects})
        equal([r[0] for r in rows(vigil(None, "get", "things", *server).stdout)], ["NAME", "c", "c"])
        Other.paths[second] = table("c")
        has(vigil(None, "get", "things", *server, status=1).stderr, "a table for one page")
        Other.paths["/api/v1/things?limit=500"] = table("d")
        equal(rows(vigil(None, "get", "things", "-A", *server).stdout),
              [["NAMESPACE", "NAME", "MOOD"], ["x", "d", "fine"]])


def recorded():
    """(what kube-apiserver was asked of, its table, its list) for each kind that was recorded."""
    base = os.path.join(os.environ.get("VG_VECTORS", VECTORS), "kinds")
    paths = sorted(glob.glob(os.path.join(base, "*/*/**/table-list.json"), recursive=True))
    if not os.environ.get("VG_LONG"):  # all pods, and the first two of other kinds
        kinds = [os.path.relpath(p, base).split(os.sep)[0] for p in paths]
        paths = [p for i, p in enumerate(paths) if kinds[i] == "core_v1_Pod" or i < 2 or kinds[i] != kinds[i - 2]]
    for path in paths:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        group, version, kind = os.path.relpath(path, base).split(os.sep)[0].rsplit("_", 2)
        listed = os.path.join(os.path.dirname(path), "list.json")
        if os.path.exists(listed):
            with open(listed, encoding="utf-8") as f:
                yield ("" if group == "core" else group, version, kind), text, f.read()


def columns_agree(url, at, answer, want):
    """With a list in place of a table, columns of the same name have the same cells."""
    Other.paths[at] = answer
    lines = rows(vigil(None, "get", "things", "-o", "wide", "--server", url).stdout)
    heads = [c["name"].upper() for c in want["columnDefinitions"]]
    n = 0
    for i, head in enumerate(lines[0]):
        if head == "AGE" or head not in heads:
            continue
        cells = [str(r["cells"][heads.index(head)]) for r in want["rows"]]
        cells = [re.sub(r" \(.* ago\)$", "", c) for c in cells]
        cells = ["<none>" if c in ("", "<unknown>") else c for c in cells]  # of what is not there
        equal([line[i] for line in lines[1:]], cells, f"{head} of {at}")
        n += 1
    return n


def test_recorded_tables_and_lists_agree(case):
    check(case, "no case")
    seen = agreed = 0
    with other_server() as url:
        for (group, version, kind), text, listed in recorded():
            want = json.loads(text)
            plural = re.sub("s$", "se", kind.lower()) + "s" if kind.endswith("s") else kind.lower() + "s"
            things = {"resources": [{"name": plural, "singularName": "things", "kind": kind,
                                     "verbs": ["get", "list"]}]}
            base = f"/apis/{group}/{version}" if group else "/api/v1"
            at = f"{base}/{plural}?limit=500"
            Other.paths = {"/api/v1": json.dumps({"resources": []}), base: json.dumps(things),
                           "/apis": json.dumps({"groups": [{"preferredVersion": {"groupVersion": f"{group}/{version}"}}]}),
                           at: text}
            lines = rows(vigil(None, "get", "things", "-o", "wide", "--server", url).stdout)
            equal(lines[0], [c["name"].upper() for c in want["columnDefinitions"]])
            equal(len(lines) - 1, len(want["rows"]), kind)
            equal([line[0] for line in lines[1:]], [r["cells"][0] for r in want["rows"]])
            agreed += columns_agree(url, at, listed, want)
            seen += 1
    print(f"      {seen} recorded tables, {agreed} columns of ours agree", flush=True)
    check(seen >= 80 and agreed >= 100, "recorded tables are missing")


def test_failures_say_what_to_do(case):
    s = case.start()
    has(vigil(s, "get", "pood", status=1).stderr, "did you mean pods?")
    refused = vigil(s, "get", "pods", "nope", status=1).stderr
    has(refused, 'Error from server (NotFound): pods "nope" not found\n')
    has(refused, "-n chooses")
    has(vigil(s, "get", "pods").stderr, "-A looks in all")
    has(vigil(s, "get", status=2).stderr, "--help")
    has(vigil(s, "get", "pods", "-o", "xml", status=2).stderr, "table, wide, name, json or yaml")
    has(vigil(s, "get", "pods", "-l", "a b", status=1).stderr, "Error from server (BadRequest): ")
    has(vigil(s, "watch", "pods", "-l", "a b", status=1).stderr, "Error from server (BadRequest): ")
    has(vigil(None, "get", "pods", status=1).stderr, "--kubeconfig FILE")
    url = f"http://127.0.0.1:{free_port()}"
    has(vigil(None, "get", "pods", "--server", url, status=1).stderr, "--server URL")
    refused = vigil(None, "get", "pods", "--server", s.url, "--token", "wrong",
                    "--certificate-authority", s.path("pki/ca.crt"), status=1).stderr
    has(refused, "--token")
    flags = ("--server", s.url, "--certificate-authority", s.path("pki/ca.crt"),
             "--client-certificate", s.path("pki/admin.crt"), "--client-key", s.path("pki/admin.key"))
    has(vigil(None, "get", "ns", *flags).stdout, "default")


def test_help_and_manual(case):
    text = vigil(None, "--help").stdout
    has(vigil(None, "--version").stdout, "vigil 0.")
    with open(MAN, encoding="utf-8") as f:
        manual = f.read().replace("\\-", "-")
    for flag in re.findall(r"--[a-z-]+", text):
        has(manual, flag)
    if shutil.which("groff"):
        r = subprocess.run(["groff", "-man", "-Tascii", "-ww", MAN], capture_output=True, check=False)
        equal((r.returncode, r.stderr), (0, b""), "groff")
    check(case, "no case")


# ---- watch, piped ----

class Piped:
    """A vigil that goes on; its output is read line by line."""

    def __init__(self, server, *args):
        self.process = subprocess.Popen([VIGIL, *args], env=environment(server),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)
        self.got = {self.process.stdout: b"", self.process.stderr: b""}
        atexit.register(self.process.kill)  # when a test fails; one that has ended is not hit

    def read_line(self, stream):
        got = self.got[stream]
        while b"\n" not in got:
            ready, _, _ = select.select([stream], [], [], LIMIT_S)
            data = os.read(stream.fileno(), 65536) if ready else b""
            check(data, "waited in vain for a line")
            got += data
        line, self.got[stream] = got.split(b"\n", 1)
        return line.decode()

    def line(self):
        return self.read_line(self.process.stdout)

    def said(self):
        return self.read_line(self.process.stderr)

    def end(self, number=signal.SIGINT, status=130):
        self.process.send_signal(number)
        equal(self.process.wait(timeout=LIMIT_S), status, "exit status")
        err = (self.got[self.process.stderr] + self.process.stderr.read()).decode()
        check("Sanitizer" not in err, err)
        return err


def test_watch_prints_lines(case):
    s = case.start()
    pod(s, "a")
    w = Piped(s, "watch", "pods")
    has(w.line(), "+ a   0/1   Pending")
    pod(s, "b")
    has(w.line(), "+ b   0/1   Pending")
    patch(s, "/api/v1/namespaces/default/pods/b/status", {"status": {"phase": "Running"}})
    has(w.line(), "~ b   0/1   Running")
    equal(s.ask("/api/v1/namespaces/default/pods/b?gracePeriodSeconds=0", "DELETE").status, 200)
    while (line := w.line()).startswith("~ b   "):  # it may be seen to terminate
        pass
    has(line, "- b   ")
    w.end()
    w = Piped(s, "watch", "pods", "-A", "-o", "json")
    event = json.loads(w.line())
    equal((event["type"], event["object"]["metadata"]["name"]), ("ADDED", "a"))
    w.end(signal.SIGTERM)
    w = Piped(s, "watch", "pod/a", "-o", "name")
    equal(w.line(), "+ pod/a")
    w.process.stdout.close()  # the reader goes: so does vigil, with its next line
    patch(s, "/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Running"}})
    equal(w.process.wait(timeout=LIMIT_S), 1, "exit status")


def test_watch_outlives_the_server(case):
    s = case.start()
    pod(s, "a")
    w = Piped(s, "watch", "pods")
    has(w.line(), "+ a")
    e = Piped(s, "events", "-w")
    has(e.line(), "LAST SEEN")
    live = Terminal(s, "watch", "pods")
    live.shows(r"^a +")
    s.kill()
    case.servers.remove(s)
    for watcher in (w, e):
        has(watcher.said(), "vigil: the connection is lost, trying again: ")
    live.shows("1 pods +! trying again: ")
    s = case.start(secure_port=s.port)
    for watcher in (w, e):
        equal(watcher.said(), "vigil: connected again")
    live.shows("1 pods +q ends")
    pod(s, "b")
    has(w.line(), "+ b")
    live.shows(r"^\x1b\[1;32mb +")
    live.type(b"q")
    live.end(0)
    for watcher in (w, e):
        equal(watcher.end(), "", "the rest of what was said")


def test_events(case):
    s = case.start()
    for i, (name, message) in enumerate((("new", "second\nline"), ("old", "first"))):
        body = {"metadata": {"name": name}, "reason": "Tested", "type": "Normal", "message": message,
                "lastTimestamp": f"2024-01-0{2 - i}T00:00:00Z",
                "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"}}
        equal(s.ask("/api/v1/namespaces/default/events", "POST", body=body).status, 201, "status")
    got = rows(vigil(s, "events").stdout)
    equal(got[0], ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"])
    equal([r[1:] for r in got[1:]], [["Normal", "Tested", "Pod/web", "first"],
                                     ["Normal", "Tested", "Pod/web", "second?line"]])
    equal(len(rows(vigil(s, "events", "-A").stdout)), 3)
    equal(vigil(s, "events", "-n", "kube-system").stdout, "")
    w = Piped(s, "events", "-w")
    has(w.line(), "LAST SEEN")
    has(w.line(), "first")
    has(w.line(), "second?line")
    body["metadata"]["name"], body["message"] = "newest", "third"
    equal(s.ask("/api/v1/namespaces/default/events", "POST", body=body).status, 201, "status")
    has(w.line(), "third")
    w.end()


# ---- top ----

def test_top_tells_of_kinds_and_watchers(case):
    s = case.start()
    pod(s, "a")
    w = Piped(s, "watch", "pods", "-l", "app!=x")
    has(w.line(), "+ a")
    text = vigil(s, "top").stdout
    kinds, watches = (rows(part) for part in text.split("\n\n"))
    pods = [r for r in kinds if r[0] == "pods"][0]
    equal((pods[1], pods[5], pods[7]), ("1", "1", "0"), "objects, watchers and lag")
    stored = s.ask("/api/v1/namespaces/default/pods/a").body
    check(0.5 * len(stored) < int(pods[2]) < 1.5 * len(stored), f"{pods[2]} bytes for {len(stored)}")
    equal(watches[0][0], "USER")
    equal(watches[0][7:], ["UNSENT", "AGE"])
    equal(watches[1][:4], ["kubernetes-admin", "pods", "default", "app!=x"])
    w.end()


def test_top_says_what_a_server_does_not_offer(case):
    check(case, "no case")
    with other_server({"/metrics": 'apiserver_resource_objects{group="",resource="pods"} 7\n'}) as url:
        text = vigil(None, "top", "--server", url).stdout
        Other.paths = {}
        has(vigil(None, "top", "--server", url, status=1).stderr, "needs vigild")
    has(text, "pods   7         -       -        -          -          -        -")
    has(text, "no /debug/vigil/watches")


# ---- on a terminal ----

class Terminal:
    """A vigil on a terminal of its own; `screen` is what it shows, played from what it wrote."""

    def __init__(self, server, *args, size=(12, 60), **env):
        self.size, self.raw, self.status = size, b"", None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            env = {**environment(server), **env}
            time.sleep(0.05)  # the size is set meanwhile; one that comes late is a resize
            os.execve(VIGIL, [VIGIL, *args], env)
        self.resize(*size)

    def resize(self, rows_, columns):
        self.size = (rows_, columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows_, columns, 0, 0))

    def read(self):
        while select.select([self.fd], [], [], 0.01)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.raw += data

    def frame(self):
        """The last whole frame, as lines of (text with styles)."""
        self.read()
        frames = re.findall(rb"\x1b\[\?2026h\x1b\[H(.*?)\x1b\[J\x1b\[\?2026l", self.raw, re.S)
        return [line.replace("\x1b[K", "").rstrip("\r") for line in frames[-1].decode().split("\r\n")] if frames else []

    def plain(self):
        return [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in self.frame()]

    def wait(self, what, fn):
        try:
            return wait_for(what, fn)
        except Exception as e:
            raise type(e)(f"{e}; the screen: {self.frame()}") from e

    def shows(self, pattern):
        return self.wait(pattern, lambda: [x for x in self.frame() if re.search(pattern, x)])

    def type(self, text):
        os.write(self.fd, text)

    def is_cooked(self):
        """Does the terminal echo and edit lines, as shells have it?"""
        flags = termios.tcgetattr(self.fd)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON)

    def gave_back(self):
        return self.is_cooked() and self.raw.rindex(b"\x1b[?1049l") > self.raw.rindex(b"\x1b[?1049h")

    def end_status(self, status):
        def ended():
            self.read()
            pid, self.status = os.waitpid(self.pid, os.WNOHANG)
            return pid
        self.wait("the end", ended)
        self.read()
        equal(os.waitstatus_to_exitcode(self.status), status, f"exit status after {self.raw[-300:]!r}")
        check(b"Sanitizer" not in self.raw, self.raw[-3000:])

    def end(self, status):
        self.end_status(status)
        has(self.raw, b"\x1b[?1049h")
        check(self.gave_back(), "the terminal is not restored")
        has(self.raw, b"\x1b[?25h")
        os.close(self.fd)


def test_live_table(case):
    s = case.start()
    pod(s, "b")
    t = Terminal(s, "watch", "pods", "-A")
    t.shows(r"^default +b +0/1 +Pending +0 +\d+s$")
    has(t.frame()[0], "\x1b[1mNAMESPACE   NAME")
    pod(s, "a")
    t.shows(r"^\x1b\[1;32mdefault +a +0/1 +Pending")
    names = [line.split()[1] for line in t.plain()[1:3]]
    equal(names, ["a", "b"], "the order")
    t.shows(r"^default +a ")  # lit for a moment only
    patch(s, "/api/v1/namespaces/default/pods/a/status", {"status": {"phase": "Running"}})
    t.shows(r"^\x1b\[1;33mdefault +a +0/1 +Running")
    equal(s.ask("/api/v1/namespaces/default/pods/a?gracePeriodSeconds=0", "DELETE").status, 200)
    t.shows(r"^\x1b\[9;31mdefault +a ")
    t.wait("the deleted row to go", lambda: not any(" a " in x for x in t.frame()))
    before = t.plain()[1]
    t.wait("the age to tick", lambda: t.plain()[1] != before)
    t.type(b"\x03")
    t.end(130)


def test_live_table_gives_the_terminal_back(case):
    s = case.start()
    t = Terminal(s, "watch", "pods")
    t.shows("^\x1b\\[2m0 pods   q ends")
    check(not t.is_cooked(), "keys are echoed")
    t.type(b"\x1a")
    t.wait("it to stop", lambda: os.waitpid(t.pid, os.WNOHANG | os.WUNTRACED)[0])
    t.read()
    check(t.gave_back(), "the terminal is not given back while it is stopped")
    t.raw = b""
    os.kill(t.pid, signal.SIGCONT)
    t.shows("0 pods")
    check(not t.is_cooked(), "keys are echoed")
    os.kill(t.pid, signal.SIGTERM)
    t.end(130)
    t = Terminal(s, "watch", "pods", "-l", "a b")  # refused: said where it was asked
    t.wait("words", lambda: t.read() or b"Error from server (BadRequest)" in t.raw)
    check(t.raw.rfind(b"\x1b[?1049l") < t.raw.index(b"Error from server"), t.raw)
    t.end_status(1)


def test_colours_and_widths(case):
    s = case.start()
    create(s, "/api/v1/nodes", "n1")
    t = Terminal(s, "watch", "nodes", NO_COLOR="1")
    t.shows("^n1 ")
    patch(s, "/api/v1/nodes/n1/status", {"status": {"nodeInfo": {"kubeletVersion": "\u65e5\u672c\u8a9e" * 3}}})
    t.shows("^\x1b\\[1mn1 ")
    has(t.plain()[0], "VERSION" + " " * (18 - 7 + 3) + "AGE")  # a wide character takes two places
    check(not re.search(rb"\x1b\[[0-9;]*3[0-7]m", t.raw), "colours, despite NO_COLOR")
    t.type(b"q")
    t.end(0)
    check("\x1b" not in vigil(s, "get", "nodes").stdout, "styles in a pipe")


def test_completion(case):
    s = case.start()
    pod(s, "web-1")
    script = os.path.join(HERE, "../../packaging/vigil.bash")
    env = {**environment(s), "PATH": os.path.dirname(VIGIL) + ":" + os.environ["PATH"]}
    for words, want in ((("",), {"get", "watch", "events", "top", "kinds", "backup", "restore",
                                    "migrate", "bench", "help"}), (("w",), {"watch"}),
                        (("bench", "fan"), {"fanout"}),
                        (("get", "podt"), {"podtemplates"}), (("get", "pods", ""), {"web-1"}),
                        (("-n", "default", "watch", "pod", "we"), {"web-1"}),
                        (("get", "-n", "kube-s"), {"kube-system"}), (("get", "-o", "y"), {"yaml"}),
                        (("top", "--kubec"), {"--kubeconfig"}), (("top", ""), set())):
        line = " ".join(f"'{w}'" for w in ("vigil", *words))
        run = f". {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _vigil; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        r = subprocess.run(["bash", "-c", run], env=env, capture_output=True, text=True, check=False)
        equal((set(r.stdout.split()), r.stderr), (want, ""), f"completions of {words}")


def test_live_table_scrolls_and_resizes(case):
    s = case.start()
    for i in range(20):
        pod(s, f"a-rather-long-name-{i:02d}")
    t = Terminal(s, "watch", "pods")
    t.shows("20 pods, 1 to 10 shown")
    t.type(b"G")
    t.shows("name-19")
    t.type(b"k")
    t.shows("10 to 19 shown")
    t.type(b"\x1b[5~")
    t.shows("1 to 10 shown")
    t.resize(30, 20)
    t.wait("all rows in 20 columns",
           lambda: len(t.plain()) == 22 and max(len(x) for x in t.plain()) == 19)
    t.resize(2, 60)
    t.wait("a tiny screen", lambda: len(t.plain()) == 2)
    t.resize(1, 60)
    t.wait("a tinier one", lambda: len(t.plain()) == 1)
    t.type(b"q")
    t.end(0)


def test_top_on_a_terminal(case):
    s = case.start()
    pod(s, "a")
    t = Terminal(s, "top", size=(20, 100))
    t.shows("^pods ")
    w = Piped(s, "watch", "pods")
    has(w.line(), "+ a")
    t.shows("^kubernetes-admin   pods")
    t.type(b"\x03")
    t.end(130)
    w.end()


if __name__ == "__main__":
    main(sys.modules[__name__])
