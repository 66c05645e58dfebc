#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds links that lead nowhere: one line for each, status 1 when there is one. Nothing is fetched.

usage: dead_links.py ROOT           the Markdown files of a tree: each relative link names a file or folder of the tree,
                                    each #anchor a heading there, by GitHub's rule
       dead_links.py --html FOLDER  pages that were built: each link and each entry of the navigation and the search
                                    names a page and an anchor in it, and no page loads anything from the network
"""
import html.parser
import os
import re
import sys
import urllib.parse

import markdown_text

SKIPPED_FOLDERS = re.compile(r"^(build(-.*)?|__pycache__|\..+)$")
SCHEME = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.I)
SCRIPT_TARGET = re.compile(r"[\"']((?:\.\./)?[\w.-]+\.html(?:#[\w.-]*)?)[\"']")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def files_of(root, ending):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not SKIPPED_FOLDERS.match(name) or name == ".github")
        for name in sorted(names):
            if name.endswith(ending):
                yield os.path.join(folder, name)


def split(target):
    path, _, anchor = target.partition("#")
    return urllib.parse.unquote(path.partition("?")[0]), urllib.parse.unquote(anchor)


class Markdown:
    def __init__(self, root):
        self.root = os.path.realpath(root)
        self.known = {}
        self.links = 0

    def anchors(self, path):
        if path not in self.known:
            self.known[path] = markdown_text.anchors(read(path))
        return self.known[path]

    def fault(self, source, target):
        """What is wrong with a link of the file `source`; None when nothing is."""
        path, anchor = split(target)
        full = os.path.realpath(os.path.join(os.path.dirname(source), path)) if path else source
        if os.path.commonpath([self.root, full]) != self.root or not os.path.exists(full):
            return "there is no such file in the tree"
        if os.path.isdir(full):
            full = os.path.join(full, "README.md") # what is shown with a folder
        if not anchor:
            return None
        if re.fullmatch(r"L\d+(-L\d+)?", anchor) and not full.endswith(".md"):
            return None
        if not full.endswith(".md") or not os.path.isfile(full):
            return "only Markdown files have anchors"
        return None if anchor in self.anchors(full) else f"there is no heading \"{anchor}\""

    def check(self):
        for source in files_of(self.root, ".md"):
            for number, target in markdown_text.targets(read(source)):
                if SCHEME.match(target):
                    continue
                self.links += 1
                fault = self.fault(source, target)
                if fault:
                    yield f"{os.path.relpath(source, self.root)}:{number}: dead link: {target}: {fault}"


class Page(html.parser.HTMLParser):
    """A page's anchors, its links, and what a browser loads with it."""

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(read(path))

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        if tag in ("a", "area") and values.get("href"):
            self.links.append((self.getpos()[0], values["href"]))
        elif tag == "link" and values.get("href"):
            self.loaded.append((self.getpos()[0], values["href"]))
        elif values.get("src"):
            self.loaded.append((self.getpos()[0], values["src"]))


class Site:
    def __init__(self, folder):
        self.folder = os.path.realpath(folder)
        self.pages = {path: Page(path) for path in files_of(self.folder, ".html")}
        self.links = 0

    def fault(self, source, target):
        path, anchor = split(target)
        full = os.path.normpath(os.path.join(os.path.dirname(source), path)) if path else source
        if not os.path.isfile(full):
            return "there is no such page"
        if anchor and full in self.pages and anchor not in self.pages[full].anchors:
            return f"the page has no anchor \"{anchor}\""
        return None

    def targets(self):
        """(file, line, target, whether it is loaded with the page)"""
        for path, page in self.pages.items():
            yield from ((path, number, target, False) for number, target in page.links)
            yield from ((path, number, target, True) for number, target in page.loaded)
        for path in files_of(self.folder, ".js"):
            if os.path.basename(path).startswith("navtreeindex"): # where a page is in the tree: no links
                continue
            for number, line in enumerate(read(path).splitlines(), 1):
                yield from ((path, number, target, False) for target in SCRIPT_TARGET.findall(line))

    def check(self):
        for source, number, target, loaded in self.targets():
            fault = None
            if target.startswith(("javascript:", "data:")):
                continue
            if SCHEME.match(target):
                fault = "is loaded from the network" if loaded else None
            else:
                self.links += 1
                fault = self.fault(source, target)
            if fault:
                yield f"{os.path.relpath(source, self.folder)}:{number}: dead link: {target}: {fault}"


def main(arguments):
    is_site = arguments[:1] == ["--html"]
    folders = arguments[1:] if is_site else arguments
    if len(folders) != 1 or folders[0].startswith("-") or not os.path.isdir(folders[0]):
        print(__doc__, file=sys.stderr)
        return 2
    checked = Site(folders[0]) if is_site else Markdown(folders[0])
    faults = sorted(set(checked.check()))
    print("\n".join([*faults, f"{checked.links} links, {len(faults)} dead"]))
    return 1 if faults or not checked.links else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
