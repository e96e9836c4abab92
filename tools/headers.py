"""headers.py - reads the public headers of libvigil: entries (a comment and what it is about), sections,
functions, structs, enums. It knows how these headers are written, not all of C; what it does not
understand it refuses, so that nothing is left out in silence."""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
INCLUDE = os.path.join(ROOT, "include", "vigil")


class Entry:
    """A comment and the declarations that follow it without a blank line."""

    def __init__(self, comment, group, section):
        self.comment, self.group, self.section = comment, group, section
        self.code = []  # declarations with the comments inside and behind them

    def text(self):
        """All that is said about it here."""
        return " ".join([self.comment] + re.findall(r"/\*(.*?)\*/", "\n".join(self.code), re.S))


class Section:
    def __init__(self, title, comment):
        self.title, self.comment, self.entries = title, comment, []


class Header:
    def __init__(self, name, intro, sections):
        self.name, self.intro, self.sections = name, intro, sections

    def entries(self):
        return [e for s in self.sections for e in s.entries]


def headers():
    """All of them, in the order in which they build on each other."""
    first = ["base.h", "object.h", "client.h", "store.h", "informer.h", "workqueue.h"]
    names = {os.path.basename(p) for p in glob.glob(INCLUDE + "/*.h")} - {"vigil.h"}
    return [read(n) for n in first + sorted(names - set(first))]


def read(name):
    with open(os.path.join(INCLUDE, name), encoding="utf-8") as f:
        text = f.read()
    text = re.sub(r"\n#ifdef __cplusplus\n.*?\n#endif\n", "\n", text, flags=re.S)
    intro, rest = re.match(r"/\*(.*?)\*/\n(.*)", text, re.S).groups()
    rest = rest.replace("#if defined(__GNUC__)\n    __attribute__((format(printf, 5, 6)))\n#endif\n", "")
    rest = re.sub(r"\n#if defined\(__GNUC__\)\n.*?\n#endif\n", "\n", rest, flags=re.S)
    rest = re.sub(r"\n#ifndef VG_BASE_ERR_H\n(.*?)\n#endif\n", r"\n\1\n", rest, flags=re.S)
    rest = re.sub(r"^#(include|ifndef|endif).*\n|^#define VIGIL_\w+_H\n", "", rest, flags=re.M)
    return Header(name, clean(intro), parse(name, rest))


def clean(comment):
    """A comment's words; lines that are indented or begin with a dash stay lines."""
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in comment.split("\n")]
    return "\n".join(line if i else line.strip() for i, line in enumerate(lines)).strip()


def parse(name, text):
    sections = [Section("", "")]
    group, entry, at = "", None, 0
    while at < len(text):
        rest = text[at:]
        if m := re.match(r"[ \t]*\n[ \t]*\n", rest):
            group, entry = "", None
            at += m.end() - 1
        elif m := re.match(r"\s+", rest):
            at += m.end()
        elif m := re.match(r"/\*(.*?)\*/[ \t]*\n?", rest, re.S):
            words = clean(m.group(1))
            if title := re.match(r"---- (.*?) ----\s*(.*)", words, re.S):
                sections.append(Section(title.group(1), title.group(2)))
                group, entry = "", None
            else:
                if entry and not entry.code:  # a comment above a comment is about all that follows
                    group = entry.comment
                    sections[-1].entries.remove(entry)
                entry = Entry(words, group, sections[-1])
                sections[-1].entries.append(entry)
            at += m.end()
        else:
            n = declaration(name, rest)
            is_type = re.match(r"(struct|enum) \w+ \{", rest)  # speaks for itself
            if entry is None or (is_type and entry.code):
                entry = Entry("", group, sections[-1])
                sections[-1].entries.append(entry)
            entry.code.append(rest[:n].rstrip())
            at += n
            if text[at:at + 2] == "\n\n":
                group, entry = "", None
    return [s for s in sections if s.entries or s.comment]


def declaration(name, text):
    """Its length, a comment behind it on its last line included."""
    if m := re.match(r"#define (?:.*\\\n)*.*\n?", text):
        return m.end()
    depth, at = 0, 0
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        c = text[at]
        depth += (c in "({") - (c in ")}")
        at += 1
        if c == ";" and depth == 0:
            return at + re.match(r"([ \t]*/\*[^\n]*\*/)?", text[at:]).end()
    raise SystemExit(f"{name}: not understood: {text[:80]!r}")


# ---- what is declared ----

def bare(code):
    """Without comments, attributes of ours and superfluous space."""
    code = re.sub(r"/\*.*?\*/", "", code, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"\bVIGIL_(API|CHECKED)\b", "", code)).strip()


def function_of(code):
    """(name, type of the result, parameters as one text) or None."""
    text = bare(code)
    if "VIGIL_API" not in code or text.startswith("extern"):
        return None
    m = re.match(r"(.*?)\b(vigil_\w+)\((.*)\) ?;$", text)
    if not m:
        raise SystemExit(f"not understood: {text}")
    return m.group(2), m.group(1).strip(), m.group(3)


def functions(header):
    """(entry, (name, result, parameters)) of each."""
    return [(e, f) for e in header.entries() for f in map(function_of, e.code) if f]


def structs(header):
    """(name, names of members) of each that is not opaque."""
    found = []
    for e in header.entries():
        for code in e.code:
            if m := re.match(r"struct (vigil_\w+) \{(.*)\};$", bare(code)):
                found.append((m.group(1), [n for part in m.group(2).split(";") for n in members(part)]))
    return found


def members(part):
    part = part.strip()
    if not part:
        return []
    if m := re.match(r".*?\(\*(\w+)\)\(", part):
        return [m.group(1)]
    return [re.search(r"(\w+)(\[\w+\])?$", one.strip()).group(1) for one in part.split(",")]


def enums(header):
    """(name, names of its values) of each."""
    found = []
    for e in header.entries():
        for code in e.code:
            if m := re.match(r"enum (vigil_\w+) \{(.*)\};$", bare(code)):
                found.append((m.group(1), re.findall(r"\b(VIGIL_\w+)", m.group(2))))
    return found
