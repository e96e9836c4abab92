#!/usr/bin/env python3
"""Create the recorded examples of every kind on a server: are they defaulted and printed as by the original?

usage: replay_kinds.py SERVER VECTORS [--show N] [--only TEXT]

SERVER and VECTORS are as for replay.py. Each example's request is sent; the answer must have the
recorded status, and be the recorded object, member by member and in the same order, but for what a
server chooses (`volatile` of its meta.json); the same for its status where one was
written. Kinds that are asked and not stored (ASKED) are asked. Protobuf is compared by proto_vectors_test. What differs must be in EXPECTED.
"""
import glob
import json
import os
import subprocess
import sys

from replay import Client, clean_up, make_namespace, normal

# What is not built yet, and what it is that differs.
EXPECTED = {
    "core_v1_ComponentStatus/list": "there is no scheduler and no controller manager to be asked",
}
ASKED = ("authentication.k8s.io_v1_SelfSubjectReview", "authentication.k8s.io_v1_TokenReview",
         "authorization.k8s.io_v1_", "core_v1_ComponentStatus")


def examples(vectors, only):
    for path in sorted(glob.glob(vectors + "/kinds/*/*/object.pb")):
        folder = os.path.dirname(path)
        kind, example = folder.split("/")[-2:]
        if kind.startswith("vec.") or only not in f"{kind}/{example}":
            continue
        yield kind, example, folder


def calls(vectors, only):
    for path in sorted(glob.glob(vectors + "/kinds/*/*/meta.json")):
        folder = os.path.dirname(path)
        kind, example = folder.split("/")[-2:]
        if kind.startswith(ASKED) and only in f"{kind}/{example}":
            yield kind, example, folder


def run_call(client, folder):
    """What differs, or None."""
    meta = load(folder, "meta.json")
    want = without(load(folder, "response.json"), meta.get("volatile", []))
    body = None if meta["method"] == "GET" else load(folder, "request.json")
    status, _, got = client.send(meta["method"], meta["path"], meta.get("request_headers"), body)
    got = without(got, meta.get("volatile", [])) if isinstance(got, dict) else got
    if status == meta["status"] and text(got) == text(want):
        return None
    return (f"{meta['method']} {meta['path']}", f"{meta['status']} {text(want)}", f"{status} {text(got)}")


def load(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as f:
        return json.load(f)


def without(v, pointers):
    """v without the values that the server chose."""
    v = no_generated_name(normal(v))
    for pointer in pointers:
        at, steps = v, pointer.strip("/").split("/")
        try:
            for s in steps[:-1]:
                at = at[int(s)] if isinstance(at, list) else at[s.replace("~1", "/")]
            last = steps[-1].replace("~1", "/")
            at[int(last) if isinstance(at, list) else last] = "<chosen>"
        except (KeyError, IndexError, TypeError, ValueError):
            pass
    return v


def no_generated_name(v):
    """A generated name says nothing, but for its beginning."""
    meta = v.get("metadata") if isinstance(v, dict) else None
    if isinstance(meta, dict) and meta.get("generateName"):
        meta["name"] = meta["generateName"] + "<generated>"
    return v


def text(v):
    return json.dumps(v)  # the order of members counts


def run(client, kind, folder):
    """What differs, or None."""
    meta = load(folder, "meta.json")
    want = without(load(folder, "response.json"), meta.get("volatile", []))
    status, _, got = client.send(meta["method"], meta["path"], meta.get("request_headers"),
                                 load(folder, "request.json"))
    why = None
    got = without(got, meta.get("volatile", [])) if isinstance(got, dict) else got
    if status != meta["status"] or text(got) != text(want):
        why = (f"{meta['method']} {meta['path']}", f"{meta['status']} {text(want)}", f"{status} {text(got)}")
    if os.path.exists(os.path.join(folder, "status-patch.json")) and not why:
        how = meta.get("status_patch", {})
        path = how.get("path") or meta["object_path"] + "/status"
        status, _, got = client.send("PATCH", path, {"Content-Type": "application/merge-patch+json"},
                                     load(folder, "status-patch.json"))
        want = without(load(folder, "status-response.json"), meta.get("volatile", []))
        got = without(got, meta.get("volatile", [])) if isinstance(got, dict) else got
        if text(got) != text(want):
            why = (f"PATCH {path}", text(want), text(got))
    clean_up(client, [meta["object_path"]])
    return why


def replay_all(replay, at_least):
    """The main of a script: replay(client, vectors, only) returns what to say at the end, given how many
    differ, what differs as (name, (what, want, got)), and how many agree. Fewer than `at_least` that agree are a failure."""
    args = sys.argv[1:]
    show = int(args[args.index("--show") + 1]) if "--show" in args else 20
    only = args[args.index("--only") + 1] if "--only" in args else ""
    vectors = os.environ.get("VG_VECTORS", args[1])
    server = subprocess.Popen([args[0]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    client = Client(int(server.stdout.readline().split()[1]))
    for ns in ("vec-kinds", "vec-limits", "default", "kube-system"):
        make_namespace(client, ns)
    summary, failures, same = replay(client, vectors, only)
    server.stdin.close()
    server.wait()
    for name, (what, want, got) in failures[:show]:
        i = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), 0)
        print(f"--- {name}: {what}\n  want ...{want[max(0, i - 80):i + 200]}\n  got  ...{got[max(0, i - 80):i + 200]}")
    print(summary(len(failures)))
    return 1 if failures or (not only and same < at_least) else 0


def replay_kinds(client, vectors, only):
    same, failures, expected = 0, [], 0
    found = [(kind, example, run(client, kind, folder)) for kind, example, folder in examples(vectors, only)]
    found += [(kind, example, run_call(client, folder)) for kind, example, folder in calls(vectors, only)]
    for kind, example, why in found:
        if not why:
            same += 1
        elif kind in EXPECTED or f"{kind}/{example}" in EXPECTED:
            expected += 1
        else:
            failures.append((f"{kind}/{example}", why))
    return lambda n: f"{same} examples agree, {expected} are expected to differ, {n} differ", failures, same


if __name__ == "__main__":
    sys.exit(replay_all(replay_kinds, at_least=165))
