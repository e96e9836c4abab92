#!/usr/bin/env python3
"""A small and a large valid object of every kind, out of the kinds' fixtures, one JSON per line.

usage: examples.py

Of the records that are created and found valid the shortest and the longest are taken. Names are made
unique where the kind leaves them free.
"""
import glob
import json
import os

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "kinds", "fixtures")
# Names that follow from the rest of the object.
NAMED = {"CustomResourceDefinition", "APIService", "IPAddress", "CertificateSigningRequest"}


def main():
    valid = {}
    for path in sorted(glob.glob(FIXTURES + "/*.jsonl")):
        with open(path, encoding="utf-8") as f:
            for line in f:
                record = json.loads(line) if line.strip() and not line.startswith("#") else None
                if record and not record.get("want") and "old" not in record:
                    o = record["object"]
                    valid.setdefault((o["apiVersion"], o["kind"]), []).append(o)
    for (_, kind), objects in sorted(valid.items()):
        objects.sort(key=lambda o: len(json.dumps(o)))
        for which, o in (("small", objects[0]), ("large", objects[-1])):
            meta = o.setdefault("metadata", {})
            meta.pop("namespace", None)
            meta.pop("uid", None)
            if kind not in NAMED and not kind.endswith("Review"):
                meta["name"] = f"{which}-{kind.lower()}"
            # What names the object's own namespace.
            for about in (o.get("involvedObject"), o.get("regarding"),
                          (o.get("spec") or {}).get("resourceAttributes")):
                if about and about.get("namespace"):
                    about["namespace"] = "default"
            print(json.dumps(o))


if __name__ == "__main__":
    main()
