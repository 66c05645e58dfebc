#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the tree against rules.py: one line per fault, status 1 when there is one.

usage: tidy.py [--report] [ROOT]     --report prints counts of lines, functions and tests instead
"""
import collections
import os
import re
import sys

import graph
import rules

Function = collections.namedtuple("Function", "name first lines")


class Source:
    """One text file: its lines, and for C the same lines without comments and literals."""

    def __init__(self, root, path):
        self.path = path
        self.kind = os.path.splitext(path)[1]
        with open(os.path.join(root, path), "rb") as file:
            self.text = file.read().decode("utf-8", "replace")
        self.lines = self.text.splitlines()
        self.is_c = self.kind in (".c", ".h", ".cu")
        self.code_text = blank_comments(self.text) if self.is_c else ""
        self.code = self.code_text.splitlines()

    def within(self, folders):
        return any(self.path.startswith(folder) for folder in folders)


def blank_comments(text):
    """Block comments and the inside of literals become blanks; lines stay where they are. `//` stays to be found."""
    token = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)

    def blank(match):
        found = match.group()
        kept = found[0] + re.sub(r"[^\n]", " ", found[1:-1]) + found[-1]
        return re.sub(r"[^\n]", " ", found) if found.startswith("/*") else kept

    return token.sub(blank, text)


def list_files(root):
    """All text files of the tree except build folders and what starts with a dot (but for .ci)."""
    skipped = re.compile(r"^(build(-.*)?|__pycache__|\..*)$")
    known = {".c", ".h", ".cu", ".py", ".sh", ".md", ".proto", ".txt", ".cmake", ".html", ".css", ".js", ""}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not skipped.match(name) or name == ".ci")
        for name in sorted(names):
            path = os.path.relpath(os.path.join(folder, name), root)
            if os.path.splitext(name)[1] in known and not name.startswith(".") and is_text(os.path.join(folder, name)):
                yield path


def is_text(path):
    with open(path, "rb") as file:
        return not os.path.islink(path) and b"\0" not in file.read(4096)


def functions_of(source):
    """Functions as clang-format leaves them: the braces of a body alone in column 0."""
    found = []
    begin = None
    for number, line in enumerate(source.code, 1):
        if line.rstrip() == "{":
            begin = number
        elif line.startswith("}") and begin is not None:
            head = " ".join(source.code[max(0, begin - 8):begin - 1])
            names = re.findall(r"(\w+)\s*\(", re.split(r"[;}]", head)[-1])
            names = [name for name in names if not name.startswith("__")] or ["?"]
            found.append(Function(names[0], begin, number - begin + 1))
            begin = None
    return found


class Tidy:
    def __init__(self, root):
        self.root = root
        self.sources = [Source(root, path) for path in list_files(root)]
        self.faults = []

    def fault(self, source, number, rule, message):
        if rule not in rules.EXCEPTIONS.get(source.path, ()):
            self.faults.append(f"{source.path}:{number}: {rule}: {message}")

    def check(self):
        for source in self.sources:
            self.check_text(source)
            self.check_licence(source)
            if source.is_c:
                self.check_includes(source)
                self.check_calls(source)
                self.check_lengths(source)
            if source.kind in rules.PAGE_KINDS:
                self.check_page(source)
        self.check_modules()
        self.check_built()
        self.check_folders()
        self.check_readmes()
        return self.faults

    def check_text(self, source):
        width = rules.COLUMNS.get(source.kind)
        leftover = re.search(rules.LEFTOVERS, source.text)
        machine_path = re.search(rules.MACHINE_PATHS, source.text)
        for number, line in enumerate(source.lines, 1):
            if "\t" in line and os.path.basename(source.path) != "Makefile":
                self.fault(source, number, "tab", "use spaces")
            if line != line.rstrip() and source.kind != ".md":
                self.fault(source, number, "blank", "white space ends the line")
            if width and len(line) > width:
                self.fault(source, number, "columns", f"{len(line)} of at most {width}")
            if leftover and re.search(rules.LEFTOVERS, line):
                self.fault(source, number, "leftover", "finish it or drop it")
            if machine_path and re.search(rules.MACHINE_PATHS, line):
                self.fault(source, number, "machine path", "a path of one machine is of no use to others")
        if source.lines and not source.text.endswith("\n"):
            self.fault(source, len(source.lines), "newline", "the last line has no end")

    def check_licence(self, source):
        head = source.lines[:1] if source.is_c else source.lines[:2]
        script = source.kind in (".py", ".sh") or (source.lines and source.lines[0].startswith("#!"))
        wanted = source.is_c or script or source.path.startswith("proto/cadre/") or source.kind in rules.PAGE_KINDS
        wanted = wanted and not source.within(rules.TEMPLATES)
        if wanted and not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
            self.fault(source, 1, "licence", "start with SPDX-License-Identifier: Apache-2.0 and the purpose")
        if source.is_c and any(re.search(r"//", line) for line in source.code):
            number = next(n for n, line in enumerate(source.code, 1) if "//" in line)
            self.fault(source, number, "comment", "write /* a sentence */")

    def check_includes(self, source):
        layer = max((folder for folder in rules.LAYERS if source.path.startswith(folder)), key=len, default=None)
        if layer is None:
            self.fault(source, 1, "layer", "this folder has no row in rules.LAYERS")
            return
        for number, line in enumerate(source.lines, 1):
            match = "include" in line and re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
            if match:
                self.check_include(source, number, layer, match.group(1) == '"', match.group(2))

    def check_include(self, source, number, layer, quoted, name):
        for pattern, folders in rules.FOREIGN:
            if re.match(pattern, name):
                if not source.within(folders):
                    self.fault(source, number, "layer", f"{name} is only for {', '.join(folders)}")
                return
        if quoted and "/" not in name and source.within(rules.OWN_NAMES):
            return
        allowed = rules.LAYERS[layer]
        if quoted and "/" not in name:
            self.fault(source, number, "layer", f"include \"{name}\" by its path from the root")
        elif quoted and not any(name.startswith(prefix) for prefix in allowed):
            self.fault(source, number, "layer", f"{layer} may not include {name}")
        elif not quoted and source.within(rules.PURE_FOLDERS) and name not in rules.FREESTANDING:
            self.fault(source, number, "layer", f"{layer} is pure and may not include <{name}>")

    def check_calls(self, source):
        calls = list(rules.UNALIGNED)
        words = []
        if source.within(rules.LIBRARIES):
            calls += rules.IN_LIBRARIES
            words = rules.STREAMS
        for name, instead in calls:
            self.ban(source, name, rf"(?<![\w.>]){name}\s*\(", instead)
        for name, instead in words:
            self.ban(source, name, rf"\b{name}\b", instead)

    def ban(self, source, name, pattern, instead):
        if name not in source.code_text: # what most files are done with
            return
        for number, line in enumerate(source.code, 1):
            if name in line and re.search(pattern, line):
                self.fault(source, number, name, f"is banned here; {instead}")

    def check_lengths(self, source):
        if len(source.lines) > rules.LINES_MAX:
            self.fault(source, len(source.lines), "length", f"a file has at most {rules.LINES_MAX} lines")
        for function in functions_of(source):
            if function.lines > rules.FUNCTION_LINES_MAX:
                self.fault(source, function.first, "length", f"{function.name} has {function.lines} lines, at most "
                           f"{rules.FUNCTION_LINES_MAX} are allowed")

    def check_page(self, source):
        """What the page of a browser may not do: parse text as HTML, run text, ask another origin."""
        for number, line in enumerate(source.lines, 1):
            for pattern, instead in rules.PAGE_BANNED:
                match = re.search(pattern, line)
                if match:
                    self.fault(source, number, "page", f"{match.group()} is banned here; {instead}")
        if len(source.lines) > rules.PAGE_LINES_MAX:
            self.fault(source, len(source.lines), "length",
                       f"a file of a page has at most {rules.PAGE_LINES_MAX} lines")

    def check_modules(self):
        """Modules of JavaScript import only modules of their folder, and none that needs it in turn."""
        modules = {source.path: source for source in self.sources if source.kind == ".js"}
        needed = {}
        for path, source in modules.items():
            names = re.findall(r'^(?:import|export)\b[^"]*?from "([^"]+)";', source.text, re.M)
            needed[path] = [os.path.normpath(os.path.join(os.path.dirname(path), name)) for name in names]
            for name in set(needed[path]) - set(modules):
                self.fault(source, 1, "module", f"there is no module {name}")
        for circle in graph.circles(needed):
            self.fault(modules[circle[0]], 1, "module", f"need each other: {', '.join(circle)}")

    def check_built(self):
        """Each .c and .cu is named by a CMakeLists.txt of its folder or of one above it."""
        lists = {os.path.dirname(s.path): words_of(s.text) for s in self.sources
                 if os.path.basename(s.path) == "CMakeLists.txt"}
        for source in (s for s in self.sources if s.kind in (".c", ".cu")):
            if not any(names_file(lists[folder], os.path.relpath(source.path, folder or "."))
                       for folder in lists if is_above(folder, source.path)):
                self.fault(source, 1, "unbuilt", "no CMakeLists.txt names this file")

    def check_folders(self):
        folders = collections.defaultdict(list)
        for source in self.sources:
            if source.is_c and source.path.startswith(tuple(rules.PRODUCT)):
                folders[os.path.dirname(source.path)].append(source)
        for folder, sources in folders.items():
            if len(sources) > rules.FOLDER_SOURCES_MAX:
                self.fault(sources[0], 1, "folder", f"{folder} has {len(sources)} sources, at most "
                           f"{rules.FOLDER_SOURCES_MAX} are allowed: give those of one concept a folder")

    def check_readmes(self):
        have = {os.path.dirname(s.path) for s in self.sources if os.path.basename(s.path) == "README.md"}
        asked = set()
        for source in self.sources:
            folder = next((by for cover, by in rules.README_COVERS.items() if source.path.startswith(cover)),
                          os.path.dirname(source.path))
            if source.kind in (".c", ".h", ".cu", ".py", ".proto") and folder not in have | asked:
                asked.add(folder)
                self.fault(source, 1, "readme", f"{folder}/README.md is missing: draw the picture of the folder")

    def report(self):
        rows = collections.defaultdict(collections.Counter)
        long_ones = []
        for source in self.sources:
            folder = "/".join(source.path.split("/")[:2]) if "/" in source.path else "."
            row = rows[folder]
            row["files"] += 1
            row["lines"] += len(source.lines)
            if source.is_c:
                functions = functions_of(source)
                row["functions"] += len(functions)
                long_ones += [(f.lines, source.path, f.name) for f in functions if f.lines > rules.FUNCTION_LINES_SHOWN]
                row["asserts"] += len(re.findall(r"\bCADRE_ASSERT\(", "\n".join(source.code)))
                row["tests"] += len(re.findall(r"\bcmocka_unit_test\w*\(", "\n".join(source.code)))
            elif source.kind == ".py":
                row["tests"] += len(re.findall(r"^    def test_", source.text, re.M))
        columns = ["files", "lines", "functions", "asserts", "tests"]
        print(f"{'folder':28}" + "".join(f"{name:>11}" for name in columns))
        total = collections.Counter()
        for folder in sorted(rows):
            total.update(rows[folder])
            print(f"{folder:28}" + "".join(f"{rows[folder][name]:11}" for name in columns))
        print(f"{'all':28}" + "".join(f"{total[name]:11}" for name in columns))
        for lines, path, name in sorted(long_ones, reverse=True):
            print(f"{path}: {name} has {lines} lines, more than {rules.FUNCTION_LINES_SHOWN}")


def is_above(folder, path):
    return folder == "" or path.startswith(folder + "/")


def words_of(text):
    return set(re.split(r"[\s()\";]+", text))


def names_file(words, path):
    """Whether a CMakeLists.txt has `path` among its words, or a pattern such as a_${name}.c with a word that fits."""
    if path in words:
        return True
    for pattern in (word for word in words if "${" in word and word.endswith((".c", ".cu"))):
        match = re.fullmatch(re.sub(r"\\\$\\\{\w+\\\}", "(.+)", re.escape(pattern)), path)
        if match and all(part in words for part in match.groups()):
            return True
    return False


def main(arguments):
    root = os.path.abspath(next((a for a in arguments if not a.startswith("-")),
                                os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
    tidy = Tidy(root)
    if "--report" in arguments:
        tidy.report()
        return 0
    faults = tidy.check()
    print("\n".join(faults) if faults else f"tidy: {len(tidy.sources)} files, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
