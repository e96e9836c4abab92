"""metrics.py <vigild> - the whole exposition of /metrics, by a strict parser, after requests of every sort."""
import sys
import threading

from exposition import Malformed, parse
from vigild import Failed, check, equal, has, main, wait_for

MAPS = "/api/v1/namespaces/default/configmaps"
SCALERS = "/apis/autoscaling/%s/namespaces/default/horizontalpodautoscalers"
SCALER = {"spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}}

GOOD = """# HELP a_total Text with \\\\ and \\n.
# TYPE a_total counter
a_total{x="1",y="quote \\" and \\\\ and \\n"} 1
a_total{x="2",y=""} 2.5e+10
# HELP h Sizes.
# TYPE h histogram
h_bucket{le="1"} 1
h_bucket{le="+Inf"} 2
h_sum 7
h_count 2
"""

# What to replace in it, and what that makes wrong.
BAD = (
    ('x="2",y=""', 'x="1",y="quote \\" and \\\\ and \\n"'),  # the same series
    ('x="2",y=""', 'y="quote \\" and \\\\ and \\n",x="1"'),  # the same, in another order
    ('x="2"', 'x="2",x="3"'), ('y=""', 'y="\\t"'), ('y=""', 'y="'), ('x="2",', 'x="2"'), ("2.5e+10", "2,5"),
    ("2.5e+10", "-1"), ("2.5e+10", "1 1"), ("a_total{x", "b_total{x"),
    ("# TYPE h histogram\n", ""), ("# TYPE h histogram\n", "# TYPE h histogram\n# TYPE h histogram\n"),
    ("# HELP h Sizes.\n", ""), ("histogram", "heap"), ("# HELP h", "# HELP a_total"),
    ('h_bucket{le="1"} 1', 'h_bucket{le="1"} 3'), ("h_count 2", "h_count 3"), ("h_sum 7\n", ""),
    ('h_bucket{le="+Inf"} 2\n', ""), ("h_count 2\n", "h_count 2"), ("h_count 2\n", "h_count 2\n\n"),
    ("h_count 2\n", "h_count 2\na_total 3\n"), ('le="1"', 'le="one"'),
)


def test_the_parser_refuses_what_is_malformed(case):
    del case
    equal(sorted(parse(GOOD.encode())), ["a_total", "h"], "families")
    for old, new in BAD:
        has(GOOD, old)
        try:
            parse(GOOD.replace(old, new, 1).encode())
        except Malformed:
            continue
        raise Failed(f"{new!r} instead of {old!r} was accepted")


def scrape(s):
    answer = s.ask("/metrics")
    equal(answer.status, 200, "status")
    has(answer.headers["content-type"], "text/plain")
    return parse(answer.body)


def make_traffic(s):
    """Every verb, kinds that are stored in another version, refusals, and labels that need care."""
    for version in ("v1", "v2"):
        made = s.ask(SCALERS % version, "POST", body={**SCALER, "metadata": {"name": version}})
        equal(made.status, 201, made.text)
    equal(s.ask(MAPS, "POST", body={"metadata": {"name": "m"}}).status, 201, "create")
    s.ask(MAPS + "/m", "PUT", body={"metadata": {"name": "m"}, "data": {"a": "b"}})
    s.ask(MAPS + "/m", "PATCH", body='{"data":{"a":"c"}}', headers={"Content-Type": "application/merge-patch+json"})
    for path in (MAPS, MAPS + "/m", MAPS + "/none", "/api/v1/nonsense", "/apis/none.example/v1/x", "/", "/healthz",
                 "/api/v1/namespaces/%22quote%5C/configmaps/%0A", SCALERS % "v1", SCALERS % "v2"):
        for method in ("GET", "HEAD", "OPTIONS", "BREW"):
            s.ask(path, method)
    for version in ("v1", "v2"):
        s.ask(SCALERS % version + "?watch=1&timeoutSeconds=1")
        s.ask(SCALERS % version + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true"
                                  "&resourceVersionMatch=NotOlderThan")
    s.ask(MAPS + "/m", "DELETE")
    s.ask(SCALERS % "v2", "DELETE")


def test_the_exposition_is_well_formed(case):
    s = case.start()
    before = scrape(s)
    make_traffic(s)
    after = scrape(s)
    check(set(before) <= set(after), "a family went away")
    check(len(after) > 60, f"there are {len(after)} families")
    objects = after["apiserver_resource_objects"].samples
    key = ("apiserver_resource_objects", (("group", "autoscaling"), ("resource", "horizontalpodautoscalers")))
    equal(objects[key], 0, "autoscalers left")
    requests = after["apiserver_request_total"].samples
    equal(sum(v for (_, found), v in requests.items() if dict(found)["resource"] == "horizontalpodautoscalers"
              and dict(found)["verb"] == "POST"), 2, "creations of autoscalers")
    for name, family in before.items():
        if family.type == "counter":
            for series, value in family.samples.items():
                check(after[name].samples.get(series, -1) >= value, f"the counter {series} went back")


def test_the_exposition_is_well_formed_under_load(case):
    """A scrape is no snapshot; histograms add up all the same."""
    s = case.start()
    stop = threading.Event()

    def load():
        n = 0
        while not stop.is_set():
            s.ask(f"{MAPS}?limit={n % 7}")
            n += 1
    loads = [threading.Thread(target=load) for _ in range(2)]
    for t in loads:
        t.start()
    try:
        for _ in range(10):
            scrape(s)
        wait_for("requests to be counted", lambda: sum(scrape(s)["apiserver_request_total"].samples.values()) > 20)
    finally:
        stop.set()
        for t in loads:
            t.join()


if __name__ == "__main__":
    main(sys.modules[__name__])
