"""scenarios.py <source directory> - docs/client-scenarios.md names, for each of the 60 scenarios, tests
that are there and are run."""
import pathlib
import re
import sys

SCENARIOS = 60
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| `([^`]+)`: `(\w+)` \|$", re.M)


def main():
    root = pathlib.Path(sys.argv[1])
    rows = ROW.findall((root / "docs/client-scenarios.md").read_text())
    faults = [f"{n} has no test" for n in range(1, SCENARIOS + 1) if str(n) not in {r[0] for r in rows}]
    for number, path, test in rows:
        file = root / path
        is_run = file.exists() and re.search(rf"cmocka_unit_test\w*\(\s*{test}\b", file.read_text())
        if not is_run:
            faults.append(f"{number}: {path} does not run {test}")
    print("\n".join(faults) or f"{len(rows)} tests hold {SCENARIOS} scenarios")
    return 1 if faults else 0


sys.exit(main())
