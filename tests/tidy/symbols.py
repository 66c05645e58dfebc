#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what built libraries need of others.

usage: symbols.py core ARCHIVE [ALLOWED_ARCHIVE...]   undefined symbols of a pure core
       symbols.py needed SHARED_LIBRARY               libraries that libcadre.so makes a program load
       symbols.py exports SHARED_LIBRARY HEADER...    what it exports is what these headers declare
       symbols.py layers ROOT OBJECT...            who calls whom in the runtime, as rules.LAYERS allows
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


def source_of(path):
    """The file of the tree that an object was compiled from: .../T/CMakeFiles/NAME.dir/x/y.c.o is T/x/y.c."""
    return re.sub(r"CMakeFiles/[^/]+\.dir/", "", path)[:-len(".o")]


def calls(root, objects):
    """File -> the files whose symbols it needs -> these symbols."""
    sources = {path: os.path.relpath(source_of(path), root) for path in objects}
    defined, needed = {}, {source: set() for source in sources.values()}
    for line in run("nm", "-A", "-P", "--extern-only", *objects).splitlines():
        path, symbol = line.split(": ", 1)
        name, kind = symbol.split()[:2]
        if kind == "U":
            needed[sources[path]].add(name)
        else:
            defined[name] = sources[path]
    edges = {source: {} for source in needed}
    for source, names in needed.items():
        for name in names & defined.keys():
            edges[source].setdefault(defined[name], set()).add(name)
    return edges


def circles(edges):
    """Sets of more than one node that reach each other."""
    def reached(start):
        seen, due = set(), [start]
        while due:
            for node in edges.get(due.pop(), ()):
                if node not in seen:
                    seen.add(node)
                    due.append(node)
        return seen
    reach = {node: reached(node) for node in edges}
    found = {frozenset(n for n in reach[node] if node in reach.get(n, ())) for node in edges}
    return [sorted(circle) for circle in found if len(circle) > 1]


def check_layers(root, objects):
    edges = calls(root, objects)
    faults, folders = [], {}
    for source, used in sorted(edges.items()):
        layer = max((folder for folder in rules.LAYERS if source.startswith(folder)), key=len)
        for other, names in sorted(used.items()):
            folder = os.path.dirname(other) + "/"
            if folder != os.path.dirname(source) + "/":
                folders.setdefault(os.path.dirname(source) + "/", set()).add(folder)
            if not any(folder.startswith(allowed) or allowed.startswith(folder) for allowed in rules.LAYERS[layer]):
                faults.append(f"{source}: {layer} may not call {sorted(names)[0]} of {other}")
    faults += [f"these folders call each other: {' '.join(circle)}" for circle in circles(folders)]
    faults += [f"these {len(circle)} files call each other, and {rules.CIRCLE_FILES_MAX} may: {' '.join(circle)}"
               for circle in circles(edges) if len(circle) > rules.CIRCLE_FILES_MAX]
    print("\n".join(faults + [f"{len(edges)} files in {len({os.path.dirname(source) for source in edges})} folders"]))
    return 1 if faults or not edges else 0


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
    if len(arguments) >= 3 and arguments[0] == "layers":
        return check_layers(arguments[1], arguments[2:])
    if len(arguments) == 3 and arguments[0] == "absent":
        return check_absent(arguments[1], arguments[2])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
