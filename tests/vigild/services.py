"""services.py <vigild> - cluster addresses and ports of nodes: given once, given back, through kills, by
several writers at a time, of both families."""
import sys
import threading

from vigild import check, equal, has, main

SERVICES = "/api/v1/namespaces/default/services"
ADDRESSES = "/apis/networking.k8s.io/v1/ipaddresses"
MERGE = {"Content-Type": "application/merge-patch+json"}


def make(v, name, status=201, **spec):
    a = v.ask(SERVICES, "POST", body={"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}})
    equal(a.status, status, a.body)
    return a.json.get("spec", a.json)


def patch(v, name, status=200, **spec):
    import json  # pylint: disable=import-outside-toplevel
    a = v.ask(f"{SERVICES}/{name}", "PATCH", body=json.dumps({"spec": spec}), headers=MERGE)
    equal(a.status, status, a.body)
    return a.json.get("spec", a.json)


def delete(v, name):
    equal(v.ask(f"{SERVICES}/{name}", "DELETE").status, 200)


def addresses(v):
    return {o["metadata"]["name"]: o["spec"]["parentRef"]["name"] for o in v.ask(ADDRESSES).json["items"]}


def test_an_address_of_its_own(case):
    v = case.start()
    specs = {n: make(v, n) for n in ("a", "b", "c")}
    for s in specs.values():
        equal([s["clusterIPs"], s["ipFamilies"], s["ipFamilyPolicy"]], [[s["clusterIP"]], ["IPv4"], "SingleStack"])
        check(s["clusterIP"].startswith("10.0.0."), s)
    equal(addresses(v), {s["clusterIP"]: n for n, s in specs.items()})
    a = v.ask(f"{ADDRESSES}/{specs['a']['clusterIP']}").json
    equal(a["metadata"]["labels"], {"ipaddress.kubernetes.io/ip-family": "IPv4",
                                    "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"})
    equal(a["spec"], {"parentRef": {"resource": "services", "namespace": "default", "name": "a"}})
    delete(v, "a")
    check(specs["a"]["clusterIP"] not in addresses(v), "given back")


def test_one_that_is_asked_for(case):
    v = case.start()
    equal(make(v, "a", clusterIP="10.0.0.77")["clusterIPs"], ["10.0.0.77"])
    has(make(v, "b", 422, clusterIP="10.0.0.77")["message"],
        'spec.clusterIPs: Invalid value: ["10.0.0.77"]: failed to allocate IP 10.0.0.77: provided IP is already '
        'allocated')
    has(make(v, "b", 422, clusterIP="192.168.1.1")["message"], "does not match the current range")
    delete(v, "a")
    make(v, "b", clusterIP="10.0.0.77")


def test_headless_and_named_take_none(case):
    v = case.start()
    s = make(v, "headless", clusterIP="None", selector={"a": "b"})
    equal([s["clusterIPs"], s["ipFamilies"], s["ipFamilyPolicy"]], [["None"], ["IPv4"], "SingleStack"])
    s = make(v, "loose", clusterIP="None")
    equal([s["ipFamilies"], s["ipFamilyPolicy"]], [["IPv4", "IPv6"], "RequireDualStack"])
    s = make(v, "named", type="ExternalName", externalName="example.com")
    check("clusterIP" not in s and "ipFamilies" not in s, s)
    equal(addresses(v), {})


def test_changes_of_type(case):
    v = case.start()
    s = make(v, "a", type="NodePort")
    port, ip = s["ports"][0]["nodePort"], s["clusterIP"]
    check(30000 <= port <= 32767, port)
    s = patch(v, "a", type="ClusterIP")
    check("nodePort" not in s["ports"][0] and s["clusterIP"] == ip, s)
    make(v, "b", type="NodePort", ports=[{"port": 1, "nodePort": port}])  # it is free again
    patch(v, "a", type="ExternalName", externalName="example.com")
    equal(addresses(v), {v.ask(SERVICES + "/b").json["spec"]["clusterIP"]: "b"})
    s = patch(v, "a", type="LoadBalancer", externalName=None)
    check(s["clusterIP"] in addresses(v) and s["ports"][0]["nodePort"] != port, s)


def test_ports_of_nodes(case):
    v = case.start()
    s = make(v, "a", type="NodePort", ports=[{"name": "t", "port": 53}, {"name": "u", "port": 53, "protocol": "UDP"},
                                             {"name": "x", "port": 80, "nodePort": 30080}])
    t, u, x = (p["nodePort"] for p in s["ports"])
    check(t == u and x == 30080 and t != x, s)  # a port number is one door, whatever comes through it
    has(make(v, "b", 422, type="NodePort", ports=[{"port": 1, "nodePort": 30080}])["message"],
        "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated")
    has(make(v, "b", 422, type="NodePort", ports=[{"port": 1, "nodePort": 80}])["message"],
        "provided port is not in the valid range. The range of valid ports is 30000-32767")
    s = patch(v, "a", ports=[{"name": "x", "port": 80, "nodePort": 30080}, {"name": "y", "port": 81}])
    check(s["ports"][1]["nodePort"] not in (None, 30080), s)
    make(v, "b", type="NodePort", ports=[{"port": 1, "nodePort": t}])  # what is no longer used
    s = make(v, "lb", type="LoadBalancer", externalTrafficPolicy="Local")
    check(s["healthCheckNodePort"] != s["ports"][0]["nodePort"], s)
    s = make(v, "plain", type="LoadBalancer", allocateLoadBalancerNodePorts=False)
    check("nodePort" not in s["ports"][0], s)


def test_a_refused_service_takes_nothing(case):
    v = case.start()
    make(v, "a", 422, type="NodePort", ports=[{"port": 1, "nodePort": 30001}, {"port": 0}])
    v.ask(SERVICES + "?dryRun=All", "POST", body={"metadata": {"name": "dry"}, "spec": {
        "type": "NodePort", "ports": [{"port": 1, "nodePort": 30001}]}})
    equal(addresses(v), {})
    make(v, "b", type="NodePort", ports=[{"port": 1, "nodePort": 30001}])


def test_a_full_range(case):
    v = case.start("--service-cluster-ip-range=10.9.0.0/28", "--service-node-port-range=31000-31001")
    got = {make(v, f"s{i}")["clusterIP"] for i in range(14)}
    equal(got, {f"10.9.0.{i}" for i in range(1, 15)})
    has(make(v, "more", 500)["message"], "range 10.9.0.0/28 is full")
    delete(v, "s3")
    make(v, "more")
    delete(v, "s4")
    delete(v, "s5")
    equal(len({make(v, f"p{i}", type="NodePort")["ports"][0]["nodePort"] for i in range(2)}), 2)
    delete(v, "s6")
    has(make(v, "p2", 500, type="NodePort")["message"], "failed to allocate a nodePort")


def test_two_families(case):
    v = case.start("--service-cluster-ip-range=10.9.0.0/24,fd00:9::/112")
    s = make(v, "both", ipFamilyPolicy="RequireDualStack")
    equal(s["ipFamilies"], ["IPv4", "IPv6"])
    check(s["clusterIPs"][1].startswith("fd00:9::"), s)
    equal(set(addresses(v)), set(s["clusterIPs"]))
    s = patch(v, "both", ipFamilyPolicy="SingleStack")
    equal([s["clusterIPs"], s["ipFamilies"]], [[s["clusterIP"]], ["IPv4"]])
    equal(set(addresses(v)), {s["clusterIP"]})
    s = patch(v, "both", ipFamilyPolicy="PreferDualStack")
    equal([len(s["clusterIPs"]), len(addresses(v))], [2, 2])
    s = make(v, "six", ipFamilies=["IPv6"])
    check(s["clusterIP"].startswith("fd00:9::"), s)
    has(case.start(data="other").ask(SERVICES, "POST", body={"metadata": {"name": "x"}, "spec": {
        "ports": [{"port": 1}], "ipFamilyPolicy": "RequireDualStack"}}).json["message"],
        "this cluster is not configured for dual-stack services")


def test_many_at_a_time_and_through_a_kill(case):
    v = case.start("--service-cluster-ip-range=10.9.0.0/24", "--service-node-port-range=31000-31099")
    made = []

    def work(n):
        for i in range(10):
            made.append(make(v, f"w{n}-{i}", type="NodePort"))
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    equal(len(made), 80)
    equal(len({s["clusterIP"] for s in made}), 80, "addresses")
    equal(len({s["ports"][0]["nodePort"] for s in made}), 80, "ports")
    v.kill()
    v = case.start("--service-cluster-ip-range=10.9.0.0/24", "--service-node-port-range=31000-31099")
    equal(len(addresses(v)), 80)
    more = [make(v, f"m{i}", type="NodePort") for i in range(20)]
    equal(len({s["ports"][0]["nodePort"] for s in made + more}), 100, "ports, with those after the kill")


if __name__ == "__main__":
    main(sys.modules[__name__])
