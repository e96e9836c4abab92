"""vigild.py - starts the real vigild and talks to it; what the scripts in this folder share.

A script is called with the binary's path; each function named test_* gets a fresh directory. A
failed check ends it with a message. Nothing here sleeps for a fixed time: it waits for what is to
happen, up to a limit that only a broken server reaches.

With VG_VIGILD_ETCD=36 in the environment (or 34, 35) every vigild keeps its things in an etcd of its own, one for
each data directory: the program is found by cmake/VigilEtcd.cmake's names, and without it the script is skipped."""
import base64
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import traceback

LIMIT_S = 60


class Failed(Exception):
    pass


def check(ok, what):
    if not ok:
        raise Failed(what)


def equal(got, want, what="value"):
    if got != want:
        raise Failed(f"{what} is {got!r}, expected {want!r}")


def has(text, piece):
    if piece not in text:
        raise Failed(f"{text!r} does not have {piece!r}")


def check_faults(text):
    for word in ("Sanitizer", "runtime error:", "Assertion"):
        check(word not in text, text)


def wait_for(what, fn):
    end = time.monotonic() + LIMIT_S
    while True:
        value = fn()
        if value:
            return value
        if time.monotonic() > end:
            raise Failed(f"waited in vain for {what}")
        time.sleep(0.005)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Vigild:
    """One process. `flags` come after --data-dir and --secure-port 0, and after a --controllers= that
    makes nothing appear by itself: tests of controllers name them."""

    def __init__(self, binary, data_dir, *flags, env=None, secure_port="0", wait=True, pass_fds=()):
        self.dir = data_dir
        self.err = tempfile.TemporaryFile()
        args = [binary, "--data-dir", data_dir, "--secure-port", str(secure_port), "--controllers=", *flags]
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=self.err,
                                        env={**os.environ, **(env or {})}, pass_fds=pass_fds)
        self.line = ""
        if wait:
            self.line = self.process.stdout.readline().decode()
            if "ready on" not in self.line:
                self.process.wait()
                raise Failed(f"did not start: {self.stderr()}")
            self.url = self.line.split()[3]
            self.port = int(self.url.rsplit(":", 1)[1])

    def stderr(self):
        self.err.seek(0)
        return self.err.read().decode()

    def check_faults(self):
        """No sanitizer has anything to say."""
        check_faults(self.stderr())

    def path(self, name):
        return os.path.join(self.dir, name)

    def context(self, cert=None, key=None):
        context = ssl.create_default_context(cafile=self.path("pki/ca.crt"))
        if cert:
            context.load_cert_chain(cert, key)
        return context

    def admin(self):
        return self.context(self.path("pki/admin.crt"), self.path("pki/admin.key"))

    def connect(self, context, host="127.0.0.1"):
        return http.client.HTTPSConnection(host, self.port, context=context, timeout=LIMIT_S)

    def ask(self, path, method="GET", context=None, body=None, headers=None):
        """One request as the administrator, or with the context given."""
        c = self.connect(context or self.admin())
        try:
            return ask_on(c, path, method, body, headers)
        finally:
            c.close()

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.send(number)
        return self.process.wait(timeout=LIMIT_S)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def ask_on(connection, path, method="GET", body=None, headers=None):
    headers = dict(headers or {})
    if isinstance(body, (dict, list)):
        body = json.dumps(body)
        headers.setdefault("Content-Type", "application/json")
    connection.request(method, path, body=body, headers=headers)
    r = connection.getresponse()
    return Answer(r.status, {k.lower(): v for k, v in r.getheaders()}, r.read())


class Etcd:
    """One member, killed with the test. Another process may take a port between our look and etcd's: then another
    one is tried."""

    def __init__(self, binary, folder):
        for attempt in range(5):
            self.start(binary, f"{folder}-{attempt}")
            wait_for("etcd to listen, or to give up", lambda: self.has_ended() or self.listens())
            if not self.has_ended():
                return
        raise Failed(f"etcd does not start, see {folder}")

    def start(self, binary, folder):
        os.makedirs(folder)
        self.port, peer_port = free_ports(2)
        self.url, peer = (f"http://127.0.0.1:{p}" for p in (self.port, peer_port))
        with open(os.path.join(folder, "log"), "wb") as log:
            self.process = subprocess.Popen(
                [binary, "--data-dir", os.path.join(folder, "data"), "--listen-client-urls", self.url,
                 "--advertise-client-urls", self.url, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                 "--initial-cluster", f"default={peer}", "--unsafe-no-fsync", "--log-level", "error"],
                stdout=log, stderr=log)

    def has_ended(self):
        return self.process.poll() is not None

    def listens(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


def etcd_binary():
    """None: the store is the default one."""
    version = os.environ.get("VG_VIGILD_ETCD")
    return os.environ.get(f"VG_ETCD_{version}", "") if version else None


class Case:
    """What a test function gets: the binary, a directory, and servers that end with it."""

    def __init__(self, binary):
        self.binary = binary
        self.dir = tempfile.mkdtemp(prefix="vigild-test-")
        self.servers = []
        self.etcds = {}

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)
        return self.path(name)

    def start(self, *flags, data="data", **kw):
        if etcd_binary():
            if data not in self.etcds:
                self.etcds[data] = Etcd(etcd_binary(), self.path(data + "-etcd"))
            flags = ("--etcd-servers", self.etcds[data].url, f"--etcd-connect-timeout={LIMIT_S}s", *flags)
        server = Vigild(self.binary, self.path(data), *flags, **kw)
        self.servers.append(server)
        return server

    def run(self, *args):
        """vigild with these arguments, to its end."""
        r = subprocess.run([self.binary, *args], capture_output=True, text=True, timeout=LIMIT_S,
                           cwd=self.dir, check=False)
        check_faults(r.stderr)
        return r

    def finish(self):
        """Every server ends when it is told to, and no sanitizer has anything to say."""
        for server in self.servers:
            if server.process.poll() is None:
                equal(server.end(), 0, "exit status")
            server.check_faults()

    def done(self):
        for server in self.servers:
            server.kill()
        for etcd in self.etcds.values():
            etcd.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True)


def make_certificate(folder, name, subject, ca=None, usage="clientAuth", days=1):
    """A key and a certificate; ca is (certificate, key), or the certificate signs itself."""
    key, cert, request, ext = (os.path.join(folder, name + e) for e in (".key", ".crt", ".csr", ".ext"))
    openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    if ca is None:
        openssl("req", "-x509", "-new", "-key", key, "-subj", subject, "-days", str(days), "-out", cert)
        return cert, key
    openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
    with open(ext, "w", encoding="utf-8") as f:
        f.write(f"extendedKeyUsage={usage}\n")
    openssl("x509", "-req", "-in", request, "-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial",
            "-days", str(days), "-extfile", ext, "-out", cert)
    return cert, key


def kubeconfig_data(text, key):
    for line in text.splitlines():
        if line.strip().startswith(key + ":"):
            return base64.b64decode(line.split(":", 1)[1].strip()).decode()
    raise Failed(f"the kubeconfig has no {key}")


def free_ports(n):
    """Different ones: all are taken before the first is given back."""
    taken = [socket.socket() for _ in range(n)]
    for s in taken:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in taken]
    for s in taken:
        s.close()
    return ports


def free_port():
    return free_ports(1)[0]


def main(module):
    """Run the tests of a script; names after the binary choose some of them."""
    binary, chosen = os.path.abspath(sys.argv[1]), sys.argv[2:]
    if not os.access(binary, os.X_OK):
        sys.exit(f"there is no {binary}")
    if etcd_binary() is not None and not os.access(etcd_binary(), os.X_OK):
        print(f"SKIPPED: there is no etcd at '{etcd_binary()}'")
        sys.exit(77)
    failed = 0
    for name, test in list(vars(module).items()):
        if not name.startswith("test_") or (chosen and name not in chosen):
            continue
        case = Case(binary)
        try:
            test(case)
            case.finish()
            print(f"ok    {name}", flush=True)
        except Exception as e:  # pylint: disable=broad-except
            failed += 1
            print(f"FAIL  {name}: {e}", flush=True)
            if not isinstance(e, Failed):
                traceback.print_exc()
            for server in case.servers:
                print("      " + server.stderr().replace("\n", "\n      ")[-4000:], flush=True)
        finally:
            case.done()
    sys.exit(1 if failed else 0)
