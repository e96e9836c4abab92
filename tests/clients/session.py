#!/usr/bin/env python3
"""session.py <transcript> <word>... [--write] - types the commands of a transcript into one shell and
compares what it shows with what the transcript says.

A transcript reads as a terminal would show it:

    # A comment, in front of a command.
    $ kubectl create configmap one \\
    >     --from-literal=a=1
    configmap/one created
    $ kubectl get configmap two
    Error from server (NotFound): configmaps "two" not found
    [1]

Lines after "> " continue the command above; "[1]" tells the status it ends with, if not 0; standard
output and error are one. Blank lines before a command or comment, and at the end of a line, do not
count; two blanks or more within a line stand for any such number, since columns are as wide as what is in
them. In an expected line <age>, <time>, <uid> and the other names of PLACES stand for what differs each time,
<...> for any text, and a line "..." for any lines.

    new$ kubectl events         only with this word among those of the command line
    old| Warning: deprecated    such a line only with that word; old+vigil| only with both
    soon$ kubectl get pods      again and again until it shows that: another process has to do something

--write puts what is shown into the transcript, where it differs: new and old lines are kept apart."""
import difflib
import os
import re
import signal
import subprocess
import sys
import threading
import time

LIMIT_S = 120
SHOWN = 12
PLACES = {
    "age": r"(?:\d+[smhdy])+",
    "time": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000",
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "ip": r"\d+\.\d+\.\d+\.\d+",
    "n": r"\d+",
    "where": r"(?: from [a-z]+ namespace)?",
    "...": r".*",
}
COMMAND = re.compile(r"^((?:[a-z]+\+)*[a-z]+)?\$ (.*)")
TAGGED = re.compile(r"^((?:new|old)(?:\+(?:vigil|stock))?|vigil|stock)\| ?(.*)")


class Step:
    """One command, where it stands, and the lines below it: (words, text)."""

    def __init__(self, number, words, line):
        self.number, self.words, self.command, self.lines = number, words, [line], []
        self.is_open = True  # lines that come now are its own
        self.end = number  # the line after which the next one begins
        self.soon = "soon" in words
        self.words.discard("soon")

    def expected(self, words):
        return [text for wanted, text in self.lines if wanted <= words]

    def text(self):
        return "\n".join(self.command)


def read_steps(lines):
    steps = []
    for number, line in enumerate(lines, 1):
        command = COMMAND.match(line)
        if command:
            steps.append(Step(number, set((command[1] or "").split("+")) - {""}, command[2]))
        elif line.startswith("# ") and (number == 1 or not lines[number - 2] or not steps or not steps[-1].is_open):
            for step in steps[-1:]:
                step.is_open = False
        elif steps and steps[-1].is_open and line.startswith(">") and not steps[-1].lines:
            steps[-1].command.append(line[2:])
        elif steps and steps[-1].is_open:
            tagged = TAGGED.match(line)
            steps[-1].lines.append((set(tagged[1].split("+")), tagged[2]) if tagged else (set(), line))
    for step in steps:
        while step.lines and not step.lines[-1][1]:
            step.lines.pop()
        step.end = step.number + len(step.command) - 1 + len(step.lines)
    return steps


def pattern(line):
    """The regular expression of an expected line."""
    out = []
    for piece in re.split(r"(<(?:" + "|".join(map(re.escape, PLACES)) + r")>)", line.rstrip()):
        if piece[1:-1] in PLACES and piece.startswith("<"):
            out.append(f"(?:{PLACES[piece[1:-1]]})")
        else:
            indent = re.match(" *", piece)[0] if not out else ""
            out.append(re.escape(indent) + re.sub(r"(?:\\ ){2,}", " {2,}", re.escape(piece[len(indent):])))
    return "".join(out)


def is_shown(expected, shown):
    whole = "".join(r"(?:.*\n)*" if e == "..." else pattern(e) + "\n" for e in expected)
    return re.fullmatch(whole, "".join(s + "\n" for s in shown)) is not None


def difference(expected, shown):
    """As diff -u, equal lines as the transcript has them."""
    alike = list(shown)
    patterns = [(e, re.compile(pattern(e))) for e in expected if e != "..."]
    for i, line in enumerate(shown):
        alike[i] = next((e for e, p in patterns if p.fullmatch(line)), line)
    return list(difflib.unified_diff(expected, alike, "expected", "shown", n=2, lineterm=""))


class Shell:
    """A bash of its own process group, which takes a command at a time."""

    MARK = "--end-of-step--"

    def __init__(self):
        self.bash = subprocess.Popen(["bash", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, start_new_session=True, text=True)
        self.stuck = False

    def run(self, command):
        """The lines that it shows; the last tells a status that is not 0."""
        timer = threading.Timer(LIMIT_S, self.give_up)
        timer.start()
        self.bash.stdin.write("{ " + command + "\n} </dev/null\nprintf '\\n" + self.MARK + " %d\\n' $?\n")
        self.bash.stdin.flush()
        lines = []
        for line in self.bash.stdout:
            line = line.rstrip()
            if line.startswith(self.MARK):
                break
            lines.append(line)
        else:
            sys.exit(f"FAILED: {'took too long' if self.stuck else 'the shell ended'}: {command}\n" + "\n".join(lines))
        timer.cancel()
        while lines and not lines[-1]:
            lines.pop()
        status = int(line.split()[1])
        return lines + ([f"[{status}]"] if status else [])

    def give_up(self):
        self.stuck = True
        self.end()

    def end(self):
        try:
            os.killpg(self.bash.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.bash.wait()


def perform(shell, step, expected, limit):
    """What is shown; of a step that may come soon, when it does."""
    end = time.monotonic() + limit
    while True:
        shown = shell.run(step.text())
        if not step.soon or is_shown(expected, shown) or time.monotonic() > end:
            return shown
        time.sleep(0.1)


def stand_in(line):
    """A shown line with places for what is sure to differ next time."""
    line = re.sub(PLACES["uid"], "<uid>", line)
    line = re.sub(PLACES["time"], "<time>", line)
    line = re.sub(r"(?<= )(?:\d{1,2}|1\d\d)s\b(?! ago)", "<age>", line)
    return re.sub(r"(?<=[ (])\d{1,3}s(?= ago)", "<age>", line)


def rewritten(step, words, shown):
    """The step's expected lines with these in place of those for our kubectl."""
    other = {"new": "old", "old": "new"}[(words & {"new", "old"}).pop()]
    mine = (words & {"new", "old"}).pop()
    theirs = step.expected((words - {mine}) | {other})
    patterns = [(e, re.compile(pattern(e))) for e in step.expected(words) + theirs if e != "..."]
    ours = [next((e for e, p in patterns if p.fullmatch(line)), stand_in(line)) for line in shown]
    if not theirs or step.words & {"new", "old"}:
        return ours
    lines = []
    for kind, i, j, k, m in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        if kind == "equal":
            lines += theirs[i:j]
        else:
            lines += [f"{other}| {t}".rstrip() for t in theirs[i:j]] + [f"{mine}| {o}".rstrip() for o in ours[k:m]]
    return lines


def main():
    path, words = sys.argv[1], {w for w in sys.argv[2:] if not w.startswith("-")}
    is_writing = "--write" in sys.argv
    with open(path, encoding="utf-8") as f:
        lines = [line.rstrip("\n") for line in f]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # with what the shell started
    shell, done, wrong, edits = Shell(), 0, 0, []
    try:
        for step in read_steps(lines):
            if not step.words <= words:
                continue
            expected = step.expected(words)
            shown = perform(shell, step, expected, 5 if is_writing else LIMIT_S)
            done += 1
            if is_shown(expected, shown):
                continue
            wrong += 1
            edits.append((step, rewritten(step, words, shown)))
            if wrong <= SHOWN:
                print(f"\n{os.path.basename(path)}:{step.number}: $ {step.text()}")
                print("\n".join("  " + d for d in difference(expected, shown)[2:]), flush=True)
    finally:
        shell.end()
    if is_writing:
        for step, new in reversed(edits):
            lines[step.number - 1 + len(step.command):step.end] = new
        with open(path, "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")
    elif wrong:
        sys.exit(f"FAILED: {wrong} of {done} commands ({' '.join(sorted(words))}) do not show what {path} says")
    print(f"{done} commands ({' '.join(sorted(words))}) show what {os.path.basename(path)} says")


if __name__ == "__main__":
    main()
