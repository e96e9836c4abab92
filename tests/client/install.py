"""install.py - libvigil as it is installed: its files, its headers alone in C and C++, the symbols
it shows, and the README's program, taken from its text, built by pkg-config and by CMake and run
against vigild. The other programs of examples/ are built from the installed library too.

Called with vigild, the build directory, cmake, the compiler, and the sanitizer of the build. With
--write instead it writes symbols.txt anew from the shared library that follows."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "vigild"))
from vigild import Case, check, equal, wait_for  # noqa: E402

SYMBOLS = os.path.join(HERE, "symbols.txt")
EXAMPLES = os.path.join(ROOT, "examples")
HELLO = os.path.join(EXAMPLES, "hello_informer.c")
HELLO_LINES_MAX = 40
STRICT = ["-Wall", "-Wextra", "-Werror"]
CMAKE = """cmake_minimum_required(VERSION 3.25)
project(hello C)
find_package(vigil 0.2 REQUIRED)
add_executable(hello %s)
target_compile_options(hello PRIVATE -Wall -Wextra -Werror %s)
target_link_options(hello PRIVATE %s)
target_link_libraries(hello PRIVATE vigil::vigil)
"""


def run(*args, **kw):
    r = subprocess.run(args, capture_output=True, text=True, check=False, **kw)
    check(r.returncode == 0, f"{' '.join(args)}: {r.stdout}{r.stderr}")
    return r.stdout


def symbols_of(library):
    """Names with their versions, as the dynamic linker sees them."""
    lines = run("nm", "-D", "--defined-only", library).split("\n")
    names = {line.split()[2] for line in lines if line}
    return sorted(n for n in names if n.startswith("vigil_") or not n.startswith(("VIGIL_", "__")))


def test_symbols(library):
    with open(SYMBOLS, encoding="utf-8") as f:
        equal(symbols_of(library), f.read().split(), "the list of symbols in symbols.txt")


def test_headers(cc, include):
    headers = sorted(os.path.basename(p) for p in glob.glob(include + "/vigil/*.h"))
    check("vigil.h" in headers, f"no vigil.h among {headers}")
    for h in headers:
        for language, std in (("c", "-std=c11"), ("c++", "-std=c++11")):
            run(cc, "-x", language, std, *STRICT, "-pedantic", "-fsyntax-only", f"-I{include}",
                "-include", f"vigil/{h}", "/dev/null")


def test_hello(case, server, program, libdir):
    """It tells of what was there, what comes and what goes."""
    env = {**os.environ, "KUBECONFIG": server.path("admin.kubeconfig"), "LD_LIBRARY_PATH": libdir}
    log = case.path("hello.log")
    with open(log, "w", encoding="utf-8") as out:
        p = subprocess.Popen([program], stdout=out, stderr=subprocess.STDOUT, env=env)

    def said(line):
        with open(log, encoding="utf-8") as f:
            text = f.read()
        check(p.poll() is None, f"it ended: {text}")
        return line in text.split("\n")

    url = "/api/v1/namespaces/default/pods"
    try:
        wait_for("the number of pods", lambda: said("1 pods"))
        wait_for("the first pod", lambda: said("found default/first Pending"))
        equal(server.ask(url, "POST", body=pod("second")).status, 201)
        wait_for("a new pod", lambda: said("added default/second Pending"))
        equal(server.ask(url + "/second?gracePeriodSeconds=0", "DELETE").status, 200)
        wait_for("its end", lambda: said("deleted default/second Pending"))
    finally:
        p.kill()
        p.wait()


def pod(name):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i"}]}}


def test_readme():
    """The program in the README is the one of examples/, and short."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
        readme = f.read().split("\n")
    with open(HELLO, encoding="utf-8") as f:
        hello = f.read().rstrip("\n").split("\n")
    check(len(hello) <= HELLO_LINES_MAX, f"hello_informer.c has {len(hello)} lines")
    first = readme.index("    " + hello[0])
    text = [line[4:] for line in readme[first:first + len(hello)]]
    equal(text, hello, "the program in the README")


def build_examples(cc, flags, libdir, case):
    """Each as examples/README.md says: its .c files, and pkg-config."""
    for name, *more in (("replicaset_controller",), ("scheduler",), ("node_agent", "pod_sources")):
        sources = [os.path.join(EXAMPLES, part + ".c") for part in (name, *more)]
        build_pkg_config(cc, flags, libdir, case.path(name), sources=sources)


def build_pkg_config(cc, flags, libdir, out, is_static=False, sources=(HELLO,)):
    env = {**os.environ, "PKG_CONFIG_PATH": libdir + "/pkgconfig"}
    words = run("pkg-config", "--cflags", "--libs", "libvigil", env=env).split()
    if is_static:  # the archive of ours; below it the shared libraries that it needs
        words = [libdir + "/libvigil.a" if w == "-lvigil" else w for w in words]
        words += run("pkg-config", "--libs", "libuv", "libcurl", "yaml-0.1").split() + ["-lm"]
    run(cc, *STRICT, *flags, *sources, *words, "-o", out)
    return out


def build_cmake(case, cmake, cc, flags, prefix):
    case_dir = case.path("cmake")
    os.mkdir(case_dir)
    with open(case_dir + "/CMakeLists.txt", "w", encoding="utf-8") as f:
        f.write(CMAKE % (HELLO, " ".join(flags), " ".join(flags)))
    run(cmake, "-S", case_dir, "-B", case_dir + "/b", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={cc}")
    run(cmake, "--build", case_dir + "/b")
    return case_dir + "/b/hello"


def main(vigild, build, cmake, cc, sanitizer):
    flags = {"": [], "thread": ["-fsanitize=thread"]}.get(sanitizer, ["-fsanitize=address,undefined"])
    case = Case(vigild)
    try:
        prefix = case.path("prefix")
        run(cmake, "--install", build, "--prefix", prefix, "--component", "libvigil")
        libdir = os.path.dirname(glob.glob(prefix + "/**/libvigil.so", recursive=True)[0])
        test_symbols(libdir + "/libvigil.so")
        test_headers(cc, prefix + "/include")
        test_readme()
        build_examples(cc, flags, libdir, case)
        programs = [build_pkg_config(cc, flags, libdir, case.path("shared")),
                    build_pkg_config(cc, flags, libdir, case.path("static"), is_static=True),
                    build_cmake(case, cmake, cc, flags, prefix)]
        server = case.start()
        url = "/api/v1/namespaces/default/pods"
        equal(server.ask(url, "POST", body=pod("first")).status, 201)
        for program in programs:
            test_hello(case, server, program, libdir)
        case.finish()
    finally:
        case.done()


if sys.argv[1] == "--write":
    with open(SYMBOLS, "w", encoding="utf-8") as out_file:
        out_file.write("\n".join(symbols_of(sys.argv[2])) + "\n")
else:
    main(*sys.argv[1:])
