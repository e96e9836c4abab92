#!/usr/bin/env python3
"""The table of `kubectl api-resources -o wide`, out of recorded discovery documents.

usage: api_resources.py VECTORS

Prints a line per resource, in kubectl's order by name, one blank between words: name, short names,
version, namespaced, kind, verbs, categories. Only the preferred version of a group counts, and no
subresources; that is what kubectl shows.
"""
import json
import sys


def load(vectors, name):
    with open(f"{vectors}/discovery/{name}.json", encoding="utf-8") as f:
        return json.load(f)


def lists(vectors):
    yield "v1", load(vectors, "api_v1")
    for group in load(vectors, "apis")["groups"]:
        seen = set()
        for version in group["versions"]:
            at = version["groupVersion"]
            found = load(vectors, "apis_" + at.replace("/", "_"))
            found["resources"] = [r for r in found["resources"] if r["name"] not in seen]
            seen.update(r["name"] for r in found["resources"])
            yield at, found


def main():
    rows = []
    for version, found in lists(sys.argv[1]):
        for r in found["resources"]:
            if "/" in r["name"]:
                continue
            words = [r["name"], ",".join(r.get("shortNames", [])), version,
                     str(r["namespaced"]).lower(), r["kind"], ",".join(r["verbs"]),
                     ",".join(r.get("categories", []))]
            rows.append((r["name"], version, " ".join(w for w in words if w)))
    for _, __, row in sorted(rows):
        print(row)


if __name__ == "__main__":
    main()
