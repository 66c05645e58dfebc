#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that test_every_function.c calls each public function that takes a variable.

usage: every_function.py ROOT
"""
import glob
import os
import re
import sys

COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
DECLARED = re.compile(r"CADRE_API[^;]*?(cadre_\w+)\(([^;]*)\);")
VARIABLE = re.compile(r"\bcadre_(variable|destinations)\s*\*(?!\*)")


def taking(root):
    for header in sorted(glob.glob(os.path.join(root, "common/include/cadre/*.h"))):
        with open(header, encoding="utf-8") as file:
            for name, arguments in DECLARED.findall(COMMENT.sub(" ", file.read())):
                if VARIABLE.search(arguments):
                    yield name


def main(root):
    with open(os.path.join(root, "tests/unit/served/test_every_function.c"), encoding="utf-8") as file:
        tried = set(re.findall(r"\b(cadre_\w+)\(", COMMENT.sub(" ", file.read())))
    names = set(taking(root))
    left_out = sorted(names - tried)
    for name in left_out:
        print(f"test_every_function.c: {name} takes a variable, and is not tried with one on servers")
    if len(names) < 20:
        print("the public headers were not understood")
        return 1
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
