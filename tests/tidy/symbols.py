#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what built libraries need of others.

usage: symbols.py core ARCHIVE [ALLOWED_ARCHIVE...]   undefined symbols of a pure core
       symbols.py needed SHARED_LIBRARY               libraries that libcadre.so makes a program load
       symbols.py exports SHARED_LIBRARY HEADER...    what it exports is what these headers declare
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


def declared(header):
    """Names of what a header declares as CADRE_API."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.DOTALL)
    text = re.sub(r"^#.*?(?<!\\)$", "", text, flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"\bCADRE_API\b[^;({]*?(\w+)\s*(?:\[[^\]]*\]\s*)?[(;]", text)
    if "CADRE_API" in text and not names:
        raise SystemExit(f"{header}: CADRE_API stands before nothing that symbols.py can read")
    return set(names)


def check_exports(library, headers):
    public = set().union(*map(declared, headers))
    exported = {name.split("@")[0] for name in
                (line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines())}
    allowed = public | set(rules.EXPORTED_BESIDES)
    wrong = [f"{name} is exported, but no public header declares it" for name in sorted(exported - allowed)]
    wrong += [f"{name} is declared, but not exported" for name in sorted(public - exported)]
    for line in wrong:
        print(f"{os.path.basename(library)}: {line}")
    print(f"{os.path.basename(library)}: {len(exported)} exported, {len(public)} declared")
    return 1 if wrong or not public else 0


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
    if len(arguments) >= 3 and arguments[0] == "exports":
        return check_exports(arguments[1], arguments[2:])
    if len(arguments) == 3 and arguments[0] == "absent":
        return check_absent(arguments[1], arguments[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
