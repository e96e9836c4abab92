"""report.py - `vigil bench report` by the real program: every page and chart that it makes of the corpus' files is
well-formed XML, brings along all that it needs, and says nothing that is no number.

    report.py VIGIL-BENCH CORPUS"""
import os
import re
import subprocess
import sys
import tempfile
import xml.dom.minidom

VIGIL, CORPUS = sys.argv[1:3]


def report(*args, status=0):
    done = subprocess.run([VIGIL, "bench", "report", *args], stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != status:
        sys.exit(f"report {args} ended with {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode(), done.stderr.decode()


def check_document(path):
    text = open(path).read()
    xml.dom.minidom.parseString(text.replace("<!DOCTYPE html>", ""))
    for word in ("<script", "javascript:", "url(", "@import", "<link", "<img", "href="):
        if word in text:
            sys.exit(f"{path} has {word}: it would need more than itself")
    for match in re.findall(r'\b(?:x|y|width|height|d|cx|cy)="([^"]*)"', text):
        if re.search(r"nan|inf", match):
            sys.exit(f"{path}: a place that is none: {match}")


def check_file(path, scratch, charts_wanted):
    charts, page, markdown = (os.path.join(scratch, n) for n in ("charts", "page.html", "page.md"))
    table, _ = report(path)
    if not table.strip():
        sys.exit(f"{path} makes an empty table")
    report("--html", page, "--charts", charts, "--markdown", markdown, path)
    names = sorted(os.listdir(charts))
    if names != sorted(f"{n}.svg" for n in charts_wanted):
        sys.exit(f"{path} makes the charts {names}")
    for name in names:
        check_document(os.path.join(charts, name))
    check_document(page)
    shown = set(re.findall(r"\]\(charts/([a-z-]+)\.svg\)", open(markdown).read()))
    if shown != set(charts_wanted):
        sys.exit(f"{path}: the page shows {shown}")


with tempfile.TemporaryDirectory() as scratch:
    check_file(os.path.join(CORPUS, "run.json"), scratch, ["list", "latency"])
    check_file(os.path.join(CORPUS, "peers.json"), scratch,
               ["fanout", "fanout-forms", "memory", "start", "idle", "writes", "slow", "mixed"])
    _, why = report(os.path.join(CORPUS, "round.json"), status=1)
    if "from 1 to 64" not in why:
        sys.exit(f"a bad round is refused with {why}")
    report("--html", os.path.join(scratch, "page.html"), status=2)  # no file
    report("--html", "/nowhere/page.html", os.path.join(CORPUS, "run.json"), status=1)
print("ok")
