#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what built libraries need of others.

usage: symbols.py core ARCHIVE [ALLOWED_ARCHIVE...]   undefined symbols of a pure core
       symbols.py needed SHARED_LIBRARY               libraries that libcadre.so makes a program load
       symbols.py absent NAME FOLDER                  NAME is no target: skipped while FOLDER has no sources
"""
import glob
import os
import re
import subprocess
import sys

import rules

SKIPPED = 77


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def symbols(archive, option):
    """Names from `nm -u` (undefined) or `nm --defined-only`."""
    return {line.split()[-1] for line in run("nm", option, archive).splitlines() if line and not line.endswith(":")}


def check_core(archive, others):
    known = symbols(archive, "--defined-only")
    for other in others:
        known |= symbols(other, "--defined-only")
    strangers = sorted(name for name in symbols(archive, "-u") - known if not re.match(rules.CORE_SYMBOLS, name))
    for name in strangers:
        print(f"{os.path.basename(archive)}: {name}: a core may use string.h, pure and model only")
    return 1 if strangers else 0


def check_needed(library):
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library))
    if not needed:
        print(f"{library}: readelf shows no NEEDED entry at all")
        return 1
    heavy = [name for name in needed if re.match(rules.RUNTIME_NEEDED_NEVER, name)]
    for name in heavy:
        print(f"{os.path.basename(library)}: {name} must not be loaded into every training program")
    print("needed:", " ".join(needed))
    return 1 if heavy else 0


def check_absent(name, folder):
    if glob.glob(os.path.join(folder, "*.c")):
        print(f"{folder} has sources, but there is no target {name} to check; name it in tests/tidy/CMakeLists.txt")
        return 1
    print(f"skipped: there is no {name} yet")
    return SKIPPED


def main(arguments):
    if len(arguments) >= 2 and arguments[0] == "core":
        return check_core(arguments[1], arguments[2:])
    if len(arguments) == 2 and arguments[0] == "needed":
        return check_needed(arguments[1])
    if len(arguments) == 3 and arguments[0] == "absent":
        return check_absent(arguments[1], arguments[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
