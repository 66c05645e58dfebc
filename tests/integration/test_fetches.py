# SPDX-License-Identifier: Apache-2.0
"""What people see of what a worker fetches for a task before its program can go on: files, a checkpoint from the
coordinator, the check of one in a shared folder. The worker's disk stands still until the test has seen it. And of a
checkpoint that a program reads from a slow disk."""
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading

from checkpoints import EVERY, published
from client import SUCCEEDED
from cluster import Cluster, clean_environment, program, script
from learning import FAST, FAST_WORKER, Learning
from testing import HANG_S, check, check_equal, check_in, run, wait_for

SLOW_DISK = os.environ.get("CADRE_TEST_SLOW_DISK", "")
BULKY = os.environ.get("CADRE_TEST_BULKY", "")
MIB = 1 << 20


class HeldCluster(Cluster):
    """A cluster of one worker whose files with `held` in their paths stand still while the gate is shut."""

    def __init__(self, held, slots=1, **options):
        super().__init__(slots=slots, **options)
        self.gate = os.path.join(self.folder, "gate")
        self.open_gate()
        self.workers[0].environment = {"LD_PRELOAD": SLOW_DISK, "SLOW_DISK_HELD": held, "SLOW_DISK_GATE": self.gate}

    def open_gate(self):
        open(self.gate, "wb").close()

    def shut_gate(self):
        os.unlink(self.gate)

    def __exit__(self, kind, error, trace):
        self.open_gate()
        super().__exit__(kind, error, trace)

    def fetches_of(self, job):
        """What `cadre job` has of it, of any task."""
        tasks = json.loads(self.cadre("job", str(job), "--json").stdout)["tasks"]
        return [task["fetch"] for task in tasks if task["fetch"] is not None]

    def until_fetched(self, job, what, least=0):
        """So many bytes are there."""
        def found():
            fetches = self.fetches_of(job)
            check(len(fetches) <= 1, f"one fetches for all: {fetches}")
            return next((fetch for fetch in fetches if fetch["what"] == what and fetch["whole_bytes"] > 0
                         and fetch["done_bytes"] >= least), None)
        return wait_for(f"job {job} fetches: {what}", found)


class Command:
    """One that runs, on a terminal of its own or with what it prints in a pipe."""

    def __init__(self, cluster, *argv, terminal, cwd=None, **environment):
        mine, theirs = pty.openpty() if terminal else os.pipe()
        if terminal:
            fcntl.ioctl(mine, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        environment = clean_environment() | {"TERM": "xterm"} | environment
        if cluster is not None:
            environment["CADRE_COORDINATOR"] = cluster.address
        self.process = subprocess.Popen(argv, env=environment, cwd=cwd, stdout=theirs, stderr=theirs,
                                        stdin=subprocess.DEVNULL, start_new_session=True)
        os.close(theirs)
        self.seen = b""
        self.thread = threading.Thread(target=self.read, args=(mine,))
        self.thread.start()

    def read(self, descriptor):
        try:
            while part := os.read(descriptor, 65536):
                self.seen += part
        except OSError:
            pass  # the terminal was closed by its last process
        os.close(descriptor)

    def shows(self, pattern):
        return wait_for(f"{pattern} in what cadre shows",
                        lambda: re.search(pattern, self.seen.decode(errors="replace")))

    def end(self):
        status = self.process.wait(HANG_S)
        self.thread.join(HANG_S)
        check_equal(status, 0, f"status, after {self.seen[-500:]}")
        return self.seen.decode(errors="replace")


def submitted(cluster, terminal):
    """A job with a file of 3 MiB, submitted and followed."""
    folder = tempfile.mkdtemp(dir=cluster.folder)
    task, path = os.path.join(folder, "task"), os.path.join(folder, "big.bin")
    with open(path, "wb") as file:
        file.write(os.urandom(3 * MIB))
    with open(task, "wb") as file:
        file.write(script("cmp big.bin big.bin && echo whole"))
    os.chmod(task, 0o755)
    return Command(cluster, program("cadre"), "submit", "--file", path, task, terminal=terminal)


def test_files():
    """On a terminal a bar with rate and time left, in a pipe one line; `cadre job` has the bytes."""
    with HeldCluster("/blobs/fetch-") as cluster:
        cluster.shut_gate()
        command = submitted(cluster, terminal=True)
        command.shows(r"job 1: task 0 fetches its files  \d+(\.\d)? [KM]?i?B/3\.0 MiB \[=*> *\]  .*B/s")
        fetch = cluster.until_fetched(1, "files", least=1)
        check(fetch["done_bytes"] < fetch["whole_bytes"] and fetch["elapsed_us"] >= 2_000_000, f"{fetch}")
        shown = cluster.cadre("job", "1").stdout.decode()
        check(re.search(r"fetches its files: .*B of 3\.0 MiB, .*B/s, \d+:\d\d left", shown), shown)
        cluster.open_gate()
        check_in("whole", command.end(), "what the task prints")
        check_equal(cluster.fetches_of(1), [], "what is fetched at the end")
        cluster.shut_gate()
        command = submitted(cluster, terminal=False)
        command.shows(r"job 2: task 0 fetches its files: 3\.0 MiB\n")
        cluster.until_fetched(2, "files")
        cluster.open_gate()
        check_equal(command.end().count("fetches"), 1, "lines about it in a pipe")


def restored(cluster, what, **fields):
    """A job goes on from the checkpoint of another, which stands still until it was seen."""
    learning = Learning(cluster, checkpoint_every=EVERY, allowed=EVERY, **fields)
    published(learning, EVERY)
    cluster.client.cancel(learning.job)
    cluster.client.wait(learning.job)
    cluster.shut_gate()
    again = Learning(cluster, restore_from=learning.job, **fields)
    fetch = cluster.until_fetched(again.job, what)
    check(0 <= fetch["done_bytes"] <= fetch["whole_bytes"], f"{fetch}")
    cluster.open_gate()
    check_equal(again.end().state, SUCCEEDED, "state")
    check_equal(cluster.fetches_of(again.job), [], "what is fetched at the end")


def test_a_checkpoint():
    """Of two tasks on the host one fetches it."""
    with HeldCluster("/restore/", slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        restored(cluster, "checkpoint", workers=2)


def test_a_checkpoint_in_a_shared_folder():
    with HeldCluster(".safetensors", coordinator=FAST, worker=FAST_WORKER) as cluster:
        folder = tempfile.mkdtemp(prefix="shared-", dir=cluster.folder)
        os.chmod(folder, 0o777)
        restored(cluster, "check", workers=1, checkpoint_folder=folder)


def bulky(folder, *command, terminal=False, **environment):
    """What is shown of the program bulky, which reads 24 MiB of a state in 3 blocks, and of what runs it."""
    slow = {"LD_PRELOAD": SLOW_DISK, "SLOW_DISK_FOLDER": folder, "SLOW_DISK_READ_MS": "1000"}
    shown = Command(None, *command, terminal=terminal, cwd=folder, **(slow | environment))
    return shown.end()


def test_a_program_that_reads_its_checkpoint():
    """What `cadre run --restore` and a program by hand show."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        run_it = [program("cadre"), "run", "--checkpoint-folder", "kept"]
        Command(None, *run_it, BULKY, "--", "24", terminal=False, cwd=folder).end()
        state = os.path.join(folder, "kept", "checkpoint-1.json")
        again = [program("cadre"), "run", "--restore", state, BULKY]
        shown = bulky(folder, *again, terminal=True)
        check(re.search(r"job 1: task 0 reads its checkpoint  \d+\.\d MiB/24\.0 MiB \[=+> *\]  .*B/s  \d:\d\d left",
                        shown), shown)
        check_in("loaded 24 MiB", shown, "what the program prints")
        shown = bulky(folder, *again)
        check_equal(shown.count("reads its checkpoint: 24.0 MiB\n"), 1, f"lines in a pipe: {shown}")
        shown = bulky(folder, BULKY, CADRE_RESTORE=state)
        check(re.search(r"cadre: reading the checkpoint: 24\.0 MiB\ncadre: the checkpoint was read: 24\.0 MiB in "
                        r"\d+\.\d s, \d\.\d MiB/s\nloaded", shown), shown)
        shown = bulky(folder, BULKY, CADRE_RESTORE=state, terminal=True)
        check(re.search(r"\rreading the checkpoint  \d+\.\d MiB/24\.0 MiB \[=+> *\]  .*B/s  \d:\d\d left", shown),
              shown)
        shown = bulky(folder, *again, "--", "stream")
        check_equal(shown.count("reads its checkpoint: 24.0 MiB\n"), 1, f"lines of one that streams: {shown}")
        check_in("streamed 24 MiB", shown, "what it prints")


run(globals())
