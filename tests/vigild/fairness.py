"""fairness.py <vigild> - priority and fairness: nobody keeps the others out, and the objects rule.

Requests that take long are lists of a large kind whose client does not read: such a list holds its
seat until the client leaves, or a sixtieth of --request-timeout is over."""
import socket
import sys
import threading
import time

from vigild import LIMIT_S, ask_on, check, equal, has, main, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
GROUP = "/apis/flowcontrol.apiserver.k8s.io/v1"
SCHEMAS, LEVELS = GROUP + "/flowschemas", GROUP + "/prioritylevelconfigurations"
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
DUMP = "/debug/api_priority_and_fairness/"
PRODUCER = "--controllers=priority-and-fairness-config-producer"
TOKENS = 'a,alice,u1\nb,bob,u2\nm,mallory,u3\n'
# A list that is not read holds its seat for a minute, which is longer than a test takes.
HOLDS = "--request-timeout=1h"
TOO_MANY = "Too many requests, please try again later.\n"


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def start(case, *flags):
    return case.start("--token-auth-file", case.write("tokens", TOKENS), *flags)


def stream(s, text, receive_buffer=None):
    """A connection on which a request, or the beginning of one, has been sent."""
    raw = socket.socket()
    if receive_buffer:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    raw.settimeout(LIMIT_S)
    raw.connect(("127.0.0.1", s.port))
    c = s.context().wrap_socket(raw, server_hostname="127.0.0.1")
    c.sendall(text.encode())
    return c


def head(method, path, token, *fields):
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *fields, "", ""])


def status(c):
    line = b""
    while b"\r\n" not in line:
        piece = c.recv(4096)
        check(piece, f"the connection was closed after {line!r}")
        line += piece
    return int(line.split()[1])


def metrics(s):
    rows = {}
    for line in s.ask("/metrics").text.splitlines():
        if line and line[0] != "#":
            name, value = line.rsplit(" ", 1)
            rows[name] = float(value)
    return rows


def of_schema(name, schema, level):
    return f'apiserver_flowcontrol_{name}{{priority_level="{level}",flow_schema="{schema}"}}'


def rows(s, what):
    """A dump, by its columns."""
    lines = [[cell.strip() for cell in line.split(",")] for line in s.ask(DUMP + what).text.splitlines()]
    return [dict(zip(lines[0], line)) for line in lines[1:]]


def level(name, shares, queuing=None, **more):
    response = {"type": "Queue", "queuing": queuing} if queuing else {"type": "Reject"}
    return {"metadata": {"name": name}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": shares, "limitResponse": response, **more}}}


def schema(name, to, users, precedence=500, **more):
    return {"metadata": {"name": name}, "spec": {
        "priorityLevelConfiguration": {"name": to}, "matchingPrecedence": precedence,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [{"subjects": [{"kind": "User", "user": {"name": u}} for u in users],
                   "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                                      "clusterScope": True}],
                   "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}], **more}}


def put_objects(s, *objects):
    for o in objects:
        path = SCHEMAS if "rules" in o["spec"] else LEVELS
        equal(s.ask(path, "POST", body=o).status, 201, o["metadata"]["name"])


def effective(s, path, token, schema_uid):
    """Requests of the user belong to the schema by now."""
    return wait_for("the schema to be used", lambda: s.ask(path, context=s.context(), headers=bearer(token)).headers.get(
        "x-kubernetes-pf-flowschema-uid") == schema_uid)


def fill(s, path=MAPS, n=16):
    for i in range(n):
        equal(s.ask(path, "POST", body={"metadata": {"name": f"big-{i}"}, "data": {"x": "eHh4" * 200000}}).status, 201)


def limited(case, queuing, timeout=HOLDS, seats=20, users=("alice", "bob"), shares=5, **more):
    """A server where these users have a level with one seat that neither lends nor borrows."""
    s = start(case, "--authorization-mode=AlwaysAllow", f"--max-requests-inflight={seats}",
              "--max-mutating-requests-inflight=0", timeout)
    put_objects(s, level("narrow", shares, queuing, borrowingLimitPercent=0, **more),
                level("wide", 90), schema("narrow", "narrow", users))
    effective(s, "/api", users[0][0], s.ask(SCHEMAS + "/narrow").json["metadata"]["uid"])
    return s


def hold_seat(s, token="a", path=MAPS):
    """A list that is not read: it has the seat."""
    c = stream(s, head("GET", path, token), receive_buffer=4096)
    return c


# ---- bodies without an end ----

def test_unfinished_bodies_take_no_seat(case):
    """230 of them, by a user who may do nothing, are more than all writes at a time."""
    s = start(case)
    begun = [stream(s, head("POST", REVIEW, "m", "Content-Type: application/json", "Content-Length: 1024") + '{"kind":')
             for _ in range(230)]
    for i in range(20):
        equal(s.ask(MAPS, "POST", body={"metadata": {"name": f"m{i}"}}).status, 201, "a write meanwhile")
    body = '{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{}}}'
    a = s.ask(REVIEW, "POST", context=s.context(), headers={**bearer("b"), "Content-Type": "application/json"}, body=body)
    equal(a.status, 201, "another user's review")
    has_seat = [v for k, v in metrics(s).items() if k.startswith("apiserver_current_inflight_requests") and "mutating" in k]
    equal(has_seat, [0.0], "writes in flight")
    del begun


def test_bodies_have_a_share_for_each_user(case):
    """The pool is 16 MiB, so a user has 4: the second body of 3 MB does not fit, and others' do; those of
    administrators have such a share too."""
    s = start(case, "--max-request-bytes-inflight=16777216")
    admin = s.path("pki/admin.crt"), s.path("pki/admin.key")
    fields = "Content-Type: application/json", "Content-Length: 3000000"
    first = stream(s, head("POST", REVIEW, "m", *fields))
    second = stream(s, head("POST", REVIEW, "m", *fields))
    equal(status(second), 429, "a second body of the user")
    chunked = stream(s, head("POST", REVIEW, "m", fields[0], "Transfer-Encoding: chunked"))
    equal(status(chunked), 429, "a body of any length")
    equal(s.ask(REVIEW, "POST", context=s.context(), headers=bearer("b"), body={"spec": {"resourceAttributes": {}}}).status,
          201, "another user's body")
    first.close()
    third = wait_for("room again", lambda: s.ask(REVIEW, "POST", context=s.context(), headers=bearer("m"),
                                                 body={"spec": {"resourceAttributes": {}}, "x": "x" * 1500000}).status == 201)
    check(third, "the share was not given back")
    held = []
    for _ in range(2):
        c = s.connect(s.context(*admin))
        c.putrequest("POST", MAPS)
        c.putheader("Content-Length", "3000000")
        c.endheaders()
        held.append(c)
    equal(held[1].getresponse().status, 429, "an administrator's second body")


# ---- the objects ----

def test_default_objects(case):
    s = start(case, PRODUCER)
    wait_for("all objects", lambda: len(s.ask(LEVELS).json["items"]) == 8 and len(s.ask(SCHEMAS).json["items"]) == 11)
    levels = {o["metadata"]["name"]: o for o in s.ask(LEVELS).json["items"]}
    equal(levels["workload-low"]["spec"], {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 100, "lendablePercent": 90,
        "limitResponse": {"type": "Queue", "queuing": {"queues": 128, "handSize": 6, "queueLengthLimit": 50}}}})
    found = wait_for("conditions", lambda: (lambda c: c if len(c) == 11 else None)(
        [c for o in s.ask(SCHEMAS).json["items"] for c in o.get("status", {}).get("conditions", [])]))
    equal({c["type"] + c["status"] + c["reason"] for c in found}, {"DanglingFalseFound"})
    has([c["message"] for c in found][0], "This FlowSchema references the PriorityLevelConfiguration object named ")
    for o in list(levels.values()) + s.ask(SCHEMAS).json["items"]:
        equal(o["metadata"]["annotations"]["apf.kubernetes.io/autoupdate-spec"], "true")

    def seats():
        rows_ = metrics(s)
        return {k.split('"')[1]: v for k, v in rows_.items() if k.startswith("apiserver_flowcontrol_nominal_limit_seats")}
    wait_for("the seats of the levels", lambda: seats() == {
        "exempt": 0, "catch-all": 13, "global-default": 49, "leader-election": 25, "node-high": 98, "system": 74,
        "workload-high": 98, "workload-low": 245})


def test_mandatory_objects_are_enforced(case):
    s = start(case, PRODUCER)
    key = "apf.kubernetes.io/autoupdate-spec"
    merge = {"Content-Type": "application/merge-patch+json"}
    for path in (LEVELS + "/catch-all", SCHEMAS + "/exempt"):
        wait_for(path, lambda p=path: s.ask(p).status == 200)
        equal(s.ask(path, "PATCH", headers=merge, body={"metadata": {"annotations": {key: "false"}}}).status, 200)
        wait_for("the annotation", lambda p=path: s.ask(p).json["metadata"]["annotations"][key] == "true")
        equal(s.ask(path, "DELETE").status, 200)
        wait_for("it to come back", lambda p=path: s.ask(p).status == 200)
    equal(s.ask(LEVELS + "/catch-all", "PATCH", headers=merge,
                body={"spec": {"limited": {"nominalConcurrencyShares": 77}}}).status, 422, "another spec")
    exempt = {"spec": {"exempt": {"nominalConcurrencyShares": 3}}}
    equal(s.ask(LEVELS + "/exempt", "PATCH", headers=merge, body=exempt).status, 200, "the numbers of the exempt level")
    s.ask(LEVELS + "/node-high", "DELETE")
    wait_for("another level to come back", lambda: s.ask(LEVELS + "/node-high").status == 200)
    equal(s.ask(LEVELS + "/exempt").json["spec"]["exempt"]["nominalConcurrencyShares"], 3, "they are the user's")


def test_users_edits_of_suggested_objects(case):
    s = start(case, PRODUCER)
    merge = {"Content-Type": "application/merge-patch+json"}
    wait_for("the level", lambda: s.ask(LEVELS + "/system").status == 200)
    spec = s.ask(LEVELS + "/system").json["spec"]
    change = {"spec": {"limited": {"nominalConcurrencyShares": 31}}}
    equal(s.ask(LEVELS + "/system", "PATCH", headers=merge, body=change).status, 200)
    wait_for("the old spec", lambda: s.ask(LEVELS + "/system").json["spec"] == spec)
    off = {"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}, **change}
    equal(s.ask(LEVELS + "/system", "PATCH", headers=merge, body=off).status, 200)
    s.ask(LEVELS + "/node-high", "DELETE")  # what comes back shows that all was looked at
    wait_for("another level to come back", lambda: s.ask(LEVELS + "/node-high").status == 200)
    equal(s.ask(LEVELS + "/system").json["spec"]["limited"]["nominalConcurrencyShares"], 31)
    gone = level("of-old", 5)
    gone["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "true"}
    put_objects(s, gone)
    wait_for("what no release has any more to go", lambda: s.ask(LEVELS + "/of-old").status == 404)


def test_dangling(case):
    s = start(case, PRODUCER)
    put_objects(s, schema("lost", "nowhere", ["alice"]))

    def condition():
        c = s.ask(SCHEMAS + "/lost").json.get("status", {}).get("conditions")
        return c and (c[0]["type"], c[0]["status"], c[0]["reason"], c[0]["message"])
    text = 'This FlowSchema references the PriorityLevelConfiguration object named "nowhere" '
    wait_for("it to dangle", lambda: condition() == ("Dangling", "True", "NotFound", text + "but there is no such object"))
    put_objects(s, level("nowhere", 5))
    wait_for("it to be found", lambda: condition() == ("Dangling", "False", "Found", text + "and it exists"))
    equal(s.ask(LEVELS + "/nowhere", "DELETE").status, 200)
    wait_for("it to dangle again", lambda: condition()[1] == "True")


def test_headers(case):
    s = start(case, PRODUCER)
    wait_for("the objects", lambda: len(s.ask(SCHEMAS).json["items"]) == 11)

    def uids(answer):
        return answer.headers.get("x-kubernetes-pf-flowschema-uid"), answer.headers.get("x-kubernetes-pf-prioritylevel-uid")

    def want(schema_name, level_name):
        return (s.ask(f"{SCHEMAS}/{schema_name}").json["metadata"]["uid"],
                s.ask(f"{LEVELS}/{level_name}").json["metadata"]["uid"])
    nobody, alice = s.context(), bearer("a")
    wait_for("the table", lambda: uids(s.ask(MAPS)) == want("exempt", "exempt"))
    equal(uids(s.ask("/livez", context=nobody)), want("probes", "exempt"))
    equal(uids(s.ask("/version", context=nobody)), want("global-default", "global-default"))
    forbidden = s.ask(MAPS, context=nobody, headers=alice)
    equal((forbidden.status, uids(forbidden)), (403, want("global-default", "global-default")))
    equal(uids(s.ask(MAPS, context=nobody, headers=bearer("wrong"))), (None, None))
    equal(uids(s.ask("/nothing", context=nobody, headers=alice)), want("global-default", "global-default"))


def test_without(case):
    """The limits of before, when the body is there; administrators are let through, as kube-apiserver does."""
    s = start(case, "--enable-priority-and-fairness=false", "--authorization-mode=AlwaysAllow", "--max-requests-inflight=1",
              HOLDS)
    fill(s)
    check("x-kubernetes-pf-flowschema-uid" not in s.ask(MAPS + "/big-0").headers, "a header")
    held = hold_seat(s)
    wait_for("it to be in flight", lambda: 'inflight_requests{request_kind="readOnly"} 1\n' in s.ask("/metrics").text)
    a = s.ask(SECRETS, context=s.context(), headers=bearer("b"))
    equal((a.status, a.text, a.headers["retry-after"]), (429, TOO_MANY, "1"))
    equal(s.ask(SECRETS).status, 200, "an administrator")
    equal(s.ask(DUMP + "dump_queues").status, 404)
    del held


# ---- queues ----

def waiting(s):
    return [r for r in rows(s, "dump_requests?includeRequestDetails=1") if r["PriorityLevelName"] == "narrow"]


def test_waiting_full_and_leaving(case):
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 1})
    fill(s)
    held = hold_seat(s)
    wait_for("the seat to be taken", lambda: metrics(s)[of_schema("current_executing_requests", "narrow", "narrow")] == 1)
    second = stream(s, head("GET", SECRETS, "b"))
    row = wait_for("the second to wait", lambda: waiting(s))[0]
    equal((row["FlowDistingsher"], row["UserName"], row["Verb"], row["Resource"], row["FlowSchemaName"]),
          ("bob", "bob", "list", "secrets", "narrow"))
    a = s.ask(SECRETS, context=s.context(), headers=bearer("b"))
    equal((a.status, a.text, a.headers["retry-after"], a.headers["content-type"], a.headers["x-content-type-options"]),
          (429, TOO_MANY, "1", "text/plain; charset=utf-8", "nosniff"))
    check(a.headers.get("x-kubernetes-pf-prioritylevel-uid"), "no header")
    key = 'apiserver_flowcontrol_rejected_requests_total{priority_level="narrow",flow_schema="narrow",reason="queue-full"}'
    equal(metrics(s)[key], 1)
    for path in ("dump_priority_levels", "dump_queues"):
        check([r for r in rows(s, path) if r["PriorityLevelName"] == "narrow"], path)
    equal([r["WaitingRequests"] for r in rows(s, "dump_priority_levels") if r["PriorityLevelName"] == "narrow"], ["1"])
    equal(s.ask(SECRETS).status, 200, "an administrator is exempt")
    second.close()
    wait_for("who left to leave the queue", lambda: not waiting(s))
    third = stream(s, head("GET", SECRETS, "b"))
    wait_for("the third to wait", lambda: waiting(s))
    held.close()
    equal(status(third), 200, "after the seat was free")


def test_a_wait_ends_after_a_quarter(case):
    """A level without seats: nobody gets out of its queues."""
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 9}, "--request-timeout=4s", shares=0)
    key = 'apiserver_flowcontrol_rejected_requests_total{priority_level="narrow",flow_schema="narrow",reason="time-out"}'
    before = metrics(s)[key]
    began = time.monotonic()
    a = s.ask(SECRETS, context=s.context(), headers=bearer("b"))
    equal((a.status, a.text), (429, TOO_MANY))
    check(time.monotonic() - began >= 0.99, "it did not wait")
    equal(metrics(s)[key], before + 1)


def test_a_change_counts_at_once(case):
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 9})
    fill(s)
    held = hold_seat(s)
    wait_for("the seat to be taken", lambda: metrics(s)[of_schema("current_executing_requests", "narrow", "narrow")] == 1)
    second = stream(s, head("GET", SECRETS, "b"))
    wait_for("the second to wait", lambda: waiting(s))
    merge = {"Content-Type": "application/merge-patch+json"}
    equal(s.ask(LEVELS + "/narrow", "PATCH", headers=merge,
                body={"spec": {"limited": {"nominalConcurrencyShares": 60}}}).status, 200)
    equal(status(second), 200, "with more seats")
    reject = {"spec": {"limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject", "queuing": None}}}}
    equal(s.ask(LEVELS + "/narrow", "PATCH", headers=merge, body=reject).status, 200)
    wait_for("it to refuse", lambda: s.ask(SECRETS, context=s.context(), headers=bearer("b")).status == 429)
    equal(s.ask(SCHEMAS + "/narrow", "DELETE").status, 200)
    wait_for("the user to be elsewhere", lambda: s.ask(SECRETS, context=s.context(), headers=bearer("b")).status == 200)
    del held


def test_a_flood_of_one_user_leaves_the_other_served(case):
    s = limited(case, {"queues": 64, "handSize": 4, "queueLengthLimit": 4})
    fill(s, n=4)
    over, outcomes = threading.Event(), []

    def flood():
        while not over.is_set():
            c = s.connect(s.context())
            try:
                outcomes.append(ask_on(c, MAPS, headers=bearer("a")).status)
            except OSError:
                pass
            finally:
                c.close()
    threads = [threading.Thread(target=flood) for _ in range(40)]
    for t in threads:
        t.start()
    wait_for("a crowd", lambda: len(waiting(s)) >= 10)
    served = [s.ask(SECRETS, context=s.context(), headers=bearer("b")).status for _ in range(20)]
    crowd = len(waiting(s))
    over.set()
    for t in threads:
        t.join()
    equal(served, [200] * 20, "the other user's answers")
    check(crowd > 0, "the flood was over before")
    check(429 in outcomes and 200 in outcomes, f"the flood got {set(outcomes)}")


def test_answers_that_are_not_read_hold_no_seat(case):
    """Small answers are the connection's to send: whoever does not read them keeps nobody out."""
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 1})
    unread = [stream(s, head("GET", SECRETS, "a"), receive_buffer=2048) for _ in range(30)]
    wait_for("them to be over", lambda: metrics(s)[of_schema("current_executing_requests", "narrow", "narrow")] == 0)
    equal(s.ask(SECRETS, context=s.context(), headers=bearer("b")).status, 200)
    del unread


def test_lists_that_are_not_read_give_their_seat_back(case):
    """So does a watch that begins with a state. Others wait for seats fifteen times as long, and are served meanwhile."""
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 50}, "--request-timeout=60s")
    fill(s)
    unread = [stream(s, head("GET", path, "a"), receive_buffer=4096)
              for path in (MAPS, MAPS + "?watch=1&resourceVersion=0")]
    key = of_schema("current_executing_seats", "narrow", "narrow")
    wait_for("the seat to be taken", lambda: metrics(s)[key] == 1)
    equal(s.ask(SECRETS, context=s.context(), headers=bearer("b")).status, 200, "the other user's list")
    wait_for("the seats to be free", lambda: metrics(s)[key] == 0)
    rest = b""
    while b"\r\n0\r\n\r\n" not in rest[-4096:]:
        piece = unread[0].recv(1 << 20)
        check(piece, "the list ends early")
        rest = rest[-4096:] + piece
    unread[0].close()
    unread[1].close()
    equal(s.ask(SECRETS, context=s.context(), headers=bearer("b")).status, 200, "afterwards")
    equal(metrics(s)[key], 0)


def test_watches_hold_their_seat_until_they_run(case):
    s = limited(case, {"queues": 1, "handSize": 1, "queueLengthLimit": 1})
    running = [stream(s, head("GET", SECRETS + "?watch=1&resourceVersion=1&timeoutSeconds=60", "a")) for _ in range(10)]
    for c in running:
        equal(status(c), 200)
    equal(s.ask(SECRETS, context=s.context(), headers=bearer("b")).status, 200)
    equal(metrics(s)[of_schema("current_executing_requests", "narrow", "narrow")], 0)


if __name__ == "__main__":
    main(sys.modules[__name__])
