# SPDX-License-Identifier: Apache-2.0
"""Every C file of ours compiles without a warning by the other compiler, too: clang where the build is gcc's.

    compilers.py BUILD      its compile_commands.json has the files and their flags
"""
import concurrent.futures
import json
import os
import shlex
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OTHERS = {"gcc": "clang", "clang": "gcc"}
DROPPED = {"-o": 1, "-MF": 1, "-MT": 1, "-MD": 0, "-c": 0}  # options, and how many words follow each
UNKNOWN_TO_CLANG = ("-fanalyzer",)


def family(compiler):
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
    return "clang" if "clang" in said else "gcc"


def arguments_of(entry):
    """The options of the compilation, without the compiler, what it writes, and the source."""
    words = shlex.split(entry["command"])
    first = next(i for i, word in enumerate(words) if word.startswith("-"))
    kept, skip = [], 0
    for word in words[first:]:
        if skip > 0:
            skip -= 1
        elif word in DROPPED:
            skip = DROPPED[word]
        elif word not in UNKNOWN_TO_CLANG and word != entry["file"]:
            kept.append(word)
    return words[first - 1], kept


def check(compiler, entry):
    """What the compiler has to say of the file; "": nothing."""
    _, options = arguments_of(entry)
    done = subprocess.run([compiler, *options, "-Werror", "-fsyntax-only", entry["file"]], cwd=entry["directory"],
                          capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 and not done.stderr else done.stderr or f"{entry['file']}: {done.returncode}"


def main():
    with open(os.path.join(sys.argv[1], "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    build = os.path.realpath(sys.argv[1]) + os.sep
    ours = {}
    for entry in entries:
        path = os.path.realpath(entry["file"])
        if path.endswith(".c") and path.startswith(ROOT + os.sep) and not path.startswith(build):
            ours.setdefault(path, entry)
    if not ours:
        sys.exit(f"{sys.argv[1]}: no C file of this tree is compiled there")
    other = OTHERS[family(arguments_of(next(iter(ours.values())))[0])]
    if shutil.which(other) is None:
        print(f"{other} is not installed: apt-get install {other}")
        sys.exit(77)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        said = [text for text in pool.map(lambda entry: check(other, entry), ours.values()) if text]
    for text in said:
        print(text)
    if said:
        sys.exit(f"{len(said)} of {len(ours)} files do not compile without a warning by {other}")
    print(f"{len(ours)} files compile without a warning by {other}")


main()
