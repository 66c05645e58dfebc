# SPDX-License-Identifier: Apache-2.0
"""What tasks print: seen at once, and kept when they are killed."""
import os
import subprocess

from client import FAILED
from cluster import Cluster, clean_environment, program, script
from testing import HANG_S, check_equal, check_in, run, wait_for

PRINTER = os.environ.get("CADRE_TEST_PRINTER", "")


class Reader:
    """A command whose output goes to files, which are read while it runs."""

    def __init__(self, cluster, *arguments):
        self.paths = [os.path.join(cluster.folder, f"{name}-{len(os.listdir(cluster.folder))}")
                      for name in ("stdout", "stderr")]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen([program("cadre"), *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err,
                                            env=clean_environment() | {"CADRE_COORDINATOR": cluster.address})

    def read(self, stream=1):
        with open(self.paths[stream - 1], encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self, status=0):
        check_equal(self.process.wait(HANG_S), status, f"exit status; it said {self.read(2)[-1500:]}")
        return self.read()


class Gate:
    """The pipe that printers wait at."""

    def __init__(self, cluster):
        self.path = os.path.join(cluster.folder, f"gate-{len(os.listdir(cluster.folder))}")
        os.mkfifo(self.path)
        os.chmod(self.path, 0o644)
        self.pipe = os.open(self.path, os.O_RDWR)  # so that what is written stays until it is read

    def open(self, tasks):
        """One byte for each."""
        os.write(self.pipe, b"g" * tasks)

    def close(self):
        os.close(self.pipe)


def check_live(reader, gate, tasks, what):
    """The lines that were printed before the program waits are there while it waits."""
    for text in ("before cadre_init\n", "after cadre_init\n"):
        wait_for(f"{what}: {text}", lambda: reader.read().count(text) == tasks)
    gate.open(tasks)
    check_in("at the end\n", reader.end(), what)
    gate.close()


def test_a_printed_line_is_seen_at_once():
    with Cluster(slots=2) as cluster:
        gate = Gate(cluster)
        check_live(Reader(cluster, "run", "-n", "2", PRINTER, "--", gate.path), gate, 2, "cadre run")
        gate = Gate(cluster)
        check_live(Reader(cluster, "submit", "--workers", "2", PRINTER, "--", gate.path), gate, 2, "cadre submit")
        gate = Gate(cluster)
        with open(PRINTER, "rb") as file:
            job = cluster.client.submit(file.read(), arguments=[gate.path])
        check_live(Reader(cluster, "logs", "-f", str(job)), gate, 1, "cadre logs -f")


def test_what_was_printed_before_a_kill_is_kept():
    """An unfinished line, too: the bytes were in the pipe."""
    with Cluster() as cluster:
        for end in ("kill -9 $$", "kill -9 -$$", "kill -SEGV $$"):
            info = cluster.client.run(script(f"printf 'whole\\nhal'; {end}"), max_restarts=0)
            check_equal(info.state, FAILED, "the state")
            check_equal(cluster.client.log(info.id), b"whole\nhal", f"the log after {end}")


if __name__ == "__main__":
    run(globals())
