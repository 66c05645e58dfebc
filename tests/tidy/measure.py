#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the shape of C sources, of this tree or of any other, to be set beside others.

usage: measure.py [--check] [--build BUILD] [FOLDER...]     default: what this project ships, without tests and examples

--check compares with rules.SHAPE instead: status 1 and one line per figure that is out of its range.
--build: also the files that need each other by link (links.py), of this tree's build.
"""
import collections
import os
import re
import sys

import graph
import links
import rules
import tidy

CORES = ("coordinator/core", "worker/core")
RUNTIME = "worker/library/runtime"


def sources_of(root, folders):
    for path in tidy.list_files(root):
        if path.endswith((".c", ".h")) and path.startswith(tuple(folders)):
            yield tidy.Source(root, path)


def percent(part, whole):
    return f"{100 * part / whole:.1f}%" if whole else "-"


def comment_lines(source):
    """Lines that have nothing but a comment on them."""
    return sum(1 for line, code in zip(source.lines, source.code) if line.strip() and not code.strip())


def prototypes_of(source):
    """For each function that a header declares: whether the line above it ends a comment."""
    for match in re.finditer(r"^(?!static|typedef|#|\s|\}|return)[\w][^;{}()=]*?\b(\w+)\s*\([^;{}]*\)[^;{}]*;",
                             source.code_text, re.M):
        above = source.lines[source.code_text.count("\n", 0, match.start()) - 1].rstrip()
        yield above.endswith("*/")


def asserts_of(source):
    return len(re.findall(r"\b(?:CADRE_ASSERT|assert|ASSERT)\(", source.code_text))


def measure(sources):
    lengths, bare = [], 0
    counts = collections.Counter()
    for source in sources:
        if source.kind == ".c":
            functions = tidy.functions_of(source)
            lengths += [function.lines for function in functions]
            bare += sum(1 for function in functions if "_" not in function.name)
            counts["lines"] += len(source.lines)
            counts["comments"] += comment_lines(source)
        else:
            described = list(prototypes_of(source))
            counts["prototypes"] += len(described)
            counts["described"] += sum(described)
        counts["asserts"] += asserts_of(source)
    lengths.sort()
    count = len(lengths)
    yield "functions", str(count)
    if count:
        yield "function lines, median/p90/max", f"{lengths[count // 2]}/{lengths[count * 9 // 10]}/{lengths[-1]}"
    yield "comment lines in .c", percent(counts["comments"], counts["lines"])
    yield "prototypes with a comment right above", percent(counts["described"], counts["prototypes"])
    yield "functions named by one bare word", percent(bare, count)
    yield "asserts a function", f"{counts['asserts'] / max(count, 1):.2f}"


def measure_part(root, folder):
    rows = dict(measure(sources_of(root, [folder + "/"])))
    return rows["asserts a function"]


def measure_links(build):
    found = links.links_of(links.objects_of(build))
    sizes = [len(circle) for circle in graph.circles(found)]
    yield "files in link circles", f"{sum(sizes)} of {len(found)}, largest {max(sizes, default=0)}"
    yield "folders in link circles", str(sum(map(len, graph.circles(graph.by_folder(found)))))


def check(rows):
    """The figures that are out of the range that rules.SHAPE gives them."""
    faults = []
    for name, (least, most) in rules.SHAPE.items():
        value = float(dict(rows)[name].rstrip("%"))
        if not least <= value <= most:
            faults.append(f"shape: {name}: {value} is not from {least} to {most}")
    return faults


def main(arguments):
    build = None
    if arguments == ["--check"]:
        faults = check(list(measure(sources_of(os.path.abspath(links.ROOT), rules.PRODUCT))))
        print("\n".join(faults) if faults else "shape: no fault")
        return 1 if faults else 0
    if arguments[:1] == ["--build"] and len(arguments) > 1:
        build, arguments = arguments[1], arguments[2:]
    if any(argument.startswith("-") for argument in arguments):
        print(__doc__, file=sys.stderr)
        return 2
    root = os.path.abspath(links.ROOT)
    rows = []
    if arguments:
        for folder in arguments:
            rows.append(("folder", folder))
            rows += measure(sources_of(os.path.abspath(folder), [""]))
    else:
        rows += measure(sources_of(root, rules.PRODUCT))
        rows += [(f"asserts a function, {part}", measure_part(root, part)) for part in (*CORES, RUNTIME)]
    if build:
        rows += measure_links(build)
    for name, value in rows:
        print(f"{name:44} {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
