"""stream.py - a server that can be killed and comes back, and a client that reads as slowly as it is
told to: nothing is buffered behind its back but what one recv() brought. For tests of watches."""
import json
import os
import signal
import socket
import ssl
import tempfile

from vigild import LIMIT_S, Vigild, equal


class Server:
    """One data directory, and the process that serves it at the moment."""

    def __init__(self, binary, parent, flags=()):
        self.binary, self.flags = binary, list(flags)
        self.dir = tempfile.mkdtemp(prefix="vigild-", dir=parent)
        self.port = 0
        self.start()

    def start(self):
        """Start on the port of last time, so that clients find it again."""
        self.process = Vigild(self.binary, os.path.join(self.dir, "data"), *self.flags, secure_port=self.port)
        self.port = self.process.port
        self.context = self.process.admin()

    def tail(self):
        return self.process.stderr()[-4000:]

    def kill(self):
        self.process.kill()

    def close(self):
        equal(self.process.end(signal.SIGTERM), 0, f"exit status of vigild, which said {self.tail()}")
        self.process.check_faults()


class Gone(Exception):
    """The server closed the connection."""


class Client:
    """One connection; requests one after the other."""

    def __init__(self, server, timeout=LIMIT_S, receive_buffer=None):
        raw = socket.socket()
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(timeout)
        raw.connect(("127.0.0.1", server.port))
        self.sock = server.context.wrap_socket(raw, server_hostname="127.0.0.1")
        self.bytes = b""

    def close(self):
        self.sock.close()

    def send(self, method, path, body=None, headers=()):
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
        lines += [f"{k}: {v}" for k, v in headers]
        if body is not None:
            if not any(k.lower() == "content-type" for k, _ in headers):
                lines.append("Content-Type: application/json")
            lines.append(f"Content-Length: {len(data)}")
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    def more(self, size=65536):
        try:
            got = self.sock.recv(size)
        except (ConnectionError, ssl.SSLError, OSError) as e:
            if isinstance(e, socket.timeout):
                raise
            raise Gone(str(e)) from e
        if not got:
            raise Gone("end of stream")
        self.bytes += got

    def until(self, mark, size=65536):
        while mark not in self.bytes:
            self.more(size)
        head, self.bytes = self.bytes.split(mark, 1)
        return head

    def head(self):
        text = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {}
        for line in text[1:]:
            name, value = line.split(":", 1)
            fields[name.lower()] = value.strip()
        return int(text[0].split(" ")[1]), fields

    def exactly(self, n, size=65536):
        while len(self.bytes) < n:
            self.more(size)
        got, self.bytes = self.bytes[:n], self.bytes[n:]
        return got

    def chunk(self, size=65536):
        """One chunk of a chunked answer; b"" is the last."""
        n = int(self.until(b"\r\n", size), 16)
        return self.exactly(n + 2, size)[:-2]

    def body(self, fields):
        if "content-length" in fields:
            return self.exactly(int(fields["content-length"]))
        parts = []
        while part := self.chunk():
            parts.append(part)
        return b"".join(parts)

    def ask(self, method, path, body=None, headers=()):
        self.send(method, path, body, headers)
        status, fields = self.head()
        return status, json.loads(self.body(fields) or b"null")


class WatchStream:
    """The events of one watch, as they come."""

    def __init__(self, server, path, receive_buffer=None):
        self.client = Client(server, receive_buffer=receive_buffer)
        self.client.send("GET", path)
        self.status, fields = self.client.head()
        self.text = b""
        if self.status != 200:
            self.refusal = json.loads(self.client.body(fields))

    def next(self, size=65536):
        """The next event, or None at an orderly end. Gone: the connection broke."""
        while b"\n" not in self.text:
            part = self.client.chunk(size)
            if not part:
                return None
            self.text += part
        line, self.text = self.text.split(b"\n", 1)
        return json.loads(line)

    def close(self):
        self.client.close()
