#!/usr/bin/env python3
"""Random objects and strategic merge patches: do two programs make the same of them?

usage: compare.py SEED N THEIRS OURS

Both read {Kind, Object, Patch}, a line each, and write the object or {"err": why}. A refusal must be one on both
sides; objects must be equal, nulls and left-over directives included. The order of items is known to differ in some
patches that delete items of a list, add others and set the order: these are counted, and must be rare."""
import json
import random
import subprocess
import sys

NAMES = "abcde"
ORDERS_MAX = 0.002  # 26 of 60,000 were seen


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def maybe(self, chance):
        return self.r.random() < chance

    def some(self, make, low=0, high=4, key=None):
        """A list; with a key, of items that differ in it."""
        out = {}
        for i in range(self.r.randint(low, high)):
            item = make()
            out.setdefault(item.get(key) if key else i, item)
        return list(out.values())

    def container(self, is_patch):
        one = self.r.choice
        c = {"name": one(NAMES)}
        key = (lambda k: None) if is_patch else (lambda k: k)
        if self.maybe(.6):
            c["image"] = f"i:{self.r.randint(1, 3)}"
        if self.maybe(.3):
            c["env"] = self.some(lambda: {"name": one("XYZ"), "value": one("123")}, key=key("name"))
        if self.maybe(.3):
            c["ports"] = self.some(lambda: {"containerPort": one([80, 81, 443]), "name": one("pq")},
                                   key=key("containerPort"))
        if self.maybe(.3):
            c["command"] = self.some(lambda: one("uvw"))
        if self.maybe(.2):
            c["securityContext"] = {"privileged": self.maybe(.5)}
        if is_patch:
            self.direct_container(c)
        return c

    def direct_container(self, c):
        one = self.r.choice
        if self.maybe(.08):
            c["$patch"] = one(["delete", "replace", "merge", "x", 1])
        if self.maybe(.05):
            c.pop("name", None)
        if self.maybe(.15):
            c[one(["image", "env", "ports", "securityContext"])] = None
        if self.maybe(.1):
            fields = ["name", "image", "env", "ports", "command"]
            c["$retainKeys"] = self.r.sample(fields, self.r.randint(1, 5))
        if self.maybe(.1):
            c["$setElementOrder/env"] = [{"name": x} for x in self.r.sample("XYZ", self.r.randint(0, 3))]
        if self.maybe(.05) and c.get("securityContext"):
            c["securityContext"]["$patch"] = one(["replace", "delete"])
        if c.get("env") and self.maybe(.2):
            one(c["env"])["$patch"] = "delete"

    def meta(self, is_patch):
        one = self.r.choice
        finalizer = lambda: "f/" + one("abcd")
        m = {}
        if self.maybe(.5):
            m["labels"] = {one("klm"): one("12") for _ in range(3)}
        if self.maybe(.5):
            m["finalizers"] = self.some(finalizer)
            if not is_patch:
                m["finalizers"] = list(dict.fromkeys(m["finalizers"]))
        if self.maybe(.3):
            m["ownerReferences"] = self.some(lambda: {"uid": one("123"), "name": one("xy")},
                                             key=None if is_patch else "uid")
        if is_patch:
            self.direct_meta(m, finalizer)
        return m

    def direct_meta(self, m, finalizer):
        one = self.r.choice
        if self.maybe(.2) and "finalizers" not in m:
            m["$deleteFromPrimitiveList/finalizers"] = self.some(finalizer)
        if self.maybe(.2):
            order = self.some(finalizer) + (m.get("finalizers", []) if self.maybe(.8) else [])
            m["$setElementOrder/finalizers"] = list(dict.fromkeys(order))
        if self.maybe(.1):
            m["labels"] = None
        if m.get("labels") and self.maybe(.2):
            m["labels"][one("klm")] = None
        if m.get("labels") and self.maybe(.1):
            m["labels"]["$patch"] = one(["replace", "delete"])

    def pod(self, is_patch):
        one = self.r.choice
        key = None if is_patch else "name"
        s = {}
        if self.maybe(.8) or not is_patch:
            s["containers"] = self.some(lambda: self.container(is_patch), 0 if is_patch else 1, 4,
                                        None if is_patch and self.maybe(.2) else "name")
        if self.maybe(.3):
            s["volumes"] = self.some(lambda: {"name": one(NAMES), one(["emptyDir", "hostPath"]): {}}, key=key)
        if self.maybe(.3):
            s["tolerations"] = self.some(lambda: {"key": one("xy")})
        if self.maybe(.3):
            s["imagePullSecrets"] = self.some(lambda: {"name": one("xyz")}, key=key)
        if is_patch:
            self.direct_pod(s)
        return s

    def direct_pod(self, s):
        if self.maybe(.3):
            order = [c.get("name", "zz") for c in s.get("containers", [])]
            order += self.r.sample(NAMES, 2) if self.maybe(.5) else []
            if self.maybe(.2):
                self.r.shuffle(order)
            s["$setElementOrder/containers"] = [{"name": x} for x in dict.fromkeys(order)]
        if self.maybe(.1) and s.get("containers"):
            s["containers"].append({"$patch": "replace"})
        if self.maybe(.05):
            s["volumes"] = None

    def request(self):
        if self.maybe(.5):
            return {"Kind": "Pod", "Object": {"metadata": self.meta(False), "spec": self.pod(False)},
                    "Patch": {"metadata": self.meta(True), "spec": self.pod(True)}}
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
        template = {"metadata": self.meta(False), "spec": self.pod(False)}
        patch = {"template": {"metadata": self.meta(True), "spec": self.pod(True)}}
        if self.maybe(.2):
            patch["strategy"] = {"$retainKeys": ["type"], "type": "Recreate"}
        return {"Kind": "Deployment",
                "Object": {"metadata": self.meta(False), "spec": {"strategy": strategy, "template": template}},
                "Patch": {"metadata": self.meta(True), "spec": patch}}


def unordered(v):
    if isinstance(v, dict):
        return {k: unordered(x) for k, x in v.items()}
    return sorted((json.dumps(unordered(x), sort_keys=True) for x in v)) if isinstance(v, list) else v


def run(program, text):
    out = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def main():
    seed, n, theirs, ours = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    maker = Maker(seed)
    requests = [maker.request() for _ in range(n)]
    text = "".join(json.dumps(r) + "\n" for r in requests)
    refused = orders = differ = 0
    for request, want, got in zip(requests, run(theirs, text), run(ours, text), strict=True):
        refused += "err" in want
        if want == got or "err" in want and "err" in got:
            continue
        if unordered(want) == unordered(got):
            orders += 1
            continue
        differ += 1
        if differ <= 5:
            print(json.dumps(request), f"\n  want {json.dumps(want)}\n  got  {json.dumps(got)}")
    print(f"seed {seed}: {n} patches, {refused} refused, {orders} in another order, {differ} differ")
    return int(differ > 0 or orders > max(3, ORDERS_MAX * n))


if __name__ == "__main__":
    sys.exit(main())
