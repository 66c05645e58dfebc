# SPDX-License-Identifier: Apache-2.0
"""The tutorial of deploy/docs, typed into a shell from its first block to its last, with Cadre installed below a folder
and the checkout out of sight. `NAME.c` before a block of C is the file that it becomes; each line of a block of text is
a line that the commands before it print, "..." is anything; a line that says only "..." is for readers."""
import glob
import json
import os
import re
import subprocess

from testing import HANG_S, check, check_in, run, wait_for
from test_install import SOURCE, Installation

MARK = "end of block, status"
DOCS = os.path.join(SOURCE, "deploy/docs")


class Shell:
    """A bash in the installation's folder, whose commands run one block at a time."""

    def __init__(self, here):
        self.process = subprocess.Popen(
            here.command("exec bash --norc"), cwd=here.app, env=here.environment, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.write("kill $(jobs -p); wait\n")
        self.process.stdin.close()
        self.process.wait(HANG_S)
        self.process.stdout.close()

    def type(self, block):
        """What the commands print, standard error included, and the status of the last one."""
        self.process.stdin.write(f"{block}\necho; echo {MARK} $?\n")
        lines = []
        for line in self.process.stdout:
            if line.startswith(MARK):
                return lines, int(line.split()[-1])
            lines.append(line.rstrip("\n"))
        raise AssertionError(f"the shell ended in {block}: {lines}")


def blocks_of(page):
    """(kind, the file's name before it, content) of each block that has a kind."""
    with open(page, encoding="utf-8") as file:
        text = file.read()
    found = []
    end = 0
    for match in re.finditer(r"^```([^\n]+)\n(.*?)^```$", text, re.S | re.M):
        names = re.findall(r"`(\w+\.c)`", text[end:match.start()])
        found.append((match.group(1), names[-1] if names else "", match.group(2)))
        end = match.end()
    return found


def absent(wanted, printed):
    """The lines of `wanted` for which `printed` has no line of its own."""
    left = list(printed)
    missing = []
    for line in wanted:
        pattern = ".*".join(re.escape(part) for part in " ".join(line.split()).split("..."))
        found = next((i for i, seen in enumerate(left) if re.fullmatch(pattern, " ".join(seen.split()))), None)
        if found is None:
            missing.append(line)
        else:
            del left[found]
    return missing


def wait_for_steps(shell, printed):
    """Until the job that was submitted last has committed steps: a person is slower than that."""
    job = re.findall(r"^job (\d+) submitted$", "\n".join(printed), re.M)[-1]

    def position():
        lines, _ = shell.type(f"cadre job {job} --json")
        return json.loads("".join(lines))["position"]
    wait_for(f"job {job} has committed steps", lambda: position() > 1)


def follow(shell, here, page):
    printed = []
    history = []
    for kind, name, content in blocks_of(page):
        if kind == "c" and name:
            here.write(name, content)
        elif kind in ("sh", "sh kill"):
            if kind == "sh kill":
                wait_for_steps(shell, history)
            command = content
            printed, status = shell.type(content)
            history += printed
        elif kind == "text":
            wanted = [line.rstrip() for line in content.splitlines() if line != "..." and line]
            if command.strip() == "cadre workers" and absent(wanted, printed):
                wait_for("the workers are there", lambda: not absent(wanted, shell.type("cadre workers")[0]))
            else:
                check(not absent(wanted, printed), f"{os.path.basename(page)}: {command.strip()!r} ended with "
                      f"{status} and printed {printed}, without {absent(wanted, printed)}")


def test_the_tutorial():
    pages = sorted(glob.glob(os.path.join(DOCS, "tutorial/*.md")))
    check(len(pages) == 5, f"five steps: {pages}")
    with open(os.path.join(DOCS, "README.md"), encoding="utf-8") as file:
        index = file.read()
    for page in pages:
        check_in(f"(tutorial/{os.path.basename(page)})", index, "the index of the documentation")
    with Installation() as here:
        os.chmod(here.folder, 0o711)
        with Shell(here) as shell:
            for page in pages:
                follow(shell, here, page)


if __name__ == "__main__":
    run(globals())
