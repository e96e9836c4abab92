"""tour.py <vigild> - does what the README's tour says, line by line, and looks at what comes out."""
import os
import signal
import subprocess
import sys

from vigild import check, free_port, has, main, wait_for

README = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../README.md")
MARK = "-- end of paragraph --"
FAILED = "-- a command failed --"


def paragraphs():
    text = open(README, encoding="utf-8").read().split("\n## A tour\n")[1].split("\n## ")[0]
    lines = [line[4:] if line.startswith("    ") else "" for line in text.splitlines()]
    return [p for p in "\n".join(lines).strip().split("\n\n") if p.strip()]


class Shell:
    """A bash that is fed one paragraph at a time."""

    def __init__(self, folder):
        self.process = subprocess.Popen(["bash", "-e"], cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        start_new_session=True)
        self.do(f"shopt -s expand_aliases; trap \"echo '{FAILED}'\" EXIT")

    def do(self, text):
        self.process.stdin.write(f"{text}\necho '{MARK}'\n")
        self.process.stdin.flush()
        out = ""
        for line in self.process.stdout:
            if line.rstrip("\n").endswith(MARK):
                return out + line.rstrip("\n")[:-len(MARK)]
            out += line
            if FAILED in line:
                break
        raise AssertionError(f"the shell ended in: {text}\n{out}")

    def end(self):
        """It and what it started, which are a group of their own."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def test_the_tour_of_the_readme(case):
    port = free_port()
    os.symlink(os.path.dirname(case.binary), case.path("build"))
    case.start(data="vigil-data", secure_port=port)
    shell = Shell(case.dir)
    try:
        follow(case, shell, port)
    finally:
        shell.end()


def follow(case, shell, port):
    steps = [p.replace("6443", str(port)).replace(
        "--data-dir ./vigil-data", f"--data-dir ./vigil-data --secure-port {port} 2>log") for p in paragraphs()]
    check(len(steps) == 5, f"the tour has {len(steps)} paragraphs")
    shell.do(steps[0])
    out = shell.do(steps[1])
    has(out, '"kind": "ConfigMapList"')
    has(out, '"greeting": "hello"')
    shell.do(steps[2])
    wait_for("both events", lambda: all(f'"name":"{n}"' in open(case.path("events"), encoding="utf-8").read()
                                        for n in ("one", "two")))
    out = shell.do(steps[3])
    has(out, '"name": "two"')
    out = shell.do(steps[4])
    # A reader takes longer than a controller needs to put this there; the test may be faster.
    events = [e for e in out.split('{"type":')[1:] if "kube-root-ca.crt" not in e]
    check(len(events) == 1, f"one event is expected, not {len(events)}: {out}")
    has(events[0], '"ADDED"')
    has(events[0], '"name":"three"')


if __name__ == "__main__":
    main(sys.modules[__name__])
