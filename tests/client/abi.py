"""abi.py - the binary interface of libvigil, as tests/client/abi.txt has it: sizes and places of all public
structs and their members, values of enums, prototypes. symbols.txt has the names; this has what a
program that was compiled earlier relies on. A difference fails: either it is a mistake, or the version
of the library changes with it, and `abi.py --write` writes the file anew.

Called with the compiler, or with --write and the compiler."""
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools"))
import headers as h  # noqa: E402

FILE = os.path.join(HERE, "abi.txt")
MEMBER = '    printf("  %s at %%zu, %%zu bytes\\n", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));'


def program(headers):
    """One that prints what the compiler makes of the headers."""
    lines = ["#include <stdio.h>", "#include <vigil/vigil.h>", "int main(void)", "{",
             "    if (sizeof(void *) != 8 || sizeof(long) != 8)", "        return 77;"]
    for header in headers:
        for name, members in h.structs(header):
            lines.append(f'    printf("struct {name} %zu bytes\\n", sizeof(struct {name}));')
            lines += [MEMBER % (m, name, m, name, m) for m in members]
        for name, values in h.enums(header):
            lines.append(f'    printf("enum {name} %zu bytes\\n", sizeof(enum {name}));')
            lines += [f'    printf("  {v} %d\\n", (int){v});' for v in values]
    return "\n".join(lines + ["    return 0;", "}"]) + "\n"


def describe(cc):
    headers = h.headers()
    with tempfile.TemporaryDirectory(prefix="vigil-abi-") as d:
        with open(d + "/abi.c", "w", encoding="utf-8") as f:
            f.write(program(headers))
        subprocess.run([cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-I" + ROOT + "/include",
                        d + "/abi.c", "-o", d + "/abi"], check=True)
        r = subprocess.run([d + "/abi"], capture_output=True, text=True, check=False)
    if r.returncode == 77:
        print("SKIPPED: abi.txt is that of machines with 64-bit pointers")
        sys.exit(77)
    prototypes = [f"{result} {name}({params})".replace("* ", "*")
                  for header in headers for _, (name, result, params) in h.functions(header)]
    return r.stdout + "\n".join(sorted(prototypes)) + "\n"


def main(args):
    now = describe(args[-1])
    if args[0] == "--write":
        with open(FILE, "w", encoding="utf-8") as f:
            f.write(now)
        return 0
    with open(FILE, encoding="utf-8") as f:
        then = f.read().split("\n")
    gone = [line for line in then if line not in now.split("\n")]
    come = [line for line in now.split("\n") if line not in then]
    for sign, lines in (("-", gone), ("+", come)):
        print("".join(f"{sign} {line}\n" for line in lines), end="")
    if then != now.split("\n"):
        print("the binary interface has changed; see the top of tests/client/abi.py")
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
