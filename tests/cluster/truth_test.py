#!/usr/bin/env python3
"""truth_test.py - the judge itself: each wrong is told, and nothing else."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__))))
import members  # noqa: E402,F401  (where stream.py is)
from load import Write  # noqa: E402
from truth import Truth  # noqa: E402

PREFIX = "/registry/configmaps/model/"


def value(token, tier=""):
    return f'{{"data":{{"v":"[{token}|{tier}]xx"}}}}'.encode()


# a is made at 10 and changed at 12, b made at 11 and deleted at 13.
HISTORY = [(10, PREFIX + "a", value("t0.1", "a")), (11, PREFIX + "b", value("t1.1", "b")),
           (12, PREFIX + "a", value("t0.2", "b")), (13, PREFIX + "b", None)]
STATE_12 = {"a": (12, "[t0.2|b]xx"), "b": (11, "[t1.1|b]xx")}


def write(verb, name, token, outcome, rev=0, base=None):
    w = Write(verb, name, token, "A", base)
    w.outcome, w.rev = outcome, rev
    return w


def writes(**changes):
    told = {"made_a": write("create", "a", "t0.1", "acked", 10), "made_b": write("create", "b", "t1.1", "unknown"),
            "changed_a": write("swap", "a", "t0.2", "acked", 12, base=10), "deleted_b": write("delete", "b", "t1.2", "acked")}
    return list({**told, **changes}.values())


class Eyes:
    """What a watcher saw."""

    def __init__(self, seen, matches=lambda n, t: True, start=9):
        self.seen, self.start_rev, self.error, self.ends, self.last = seen, start, None, [], 0
        self.selector = type("Selector", (), {"query": str(id(matches)), "matches": staticmethod(matches)})


ALL = [("ADDED", "a", 10, "[t0.1|a]xx"), ("ADDED", "b", 11, "[t1.1|b]xx"), ("MODIFIED", "a", 12, "[t0.2|b]xx"),
       ("DELETED", "b", 13, "[t1.1|b]xx")]
TIER_A = [("ADDED", "a", 10, "[t0.1|a]xx"), ("DELETED", "a", 12, "[t0.1|a]xx")]


def expect(want, problems):
    problems = list(problems)
    if [p[:2] for p in problems] != want:
        print(f"FAILED: expected {want}, got {problems}")
        sys.exit(1)


def main():
    t = Truth(HISTORY, PREFIX)
    expect([], t.check_writes(writes()))
    expect(["T1"], t.check_writes(writes(made_a=write("create", "a", "t0.1", "acked", 11))))
    expect(["T1"], t.check_writes(writes(lost=write("update", "a", "t0.3", "acked", 14))))
    expect(["T2"], t.check_writes(writes(made_a=write("create", "a", "t0.1", "refused"))))
    expect([], t.check_writes(writes(no=write("update", "a", "t0.3", "refused"), maybe=write("update", "a", "t0.4", "unknown"))))
    expect(["T3"], t.check_writes(writes()[1:]))
    expect(["T4"], t.check_writes(writes(changed_a=write("swap", "a", "t0.2", "acked", 12, base=9))))
    expect(["T1"], t.check_writes(writes(again=write("delete", "b", "t1.3", "acked"))))
    expect(["T1"], t.check_writes(writes(deleted_b=write("delete", "b", "t1.2", "refused"))))
    twice = Truth(HISTORY + [(14, PREFIX + "a", value("t0.1", "a"))], PREFIX)
    expect(["T1", "T3"], twice.check_writes(writes()))
    expect([], t.check_lists([("a list", 11, 12, STATE_12), ("before", 0, 9, {})]))
    expect(["T5"], t.check_lists([("an old list", 13, 12, STATE_12)]))
    expect(["T5"], t.check_lists([("a wrong list", 0, 13, STATE_12)]))
    expect([], t.check_watcher(Eyes(ALL)))
    expect([], t.check_watcher(Eyes(ALL[2:], start=11)))
    expect([], t.check_watcher(Eyes(TIER_A, lambda n, tier: tier == "a")))
    for wrong in (ALL[:3], ALL[1:], ALL + ALL[3:], [ALL[1], ALL[0], *ALL[2:]], ALL[:2] + ALL[3:]):
        expect(["T6"], t.check_watcher(Eyes(wrong)))
    print("the judge sees every wrong")


if __name__ == "__main__":
    main()
