#!/usr/bin/env python3
"""reference.py [--check] - writes docs/reference/ from the comments of include/vigil. With --check it
writes nothing and fails where a page is not up to date. Either way it fails for a function of which
nobody says who may call it on which thread, or who owns what it hands out."""
import os
import re
import sys
import textwrap

sys.dont_write_bytecode = True
import headers as h  # noqa: E402

OUT = os.path.join(h.ROOT, "docs", "reference")
OBJECT = r"const struct vigil_(object|snapshot) \*"


def said(header, entry):
    """Who may say something about an entry, the nearest first."""
    return [entry.text(), entry.group, entry.section.comment, header.intro]


def find(header, entry, pattern):
    for text in said(header, entry):
        if m := re.search(pattern, re.sub(r"\s+", " ", text)):
            return m
    return None


def thread_rule(header, entry):
    m = find(header, entry, r"Thread: ([^.;)]*)")
    return re.sub(r",? for everything here.*", "", m.group(1)) if m else None


def ends_of(all_functions, handle):
    return sorted(n for n, _, p in all_functions
                  if re.search(r"_(free|unref)$", n) and re.match(rf"(const )?struct {handle} \*", p))


def ownership_rule(header, entry, function, everything):
    """In words; None: nobody says it."""
    name, result, params = function
    rules = []
    if name.endswith(("_free", "_unref")):
        return "ends the caller's hold; NULL is allowed"
    if re.search(OBJECT + r"\*", params) or re.match(OBJECT, result):
        m = find(header, entry, r"[Bb]orrowed|reference")
        if not m:
            return None
        is_borrowed = m.group(0).lower() == "borrowed"
        rules.append("the object is borrowed" if is_borrowed else
                     "the caller gets a reference, to be given back")
    if m := re.search(r"(?<!const )struct (vigil_\w+) \*\*", params):
        ends = ends_of(everything, m.group(1))
        if not ends and not find(header, entry, r"freed|valid until|lives as long"):
            return None
        rules.append(f"the caller owns what is made; `{ends[0]}` ends it" if ends else
                     "the library owns the handle, see the text")
    if re.match(r"struct vigil_\w+ \*", result):
        if not find(header, entry, r"[Ll]ives? as long|borrowed"):
            return None
        rules.append("what is returned is borrowed")
    if re.match(r"(const char \*|struct vigil_text)$", result) and params != "void":
        rules.append("the text is borrowed from what was asked")
    if re.search(r"\(\*\w+\)\([^)]*" + OBJECT, params):
        if not find(header, entry, r"[Bb]orrowed"):
            return None
        rules.append("the callback's objects are borrowed for the call")
    if "*" in params or "vigil_text " in params:
        rules.append("arguments are borrowed for the call")
    return "; ".join(rules) or "nothing changes hands"


# ---- pages ----

def words(text):
    """Markdown of a comment: paragraphs joined, lists and figures kept."""
    out = []
    for line in text.split("\n"):
        is_item = re.match(r"\s*- ", line)
        is_figure = re.match(r"\s{2,}\S", line) and not (out and out[-1].startswith("- "))
        if is_item:
            out += [""] if out and not out[-1].startswith("- ") else []
            out.append(line.strip())
        elif is_figure:
            out += ["", "    " + line.strip(), ""]
        elif not line.strip():
            out.append("")
        elif out and out[-1] and not out[-1].startswith("    "):
            out[-1] += " " + line.strip()
        else:
            out.append(line.strip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def code_of(entry):
    """Prototypes are laid out anew, without our attributes; all else as it is."""
    out = []
    for code in entry.code:
        if h.function_of(code):
            behind = re.search(r"/\*[^\n]*\*/$", code)
            out += textwrap.wrap(h.bare(code), 96, subsequent_indent="    ", break_long_words=False)
            out[-1] += "  " + behind.group(0) if behind else ""
        else:
            out.append(re.sub(r"^VIGIL_API ", "", code))
    return "\n".join(out)


def entry_page(header, entry, everything, complaints):
    lines, rules = [], {}
    names = []
    for code in entry.code:
        f = h.function_of(code)
        if f:
            names.append(f[0])
            thread, owner = thread_rule(header, entry), ownership_rule(header, entry, f, everything)
            for rule, what in ((thread, "a thread rule"), (owner, "an owner")):
                if not rule:
                    complaints.append(f"include/vigil/{header.name}: {f[0]} has no {what[2:].strip()}")
            rules.setdefault((thread, owner), []).append(f[0])
        elif m := re.match(r"(struct|enum) (vigil_\w+) \{|#define (\w+)", code):
            names.append(m.group(3) or f"{m.group(1)} {m.group(2)}")
    if names:
        lines += ["### " + ", ".join(f"`{n}`" for n in names), ""]
    lines += ["```c", code_of(entry), "```", ""]
    if entry.comment:
        lines += [words(entry.comment), ""]
    for (thread, owner), of in rules.items():
        which = "" if len(rules) == 1 else ", ".join(f"`{n}`" for n in of) + ": "
        lines += [f"* {which}Thread: {thread}. Ownership: {owner}."]
    return lines + [""] if rules else lines


def about(header):
    text = re.sub(r"^vigil/\w+\.h - ", "", header.intro)
    return text[0].upper() + text[1:]


def page(header, everything, complaints):
    lines = [f"# vigil/{header.name}", "",
             "Made from the header by `tools/reference.py`; change it there.", "",
             words(about(header)), ""]
    for s in header.sections:
        if s.title:
            lines += ["## " + s.title, ""]
        if s.comment:
            lines += [words(s.comment), ""]
        group = ""
        for e in s.entries:
            if e.group and e.group != group:
                lines += [words(e.group), ""]
            group = e.group
            lines += entry_page(header, e, everything, complaints)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def index(all_headers):
    lines = ["# Reference of libvigil", "",
             "Made from the comments in `include/vigil` by `tools/reference.py`. What holds for all of it is in",
             "[base](base.md): handles, errors, texts, options, threads.", "", "| header | about |", "|---|---|"]
    for x in all_headers:
        first = re.split(r"(?<=[.])\s", re.sub(r"\s+", " ", about(x)))[0]
        name = x.name[:-2]
        lines.append(f"| [{name}]({name}.md) | {first} |")
    return "\n".join(lines) + "\n"


def main():
    is_check = sys.argv[1:] == ["--check"]
    all_headers = h.headers()
    everything = [f for x in all_headers for _, f in h.functions(x)]
    complaints = []
    pages = {x.name[:-2] + ".md": page(x, everything, complaints) for x in all_headers}
    pages["README.md"] = index(all_headers)
    os.makedirs(OUT, exist_ok=True)
    for name, text in pages.items():
        path = os.path.join(OUT, name)
        old = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if is_check and old != text:
            complaints.append(f"docs/reference/{name} is not up to date: run tools/reference.py")
        elif old != text:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    complaints += [f"docs/reference/{n} is about nothing" for n in set(os.listdir(OUT)) - set(pages)]
    print("\n".join(complaints), end="\n" if complaints else "")
    return 1 if complaints else 0


sys.exit(main())
