#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks which files need which others: by the symbols of a build's objects, and by what they include.

usage: links.py BUILD [--show FOLDER [FOLDER]]

A call may go where an include may (rules.LAYERS): a folder that declares another one's function itself is found out.
No circle among folders, by link or by include. Circles of files inside one folder: at most rules.FILE_CIRCLES.
Where a README says DRAWN, the drawing behind it has each file of the folder, and so it is.
--show prints the circles and arrows of one folder, or each symbol by which the first needs the second.
"""
import json
import os
import re
import subprocess
import sys

import graph
import rules

DRAWN = "Files call downwards only, in a row to the right"
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")


def is_product(path):
    return path.startswith(rules.PRODUCT) and path.endswith(".c")


def objects_of(build, root=ROOT):
    """Source -> one of its objects. The same source in several targets has the same symbols in each."""
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    found = {}
    for command in commands:
        source = os.path.relpath(os.path.join(command["directory"], command["file"]), root)
        output = re.search(r" -o (\S+\.o) ", command["command"])
        object_path = os.path.join(command["directory"], output.group(1) if output else "")
        if is_product(source) and source not in found and os.path.isfile(object_path):
            found[source] = object_path
    return found


def read_symbols(objects):
    """(source, symbol, whether it is defined there) of all that is seen from outside."""
    sources = {path: source for source, path in objects.items()}
    shown = subprocess.run(["nm", "-A", "-P", "-g", *sources], check=True, capture_output=True, text=True).stdout
    for line in shown.splitlines():
        path, rest = line.rsplit(": ", 1)
        name, kind = rest.split()[:2]
        yield sources[path], name, kind != "U"


def links_of(objects):
    """Source -> {other source: symbols of it that the first needs}."""
    defined, needed = {}, {source: [] for source in objects}
    for source, name, is_defined in read_symbols(objects):
        if not is_defined:
            needed[source].append(name)
        elif name not in rules.INTERPOSED | rules.HOOKS:
            defined.setdefault(name, []).append(source)
    links = {}
    for source, names in needed.items():
        links[source] = {}
        for name in sorted(names):
            target = name in defined and whose(source, defined[name])
            if target:
                links[source].setdefault(target, []).append(name)
    return links


def whose(source, candidates):
    """Several programs may each have a function of one name: of its own folder, or where its row lets it look."""
    own = [c for c in candidates if graph.folder_of(c) == graph.folder_of(source)]
    allowed = [c for c in candidates if may_use(source, c)]
    return (own or allowed or candidates)[0]


def includes_of(root=ROOT):
    """File -> files that it includes by their path from the root."""
    found = {}
    for top in rules.PRODUCT:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in names:
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        quoted = re.findall(r'^\s*#\s*include "([^"]+)"', file.read(), re.M)
                    found[os.path.relpath(path, root)] = {i for i in quoted if is_product(i[:-1] + "c")}
    return found


def may_use(source, other):
    """Whether the row of `source` lets it include something of the folder of `other`, or what it implements."""
    layer = max((row for row in rules.LAYERS if source.startswith(row)), key=len, default="")
    folder = graph.folder_of(other) + "/"
    return any(folder.startswith(name) if name.endswith("/") else folder in (name.rsplit("/", 1)[0] + "/",
                                                                            *rules.IMPLEMENTED_IN.get(name, ()))
               for name in rules.LAYERS.get(layer, ()))


def faults_of(links, includes):
    for source in sorted(links):
        for other in sorted(links[source]):
            if graph.folder_of(source) != graph.folder_of(other) and not may_use(source, other):
                yield f"{source}: link: needs {', '.join(links[source][other])} of {other}, which it may not include"
    for kind, edges in (("link", links), ("include", includes)):
        for circle in graph.circles(graph.by_folder(edges)):
            yield f"{circle[0]}: {kind}: a circle of folders: {', '.join(circle)}"
    for circle in graph.circles(includes):
        yield f"{circle[0]}: include: a circle of files: {', '.join(circle)}"
    yield from file_circles(links)


def file_circles(links):
    """Those inside folders: a ratchet, so that what was untied stays so."""
    largest = {}
    for circle in graph.circles(links):
        folder = graph.folder_of(circle[0])
        largest.setdefault(folder, circle)
    for folder in sorted(largest.keys() | rules.FILE_CIRCLES.keys()):
        allowed = rules.FILE_CIRCLES.get(folder, 1)
        size = len(largest.get(folder, [folder]))
        if size > allowed:
            yield (f"{folder}: link: {size} files need each other, rules.FILE_CIRCLES allows {allowed}: "
                   f"{', '.join(largest[folder])}")
        elif size < allowed:
            yield f"{folder}: link: {size} files need each other now, fewer than in rules.FILE_CIRCLES: say so there"


def place_in(text):
    """File -> (row, column) in the drawing behind the sentence DRAWN; empty where there is none."""
    drawing = text.partition(DRAWN)[2].partition("```")[2].partition("```")[0]
    return {name: (row, column) for row, line in enumerate(drawing.splitlines())
            for column, name in enumerate(re.findall(r"\w+\.c\b", line))}


def drawing_faults(links, readmes):
    """`readmes`: folder -> text. What DRAWN says holds for each link between two files of the folder."""
    for source in sorted(links):
        folder, name = os.path.split(source)
        place = place_in(readmes.get(folder, ""))
        if place and name not in place:
            yield f"{folder}/README.md: drawing: {name} is not in it"
        for other in sorted(links[source]):
            below = os.path.basename(other)
            if graph.folder_of(other) == folder and name in place and below in place and place[below] <= place[name]:
                yield f"{folder}/README.md: drawing: {name} needs {', '.join(links[source][other])} of {below}"


def readmes_of(links, root=ROOT):
    found = {}
    for folder in {graph.folder_of(source) for source in links}:
        path = os.path.join(root, folder, "README.md")
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                found[folder] = file.read()
    return found


def show(links, folder, other=None):
    """What a person wants to see who unties something."""
    for source in sorted(links):
        for target in sorted(links[source]):
            if other and graph.folder_of(source) == folder and graph.folder_of(target) == other:
                print(f"{source} -> {target}: {' '.join(links[source][target])}")
    if other is None:
        inside = {s: [t for t in to if t.startswith(folder)] for s, to in links.items() if s.startswith(folder)}
        for circle in graph.circles(inside):
            print(f"circle of {len(circle)} files: {' '.join(circle)}")
        folders = graph.by_folder(inside)
        for circle in graph.circles(folders):
            print(f"circle of {len(circle)} folders: {' '.join(circle)}")
        for name in sorted(folders):
            print(f"{name} -> {' '.join(sorted(folders[name])) or '-'}")


def main(arguments):
    if not arguments or len(arguments) > 4 or (len(arguments) > 1 and (arguments[1] != "--show" or len(arguments) < 3)):
        print(__doc__, file=sys.stderr)
        return 2
    objects = objects_of(arguments[0])
    if not objects:
        print(f"{arguments[0]}: no object of the product is built there; build it, then ask again")
        return 1
    links = links_of(objects)
    if len(arguments) > 1:
        show(links, *(name.rstrip("/") for name in arguments[2:]))
        return 0
    faults = [*faults_of(links, includes_of()), *drawing_faults(links, readmes_of(links))]
    print("\n".join(faults) if faults else f"links: {len(links)} files, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
