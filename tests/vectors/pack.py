#!/usr/bin/env python3
"""pack.py FOLDER - packs recorded vectors (README.md) into the archives beside this file.
pack.py --check FOLDER - the archives hold what packing this folder gives; FOLDER is one that was unpacked.

The same files give the same archives: names are sorted, and owners, modes and times are constant. OpenAPI documents
lose their descriptions, which no test compares and which are most of their size; they are kept as NAME.json where the
recording has NAME.json.gz. Tables lose the descriptions of their columns."""
import gzip
import io
import json
import lzma
import os
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
PARTS = ("discovery", "invalid", "kinds", "patches", "rbac", "watch")


def is_left_out(name):
    """What no test reads: OpenAPI as protobuf (it is descriptions, mostly) and the list of metrics."""
    return name.endswith(".pb.gz") or name.endswith(".nohash.json.gz") or name == "discovery/metrics.json"


def without_descriptions(value, are_names=False):
    """`are_names`: the members are fields of a kind, one of which may be called description."""
    if isinstance(value, list):
        return [without_descriptions(v) for v in value]
    if not isinstance(value, dict):
        return value
    return {k: without_descriptions(v, not are_names and k in ("properties", "definitions", "schemas"))
            for k, v in value.items() if are_names or k != "description" or not isinstance(v, str)}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def table_without_descriptions(data):
    table = json.loads(data)
    if not isinstance(table, dict) or "columnDefinitions" not in table:
        return data
    for column in table["columnDefinitions"]:
        column["description"] = ""
    return compact(table)


def prepared(name, data):
    """(name in the archive, bytes)."""
    base = name.rsplit("/", 1)[1]
    if base.endswith(".json.gz"):
        name, data = name[:-3], gzip.decompress(data)
    if base.startswith("openapi_v") and name.endswith(".json"):
        data = compact(without_descriptions(json.loads(data)))
    elif base.startswith("table") and base.endswith(".json"):
        data = table_without_descriptions(data)
    return name, data


def files_of(folder, part):
    for at, folders, names in os.walk(os.path.join(folder, part)):
        folders.sort()
        for name in names:
            path = os.path.join(at, name)
            short = os.path.relpath(path, folder).replace(os.sep, "/")
            if not is_left_out(short):
                with open(path, "rb") as f:
                    yield prepared(short, f.read())


def tar_of(folder, part):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files_of(folder, part)):
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime = len(data), 0o644, 0
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def archive(part):
    return os.path.join(HERE, part + ".tar.xz")


def pack(folder):
    for part in PARTS:
        with open(archive(part), "wb") as f:
            f.write(lzma.compress(tar_of(folder, part), preset=9 | lzma.PRESET_EXTREME))
        print(f"{os.path.getsize(archive(part)):8} {part}.tar.xz")


def check(folder):
    for part in PARTS:
        with lzma.open(archive(part)) as f:
            if f.read() != tar_of(folder, part):
                sys.exit(f"{part}.tar.xz does not hold what is in {folder}/{part}")
    print(f"{len(PARTS)} archives hold what was unpacked")


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--check":
        check(sys.argv[2])
    elif len(sys.argv) == 2 and os.path.isdir(os.path.join(sys.argv[1], "kinds")):
        pack(sys.argv[1])
    else:
        sys.exit(__doc__)
