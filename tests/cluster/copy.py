#!/usr/bin/env python3
"""copy.py VIGIL_COPY VIGIL_STORE VIGILD ETCD... - backup, restore and migrate with an etcd: there and back, what
is refused, what an interruption leaves, times to live. ETCD: names of variables with a program, as
VG_ETCD_36; those that are not there are skipped, and that is said."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from members import Cluster, Failed, LIMIT_S, b64, wait_for

OBJECTS = 300


def config_map(name, text):
    return json.dumps({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": "2026-01-02T03:04:05Z"},
        "data": {"text": text}}, separators=(",", ":"))


class Case:
    def __init__(self, copy, store, vigild, etcd):
        self.copy_program, self.store_program, self.vigild = copy, store, vigild
        self.dir = tempfile.mkdtemp(prefix="vigil-copy-")
        self.etcd = etcd
        self.clusters = []

    def cluster(self, *flags):
        directory = os.path.join(self.dir, f"etcd-{len(self.clusters)}")
        os.mkdir(directory)
        self.clusters.append(Cluster(directory, self.etcd, members=1, flags=["--unsafe-no-fsync", *flags]
                                     if "3.4" not in self.etcd and self.etcd != "/usr/bin/etcd" else flags))
        return self.clusters[-1]

    def path(self, name):
        return os.path.join(self.dir, name)

    def copy(self, *args, status=0, says=""):
        r = subprocess.run([self.copy_program, *args, "--output", "json"], capture_output=True, text=True,
                           timeout=LIMIT_S, check=False)
        if r.returncode != status or says not in r.stderr or "Sanitizer" in r.stderr:
            raise Failed(f"{' '.join(args)}: status {r.returncode}, expected {status}: {r.stdout} {r.stderr}")
        return json.loads(r.stdout) if status == 0 else None

    def listing(self, place):
        """Keys and values of a directory, as its store has them."""
        r = subprocess.run([self.store_program, "--dir", self.path(place) + "/store", "list"], capture_output=True,
                           text=True, timeout=LIMIT_S, check=True)
        return {line.split("\t")[0]: line.split("\t")[2] for line in r.stdout.splitlines()}

    def close(self):
        for c in self.clusters:
            c.close()
        shutil.rmtree(self.dir, ignore_errors=True)


def keys_of(cluster):
    answer = cluster.ask("kv/range", {"key": b64("/registry/"), "range_end": b64("/registry0"), "keys_only": True})
    return int(answer.get("count", 0)), int(answer["header"]["revision"])


def fill(cluster, count):
    for i in range(count):
        name = f"o{i:04}"
        cluster.ask("kv/put", {"key": b64(f"/registry/configmaps/default/{name}"), "value": b64(config_map(name, "x" * i) + "\n")})
    cluster.ask("kv/put", {"key": b64("/registry/things.example.com/default/t"), "value": b64(b"\0\1 not an object")})
    lease = cluster.ask("lease/grant", {"TTL": 3600})["ID"]
    cluster.ask("kv/put", {"key": b64("/registry/events/default/e"), "value": b64("{}"), "lease": lease})
    cluster.ask("kv/put", {"key": b64("/registry/events/default/f"), "value": b64("{}"), "lease": lease})
    short = cluster.ask("lease/grant", {"TTL": 2})["ID"]
    cluster.ask("kv/put", {"key": b64("/registry/events/default/short"), "value": b64("{}"), "lease": short})
    cluster.ask("kv/put", {"key": b64("/elsewhere"), "value": b64("none of ours")})


def there_and_back(case):
    first = case.cluster()
    fill(first, OBJECTS)
    told = case.copy("migrate", first.urls, case.path("data"))
    keys = told["keys"]
    if told["keysWithTTL"] not in (2, 3):
        raise Failed(f"times to live: {told}")
    if told["targetRevision"] <= told["revision"]:
        raise Failed(f"revisions go back: {told}")
    wait_for("the end of a short life", lambda: "/registry/events/default/short" not in case.listing("data"))
    listing = case.listing("data")
    if len(listing) != OBJECTS + 3 or listing["/registry/configmaps/default/o0002"] != config_map("o0002", "xx"):
        raise Failed(f"{len(listing)} keys, {listing.get('/registry/configmaps/default/o0002')}")
    second = case.cluster()
    told = case.copy("migrate", case.path("data"), second.urls)
    if told["keys"] not in (keys, keys - 1) or told["targetRevision"] <= told["revision"] or told["keysWithTTL"] != 2:
        raise Failed(f"there and back: {told}")
    lease = second.ask("kv/range", {"key": b64("/registry/events/default/e")})["kvs"][0]["lease"]
    left = int(second.ask("lease/timetolive", {"ID": lease})["TTL"])
    if not 3000 < left <= 3601:
        raise Failed(f"{left} seconds of an hour are left")
    if keys_of(second)[0] != OBJECTS + 3:
        raise Failed("the mark is left")
    return second, told


def old_revisions_are_gone(cluster, told):
    """Whoever comes with a revision of the source is told that it is compacted."""
    m = cluster.members[0]
    answer = m.ask("kv/range", {"key": b64("/registry/x"), "revision": str(told["revision"])})
    if "compacted" not in json.dumps(answer):
        raise Failed(f"an old revision is answered: {answer}")


def refusals(case, cluster):
    case.copy("migrate", case.path("data"), cluster.urls, status=1, says="is in use: it has")
    case.copy("backup", "http://127.0.0.1:1", case.path("x"), status=3, says="http://127.0.0.1:1")
    case.copy("backup", cluster.urls, case.path("backup"))
    case.copy("backup", cluster.urls, case.path("backup"), status=1, says="exists already")
    case.copy("restore", case.path("backup"), cluster.urls, status=1, says="is in use")
    case.copy("restore", "--force", "--bump", "9000000", case.path("backup"), cluster.urls, status=2,
              says="etcdutl snapshot restore --bump-revision")
    cluster.ask("kv/put", {"key": b64("/registry/configmaps/default/extra"), "value": b64("{}")})
    told = case.copy("restore", "--force", "--bump", "50", case.path("backup"), cluster.urls)
    if keys_of(cluster)[0] != told["keys"]:
        raise Failed("what does not belong there is left")
    if cluster.ask("kv/range", {"key": b64("/elsewhere")}).get("kvs"):
        raise Failed("another key was copied")


def interrupted(case):
    """Killed again and again: the mark stays until it is whole, and the next run goes on."""
    target = case.cluster()
    mark = {"key": b64("/registry/vigil.copy")}
    for delay in (0.02, 0.04, 0.08, 0.12, 0.2):
        process = subprocess.Popen([case.copy_program, "migrate", case.path("data"), target.urls],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        count = keys_of(target)[0]
        if count and not target.ask("kv/range", mark).get("kvs") and count != OBJECTS + 3:
            raise Failed(f"{count} keys, and no mark")
        if count == OBJECTS + 3 and not target.ask("kv/range", mark).get("kvs"):
            target.ask("kv/deleterange", {"key": b64("/registry/"), "range_end": b64("/registry0")})
    target.ask("kv/put", {**mark, "value": b64("something else")})
    case.copy("migrate", case.path("data"), target.urls, status=1, says="interrupted copy of something else")
    r = subprocess.run([case.vigild, "--data-dir", case.path("server"), "--secure-port", "0", "--etcd-servers", target.urls],
                       capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if r.returncode == 0 or "was interrupted" not in r.stderr:
        raise Failed(f"vigild starts on half a copy: {r.returncode} {r.stdout} {r.stderr}")
    target.ask("kv/put", {**mark, "value": b64(case.path("data"))})
    case.copy("migrate", case.path("data"), target.urls)
    if keys_of(target)[0] != OBJECTS + 3:
        raise Failed("run again, it is not whole")


def media(case):
    target = case.cluster()
    case.copy("migrate", "--storage-media-type", "application/vnd.kubernetes.protobuf", case.path("data"), target.urls)
    kv = target.ask("kv/range", {"key": b64("/registry/configmaps/default/o0001")})["kvs"][0]
    if not kv["value"].startswith(b64("k8s\0")[:5]):
        raise Failed(f"not protobuf: {kv}")
    case.copy("migrate", target.urls, case.path("from-protobuf"))
    if case.listing("from-protobuf") != case.listing("data"):
        raise Failed("protobuf there and back differs")


def main():
    copy, store, vigild = (os.path.abspath(p) for p in sys.argv[1:4])
    ran = 0
    for variable in sys.argv[4:]:
        etcd = os.environ.get(variable, "")
        if not os.access(etcd, os.X_OK):
            print(f"SKIPPED: there is no {variable}={etcd}")
            continue
        case = Case(copy, store, vigild, etcd)
        try:
            cluster, told = there_and_back(case)
            old_revisions_are_gone(cluster, told)
            refusals(case, cluster)
            interrupted(case)
            media(case)
            ran += 1
            print(f"{variable}: there and back, {told['keys']} keys, {told['sha256'][:12]}", flush=True)
        except Failed as e:
            print(f"FAILED with {variable}: {e}")
            sys.exit(1)
        finally:
            case.close()
    sys.exit(0 if ran else 77)


if __name__ == "__main__":
    main()
