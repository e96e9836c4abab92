"""exposition.py - a strict parser of the Prometheus text format, version 0.0.4.

parse() returns the families of a scrape and raises Malformed at the first thing that Prometheus, or a careful reader
of the format, would refuse: a family that is announced twice or not at all, whose samples are not in one piece, a
series that appears twice, a name, an escape or a number that is not one, a histogram whose buckets do not add up."""
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
TYPES = ("counter", "gauge", "histogram")


class Malformed(Exception):
    pass


class Family:
    def __init__(self, name):
        self.name, self.help, self.type = name, None, None
        self.samples = {}  # (name, ((label, value), ...)) -> number, in the order of the text


def number(text):
    special = {"NaN": math.nan, "+Inf": math.inf, "-Inf": -math.inf}
    if text in special:
        return special[text]
    if not NUMBER.fullmatch(text):
        raise Malformed(f"{text!r} is no number")
    return float(text)


def unescape(text, escapes):
    """Every backslash begins one of these escapes."""
    out, i = "", 0
    while i < len(text):
        if text[i] != "\\":
            out += text[i]
            i += 1
            continue
        if text[i + 1:i + 2] not in escapes:
            raise Malformed(f"escape {text[i:i + 2]!r}")
        out += escapes[text[i + 1]]
        i += 2
    return out


def label_value(text, at):
    """The quoted value that begins at `at`, and where it ends."""
    end = at + 1
    while end < len(text) and text[end] != '"':
        end += 2 if text[end] == "\\" else 1
    if text[at:at + 1] != '"' or end >= len(text):
        raise Malformed("a label value has no quotes around it")
    return unescape(text[at + 1:end], {"n": "\n", "\\": "\\", '"': '"'}), end + 1


def labels(text, at):
    """What is between the braces; `at` is behind the first."""
    found = []
    while text[at:at + 1] != "}":
        if found:
            if text[at:at + 1] != ",":
                raise Malformed("labels without a comma between them")
            at += 1
        name = LABEL.match(text, at)
        if not name or text[name.end():name.end() + 1] != "=":
            raise Malformed("a label has no name")
        value, at = label_value(text, name.end() + 1)
        found.append((name.group(), value))
    if len({name for name, _ in found}) != len(found):
        raise Malformed("a label appears twice")
    return tuple(sorted(found)), at + 1


def sample(line):
    """name{labels} value"""
    name = NAME.match(line)
    if not name:
        raise Malformed("no metric name")
    at, found = name.end(), ()
    if line[at:at + 1] == "{":
        found, at = labels(line, at + 1)
    if line[at:at + 1] != " ":
        raise Malformed("no blank before the value")
    return name.group(), found, number(line[at + 1:])


def family_of(name, family):
    """Whether a sample of this name belongs to the family."""
    suffixes = ("_bucket", "_sum", "_count") if family.type == "histogram" else ("",)
    return any(name == family.name + s for s in suffixes)


def check_histogram(family):
    groups = {}
    for (name, found), value in family.samples.items():
        rest = tuple(pair for pair in found if pair[0] != "le")
        group = groups.setdefault(rest, {"buckets": []})
        if name.endswith("_bucket"):
            group["buckets"].append((number(dict(found).get("le", "none")), value))
        else:
            group[name[len(family.name):]] = value
    for rest, group in groups.items():
        buckets = group["buckets"]
        bounds, counts = [b for b, _ in buckets], [n for _, n in buckets]
        if bounds != sorted(set(bounds)) or not bounds or bounds[-1] != math.inf:
            raise Malformed(f"buckets of {family.name}{rest}: {bounds}")
        if counts != sorted(counts) or any(n < 0 for n in counts):
            raise Malformed(f"counts of {family.name}{rest} are not cumulative: {counts}")
        if "_sum" not in group or group.get("_count") != counts[-1]:
            raise Malformed(f"{family.name}{rest}: +Inf is {counts[-1]}, _count is {group.get('_count')}")


def finish(family):
    if family.type is None or family.help is None:
        raise Malformed(f"{family.name} has no {'TYPE' if family.type is None else 'HELP'}")
    if family.type == "histogram":
        check_histogram(family)
    elif family.type == "counter" and any(not v >= 0 for v in family.samples.values()):
        raise Malformed(f"the counter {family.name} is negative")


class Parser:
    def __init__(self):
        self.families, self.open = {}, None

    def family(self, name):
        """A # line names a family: the open one, or one that has not been seen."""
        if self.open and self.open.name == name:
            return self.open
        if name in self.families:
            raise Malformed(f"{name} comes back after another family")
        if self.open:
            finish(self.open)
        self.open = self.families[name] = Family(name)
        return self.open

    def comment(self, line):
        parts = line.split(" ", 3)
        if len(parts) < 3 or parts[0] != "#" or parts[1] not in ("HELP", "TYPE") or not NAME.fullmatch(parts[2]):
            raise Malformed("neither HELP nor TYPE")
        family, text = self.family(parts[2]), parts[3] if len(parts) > 3 else ""
        if family.samples:
            raise Malformed(f"{parts[1]} of {family.name} after its samples")
        if getattr(family, parts[1].lower()) is not None:
            raise Malformed(f"a second {parts[1]} of {family.name}")
        if parts[1] == "TYPE" and text not in TYPES:
            raise Malformed(f"type {text!r}")
        setattr(family, parts[1].lower(), unescape(text, {"n": "\n", "\\": "\\"}))

    def line(self, line):
        if line.startswith("#"):
            self.comment(line)
            return
        name, found, value = sample(line)
        if not self.open or not family_of(name, self.open):
            raise Malformed(f"{name} is not of the family {self.open.name if self.open else None}")
        if (name, found) in self.open.samples:
            raise Malformed(f"{name}{dict(found)} appears twice")
        self.open.samples[name, found] = value


def parse(body):
    """Families by name, from the bytes of an answer."""
    text, parser = body.decode("utf-8", "strict"), Parser()
    if not text.endswith("\n"):
        raise Malformed("the last line is not ended")
    for i, line in enumerate(text[:-1].split("\n"), 1):
        try:
            parser.line(line)
        except Malformed as e:
            raise Malformed(f"line {i}: {e}: {line!r}") from None
    finish(parser.open)
    # A sample of one family may not have the name of another: x_count beside a histogram x.
    names = [n for f in parser.families.values() for n in {name for name, _ in f.samples}]
    if len(names) != len(set(names)):
        raise Malformed("two families have a sample name in common")
    return parser.families
