#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public header by itself, as C11 and as C++17, with all warnings as errors.

usage: headers.py INCLUDE_FOLDER...    "cadre/*.h" of each of them
"""
import glob
import os
import shutil
import subprocess
import sys

SKIPPED = 77
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", "-fsyntax-only"]
LANGUAGES = [("c", ["cc", "-std=c11", "-Wstrict-prototypes"]), ("c++", ["c++", "-std=c++17", "-Wold-style-cast"])]


def compile_header(name, language, command, folders):
    """What the compiler says; "" when it is content. Included twice: its guard is tested too."""
    text = f"#include <cadre/{name}>\n#include <cadre/{name}>\n" + ("int unused;\n" if language == "c" else "")
    include = [option for folder in folders for option in ("-I", folder)]
    done = subprocess.run([*command, *WARNINGS, *include, "-x", language, "-"], input=text, text=True,
                          capture_output=True, check=False)
    return done.stderr if done.returncode != 0 else ""


def main(folders):
    names = sorted(os.path.basename(path) for folder in folders for path in glob.glob(f"{folder}/cadre/*.h"))
    if not folders or not names:
        print(__doc__, file=sys.stderr)
        return 2
    failed = 0
    for language, command in LANGUAGES:
        if shutil.which(command[0]) is None:
            print(f"skipped: there is no {command[0]}")
            return SKIPPED
        for name in names:
            said = compile_header(name, language, command, folders)
            if said:
                print(f"cadre/{name} alone, as {command[1][5:]}:\n{said}")
                failed += 1
    print(f"{len(names)} headers in {len(LANGUAGES)} languages, {failed} faults")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
