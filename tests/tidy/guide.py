#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what README.md and the pages of deploy/docs name against the sources.

usage: guide.py [ROOT]     one line for each fault, status 1 when there is one

- README.md has at most 1,500 words.
- The sentences of troubleshooting.md are in the sources, as the literal text that is left between two "…"; those of
  its first section are of compilers and loaders, not ours.
- Functions, macros and variables (`cadre_...`, `CADRE_...`), flags of our commands and verbs of `cadre` exist.
"""
import glob
import os
import re
import sys

README_WORDS = 1500
FOREIGN_SECTION = "## Compiling"
SOURCES = ("common", "coordinator", "worker", "deploy")
CODE = re.compile(r"^```[^\n]*\n(.*?)^```$", re.S | re.M)
SPAN = re.compile(r"`([^`\n]+)`")
# Programs whose flags are not ours.
OTHER_PROGRAMS = re.compile(r"\b(cmake|apt|apt-get|systemctl|pkg-config|nft|dpkg|ssh|mpirun|srun|curl|docker\S*)\b")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def source_text(root):
    """All C files, scripts and build files of the product, with the pieces of each string literal joined."""
    texts = []
    for folder in SOURCES:
        for path in glob.glob(os.path.join(root, folder, "**", "*"), recursive=True):
            script = "." not in os.path.basename(path) and os.path.isfile(path)
            if script or path.endswith((".c", ".h", ".cu", ".yml", ".txt", ".cmake")):
                texts.append(read(path))
    text = re.sub(r'"\s*(?:PRI\w+|LIMIT_\w+)?\s*"', "", "\n".join(texts))
    return text.replace('\\"', '"')


def pages(root):
    docs = os.path.join(root, "deploy/docs")
    return [os.path.join(root, "README.md"), *sorted(glob.glob(os.path.join(docs, "**/*.md"), recursive=True))]


def sentences(page):
    """(line number, sentence) of the first column of each table outside of the foreign section."""
    section = ""
    for number, line in enumerate(page.splitlines(), 1):
        section = line if line.startswith("## ") else section
        cells = re.match(r"\| (.*?) \|", line)
        if cells and section != FOREIGN_SECTION:
            for span in SPAN.findall(cells.group(1)):
                yield number, span


def absent_sentences(page, source):
    for number, sentence in sentences(page):
        for piece in sentence.split("…"):
            if len(piece.strip()) >= 4 and piece not in source:
                yield f"{number}: no source says '{piece}'"


def flags(source):
    """Of the option tables, and of scripts and helps that name them."""
    tables = set(re.findall(r'ROW\(\w+,\s*"([a-z0-9-]+)"', source))
    return {"help", "version"} | tables | set(re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", source))


def absent_names(text, source, known):
    code = "\n".join(CODE.findall(text) + SPAN.findall(CODE.sub("", text)))
    for name in sorted(set(re.findall(r"\b(?:cadre_[a-z0-9_]+|CADRE_[A-Z0-9_]+)\b", code))):
        if not re.search(rf"\b{name}", source):
            yield f"{name} is in no source"
    for line in code.splitlines():
        words = re.split(r"\s{2,}[^-\s]", line)[0]
        if "--" not in words or OTHER_PROGRAMS.search(words):
            continue
        for flag in re.findall(r"(?<![\w-])--([a-z][a-z0-9-]+)", words.split(" -- ")[0]):
            if flag not in known:
                yield f"--{flag} is no option of ours: {line.strip()}"
    verbs = verbs_of(source)
    for verb in re.findall(r"^cadre ([a-z]+)\b", code, re.M):
        if verb not in verbs:
            yield f"`cadre {verb}` is no verb"


def verbs_of(source):
    """Those of the table of deploy/cadre/main.c."""
    begin = source.index("struct verb verbs[] = {")
    return set(re.findall(r'\{"([a-z]+)",', source[begin:source.index("};", begin)]))


def faults(root):
    source = source_text(root)
    words = len(read(os.path.join(root, "README.md")).split())
    if words > README_WORDS:
        yield f"README.md: {words} words; at most {README_WORDS}: move what is left to deploy/docs"
    known = flags(source)
    for path in pages(root):
        name = os.path.relpath(path, root)
        text = read(path)
        for fault in absent_names(text, source, known):
            yield f"{name}: {fault}"
        if name.endswith("troubleshooting.md"):
            for fault in absent_sentences(text, source):
                yield f"{name}:{fault}"


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.normpath(os.path.join(os.path.dirname(__file__), "../.."))
    found = list(faults(root))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
