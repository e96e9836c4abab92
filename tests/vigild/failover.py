"""failover.py <vigild> - two servers on one etcd (VG_VIGILD_ETCD): one of them runs the controllers. When it is killed
the other goes on with its work, and one that stood still for longer than its lease does nothing when it wakes."""
import re
import signal
import sys

from vigild import Vigild, check, equal, main, wait_for

# A machine that is busy may keep a leader from renewing for two thirds of it: then leadership moves by itself, which
# the tests allow for. What they do not allow is that anything is done twice, or not at all.
LEASE_S = 6
FLAGS = ("--controllers=*", f"--leader-elect-lease-duration={LEASE_S}s")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/vigild-controllers"


def leads(v):
    """By what it says itself."""
    said = re.findall(r"lease_(taken|lost)", v.stderr())
    return bool(said) and said[-1] == "taken"


def start_two(case):
    a = case.start(*FLAGS, data="a")
    b = Vigild(case.binary, case.path("b"), "--etcd-servers", case.etcds["a"].url, *FLAGS)
    case.servers.append(b)
    return a, b


def find_leader(*servers):
    """The leader, and the other."""
    wait_for("one leads", lambda: sum(leads(v) for v in servers) == 1)
    return sorted(servers, key=leads, reverse=True)


def asked(*servers):
    """How many service accounts their controllers have asked for, by the code of the answer."""
    found = {}
    for v in servers:
        for line in v.ask("/metrics").text.splitlines():
            if line.startswith("apiserver_request_total{") and 'resource="serviceaccounts"' in line and \
                    'verb="POST"' in line:
                code = re.search(r'code="(\d+)"', line).group(1)
                found[code] = found.get(code, 0) + int(float(line.rsplit(" ", 1)[1]))
    return found


def make_namespace(v, name):
    equal(v.ask("/api/v1/namespaces", "POST", body={"metadata": {"name": name}}).status, 201)


def wait_done(v):
    """Until the controllers have done their part in every namespace; how many there are."""
    names = [o["metadata"]["name"] for o in v.ask("/api/v1/namespaces").json["items"]]
    for name in names:
        wait_for(name, lambda name=name: v.ask(f"/api/v1/namespaces/{name}/serviceaccounts/default").status == 200)
    return len(names)


def test_another_takes_over_after_a_kill(case):
    leader, other = find_leader(*start_two(case))
    make_namespace(other, "one")
    n = wait_done(other)
    equal(asked(leader, other), {"201": n}, "what was done")
    leader, other = find_leader(leader, other)
    did = asked(other).get("201", 0)
    lease = other.ask(LEASE).json["spec"]
    leader.kill()
    make_namespace(other, "two")
    wait_for("the other leads", lambda: leads(other))
    make_namespace(other, "three")
    equal(wait_done(other), n + 2)
    equal(asked(other), {"201": did + 2}, "what was left to do, once each")
    now = other.ask(LEASE).json["spec"]
    check(now["holderIdentity"] != lease["holderIdentity"], "it has another holder")
    equal(now["leaseTransitions"], lease["leaseTransitions"] + 1)


def test_who_stood_still_does_nothing_twice(case):
    leader, other = find_leader(*start_two(case))
    make_namespace(other, "one")
    wait_done(other)
    leader, other = find_leader(leader, other)
    leader.send(signal.SIGSTOP)
    wait_for("the other leads", lambda: leads(other))
    make_namespace(other, "two")
    wait_done(other)
    leader.send(signal.SIGCONT)
    find_leader(leader, other)  # the first has noticed
    make_namespace(other, "three")
    n = wait_done(other)
    equal(asked(leader, other), {"201": n}, "what was done")


if __name__ == "__main__":
    main(sys.modules[__name__])
