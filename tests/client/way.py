"""way.py <vigild> <probe> [test...] - the way from libvigil to a server: proxies, certificates and tokens
that change on disk, programs that give credentials, names in TLS, packed answers, service accounts,
limits, and peers that fall silent. The probe (probe.c) does what it is told; its clock can jump, so
that nobody waits for minutes to pass."""
import gzip
import http.server
import json
import os
import queue
import socket
import ssl
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "vigild"))
import vigild  # noqa: E402
from vigild import LIMIT_S, Failed, check, equal, has, make_certificate, openssl  # noqa: E402

PROBE = os.path.abspath(sys.argv.pop(2))
TOKEN_S = 51  # past the age at which a token file is read again
FILES_S = 301  # the same for certificates
REQUEST_S = 61  # past the time a request may take
BOOKMARK_S = 181  # past the silence that a watch with bookmarks may keep


class Probe:
    def __init__(self, config, within=(), **env):
        clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        self.process = subprocess.Popen([*within, PROBE, config], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**clean, **env})
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def next(self):
        try:
            line = self.lines.get(timeout=LIMIT_S)
        except queue.Empty:
            raise Failed("the probe says nothing") from None
        if line is None:
            raise Failed(f"the probe has ended: {self.process.stderr.read()}")
        return line

    def sees(self, *wanted):
        """These lines come, in this order; errors in between are the informer's business."""
        for want in wanted:
            line = self.next()
            while line.startswith("error "):
                line = self.next()
            equal(line, want, "what the probe saw")

    def jump(self, seconds):
        self.say(f"jump {seconds}")
        self.sees("jumped")

    def get(self, path="/x"):
        """What the server saw of the request, or the failure as a text."""
        self.say(f"get {path}")
        line = self.next()
        return json.loads(line[4:]) if line.startswith("got ") else line

    def end(self):
        self.process.stdin.close()
        equal((self.process.wait(LIMIT_S), self.process.stderr.read()), (0, ""), "the probe's end")


class Mirror(http.server.ThreadingHTTPServer):
    """Answers every GET with what it saw: token, certificate, name asked for in TLS, headers."""
    daemon_threads = True

    def __init__(self, case, names=("IP:127.0.0.1",)):
        super().__init__(("127.0.0.1", 0), MirrorHandler)
        self.ca = make_certificate(case.dir, "ca", "/CN=ca")
        server = signed(case, "server", "/CN=server", self.ca, "serverAuth", names)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(*server)
        self.context.load_verify_locations(self.ca[0])
        self.context.verify_mode = ssl.CERT_OPTIONAL
        self.context.sni_callback = lambda s, name, _: setattr(s, "asked_name", name)
        self.refused = set()  # tokens
        self.busy = []  # Retry-After of the next answers
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def get_request(self):
        connection, address = super().get_request()
        return self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False), address

    def handle_error(self, request, client_address):
        pass  # a client that turns away is no fault


class MirrorHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_GET(self):
        token = self.headers.get("Authorization", "").removeprefix("Bearer ")
        subject = (self.connection.getpeercert() or {}).get("subject", ())
        seen = {"token": token, "cn": dict(pair[0] for pair in subject).get("commonName", ""),
                "sni": getattr(self.connection, "asked_name", None) or "", "host": self.headers["Host"],
                "packed": "gzip" in self.headers.get("Accept-Encoding", ""),
                "from": self.client_address[1]}
        status = 401 if token in self.server.refused else 200
        self.send_response(429 if self.server.busy else status)
        if self.server.busy:
            self.send_header("Retry-After", str(self.server.busy.pop()))
        body = json.dumps(seen).encode()
        if seen["packed"]:
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Proxy:
    """CONNECT for anybody: every name is this machine. Tunnels can be frozen."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.asked = []
        self.frozen = threading.Event()  # for tunnels that are there when it is set
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.tunnel, args=(client,), daemon=True).start()

    def tunnel(self, client):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = client.recv(1)
            if not piece:
                return
            head += piece
        target = head.split()[1].decode()
        self.asked.append(head.split()[0].decode() + " " + target)
        server = socket.create_connection(("127.0.0.1", int(target.rsplit(":", 1)[1])))
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        frozen = self.frozen
        for a, b in ((client, server), (server, client)):
            threading.Thread(target=self.copy, args=(a, b, frozen), daemon=True).start()

    @staticmethod
    def copy(a, b, frozen):
        try:
            while data := a.recv(65536):
                if frozen.is_set():
                    time.sleep(LIMIT_S * 10)  # open, and silent for ever
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def freeze(self):
        self.frozen.set()
        self.frozen = threading.Event()


def signed(case, name, subject, ca, usage="clientAuth", names=()):
    """As make_certificate, with names of the server."""
    cert, key = make_certificate(case.dir, name, subject, ca, usage)
    if names:
        ext = case.write(name + ".ext", f"extendedKeyUsage={usage}\nsubjectAltName={','.join(names)}\n")
        openssl("x509", "-req", "-in", case.path(name + ".csr"), "-CA", ca[0], "-CAkey", ca[1],
                "-CAcreateserial", "-days", "1", "-extfile", ext, "-out", cert)
    return cert, key


def kubeconfig(case, server, ca, user="{}", more=""):
    return case.write("config", f"""current-context: k
contexts: [{{name: k, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: {ca}{more}}}}}]
users: [{{name: u, user: {user}}}]
""")


def swap(path, text):
    """A file is replaced at once, as the kubelet does it."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.rename(path + ".new", path)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


# ---- proxies ----

def test_proxy_from_the_environment(case):
    m, proxy = Mirror(case, ("DNS:vigil.test",)), Proxy()
    config = kubeconfig(case, f"https://vigil.test:{m.port}", m.ca[0])
    p = Probe(config, HTTPS_PROXY=proxy.url)
    equal(p.get()["host"], f"vigil.test:{m.port}")
    equal(proxy.asked, [f"CONNECT vigil.test:{m.port}"])
    p.end()
    p = Probe(config, HTTPS_PROXY=proxy.url, NO_PROXY="other.test,.test")
    has(p.get(), "failed 0")  # nobody but the proxy knows that name
    equal(len(proxy.asked), 1, "tunnels")
    p.end()


def test_this_machine_needs_no_proxy(case):
    m, proxy = Mirror(case), Proxy()
    p = Probe(kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0]), HTTPS_PROXY=proxy.url)
    equal(p.get()["host"], f"127.0.0.1:{m.port}")
    equal(proxy.asked, [])
    p.end()


def test_proxy_url_is_for_everything(case):
    m, proxy, other = Mirror(case, ("DNS:vigil.test",)), Proxy(), Proxy()
    config = kubeconfig(case, f"https://vigil.test:{m.port}", m.ca[0], more=f", proxy-url: '{proxy.url}'")
    p = Probe(config, HTTPS_PROXY=other.url, NO_PROXY="*")
    equal(p.get()["sni"], "vigil.test")
    equal((len(proxy.asked), len(other.asked)), (1, 0))
    p.end()


# ---- names and packing ----

def test_tls_server_name(case):
    m = Mirror(case, ("DNS:api.test",))
    server = f"https://127.0.0.1:{m.port}"
    p = Probe(kubeconfig(case, server, m.ca[0]))
    has(p.get(), "failed 0")
    p.end()
    p = Probe(kubeconfig(case, server, m.ca[0], more=", tls-server-name: api.test"))
    seen = p.get()
    equal((seen["sni"], seen["host"]), ("api.test", f"127.0.0.1:{m.port}"))
    p.end()


def test_answers_are_packed_beyond_this_machine(case):
    m, proxy = Mirror(case, ("DNS:vigil.test", "IP:127.0.0.1")), Proxy()
    via = f", proxy-url: '{proxy.url}'"
    for server, more, packed in ((f"https://vigil.test:{m.port}", via, True),
                                 (f"https://vigil.test:{m.port}", via + ", disable-compression: true", False),
                                 (f"https://127.0.0.1:{m.port}", "", False)):
        p = Probe(kubeconfig(case, server, m.ca[0], more=more))
        equal(p.get()["packed"], packed)
        p.end()


# ---- credentials ----

def test_certificates_change_on_disk(case):
    m = Mirror(case)
    for name in ("one", "two"):
        signed(case, name, f"/CN={name}", m.ca)
    cert, key = case.write("my.crt", read(case.path("one.crt"))), case.write("my.key", read(case.path("one.key")))
    user = f"{{client-certificate: {cert}, client-key: {key}}}"
    p = Probe(kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0], user))
    first = p.get()
    equal(first["cn"], "one")
    swap(cert, read(case.path("two.crt")))
    swap(key, read(case.path("two.key")))
    again = p.get()
    equal((again["cn"], again["from"]), ("one", first["from"]))  # the same connection
    p.jump(FILES_S)
    equal(p.get()["cn"], "two")
    p.end()


def test_tokens_change_on_disk(case):
    m = Mirror(case)
    token = case.write("token", "one\n")
    p = Probe(kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0], f"{{tokenFile: {token}}}"))
    equal(p.get()["token"], "one")
    swap(token, "two\n")
    equal(p.get()["token"], "one")
    p.jump(TOKEN_S)
    equal(p.get()["token"], "two")
    swap(token, "three\n")
    m.refused.add("two")
    has(p.get(), "failed 401")
    equal(p.get()["token"], "three")  # read again at once
    p.end()


def test_service_account(case):
    m = Mirror(case)
    account = case.path("account")
    os.mkdir(account)
    for name, text in (("token", "one"), ("ca.crt", read(m.ca[0])), ("namespace", "mine")):
        case.write("account/" + name, text)
    p = Probe(account, KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(m.port))
    equal(p.get()["token"], "one")
    swap(case.path("account/token"), "two")
    p.jump(TOKEN_S)
    equal(p.get()["token"], "two")
    p.end()


EXEC = """#!/bin/sh
echo x >>{dir}/runs
n=$(wc -l <{dir}/runs)
when=$(cat {dir}/expiry 2>/dev/null)
printf '{{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{{"token":"t%s"%s}}}}' \\
    "$n" "${{when:+,\\"expirationTimestamp\\":\\"$when\\"}}"
"""
EXEC_USER = ("{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: {dir}/give, "
             "interactiveMode: Never}}}}")


def test_programs_give_credentials(case):
    m = Mirror(case)
    os.chmod(case.write("give", EXEC.format(dir=case.dir)), 0o700)
    later = time.gmtime(time.time() + 3600)
    case.write("expiry", time.strftime("%Y-%m-%dT%H:%M:%SZ", later))
    p = Probe(kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0], EXEC_USER.format(dir=case.dir)))
    equal([p.get()["token"] for _ in range(2)], ["t1", "t1"])
    m.refused.add("t1")
    has(p.get(), "failed 401")
    equal(p.get()["token"], "t2")
    os.unlink(case.path("expiry"))  # the next one never expires
    p.jump(3601)
    equal(p.get()["token"], "t3")
    p.jump(24 * 3600)
    equal(p.get()["token"], "t3")
    p.end()


# A program that gives certificates: the second time another one, and connections go by the new one.
EXEC_CERT = """#!/usr/bin/env python3
import json, os
d = {dir!r}
name = "two" if os.path.exists(d + "/turned") else "one"
status = {{"clientCertificateData": open(d + "/" + name + ".crt").read(),
          "clientKeyData": open(d + "/" + name + ".key").read()}}
print(json.dumps({{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
                  "status": status}}))
"""


def test_programs_give_certificates(case):
    m = Mirror(case)
    for name in ("one", "two"):
        signed(case, name, f"/CN={name}", m.ca)
    os.chmod(case.write("give", EXEC_CERT.format(dir=case.dir)), 0o700)
    p = Probe(kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0], EXEC_USER.format(dir=case.dir)))
    equal(p.get()["cn"], "one")
    case.write("turned", "")
    m.refused.add("")  # it sends no token
    has(p.get(), "failed 401")
    m.refused.clear()
    equal(p.get()["cn"], "two")
    p.end()


# ---- limits ----

def test_limits_and_retry_after(case):
    m = Mirror(case)
    config = kubeconfig(case, f"https://127.0.0.1:{m.port}", m.ca[0])
    p = Probe(config)
    m.busy = [1, 1]
    before = time.monotonic()
    equal(p.get()["token"], "")
    check(time.monotonic() - before >= 2, "Retry-After was not waited for")
    p.end()
    p = Probe(config, PROBE_QPS="0.02")
    p.get()
    p.say("get /x")  # the next is due in 50 seconds
    p.jump(40)
    check(p.lines.empty(), "the limit was not kept")
    p.jump(15)
    check(p.next().startswith("got "), "the request never went")
    p.end()


# ---- watches through a tunnel, against vigild ----

def put(server, name):
    c = server.connect(server.admin(), server.url.split("/")[2].rsplit(":", 1)[0])
    r = vigild.ask_on(c, "/api/v1/namespaces/default/configmaps", "POST",
                      {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
    c.close()
    equal(r.status, 201)


def vigild_config(case, server, proxy):
    user = "{{client-certificate: {0}.crt, client-key: {0}.key}}".format(server.path("pki/admin"))
    return kubeconfig(case, server.url, server.path("pki/ca.crt"), user, f", proxy-url: '{proxy.url}'")


def test_many_watches_share_one_connection(case):
    server, proxy = case.start(), Proxy()
    p = Probe(vigild_config(case, server, proxy))
    p.say("follow")
    p.sees("synced 0")
    for _ in range(5):  # beside the watch, which goes on: HTTP/2
        has(p.get("/api/v1/namespaces/default/configmaps")["kind"], "ConfigMapList")
    put(server, "a")
    p.sees("+a")
    equal(len(proxy.asked), 1, "connections")
    p.end()


def test_a_peer_that_falls_silent(case):
    """Nothing is closed and nothing comes any more: the watch finds out, and goes on elsewhere."""
    server, proxy = case.start(), Proxy()
    p = Probe(vigild_config(case, server, proxy))
    p.say("follow")
    p.sees("synced 0")
    put(server, "a")
    p.sees("+a")
    proxy.freeze()
    put(server, "b")
    p.jump(BOOKMARK_S)
    p.sees("+b")
    put(server, "c")
    p.sees("+c")
    p.end()


def test_a_request_that_nobody_answers(case):
    """Its end says the same about the connection, also to the watches on it."""
    server, proxy = case.start(), Proxy()
    p = Probe(vigild_config(case, server, proxy))
    p.say("follow")
    p.sees("synced 0")
    proxy.freeze()
    put(server, "a")
    p.say(f"get /version\njump {REQUEST_S}")
    p.sees("jumped")
    seen = sorted((p.next(), p.next()))
    equal(seen[0], "+a")
    has(seen[1], "did not answer")
    check("major" in p.get("/version"), "the next one takes the same way")
    p.end()


# What the kernel does for us: the host behind a cable that was cut. Needs to be root.
CABLE = ("ip netns add {ns} && ip link add {ns}a type veth peer name {ns}b && ip link set {ns}b netns {ns} && "
         "ip addr add 10.213.{n}.1/30 dev {ns}a && ip link set {ns}a up && "
         "ip -n {ns} addr add 10.213.{n}.2/30 dev {ns}b && ip -n {ns} link set {ns}b up")


def test_a_cable_that_is_cut(case):
    if not os.environ.get("VG_LONG"):
        return  # most of a real minute: a socket's user timeout knows no other clock
    n, ns = os.getpid() % 250, f"vgc{os.getpid()}"
    if subprocess.run(["sh", "-c", CABLE.format(ns=ns, n=n)], capture_output=True, check=False).returncode:
        print("SKIPPED: no network namespaces here")
    else:
        server = case.start("--bind-address", f"10.213.{n}.1")
        user = "{{client-certificate: {0}.crt, client-key: {0}.key}}".format(server.path("pki/admin"))
        config = kubeconfig(case, server.url, server.path("pki/ca.crt"), user)
        cut_and_mend(Probe(config, within=["ip", "netns", "exec", ns]), server, ns)
    subprocess.run(["ip", "netns", "del", ns], capture_output=True, check=False)


def cut_and_mend(p, server, ns):
    def is_connected():
        shown = subprocess.run(["ip", "netns", "exec", ns, "ss", "-Htn", "state", "established"],
                               capture_output=True, text=True, check=True)
        return bool(shown.stdout)
    p.say("follow")
    p.sees("synced 0")
    check(is_connected(), "nothing is connected")
    subprocess.run(["ip", "link", "set", ns + "a", "down"], check=True)
    end = time.monotonic() + 120
    while is_connected():  # asked after 30 s, dead after 45
        check(time.monotonic() < end, "the dead connection is held for ever")
        time.sleep(0.2)
    subprocess.run(["ip", "link", "set", ns + "a", "up"], check=True)
    put(server, "a")
    p.sees("+a")
    p.end()


if __name__ == "__main__":
    vigild.main(sys.modules[__name__])
