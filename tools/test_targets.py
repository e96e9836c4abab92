#!/usr/bin/env python3
"""test_targets.py BUILD LABEL EXCLUDED - what ninja must make for the tests with this label and without those that
match EXCLUDED, one target per line: every file of the build directory that their commands name. ctest itself tells it
only of files that exist already, so the generated CTestTestfile.cmake are read."""
import os
import re
import sys

TEST = re.compile(r'^add_test\(\[=\[(.*?)\]=\] (.*)\)$', re.M)
LABELS = re.compile(r'^set_tests_properties\(\[=\[(.*?)\]=\] PROPERTIES .*?\bLABELS "([^"]*)"', re.M)


def test_files(build):
    """CTestTestfile.cmake of the build directory and of those that it includes; others may be left from before."""
    folders = [build]
    for folder in folders:
        with open(os.path.join(folder, "CTestTestfile.cmake"), encoding="utf-8") as f:
            text = f.read()
        folders += [os.path.join(folder, sub) for sub in re.findall(r'^subdirs\("(.*)"\)$', text, re.M)]
        yield text


def main():
    build, label, excluded = os.path.abspath(sys.argv[1]), sys.argv[2], re.compile(sys.argv[3])
    targets = set()
    for text in test_files(build):
        labels = {name: found.split(";") for name, found in LABELS.findall(text)}
        for name, command in TEST.findall(text):
            mine = labels.get(name, [])
            if label in mine and not any(excluded.search(each) for each in mine):
                targets.update(re.findall('"' + re.escape(build + os.sep) + '([^"]*)"', command))
    for target in sorted(targets):
        print(target)


if __name__ == "__main__":
    main()
