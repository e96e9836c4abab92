"""etcd_watch.py - etcd's bare watch: what etcd itself needs to tell N watchers of each change.

A watcher is a connection of its own with one gRPC stream, over plain TCP as API servers use it here. HTTP/2 is written
by hand and flow control is opened wide at the start, so that reading costs next to nothing: what is measured is the
processor time of etcd's process.
"""

import os
import selectors
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, WINDOW = 0, 1, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
WIDE = 2**31 - 1
PREFIX = b"/bench/"


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + struct.pack("!BBI", kind, flags, stream) + payload


def varint(n):
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value


def hpack_length(n):
    if n < 0x7F:
        return bytes([n])
    return b"\x7f" + varint(n - 0x7F)


def headers(path):
    pairs = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"etcd"),
             (b"content-type", b"application/grpc"), (b"te", b"trailers")]
    # each as a literal that nobody needs to remember
    return b"".join(b"\0" + hpack_length(len(k)) + k + hpack_length(len(v)) + v for k, v in pairs)


def message(body):
    return struct.pack("!BI", 0, len(body)) + body


class Connection:
    """Frames come in through `feed`; `data` counts the bytes of messages, `ended` the streams that are over."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.pending = b""
        self.skip = 0  # bytes of a message that are yet to come
        self.data = 0
        self.ended = set()
        self.next_stream = 1
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, struct.pack("!HI", 4, WIDE)) +
                            frame(WINDOW, 0, 0, struct.pack("!I", WIDE - 65535)))

    def call(self, path, body, is_last):
        stream = self.next_stream
        self.next_stream += 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, headers(path)) +
                            frame(DATA, END_STREAM if is_last else 0, stream, message(body)))
        return stream

    def feed(self, got):
        if not got:
            raise RuntimeError("etcd closed a connection")
        if self.skip:
            n = min(self.skip, len(got))
            self.skip -= n
            self.data += n
            got = got[n:]
        got = self.pending + got
        at = 0
        while len(got) - at >= 9:
            length = int.from_bytes(got[at:at + 3], "big")
            kind, flags, stream = struct.unpack_from("!BBI", got, at + 3)
            if kind == DATA:
                n = min(length, len(got) - at - 9)
                self.data += n
                self.skip = length - n
                at += 9 + n
                if flags & END_STREAM:
                    self.ended.add(stream)
                continue
            if len(got) - at - 9 < length:
                break
            self.control(kind, flags, stream, got[at + 9:at + 9 + length])
            at += 9 + length
        self.pending = got[at:]

    def control(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        elif kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        elif kind in (RST, GOAWAY):
            raise RuntimeError("etcd refused a stream")
        elif kind == HEADERS and flags & END_STREAM:
            self.ended.add(stream)

    def put(self, key, value):
        stream = self.call(b"/etcdserverpb.KV/Put", field(1, key) + field(2, value), True)
        while stream not in self.ended:
            self.feed(self.socket.recv(65536))
        self.ended.discard(stream)


class Crowd:
    def __init__(self, port, n):
        self.selector = selectors.DefaultSelector()
        self.connections = []
        create = field(1, field(1, PREFIX) + field(2, b"/bench0"))
        for _ in range(n):
            c = Connection(port)
            c.call(b"/etcdserverpb.Watch/Watch", create, False)
            self.connections.append(c)
            self.selector.register(c.socket, selectors.EVENT_READ, c)
        self.read_until_quiet(0.5)

    def data(self):
        return sum(c.data for c in self.connections)

    def read(self, timeout):
        ready = self.selector.select(timeout)
        for key, _ in ready:
            key.data.feed(key.fileobj.recv(262144))
        return len(ready)

    def read_until_quiet(self, seconds):
        while self.read(seconds):
            pass

    def read_until(self, data, limit=60):
        end = time.monotonic() + limit
        while self.data() < data:
            if not self.read(1) and time.monotonic() > end:
                raise RuntimeError("etcd's events did not come")

    def close(self):
        self.selector.close()
        for c in self.connections:
            c.socket.close()


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fanout(port, pid, watchers, event_bytes):
    """A result of vigil bench."""
    params = {"watchers": watchers, "selector": "all", "media": "json", "http": "1.1", "gzip": False,
              "event_bytes": event_bytes}
    events = max(10, min(1000, 40000 // watchers))  # 10,000 watchers: 100,000 events, seconds of etcd's time
    writer = Connection(port)
    crowd = Crowd(port, watchers)
    try:
        value = b"x" * event_bytes
        for i in range(5):  # both sides get warm
            writer.put(PREFIX + b"%d" % i, value)
        crowd.read_until_quiet(0.3)
        before, cpu, began = crowd.data(), cpu_seconds(pid), time.monotonic()
        for i in range(events):
            writer.put(PREFIX + b"%d" % (i % 100), value)
            crowd.read(0)
        crowd.read_until(before + watchers * events * event_bytes)
        seconds = time.monotonic() - began
        crowd.read_until_quiet(0.2)
        spent = cpu_seconds(pid) - cpu
    finally:
        crowd.close()
        writer.socket.close()
    return {"scenario": "fanout", "params": params, "error": None,
            "metrics": {"server_cpu_us_per_event": spent * 1e6 / (events * watchers),
                        "events_per_s": events * watchers / seconds}}
