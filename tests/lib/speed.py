# SPDX-License-Identifier: Apache-2.0
"""How much slower a program runs here and now than on an idle machine, and limits that follow it. What speed.c is for
programs in C."""
import os
import time

MOST = 32.0
SAMPLE_S = 0.5  # of waiting, between two looks at the load
LOOP_S = 0.01   # of CPU


def runnable():
    """Threads that run or want to, this one too."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("procs_running"))
    except (OSError, StopIteration):
        return 1


def loop():
    """Wall time over CPU time of a loop that does nothing else."""
    wall, cpu = time.monotonic(), time.thread_time()
    while time.thread_time() - cpu < LOOP_S:
        pass
    return (time.monotonic() - wall) / LOOP_S


LOOPED = loop()


def slowness():
    """1 on an idle machine, 8 on one with eight times the load that it can carry. By what waits for its CPUs now, or by
    a loop at the start, whichever says more."""
    return min(MOST, max(1.0, runnable() / len(os.sched_getaffinity(0)), LOOPED))


AT_START = slowness()


class Patience:
    """So many seconds of an idle machine: on a busy one they last longer, as its load says while they pass."""

    def __init__(self, seconds):
        self.left_s = seconds
        self.last = self.began = time.monotonic()
        self.slowness = slowness()
        self.sampled = self.last

    def is_over(self):
        now = time.monotonic()
        self.left_s -= (now - self.last) / self.slowness
        self.last = now
        if now - self.sampled > SAMPLE_S:
            self.slowness, self.sampled = slowness(), time.monotonic()
        return self.left_s <= 0

    def passed_s(self):
        return time.monotonic() - self.began
