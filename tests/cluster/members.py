"""members.py - three real etcd members, and what may happen to them.

The members stand in network namespaces of their own where that is permitted: the tests then run in a
private namespace (see enter_private_network), each member has one link for clients and one for the
other members, and either can be cut, which drops packets without a word as a broken switch does.
Where it is not permitted they share the loopback interface, and nothing can be cut.

Members are asked by etcd's own JSON gateway: nothing here depends on vigil's code."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

# What talks to a server is shared with the tests of vigild.
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "vigild"))

LIMIT_S = 180  # only something broken takes so long
CLIENT_NET, PEER_NET = "10.77.0", "10.78.0"


class Failed(Exception):
    pass


def wait_for(what, fn, limit=LIMIT_S):
    end = time.monotonic() + limit
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"waited in vain for {what}")
        time.sleep(0.02)


def b64(data):
    return base64.b64encode(data if isinstance(data, bytes) else data.encode()).decode()


# ---- the network ----

def end_in_order(*_):
    """For SIGTERM: whoever has something to end does so."""
    sys.exit(1)


def skip(why):
    print(f"SKIPPED: {why}")
    sys.exit(77)


def program(name):
    """A path, or the variable that has it; what is not there is a reason to skip."""
    path = os.environ.get(name, "") if name.startswith("VG_") else os.path.abspath(name)
    return path if os.access(path, os.X_OK) else skip(f"there is no {name}={path}")


def run_ok(*args):
    return subprocess.run(args, capture_output=True, check=False).returncode == 0


def ip(*args, inside=None):
    enter = ["nsenter", "-t", str(inside), "-n"] if inside else []
    subprocess.run([*enter, "ip", *args], check=True, capture_output=True)


def enter_private_network():
    """Start this script again inside a network namespace of its own, unless that was done or cannot be.
    True: we are in one."""
    signal.signal(signal.SIGTERM, end_in_order)
    if os.environ.get("VG_PRIVATE_NET"):
        ip("link", "set", "lo", "up")
        for bridge, net in (("clients", CLIENT_NET), ("peers", PEER_NET)):
            ip("link", "add", bridge, "type", "bridge")
            ip("link", "set", bridge, "up")
            ip("addr", "add", f"{net}.1/24", "dev", bridge)
        return True
    probe = "ip link add vg type bridge && ip link add vg0 type veth peer name vg1"
    for how in (["unshare", "--net"], ["unshare", "--net", "--map-root-user"]):
        if shutil.which("ip") and shutil.which("nsenter") and run_ok(*how, "sh", "-c", probe):
            os.environ["VG_PRIVATE_NET"] = "1"
            sys.stdout.flush()
            os.execvp(how[0], [*how, sys.executable, "-B", *sys.argv])
    return False


class Link:
    """A network namespace with a way for clients and a way for peers. It lives as long as the process
    that holds it."""

    def __init__(self, number):
        self.number = number
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        own = os.readlink("/proc/self/ns/net")
        wait_for("a namespace", lambda: os.readlink(f"/proc/{self.holder.pid}/ns/net") != own)
        for bridge, net, name in (("clients", CLIENT_NET, "c"), ("peers", PEER_NET, "p")):
            pid = self.holder.pid
            ip("link", "add", f"{name}{number}", "type", "veth", "peer", "name", name, "netns", str(pid))
            ip("link", "set", f"{name}{number}", "master", bridge, "up")
            ip("addr", "add", f"{net}.{10 + number}/24", "dev", name, inside=pid)
            ip("link", "set", name, "up", inside=pid)
        ip("link", "set", "lo", "up", inside=self.holder.pid)

    def set(self, which, state):
        for name in which:
            ip("link", "set", f"{name}{self.number}", state)

    def close(self):
        for name in "cp":  # at once; with the namespace they would go some time later
            ip("link", "del", f"{name}{self.number}")
        self.holder.kill()
        self.holder.wait()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- one member ----

class Member:
    """One etcd process, its directory, and its way to the others. number: from 0."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"m{number}"
        self.link = Link(number) if cluster.is_private else None
        if self.link:
            self.host, self.peer_host = f"{CLIENT_NET}.{10 + number}", f"{PEER_NET}.{10 + number}"
            self.port, peer_port = 2379, 2380
        else:
            self.host = self.peer_host = "127.0.0.1"
            self.port, peer_port = free_port(), free_port()
        self.url = f"http://{self.host}:{self.port}"
        self.peer_url = f"http://{self.peer_host}:{peer_port}"
        self.dir = os.path.join(cluster.dir, self.name)
        self.slowness = os.path.join(cluster.dir, self.name + ".ms")
        self.log = open(os.path.join(cluster.dir, self.name + ".log"), "ab")
        self.process = None
        self.pid = 0
        self.is_cut = self.is_paused = False
        self.set_slowness(0)

    def start(self):
        args = [self.cluster.binary, "--name", self.name, "--data-dir", self.dir,
                "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
                "--listen-peer-urls", self.peer_url, "--initial-advertise-peer-urls", self.peer_url,
                "--initial-cluster", ",".join(f"{m.name}={m.peer_url}" for m in self.cluster.members),
                "--initial-cluster-token", "vigil", *self.cluster.flags]
        if self.link:
            args = ["nsenter", "-t", str(self.link.holder.pid), "-n", *args]
        if self.cluster.slow_disk:
            args = [self.cluster.slow_disk, self.slowness, *args]
        self.process = subprocess.Popen(args, stdout=self.log, stderr=self.log)
        self.pid = 0

    def find(self):
        """etcd itself, behind what starts it."""
        def look():
            pid = self.process.pid
            if self.cluster.slow_disk:
                with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as f:
                    pid = int((f.read().split() or ["0"])[0])
            exe = os.path.realpath(f"/proc/{pid}/exe") if pid else ""
            return pid if exe == os.path.realpath(self.cluster.binary) else 0
        if not self.pid:
            self.pid = wait_for(f"the process of {self.name}", look)
        return self.pid

    def kill(self):
        os.kill(self.find(), signal.SIGKILL)
        self.process.wait()
        self.process = None

    def pause(self):
        os.kill(self.find(), signal.SIGSTOP)
        self.is_paused = True

    def go_on(self):
        os.kill(self.find(), signal.SIGCONT)
        self.is_paused = False

    def cut(self, which):
        """which: c (clients), p (the other members), or both."""
        self.link.set(which, "down")
        self.is_cut = True

    def mend(self):
        self.link.set("cp", "up")
        self.is_cut = False

    def set_slowness(self, ms):
        with open(self.slowness + ".new", "w", encoding="utf-8") as f:
            f.write(f"{ms}\n")
        os.rename(self.slowness + ".new", self.slowness)

    def ask(self, path, body, timeout=3):
        c = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            c.request("POST", "/v3/" + path, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(c.getresponse().read())
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return None
        finally:
            c.close()

    def status(self):
        return self.ask("maintenance/status", {}) if self.process and not self.is_paused else None

    def heal(self):
        if self.is_paused:
            self.go_on()
        if self.is_cut:
            self.mend()
        self.set_slowness(0)
        if self.process is None:
            self.start()

    def close(self):
        if self.process:
            if self.is_paused:
                self.go_on()
            self.process.kill()
            if self.pid:
                try:
                    os.kill(self.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            self.process.wait()
        if self.link:
            self.link.close()
        self.log.close()


# ---- the cluster ----

class Cluster:
    def __init__(self, directory, binary, is_private=False, slow_disk=None, flags=(), members=3):
        self.dir, self.binary, self.is_private, self.slow_disk = directory, binary, is_private, slow_disk
        self.flags = list(flags)
        self.members = []
        try:
            for i in range(members):
                self.members.append(Member(self, i))
            for m in self.members:
                m.start()
            self.wait_healthy()
        except BaseException:
            self.close()
            raise

    @property
    def urls(self):
        return ",".join(m.url for m in self.members)

    def statuses(self):
        """Of every member, or None while one is not there or has no leader."""
        answers = [m.status() for m in self.members]
        return answers if all(a and int(a.get("leader", 0)) for a in answers) else None

    def wait_healthy(self):
        def is_one():
            answers = self.statuses()
            return answers if answers and len({a["leader"] for a in answers}) == 1 else None
        return wait_for("all members with one leader", is_one)

    def leader(self):
        answers = self.wait_healthy()
        for m, a in zip(self.members, answers):
            if a["header"]["member_id"] == a["leader"]:
                return m
        raise Failed("the leader is none of the members")

    def version(self):
        return next(filter(None, (m.status() for m in self.members)))["version"]

    def ask(self, path, body, timeout=30):
        """Whoever answers."""
        def any_of():
            for m in self.members:
                answer = m.ask(path, body, timeout)
                if answer and "error" not in answer:
                    return answer
            return None
        return wait_for(f"an answer to {path}", any_of)

    def history(self, prefix, start=1):
        """Every change of the keys with this prefix, in order: (revision, key, value or None)."""
        mark = f"vigil-test-end-{time.monotonic_ns()}"  # no server looks there
        self.ask("kv/put", {"key": b64(mark), "value": b64("x")})
        request = {"create_request": {"key": b64(b"\0"), "range_end": b64(b"\0"), "start_revision": start}}
        m = next(m for m in self.members if m.status())
        c = http.client.HTTPConnection(m.host, m.port, timeout=LIMIT_S)
        c.request("POST", "/v3/watch", json.dumps(request), {"Content-Type": "application/json"})
        changes, stream = [], c.getresponse()
        while line := stream.readline():
            result = json.loads(line)["result"]
            if result.get("canceled"):
                raise Failed(f"the history of {prefix} is not there: {result}")
            for e in result.get("events", []):
                kv = e["kv"]
                key = base64.b64decode(kv["key"]).decode(errors="replace")
                if key == mark:
                    c.close()
                    return changes
                if not key.startswith(prefix):
                    continue
                value = None if e.get("type") == "DELETE" else base64.b64decode(kv.get("value", ""))
                changes.append((int(kv["mod_revision"]), key, value))
        raise Failed("the history ended before its end")

    def heal(self):
        for m in self.members:
            m.heal()
        self.wait_healthy()

    def logs(self, size=3000):
        text = ""
        for m in self.members:
            m.log.flush()
            with open(m.log.name, "rb") as f:
                text += f"--- {m.name}\n" + f.read()[-size:].decode(errors="replace")
        return text

    def close(self):
        for m in self.members:
            m.close()
