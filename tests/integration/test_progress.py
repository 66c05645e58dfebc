# SPDX-License-Identifier: Apache-2.0
"""What deploy/quickstart and deploy/packages/install-packages show while something takes long, and when it fails: with
stand-ins for cmake, ninja and apt-get, which stop halfway until the test has seen how far they are."""
import os
import pty
import re
import shutil
import subprocess
import tempfile
import threading

from testing import HANG_S, check, check_equal, check_in, run, wait_for

DEPLOY = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy"))
NINJA = """echo '[1/8] Building C object a.c.o'
printf '[4/8] Building C object b'
until [ -e "$GATE" ]; do sleep 0.02; done
printf '.c.o\\n'
"""
GOOD = "echo '[8/8] Linking'\n"
BAD = """echo 'FAILED: c.c.o'
echo 'c.c:1:1: error: no such thing'
for number in $(seq 5 60); do echo "[$number/60] Building C object"; done
exit 1
"""
APT = """case "$*" in
*update*) exit 0 ;;
esac
echo 'Reading package lists...'
echo 'dlstatus:2:50.0000:Retrieving file 2 of 2'
echo 'pmstatus:libuv1-dev:amd64:46.6667:Unpacking libuv1-dev (amd64)'
until [ -e "$GATE" ]; do sleep 0.02; done
"""
INSTALLED = "touch \"$GATE.installed\"\n"
BROKEN = """echo 'E: No space left on device'
exit 100
"""
QUERY = """[ -e "$GATE.installed" ] || exit 0
for name in $(sed -n '/^build=(/,/)$/p' "$SCRIPT" | tr -d '()' | sed 's/^build=//'); do
    echo "installed $name "
done
"""


class Scripts:
    """A copy of the scripts, with programs of the test's before all others; what runs there shows."""

    def __init__(self, **programs):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        for path in ("quickstart", "report.sh", "progress.sh", "packages/install-packages"):
            os.makedirs(os.path.dirname(self.path("deploy", path)), exist_ok=True)
            shutil.copy(os.path.join(DEPLOY, path), self.path("deploy", path))
        self.gate = self.path("gate")
        os.mkdir(self.path("bin"))
        for name, text in programs.items():
            with open(self.path("bin", name.replace("_", "-")), "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}")
            os.chmod(file.name, 0o755)
        self.process = None
        self.thread = None
        self.seen = b""

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        open(self.gate, "wb").close()
        if self.process is not None:
            self.process.wait(HANG_S)
            self.thread.join(HANG_S)
        shutil.rmtree(self.folder)

    def start(self, *words, terminal=False):
        mine, theirs = pty.openpty() if terminal else os.pipe()
        environment = {**os.environ, "PATH": f"{self.path('bin')}:{os.environ['PATH']}", "GATE": self.gate,
                       "CADRE_PROGRESS_S": "0", "TERM": "xterm", "LC_ALL": "C",
                       "SCRIPT": self.path("deploy/packages/install-packages")}
        self.process = subprocess.Popen([self.path("deploy", words[0]), *words[1:]], env=environment, stdout=theirs,
                                        stderr=theirs, stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs)
        self.thread = threading.Thread(target=self.read, args=(mine,))
        self.thread.start()

    def read(self, descriptor):
        while True:
            try:
                more = os.read(descriptor, 4096)
            except OSError:  # a terminal's end
                more = b""
            if not more:
                break
            self.seen += more
        os.close(descriptor)

    def shows(self, pattern):
        return wait_for(f"{pattern} in {self.seen!r}", lambda: re.search(pattern, self.seen.decode()))

    def end(self):
        """Its exit status; all that it showed is in `seen` then."""
        open(self.gate, "wb").close()
        status = self.process.wait(HANG_S)
        self.thread.join(HANG_S)
        return status


def quickstart(ninja, terminal):
    scripts = Scripts(cmake="exit 0\n", ninja=ninja, dpkg_query=QUERY)
    open(scripts.path("gate.installed"), "wb").close()
    scripts.start("quickstart", "--install", "--prefix", scripts.path("prefix"), terminal=terminal)
    return scripts


def test_a_line_where_there_is_no_terminal():
    with quickstart(NINJA + GOOD, terminal=False) as scripts:
        # The line that ninja has not ended yet does not count.
        scripts.shows(r"      building: 12 %, 1 of 8, \d+\.\d/s, (\d+ min )?\d+ s left\n")
        check("50 %" not in scripts.seen.decode(), "what ninja has written half of")
        check_equal(scripts.end(), 0, "status")
        check_in("[3/3] Install", scripts.seen.decode(), "what follows")
        check("\r" not in scripts.seen.decode() and "\033" not in scripts.seen.decode(), "no marks of a terminal")


def test_a_bar_on_a_terminal():
    with quickstart(NINJA + GOOD, terminal=True) as scripts:
        scripts.shows(r"\r\033\[K      building  \[###\.{21}\]  12 %  1 of 8  \d+\.\d/s  (\d+ min )?\d+ s left")
        check_equal(scripts.end(), 0, "status")
        check(re.search(rb"\r\x1b\[K      in .*/build-quickstart/bin \(", scripts.seen), "the bar is wiped off")


def test_a_build_that_fails():
    for terminal in (False, True):
        with quickstart(NINJA + BAD, terminal) as scripts:
            check_equal(scripts.end(), 1, "status")
            said = scripts.seen.decode()
            check_in("FAILED: c.c.o", said, "the command that failed")
            check_in("error: no such thing", said, "its output")
            check("[60/60]" not in said, "nothing of the others")
            check_in("quickstart: the build failed, see ", said, "the sentence")


def install_packages(apt, terminal):
    scripts = Scripts(apt_get=apt, dpkg_query=QUERY, id="echo 0\n")
    scripts.start("packages/install-packages", "build", terminal=terminal)
    return scripts


def test_packages():
    for terminal, pattern in ((False, r"installing \d+ packages: 73 %, (\d+ min )?\d+ s left\n"),
                              (True, r"installing \d+ packages  \[#{17}\.{7}\]  73 %  (\d+ min )?\d+ s left")):
        with install_packages(APT + INSTALLED, terminal) as scripts:
            scripts.shows(pattern)
            check_equal(scripts.end(), 0, "status")


def test_packages_that_cannot_be_installed():
    with install_packages(APT + BROKEN, terminal=False) as scripts:
        check_equal(scripts.end(), 1, "status")
        said = scripts.seen.decode()
        check_in("E: No space left on device", said, "the reason")
        check("pmstatus" not in said, "nothing that is for programs")
        check_in("install-packages: apt-get could not install: gcc", said, "the sentence")


if __name__ == "__main__":
    run(globals())
