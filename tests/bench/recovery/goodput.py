# SPDX-License-Identifier: Apache-2.0
"""Goodput: which share of its time a job makes progress, when a task of it is killed every 30 s.

From a kill to the next, the progress is that of the position; what it would have been without is what the job makes
in the later half of the same time, in which all tasks train again."""
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


def between(steps, from_ns, to_ns):
    return steps.position_at(to_ns) - steps.position_at(from_ns)


def goodput(tasks, fields):
    from cluster import Cluster
    steps, made, possible = Steps(), 0, 0
    with Cluster(workers=tasks, slots=1) as cluster:
        job = submit(cluster, steps, workers=tasks, workers_min=tasks, **fields)
        for _ in range(KILLS):
            whole(cluster, job, tasks)
            steps.wait_more(time.monotonic_ns())
            killed_ns = time.monotonic_ns()
            os.kill(cluster.client.get(job).tasks[-1].pid, signal.SIGKILL)
            half_ns, end_ns = (killed_ns + int(EVERY_S * share * 1e9) for share in (0.5, 1))
            time.sleep(EVERY_S)  # what is measured is a rate
            steps.wait_more(end_ns, 1)
            made += between(steps, killed_ns, end_ns)
            possible += 2 * between(steps, half_ns, end_ns)
        cluster.client.cancel(job)
        cluster.client.wait(job)
    if possible == 0:
        raise RuntimeError(f"no step was applied in the later half of {EVERY_S} s")
    return {"goodput": made / possible}


def run_round(samples):
    for row, (tasks, fields) in ROWS.items():
        samples.measure(row, "goodput", lambda tasks=tasks, fields=fields: goodput(tasks, fields))


def report(samples):
    def cells(row):
        share = samples.median(row, "goodput", "goodput")
        return ["-", "-"] if share is None else [f"{share * 100:.2f}%", "met" if share >= GOAL else "MISSED"]

    print_table([f"killed every {EVERY_S} s", "goodput", f"goal {GOAL * 100:.0f}%", "others"],
                [[row, *cells(row), percent(samples.disturbed(row))] for row in ROWS])
