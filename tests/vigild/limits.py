"""limits.py <vigild> - every limit of docs/operations.md that a hostile client meets, by its flag.

That each limit holds is tested beside the code (docs/internals/net.md); here vigild is started with
the flag, and what a client sees is that the flag reaches it and that others are served meanwhile."""
import socket
import ssl
import struct
import subprocess
import sys
import time

from vigild import LIMIT_S, check, equal, has, main, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
SILENT, LOOPS = 12, 2


def plug(s, source="127.0.0.1", receive_buffer=None):
    """A connection to it on which nothing has been said."""
    raw = socket.socket()
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.settimeout(LIMIT_S)
    raw.bind((source, 0))
    raw.connect(("127.0.0.1", s.port))
    return raw


def secure(s, raw, protocol="http/1.1"):
    context = s.admin()
    context.set_alpn_protocols([protocol])
    return context.wrap_socket(raw, server_hostname="127.0.0.1")


def is_closed(raw):
    """It has been closed by now; does not wait."""
    raw.setblocking(False)
    try:
        return raw.recv(1) == b""
    except (BlockingIOError, ssl.SSLWantReadError):
        return False
    except OSError:
        return True
    finally:
        raw.settimeout(LIMIT_S)


def get(c, path, *fields):
    c.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: localhost", *fields, "", ""]).encode())


def status(c):
    """Of the next answer; the connection is of no use after it."""
    line = b""
    while b"\r\n" not in line:
        piece = c.recv(4096)
        check(piece, f"the connection was closed after {line!r}")
        line += piece
    return int(line.split()[1])


def works(s):
    """Others are served; where the limit is a time, a busy machine may need some tries."""
    def ask():
        try:
            return s.ask("/readyz").status == 200
        except OSError:
            return False
    return wait_for("others to be served", ask)


def metric(s, name):
    return sum(float(line.rsplit(" ", 1)[1]) for line in s.ask("/metrics").text.splitlines()
               if line.split("{")[0].split(" ")[0] == name)


def refused(s, raw):
    """It cannot be used: the handshake is not answered."""
    try:
        secure(s, raw).close()
        return False
    except (OSError, ssl.SSLError):
        return True


def test_max_header_bytes(case):
    s = case.start("--max-header-bytes=2048")
    for size, want in ((1000, 200), (3000, 431)):
        c = secure(s, plug(s))
        get(c, "/version", "X-Long: " + "x" * size)
        equal(status(c), want, f"status with {size} bytes")


def test_max_request_body_depth(case):
    s = case.start("--max-request-body-depth=40")

    def nested(levels):  # the object itself is one
        return '{"metadata":{"name":"m%d"},"x":%s%s}' % (levels, "[" * (levels - 1), "]" * (levels - 1))

    for kind in ("application/json", "application/yaml"):
        name = {"Content-Type": kind}
        equal(s.ask(MAPS, "POST", body=nested(40), headers=name).status, 201, kind)
        a = s.ask(MAPS, "POST", body=nested(41), headers=name)
        equal(a.status, 400, f"{kind}, one level more")
        has(a.json["message"], "max depth")
        s.ask(MAPS + "/m40", "DELETE")
    equal(s.ask(MAPS, "POST", body=nested(40)).status, 201, "before the patch")
    for kind in ("merge", "strategic-merge"):
        a = s.ask(MAPS + "/m40", "PATCH", body=nested(41), headers={"Content-Type": f"application/{kind}-patch+json"})
        equal(a.status, 400, kind)
    out = case.run("--data-dir", case.path("none"), "--max-request-body-depth=5000")
    equal(out.returncode, 2, "exit status")
    has(out.stderr, "from 32 to 512")


def test_max_connections(case):
    s = case.start("--max-connections=4")
    held = [secure(s, plug(s)) for _ in range(4)]
    check(refused(s, plug(s)), "a fifth connection was taken")
    held.pop().close()
    wait_for("the room of the one that left", lambda: not refused(s, plug(s)))
    check(is_closed(held[0]) is False, "one of those before was closed")


def test_max_connections_per_address(case):
    s = case.start("--max-connections-per-address=3")
    held = [secure(s, plug(s)) for _ in range(3)]
    check(refused(s, plug(s)), "a fourth connection of the address was taken")
    other = secure(s, plug(s, "127.0.0.2"))
    get(other, "/readyz")
    equal(status(other), 200, "status for another address")
    del held


def test_max_tls_handshakes(case):
    s = case.start("--max-tls-handshakes=3", f"--loops={LOOPS}", "--tls-handshake-timeout=10m")
    silent = [plug(s) for _ in range(SILENT)]
    # Each loop that accepts at the same moment may take one more.
    wait_for("nearly all but three to be closed", lambda: sum(map(is_closed, silent)) >= SILENT - 3 - LOOPS)
    # The oldest give way when they have had a second: somebody who speaks gets in.
    wait_for("a client to get in", lambda: not refused(s, plug(s)))


def test_max_tls_handshakes_per_address(case):
    s = case.start("--max-tls-handshakes-per-address=3", f"--loops={LOOPS}", "--tls-handshake-timeout=10m")
    silent = [plug(s) for _ in range(SILENT)]
    # Each loop that accepts at the same moment may take one more.
    wait_for("nearly all but three to be closed", lambda: sum(map(is_closed, silent)) >= SILENT - 3 - LOOPS)
    check(not refused(s, plug(s, "127.0.0.2")), "another address was refused")


def test_tls_handshake_timeout(case):
    s = case.start("--tls-handshake-timeout=300ms")
    equal(plug(s).recv(1), b"", "what a client hears that says nothing")
    works(s)


def test_header_timeout(case):
    s = case.start("--header-timeout=2s")  # longer than a busy machine takes to send the first bytes
    c = secure(s, plug(s))
    c.sendall(b"GET /version HTTP/1.1\r\nHost: loc")
    equal(status(c), 408, "status of a head that does not end")


def test_request_timeout_of_a_body(case):
    s = case.start("--request-timeout=1s", "--max-mutating-requests-inflight=1")
    c = secure(s, plug(s))
    c.sendall(f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3000000\r\n\r\n".encode())
    answer = b""
    c.settimeout(0.05)
    while not answer:  # as fast as --min-response-rate asks, and never silent
        try:
            c.sendall(b" " * 2048)
            answer = c.recv(4096)
        except TimeoutError:
            pass
    has(answer.decode(), "HTTP/1.1 408")
    works(s)
    # A second is little for a busy machine, and who was told 504 may have written all the same.
    wait_for("others to write", lambda: s.ask(MAPS, "POST", body={"metadata": {"name": "a"}}).status in (201, 409))


def test_idle_timeout(case):
    s = case.start("--idle-timeout=2s")  # longer than a busy machine takes from the handshake to the request
    watch = secure(s, plug(s))
    get(watch, MAPS + "?watch=1")
    equal(status(watch), 200, "status of the watch")
    idle = secure(s, plug(s))
    get(idle, "/readyz")
    equal(status(idle), 200, "status")
    while idle.recv(4096):  # to its end
        pass
    equal(s.ask(MAPS, "POST", body={"metadata": {"name": "a"}}).status, 201, "status of the write")
    told = b""
    while b'"ADDED"' not in told:  # a watch is not idle
        piece = watch.recv(65536)
        check(piece, f"the watch was closed after {told!r}")
        told += piece


def fill(s, n, size):
    for i in range(n):
        equal(s.ask(MAPS, "POST", body={"metadata": {"name": f"m{i}"}, "data": {"v": "x" * size}}).status, 201, "create")


def test_stall_timeout(case):
    s = case.start("--stall-timeout=300ms", "--storage=mem")
    fill(s, 30, 900000)
    c = secure(s, plug(s, receive_buffer=4096))
    get(c, MAPS)
    wait_for("a list that nobody reads to be cut", lambda: metric(s, "vigil_http_timeouts_total") >= 1)


def test_a_slow_reader_is_not_a_stalled_one(case):
    # A socket is writable again only when a third of its room is free, and then it is given a quarter of a MB more: at 20
    # KB/s this takes nine seconds. Who did not look into the socket would take the reader for a stalled one. Its own
    # room is small, so that it says often what it has taken.
    s = case.start("--stall-timeout=5s", "--min-response-rate=1", "--storage=mem")
    fill(s, 9, 900000)
    c = secure(s, plug(s, receive_buffer=16384))
    get(c, MAPS, "Connection: close")
    taken, begun = 0, time.monotonic()
    while (passed := time.monotonic() - begun) < 12:
        if taken < 20000 * passed:
            taken += len(c.recv(2048))
        else:
            time.sleep(0.02)
    while piece := c.recv(65536):
        taken += len(piece)
    check(taken > 9 * 900000, f"it was cut after {taken} bytes")
    equal(metric(s, "vigil_http_timeouts_total"), 0, "timeouts")


def test_stall_timeout_of_http2(case):
    s = case.start("--stall-timeout=300ms", "--storage=mem")
    fill(s, 30, 900000)
    h = Frames(s, receive_buffer=4096)
    h.c.sendall(frame(4, 0, 0, struct.pack(">HI", 4, 2**31 - 1)) + frame(8, 0, 0, struct.pack(">I", 2**30)) + head(1, MAPS))
    wait_for("a connection that nobody reads to be cut", lambda: metric(s, "vigil_http_timeouts_total") >= 1)


def test_min_response_rate(case):
    s = case.start("--min-response-rate=1000000", "--storage=mem")
    fill(s, 30, 900000)
    c = secure(s, plug(s, receive_buffer=4096))
    get(c, MAPS)
    try:  # it reads all the time, only slowly
        while c.recv(1024) and metric(s, "vigil_http_timeouts_total") == 0:
            pass
    except OSError:
        pass
    wait_for("the slow reader to be cut", lambda: metric(s, "vigil_http_timeouts_total") >= 1)


def test_max_unsent_bytes(case):
    s = case.start("--max-unsent-bytes=4096")
    c = secure(s, plug(s, receive_buffer=4096))
    get(c, MAPS + "?watch=1")
    equal(status(c), 200, "status")
    equal(s.ask(MAPS, "POST", body={"metadata": {"name": "a"}}).status, 201, "create")
    for i in range(60):
        equal(s.ask(MAPS + "/a", "PUT", body={"metadata": {"name": "a"}, "data": {"v": str(i) + "x" * 200000}}).status,
              200, "update")
    watch = s.ask("/debug/vigil/watches").json["watches"][0]
    check(watch["lag"] > 0, f"it has taken everything: {watch}")
    check(watch["unsent"] < 4096 + 2 * 200100, f"more than one event waits for it: {watch}")


def test_max_request_bytes_inflight(case):
    s = case.start("--max-request-bytes-inflight=1048576")
    held = [secure(s, plug(s)) for _ in range(2)]
    head = f"POST {MAPS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 700000\r\n\r\n".encode()
    held[0].sendall(head + b" " * 650000)
    wait_for("its bytes to be there", lambda: metric(s, "vigil_http_received_bytes_total") > 650000)
    held[1].sendall(head + b" " * 650000)
    equal(status(held[1]), 429, "status of the second")
    works(s)


def test_a_memory_limit_at_the_start_is_told(case):
    out = subprocess.run(["sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"', case.binary, "--data-dir", case.path("data"),
                          "--storage=lmdb", "--secure-port", "0"], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if "Sanitizer" in out.stderr:
        return  # it reserves more by itself
    equal(out.returncode, 1, "exit status")
    has(out.stderr, "this process is limited: address space to 3906 MiB (RLIMIT_AS, ulimit -v)")


def test_request_timeout(case):
    s = case.start("--request-timeout=1s")
    a = s.ask(MAPS + "?resourceVersion=1000000&resourceVersionMatch=NotOlderThan")
    equal(a.status, 504, "status")
    has(a.text, "Timeout")


# HTTP/2 by hand: a few frames are enough.
def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def literal(name, value):
    return b"\0" + b"".join(bytes([len(t)]) + t.encode() for t in (name, value))


def head(stream, path):
    fields = {":method": "GET", ":scheme": "https", ":path": path, ":authority": "localhost"}
    return frame(1, 5, stream, b"".join(literal(k, v) for k, v in fields.items()))


class Frames:
    def __init__(self, s, receive_buffer=None):
        self.c, self.rest = secure(s, plug(s, receive_buffer=receive_buffer), "h2"), b""
        self.c.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0))

    def next(self, kind):
        """Payload and stream of the next frame of this kind."""
        while True:
            size = int.from_bytes(self.rest[:3], "big")
            if len(self.rest) >= 9 + size:
                got, stream = self.rest[3], int.from_bytes(self.rest[5:9], "big")
                payload, self.rest = self.rest[9:9 + size], self.rest[9 + size:]
                if got == kind:
                    return payload, stream
                continue
            piece = self.c.recv(65536)
            check(piece, "the connection was closed")
            self.rest += piece


def test_http2_max_streams_per_connection(case):
    s = case.start("--http2-max-streams-per-connection=5")
    h = Frames(s)
    settings = h.next(4)[0]
    has([settings[i:i + 6] for i in range(0, len(settings), 6)], struct.pack(">HI", 3, 5))
    h.c.sendall(b"".join(head(2 * i + 1, MAPS + "?watch=1") for i in range(6)))
    equal(h.next(3), (struct.pack(">I", 7), 11), "refused stream")


def test_http2_max_resets_per_second(case):
    s = case.start("--http2-max-resets-per-second=10")
    h = Frames(s)
    h.c.sendall(b"".join(head(2 * i + 1, "/version") + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)) for i in range(100)))
    equal(h.next(7)[0][4:8], struct.pack(">I", 11), "error of the GOAWAY")
    works(s)


if __name__ == "__main__":
    main(sys.modules[__name__])
