#!/usr/bin/env python3
"""Create the recorded examples of every kind on a server: does it show them in tables as the original does?

usage: replay_tables.py SERVER VECTORS [--show N] [--only TEXT]

SERVER and VECTORS are as for replay.py. Each example's request is sent, and what was recorded of it as Table
is asked for: alone, in a list, in a list without objects; the same after its status was written. Compared
are columns (but for their descriptions, which are ours), cells and objects, but for what a server chooses,
managedFields and ages.
"""
import json
import os
import re
import sys
import urllib.parse

from replay import clean_up, normal
from replay_kinds import examples, load, replay_all

TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
AGE = re.compile(r"\b\d+[smhdy](\d+[smhd])?\b")
# Cells that show what a server chooses, by kind and column; they are there, and that is all that is asked for.
CHOSEN = {
    "core_v1_Service": ("Cluster-IP", "Port(s)"),
    "certificates.k8s.io_v1_CertificateSigningRequest": ("Requestor",),
    # Conditions of its status are the aggregator's.
    "apiregistration.k8s.io_v1_APIService": ("Available",),
}
# Jobs by their uid, maps by a generated name.
GENERATED = re.compile(r"(vec-gen-)[a-z0-9]{5}")


def without_managers(v):
    """Controllers of the recorded server own fields too."""
    if isinstance(v, dict):
        return {k: without_managers(x) for k, x in v.items() if k != "managedFields"}
    return [without_managers(x) for x in v] if isinstance(v, list) else v


def look(kind, table):
    """What is compared of a Table."""
    if not isinstance(table, dict) or table.get("kind") != "Table":
        return table
    table = without_managers(normal(table))
    columns = table["columnDefinitions"]
    for column in columns:
        column["description"] = "<ours>"
    for row in table["rows"]:
        for i, cell in enumerate(row["cells"]):
            name = columns[i]["name"] if i < len(columns) else ""
            if isinstance(cell, str):
                cell = AGE.sub("<age>", GENERATED.sub(r"\1<generated>", cell))
            row["cells"][i] = "<chosen>" if name in CHOSEN.get(kind, ()) else cell
        meta = (row.get("object") or {}).get("metadata") or {}
        if "name" in meta:
            meta["name"] = GENERATED.sub(r"\1<generated>", meta["name"])
        # Which the original has only in the version that is stored, and not where tables are made.
        meta.get("annotations", {}).pop("deprecated.daemonset.template.generation", None)
        if not meta.get("annotations", True):
            del meta["annotations"]
    return table


def views(client, kind, folder, path, name):
    """Pairs of what was asked for, what is wanted and what came."""
    collection = path.rsplit("/", 1)[0]
    pin = "?fieldSelector=" + urllib.parse.quote("metadata.name=" + name)
    for file, ask in (("table.json", path), ("table-list.json", collection + pin),
                      ("table-list-noobject.json", collection + pin + "&includeObject=None")):
        want = look(kind, load(folder, file))
        _, _, got = client.send("GET", ask, TABLE)
        yield ask, want, look(kind, got)


def run(client, kind, folder):
    """What differs, as (what, want, got), or None; and how many views were compared."""
    meta, n, why = load(folder, "meta.json"), 0, None
    _, _, made = client.send(meta["method"], meta["path"], meta.get("request_headers"), load(folder, "request.json"))
    name = made["metadata"]["name"]
    path = meta["object_path"].rsplit("/", 1)[0] + "/" + name
    folders = [folder]
    if os.path.isdir(os.path.join(folder, "after-status")):
        folders.append(os.path.join(folder, "after-status"))
    for at in folders:
        if at != folder:
            how = meta.get("status_patch", {}).get("path") or path + "/status"
            client.send("PATCH", how, {"Content-Type": "application/merge-patch+json"},
                        load(folder, "status-patch.json"))
        for what, want, got in views(client, kind, at, path, name):
            n += 1
            if json.dumps(want) != json.dumps(got) and not why:
                why = (what, json.dumps(want), json.dumps(got))
    clean_up(client, [path])
    return why, n


def replay_tables(client, vectors, only):
    same, failures = 0, []
    for kind, example, folder in examples(vectors, only):
        why, n = run(client, kind, folder)
        same += n if not why else 0
        if why:
            failures.append((f"{kind}/{example}", why))
    return lambda n: f"{same} tables agree, {n} examples differ", failures, same


if __name__ == "__main__":
    sys.exit(replay_all(replay_tables, at_least=540))
