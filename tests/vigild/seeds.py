#!/usr/bin/env python3
"""seeds.py VIGILD [row...] - the mechanisms of the seeds, shown on the wire of a real vigild.

One function per row of the checklist in docs/seeds.md, named after it; rows that are shown elsewhere
are missing here. Each works in a namespace of its own. Prints a line for each and fails if one does.
"""
import json
import random
import re
import socket
import sys
import tempfile
import threading
import time
import traceback

from stream import Client, Gone, Server, WatchStream
from vigild import LIMIT_S, Failed, wait_for

CORE = "/api/v1"


class Place:
    """A namespace, a connection, and short ways to say things."""

    def __init__(self, server, name):
        self.server, self.ns = server, name
        self.client = Client(server)
        status, obj = self.client.ask("POST", f"{CORE}/namespaces",
                                      {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}})
        assert status == 201, obj
        self.path = f"{CORE}/namespaces/{name}/configmaps"
        self.pods = f"{CORE}/namespaces/{name}/pods"

    def ask(self, *args, **kw):
        return self.client.ask(*args, **kw)

    def must(self, *args, **kw):
        status, obj = self.client.ask(*args, **kw)
        assert status in (200, 201, 202), (args[:2], status, obj)
        return obj

    def map(self, name, labels=None, value="x"):
        return {"kind": "ConfigMap", "apiVersion": "v1",
                "metadata": {"name": name, "namespace": self.ns, "labels": labels or {}}, "data": {"v": value}}

    def create(self, name, **kw):
        return self.must("POST", self.path, self.map(name, **kw))

    def update(self, name, **kw):
        return self.must("PUT", f"{self.path}/{name}", self.map(name, **kw))

    def delete(self, name):
        return self.must("DELETE", f"{self.path}/{name}")

    def pod(self, name, node=None):
        spec = {"containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": name, "namespace": self.ns}, "spec": spec}

    def watch(self, query="", path=None):
        w = WatchStream(self.server, f"{path or self.path}?watch=1&{query}")
        assert w.status == 200, getattr(w, "refusal", w.status)
        return w


def rv(obj):
    return int(obj["metadata"]["resourceVersion"])


def take(w, n):
    return [w.next() for _ in range(n)]


def shape(events):
    return [(e["type"], e["object"]["metadata"].get("name")) for e in events]


def row_01_list_and_watch_share_one_url(p):
    p.create("a")
    listed = p.must("GET", p.path)
    assert listed["kind"] == "ConfigMapList" and len(listed["items"]) == 1
    w = p.watch()
    assert shape(take(w, 1)) == [("ADDED", "a")]


def row_02_old_watch_prefix(p):
    p.create("a")
    w = WatchStream(p.server, f"{CORE}/watch/namespaces/{p.ns}/configmaps")
    assert shape(take(w, 1)) == [("ADDED", "a")]
    p.create("b")
    assert shape(take(w, 1)) == [("ADDED", "b")]


def row_03_chunked_one_event_per_line(p):
    c = Client(p.server)
    c.send("GET", f"{p.path}?watch=1")
    status, fields = c.head()
    assert status == 200 and fields["transfer-encoding"] == "chunked", fields
    assert fields["content-type"] == "application/json", fields
    p.create("a")
    assert json.loads(c.chunk())["type"] == "ADDED"


def row_04_added_modified_deleted(p):
    w = p.watch("resourceVersion=%d" % rv(p.create("anchor")))
    p.create("a")
    p.update("a", value="y")
    p.delete("a")
    assert shape(take(w, 3)) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def row_05_name_in_path_is_a_selector(p):
    p.create("a"), p.create("b")
    w = WatchStream(p.server, f"{CORE}/watch/namespaces/{p.ns}/configmaps/b")
    assert shape(take(w, 1)) == [("ADDED", "b")]
    clash = WatchStream(p.server, f"{CORE}/watch/namespaces/{p.ns}/configmaps/b?fieldSelector=metadata.name%3Da")
    assert clash.status == 400, clash.status
    assert clash.refusal["message"] == "fieldSelector metadata.name doesn't match requested name"


def row_06_list_options_are_validated(p):
    bad = {"limit=x": 400, "labelSelector=a%3Db%3Dc": 400, "fieldSelector=spec.x%3D1": 400,
           "resourceVersionMatch=Exact": 422, "continue=junk": 400, "resourceVersion=x": 400,
           "sendInitialEvents=true": 422}
    for query, want in bad.items():
        status, obj = p.ask("GET", f"{p.path}?{query}")
        assert (status, obj["kind"], obj["status"]) == (want, "Status", "Failure"), (query, status, obj)


def row_08_timeouts(p):
    w = p.watch("timeoutSeconds=1")
    assert w.next() is None  # within LIMIT_S; one without it would last for half an hour
    # Without one: between the minimum and twice that, each elsewhere.
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent, ["--min-request-timeout=2"])
        ends = []

        def follow():
            started = time.monotonic()
            stream = WatchStream(s, f"{CORE}/nodes?watch=1")
            while stream.next() is not None:
                pass
            ends.append(time.monotonic() - started)

        threads = [threading.Thread(target=follow) for _ in range(40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(LIMIT_S)
        s.close()
    assert len(ends) == 40 and min(ends) >= 2 and max(ends) - min(ends) > 0.9, sorted(ends)


def row_09_a_lone_event_is_not_held_back(p):
    w = p.watch("resourceVersion=%d" % rv(p.create("anchor")))
    p.create("a")
    assert shape(take(w, 1)) == [("ADDED", "a")]  # nothing follows that could push it out


def row_10_watch_on_what_cannot_be_watched(p):
    status, obj = p.ask("GET", f"{CORE}/namespaces/{p.ns}/bindings?watch=1")
    assert status == 405 and obj["reason"] == "MethodNotAllowed", (status, obj)


def metric(p, name, **labels):
    c = Client(p.server)
    c.send("GET", "/metrics")
    status, fields = c.head()
    assert status == 200
    total = 0.0
    for line in c.body(fields).decode().splitlines():
        head, _, value = line.rpartition(" ")
        if head.split("{")[0] == name and all(f'{k}="{v}"' in head for k, v in labels.items()):
            total += float(value)
    return total


def row_11_slow_lists_are_traced_and_running_watches_counted(p):
    # A list of what is not there yet waits three seconds: its line must tell the steps.
    future = rv(p.create("a")) + 100000
    assert p.ask("GET", f"{p.path}?resourceVersion={future}&resourceVersionMatch=NotOlderThan")[0] == 504
    trace = wait_for("the trace", lambda: re.search(
        rf"slow_request verb=LIST .*{future}.* ms=([\d.]+) body_ms=([\d.]+) first_byte_ms=([\d.]+) send_ms=([\d.]+)",
        p.server.process.stderr()))
    whole, *steps = map(float, trace.groups())
    assert sum(steps) <= whole + 1, trace.group(0)
    before = metric(p, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps")
    watches = [p.watch() for _ in range(5)]
    now = metric(p, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps")
    assert now - before == 5, (before, now)
    for w in watches:
        w.close()


def row_13_status_beside_the_object(p):
    p.must("POST", p.pods, p.pod("a"))
    both = p.must("GET", f"{p.pods}/a")
    both["status"] = {"phase": "Running", "message": "by main"}
    both["metadata"]["labels"] = {"by": "main"}
    main = p.must("PUT", f"{p.pods}/a", both)
    assert main.get("status", {}).get("phase") != "Running" and main["metadata"]["labels"] == {"by": "main"}
    both = p.must("GET", f"{p.pods}/a")
    both["status"] = {"phase": "Running"}
    both["spec"]["containers"][0]["image"] = "other"
    status = p.must("PUT", f"{p.pods}/a/status", both)
    assert status["status"]["phase"] == "Running" and status["spec"]["containers"][0]["image"] == "i"


def row_14_backend_by_configuration(p):
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent, ["--storage=mem"])
        other = Place(s, "mem")
        row_04_added_modified_deleted(other)
        s.close()


def row_16_revisions_only_rise(p):
    revs = [rv(p.create("a"))] + [rv(p.update("a", value=str(i))) for i in range(20)]
    assert revs == sorted(set(revs))


TABLE = [("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")]


def row_17_decoding_holds_nobody_up(p):
    # Watchers for whom each event is decoded, and who take none, keep neither the cache from storage nor others from it.
    start = rv(p.create("anchor"))
    slow = []
    for _ in range(10):
        c = Client(p.server, receive_buffer=4096)
        c.send("GET", f"{p.path}?watch=1&resourceVersion={start}", headers=TABLE)
        assert c.head()[0] == 200
        slow.append(c)
    plain = p.watch(f"resourceVersion={start}")
    for i in range(100):
        last = rv(p.update("anchor", value=f"{i}" + "x" * 20000))
    assert rv(p.must("GET", f"{p.path}?resourceVersion={last}&resourceVersionMatch=NotOlderThan")) >= last
    assert [rv(e["object"]) for e in take(plain, 100)][-1] == last
    assert json.loads(slow[0].chunk())["object"]["kind"] == "Table"
    for c in slow:
        c.close()


def row_19_21_one_feed_for_all(p):
    # However many watch, and by whatever selectors: storage tells of each change once.
    ids = range(60)
    watches = [p.watch(f"labelSelector=n%3D{i}&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan")
               for i in ids]
    before = metric(p, "apiserver_storage_events_received_total", resource="configmaps")
    for i in ids:
        p.create(f"o{i}", labels={"n": str(i)})
    for i in ids:
        assert shape(take(watches[i], 1)) == [("ADDED", f"o{i}")]
    assert metric(p, "apiserver_storage_events_received_total", resource="configmaps") - before == len(ids)


def row_22_an_index_is_not_a_scan(p):
    for i in range(40):
        p.must("POST", p.pods, p.pod(f"p{i}", node=f"row22-{i % 10}"))
    before = metric(p, "apiserver_cache_list_fetched_objects_total", resource="pods")
    listed = p.must("GET", f"{CORE}/pods?fieldSelector=spec.nodeName%3Drow22-3")
    assert [o["metadata"]["name"] for o in listed["items"]] == ["p13", "p23", "p3", "p33"]
    looked = metric(p, "apiserver_cache_list_fetched_objects_total", resource="pods") - before
    assert looked <= 2 * 5, looked  # of 40: to the first that is another's, for its size and to send it


def row_20_acknowledged_means_durable(p):
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent)
        other = Place(s, "durable")
        names = [f"o{i}" for i in range(50)]
        for n in names:
            other.create(n)
        s.kill()
        s.start()
        got = [o["metadata"]["name"] for o in Client(s).ask("GET", other.path)[1]["items"]]
        assert got == sorted(names), got
        s.close()


def row_23_24_any_revision_of_the_window(p):
    revs = [rv(p.create("anchor"))]
    log = []
    for i in range(60):
        revs.append(rv(p.create(f"o{i}") if i < 30 else p.update(f"o{i - 30}", value=str(i))))
        log.append(("ADDED" if i < 30 else "MODIFIED", f"o{i % 30}", revs[-1]))
    stop = threading.Event()

    def churn():
        q = Client(p.server)
        i = 0
        while not stop.is_set():
            assert q.ask("PUT", f"{p.path}/anchor", p.map("anchor", value=f"c{i}"))[0] == 200
            i += 1

    t = threading.Thread(target=churn)
    t.start()
    try:
        for _ in range(25):
            at = random.randrange(len(log))
            w = p.watch(f"resourceVersion={revs[at]}&fieldSelector=metadata.name!%3Danchor")
            got = [(e["type"], e["object"]["metadata"]["name"], rv(e["object"])) for e in take(w, len(log) - at)]
            assert got == log[at:], (at, got[:3])
            w.close()
    finally:
        stop.set()
        t.join()


def row_25_state_first(p):
    for n in "cab":
        p.create(n)
    for query in ("", "resourceVersion=0"):
        w = p.watch(query)
        assert shape(take(w, 3)) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
        p.update("b", value=query + "!")
        assert shape(take(w, 1)) == [("MODIFIED", "b")]


def row_26_wait_until_fresh(p):
    for i in range(30):
        at = rv(p.create(f"o{i}"))
        listed = p.must("GET", f"{p.path}?resourceVersion={at}&resourceVersionMatch=NotOlderThan")
        assert len(listed["items"]) == i + 1
    status, obj = p.ask("GET", f"{p.path}?resourceVersion={at + 100000}&resourceVersionMatch=NotOlderThan")
    assert status == 504 and "Too large resource version" in obj["message"], (status, obj)


def row_27_list_from_the_cache(p):
    for i in range(10):
        p.create(f"o{i}", labels={"odd": str(i % 2)})
    before = metric(p, "apiserver_storage_list_total")
    for _ in range(5):
        assert len(p.must("GET", f"{p.path}?labelSelector=odd%3D1")["items"]) == 5
    assert metric(p, "apiserver_storage_list_total") == before


def row_28_too_old_is_410(p):
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent, ["--etcd-compaction-interval=1s"])
        other = Place(s, "old")
        first = rv(other.create("a"))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            other.update("a", value=str(time.monotonic()))
            w = other.watch(f"resourceVersion={first}&timeoutSeconds=1")
            event = w.next()
            w.close()
            if event and event["type"] == "ERROR":
                break
            time.sleep(0.5)
        assert event and event["type"] == "ERROR" and event["object"]["code"] == 410, event
        assert event["object"]["reason"] == "Expired"
        assert event["object"]["message"].startswith(f"too old resource version: {first} (")
        # Who lists anew goes on from there and has lost nothing.
        listed = other.must("GET", other.path)
        assert [o["metadata"]["name"] for o in listed["items"]] == ["a"]
        w = other.watch(f"resourceVersion={rv(listed)}")
        other.create("b")
        assert shape(take(w, 1)) == [("ADDED", "b")]
        s.close()


def row_29_a_watch_lives_as_long_as_its_request(p):
    def running():
        return metric(p, "apiserver_longrunning_requests", verb="WATCH", resource="configmaps")

    before = running()
    for _ in range(3):
        streams = [p.watch() for _ in range(100)]
        for w in streams:
            w.close()
    wait_for(f"{before} watches", lambda: running() == before)


def row_30_selector_edges(p):
    w = p.watch(f"labelSelector=on%3Dyes&resourceVersion={rv(p.create('a'))}")
    inside = rv(p.update("a", labels={"on": "yes"}, value="1"))
    p.update("a", labels={"on": "yes"}, value="2")
    out = rv(p.update("a", labels={"on": "no"}, value="3"))
    events = take(w, 3)
    assert shape(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert rv(events[0]["object"]) == inside
    gone = events[2]["object"]
    assert rv(gone) == out and gone["data"]["v"] == "2" and gone["metadata"]["labels"]["on"] == "yes"


def row_31_field_selectors(p):
    unbound = p.watch("fieldSelector=spec.nodeName%3D", path=p.pods)
    mine = p.watch("fieldSelector=spec.nodeName%3Dn1", path=p.pods)
    p.must("POST", p.pods, p.pod("a"))
    p.must("POST", f"{p.pods}/a/binding", {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": "a"},
                                           "target": {"kind": "Node", "name": "n1"}})
    p.must("POST", p.pods, p.pod("b", node="n2"))
    p.must("POST", p.pods, p.pod("c", node="n1"))
    assert shape(take(unbound, 2)) == [("ADDED", "a"), ("DELETED", "a")]
    assert shape(take(mine, 2)) == [("ADDED", "a"), ("ADDED", "c")]


def row_32_label_selectors(p):
    for name, labels in {"a": {"x": "1"}, "b": {"x": "2"}, "c": {}, "d": {"x": "1", "y": "z"}}.items():
        p.create(name, labels=labels)
    want = {"x": "abd", "!x": "c", "x=1": "ad", "x!=1": "bc", "x in (1,2)": "abd", "x notin (1)": "bc",
            "x=1,y": "d", "x>1": "b", "x<2": "ad"}
    for text, names in want.items():
        from urllib.parse import quote
        got = "".join(o["metadata"]["name"] for o in p.must("GET", f"{p.path}?labelSelector={quote(text)}")["items"])
        assert got == names, (text, got)


def row_34_depth_and_lag_are_told(p):
    w = WatchStream(p.server, f"{p.path}?watch=1&resourceVersion={rv(p.create('anchor'))}", receive_buffer=4096)

    def lag():
        return [x["lag"] for x in p.must("GET", "/debug/vigil/watches")["watches"] if x["namespace"] == p.ns]

    n = 100
    for i in range(n):
        p.update("anchor", value=f"{i}" + "x" * 100000)
    assert lag()[0] > 0, lag()  # it has taken nothing
    take(w, n)
    wait_for("the lag to be over", lambda: lag() == [0])
    wait_for("the queue to be empty", lambda: metric(p, "vigil_storage_pending") == 0)
    assert metric(p, "vigil_cache_revision") == metric(p, "vigil_storage_revision")


def row_35_not_ready_is_said(p):
    # A restarted server either answers or says 429 with Retry-After; never an empty list.
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent)
        other = Place(s, "ready")
        other.create("a")
        for _ in range(3):
            s.kill()
            s.start()
            status, obj = Client(s).ask("GET", f"{other.path}?resourceVersion=0")
            assert status == 429 or (status == 200 and len(obj["items"]) == 1), (status, obj)
        s.close()


def row_36_cache_off(p):
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        s = Server(p.server.binary, parent, ["--watch-cache-sizes=configmaps#0"])
        for name, row in (("off-a", row_04_added_modified_deleted), ("off-b", row_25_state_first),
                          ("off-c", row_30_selector_edges), ("off-d", row_32_label_selectors)):
            row(Place(s, name))
        s.close()


def row_37_encoded_once(p):
    # The metadata form of an event is made for the first of 50 watchers and shared by the others.
    c = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    clients = []
    for _ in range(50):
        w = Client(p.server)
        w.send("GET", f"{p.path}?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", headers=[("Accept", c)])
        status, fields = w.head()
        assert status == 200, fields
        clients.append(w)
    made = metric(p, "vigil_cache_forms_made_total")
    shared = metric(p, "vigil_cache_forms_shared_total")
    p.create("a")
    for w in clients:
        event = json.loads(w.chunk())
        assert event["object"]["kind"] == "PartialObjectMetadata" and "data" not in event["object"], event
    assert metric(p, "vigil_cache_forms_made_total") - made <= 2  # two loops may ask at the same moment
    assert metric(p, "vigil_cache_forms_shared_total") - shared >= 48


def row_38_a_dead_reader_does_not_move_others(p):
    start = rv(p.create("anchor"))
    dead = []
    for _ in range(20):
        w = WatchStream(p.server, f"{p.path}?watch=1&resourceVersion={start}", receive_buffer=4096)
        dead.append(w)  # never reads
    live = p.watch(f"resourceVersion={start}")
    n = 400
    for i in range(n):
        p.must("PUT", f"{p.path}/anchor", p.map("anchor", value=f"{i}" + "x" * 2000))
    got = take(live, n)
    assert [e["object"]["data"]["v"].rstrip("x") for e in got] == [str(i) for i in range(n)]
    # The slow ones lost nothing either: they go on where they stood.
    for w in dead[:3]:
        assert len(take(w, n)) == n
    for w in dead:
        w.close()


def row_39_bookmarks(p):
    w = p.watch("allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    event = w.next()
    assert event["type"] == "BOOKMARK", event
    assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert event["object"]["kind"] == "ConfigMap"
    # A quiet watch with a deadline gets a bookmark before its end, past the traffic of others.
    begun = time.monotonic()
    quiet = p.watch("allowWatchBookmarks=true&timeoutSeconds=4&labelSelector=never&resourceVersion=%d" % rv(event["object"]))
    last = 0
    for i in range(20):
        made = rv(p.create(f"o{i}"))
        if time.monotonic() - begun < 1:  # on a busy machine the rest may come after the bookmark
            last = made
    marks = []
    while (e := quiet.next()) is not None:
        marks.append(e)
    assert marks and all(e["type"] == "BOOKMARK" for e in marks)
    assert rv(marks[-1]["object"]) >= last, (rv(marks[-1]["object"]), last)
    resumed = p.watch("labelSelector=never&timeoutSeconds=1&resourceVersion=%d" % rv(marks[-1]["object"]))
    assert resumed.next() is None


def row_45_reads_are_current(p):
    for i in range(30):
        p.create(f"o{i}")
        assert len(p.must("GET", p.path)["items"]) == i + 1
        assert p.ask("GET", f"{p.path}/o{i}")[0] == 200


def main():
    binary, wanted = sys.argv[1], sys.argv[2:]
    rows = [(n, f) for n, f in sorted(globals().items()) if n.startswith("row_")]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="vg-seeds-") as parent:
        server = Server(binary, parent)
        try:
            for name, row in rows:
                if wanted and not any(name.startswith(f"row_{w}") for w in wanted):
                    continue
                try:
                    row(Place(server, name.replace("_", "-")[:40].strip("-")))
                    print(f"ok   {name}", flush=True)
                except (AssertionError, Failed, Gone, OSError, KeyError, ValueError, TypeError, socket.timeout) as e:
                    failed += 1
                    print(f"FAIL {name}: {type(e).__name__}: {str(e)[:800]}", flush=True)
                    if not isinstance(e, AssertionError) or not str(e):
                        traceback.print_exc(file=sys.stdout)
        finally:
            server.close()
        if failed:
            print(server.tail())
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
