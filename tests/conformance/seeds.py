#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks seeds.md: what it names is there. One line for each fault, status 1 when there is one.

usage: seeds.py [ROOT]
"""
import glob
import json
import os
import re
import sys

STATES = {"works": False, "partly": True, "missing": False, "no meaning here": True}  # with a clause
DOCUMENTS = 5
HEAD = ["#", "what the document says", "here", "tests", "state"]
TOTALS = re.compile(r"(\d+) items: (\d+) work, (\d+) partly, (\d+) are missing, (\d+) have no meaning here\.")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tree:
    """What the tree has: names of the public headers, tests in files."""

    def __init__(self, root):
        self.root = root
        headers = sorted(glob.glob(os.path.join(root, "common/include/cadre/*.h")))
        text = "\n".join(read(path) for path in headers)
        self.words = set(re.findall(r"\b\w+\b", text))
        self.declared = set(re.findall(r"\bcadre_\w+", re.sub(r"/\*.*?\*/", " ", text, flags=re.S)))

    def has_name(self, name):
        """Functions and types are declared; settings of the environment stand in comments only."""
        return name in (self.declared if name.startswith("cadre_") else self.words)

    def has_test(self, path, name):
        """None: no such file; else whether the test of that name is in it."""
        path = os.path.join(self.root, path if path.startswith("deploy/") else os.path.join("tests", path))
        if not os.path.isfile(path):
            return None
        text = read(path)
        if not name:
            return False
        if path.endswith(".json"):
            return any(case.get("id") == name for case in json.loads(text))
        if path.endswith(".py"):
            return re.search(rf"^\s*def {re.escape(name)}\(", text, re.M) is not None
        if os.path.basename(path) == "CMakeLists.txt":
            return re.search(rf"^\s*\w+\({re.escape(name)}[ )]", text, re.M) is not None
        return re.search(rf"\bcmocka_unit_test\w*\(\s*{re.escape(name)}\b", text) is not None


class Checker:
    def __init__(self, text, tree):
        self.tree = tree
        self.lines = text.splitlines()
        self.faults = []
        self.counts = dict.fromkeys(STATES, 0)
        self.headings = []
        self.rows = 0

    def fault(self, number, what):
        self.faults.append(f"seeds.md:{number}: {what}")

    def check(self):
        for number, line in enumerate(self.lines, 1):
            if line.startswith("## "):
                self.headings.append(line[3:])
            elif self.headings and line.startswith("|"):
                self.row(number, [cell.strip() for cell in line.strip("|").split("|")])
        if len(self.headings) != DOCUMENTS or len(set(self.headings)) != len(self.headings):
            self.fault(1, f"{DOCUMENTS} documents with titles of their own are wanted, not {self.headings}")
        self.totals()
        return self.faults

    def row(self, number, cells):
        if cells == HEAD or set("".join(cells)) <= set("- "):
            return
        if len(cells) != len(HEAD) or not all(cells):
            self.fault(number, f"a row has {len(HEAD)} cells, all filled")
            return
        self.rows += 1
        if cells[0] != str(self.rows):
            self.fault(number, f"the number is {cells[0]}, not {self.rows}")
        state, _, clause = cells[4].partition(": ")
        if state not in STATES or STATES[state] != bool(clause):
            self.fault(number, f"\"{cells[4]}\" is no state")
            return
        self.counts[state] += 1
        self.here(number, cells[2])
        self.tests(number, cells[3])
        if (cells[3] == "-") != (state in ("missing", "no meaning here")):
            self.fault(number, f"an item that is \"{state}\" has {'no tests' if cells[3] == '-' else 'tests'}")

    def here(self, number, cell):
        for name in self.names(number, cell):
            if not self.tree.has_name(name):
                self.fault(number, f"{name} is not in a public header")

    def tests(self, number, cell):
        for name in self.names(number, cell):
            path, _, test = name.partition(": ")
            found = self.tree.has_test(path, test)
            if found is None:
                self.fault(number, f"there is no file {path}")
            elif not found:
                self.fault(number, f"{path} has no test \"{test}\"")

    def names(self, number, cell):
        if cell == "-":
            return []
        names = re.findall(r"`([^`]+)`", cell)
        if " ".join(f"`{name}`" for name in names) != cell:
            self.fault(number, f"\"{cell}\" holds other things than names in backticks, or a -")
        return names

    def totals(self):
        found = TOTALS.search("\n".join(self.lines))
        wanted = [self.rows] + [self.counts[state] for state in STATES]
        if found is None or [int(text) for text in found.groups()] != wanted:
            self.fault(1, f"the rows are {wanted}: items, {', '.join(STATES)}")


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    faults = Checker(read(os.path.join(root, "tests/conformance/seeds.md")), Tree(root)).check()
    print("\n".join(faults + [f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
