"""fuzz_requests.py - requests for fuzz.py: valid ones of every verb, path and encoding, and damage to them.

Everything comes from one random.Random, so a seed repeats a request."""
import copy
import glob
import json
import os

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "../kinds/fixtures")
PROTOBUF = "application/vnd.kubernetes.protobuf"
PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
           "application/apply-patch+yaml")
NAMESPACES = ("fuzz",) * 6 + ("default", "kube-system", "none", "missing")
PLACES = ("/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/none/v1", "/version", "/healthz", "/livez/ping",
          "/readyz?verbose", "/metrics", "/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/openid/v1/jwks",
          "/.well-known/openid-configuration", "/debug/watches", "/logs", "/../etc/passwd", "/api/v1/watch/pods")
METHODS = ("GET", "GET", "POST", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
QUERIES = ("limit=1", "limit=-1", "limit=99999999999999999999", "continue=x", "resourceVersion=0", "resourceVersion=1",
           "resourceVersion=zz", "resourceVersion=18446744073709551616", "resourceVersionMatch=Exact",
           "resourceVersionMatch=NotOlderThan", "labelSelector=a%3Db", "labelSelector=a+in+(b,c),!d",
           "labelSelector=%3D%3D%3D", "fieldSelector=metadata.name%3Dx", "fieldSelector=spec.nodeName%21%3D",
           "fieldSelector=%00", "dryRun=All", "dryRun=some", "fieldManager=me", "fieldManager=" + "m" * 200,
           "force=true", "fieldValidation=Strict", "fieldValidation=Warn", "pretty=true", "timeoutSeconds=1",
           "timeout=1s", "gracePeriodSeconds=0", "gracePeriodSeconds=-5", "propagationPolicy=Orphan", "orphanDependents=1",
           "sendInitialEvents=true", "allowWatchBookmarks=1", "includeObject=None", "x=%zz", "%", "=", "&&", "a=b;c=d")
ACCEPTS = ("application/json", PROTOBUF, "application/yaml", "*/*", "text/html", "", ";;q=,", PROTOBUF + ";as=Table;v=v1;g=x",
           "application/json;as=Table;v=v1;g=meta.k8s.io", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
           "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
HEADERS = (("Accept-Encoding", "gzip"), ("Content-Encoding", "gzip"), ("Expect", "100-continue"), ("If-None-Match", "*"),
           ("Authorization", "Bearer nobody"), ("Authorization", "Basic eDp5"), ("Authorization", "Bearer "),
           ("Authorization", "\x80\xff"), ("Impersonate-User", "alice"), ("X-Long", "x" * 9000), ("X-Empty", ""),
           ("Upgrade", "websocket"), ("Sec-WebSocket-Key", "x"), ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
           ("Origin", "https://evil.example"), ("Range", "bytes=0-"), ("User-Agent", "a/b \" \\ %s"), ("Cookie", "a=b"),
           ("X-Forwarded-For", "1.2.3.4"), ("Audit-ID", "z" * 300), ("Content-Type", "multipart/form-data"))
SCALARS = (None, True, False, 0, -1, 1, 2 ** 31, 2 ** 63, -2 ** 63 - 1, 1e308, 0.1, "", "a", "x" * 300, "\u0000", "\ud7ff\U0010ffff",
           "../..", "%s%n", "1Gi", "2026-01-01T00:00:00Z", "10.0.0.1", "::1", "a" * 64 + ".b", [], {}, [None], {"": None})
TOKENS = (b"\x00", b"\xff\xfe", b'"', b"\\u", b"\\ud800", b"{", b"}", b"[" * 600, b"]", b":", b",", b"1e999", b"-", b"0x1",
          b"null", b"\r\n", b"\r\n\r\n", b"&a *a", b"<<: *x", b"!!python", b"- " * 50, b"%YAML", b"\t", b"k8s\x00", b"\x0a\xff\xff\xff\xff\x0f")


class Request:
    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body = method, path, headers, body

    def __repr__(self):
        return f"{self.method} {self.path!r} {self.headers!r} body {self.body!r}"


def valid_objects():
    """The fixtures without faults, by apiVersion and kind."""
    found = {}
    for path in sorted(glob.glob(FIXTURES + "/*.jsonl")):
        with open(path, encoding="utf-8") as f:
            for line in f:
                record = json.loads(line) if line.startswith("{") else {}  # or a comment
                if not record.get("want") and isinstance(record.get("object"), dict):
                    o = record["object"]
                    found.setdefault((o.get("apiVersion"), o.get("kind")), []).append(o)
    return found


class Resource:
    """A line of discovery: what is served under a path."""

    def __init__(self, api_version, line):
        self.api_version, self.name, self.kind = api_version, line["name"], line["kind"]
        self.is_namespaced, self.verbs = line["namespaced"], line["verbs"]
        self.root = ("/api/" if "/" not in api_version else "/apis/") + api_version

    def path(self, namespace):
        plural, _, self_sub = self.name.partition("/")
        return f"{self.root}/namespaces/{namespace}/{plural}" if self.is_namespaced else f"{self.root}/{plural}", self_sub


class Generator:
    def __init__(self, random, resources, protobufs, objects):
        self.r, self.resources, self.protobufs, self.objects = random, resources, protobufs, objects

    # ---- valid requests ----

    def name(self):
        return self.r.choice(("a", "b", "c", "x-%d" % self.r.randrange(30), "kubernetes", "A_B"))

    def object(self, resource):
        known = self.objects.get((resource.api_version, resource.kind))
        o = copy.deepcopy(self.r.choice(known)) if known else {"apiVersion": resource.api_version, "kind": resource.kind}
        if self.r.random() < 0.8 and isinstance(o.get("metadata", {}), dict):
            o.setdefault("metadata", {})["name"] = self.name()
        return o

    def query(self):
        n = self.r.choice((0,) * 8 + (1, 1, 2, 5))
        return "?" + "&".join(self.r.choice(QUERIES) for _ in range(n)) if n else ""

    def patch(self, resource):
        kind = self.r.choice(PATCHES)
        if kind.startswith("application/json-"):
            ops = [{"op": self.r.choice(("add", "remove", "replace", "test", "move", "copy", "x")), "from": "/metadata",
                    "path": self.r.choice(("/metadata/labels", "/metadata/name", "/spec", "/data/a~1b", "/-", "", "/~2")),
                    "value": self.r.choice(SCALARS)} for _ in range(self.r.randrange(1, 4))]
            return kind, ops
        o = self.object(resource)
        if not kind.startswith("application/apply"):
            o = {k: v for k, v in o.items() if self.r.random() < 0.6}
        return kind, o

    def accept(self):
        return self.r.choice(ACCEPTS if self.r.random() < 0.3 else ACCEPTS[:3])

    def body(self, method, resource):
        """(content type, bytes)"""
        if method == "PATCH":
            kind, value = self.patch(resource)
        elif method == "DELETE":
            kind, value = "application/json", {"kind": "DeleteOptions", "apiVersion": "v1",
                                               "preconditions": {"uid": "x"}} if self.r.random() < 0.3 else {}
        elif self.protobufs and self.r.random() < 0.2:
            return PROTOBUF, self.r.choice(self.protobufs)
        else:
            kind, value = self.r.choice(("application/json", "application/json", "application/yaml")), self.object(resource)
        if self.r.random() < 0.2:
            value = self.damaged_value(value)
        return kind, json.dumps(value, ensure_ascii=self.r.random() < 0.5).encode("utf-8", "surrogatepass")

    def request(self):
        method = self.r.choice(METHODS)
        if self.r.random() < 0.1:
            return Request(method, self.r.choice(PLACES), [("Accept", self.accept())], b"")
        resource = self.r.choice(self.resources)
        while "/" in resource.name and self.r.random() < 0.7:  # half of them are subresources
            resource = self.r.choice(self.resources)
        while VERBS.get(method) not in resource.verbs and self.r.random() < 0.8:
            method = self.r.choice(METHODS)
        path, sub = resource.path(self.r.choice(NAMESPACES))
        if sub or (method != "POST" and self.r.random() < 0.8):
            path += "/" + self.name()
        path += ("/" + sub if sub else "") + self.query()
        headers, body = [("Accept", self.accept())], b""
        if method in ("POST", "PUT", "PATCH") or (method == "DELETE" and self.r.random() < 0.3):
            kind, body = self.body(method, resource)
            headers.append(("Content-Type", kind))
        return Request(method, path, headers, body)

    # ---- damage ----

    def damaged_value(self, value, depth=0):
        """One place of it is something else."""
        if depth > 5 or not isinstance(value, (dict, list)) or not value or self.r.random() < 0.15:
            return self.r.choice(SCALARS)
        if isinstance(value, list):
            i = self.r.randrange(len(value))
            return value[:i] + [self.damaged_value(value[i], depth + 1)] * self.r.choice((1, 1, 2)) + value[i + 1:]
        key = self.r.choice(sorted(value))
        if self.r.random() < 0.1:
            return {**value, self.r.choice(("", "x" * 300, "$patch", "metadata", "\u0000")): value[key]}
        return {**value, key: self.damaged_value(value[key], depth + 1)}

    def damaged_bytes(self, data):
        data = bytearray(data)
        for _ in range(self.r.choice((1, 1, 2, 4))):
            at = self.r.randrange(len(data) + 1)
            how = self.r.randrange(6)
            if how == 0 and data:
                data[at % len(data)] ^= 1 << self.r.randrange(8)
            elif how == 1:
                data[at:at + self.r.randrange(1, 9)] = b""
            elif how == 2:
                data[at:at] = self.r.choice(TOKENS)
            elif how == 3:
                data[at:at] = data[at:at + self.r.randrange(1, 200)]
            elif how == 4:
                del data[at:]
            else:
                data[at:at] = bytes(self.r.randrange(256) for _ in range(self.r.randrange(1, 20)))
        return bytes(data)

    def damaged_path(self, path):
        out = self.damaged_bytes(path.encode()).decode("latin-1")
        # What a request line cannot hold would end it: fuzz.py sends such bytes elsewhere.
        return "/" + "".join(c for c in out if c > " " and c != "\x7f").lstrip("/")

    def damaged(self, request):
        """The same with one thing wrong, well framed all the same."""
        how = self.r.randrange(6)
        if how <= 2:
            request.body = self.damaged_bytes(request.body)
        elif how == 3:
            request.path = self.damaged_path(request.path)
        elif how == 4:
            request.headers.append(self.r.choice(HEADERS))
        else:
            request.headers = [(k, "".join(chr(c) for c in self.damaged_bytes(v.encode()) if c not in (0, 10, 13)))
                               for k, v in request.headers]
        return request
