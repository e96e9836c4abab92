"""servers.py - the API servers that are measured: each is started with its defaults on loopback, with TLS, in a
directory of its own, and ended with all that belongs to it."""

import functools
import http.client
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time

READY_LIMIT_S = 240


# Of a process that is dead and not waited for, the first thread stays; its port is free when all others are gone.
RESTART = """#!/bin/sh
pid=$(cat '{pid}')
kill -9 "$pid"
while [ -e "/proc/$pid" ] && ! {{ grep -q '^State:.Z' "/proc/$pid/status" && [ "$(ls "/proc/$pid/task" | wc -l)" -le 1 ]; }}; do
    sleep 0.02
done
{command} >>'{log}' 2>&1 </dev/null &
echo $! >'{pid}'
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def anonymous_bytes(pids):
    total = 0
    for pid in pids:
        for line in open(f"/proc/{pid}/status"):
            if line.startswith("RssAnon:"):
                total += int(line.split()[1]) * 1024
    return total


def end_process(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:  # not ours: the tool has started it anew
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.01)


class Etcd:
    def __init__(self, binary, parent):
        self.dir = tempfile.mkdtemp(prefix="etcd.", dir=parent)
        self.port, peer = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        at = f"http://127.0.0.1:{peer}"
        log = open(os.path.join(self.dir, "log"), "w")
        self.process = subprocess.Popen(
            [binary, "--data-dir", os.path.join(self.dir, "data"), "--listen-client-urls", self.url,
             "--advertise-client-urls", self.url, "--listen-peer-urls", at, "--initial-advertise-peer-urls", at,
             "--initial-cluster", f"default={at}", "--quota-backend-bytes", "8000000000"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.pid = self.process.pid
        try:
            self.wait()
        except BaseException:
            self.stop()
            raise

    def wait(self):
        end = time.monotonic() + READY_LIMIT_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"etcd ended: {last_line(os.path.join(self.dir, 'log'))}")
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                c.request("GET", "/health")
                if b'"true"' in c.getresponse().read():
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError("etcd did not become ready")

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


def last_line(path):
    try:
        lines = open(path, errors="replace").read().strip().splitlines()
        return lines[-1] if lines else "it said nothing"
    except OSError as e:
        return str(e)


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make_clients_certificates(folder):
    """clients.crt, whose owner may sign clients, and admin.crt with admin.key: one of them."""
    at = functools.partial(os.path.join, folder)
    new = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl(*new, "-keyout", at("clients.key"), "-out", at("clients.crt"), "-subj", "/CN=clients")
    openssl(*new, "-keyout", at("admin.key"), "-out", at("admin.crt"), "-subj", "/O=system:masters/CN=admin",
            "-CA", at("clients.crt"), "-CAkey", at("clients.key"), "-addext", "extendedKeyUsage=clientAuth",
            "-addext", "basicConstraints=critical,CA:FALSE")


class Server:
    """One API server. Its process may be replaced by the tool's restarts: `pid` is in a file. It knows one client, who
    shows a token (kubeconfig) or a certificate (certificate_kubeconfig)."""

    def __init__(self, parent, etcd, authority):
        self.dir = tempfile.mkdtemp(prefix="server.", dir=parent)
        self.etcd = etcd
        self.port = free_port()
        self.headers = {"Authorization": "Bearer sesame"}
        open(self.path("tokens.csv"), "w").write('sesame,admin,1,"system:masters"\n')
        make_clients_certificates(self.dir)
        self.logins = ["--token-auth-file", self.path("tokens.csv"), "--client-ca-file", self.path("clients.crt")]
        self.kubeconfig = self.write_kubeconfig("kubeconfig", authority, "token: sesame")
        self.certificate_kubeconfig = self.write_kubeconfig(
            "certificate_kubeconfig", authority,
            f'client-certificate: "{self.path("admin.crt")}", client-key: "{self.path("admin.key")}"')
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def path(self, name):
        return os.path.join(self.dir, name)

    def write_kubeconfig(self, name, authority, user):
        open(self.path(name), "w").write(
            "apiVersion: v1\nkind: Config\ncurrent-context: peer\n"
            f'clusters: [{{name: peer, cluster: {{server: "https://127.0.0.1:{self.port}", '
            f'certificate-authority: "{self.path(authority)}"}}}}]\n'
            f"users: [{{name: admin, user: {{{user}}}}}]\n"
            "contexts: [{name: peer, context: {cluster: peer, user: admin}}]\n")
        return self.path(name)

    @property
    def pid(self):
        return int(open(self.path("pid")).read())

    @property
    def pids(self):
        return [self.pid] + ([self.etcd.pid] if self.etcd else [])

    def start(self):
        """Milliseconds from exec until /readyz says 200."""
        log = open(self.path("log"), "a")
        began = time.monotonic()
        process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        open(self.path("pid"), "w").write(str(process.pid))
        while not self.is_ready():
            if process.poll() is not None:
                raise RuntimeError(f"{self.binary} ended: {last_line(self.path('log'))}")
            if time.monotonic() - began > READY_LIMIT_S:
                raise RuntimeError(f"{self.binary} did not become ready")
            time.sleep(0.002)
        return (time.monotonic() - began) * 1000

    def is_ready(self):
        try:
            c = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=10)
            c.request("GET", "/readyz", headers=self.headers)
            return c.getresponse().status == 200
        except OSError:
            return False
        except http.client.HTTPException:
            return False

    def kill(self):
        end_process(self.pid)

    def restart_script(self):
        path = self.path("restart.sh")
        words = " ".join("'" + w.replace("'", "'\\''") + "'" for w in self.command())
        with open(path, "w") as f:
            f.write(RESTART.format(pid=self.path("pid"), log=self.path("log"), command=words))
        os.chmod(path, 0o700)
        return path

    def stop(self):
        if os.path.exists(self.path("pid")):
            self.kill()
        shutil.rmtree(self.dir, ignore_errors=True)


class Vigild(Server):
    def __init__(self, binary, parent, etcd=None):
        super().__init__(parent, etcd, "data/pki/ca.crt")
        self.binary = binary

    def command(self):
        store = ["--etcd-servers", self.etcd.url] if self.etcd else []
        return [self.binary, "--data-dir", self.path("data"), "--secure-port", str(self.port), *self.logins,
                *store]


class Kube(Server):
    """Without a controller manager no pod would get a service account: that plugin is off."""

    def __init__(self, binary, parent, etcd):
        super().__init__(parent, etcd, "tls.crt")
        self.binary = binary
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.path("tls.key"), "-out",
                self.path("tls.crt"), "-days", "2", "-subj", "/CN=kube-apiserver", "-addext",
                "subjectAltName=IP:127.0.0.1,DNS:localhost")

    def command(self):
        key = self.path("tls.key")
        return [self.binary, "--etcd-servers", self.etcd.url, "--bind-address", "127.0.0.1", "--secure-port",
                str(self.port), "--tls-cert-file", self.path("tls.crt"), "--tls-private-key-file", key,
                *self.logins, "--authorization-mode", "RBAC",
                "--service-account-issuer", "https://kubernetes.default.svc", "--service-account-key-file", key,
                "--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.0.0.0/24",
                "--disable-admission-plugins", "ServiceAccount"]
