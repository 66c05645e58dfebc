#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what Doxygen reads: the public headers and the pages with its marks, and the layout of the site.

usage: stage.py ROOT STAGE     STAGE is a new folder; files have the same paths in it as below ROOT
"""
import glob
import os
import re
import sys

import comments
import pages

FUNCTION = re.compile(r"^CADRE_API\b[^;(]*?\b(cadre_\w+)\(", re.M)
HEADERS = pages.HEADERS + "cadre"
REFERENCE = pages.DOCS + "/reference.md"


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def headers_of(root):
    """Header -> its text; that of the version is made as the build makes it."""
    found = {os.path.basename(path): read(path) for path in glob.glob(os.path.join(root, HEADERS, "*.h"))}
    version = re.search(r"project\(cadre VERSION ((\d+)\.(\d+)\.(\d+))", read(os.path.join(root, "CMakeLists.txt")))
    text = read(os.path.join(root, HEADERS, "version.h.in"))
    for name, value in zip(("", "_MAJOR", "_MINOR", "_PATCH"), version.groups()):
        text = text.replace(f"@PROJECT_VERSION{name}@", value)
    return {**found, "version.h": text}, version.group(1)


def pages_of(root):
    """The documents, and what the examples' folders have to read."""
    for pattern in (pages.DOCS + "/**/*.md", "deploy/examples/**/README.md"):
        yield from (os.path.relpath(path, root) for path in glob.glob(os.path.join(root, pattern), recursive=True))


def examples_of(root):
    """The programs to read beside the headers: (path, text). Doxygen lists what they call, and where it is called."""
    for folder in pages.EXAMPLES:
        for path in sorted(glob.glob(os.path.join(root, folder, "**/*.c"), recursive=True)):
            yield os.path.relpath(path, root), read(path)


def listing(path, text, names):
    """What Doxygen reads of a program besides itself: its first comment."""
    head = re.match(r"/\* SPDX\S+ \S+\n[ *]*(.*?)\*/", text, re.S)
    comment = comments.marked(f"/* {head.group(1) if head else path} */", names)
    return comment.replace("/**", f"/** @example {path}\n", 1)


def reference(text, headers):
    """The list of headers by topic, with the functions of each behind it."""
    listed = re.findall(r"^- \[cadre/(\w+\.h)\]", text, re.M)
    for name in sorted(set(headers) - set(listed)):
        raise SystemExit(f"{REFERENCE}: {name} is missing: put it under its topic")
    return re.sub(r"^- \[cadre/(\w+\.h)\](?:.*\n)(?:  .*\n)*",
                  lambda match: match.group() + functions(headers[match.group(1)]), text, flags=re.M)


def functions(text):
    names = FUNCTION.findall(comments.COMMENT.sub("", text))
    return "  <br>" + ", ".join("#" + name for name in names) + "\n" if names else ""


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    root, stage = arguments
    headers, version = headers_of(root)
    names = set().union(*map(comments.names_of, headers.values()))
    for name, text in headers.items():
        write(os.path.join(stage, HEADERS, name), comments.marked(text, names))
    site = pages.Pages({path: read(os.path.join(root, path)) for path in pages_of(root)}, names)
    for path in site.texts:
        text = site.page(path)
        write(os.path.join(stage, path), reference(text, headers) if path == REFERENCE else text)
    examples = dict(examples_of(root))
    for path, text in examples.items():
        write(os.path.join(stage, path), text)
    write(os.path.join(stage, "examples.dox"),
          "\n".join(listing(path, text, names) for path, text in examples.items()))
    layout = read(os.path.join(root, pages.DOCS, "layout.xml"))
    write(os.path.join(stage, "layout.xml"), layout.replace("<!-- pages -->", pages.navigation(site)))
    write(os.path.join(stage, "version"), version + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
