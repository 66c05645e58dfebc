# SPDX-License-Identifier: Apache-2.0
"""A parameter server that is killed under pushes, again and again: for how long they stand, and what is lost."""
import os
import signal
import statistics
import struct
import sys
import tempfile
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "a ps that is killed -9 under pushes: milliseconds from the kill to the next acknowledged push"
ROWS = {"64 KiB": (8192, False), "16 MiB": (2 << 20, False), "64 KiB, with backups": (8192, True),
        "16 MiB, with backups": (2 << 20, True)}
KILLS = amount.of(100, 1)
BEFORE_END = amount.of(300, 10)  # pushes
DEADLINE_S = amount.deadline_s(60)


class Pushes:
    """What the worker wrote down."""

    def __init__(self):
        self.folder = os.path.abspath(tempfile.mkdtemp(prefix="pushes-", dir="."))
        os.chmod(self.folder, 0o777)
        self.read = 0
        self.moments = []

    def look(self):
        """When the newest push was acknowledged; of all that came since the last look, in order."""
        path = os.path.join(self.folder, "pushes")
        if not os.path.exists(path):
            return []
        with open(path, "rb") as file:
            file.seek(self.read)
            content = file.read()
        whole = len(content) // 16 * 16
        self.read += whole
        found = [moment for _, moment in struct.iter_unpack("<QQ", content[:whole])]
        self.moments += found
        return found

    def each_us(self):
        """What a push takes when nothing is killed: of most it is so."""
        return statistics.median(b - a for a, b in zip(self.moments, self.moments[1:])) / 1e3

    def wait_after(self, since_ns, count):
        """The moments of so many pushes after one."""
        found, end = [], time.monotonic() + DEADLINE_S
        while len(found) < count:
            if time.monotonic() > end:
                raise RuntimeError(f"no {count} pushes within {DEADLINE_S} s")
            found += [moment for moment in self.look() if moment > since_ns]
            time.sleep(0.002)
        return found


def server_of(cluster, job, before):
    """The pid of ps 0 once it is another one than before."""
    def next_incarnation(info):
        return info.tasks[2].pid not in (0, before)
    return cluster.client.watch_until(job, next_incarnation, "a ps", DEADLINE_S).tasks[2].pid


def kill_servers(elements, backups):
    from cluster import Cluster
    pushes, stood, pid = Pushes(), [], 0
    servers = 2 if backups else 1
    with Cluster(workers=1, slots=5) as cluster:
        with open(programs.program("bench_pushing"), "rb") as file:
            job = cluster.client.submit(
                file.read(), arguments=[pushes.folder, str(elements)], max_restarts=1000, strategy="parameter_server",
                ps_job={"workers": 1, "servers": servers, "backups": backups}, workers=2 + servers,
                workers_min=2 + servers)
        for _ in range(KILLS):
            pid = server_of(cluster, job, pid)
            pushes.wait_after(time.monotonic_ns(), 3)
            killed_ns = time.monotonic_ns()
            os.kill(pid, signal.SIGKILL)
            # One that was under way may still be acknowledged: the longest pause counts.
            after = [killed_ns, *pushes.wait_after(killed_ns, 3)]
            pauses = [(later - earlier, later) for earlier, later in zip(after, after[1:])]
            stood.append((max(pauses)[1] - killed_ns) / 1e6)
        pushes.wait_after(time.monotonic_ns(), BEFORE_END)
        with open(os.path.join(pushes.folder, "stop"), "wb"):
            pass
        cluster.client.wait(job, DEADLINE_S)
    with open(os.path.join(pushes.folder, "lost"), encoding="ascii") as file:
        acknowledged, lost, twice = (int(number) for number in file.read().split())
    stood.sort()
    return {"p50": statistics.median(stood), "p99": stood[int(len(stood) * 0.99) - 1], "worst": stood[-1],
            "each": pushes.each_us(), "acknowledged": acknowledged, "lost": lost, "twice": twice}


def run_round(samples):
    for row, (elements, backups) in ROWS.items():
        samples.measure(row, "", lambda elements=elements, backups=backups: kill_servers(elements, backups))


def report(samples):
    print_table(["a push of", "p50", "p99", "worst", "else, us", "acknowledged", "lost", "twice", "others"],
                [[row, *(shown(samples.median(row, "", name)) for name in ("p50", "p99", "worst", "each")),
                  *(f"{samples.median(row, '', name) or 0:,.0f}" for name in ("acknowledged", "lost", "twice")),
                  percent(samples.disturbed(row))] for row in ROWS])
    print(f"  {KILLS} kills a round; goal: nothing is lost")


if __name__ == "__main__":
    sys.exit("run it by tests/bench/run failover")
