#!/usr/bin/env python3
"""operations.py TEXT PROGRAM... - every command of docs/operations.md, executed.

Each line after "    $ " is run, in the order of the text and in one shell, in an empty directory; what the text
shows below must come, "..." standing for anything. PATH has the programs, by their names, and nothing is
replaced: addresses and ports are those of the text, in a network namespace where they are ours. Where no
namespace can be had the test is skipped: the ports may be somebody's."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from members import LIMIT_S, enter_private_network, ip, program, skip

MARK = "end-of-step"


def steps_of(path):
    """(line number, command, lines that are shown)"""
    steps, is_open = [], False
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("    $ "):
                steps.append((number, line[6:].rstrip("\n"), []))
                is_open = True
            elif line.startswith("    > ") and is_open:
                steps[-1] = (steps[-1][0], steps[-1][1] + "\n" + line[6:].rstrip("\n"), [])
            elif line.startswith("    ") and is_open:
                steps[-1][2].append(line[4:].rstrip("\n"))
            elif line.strip():
                is_open = False
    return steps


def pattern_of(line):
    return re.compile("^" + ".*".join(re.escape(part) for part in line.split("...")) + "$")


class Shell:
    """One bash; what a step and its background jobs print goes to a file of its own."""

    def __init__(self, directory, path):
        self.dir, self.count = directory, 0
        env = {**os.environ, "PATH": path + ":" + os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        for name in ("KUBECONFIG", "VIGIL_STORE_DIR"):
            env.pop(name, None)
        self.bash = subprocess.Popen(["bash", "--norc"], cwd=directory, env=env, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                     start_new_session=True)

    def output(self):
        with open(self.file, encoding="utf-8", errors="replace") as f:
            return f.read()

    def run(self, command):
        self.count += 1
        self.file = os.path.join(self.dir, f".step-{self.count}")
        self.bash.stdin.write(f"exec >{self.file} 2>&1\n{command}\necho {MARK} $? >>{self.file}.end\n")
        self.bash.stdin.flush()
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(self.file + ".end") or not open(self.file + ".end", encoding="utf-8").read():
            if time.monotonic() > end or self.bash.poll() is not None:
                return -1
            time.sleep(0.01)
        with open(self.file + ".end", encoding="utf-8") as f:
            return int(f.read().split()[1])

    def shows(self, want):
        """The lines in this order; jobs in the background may take their time."""
        end = time.monotonic() + LIMIT_S
        while True:
            missing = list(want)
            for line in self.output().splitlines():
                if missing and pattern_of(missing[0]).match(line):
                    missing.pop(0)
                elif missing and missing[0].strip() == "...":
                    if len(missing) > 1 and pattern_of(missing[1]).match(line):
                        del missing[:2]
            missing = [m for m in missing if m.strip() != "..."]
            if not missing:
                return None
            if time.monotonic() > end:
                return missing[0]
            time.sleep(0.05)

    def close(self):
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.bash.wait()


def main():
    text, programs = os.path.abspath(sys.argv[1]), [program(p) for p in sys.argv[2:]]
    if not enter_private_network():
        skip("the addresses of the text need a network namespace")
    for number in (1, 2, 3):
        ip("addr", "add", f"10.0.0.{number}/32", "dev", "lo")
    directory = tempfile.mkdtemp(prefix="vigil-operations-")
    path = os.path.join(directory, ".bin")
    os.mkdir(path)
    for one in programs:
        os.symlink(one, os.path.join(path, re.sub(r"-[0-9.]+$", "", os.path.basename(one))))
    shell, failed, steps = Shell(directory, path), None, steps_of(text)
    try:
        for number, command, want in steps:
            print(f"$ {command}", flush=True)
            status = shell.run(command)
            missing = shell.shows(want) if status == 0 else None
            if status != 0 or missing is not None:
                failed = f"line {number}: " + (f"status {status}" if status else f"does not show: {missing}")
                print(shell.output()[-3000:])
                break
            if "Sanitizer" in shell.output():
                failed = shell.output()
                break
    finally:
        shell.close()
        if failed is None:
            shutil.rmtree(directory, ignore_errors=True)
    if failed or len(steps) < 10:
        print(f"FAILED at {text}: {failed or 'there is nothing to run'}; see {directory}")
        sys.exit(1)
    print(f"{len(steps)} commands do what the text says")


if __name__ == "__main__":
    main()
