#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks deploy/examples/README.md, the index of the examples, against the examples.

usage: examples.py [--write] [ROOT]     one line for each fault, status 1 when there is one; --write corrects lines

- Each folder, and each program of tour/, is linked.
- A link `[`NAME`](FILE#L10-L20)` points at the lines of the function NAME in FILE, or where FILE has no such function,
  at the first line with that name.
"""
import os
import re
import sys

INDEX = "deploy/examples/README.md"
LINK = re.compile(r"\[([^\]]*)\]\(([^)#]+)(#[^)]*)?\)")
HELPERS = {"show.c"}  # of tour/: no program


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def lines_of(name, text):
    """The anchor of a name in a file: its function's lines, else its first line. None: the file has no such name."""
    lines = text.splitlines()
    word = re.compile(rf"\b{re.escape(name)}\b")
    definition = re.compile(rf"\w.*\b{re.escape(name)}\([^;]*$")
    for first, line in enumerate(lines, 1):
        if definition.match(line):
            last = next((at for at in range(first, len(lines) + 1) if lines[at - 1] == "}"), None)
            if last is not None:
                return f"#L{first}-L{last}"
    return next((f"#L{at}" for at, line in enumerate(lines, 1) if word.search(line)), None)


def wanted_targets(folder):
    """What the index must link: folders, and the programs of tour/."""
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name == "tour":
            programs = {file for file in os.listdir(path) if file.endswith(".c")} - HELPERS
            yield from (f"tour/{program}" for program in sorted(programs))
        elif os.path.isdir(path):
            yield name


def check(root):
    """(faults, the index with its anchors as they should be)"""
    folder = os.path.join(root, os.path.dirname(INDEX))
    index = read(os.path.join(root, INDEX))
    faults = []
    linked = set()

    def corrected(link):
        label, target, anchor = link.groups()
        linked.add(target)
        path = os.path.join(folder, target)
        if not os.path.exists(path):
            faults.append(f"there is no {target}")
        elif anchor:
            name = label.strip("`")
            wanted = lines_of(name, read(path))
            if wanted is None:
                faults.append(f"{target} has no {name}")
            elif wanted != anchor:
                faults.append(f"{name} is at {target}{wanted}, not {anchor}; examples.py --write corrects it")
                return f"[{label}]({target}{wanted})"
        return link[0]

    index = LINK.sub(corrected, index)
    faults += [f"no link to {target}" for target in wanted_targets(folder) if target not in linked]
    return faults, index


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    root = arguments[0] if arguments else os.path.normpath(os.path.join(os.path.dirname(__file__), "../.."))
    faults, index = check(root)
    if "--write" in sys.argv[1:]:
        with open(os.path.join(root, INDEX), "w", encoding="utf-8") as file:
            file.write(index)
        faults, _ = check(root)
    for fault in faults:
        print(f"{INDEX}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
