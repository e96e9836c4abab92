"""servers.py - API servers on an etcd cluster: vigild, and kube-apiserver for comparison. Both look the
same to the tests: `port`, `context` (an administrator's), start, kill, close, stderr."""
import os
import ssl
import subprocess

from members import Failed, LIMIT_S, free_port, wait_for
from stream import Client
from vigild import Vigild, make_certificate


class VigildOnEtcd:
    kind = "vigild"

    def __init__(self, binary, directory, name, etcd_urls, flags=()):
        self.binary, self.name = binary, name
        self.dir = os.path.join(directory, name)
        self.flags = ["--etcd-servers", etcd_urls, *flags]
        self.port = 0
        self.process = None
        self.logs = []
        self.start()

    def start(self):
        """On the port of last time, so that clients find it again."""
        self.process = Vigild(self.binary, self.dir, *self.flags, secure_port=self.port)
        self.logs.append(self.process)
        self.port = self.process.port
        self.context = self.process.admin()

    def kill(self):
        self.process.kill()

    def close(self):
        """It ends when told to, and no sanitizer has anything to say."""
        status = self.process.end()
        text = self.stderr()
        if status != 0 or any(w in text for w in ("Sanitizer", "runtime error:", "Assertion")):
            raise Failed(f"{self.name} ended with status {status}: {text[-4000:]}")

    def stderr(self):
        return "".join(p.stderr() for p in self.logs)

    def alive(self):
        return self.process.process.poll() is None


class KubeApiserver:
    kind = "kube-apiserver"

    def __init__(self, binary, directory, name, etcd_urls, flags=()):
        self.binary, self.name, self.etcd_urls, self.flags = binary, name, etcd_urls, list(flags)
        self.dir = os.path.join(directory, name)
        os.makedirs(self.dir)
        self.port = free_port()
        self.pki()
        self.process = None
        self.start()

    def path(self, name):
        return os.path.join(self.dir, name)

    def pki(self):
        ca = make_certificate(self.dir, "ca", "/CN=test-ca")
        make_certificate(self.dir, "admin", "/O=system:masters/CN=admin", ca)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.path("tls.key"), "-out",
                        self.path("tls.crt"), "-days", "2", "-subj", "/CN=kube-apiserver", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        subprocess.run(["openssl", "genrsa", "-out", self.path("sa.key"), "2048"], check=True,
                       capture_output=True)
        self.context = ssl.create_default_context(cafile=self.path("tls.crt"))
        self.context.load_cert_chain(self.path("admin.crt"), self.path("admin.key"))

    def start(self):
        args = [self.binary, "--etcd-servers", self.etcd_urls, "--bind-address", "127.0.0.1",
                "--advertise-address", "192.0.2.1",
                "--secure-port", str(self.port), "--tls-cert-file", self.path("tls.crt"),
                "--tls-private-key-file", self.path("tls.key"), "--client-ca-file", self.path("ca.crt"),
                "--authorization-mode", "RBAC", "--service-cluster-ip-range", "10.0.0.0/24",
                "--service-account-issuer", "https://kubernetes.default.svc",
                "--service-account-key-file", self.path("sa.key"),
                "--service-account-signing-key-file", self.path("sa.key"),
                "--disable-admission-plugins", "ServiceAccount", "--endpoint-reconciler-type", "none",
                *self.flags]
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen(args, stdout=log, stderr=log)
        wait_for(f"{self.name} to be ready", self.is_ready, 2 * LIMIT_S)

    def is_ready(self):
        if not self.alive():
            raise Failed(f"{self.name} ended: {self.stderr()[-2000:]}")
        try:
            client = Client(self, timeout=10)
            client.send("GET", "/readyz")
            status, fields = client.head()
            client.body(fields)
            client.close()
            return status == 200
        except Exception:  # pylint: disable=broad-except
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()

    def stderr(self):
        with open(self.path("log"), "rb") as f:
            return f.read().decode(errors="replace")

    def alive(self):
        return self.process.poll() is None


def server_of(program, *args):
    kind = KubeApiserver if "kube-apiserver" in os.path.basename(program) else VigildOnEtcd
    return kind(program, *args)
