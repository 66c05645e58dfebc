#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a sample of deploy/examples/tour by hand and under `cadre run`, and compares what it prints.

usage: tour.py BIN NAME      BIN: the folder of the programs; NAME: the sample
       tour.py --listed      whether every sample has its expectations, its test and its row in the README

expected/NAME.txt has a section for each way to run it: a line "replicas N [ARGUMENT...]" or "tasks N [ARGUMENT...]",
then what is printed. Of several tasks the lines of each are compared, not how they mix.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOUR = os.path.join(HERE, "../../deploy/examples/tour")
HANG_S = 600  # for what only a fault keeps from ending
SECTION = re.compile(r"(replicas|tasks) (\d+)((?: \S+)*)")


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def read_sections(name):
    """[(way, number, arguments, lines)]; comments begin with #."""
    sections = []
    for line in read_lines(os.path.join(HERE, "expected", f"{name}.txt")):
        found = SECTION.fullmatch(line)
        if found:
            sections.append((found.group(1), found.group(2), found.group(3).split(), []))
        elif not line.startswith("#"):
            sections[-1][3].append(line)
    return sections


def run(folder, name, way, number, arguments):
    """What it prints, line by line; of several tasks sorted by task, each in its own order."""
    folder = os.path.abspath(folder)
    program = [os.path.join(folder, "tour", name), *arguments]
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith(("CADRE_", "SLURM_")) and key != "TF_CONFIG"}
    if way == "replicas":
        environment["CADRE_REPLICAS"] = number
    else:
        program = [os.path.join(folder, "cadre"), "run", "-n", number, program[0]] + (["--"] + arguments if arguments
                                                                                       else [])
    with tempfile.TemporaryDirectory() as here:
        done = subprocess.run(program, cwd=here, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANG_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(program)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    lines = done.stdout.splitlines()
    return lines if way == "replicas" else sorted(lines, key=lambda line: line.split(" ", 1)[0])


def compare(folder, name):
    sections = read_sections(name)
    for way, number, arguments, expected in sections:
        printed = run(folder, name, way, number, arguments)
        if printed != expected:
            raise SystemExit("\n".join([f"{name}, {way} {number} {' '.join(arguments)}: expected", *expected,
                                        "but it printed", *printed]))
    print(f"{name}: {len(sections)} ways")


def check_listed():
    samples = {name[:-2] for name in os.listdir(TOUR) if name.endswith(".c")} - {"show"}
    readme = set(re.findall(r"^\|[^|]*\| `(\w+)\.c`", "\n".join(read_lines(os.path.join(TOUR, "README.md"))), re.M))
    tests = set(re.findall(r"^tour_test\((\w+)\)", "\n".join(read_lines(os.path.join(HERE, "CMakeLists.txt"))), re.M))
    expected = {name[:-4] for name in os.listdir(os.path.join(HERE, "expected"))}
    faults = [f"{what}: {', '.join(sorted(samples ^ names))}"
              for what, names in (("the README", readme), ("the tests", tests), ("expected/", expected))
              if samples ^ names]
    for name in sorted(samples & expected):
        ways = {(way, number) for way, number, _, _ in read_sections(name)}
        faults += [f"{name}: not with {number} replicas" for number in "124" if ("replicas", number) not in ways]
    if faults:
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    if sys.argv[1:] == ["--listed"]:
        check_listed()
    else:
        compare(*sys.argv[1:])
