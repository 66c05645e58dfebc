# SPDX-License-Identifier: Apache-2.0
"""Parameter servers with backups: what was joined is there, whichever task is killed, stopped or replaced meanwhile.

CADRE_TEST_PS_FAULTS and CADRE_TEST_PS_SEED draw more faults, and others."""
import os
import random
import signal
import time

from cluster import Cluster, processes_naming
from testing import check, descendants, run, wait_for
from test_servers import Job, environment_of, tasks

FAULTS = int(os.environ.get("CADRE_TEST_PS_FAULTS", "8"))
SEED = int(os.environ.get("CADRE_TEST_PS_SEED", "1"))
LEASE_S = 1
PUSHES = ("--closures", "20", "--work-us", "2000", "--save")
OPTIONS = ("--max-restarts", "100000", "--ps-backups", "--wait", "2m")


class Pushing(Job):
    """A job that pushes until it is ordered to end, and then reports whether all of it is there."""

    def __init__(self, cluster):
        self.until = os.path.join(cluster.folder, "until")
        super().__init__(cluster, "--rounds", "1000000", "--until", self.until, *PUSHES, options=OPTIONS)

    def check_exact(self):
        with open(self.until, "w", encoding="utf-8"):
            pass
        text = self.end(deadline_s=180)
        check("exact: " in text and "WRONG" not in text, f"what the chief found: {text[-2000:]}")
        return text

    def goes_on(self, more=1):
        """Rounds are done, if need be from a checkpoint on."""
        def said():
            check(self.process.poll() is None, f"the job ended: {self.log()[-3000:]}")
            return self.log().count("is done")
        before = said()
        wait_for(f"{more} more rounds of {self.log_path}", lambda: said() >= before + more, 120)


def start(workers=4):
    return Cluster(workers=workers, slots=3, coordinator=("--lease", f"{LEASE_S}s"))


def worker_of(cluster, pid):
    return next(worker for worker in cluster.workers if pid in descendants(worker.process.pid))


def server_without_the_chief(cluster):
    """A server whose host has not the chief: index, process, daemon."""
    def found():
        servers, chief = tasks(cluster, "ps"), tasks(cluster, "chief")
        if len(servers) < 2 or not chief:
            return None
        home = worker_of(cluster, chief[0])
        for index, pid in servers.items():
            host = worker_of(cluster, pid)
            if host is not home:
                return index, pid, host
        return None
    return wait_for("a server beside the chief's host", found, 30)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def await_another(cluster, index, pid):
    """Another process serves in its place."""
    def there():
        return any(environment_index == index and other != pid
                   for other, environment_index in servers_of(cluster))
    wait_for(f"another ps {index}", there, 60)


def servers_of(cluster):
    """All processes of servers, also when two have one index."""
    found = []
    for pid in processes_naming(f"CADRE_SOCKET={cluster.folder}"):
        environment = environment_of(pid)
        if environment.get("CADRE_TASK_TYPE") == "ps":
            found.append((pid, int(environment["CADRE_TASK_INDEX"])))
    return found


def test_a_server_whose_daemon_is_stopped():
    """It lives, its place is taken by one with its copy; what it answered, that one has."""
    with start() as cluster:
        job = Pushing(cluster)
        job.until_round(3)
        for _ in range(2):
            index, pid, host = server_without_the_chief(cluster)
            os.kill(host.process.pid, signal.SIGSTOP)
            try:
                await_another(cluster, index, pid)
                check(is_alive(pid), "the server whose place was taken lives")
                job.goes_on(3)
            finally:
                os.kill(host.process.pid, signal.SIGCONT)
            wait_for(f"the end of process {pid}", lambda gone=pid: not is_alive(gone), 60)
            job.goes_on(3)
        job.check_exact()


class Drill:
    """Faults, one after the other or two at once, drawn from a seed."""

    def __init__(self, cluster, job, seed):
        self.cluster = cluster
        self.job = job
        self.draw = random.Random(seed)
        self.faults = 0
        self.counts = {}

    def some(self, kind):
        found = tasks(self.cluster, kind)
        return self.draw.choice(list(found.values())) if found else None

    def kill_server(self):
        pid = self.some("ps")
        if pid is not None:
            signal_to(pid, signal.SIGKILL)

    def stop_server(self):
        pid = self.some("ps")
        return self.stop(pid, self.draw.uniform(0.2, 3))

    def stop_daemon(self):
        worker = self.draw.choice(self.cluster.workers)
        return self.stop(worker.process.pid, self.draw.uniform(0.5, 4) * LEASE_S)

    def stop_host(self):
        """A daemon and a server below it: a machine that is cut off, and comes back."""
        worker = self.draw.choice(self.cluster.workers)
        below = set(descendants(worker.process.pid))
        lasts = self.draw.uniform(0.5, 4) * LEASE_S
        ends = [self.stop(worker.process.pid, lasts)]
        ends += [self.stop(pid, lasts) for pid in tasks(self.cluster, "ps").values() if pid in below]
        return lambda: [end() for end in ends]

    def kill_daemon(self):
        worker = self.draw.choice(self.cluster.workers)
        worker.kill()
        return worker.start

    def kill_coordinator(self):
        self.cluster.coordinator.kill()
        return self.cluster.coordinator.start

    def stop_coordinator(self):
        return self.stop(self.cluster.coordinator.process.pid, self.draw.uniform(0.2, 2))

    def stop(self, pid, lasts_s):
        if pid is None or not signal_to(pid, signal.SIGSTOP):
            return lambda: None
        until = time.monotonic() + lasts_s

        def end():
            left = until - time.monotonic()
            if left > 0:
                time.sleep(left)  # the fault lasts so long
            signal_to(pid, signal.SIGCONT)
        return end

    KINDS = ("kill_server", "kill_server", "stop_server", "stop_server", "stop_daemon", "stop_daemon", "stop_host",
             "stop_host", "kill_daemon", "kill_coordinator", "stop_coordinator")

    def once(self):
        """One fault, or two at once."""
        kinds = self.draw.sample(self.KINDS, self.draw.choice((1, 1, 2)))
        ends = []
        if "kill_coordinator" in kinds and "stop_coordinator" in kinds:
            kinds.remove("stop_coordinator")
        try:
            for kind in kinds:
                ends.append((kind, getattr(self, kind)()))
                self.faults += 1
                self.counts[kind] = self.counts.get(kind, 0) + 1
        finally:
            # A daemon that is started waits for the coordinator.
            for _, end in sorted(ends, key=lambda each: "coordinator" not in each[0]):
                if end is not None:
                    end()


def signal_to(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def test_a_drill():
    with start() as cluster:
        job = Pushing(cluster)
        job.until_round(3)
        drill = Drill(cluster, job, SEED)
        while drill.faults < FAULTS:
            drill.once()
            job.goes_on(drill.draw.choice((1, 1, 3)))
        text = job.check_exact()
        print(f"{drill.faults} faults {drill.counts}: {text.count('is done')} rounds, "
              f"{text.count('begins at round')} begins, {text.splitlines()[-1]}")


if __name__ == "__main__":
    run(globals())
