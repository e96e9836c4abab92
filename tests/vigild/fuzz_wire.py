"""fuzz_wire.py - how fuzz.py's requests reach the server: HTTP/1.1 and HTTP/2, plain and TLS.

ask() sends a request that is well framed and returns its status, or None when the connection was closed instead.
wild() sends bytes that may be anything, in pieces, and may go away in between."""
import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
# Static table of HPACK (RFC 7541), the lines of :status.
STATUSES = {8: 200, 9: 204, 10: 206, 11: 304, 12: 400, 13: 404, 14: 500}
DIGITS = {"00000": "0", "00001": "1", "00010": "2", "011001": "3", "011010": "4", "011011": "5", "011100": "6",
          "011101": "7", "011110": "8", "011111": "9"}


class Closed(Exception):
    """The server ended the connection, as it may when a request is no good."""


def open_socket(port, context=None, protocol="http/1.1", timeout=60):
    raw = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not context:
        return raw
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


class Reader:
    def __init__(self, s):
        self.s, self.data = s, b""

    def more(self):
        try:
            piece = self.s.recv(65536)
        except (ConnectionError, OSError) as e:
            if isinstance(e, TimeoutError):
                raise
            raise Closed from None
        if not piece:
            raise Closed
        self.data += piece

    def take(self, n):
        while len(self.data) < n:
            self.more()
        out, self.data = self.data[:n], self.data[n:]
        return out

    def line(self):
        while b"\r\n" not in self.data:
            self.more()
        out, self.data = self.data.split(b"\r\n", 1)
        return out


# ---- HTTP/1.1 ----

def h1_bytes(request, r=None):
    """With r a body may come in chunks."""
    head = [f"{request.method} {request.path} HTTP/1.1", "Host: localhost"]
    head += [f"{k}: {v}" for k, v in request.headers]
    body = request.body
    if r and body and r.random() < 0.3:
        head.append("Transfer-Encoding: chunked")
        pieces = []
        while body:
            n = r.randrange(1, len(body) + 1)
            pieces.append(b"%x%s\r\n%s\r\n" % (n, r.choice((b"", b";a=b", b" ; x")), body[:n]))
            body = body[n:]
        body = b"".join(pieces) + b"0\r\n\r\n"
    elif body or request.method in ("POST", "PUT", "PATCH"):
        head.append(f"Content-Length: {len(body)}")
    return "\r\n".join(head).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + body


class H1:
    def __init__(self, port, context=None):
        self.s = open_socket(port, context)
        self.reader = Reader(self.s)
        self.is_used_up = False

    def send(self, data):
        try:
            self.s.sendall(data)
        except OSError:  # it may have been answered and closed already
            pass

    def ask(self, request):
        self.send(h1_bytes(request))
        status = 100
        while status == 100:
            status = int(self.reader.line().split()[1])
            fields = {}
            while line := self.reader.line():
                key, _, value = line.partition(b":")
                fields[key.lower()] = value.strip().lower()
        self.is_used_up = fields.get(b"connection") == b"close" or status == 101 or "watch" in request.path.lower()
        if not self.is_used_up and request.method != "HEAD" and status not in (204, 304):
            self.read_body(fields)
        return status

    def read_body(self, fields):
        if b"content-length" in fields:
            self.reader.take(int(fields[b"content-length"]))
        elif fields.get(b"transfer-encoding") == b"chunked":
            while n := int(self.reader.line().split(b";")[0], 16):
                self.reader.take(n + 2)
            self.reader.take(2)
        else:
            self.is_used_up = True

    def close(self):
        self.s.close()


# ---- HTTP/2 ----

def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def text(data):
    """A string of HPACK without Huffman coding."""
    n, out = len(data), b""
    if n < 127:
        return bytes((n,)) + data
    n, out = n - 127, b"\x7f"
    while n >= 128:
        n, out = n >> 7, out + bytes((n & 127 | 128,))
    return out + bytes((n,)) + data


def head_block(request):
    fields = [(":method", request.method), (":scheme", "https"), (":path", request.path), (":authority", "localhost")]
    fields += [(k.lower(), v) for k, v in request.headers if k.lower() not in ("upgrade", "connection", "expect")]
    return b"".join(b"\x00" + text(k.encode("utf-8", "surrogatepass")) + text(v.encode("utf-8", "surrogatepass"))
                    for k, v in fields)


def h2_frames(request, stream, r=None):
    """The frames of a request; with r its head and body may be cut anywhere."""
    block, out = head_block(request), []
    at = r.randrange(1, len(block)) if r and r.random() < 0.3 else min(len(block), 16000)
    ends = 0 if request.body else 1
    out.append(frame(HEADERS, ends | (0 if block[at:] else 4), stream, block[:at]))
    rest = block[at:]
    while rest:
        out.append(frame(CONTINUATION, 0 if rest[16000:] else 4, stream, rest[:16000]))
        rest = rest[16000:]
    body = request.body
    while body:
        n = r.randrange(1, min(len(body), 16384) + 1) if r else 16384
        out.append(frame(DATA, 0 if body[n:] else 1, stream, body[:n]))
        body = body[n:]
    return out


def status_of(block):
    """Of a response's header block; the table of HPACK was set to nothing, so it stands there."""
    while block[0] & 0xe0 == 0x20:  # a new size of the table
        block = block[1:]
    if block[0] & 0x80:
        return STATUSES[block[0] & 0x7f]
    length = block[1]
    value = block[2:2 + (length & 0x7f)]
    if not length & 0x80:
        return int(value)
    bits, out, code = "".join(f"{b:08b}" for b in value), "", ""
    for bit in bits:
        code += bit
        if code in DIGITS:
            out, code = out + DIGITS[code], ""
    return int(out[:3])


OPENING = PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 4, 1 << 24)) + \
    frame(WINDOW, 0, 0, struct.pack(">I", 1 << 30))


class H2:
    def __init__(self, port, context=None):
        self.s = open_socket(port, context, "h2")
        self.reader, self.stream, self.sent, self.is_used_up = Reader(self.s), 1, 0, False
        self.s.sendall(OPENING)

    def ask(self, request):
        mine, self.stream = self.stream, self.stream + 2
        try:
            self.s.sendall(b"".join(h2_frames(request, mine)))
        except OSError:
            pass
        self.sent += len(request.body)
        status, is_watch = None, "watch" in request.path.lower()
        # The windows that the server gives are not counted: 32 KiB of bodies are within the first.
        self.is_used_up = self.sent > 32768 or is_watch
        while True:
            head = self.reader.take(9)
            size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
            stream, payload = int.from_bytes(head[5:], "big"), self.reader.take(size)
            if kind == SETTINGS and not flags & 1:
                self.s.sendall(frame(SETTINGS, 1, 0, b""))
            elif kind == GOAWAY:
                raise Closed
            elif stream == mine and kind == HEADERS and (status is None or status == 100):
                status = status_of(payload)
                if is_watch and status == 200:
                    return status
            if stream == mine and (kind == RST or (kind in (HEADERS, DATA) and flags & 1)):
                return status

    def close(self):
        self.s.close()


# ---- anything ----

def send_in_pieces(s, data, r):
    """Cut at random places; the server may see each piece alone."""
    cuts = sorted(r.randrange(len(data) + 1) for _ in range(r.choice((0, 1, 3, 20))))
    for a, b in zip([0] + cuts, cuts + [len(data)]):
        s.sendall(data[a:b])


def drain(s, seconds):
    """What comes within this time, or until the end."""
    s.settimeout(seconds)
    try:
        while s.recv(65536):
            pass
    except (OSError, ValueError):
        pass


def wild(port, context, protocol, data, r):
    """Sends it and goes away: at once, with a reset, half closed, or after a look at the answer."""
    how = r.randrange(4)
    s = open_socket(port, context, protocol)
    try:
        send_in_pieces(s, data, r)
        if how == 0:
            drain(s, 0.05)
        elif how == 1 and not context:
            s.shutdown(socket.SHUT_WR)
            drain(s, 0.5)
        elif how == 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass
    finally:
        s.close()
