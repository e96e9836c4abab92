"""guide.py - every program of docs/client-guide.md, taken out of the page, built and run against a fresh
vigild: it must print what the page says, and end well.

Called with vigild, the directory of libvigil, the C compiler, and the sanitizer of the build ("" for
none); further words name the programs to try. Programs that this machine has no compiler for, and Python
with a sanitizer in the library, are left out and named."""
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "vigild"))
from vigild import Case, check, equal  # noqa: E402

GUIDE = os.path.join(ROOT, "docs", "client-guide.md")
LANGUAGES = {"c": "/* ", "cpp": "// ", "python": "# "}
LIMIT_S = 120


def programs():
    """(language, file name, source, output) of each."""
    with open(GUIDE, encoding="utf-8") as f:
        blocks = re.findall(r"^```(\w*)\n(.*?)^```\n", f.read(), re.M | re.S)
    found = []
    for i, (language, source) in enumerate(blocks):
        if language not in LANGUAGES:
            continue
        check(i + 1 < len(blocks) and blocks[i + 1][0] == "text", f"no output follows {source[:40]!r}")
        name = re.match(re.escape(LANGUAGES[language]) + r"([\w.]+) - ", source)
        check(name, f"this program does not say its name: {source[:60]!r}")
        found.append((language, name.group(1), source, blocks[i + 1][1]))
    check(len(found) >= 12, f"only {len(found)} programs were found")
    return found


def compiler_of(language, cc):
    if language == "c":
        return [cc, "-std=gnu11"]
    base = os.path.basename(cc)
    name = base.replace("clang", "clang++") if "clang" in base else base.replace("gcc", "c++").replace("cc", "c++")
    found = shutil.which(os.path.join(os.path.dirname(cc), name)) or shutil.which(name)
    return [found, "-std=c++11"] if found else None


def build(case, words, file, name, libdir, flags):
    program = case.path(name.replace(".", "_"))
    uv = subprocess.run(["pkg-config", "--cflags", "--libs", "libuv"], capture_output=True, text=True,
                        check=True).stdout.split() if name == "uv.c" else []
    args = [*words, "-Wall", "-Wextra", "-Werror", "-g", *flags, f"-I{ROOT}/include", file, f"-L{libdir}",
            f"-Wl,-rpath,{libdir}", "-lvigil", "-lpthread", *uv, "-o", program]
    r = subprocess.run(args, capture_output=True, text=True, check=False)
    check(r.returncode == 0, f"{name} does not build: {r.stderr}")
    return [program]


def run(case, name, args, libdir, want):
    server = case.start(data="data-" + name)
    env = {**os.environ, "KUBECONFIG": server.path("admin.kubeconfig"), "LD_LIBRARY_PATH": libdir}
    r = subprocess.run(args, capture_output=True, text=True, check=False, env=env, timeout=LIMIT_S)
    equal((r.returncode, r.stderr), (0, ""), f"how {name} ended")
    equal(r.stdout, want, f"what {name} printed")
    server.end()


def main(vigild, libdir, cc, sanitizer, *only):
    flags = {"": [], "thread": ["-fsanitize=thread"]}.get(sanitizer, ["-fsanitize=address,undefined"])
    case = Case(vigild)
    try:
        for language, name, source, want in programs():
            if only and name not in only:
                continue
            file = case.write(name, source)
            words = compiler_of(language, cc) if language != "python" else None
            if (language == "python" and sanitizer) or (language == "cpp" and not words):
                print(f"{name} is left out")
                continue
            args = [sys.executable, file] if language == "python" else \
                build(case, words, file, name, libdir, flags)
            run(case, name, args, libdir, want)
            print(f"{name} does what the guide says", flush=True)
        case.finish()
    finally:
        case.done()


main(*sys.argv[1:])
