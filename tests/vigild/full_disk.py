"""full_disk.py - a store whose disk is full, and a store that is taken away.

The disk is a small tmpfs in a mount namespace of this script's own, so that it needs no device and leaves nothing
behind. Without the right to make one (root, or user namespaces) what needs it is skipped."""
import errno
import os
import shutil
import subprocess
import sys

from unreadable import metric, names
from vigild import Failed, check, equal, has, main, wait_for

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DISK = "48m"


def mount(path):
    os.makedirs(path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", path], check=True)


def create(v, connection_context, name, size):
    body = {"metadata": {"name": name, "finalizers": []}, "data": {"text": "x" * size}}
    return v.ask(CONFIGMAPS, "POST", body=body, context=connection_context)


def fill(v, size=100_000, most=2000):
    """Create until there is no room; the names of what was made."""
    made, context = [], v.admin()
    for i in range(most):
        a = create(v, context, f"fill{i}", size)
        if a.status == 201:
            made.append(f"fill{i}")
        elif a.status == 507:
            return made
        else:
            equal(a.status, 429, a.text)  # it waits for a checkpoint
    raise Failed("the disk is never full")


def balloon(path):
    """Take all that is left of the disk, as another program would."""
    with open(path, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"\0" * 4096)
        except OSError as e:
            equal(e.errno, errno.ENOSPC)


def expect_full(v, made):
    """Reads and deletions go on, and it is said what is the matter."""
    a = create(v, v.admin(), "more", 100_000)
    equal(a.status, 507, a.text)
    has(a.json["message"], "full")
    equal(v.ask("/readyz").status, 200)
    has(v.ask("/readyz?verbose").text, "[!]storage-space: the disk of the store is full")
    equal(v.ask("/readyz/storage-space").status, 500)
    equal(metric(v, "vigil_storage_full"), 1)
    equal(v.stderr().count("store_full"), 1)
    equal(v.ask(f"{CONFIGMAPS}/{made[0]}").status, 200)


def delete_all(v, made):
    context = v.admin()
    failed = [a.text for a in (v.ask(f"{CONFIGMAPS}/{n}", "DELETE", context=context) for n in made) if a.status != 200]
    check(not failed, f"{len(failed)} of {len(made)} deletions failed, first: {failed[:1]}")


def test_deletions_go_on(case):
    """Filled by ourselves: everything can be deleted, compaction makes room, and then writes work again."""
    mount(case.path("data"))
    v = case.start("--etcd-compaction-interval=1s")
    check(metric(v, "vigil_storage_reserve_bytes") > 0, "there is a reserve")
    made = fill(v)
    check(len(made) > 50, made)
    expect_full(v, made)
    delete_all(v, made)
    equal([n for n in names(v, CONFIGMAPS) if n != "kube-root-ca.crt"], [])
    wait_for("writes to work again", lambda: create(v, v.admin(), "after", 100_000).status == 201)
    equal(metric(v, "vigil_storage_full"), 0)
    has(v.stderr(), "store_not_full")
    equal(v.end(), 0)
    v = case.start()
    equal(names(v, CONFIGMAPS), ["after"])


def test_a_disk_that_another_fills(case):
    """Not a byte is left: the reserve is all there is. A restart on the full disk changes nothing."""
    mount(case.path("data"))
    v = case.start("--etcd-compaction-interval=1s")
    context = v.admin()
    made = [f"c{i}" for i in range(322)]
    for name in made:
        equal(create(v, context, name, 20_000).status, 201)
    balloon(case.path("data/balloon"))
    more = fill(v)
    expect_full(v, made)
    delete_all(v, made[:150] + more)
    v.kill()
    v = case.start("--etcd-compaction-interval=1s")
    equal(create(v, v.admin(), "more", 100_000).status, 507)
    delete_all(v, made[150:])
    equal(names(v, CONFIGMAPS), [])
    before = metric(v, "vigil_storage_compacted_revision")
    wait_for("compaction", lambda: metric(v, "vigil_storage_compacted_revision") > before)
    equal(metric(v, "vigil_storage_compaction_failures_total"), 0)
    os.unlink(case.path("data/balloon"))
    wait_for("writes to work again", lambda: create(v, v.admin(), "after", 100_000).status == 201)
    wait_for("the reserve", lambda: metric(v, "vigil_storage_reserve_bytes") > 0)
    equal(v.ask("/readyz/storage-space").status, 200)


def test_a_disk_that_fills_up_again(case):
    """Writes resume in free pages of the base, without a reserve on the disk: what is left when they are used up must
    still be enough for every deletion."""
    mount(case.path("data"))
    v = case.start("--etcd-compaction-interval=1s")
    for _ in range(3):
        made = fill(v)
        check(len(made) > 50, made)
        delete_all(v, made)
        wait_for("writes to work again", lambda: create(v, v.admin(), "again", 100_000).status == 201)
        delete_all(v, ["again"])


def test_marked_objects_go_on(case):
    """A finalizer can be taken away when the disk is full."""
    mount(case.path("data"))
    v = case.start()
    body = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}, "data": {"text": "x" * 50_000}}
    equal(v.ask(CONFIGMAPS, "POST", body=body).status, 201)
    fill(v)
    a = v.ask(f"{CONFIGMAPS}/held", "DELETE")
    equal(a.status, 200, a.text)
    patch = {"metadata": {"finalizers": None}}
    a = v.ask(f"{CONFIGMAPS}/held", "PATCH", body=patch, headers={"Content-Type": "application/merge-patch+json"})
    equal(a.status, 200, a.text)
    equal(v.ask(f"{CONFIGMAPS}/held").status, 404)


def test_a_removed_store_takes_no_writes(case):
    """Not one write is acknowledged after rm -rf."""
    v = case.start()
    context = v.admin()
    equal(create(v, context, "before", 10).status, 201)
    shutil.rmtree(v.path("store"))
    a = create(v, context, "after", 10)
    equal(a.status, 503, a.text)
    has(a.json["message"], "removed or replaced")
    for _ in range(3):
        equal(create(v, context, "after", 10).status, 503)
    has(v.stderr(), "store_removed")
    equal(v.ask("/readyz", context=context).status, 500)
    equal(v.ask(f"{CONFIGMAPS}/before", context=context).status, 200)
    v.end()


def test_a_moved_store_takes_no_writes_until_it_is_back(case):
    v = case.start()
    context = v.admin()
    os.rename(v.path("store"), v.path("elsewhere"))
    wait_for("writes to be refused", lambda: create(v, context, "x", 10).status == 503)
    os.rename(v.path("elsewhere"), v.path("store"))
    wait_for("writes to work again", lambda: create(v, context, "after", 10).status in (201, 409))
    wait_for("readiness", lambda: v.ask("/readyz", context=context).status == 200)


def in_own_namespace():
    """Start this script again where it may mount."""
    if os.environ.get("VG_OWN_NAMESPACE"):
        return
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-m", "-r"]
    if subprocess.run([*unshare, "mount", "-t", "tmpfs", "none", "/mnt"], capture_output=True, check=False).returncode:
        print("SKIPPED: a tmpfs cannot be mounted here")
        sys.exit(77)
    os.environ["VG_OWN_NAMESPACE"] = "1"
    os.execvp("unshare", [*unshare, sys.executable, "-B", *sys.argv])


if __name__ == "__main__":
    in_own_namespace()
    main(sys.modules[__name__])
