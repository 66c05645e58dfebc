#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that each public function is shown to readers: called in an example, or in a test written as documentation.

usage: shown.py [ROOT]           one line for each fault, status 1 when there is one
       shown.py --list [ROOT]    each public function, and the first file that shows it

Public functions are what the headers declare as CADRE_API; typedefs are none, nor are inline functions, which macros
are made of. The headers' macros with arguments are to be shown, too, and a function that such a macro calls is shown
where the macro is: cadre_check by CADRE_CHECK.
"""
import glob
import os
import re
import sys

import rules
import symbols

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
MACRO = re.compile(r"^#[ \t]*define[ \t]+(CADRE_\w+)\(([^)]*)\)((?:[^\n\\]|\\.|\\\n)*)", re.MULTILINE)


def code(path):
    """The text of a file without comments and strings."""
    with open(path, encoding="utf-8") as file:
        return STRING.sub('""', COMMENT.sub(" ", file.read()))


def macros(header):
    """The macros with arguments of a header: name -> what they become."""
    return {name: body for name, _, body in MACRO.findall(code(header))}


def public(root):
    """Function or macro -> its header; macro -> what it becomes."""
    names = {}
    bodies = {}
    for header in sorted(glob.glob(os.path.join(root, rules.PUBLIC_HEADERS, "*.h"))):
        for name in symbols.declared(header):
            names[name] = os.path.basename(header)
        for name, body in macros(header).items():
            names[name] = os.path.basename(header)
            bodies[name] = body
    return names, bodies


def shown(root):
    """Name -> the first file of the examples and documents that uses it."""
    found = {}
    for folder in rules.SHOWN_IN:
        for suffix in ("c", "cu", "h"):
            for path in sorted(glob.glob(os.path.join(root, folder, "**", "*." + suffix), recursive=True)):
                for name in re.findall(r"\b(?:cadre|CADRE)_\w+\b", code(path)):
                    found.setdefault(name, os.path.relpath(path, root))
    return found


def check(root):
    names, bodies = public(root)
    found = shown(root)
    for macro, body in bodies.items():  # what it calls is shown where it is
        for name in re.findall(r"\bcadre_\w+\b", body):
            if macro in found and name in names:
                found.setdefault(name, found[macro])
    faults = [f"{rules.PUBLIC_HEADERS}/{names[name]}: {name} is shown nowhere: call it in an example of "
              f"{rules.SHOWN_IN[0]}, or in {rules.SHOWN_IN[1]}/{document(root, names[name])}, and look at what it does"
              for name in sorted(set(names) - set(found))]
    functions = [name for name in names if name not in bodies]
    if len(functions) > rules.PUBLIC_FUNCTIONS_MAX:
        faults.append(f"{rules.PUBLIC_HEADERS}: {len(functions)} public functions, and at most "
                      f"{rules.PUBLIC_FUNCTIONS_MAX} are wanted: give an option to one that there is, or delete one")
    return names, found, faults


def document(root, header):
    """The document that says in its first comment that it is about this header; else a new one of its name."""
    for path in sorted(glob.glob(os.path.join(root, rules.SHOWN_IN[1], "*.c"))):
        with open(path, encoding="utf-8") as file:
            head = file.read().split("*/", 1)[0]
        if re.search(rf"cadre/{re.escape(header)}", head):
            return os.path.basename(path)
    return header[:-2] + ".c"


def main(arguments):
    listing = arguments[:1] == ["--list"]
    rest = arguments[1:] if listing else arguments
    root = rest[0] if rest else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    names, found, faults = check(root)
    if listing:
        for name in sorted(names, key=lambda name: (names[name], name)):
            print(f"{names[name]}: {name}: {found.get(name, '-')}")
    for fault in faults:
        print(fault)
    print(f"{sum(name.islower() for name in names)} public functions, {len(faults)} faults")
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
