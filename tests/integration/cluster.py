# SPDX-License-Identifier: Apache-2.0
"""A coordinator and workers as processes in a folder of their own. Leaving the `with` block ends them in order and
checks that nothing is left: no process, no socket, no half-written file."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from testing import HANG_S, Failure, check, check_equal, scaled, wait_for

BIN = os.environ.get("CADRE_TEST_BIN", "")
TRAINER = os.environ.get("CADRE_TEST_TRAINER", "")
AS_ROOT = os.geteuid() == 0
CONTENT = re.compile(r"(object-)?[0-9a-f]{64}$")  # an object of a store: which content it is


def program(name):
    return os.path.join(BIN, name)


def with_wrong_clock(daemon, path):
    """Its wall clock is wrong by as many seconds as the file says, from one look to the next."""
    clock = os.environ.get("CADRE_TEST_WALL_CLOCK", "")
    daemon.argv = ["env", f"LD_PRELOAD={clock}", f"WALL_CLOCK_FILE={path}", *daemon.argv]


def set_wrong_clock(path, seconds):
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(str(seconds))
    os.rename(path + ".new", path)


def script(text):
    """The content of a shell program."""
    return f"#!/bin/sh\n{text}\n".encode()


def trainer():
    """The content of the program of trainer.c."""
    with open(TRAINER, "rb") as file:
        return file.read()


def clean_environment():
    """Ours without what would change a daemon or a client."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith("CADRE_") and name != "NOTIFY_SOCKET"}


def processes_naming(text):
    """The pids of processes whose command line or environment has `text`, ourselves apart."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{entry}/{name}", "rb") as file:
                    content = file.read()
            except OSError:
                continue
            if text.encode() in content:
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as file:
                        found[int(entry)] = file.read().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue  # it ended meanwhile
    return found


class Daemon:
    """One daemon: its command line, its log, its end."""

    def __init__(self, cluster, name, argv):
        self.cluster = cluster
        self.name = name
        self.state = os.path.join(cluster.folder, name)
        self.ready_file = os.path.join(cluster.folder, f"{name}.ready")
        self.log_path = os.path.join(cluster.folder, f"{name}.log")
        self.argv = argv + ["--state-dir", self.state, "--ready-file", self.ready_file]
        self.process = None
        self.environment = {}  # beside what it has from us

    def start(self, ready=True):
        if os.path.exists(self.ready_file):
            os.unlink(self.ready_file)
        with open(self.log_path, "ab") as log:
            # Should the test be killed, its daemons end in order and take their tasks along.
            self.process = subprocess.Popen(["setpriv", "--pdeathsig", "TERM", *self.argv], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=clean_environment() | self.environment,
                                            start_new_session=True)
        if ready:
            self.wait_ready()
        return self

    def is_ready(self):
        if self.process.poll() is not None:
            raise Failure(f"{self.name} ended with {self.process.returncode} at its start")
        return os.path.exists(self.ready_file)

    def wait_ready(self):
        wait_for(f"{self.name} is ready", self.is_ready)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        self.process.send_signal(number)

    def wait_end(self, deadline_s=30):
        wait_for(f"{self.name} ends", lambda: self.process.poll() is not None, deadline_s)
        return self.process.returncode

    def stop(self):
        """SIGTERM; the end must be orderly."""
        self.signal(signal.SIGTERM)
        self.check_end()

    def check_end(self):
        check_equal(self.wait_end(), 0, f"exit status of {self.name} after SIGTERM")
        check(not os.path.exists(self.ready_file), f"{self.name} left {self.ready_file}")

    def kill(self):
        self.signal(signal.SIGKILL)
        self.process.wait()

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()


class Cluster:
    """with Cluster(workers=2) as cluster: ... cluster.client.submit(...)"""

    def __init__(self, workers=1, slots=1, coordinator=(), worker=(), start=True):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        os.chmod(self.folder, 0o711)  # tasks run as another user when we are root
        self.address = f"unix:{self.folder}/c.sock"
        self.coordinator = Daemon(self, "coordinator", [
            program("cadre-coordinator"), "--listen", self.address, "--grace", "1s",
            "--collect-timeout", scaled("20s"), *coordinator])
        self.coordinators = [self.coordinator]
        self.workers = [self.worker(f"w{i}", slots, worker) for i in range(workers)]
        self.start = start
        self.clients = []

    def worker(self, name, slots=1, options=()):
        return Daemon(self, name, [
            program("cadre-worker"), "--coordinator", self.address, "--name", name, "--slots", str(slots),
            "--grace", "1s", *options])

    @property
    def client(self):
        """A client of its own connection, made when it is first asked for."""
        if not self.clients:
            self.new_client()
        return self.clients[0]

    def new_client(self):
        from client import Client
        self.clients.append(Client(self.address))
        return self.clients[-1]

    def cadre(self, *arguments, status=0, **options):
        """Runs the command line against this cluster; returns what it printed."""
        done = subprocess.run([program("cadre"), *arguments], capture_output=True, timeout=HANG_S, check=False,
                              env=clean_environment() | {"CADRE_COORDINATOR": self.address}, **options)
        if status is not None and done.returncode != status:
            said = (done.stdout[-500:] + done.stderr[-1000:]).decode(errors="replace")
            raise Failure(f"cadre {' '.join(arguments)} ended with {done.returncode} instead of {status}: {said}")
        return done

    def __enter__(self):
        if self.start:
            try:
                for coordinator in self.coordinators:
                    coordinator.start()
                for worker in self.workers:
                    worker.start(ready=False)
                for worker in self.workers:
                    worker.wait_ready()
            except BaseException:
                self.show_logs()
                self.sweep()
                raise
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.end()
        except Failure:
            kind = Failure
            raise
        finally:
            for client in self.clients:
                client.close()
            if kind is not None:
                self.show_logs()
            self.sweep(keep=kind is not None and "--keep-failed" in sys.argv)

    def end(self):
        """Stops what runs, workers first, and checks what is left."""
        if self.coordinator.runs():
            self.check_no_tasks()
        running = [worker for worker in self.workers if worker.runs()]
        for worker in running:
            worker.signal(signal.SIGTERM)
        for worker in running:
            worker.check_end()
        for coordinator in self.coordinators:
            if coordinator.runs():
                coordinator.stop()
        self.check_nothing_left()

    def check_no_tasks(self):
        """While the daemons live: no task's process, folder or half-written file."""
        def tasks():
            return [pid for pid, line in processes_naming(f"CADRE_SOCKET={self.folder}").items()]
        wait_for("no task is left", lambda: not tasks(), 10)
        for worker in self.workers:
            folder = os.path.join(worker.state, "tasks")
            if worker.runs() and os.path.isdir(folder):
                wait_for(f"{folder} is empty", lambda: not os.listdir(folder), 10)

    def check_nothing_left(self):
        left = processes_naming(self.folder)
        check(not left, f"processes are left: {left}")
        for folder, _, names in os.walk(self.folder):
            for name in names:
                path = os.path.join(folder, name)
                check(not name.endswith((".sock", ".ready")) and name != "socket", f"{path} is left")
                check(os.path.basename(folder) != "blobs" or CONTENT.match(name), f"{path} is left")

    def show_logs(self):
        for daemon in [*self.coordinators, *self.workers]:
            if os.path.exists(daemon.log_path):
                print(f"--- {daemon.name} ---\n" + "".join(f"    {line}\n" for line in daemon.log().splitlines()[-25:]),
                      flush=True)

    def sweep(self, keep=False):
        for pid in processes_naming(self.folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for daemon in [*self.coordinators, *self.workers]:
            if daemon.process is not None:
                daemon.process.wait()
        if keep or "--keep" in sys.argv:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
