#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree's language to the glossary of common/README.md: one line per word that it refuses, status 1 when there
is one.

usage: glossary.py [--count] [ROOT]     --count prints how often each refused word stands in each folder instead

The glossary has three tables. "Terms": a term of the field, what it means here, its source; at most TERMS_MAX rows.
"Not in this tree": words and phrases that stand for nothing else in the field, with what to write: refused in names,
comments, messages and READMEs. "Not as names": good English that says too little as a name: refused as a word of an
identifier or of a file's name, but for names that contain one of the exceptions in the third column. Identifiers are
compared word by word: `mesh_close` has the words mesh and close. Names that stored data fixes are in rules.FIXED_WORDS.
"""
import collections
import os
import re
import sys

import rules
import tidy

TERMS_MAX = 60
GLOSSARY = "common/README.md"
Glossary = collections.namedtuple("Glossary", "terms words names kept")


def rows_under(text, heading):
    """The rows of the first table under a heading, without its head: lists of cells."""
    section = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", text, re.M | re.S)
    table = [line for line in section.group(1).splitlines() if line.startswith("|")] if section else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def read(text):
    """The glossary, and what is wrong with it."""
    terms = {row[0]: row[1:] for row in rows_under(text, "Terms")}
    words = {word.strip(): row[1] for row in rows_under(text, "Not in this tree") for word in row[0].split(",")}
    names = {word.strip(): row[1] for row in rows_under(text, "Not as names") for word in row[0].split(",")}
    kept = [name.strip() for row in rows_under(text, "Not as names") for name in row[2].split(",") if name.strip()]
    faults = [f"the term \"{term}\" has no source" for term, row in terms.items() if len(row) < 2 or not row[1]]
    if not terms or not words or not names:
        faults.append("one of the tables \"Terms\", \"Not in this tree\", \"Not as names\" is missing or empty")
    if len(terms) > TERMS_MAX:
        faults.append(f"{len(terms)} terms, at most {TERMS_MAX} are allowed")
    return Glossary(terms, words, names, kept), faults


def pattern_of(words):
    """Finds any of the words: as a whole word, or between the underscores of an identifier."""
    longest_first = sorted(words, key=len, reverse=True)
    choice = "|".join(re.escape(word).replace(r"\ ", r"[\s*]+") for word in longest_first)
    return re.compile(rf"(?<![A-Za-z])({choice})(?![A-Za-z])", re.I)


def refused_in(glossary, source):
    """For each refused word: its line, itself, and what to write."""
    text = source.text
    if source.path == GLOSSARY: # its own tables name them
        text = text[:text.index("## Terms")]
    fixed = [word for prefix, words, _ in rules.FIXED_WORDS if source.path.startswith(prefix) for word in words]
    for match in pattern_of(glossary.words).finditer(text):
        word = re.sub(r"[\s*]+", " ", match.group(1)).lower()
        if word not in fixed:
            yield text.count("\n", 0, match.start()) + 1, word, glossary.words[word]
    names = [(1, os.path.basename(source.path))]
    if source.is_c and source.path.startswith(rules.SHIPPED):
        names += [(number, name) for number, line in enumerate(source.code, 1)
                  for name in re.findall(r"[A-Za-z_]\w*", line)]
    for number, name in names:
        for word in set(bad_words_of(glossary, name)) - set(fixed):
            yield number, word, glossary.names[word]


def bad_words_of(glossary, name):
    if any(kept in name.lower() for kept in glossary.kept):
        return []
    return [word.lower() for word in pattern_of(glossary.names).findall(name)]


def main(arguments):
    root = os.path.abspath(next((a for a in arguments if not a.startswith("-")),
                                os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")))
    with open(os.path.join(root, GLOSSARY), encoding="utf-8") as file:
        glossary, faults = read(file.read())
    faults = [f"{GLOSSARY}:1: glossary: {fault}" for fault in faults]
    counts = collections.Counter()
    for path in tidy.list_files(root):
        source = tidy.Source(root, path)
        for number, word, instead in refused_in(glossary, source):
            faults.append(f"{path}:{number}: glossary: \"{word}\": {instead}")
            counts[os.path.dirname(path), word] += 1
    if "--count" in arguments:
        for (folder, word), count in sorted(counts.items()):
            print(f"{count:5}  {word:16} {folder}")
        return 0
    print("\n".join(faults) if faults else f"glossary: {len(glossary.terms)} terms, no fault")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
