"""auth.py <vigild> - who gets in, and what those who do not are told: certificates, tokens,
anonymous, impersonation, the plain port, limits."""
import http.client
import signal
import socket
import ssl
import sys

from vigild import (Failed, ask_on, check, equal, free_port, has, main, make_certificate, wait_for)

PODS = "/api/v1/namespaces/default/pods"


def forbidden(answer, message, details):
    equal(answer.status, 403)
    s = answer.json
    equal(s["message"], message)
    equal(s["reason"], "Forbidden")
    equal(s["details"], details)
    equal(s["code"], 403)
    equal(answer.headers["x-content-type-options"], "nosniff")
    equal(answer.headers["cache-control"], "no-cache, private")


def test_anonymous_reaches_health_and_version_only(case):
    v = case.start()
    nobody = v.context()
    for path in ("/livez", "/readyz", "/healthz", "/livez?verbose", "/version"):
        equal(v.ask(path, context=nobody).status, 200, path)
    forbidden(v.ask("/api/v1/namespaces", context=nobody),
              'namespaces is forbidden: User "system:anonymous" cannot list resource "namespaces" '
              'in API group "" at the cluster scope', {"kind": "namespaces"})
    forbidden(v.ask(PODS + "/x", "DELETE", context=nobody),
              'pods "x" is forbidden: User "system:anonymous" cannot delete resource "pods" '
              'in API group "" in the namespace "default"', {"kind": "pods", "name": "x"})
    forbidden(v.ask("/apis/apps/v1/namespaces/d/deployments/x/scale", "PUT", context=nobody, body={}),
              'deployments.apps "x" is forbidden: User "system:anonymous" cannot update resource '
              '"deployments/scale" in API group "apps" in the namespace "d"',
              {"kind": "deployments", "group": "apps", "name": "x"})
    for path in ("/", "/metrics", "/api", "/apis", "/debug/vigil/watches", "/livez/ping", "/nosuch",
                 "/openapi/v2"):
        forbidden(v.ask(path, context=nobody),
                  f'forbidden: User "system:anonymous" cannot get path "{path}"', {})
    equal(v.ask("/livez", "POST", context=nobody).status, 403)


def test_tokens_of_the_file_and_no_others(case):
    tokens = case.write("tokens", 'good,root,u1,"system:masters"\nweak,alice,u2,"devs,ops"\n')
    v = case.start("--token-auth-file", tokens)
    nobody = v.context()

    def status(token, path="/api/v1/namespaces"):
        return v.ask(path, context=nobody, headers={"Authorization": token})
    equal(status("Bearer good").status, 200)
    equal(status("bearer good").status, 200)
    refused = status("Bearer wrong")
    equal(refused.status, 401)
    equal(refused.body, b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
          b'"message":"Unauthorized","reason":"Unauthorized","code":401}\n')
    equal(status("Bearer good1").status, 401)
    equal(status("Bearer wrong", "/livez").status, 401)
    forbidden(status("Bearer weak"),
              'namespaces is forbidden: User "alice" cannot list resource "namespaces" in API '
              'group "" at the cluster scope', {"kind": "namespaces"})
    # Who shows credentials that are not understood is not taken for nobody.
    for malformed in ("Basic Z29vZA==", "Bearer", "Bearer ", "good", "Bearergood", "Digest username=x"):
        for path in ("/api/v1/namespaces", "/livez"):
            equal(status(malformed, path).status, 401, malformed)
    equal(status("").status, 403, "an empty field is none")

    # SIGHUP reads the file again; a malformed one leaves the old tokens in force.
    case.write("tokens", "fresh,root,u1,system:masters\n")
    v.send(signal.SIGHUP)
    wait_for("the new token", lambda: status("Bearer fresh").status == 200)
    wait_for("every loop to forget the old one", lambda: status("Bearer good").status == 401)
    wait_for("every loop to know the new one", lambda: all(status("Bearer fresh").status == 200 for _ in range(8)))
    case.write("tokens", "malformed\n")
    v.send(signal.SIGHUP)
    wait_for("the complaint", lambda: "tokens_kept" in v.stderr())
    equal(status("Bearer fresh").status, 200)
    for secret in ("fresh", "good", "wrong"):
        check(f" {secret}" not in v.stderr() and f"={secret}" not in v.stderr(), "a token in the log")


def test_client_certificates(case):
    v = case.start()
    ca = (v.path("pki/ca.crt"), v.path("pki/ca.key"))
    equal(v.ask("/api/v1/namespaces").status, 200)
    alice = make_certificate(case.dir, "alice", "/O=devs/O=ops/CN=alice", ca)
    forbidden(v.ask("/api/v1/namespaces", context=v.context(*alice)),
              'namespaces is forbidden: User "alice" cannot list resource "namespaces" in API '
              'group "" at the cluster scope', {"kind": "namespaces"})
    other = make_certificate(case.dir, "boss", "/O=x/O=system:masters/CN=boss", ca)
    equal(v.ask("/api/v1/namespaces", context=v.context(*other)).status, 200)
    # A server's certificate is no client's; a stranger's is nobody's.
    server = make_certificate(case.dir, "server", "/O=system:masters/CN=server", ca, "serverAuth")
    stranger = make_certificate(case.dir, "stranger", "/O=system:masters/CN=stranger")
    for pair in (server, stranger, (v.path("pki/apiserver.crt"), v.path("pki/apiserver.key"))):
        try:
            answer = v.ask("/api/v1/namespaces", context=v.context(*pair))
            raise Failed(f"a certificate that is not valid gets {answer.status}")
        except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
            pass
    equal(v.ask("/livez").status, 200)
    # Without a CN it is nobody's, and not anonymous either; a token beside it counts.
    nameless = v.context(*make_certificate(case.dir, "nameless", "/O=system:masters", ca))
    equal(v.ask("/livez", context=nameless).status, 401, "without a CN")
    equal(v.ask("/api/v1/namespaces", context=nameless).status, 401, "without a CN")
    equal(v.ask("/livez", context=nameless, headers={"Authorization": "Bearer wrong"}).status, 401)


def test_websockets_have_our_origin(case):
    v = case.start()

    def upgrade(origin, host=None):
        c = v.connect(v.admin())
        c.putrequest("GET", "/api/v1/namespaces?watch=1", skip_host=True)
        for k, value in {"Host": host or f"127.0.0.1:{v.port}", "Connection": "Upgrade", "Upgrade": "websocket",
                         "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                         "Origin": origin}.items():
            c.putheader(k, value)
        c.endheaders()
        status = c.getresponse().status
        c.close()
        return status
    equal(upgrade(f"https://127.0.0.1:{v.port}"), 101)
    equal(upgrade(f"http://127.0.0.1:{v.port}"), 101, "a client of ours that leaves out the s")
    equal(upgrade("https://LOCALHOST", "localhost:443"), 101)
    for origin in ("https://evil.example", "null", f"https://127.0.0.1:{v.port + 1}", "https://127.0.0.1",
                   f"https://127.0.0.1:{v.port}.evil.example", f"127.0.0.1:{v.port}", "https://"):
        equal(upgrade(origin), 403, origin)


def test_another_client_authority(case):
    ca = make_certificate(case.dir, "their-ca", "/CN=their-ca")
    v = case.start("--client-ca-file", ca[0])
    theirs = make_certificate(case.dir, "theirs", "/O=system:masters/CN=theirs", ca)
    equal(v.ask("/api/v1/namespaces", context=v.context(*theirs)).status, 200)
    equal(v.ask("/api/v1/namespaces").status, 200, "our own administrator")


def test_always_allow_is_for_the_authenticated(case):
    v = case.start("--authorization-mode", "AlwaysAllow")
    ca = (v.path("pki/ca.crt"), v.path("pki/ca.key"))
    alice = make_certificate(case.dir, "alice", "/O=devs/CN=alice", ca)
    equal(v.ask("/api/v1/namespaces", context=v.context(*alice)).status, 200)
    equal(v.ask("/api/v1/namespaces", context=v.context()).status, 403)


def test_impersonation_is_refused(case):
    v = case.start()
    for name, value in (("Impersonate-User", "bob"), ("Impersonate-Group", "devs"),
                        ("impersonate-uid", "1"), ("Impersonate-Extra-X", "y")):
        answer = v.ask("/api/v1/namespaces", headers={name: value})
        equal(answer.status, 403, name)
        has(answer.json["message"], "cannot impersonate resource")
        has(answer.json["message"], "does not support impersonation")
    equal(v.ask("/livez", headers={"Impersonate-User": "bob"}).status, 403)


def test_the_plain_port_keeps_browsers_out(case):
    port = free_port()
    v = case.start("--insecure-port", str(port))
    has(v.line, f" and http://127.0.0.1:{port} ")

    def ask(host="localhost", **headers):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        return ask_on(c, "/api/v1/namespaces", headers={"Host": host, **headers})
    for host in ("localhost", f"localhost:{port}", "127.0.0.1", f"127.0.0.1:{port}", "[::1]", "LOCALHOST:1"):
        equal(ask(host).status, 200, host)
    for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.evil",
                 "", "10.0.0.1", "localhost:", "localhost:x"):
        check(ask(host).status in (400, 403), host)
    # A target with a host of its own: that one counts, and Host must not lie.
    for target, host, status in (("localhost", "localhost", 200), ("localhost", "evil.example", 403),
                                 ("evil.example", "localhost", 403)):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        a = ask_on(c, f"http://{target}/api/v1/namespaces", headers={"Host": host})
        equal(a.status, status, f"{target} with Host {host}")
    equal(ask(Origin="http://localhost").status, 403)
    equal(ask(Origin="null").status, 403)
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)):
        equal(ask(**{"Sec-Fetch-Site": site}).status, status, site)
    # Loopback alone, whatever the secure port is bound to.
    for line in open("/proc/net/tcp", encoding="utf-8"):
        f = line.split()
        if f[1].endswith(f":{port:04X}") and f[3] == "0A":
            equal(f[1].split(":")[0], "0100007F")


def test_no_plain_port_unless_asked_for(case):
    v = case.start()
    s = socket.create_connection(("127.0.0.1", v.port))
    s.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
    try:
        answer = s.recv(4096)
    except ConnectionError:
        answer = b""
    check(b"200 OK" not in answer, "the secure port answers plain HTTP")


def test_audit_ids(case):
    v = case.start()
    a, b = v.ask("/livez").headers["audit-id"], v.ask("/livez").headers["audit-id"]
    check(a != b and len(a) == 36, "ids are not unique")
    equal(v.ask("/livez", headers={"Audit-ID": "my-own-id"}).headers["audit-id"], "my-own-id")
    check(v.ask("/livez", headers={"Audit-ID": "x" * 100}).headers["audit-id"] != "x" * 100, "too long")


def test_texts_and_paths(case):
    v = case.start()
    a = v.ask("/nosuch")
    equal((a.status, a.text, a.headers["content-type"]),
          (404, "404 page not found\n", "text/plain; charset=utf-8"))
    equal(v.ask("/apis/nosuch.example.com").text, "404 page not found\n")
    equal(v.ask("/livez/nosuch").status, 404)
    equal(v.ask("/livez/ping").text, "ok")
    check("x-content-type-options" not in v.ask("/livez/ping").headers, "nosniff on a single check")
    paths = v.ask("/").json["paths"]
    equal(paths, sorted(paths))
    for path in paths:
        equal(v.ask(path).status, 200, path)
    for want in ("/api/v1", "/apis/apps/v1", "/livez/etcd", "/readyz/shutdown", "/version", "/metrics"):
        check(want in paths, want)


# What operators of kube-apiserver graph.
GRAPHED = """
apiserver_watch_cache_events_received_total apiserver_watch_cache_events_dispatched_total
apiserver_watch_cache_initializations_total apiserver_watch_cache_resource_version
apiserver_watch_cache_read_wait_seconds apiserver_watch_cache_consistent_read_total watch_cache_capacity
watch_cache_capacity_increase_total watch_cache_capacity_decrease_total apiserver_init_events_total
apiserver_terminated_watchers_total apiserver_cache_list_total apiserver_cache_list_fetched_objects_total
apiserver_cache_list_returned_objects_total apiserver_storage_consistency_checks_total
apiserver_storage_list_total apiserver_storage_list_fetched_objects_total
apiserver_storage_list_evaluated_objects_total apiserver_storage_list_returned_objects_total
apiserver_watch_events_total apiserver_watch_events_sizes apiserver_watch_list_duration_seconds
apiserver_longrunning_requests apiserver_response_sizes apiserver_request_sli_duration_seconds
apiserver_request_duration_seconds apiserver_request_total apiserver_current_inflight_requests
etcd_request_duration_seconds etcd_requests_total etcd_request_errors_total etcd_bookmark_total
apiserver_storage_events_received_total apiserver_resource_objects apiserver_storage_objects
""".split()


def test_every_name_that_is_graphed(case):
    text = case.start().ask("/metrics").text
    missing = [name for name in GRAPHED if f"# TYPE {name} " not in text]
    equal(missing, [], "names that /metrics lacks")


def test_metrics(case):
    v = case.start()
    v.ask("/api/v1/namespaces")
    v.ask("/api/v1/namespaces", context=v.context())
    text = wait_for("the counters", lambda: (
        lambda t: t if 'code="403"' in t and 'resource="namespaces"' in t else None)(v.ask("/metrics").text))
    for row in ('apiserver_request_total{component="apiserver",group="",resource="namespaces",'
                'scope="cluster",subresource="",verb="LIST",version="v1",dry_run="",code="200"} 1\n',
                "# TYPE apiserver_request_duration_seconds histogram\n",
                'apiserver_current_inflight_requests{request_kind="mutating"} 0\n',
                "\nvigil_storage_revision ", "\nprocess_resident_memory_bytes "):
        has(text, row)


def test_watches_of_all_loops_are_listed(case):
    v = case.start("--loops", "3")
    open_watches = []
    for i in range(6):
        c = v.connect(v.admin())
        c.request("GET", f"{PODS}?watch=1&resourceVersion=1&fieldSelector=spec.nodeName%3Dn{i}")
        c.response = c.getresponse()
        equal(c.response.status, 200)
        open_watches.append(c)
    listed = wait_for("six watches", lambda: (
        lambda w: w if len(w) == 6 else None)(v.ask("/debug/vigil/watches").json["watches"]))
    equal(sorted(w["fieldSelector"] for w in listed), [f"spec.nodeName=n{i}" for i in range(6)])
    for w in listed:
        equal((w["user"], w["resource"], w["namespace"]), ("kubernetes-admin", "pods", "default"))
        for key in ("bytes", "lag", "unsent", "events", "seconds"):
            check(isinstance(w[key], int), key)
    for c in open_watches:
        c.response.close()
        c.close()
    wait_for("their end", lambda: v.ask("/debug/vigil/watches").json["watches"] == [])


def test_a_user_has_so_many_watches(case):
    v = case.start("--max-watches-per-user", "2")
    running = []
    for _ in range(2):
        c = v.connect(v.admin())
        c.request("GET", PODS + "?watch=1&resourceVersion=1")
        c.response = c.getresponse()
        running.append(c)
    refused = v.ask(PODS + "?watch=1&resourceVersion=1")
    equal((refused.status, refused.headers["retry-after"]), (429, "1"))
    equal(refused.json["reason"], "TooManyRequests")
    equal(v.ask(PODS).status, 200)
    running[0].response.close()
    running[0].close()

    def starts():
        c = v.connect(v.admin())
        c.request("GET", PODS + "?watch=1&resourceVersion=1")
        c.response = c.getresponse()
        running.append(c)
        return c.response.status == 200
    wait_for("room for one more", starts)


def test_running_watches_are_not_in_flight(case):
    v = case.start("--max-requests-inflight", "3")
    running = []
    for _ in range(20):
        c = v.connect(v.admin())
        c.request("GET", PODS + "?watch=1&resourceVersion=1&allowWatchBookmarks=true")
        c.response = c.getresponse()
        equal(c.response.status, 200)
        running.append(c)
    equal(v.ask(PODS).status, 200)
    wait_for("no request in flight", lambda: 'inflight_requests{request_kind="readOnly"} 0\n'
             in v.ask("/metrics").text)


def test_zero_is_no_limit(case):
    v = case.start("--max-mutating-requests-inflight", "0", "--max-requests-inflight=0")
    a = v.ask("/api/v1/namespaces/default/configmaps", "POST", body={"metadata": {"name": "a"}})
    equal((a.status, "x-kubernetes-pf-flowschema-uid" in a.headers), (201, False))
    equal(v.ask(PODS).status, 200)


def test_bodies_over_the_limit(case):
    v = case.start("--max-request-body-bytes", "2000")
    a = v.ask("/api/v1/namespaces/default/configmaps", "POST", body="x" * 2001,
              headers={"Content-Type": "application/json"})
    equal((a.status, a.json["message"], a.json["reason"]),
          (413, "Request entity too large: limit is 2000", "RequestEntityTooLarge"))
    a = v.ask("/livez", headers={"X-Long": "x" * 70000})
    equal(a.status, 431)


if __name__ == "__main__":
    main(sys.modules[__name__])
