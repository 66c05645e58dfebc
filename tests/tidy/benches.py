#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the tests run each program of tests/bench: a part that `tests/bench/run` knows names it.

usage: benches.py [ROOT]           one line for each fault, status 1 when there is one
       benches.py --list [ROOT]    each program, and the parts that name it

A program is what a CMakeLists.txt below tests/bench adds. One whose name has a variable in it, ${kind}, is named by
any name that fits. The driver's own files name programs to look whether they are there, which does not count.
"""
import ast
import glob
import os
import re
import sys

BENCH = "tests/bench"
ADDED = re.compile(r"\b(?:cadre_bench_program|cadre_program|add_executable|add_custom_target)\(\s*([\w${}]+)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def programs(root):
    """Name -> the CMakeLists.txt that adds it."""
    found = {}
    for path in sorted(glob.glob(os.path.join(root, BENCH, "*", "**", "CMakeLists.txt"), recursive=True)):
        for name in ADDED.findall(re.sub(r"#.*", "", read(path))):
            found[name] = os.path.relpath(path, root)
    return found


def known(root):
    """The parts that `run` lists."""
    for statement in ast.parse(read(os.path.join(root, BENCH, "run"))).body:
        if isinstance(statement, ast.Assign) and getattr(statement.targets[0], "id", "") == "PARTS":
            return ast.literal_eval(statement.value)
    return []


def strings(part):
    """Those of the files of a part; of an f-string what is not computed, with {} for what is."""
    found = set()
    for path in glob.glob(os.path.join(part, "*.py")):
        if os.path.basename(path).startswith("test_"):
            continue
        for node in ast.walk(ast.parse(read(path))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                found.add("".join(str(piece.value) if isinstance(piece, ast.Constant) else "{}"
                                  for piece in node.values))
    return found


def check(root):
    """Program -> the parts that name it; the faults."""
    parts = known(root)
    added = programs(root)
    named = {part: strings(os.path.join(root, BENCH, part)) for part in parts}
    reached = {}
    for name in added:
        pattern = re.compile(r"[\w{}]+".join(map(re.escape, re.split(r"\$\{\w+\}", name))))
        reached[name] = [part for part in parts if any(pattern.fullmatch(text) for text in named[part])]
    faults = [f"{added[name]}: {name} is run by no part: name it in a measure.py whose folder {BENCH}/run lists"
              for name, by in reached.items() if not by]
    there = {os.path.basename(os.path.dirname(path))
             for path in glob.glob(os.path.join(root, BENCH, "*", "measure.py"))}
    faults += [f"{BENCH}/{part}: {BENCH}/run does not list this part" for part in sorted(there - set(parts))]
    faults += [f"{BENCH}/run: the part {part} has no measure.py" for part in parts if part not in there]
    return reached, faults


def main(arguments):
    listing = arguments[:1] == ["--list"]
    rest = arguments[1:] if listing else arguments
    root = rest[0] if rest else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    reached, faults = check(root)
    for name in sorted(reached) if listing else ():
        print(f"{name}: {', '.join(reached[name]) or '-'}")
    for fault in faults:
        print(fault)
    print(f"{len(reached)} programs of {BENCH}, {len(faults)} faults")
    return 1 if faults or not reached else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
