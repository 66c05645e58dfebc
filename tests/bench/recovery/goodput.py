# SPDX-License-Identifier: Apache-2.0
"""Goodput: which share of its time a job makes progress, when a task of it is killed every 30 s.

From a kill to the next, the progress is that of the position. A kill costs what the job makes less in the first sixth
of that time than it makes in as much of the rest, in which all tasks train again: so what the machine's speed differs
by from minute to minute counts a sixth."""
import os
import signal
import time

from driver import amount
from driver.samples import percent, print_table
from recovery.steady import Steps, submit, whole

EVERY_S, KILLS = amount.of((30, 2), (2, 1))
ROWS = {"1 of 2 tasks, which gets the state of the other": (2, {}),
        "the only task, from a checkpoint of every 100 steps": (1, {"checkpoint_every": 100})}
GOAL = 0.97


class Progress:
    """Of all kills: what the job made right after them, and later."""

    FIRST = 1 / 6

    def __init__(self):
        self.first, self.rest = 0, 0

    def add(self, position_at, killed_ns):
        settled_ns, end_ns = (killed_ns + int(EVERY_S * share * 1e9) for share in (self.FIRST, 1))
        self.first += position_at(settled_ns) - position_at(killed_ns)
        self.rest += position_at(end_ns) - position_at(settled_ns)

    def goodput(self):
        if self.rest == 0:
            raise RuntimeError(f"no step was applied {EVERY_S * self.FIRST:.1f} s after a kill and later")
        made = self.first / (self.rest * self.FIRST / (1 - self.FIRST))
        return 1 - (1 - made) * self.FIRST


def goodput(tasks, fields):
    from cluster import Cluster
    steps, progress = Steps(), Progress()
    with Cluster(workers=tasks, slots=1) as cluster:
        job = submit(cluster, steps, workers=tasks, workers_min=tasks, **fields)
        for _ in range(KILLS):
            whole(cluster, job, tasks)
            steps.wait_more(time.monotonic_ns())
            killed_ns = time.monotonic_ns()
            os.kill(cluster.client.get(job).tasks[-1].pid, signal.SIGKILL)
            time.sleep(EVERY_S)  # what is measured is a rate
            steps.wait_more(killed_ns + int(EVERY_S * 1e9), 1)
            progress.add(steps.position_at, killed_ns)
        cluster.client.cancel(job)
        cluster.client.wait(job)
    return {"goodput": progress.goodput()}


def run_round(samples):
    for row, (tasks, fields) in ROWS.items():
        samples.measure(row, "goodput", lambda tasks=tasks, fields=fields: goodput(tasks, fields))


def report(samples):
    def cells(row):
        share = samples.median(row, "goodput", "goodput")
        return ["-", "-"] if share is None else [f"{share * 100:.2f}%", "met" if share >= GOAL else "MISSED"]

    print_table([f"killed every {EVERY_S} s", "goodput", f"goal {GOAL * 100:.0f}%", "others"],
                [[row, *cells(row), percent(samples.disturbed(row))] for row in ROWS])
