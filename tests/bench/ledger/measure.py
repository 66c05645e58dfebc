# SPDX-License-Identifier: Apache-2.0
"""What the ledger costs a job under daemons: digits as it is, and with no barrier at all, in pairs of runs."""
import time

from driver import amount, meter, programs
from driver.samples import percent, print_table, shown
from steps.measure import FILES, arguments

TITLE = "what the step barrier and the ledger add to a step of digits under daemons"
FREE, DEFAULT = "no barrier", "as it is"
KINDS = {FREE: "bench_digits_free", DEFAULT: "digits"}
IMAGES, TESTED = 1438, 6  # in an epoch; batches of 64 in its evaluation
# Images in a batch, and epochs of the two runs whose difference is free of start and end.
EPOCHS = {"short epochs": (64, *amount.of((20, 320), (1, 2))), "long epochs": (4, *amount.of((3, 43), (1, 2)))}
GOALS = {1: 0.01, 2: 0.03}  # of the time, by the number of workers
GOAL_CPU = 0.01  # of the tasks' CPU seconds, by all daemons together
PAIRS = amount.of(4, 1)  # in a round


def cpu_of(cluster):
    """Seconds that the coordinator, the workers' daemons and what those have waited for have used."""
    workers = [worker.process.pid for worker in cluster.workers]
    return {"coordinator_s": meter.cpu_s(cluster.coordinator.process.pid), "workers_s": sum(map(meter.cpu_s, workers)),
            "tasks_s": sum(meter.stat_of(pid)[2] for pid in workers)}


def trained(cluster, workers, name, batch, epochs):
    """Seconds of the whole command, and of CPU of daemons and tasks until its tasks and their keepers were waited for;
    a program that never reports its end is cancelled by its own exit."""
    files = [option for path in FILES for option in ("--file", path)]
    before, began_s = cpu_of(cluster), time.monotonic()
    cluster.cadre("submit", "--workers", str(workers), "--replicas", "1", *files, programs.program(name), "--",
                  *arguments(epochs), "--batch", str(batch), status=None)
    took_s = time.monotonic() - began_s
    cluster.check_no_tasks()
    after = cpu_of(cluster)
    return {"s": took_s} | {key: after[key] - before[key] for key in before}


def per_step(cluster, workers, name, batch, few, many):
    """Seconds of each kind for one step, those of the evaluations among them."""
    less, more = (trained(cluster, workers, name, batch, epochs) for epochs in (few, many))
    steps = IMAGES // batch + (IMAGES % batch > 0) + TESTED
    return {key: (more[key] - less[key]) / ((many - few) * steps) for key in more}


def run_round(samples):
    from cluster import Cluster
    with Cluster(workers=2, slots=1) as cluster:
        for length, (batch, few, many) in EPOCHS.items():
            for workers in GOALS:
                for _ in range(PAIRS):
                    for kind, name in KINDS.items():
                        samples.measure(kind, (length, workers), lambda run=(workers, name, batch, few, many):
                                        per_step(cluster, *run))


def report(samples):
    columns = [(length, workers) for length in EPOCHS for workers in GOALS]
    print_table(["us per step", "no barrier", "as it is", "added", "95% between", "goal", "others"],
                [time_line(samples, column) for column in columns])
    print_table(["CPU seconds per 1,000 steps", "tasks", "workers' daemons", "coordinator", "daemons, of the tasks'",
                 f"goal {GOAL_CPU * 100:.0f}%"],
                [cpu_line(samples, column) for column in columns])


def named(column):
    length, workers = column
    return f"{length}, {workers} worker{'s' if workers > 1 else ''}"


def time_line(samples, column):
    cells = [named(column), *(shown((samples.median(kind, column, "s") or 0) * 1e6) for kind in (FREE, DEFAULT))]
    paired = samples.paired_ratio(DEFAULT, FREE, column, "s")
    if paired is None:
        return [*cells, "-", "-", "-", "-"]
    added, low, high = (f"{(ratio - 1) * 100:+.1f}%" for ratio in paired)
    goal = GOALS[column[1]]
    return [*cells, added, f"{low} and {high}", f"{goal * 100:.0f}% {'met' if paired[0] - 1 <= goal else 'MISSED'}",
            percent(max(samples.disturbed(kind) for kind in KINDS))]


def cpu_line(samples, column):
    tasks, daemons, coordinator = (samples.median(DEFAULT, column, name)
                                   for name in ("tasks_s", "workers_s", "coordinator_s"))
    if not tasks:
        return [named(column), "-", "-", "-", "-", "-"]
    share = (daemons + coordinator) / tasks
    return [named(column), *(shown(value * 1000) for value in (tasks, daemons, coordinator)), f"{share * 100:.1f}%",
            "met" if share <= GOAL_CPU else "MISSED"]
