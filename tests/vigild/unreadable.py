"""unreadable.py - one record of the store that does not read back costs its object and nothing else.

Bits are flipped in data.mdb while no server runs. The records are found by their keys, and each one is known by its
checksum, so that a flip changes what is meant to be changed."""
import json
import struct
import sys

from vigild import check, equal, has, main, wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
IGNORE = "ignoreStoreReadErrorWithClusterBreakingPotential=true"
HEAD = struct.Struct("<IIIHBBII6QQ")  # struct encoded of src/server/storage/record.c

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


class Record:
    def __init__(self, at, key_len, header_len, value_len, rev):
        self.at, self.rev = at, rev
        self.key = at + HEAD.size
        self.value = self.key + key_len + header_len
        self.end = self.value + value_len


def records(path, key):
    """The records of a key in a data file, oldest first; LMDB may keep older copies of a page."""
    with open(path, "rb") as f:
        data = f.read()
    found, at, key = [], -1, key.encode()
    while (at := data.find(key, at + 1)) >= 0:
        start = at - HEAD.size
        if start < 0:
            continue
        crc, header_len, value_len, key_len, *rest = HEAD.unpack_from(data, start)
        end = at + key_len + header_len + value_len
        if key_len == len(key) and end <= len(data) and crc32c(data[start + 4:end]) == crc:
            found.append(Record(start, key_len, header_len, value_len, rest[4]))
    return sorted(found, key=lambda r: r.rev)


def flip(path, where):
    with open(path, "r+b") as f:
        for at in where:
            f.seek(at)
            byte = f.read(1)[0]
            f.seek(at)
            f.write(bytes([byte ^ 0x10]))


def put(v, path, name, **data):
    """Create or replace; its resource version."""
    body = {"metadata": {"name": name}, "data": data}
    a = v.ask(path, "POST", body=body)
    if a.status == 409:
        a = v.ask(f"{path}/{name}", "PUT", body=body)
    check(a.status in (200, 201), a.text)
    return int(a.json["metadata"]["resourceVersion"])


def names(v, path):
    a = v.ask(path)
    equal(a.status, 200, f"status of {path}: {a.text}")
    return sorted(o["metadata"]["name"] for o in a.json["items"])


def metric(v, name):
    for line in v.ask("/metrics").text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise AssertionError(f"no metric {name}")


def damage(case, key, which=lambda r, newest: r.rev == newest, where=lambda r: r.value + 3):
    """Flip a bit in those records of a key; how many there were."""
    path = case.path("data/store/data.mdb")
    all_of_key = records(path, key)
    check(all_of_key, f"no record of {key}")
    chosen = [r for r in all_of_key if which(r, all_of_key[-1].rev)]
    check(chosen, f"no such record of {key}")
    flip(path, [where(r) for r in chosen])
    return len(chosen)


def watch(v, path, since):
    """What a watch of a second brings, or the status that refuses it."""
    a = v.ask(f"{path}?watch=1&resourceVersion={since}&timeoutSeconds=1")
    return [json.loads(line) for line in a.text.splitlines()]


def expect_one_lost(v, key):
    """The object of this key cannot be read; everything else is served."""
    for path in (CONFIGMAPS, "/api/v1/configmaps", CONFIGMAPS + "?limit=1", CONFIGMAPS + "/bad"):
        a = v.ask(path)
        equal(a.status, 500, f"status of {path}: {a.text}")
        has(a.json["message"], key)
    equal(v.ask(CONFIGMAPS + "/good").status, 200)
    equal(names(v, SECRETS), ["one"])
    equal(names(v, "/api/v1/namespaces/kube-system/configmaps"), [])
    check("default" in names(v, "/api/v1/namespaces"), "namespaces are there")
    equal(v.ask("/readyz").status, 200)
    put(v, CONFIGMAPS, "new", a="b")
    a = v.ask(CONFIGMAPS + "/bad", "DELETE")
    equal(a.status, 500, f"a delete without the option: {a.text}")
    has(v.stderr(), "record_damaged")
    has(v.stderr(), key)
    has(v.stderr(), "ignoreStoreReadErrorWithClusterBreakingPotential")
    check(metric(v, "vigil_storage_damaged_records_total") >= 1, "the damage is counted")


def make(case):
    """A closed store with some objects; a revision before all of them."""
    v = case.start()
    rev = put(v, SECRETS, "one", a="MQ==")
    for name in ("good", "bad", "other"):
        put(v, CONFIGMAPS, name, text="what is kept in " + name)
    put(v, SECRETS, "one", a="Mg==")
    equal(v.end(), 0)
    return rev


def one_is_lost_and_deleted(case, where):
    rev = make(case)
    damage(case, "/registry/configmaps/default/bad", where=where)
    v = case.start()
    expect_one_lost(v, "/registry/configmaps/default/bad")
    # Watches of other kinds resume over it, and its own kind's is told to list anew, or that it cannot be read.
    equal([e["type"] for e in watch(v, SECRETS, rev)], ["MODIFIED"])
    told = watch(v, CONFIGMAPS, rev)
    check(told[0].get("code") == 500 or told[0].get("object", {}).get("code") == 410, told)
    a = v.ask(f"{CONFIGMAPS}/bad?{IGNORE}", "DELETE")
    equal(a.status, 200, a.text)
    equal(names(v, CONFIGMAPS), ["good", "new", "other"])
    equal(v.ask(CONFIGMAPS + "/bad").status, 404)
    equal(v.end(), 0)
    v = case.start()
    equal(names(v, CONFIGMAPS), ["good", "new", "other"])
    equal(v.stderr().count("record_damaged"), 1)  # of the history
    put(v, CONFIGMAPS, "bad", text="again")
    equal(v.ask(CONFIGMAPS + "/bad").json["data"], {"text": "again"})


def test_a_flipped_bit_in_a_value(case):
    one_is_lost_and_deleted(case, lambda r: r.value + 3)


def test_a_flipped_bit_in_a_key(case):
    """What the record says of its key is wrong: the index knows it."""
    one_is_lost_and_deleted(case, lambda r: r.key + 12)


def test_a_flipped_bit_in_the_lengths(case):
    one_is_lost_and_deleted(case, lambda r: r.at + 13)


def test_a_record_and_its_entry_in_the_index(case):
    """Nobody knows any more whose change that was: such a store is not served before it has been repaired."""
    make(case)
    key, path = "/registry/configmaps/default/bad", case.path("data/store/data.mdb")
    rev = records(path, key)[-1].rev
    damage(case, key, where=lambda r: r.key + 12)
    with open(path, "rb") as f:
        data = f.read()
    entry = struct.pack(">QIIQQ", rev ^ 0xFFFFFFFFFFFFFFFF, 0, 0, rev, 1)
    at = data.find(entry)
    check(at >= 0, "an entry of the index")
    with open(path, "r+b") as f:
        while at >= 0:
            f.seek(at)
            f.write(struct.pack(">Q", (rev - 1) ^ 0xFFFFFFFFFFFFFFFF))
            at = data.find(entry, at + 1)
    v = case.start(wait=False)
    check(v.process.wait(timeout=60) != 0, "the start is refused")
    has(v.stderr(), "the index of keys does not add up")
    case.servers.remove(v)


def test_a_damaged_change_of_the_past(case):
    """One that has been superseded: the state is whole, and the history ends behind it for its kind alone. Compaction
    passes over it, checkpoints go on, and so do writes and starts."""
    v = case.start()
    rev = put(v, SECRETS, "one", a="MQ==")
    revs = [put(v, CONFIGMAPS, "busy", text=f"version {i} of it") for i in range(4)]
    put(v, SECRETS, "one", a="Mg==")
    equal(v.end(), 0)
    damage(case, "/registry/configmaps/default/busy", which=lambda r, newest: r.rev in revs[1:3])
    v = case.start()
    equal(v.ask(CONFIGMAPS + "/busy").json["data"], {"text": "version 3 of it"})
    equal(names(v, CONFIGMAPS), ["busy"])
    equal([e["type"] for e in watch(v, SECRETS, rev)], ["MODIFIED"])
    equal(watch(v, CONFIGMAPS, revs[0])[-1]["object"]["code"], 410)
    put(v, CONFIGMAPS, "busy", text="version 4 of it")
    equal(v.end(), 0)

    v = case.start("--etcd-compaction-interval=1s")
    last = put(v, SECRETS, "one", a="Mw==")
    wait_for("compaction", lambda: metric(v, "vigil_storage_compacted_revision") >= last)
    checkpoints = metric(v, "vigil_storage_checkpoints_total")
    for i in range(3):
        put(v, SECRETS, "one", a="Mw==", n=str(i).zfill(4))
    wait_for("checkpoints after it", lambda: metric(v, "vigil_storage_checkpoints_total") > checkpoints)
    equal(metric(v, "vigil_storage_checkpoint_failures_total"), 0)
    equal(metric(v, "vigil_storage_compaction_failures_total"), 0)
    equal(v.ask("/readyz").status, 200)
    equal(v.ask(CONFIGMAPS + "/busy", "DELETE").status, 200)
    has(v.stderr(), "record_damaged")
    equal(v.end(), 0)
    # Nothing of it comes back to life when the newest versions are compacted away.
    v = case.start("--etcd-compaction-interval=1s")
    last = put(v, SECRETS, "one", a="NA==")
    wait_for("compaction", lambda: metric(v, "vigil_storage_compacted_revision") >= last)
    equal(names(v, CONFIGMAPS), [])
    equal(v.end(), 0)
    v = case.start()
    equal(names(v, CONFIGMAPS), [])
    equal(names(v, SECRETS), ["one"])


if __name__ == "__main__":
    main(sys.modules[__name__])
