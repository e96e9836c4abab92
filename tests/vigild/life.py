"""life.py <vigild> - coming up, files, flags, signals, going down, coming back."""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading

from vigild import (LIMIT_S, check, equal, free_port, has, kubeconfig_data, main, make_certificate, openssl,
                    wait_for)

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def test_files_are_the_owners_alone(case):
    v = case.start()
    for folder, _, files in os.walk(v.dir):
        equal(stat.S_IMODE(os.stat(folder).st_mode), 0o700, folder)
        for name in files:
            path = os.path.join(folder, name)
            equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, path)
    for name in ("admin.kubeconfig", "pki/ca.key", "pki/apiserver.key", "store/data.mdb"):
        check(os.path.exists(v.path(name)), name)


def test_one_line_says_where_and_how(case):
    v = case.start()
    check(v.line.endswith(f"try: kubectl --kubeconfig {v.dir}/admin.kubeconfig get namespaces\n"), v.line)
    text = open(v.path("admin.kubeconfig"), encoding="utf-8").read()
    has(text, f"    server: {v.url}\n")
    equal(v.end(), 0)
    equal(v.process.stdout.read(), b"", "more than one line")


def test_the_kubeconfig_alone_is_enough(case):
    v = case.start()
    text = open(v.path("admin.kubeconfig"), encoding="utf-8").read()
    for key, name in (("certificate-authority-data", "ca"), ("client-certificate-data", "crt"),
                      ("client-key-data", "key")):
        case.write(name, kubeconfig_data(text, key))
    import ssl  # pylint: disable=import-outside-toplevel
    context = ssl.create_default_context(cafile=case.path("ca"))
    context.load_cert_chain(case.path("crt"), case.path("key"))
    a = v.ask("/api/v1/namespaces", context=context)
    equal([n["metadata"]["name"] for n in a.json["items"]],
          ["default", "kube-node-lease", "kube-public", "kube-system"])
    for n in a.json["items"]:
        equal(n["status"], {"phase": "Active"})
        equal(n["spec"], {"finalizers": ["kubernetes"]})
        equal(n["metadata"]["labels"], {"kubernetes.io/metadata.name": n["metadata"]["name"]})
    kubectl = shutil.which("kubectl")
    if kubectl:
        out = subprocess.run([kubectl, "--kubeconfig", v.path("admin.kubeconfig"), "get", "namespaces",
                              "-o", "name"], capture_output=True, text=True, timeout=60, check=False)
        equal(out.stdout.split(), [f"namespace/{n['metadata']['name']}" for n in a.json["items"]],
              out.stderr)


def test_a_restart_keeps_everything(case):
    v = case.start()
    made = v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "kept"}, "data": {"a": "b"}})
    equal(made.status, 201)
    before = {n: open(v.path("pki/" + n), "rb").read() for n in os.listdir(v.path("pki"))}
    spaces = v.ask("/api/v1/namespaces").json["items"]
    equal(v.end(), 0)
    v = case.start()
    equal({n: open(v.path("pki/" + n), "rb").read() for n in os.listdir(v.path("pki"))}, before)
    equal(v.ask(CONFIGMAPS + "/kept").json, made.json)
    equal(v.ask("/api/v1/namespaces").json["items"], spaces, "system namespaces are made once")


def test_kill_9_loses_nothing_acknowledged(case):
    v = case.start()
    made = [v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": f"k{i}"}}).json for i in range(20)]
    v.kill()
    v = case.start()
    for m in made:
        equal(v.ask(f"{CONFIGMAPS}/{m['metadata']['name']}").json, m)


def test_mem_forgets(case):
    v = case.start("--storage", "mem")
    equal(v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "gone"}}).status, 201)
    v.end()
    v = case.start("--storage", "mem")
    equal(v.ask(CONFIGMAPS + "/gone").status, 404)
    check(not os.path.exists(v.path("store")), "a store in memory makes no files")


def test_a_directory_serves_one(case):
    v = case.start()
    r = case.run("--data-dir", v.dir, "--secure-port", "0")
    equal(r.returncode, 6)
    has(r.stderr, f"in use by another vigild, process {v.process.pid}")
    has(r.stderr, "--data-dir")
    v.kill()
    case.start()


def test_a_port_in_use_is_named(case):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        r = case.run("--data-dir", case.path("x"), "--secure-port", str(port))
        equal(r.returncode, 1)
        has(r.stderr, f"port {port}")
        has(r.stderr, "in use")


def test_bad_flags_say_what_to_do(case):
    for args, text in (
            (["--data-dri", "x"], "did you mean --data-dir?"),
            (["--etcd-servers=http://127.0.0.1:1", "--etcd-connect-timeout=200ms"],
             "is etcd running there"),
            (["--storage=etcd"], "needs --etcd-servers"),
            (["serve"], "'serve' is no flag"),
            (["--secure-port", "70000"], "from 0 to 65535"),
            (["--watch-cache-sizes", "pods"], "resource[.group]#size"),
            (["--watch-cache-sizes", "gadgets#1"], "there is no resource 'gadgets'"),
            (["--log-components", "a=loud"], "--log-components"),
            (["--bind-address", "localhost"], "not a numeric address"),
            (["--config", "nosuch"], "nosuch")):
        r = case.run(*(args + (["--data-dir", "x", "--secure-port", "0"] if "=" not in args[0] else [])))
        check(r.returncode in (1, 2), f"{args}: {r.returncode}")
        has(r.stderr, text)
        equal(r.stdout, "")
    for name, text in (("--tls-cert-file", "go together"), ("--token-auth-file", "nosuch")):
        r = case.run("--data-dir", "x", "--secure-port", "0", name, "nosuch")
        check(r.returncode != 0, name)
        has(r.stderr, text)


def test_unknown_flags_get_one_hint(case):
    for flag, hint in (("--allow-privileged=true", ""), ("--foo", ""), ("--lops", "did you mean --loops?"),
                       ("--v2", "")):
        r = case.run(flag)
        equal(r.returncode, 2, flag)
        has(r.stderr, "there is no flag " + flag.split("=")[0])
        equal(r.stderr.count("--help"), 1, f"hints at --help in {r.stderr!r}")
        has(r.stderr, hint)
        check(hint or "did you mean" not in r.stderr, r.stderr)


def test_wrong_flags_leave_nothing_behind(case):
    broken = case.write("tokens.csv", "one column\n")
    for name, value, text in (("--bind-address", "foo", "not a numeric address"),
                              ("--bind-address", "192.0.2.77", "192.0.2.77"),
                              ("--token-auth-file", "/nosuch/file", "/nosuch/file"),
                              ("--token-auth-file", broken, "tokens.csv")):
        r = case.run("--data-dir", case.path("untouched"), "--secure-port", "0", name, value)
        check(r.returncode in (1, 2), f"{name} {value}: {r.returncode}")
        has(r.stderr, text)
        check(not os.path.exists(case.path("untouched")), f"{name} {value}: there is a directory")


def test_help_and_version(case):
    r = case.run("--help")
    equal((r.returncode, r.stderr), (0, ""))
    has(r.stdout, "--data-dir DIR")
    has(r.stdout, "--token-auth-file FILE")
    r = case.run("--version")
    equal(r.returncode, 0)
    has(r.stdout, "vigild ")


def test_the_manual_knows_every_flag(case):
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    told = re.findall(r"^  --([a-z0-9-]+)(.*?)(?=^  --|^\S|\Z)", case.run("--help").stdout, re.M | re.S)
    defaults = {flag: "".join(re.findall(r"\(([^()]*)\)$", text.strip())) for flag, text in told}
    check(len(defaults) > 40, "flags of --help")
    manual = open(os.path.join(source, "docs/man/vigild.8"), encoding="utf-8").read().replace("\\-", "-")
    operations = open(os.path.join(source, "docs/operations.md"), encoding="utf-8").read()
    rows = dict(re.findall(r"^\| `--([a-z0-9-]+)[^`]*` \| (?:`([^`]*)`)? *\|", operations, re.M))
    entries = dict(re.findall(r"^\.BI? --([a-z0-9-]+)(.*?)(?=^\.TP|^\.S|\Z)", manual.split(".SH CONFIGURATION")[0], re.M | re.S))
    for flag, default in defaults.items():
        check(flag in entries, f"vigild.8 does not tell of --{flag}")
        check(f"({default})" in entries[flag] or not default, f"vigild.8 has another default of --{flag} than {default}")
        equal(rows.get(flag), default, f"operations.md's default of --{flag}")
    equal(sorted(rows), sorted(defaults), "the flags of operations.md")


def test_a_configuration_file(case):
    port = free_port()
    config = case.write("config", f"# flags, a line each\ndata-dir: {case.path('data')}\nsecure-port: {port}\n"
                        "logging-format: json\nlog-level: debug\nstorage: 'mem'\nslow-request-threshold: 1h\n")
    v = case.start("--config", config, secure_port=port)
    equal(v.port, port)
    v.ask("/livez")
    lines = wait_for("the access log", lambda: [
        e for e in map(json.loads, v.stderr().splitlines()) if e["event"] == "request"])
    equal((lines[0]["verb"], lines[0]["target"], lines[0]["user"]), ("GET", "/livez", "kubernetes-admin"))


def test_events_go_when_their_time_is_over(case):
    v = case.start("--event-ttl", "1s")
    path = "/api/v1/namespaces/default/events"
    made = v.ask(path, "POST", body={"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}})
    equal(made.status, 201, made.text)
    equal(v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "stays"}}).status, 201)
    wait_for("the event to go", lambda: v.ask(path + "/e").status == 404)
    equal(v.ask(CONFIGMAPS + "/stays").status, 200)


def test_quiet_by_default(case):
    v = case.start("--slow-request-threshold=1h")  # a busy machine is slow, and vigild says so
    for _ in range(5):
        v.ask("/api/v1/namespaces")
        v.ask("/api/v1/namespaces", context=v.context())
    check("request" not in v.stderr(), v.stderr())


def test_own_certificate_and_its_reload(case):
    ca = make_certificate(case.dir, "own-ca", "/CN=own-ca")

    def make():
        make_certificate(case.dir, "own", "/CN=localhost", ca, "serverAuth\nsubjectAltName=IP:127.0.0.1,DNS:localhost")
    make()
    v = case.start("--tls-cert-file", case.path("own.crt"), "--tls-private-key-file", case.path("own.key"))
    import ssl  # pylint: disable=import-outside-toplevel

    def serial():
        context = ssl.create_default_context(cafile=ca[0])
        with socket.create_connection(("127.0.0.1", v.port)) as s, \
                context.wrap_socket(s, server_hostname="127.0.0.1") as t:
            return t.getpeercert()["serialNumber"]
    first = serial()
    check(not os.path.exists(v.path("pki/apiserver.key")), "a certificate of our own is not needed")
    make()
    v.send(signal.SIGHUP)
    wait_for("the new certificate", lambda: serial() != first)
    case.write("own.crt", "rubbish")
    v.send(signal.SIGHUP)
    wait_for("the complaint", lambda: "certificates_kept" in v.stderr())
    serial()


def test_certificates_that_end_are_renewed(case):
    v = case.start()
    v.end()
    # One that ends tomorrow, from our own authority.
    make_certificate(case.path("data/pki"), "apiserver", "/CN=localhost",
                     (v.path("pki/ca.crt"), v.path("pki/ca.key")), "serverAuth")
    v = case.start()
    openssl("x509", "-in", v.path("pki/apiserver.crt"), "-noout", "-checkend", str(300 * 86400))
    equal(v.ask("/livez").status, 200)


def test_ipv6_and_every_interface(case):
    for address, url in (("::1", "https://[::1]:"), ("0.0.0.0", "https://127.0.0.1:")):
        try:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
                s.bind((address, 0))
        except OSError:
            continue
        v = case.start("--bind-address", address, data="d" + str(len(address)))
        check(v.url.startswith(url), v.url)
        c = v.connect(v.admin(), "::1" if ":" in address else "127.0.0.1")
        c.request("GET", "/livez")
        equal(c.getresponse().status, 200)
        c.close()


class Watch(threading.Thread):
    """A watch, read to its end."""

    def __init__(self, v, path):
        super().__init__(daemon=True)
        self.connection = v.connect(v.admin())
        self.connection.request("GET", path)
        self.response = self.connection.getresponse()
        equal(self.response.status, 200)
        self.events, self.error = [], None
        self.start()

    def run(self):
        try:
            for line in self.response:
                self.events.append(json.loads(line))
        except (OSError, http.client.HTTPException) as e:
            self.error = e


def test_sigterm_ends_watches_in_order(case):
    v = case.start()
    watches = [Watch(v, CONFIGMAPS + "?watch=1&allowWatchBookmarks=true") for _ in range(5)]
    made = v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "seen"}}).json
    for w in watches:
        wait_for("the event", lambda w=w: any(e["type"] == "ADDED" and
                                              e["object"]["metadata"]["name"] == "seen" for e in w.events))
    equal(v.end(), 0)
    has(v.stderr(), f"ending signal=15 pid={os.getpid()}")  # who told it to
    for w in watches:
        w.join(LIMIT_S)
        check(w.error is None, f"a watch was cut: {w.error}")
        last = w.events[-1]
        equal(last["type"], "BOOKMARK")
        check(int(last["object"]["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"]),
              "the bookmark is old")
    # And a client goes on where it was.
    v = case.start()
    w = Watch(v, f"{CONFIGMAPS}?watch=1&resourceVersion={last['object']['metadata']['resourceVersion']}")
    v.ask(CONFIGMAPS, "POST", body={"metadata": {"name": "after"}})
    wait_for("the next event", lambda: w.events)
    equal(w.events[0]["object"]["metadata"]["name"], "after")


def test_a_removed_data_directory_is_noticed(case):
    v = case.start()
    context = v.admin()
    for path in ("/readyz", "/livez", "/healthz"):
        equal(v.ask(path, context=context).status, 200)
    shutil.rmtree(v.dir)
    v.send(signal.SIGHUP)  # main looks whenever it wakes up
    a = wait_for("livez to fail", lambda: (lambda a: a if a.status == 500 else None)(
        v.ask("/livez", context=context)))
    has(a.text, "[-]etcd failed")
    equal(v.ask("/readyz", context=context).status, 500)
    v.send(signal.SIGHUP)
    v.end()
    equal(v.stderr().count("data_dir_removed"), 1)


def test_readyz_fails_first(case):
    v = case.start("--shutdown-delay-duration", "1m")
    context = v.admin()
    v.send(signal.SIGTERM)
    a = wait_for("readyz to fail", lambda: (lambda a: a if a.status == 500 else None)(
        v.ask("/readyz", context=context)))
    has(a.text, "[-]shutdown failed: reason withheld\nreadyz check failed\n")
    equal(v.ask("/livez", context=context).status, 200)
    equal(v.ask("/api/v1/namespaces", context=context).status, 200, "still served")
    v.send(signal.SIGTERM)  # a second one ends it at once
    equal(v.process.wait(timeout=60), 1)
    case.start()


def test_socket_activation_and_notify(case):
    with socket.socket() as listener, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        notify.bind(case.path("notify"))
        notify.settimeout(60)
        if listener.fileno() != 3:
            os.dup2(listener.fileno(), 3)
        # systemd sets LISTEN_PID between fork and exec: a shell does the same.
        data = case.path("data")
        process = subprocess.Popen(
            ["/bin/sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" "$@"', case.binary, "--data-dir", data],
            stdout=subprocess.PIPE, pass_fds=(3,),
            env={**os.environ, "NOTIFY_SOCKET": case.path("notify"), "WATCHDOG_USEC": "200000"})
        try:
            has(process.stdout.readline().decode(), f"https://127.0.0.1:{listener.getsockname()[1]} ")
            has(notify.recv(4096).decode(), "READY=1\n")
            equal(notify.recv(4096), b"WATCHDOG=1")
            process.send_signal(signal.SIGHUP)
            seen = set()
            while not {b"RELOADING=1", b"READY=1"} <= seen:
                seen.add(notify.recv(4096).split(b"\n")[0])
            process.terminate()
            while notify.recv(4096) != b"STOPPING=1":
                pass
            equal(process.wait(timeout=60), 0)
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    main(sys.modules[__name__])
