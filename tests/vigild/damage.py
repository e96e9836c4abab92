"""damage.py - stores of the real vigild, damaged at random in every way that a disk or a hand can do it, against a model
of what was acknowledged. Each damage must be refused with a reason, or do no harm; after vigil-store repair the server
starts, and what is missing then is what the repair said.

    damage.py path/to/vigild path/to/vigil-store [test_name ...]

VG_SEED chooses the damages, VG_DAMAGES how many; VG_LONG=1 makes 1,000."""
import json
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import time

import vigild
from vigild import LIMIT_S, Failed, Vigild, check, check_faults, equal, has, wait_for

STORE_TOOL = ""
READY_S = 30
FILES = ("data.mdb", "wal-0", "wal-1", "durable", "reserve", "data.mdb-lock", "lock")
WEIGHTS = (10, 4, 4, 2, 1, 1, 1)
BLOCK = 4096
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


# ---- the model ----

class Model:
    """What was acknowledged: the objects that are there, and those that are not."""

    def __init__(self):
        self.objects = {}  # name -> (resourceVersion, data)
        self.gone = {}  # name -> a revision not below that of its delete

    def put(self, server, connection, name, size):
        body = {"metadata": {"name": name}, "data": {"name": name, "fill": name[-1] * size}}
        known = name in self.objects
        answer = vigild.ask_on(connection, CONFIGMAPS + (f"/{name}" if known else ""), "PUT" if known else "POST", body)
        check(answer.status in (200, 201), answer.text)
        self.objects[name] = (int(answer.json["metadata"]["resourceVersion"]), answer.json["data"])
        self.gone.pop(name, None)

    def delete(self, server, connection, name):
        equal(vigild.ask_on(connection, f"{CONFIGMAPS}/{name}", "DELETE").status, 200)
        del self.objects[name]
        listed = vigild.ask_on(connection, f"{CONFIGMAPS}?limit=1").json
        self.gone[name] = int(listed["metadata"]["resourceVersion"])


def write_some(server, model, prefix, n):
    connection = server.connect(server.admin())
    for i in range(n):
        model.put(server, connection, f"{prefix}-{i:03}", (20, 300, 1500, 3000, 9000)[i % 5])
    for i in range(0, n, 7):
        model.put(server, connection, f"{prefix}-{i:03}", 700)
    for i in range(3, n, 11):
        model.delete(server, connection, f"{prefix}-{i:03}")
    connection.close()


def make_stores(case):
    """One that was closed and one whose server was killed: half of it is in data.mdb, the rest in the log."""
    model = Model()
    server = case.start(data="made")
    write_some(server, model, "base", 60)
    equal(server.end(), 0)
    shutil.copytree(case.path("made"), case.path("closed"))
    closed = Model()
    closed.objects, closed.gone = dict(model.objects), dict(model.gone)
    server = case.start(data="made")
    write_some(server, model, "log", 40)
    server.end(signal.SIGKILL)
    return [(case.path("closed"), closed), (case.path("made"), model)]


# ---- damages ----

def flip_bit(rng, data):
    at = rng.randrange(len(data))
    data[at] ^= 1 << rng.randrange(8)
    return f"bit of byte {at}"


def change_byte(rng, data):
    at = rng.randrange(len(data))
    data[at] ^= rng.randrange(1, 256)
    return f"byte {at}"


def truncate(rng, data):
    n = rng.randrange(len(data))
    del data[n:]
    return f"cut to {n}"


def insert(rng, data):
    at, n = rng.randrange(len(data)), rng.choice((1, 7, 512, BLOCK))
    data[at:at] = rng.randbytes(n)
    return f"{n} bytes inserted at {at}"


def swap_blocks(rng, data):
    n = len(data) // BLOCK
    if n < 2:
        return flip_bit(rng, data)
    a, b = rng.sample(range(n), 2)
    one, two = (slice(i * BLOCK, (i + 1) * BLOCK) for i in (a, b))
    data[one], data[two] = data[two], data[one]
    return f"blocks {a} and {b} swapped"


def zero_block(rng, data):
    at, n = rng.randrange(max(len(data) // BLOCK, 1)) * BLOCK, rng.choice((512, BLOCK, 4 * BLOCK))
    end = min(at + n, len(data))
    data[at:end] = bytes(end - at)
    return f"{end - at} zeros at {at}"


DAMAGES = (flip_bit, change_byte, truncate, insert, swap_blocks, zero_block)


def used_part(data):
    """Most of a log file is zeros that were written ahead: half of the damages hit what is in use."""
    return len(bytes(data).rstrip(b"\0")) or 1


def damage_store(rng, store):
    names = [n for n in FILES if os.path.exists(os.path.join(store, n)) and os.path.getsize(os.path.join(store, n))]
    name = rng.choices(names, [WEIGHTS[FILES.index(n)] for n in names])[0]
    path = os.path.join(store, name)
    with open(path, "rb") as f:
        data = bytearray(f.read())
    do = rng.choice(DAMAGES)
    if name.startswith("wal") and do is not swap_blocks and rng.random() < 0.8:
        part = data[:min(used_part(data) + 100, len(data))]
        rest = b"" if do is truncate else data[len(part):]
        what = do(rng, part)
        data = part + rest
    else:
        what = do(rng, data)
    with open(path, "wb") as f:
        f.write(data)
    return f"{name}: {what}"


# ---- what became of it ----

def tool(store, *args):
    r = subprocess.run([STORE_TOOL, "--dir", store, *args], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    check_faults(r.stderr)
    check(r.returncode >= 0 and r.returncode < 128, f"{args} ended by a signal: {r.returncode} {r.stderr}")
    return r


def start(case, data):
    """The server when it is ready, or None and what it said."""
    server = Vigild(case.binary, data, "--bind-address=127.0.0.1", wait=False)
    case.servers.append(server)
    ready, _, _ = select.select([server.process.stdout], [], [], READY_S)
    check(ready, f"neither starts nor says why not: {server.stderr()}")
    server.line = server.process.stdout.readline().decode()
    if "ready on" in server.line:
        server.url = server.line.split()[3]
        server.port = int(server.url.rsplit(":", 1)[1])
        return server, ""
    code = server.process.wait(timeout=LIMIT_S)
    text = server.stderr()
    check_faults(text)
    check(code > 0 and code < 128, f"ended with {code}: {text}")
    return None, text


def read_all(server):
    """Every object that can be read, and the names of those that cannot: (resourceVersion, data) or None."""
    connection = server.connect(server.admin())
    try:
        listed = vigild.ask_on(connection, CONFIGMAPS)
        if listed.status == 200:
            return {o["metadata"]["name"]: (int(o["metadata"]["resourceVersion"]), o["data"])
                    for o in listed.json["items"] if o["metadata"]["name"] != "kube-root-ca.crt"}, listed.text[:0]
        return None, listed.text
    finally:
        connection.close()


def compare(found, model, lost=()):
    """What is there is what was acknowledged; what is not was told."""
    names = {entry["key"].rsplit("/", 1)[-1] for entry in lost if "key" in entry}
    ranges = [(e["fromRevision"], e["toRevision"]) for e in lost if "key" not in e]

    def told(revision):
        return any(a <= revision <= b for a, b in ranges)

    for name, (revision, data) in model.objects.items():
        if name not in found:
            check(name in names or told(revision), f"{name} of revision {revision} is gone, and nobody said so")
        elif found[name] != (revision, data):
            check(found[name][0] < revision and told(revision),
                  f"{name} is {str(found[name])[:100]}, not {revision} {str(data)[:100]}")
    for name in found:
        if name not in model.objects:
            check(name in model.gone and any(b >= 0 and a <= model.gone[name] for a, b in ranges),
                  f"{name} is there again: {str(found[name])[:100]}")


def stop(server):
    equal(server.end(), 0, "exit status")
    server.check_faults()


def repair_and_compare(case, data, model):
    """A refused store: the checker agrees, a repair brings it back and says what is lost."""
    store = os.path.join(data, "store")
    r = tool(store, "check")
    equal(r.returncode, 7, f"status of check ({r.stdout}{r.stderr})")
    before = {n: open(os.path.join(store, n), "rb").read() for n in FILES[:4] if os.path.exists(os.path.join(store, n))}
    r = tool(store, "repair", "--output", "json")
    if r.returncode == 7:
        has(r.stderr, "nothing was changed")
        return "beyond repair"
    equal(r.returncode, 0, f"status of repair ({r.stderr})")
    said = json.loads(r.stdout)
    check(said["damages"] > 0, f"repair found nothing: {r.stdout}")
    for name, content in before.items():
        with open(os.path.join(store, said["kept"], name), "rb") as f:
            check(f.read() == content, f"{name} was not kept as it was")
    equal(tool(store, "check").returncode, 0, "status of check after the repair")
    server, text = start(case, data)
    check(server, f"does not start after a repair: {text}")
    found, text = read_all(server)
    check(found is not None, f"cannot be listed after a repair: {text}")
    compare(found, model, said["lost"])
    stop(server)
    return "repaired with losses" if said["lost"] else "repaired without loss"


def judge(case, data, model):
    server, text = start(case, data)
    if not server:
        check("repair" in text or "restore from a backup" in text, f"does not say what to do: {text}")
        return "refused, then " + repair_and_compare(case, data, model)
    found, text = read_all(server)
    if found is None:
        server.kill()
        return "an object is refused, then " + repair_and_compare(case, data, model)
    compare(found, model)
    stop(server)
    code = tool(os.path.join(data, "store"), "check").returncode
    check(code in (0, 7), f"check ends with {code}")
    return "harmless" if code == 0 else "harmless; check finds it"


def run_damages(case, n, seed):
    rng = random.Random(seed)
    print(f"seed={seed}", flush=True)
    stores = make_stores(case)
    tally = {}
    data = case.path("trial")
    for i in range(n):
        template, model = rng.choice(stores)
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(template, data)
        what = damage_store(rng, os.path.join(data, "store"))
        try:
            outcome = judge(case, data, model)
        except Exception as e:
            if os.environ.get("VG_KEEP"):
                shutil.copytree(template, f"{os.environ['VG_KEEP']}/{i}-template", dirs_exist_ok=True)
                shutil.copytree(data, f"{os.environ['VG_KEEP']}/{i}", dirs_exist_ok=True)
            raise Failed(f"damage {i} of {os.path.basename(template)}, {what}: {e}") from e
        tally[outcome] = tally.get(outcome, 0) + 1
        case.servers = [s for s in case.servers if s.process.poll() is None]
    for outcome, count in sorted(tally.items()):
        print(f"      {count:5} {outcome}", flush=True)


def test_random_damages(case):
    """Also what make test runs: a few dozen of another seed each time."""
    n = int(os.environ.get("VG_DAMAGES", "1000" if os.environ.get("VG_LONG") else "40"))
    run_damages(case, n, int(os.environ.get("VG_SEED", str(time.time_ns() % 1000000))))


def test_truncated_log(case):
    """As it was found: a log cut to an odd length lost 16 of 60 objects without a word."""
    model = Model()
    server = case.start()
    connection = server.connect(server.admin())
    for i in range(60):
        model.put(server, connection, f"cm-{i:02}", 100)
    server.end(signal.SIGKILL)
    store = case.path("data/store")
    log = max((os.path.join(store, n) for n in ("wal-0", "wal-1")), key=os.path.getsize)
    with open(log, "rb") as f:
        used = used_part(f.read())
    os.truncate(log, used * 3 // 4 | 1)
    server, text = start(case, case.path("data"))
    check(not server, "a server starts with a log that was cut off")
    has(text, "was acknowledged")
    has(text, "vigil-store repair")
    equal(repair_and_compare(case, case.path("data"), model), "repaired with losses")


def test_repair_cut_short(case):
    """A repair that was interrupted is finished by the next one; until then nothing is served."""
    store = case.path("data/store")
    server = case.start()
    model = Model()
    write_some(server, model, "cm", 12)
    equal(server.end(), 0)
    os.unlink(os.path.join(store, "durable"))
    equal(tool(store, "repair").returncode, 0)
    # As if it had stopped after the first files: those that are not moved yet are in repair.new.
    os.mkdir(os.path.join(store, "repair.new"))
    os.rename(os.path.join(store, "data.mdb"), os.path.join(store, "repair.new/data.mdb"))
    with open(os.path.join(store, "repairing"), "w", encoding="utf-8") as f:
        f.write("damaged-1")
    server, text = start(case, case.path("data"))
    check(not server, "a server starts in the middle of a repair")
    has(text, "cut short")
    has(tool(store, "repair").stdout, "is finished")
    server, text = start(case, case.path("data"))
    check(server, text)
    compare(read_all(server)[0], model)
    stop(server)


def test_cut_under_a_running_server(case):
    """A data file that is cut off while it is mapped ends the server with a sentence, not by a signal; what was
    acknowledged is in the log."""
    server = case.start()
    model = Model()
    write_some(server, model, "cm", 20)
    equal(server.end(), 0)
    server = case.start()
    os.truncate(case.path("data/store/data.mdb"), 8192)
    try:
        for i in range(50):
            server.ask(CONFIGMAPS, "POST", body={"metadata": {"name": f"more-{i}"}, "data": {}})
            server.ask(f"{CONFIGMAPS}/cm-001", "DELETE")
    except (OSError, vigild.http.client.HTTPException):
        pass
    equal(server.process.wait(timeout=LIMIT_S), 7, "exit status")
    has(server.stderr(), "cannot be read any more")
    server, text = start(case, case.path("data"))
    check(not server, "a server starts with a data file that was cut off")
    has(text, "is cut off")


def metric(server, name):
    for line in server.ask("/metrics").text.splitlines():
        if line.startswith(name + " "):
            return float(line.split()[1])
    raise Failed(f"there is no {name}")


def test_scrub(case):
    """The disk is read again in the background: a pass finds nothing, and then the record that was damaged under the
    running server, which is named in the log."""
    server = case.start("--storage-scrub-interval=300ms")
    model = Model()
    write_some(server, model, "cm", 40)
    equal(server.end(), 0)
    server = case.start("--storage-scrub-interval=300ms", "--log-level=info")
    wait_for("two passes", lambda: metric(server, "vigil_storage_scrub_passes_total") >= 2)
    equal(metric(server, "vigil_storage_scrub_damages_total"), 0)
    check(metric(server, "vigil_storage_scrub_bytes_total") > 40 * 1024, "a pass reads little")
    path = case.path("data/store/data.mdb")
    with open(path, "r+b") as f:
        text = f.read()
        at = text.index(b"fill", text.index(b'"cm-039"'))
        f.seek(at)
        f.write(b"FILL")
        f.flush()
        os.fsync(f.fileno())
    wait_for("the damage", lambda: metric(server, "vigil_storage_scrub_damages_total") >= 1)
    has(server.stderr(), "record_damaged")
    has(server.stderr(), "cm-039")
    compare(read_all(server)[0], model)  # the cache has it still
    server.kill()


if __name__ == "__main__":
    STORE_TOOL = os.path.abspath(sys.argv.pop(2))
    vigild.main(sys.modules["__main__"])
