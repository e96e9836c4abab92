#!/usr/bin/env python3
"""Does the generator refuse files that do not fit together, with file and line?

usage: notation.py TOOLS_SCHEMA"""
import os
import subprocess
import sys
import tempfile

GOOD = """group g priority 1
version v1
enum E: a b
kind Thing things namespaced
  about  A thing.
  key    /registry/things/
  hash   aGFzaA==
  select spec.color
type Thing
  metadata  1  meta.ObjectMeta?
  spec      2  Spec?
type Spec
  color  1  E?
  list   2  []Item?  keys(name)
type Item
  name  1  string  required
"""
# What is replaced, by what, and what is said then.
CASES = [
    ("", "", None),
    ("E?", "F?", ":13: there is no type F"),
    ("color  1", "color  x", ":13: want NAME NUMBER TYPE"),
    ("list   2", "list   1", ":12: two fields of Spec have the number 1"),
    ("list   2", "color  2", ":14: color is there already"),
    ("keys(name)", "keys(id)", ":14: items of list have no field id"),
    ("keys(name)", "sorted", ':14: unknown attribute "sorted"'),
    ("enum E: a b", "enum E: b a", ":3: values must be sorted"),
    ("kind Thing things namespaced", "kind Thing things", ":4: want kind KIND RESOURCE"),
    ("kind Thing", "kind Other", ":4: there is no type Other"),
    ("  metadata  1  meta.ObjectMeta?\n", "", ":4: Thing has no metadata"),
    ("  about  A thing.\n", "", ":4: Thing says no about"),
    ("  about  A thing.\n", "  about  A.\n  about  B.\n", ":6: about is said already"),
    ("/registry/things/", "/registry/things", ":6: want key /registry/"),
    ("  hash   aGFzaA==\n", "", ":4: want either a hash or the flag not-stored"),
    ("hash   aGFzaA==", "colour red", ':7: unknown word "colour"'),
    ("hash   aGFzaA==", "hash x\n  flags fast", ':8: unknown flag "fast"'),
    ("hash   aGFzaA==", "hash x\n  verbs look", ':8: unknown verb "look"'),
    ("hash   aGFzaA==", "hash x\n  status {", ":8: {"),
    ("hash   aGFzaA==", "hash x\n  status {}", ":4: Thing has no status"),
    ("hash   aGFzaA==", "hash x\n  generation never spec", ":8: want generation MEMBERS"),
    ("select spec.color", "select spec.size", ":4: Thing has no spec.size"),
    ("select spec.color", "select spec.color loudly", ':8: unknown word "loudly" behind select'),
    ("select spec.color", "select spec.color\n  select spec.color", "can be selected twice"),
    ("select spec.color", "column Name\n  column Color string at spec.color or none", None),
    ("select spec.color", "column Color colour at spec.color", ":8: want column NAME TYPE"),
    ("select spec.color", "column Color string looks spec.color", ":8: want column NAME TYPE"),
    ("select spec.color", "column Color string ratio spec.color", ":8: want column NAME TYPE"),
    ("select spec.color", "column Color string at spec.size", ":8: there is no spec.size"),
    ("select spec.color", "column Names string join spec.list id", ":8: there is no id"),
    ("select spec.color", "completed spec.color", ':8: want completed PATH VALUE "MESSAGE"'),
    ("E?", "E? -- What colour it has.", None),
    ("type Spec", "every list other -- Some of them.\ntype Spec -- What it shall be.", None),
    ("E?", "E? -- no sentence", ":13: want a sentence of at most 100 characters behind --"),
    ("E?", "E? -- A" + 100 * "h" + ".", ":13: want a sentence of at most 100 characters behind --"),
    ("type Spec", "every list\ntype Spec", ":12: want every NAMES -- TEXT"),
    ("type Spec", "every list -- A.\nevery list -- B.\ntype Spec", ":13: every list is said already"),
    ("enum E: a b", "enum E: a b -- Colours.", ":3: only types, their fields and every say what they are"),
    ("about  A thing.", "about  A thing. -- More.", ":5: only types, their fields and every"),
    ("type Thing", "kind Thing others cluster\n  about B.\n  key /registry/things/x/\n  hash y\ntype Thing",
     "lie below /registry/things/"),
]


def main():
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.schema")
        for old, new, want in CASES:
            assert old in GOOD
            with open(path, "w", encoding="utf-8") as f:
                f.write(GOOD.replace(old, new, 1) if old else GOOD)
            meta = os.path.join(os.path.dirname(sys.argv[1]), "../src/server/kinds/schema/meta.schema")
            run = subprocess.run([sys.executable, sys.argv[1], os.path.join(folder, "out.c"), meta, path],
                                 capture_output=True, text=True)
            said = run.stderr.strip()
            is_fine = run.returncode == 0 if want is None else run.returncode == 1 and want in said
            if not is_fine:
                failed += 1
                print(f"{old!r} -> {new!r}: want {want}, got {run.returncode} {said[-400:]}")
    print(f"{len(CASES) - failed} of {len(CASES)}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
