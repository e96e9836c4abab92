"""floods.py <vigild> - an attacker without credentials floods vigild; administrators and probes are served meanwhile.

Each flood runs in a process of its own (flood_attack.py) at up to RATE bytes a second from 127.0.0.9. An administrator
from another address, one from the attacker's own, and a probe of /livez send requests on new connections and on one that
they keep. None of them may be refused, and the memory of vigild comes back when the flood is over. Limits are set low
so that the short form reaches them within seconds; VG_LONG=1 keeps the defaults, runs each flood for LONG_S and prints
the administrator's latencies."""
import http.client
import os
import subprocess
import sys
import threading
import time

import flood_attack
from vigild import LIMIT_S, check, equal, main, wait_for

IS_LONG = os.environ.get("VG_LONG") == "1"
RATE = 1000000
SHORT_S, LONG_S = 1.0, float(os.environ.get("VG_FLOOD_S", "30"))
MAPS = "/api/v1/namespaces/default/configmaps"
ATTACKER, OTHER = "127.0.0.9", "127.0.0.2"
# A pool that the floods of the short form would fill.
SMALL = [] if IS_LONG else ["--max-request-bytes-inflight=2097152"]


class Client(threading.Thread):
    """Sends requests until it is told to stop; what was not answered as it should be is in `wrong`."""

    def __init__(self, s, source, context, path, keeps, writes=False):
        super().__init__(daemon=True)
        self.s, self.source, self.context, self.path = s, source, context, path
        self.keeps, self.writes = keeps, writes
        self.wrong, self.times, self.is_over, self.n = [], [], False, 0

    def connect(self):
        return http.client.HTTPSConnection("127.0.0.1", self.s.port, context=self.context, timeout=LIMIT_S,
                                           source_address=(self.source, 0))

    def ask(self, c):
        self.n += 1
        if self.writes:
            body = '{"metadata":{"generateName":"f-"},"data":{"v":"%s"}}' % ("x" * 2000)
            c.request("POST", MAPS, body=body, headers={"Content-Type": "application/json"})
            return c.getresponse(), 201
        c.request("GET", self.path)
        return c.getresponse(), 200

    def run(self):
        c = self.connect()
        while not self.is_over:
            if not self.keeps:
                c.close()
                c = self.connect()
            begun = time.monotonic()
            try:
                answer, want = self.ask(c)
                answer.read()
                if answer.status != want:
                    self.wrong.append(f"status {answer.status}")
            except (OSError, http.client.HTTPException) as e:
                self.wrong.append(repr(e))
                c.close()
                c = self.connect()
            self.times.append(time.monotonic() - begun)
            time.sleep(0.01)
        c.close()

    def quantile(self, q):
        return 1000 * sorted(self.times)[min(len(self.times) - 1, int(q * len(self.times)))] if self.times else 0


def resident(s):
    with open(f"/proc/{s.process.pid}/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


# An address that fills its share of the handshakes keeps out new connections of its own; those that it has go on.
SHUTS_ITSELF_OUT = ("silent_handshakes", "hello_handshakes")


def cpu_seconds(s):
    with open(f"/proc/{s.process.pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def clients_of(s, kind=""):
    admin, nobody = s.admin(), s.context()
    clients = {
        "admin, other address, kept": Client(s, OTHER, admin, MAPS + "?limit=1", True),
        "admin, other address, new": Client(s, OTHER, admin, MAPS + "?limit=1", False),
        "admin, other address, writes": Client(s, OTHER, admin, MAPS, True, True),
        "admin, same address, kept": Client(s, ATTACKER, admin, MAPS + "?limit=1", True),
        "probe, other address, new": Client(s, OTHER, nobody, "/livez", False),
    }
    if kind not in SHUTS_ITSELF_OUT:
        clients["admin, same address, new"] = Client(s, ATTACKER, admin, MAPS + "?limit=1", False)
    return clients


def attack(s, kind, seconds):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flood_attack.py")
    return subprocess.Popen([sys.executable, "-B", script, kind, str(s.port), ATTACKER, str(seconds), str(RATE)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def warm_up(s):
    """What a server holds that has served a while, so that it is not taken for what the flood left."""
    clients = clients_of(s)
    for c in clients.values():
        c.start()
    wait_for("the first answers", lambda: all(c.n > 20 for c in clients.values()))
    stop(clients)


def stop(clients):
    for c in clients.values():
        c.is_over = True
    for c in clients.values():
        c.join(LIMIT_S)


# Bytes that may stay when a flood is over, beside what was there before it: histories, caches, malloc's own.
MAY_STAY = 24 << 20


def is_sanitized(binary):
    """Sanitizers keep freed memory on purpose."""
    with open(binary, "rb") as f:
        code = f.read()
    return b"__asan_init" in code or b"__tsan_init" in code


def measure_quiet(s, kind, seconds):
    """The same clients without the flood: what the machine itself takes."""
    clients = clients_of(s, kind)
    for c in clients.values():
        c.start()
    time.sleep(seconds)
    stop(clients)
    return clients


def flood(case, kind, *flags):
    seconds = LONG_S if IS_LONG else SHORT_S
    s = case.start(*SMALL, *flags)
    equal(s.ask(MAPS, "POST", body={"metadata": {"name": "one"}}).status, 201, "create")
    warm_up(s)
    quiet = measure_quiet(s, kind, seconds / 3) if IS_LONG else {}
    before, cpu_before = resident(s), cpu_seconds(s)
    attacker = attack(s, kind, seconds)
    clients = clients_of(s, kind)
    for c in clients.values():
        c.start()
    said = attacker.stdout.readline().decode().strip()
    most, cpu = resident(s), cpu_seconds(s) - cpu_before
    stop(clients)
    attacker.stdin.close()
    attacker.wait()
    if IS_LONG:
        print(f"      {kind}: {said}, {(most - before) >> 20} MiB more, {cpu / seconds:.2f} CPUs")
        for name, c in clients.items():
            print(f"      {name:30} {len(c.times):6} requests, {len(c.wrong)} wrong, p50 {c.quantile(0.5):.1f} ms, "
                  f"p99 {c.quantile(0.99):.1f} ms (without the flood {quiet[name].quantile(0.99):.1f}), "
                  f"worst {c.quantile(1):.1f} ms", flush=True)
    for name, c in clients.items():
        check(c.n >= 3, f"{name}: {c.n} requests in all")
        check(not c.wrong, f"{name}: {len(c.wrong)} of {c.n} requests: {c.wrong[:3]}")
    if is_sanitized(case.binary):
        return
    wait_for(f"memory to come back: {before >> 20} MiB before, {most >> 20} at the end",
             lambda: resident(s) < before + MAY_STAY)


def add_tests():
    for kind in flood_attack.KINDS:
        def test(case, kind=kind):
            flood(case, kind)
        globals()["test_" + kind] = test


add_tests()

if __name__ == "__main__":
    main(sys.modules[__name__])
