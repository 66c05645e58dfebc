# SPDX-License-Identifier: Apache-2.0
"""What the tests here share: the tree, a copy of what the site is made of, and a run of deploy/docs/build."""
import os
import shutil
import subprocess
import sys

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
HEADERS = "common/include/cadre"
sys.path[:0] = [os.path.join(ROOT, "deploy/docs"), os.path.join(ROOT, "tests/tidy")]


def skip_without_doxygen():
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed; deploy/packages/install-packages test installs it")
        sys.exit(77)


def copy(folder):
    """A small tree: the headers, the documents' tools, and two pages in place of all others."""
    for path in (HEADERS, "deploy/docs"):
        shutil.copytree(os.path.join(ROOT, path), os.path.join(folder, path),
                        ignore=lambda at, names: [n for n in names if n in ("tutorial", "guides", "__pycache__")])
    shutil.copy(os.path.join(ROOT, "CMakeLists.txt"), folder)
    for name in os.listdir(os.path.join(folder, "deploy/docs")):
        if name.endswith(".md") and name != "reference.md":
            os.unlink(os.path.join(folder, "deploy/docs", name))
    write(folder, "deploy/docs/README.md", "# Documents\n\n## Pages\n\n- [Reference](reference.md#data)\n")


def read(folder, path):
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        return file.read()


def write(folder, path, text):
    os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
    with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
        file.write(text)


def build(folder, *arguments):
    """The status of deploy/docs/build of a tree, and what it printed."""
    run = subprocess.run([os.path.join(folder, "deploy/docs/build"), *arguments], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, check=False)
    return run.returncode, run.stdout
