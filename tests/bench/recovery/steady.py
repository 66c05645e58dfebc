# SPDX-License-Identifier: Apache-2.0
"""A job of bench_steady, and when it applied its steps."""
import glob
import os
import struct
import tempfile
import time

from driver import amount, programs

STEP_US = 2000
DEADLINE_S = amount.deadline_s(60)


class Steps:
    """When each step was applied, over all tasks that wrote into the folder."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="steps-", dir=".")
        os.chmod(self.folder, 0o777)
        self.folder = os.path.abspath(self.folder)
        self.read = {}  # bytes of each file
        self.found = []

    def stamps(self):
        """Pairs: the position after a step, and the moment."""
        for path in glob.glob(f"{self.folder}/steps-*"):
            with open(path, "rb") as file:
                file.seek(self.read.setdefault(path, 0))
                content = file.read()
            whole = len(content) // 16 * 16
            self.read[path] += whole
            self.found += struct.iter_unpack("<QQ", content[:whole])
        return self.found

    def times(self):
        return sorted(moment for _, moment in self.stamps())

    def position_at(self, at_ns):
        """The highest position until then: what a job does again counts once."""
        return max((position for position, moment in self.stamps() if moment <= at_ns), default=0)

    def wait_more(self, since_ns, count=20):
        """Until so many steps were applied after a moment."""
        end = time.monotonic() + DEADLINE_S
        while sum(moment > since_ns for moment in self.times()) < count:
            if time.monotonic() > end:
                raise RuntimeError(f"no {count} steps within {DEADLINE_S} s")
            time.sleep(0.02)

    def stood_ms(self, killed_ns):
        """From the kill to the end of the longest pause after it: what was under way when it came may still be
        applied."""
        after = [killed_ns, *(moment for moment in self.times() if moment > killed_ns)]
        pauses = [(later - earlier, later) for earlier, later in zip(after, after[1:])]
        return (max(pauses)[1] - killed_ns) / 1e6


def submit(cluster, steps, state_bytes=4096, **fields):
    with open(programs.program("bench_steady"), "rb") as file:
        return cluster.client.submit(file.read(), arguments=[steps.folder, str(state_bytes), str(STEP_US)],
                                     max_restarts=1000, replicas=1, **fields)


def whole(cluster, job, tasks):
    """Waits until all tasks train together; the job's info."""
    return cluster.client.watch_until(job, lambda info: info.roster == tasks and info.position > 0, "all tasks",
                                      DEADLINE_S)
