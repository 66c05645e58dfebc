# SPDX-License-Identifier: Apache-2.0
"""What the ledger costs a job under daemons: digits as it is, with the widest window, and with no barrier at all."""
import statistics
import time

from driver import amount, meter, programs
from driver.samples import percent, print_table, shown
from steps.measure import FEW, FILES, MANY, STEPS_PER_EPOCH, arguments

TITLE = "what the step barrier and the ledger add to a step of digits under daemons"
FREE, WIDE, DEFAULT = "no barrier", "window of 64", "default window"
KINDS = {FREE: "bench_digits_free", WIDE: "bench_digits_wide", DEFAULT: "digits"}
GOALS = {WIDE: "1%", DEFAULT: "3%"}
GOAL_CPU = 0.01  # of the tasks' CPU seconds, by all daemons together
TIMES = amount.of(3, 1)


def cpu_of(cluster):
    """Seconds that the coordinator, the workers' daemons and what those have waited for have used."""
    workers = [worker.process.pid for worker in cluster.workers]
    return {"coordinator_s": meter.cpu_s(cluster.coordinator.process.pid), "workers_s": sum(map(meter.cpu_s, workers)),
            "tasks_s": sum(meter.stat_of(pid)[2] for pid in workers)}


def trained(cluster, workers, name, epochs):
    """Seconds of the whole command, and of CPU of daemons and tasks until its tasks and their keepers were waited for;
    a program that never reports its end is cancelled by its own exit."""
    files = [option for path in FILES for option in ("--file", path)]
    before, began_s = cpu_of(cluster), time.monotonic()
    cluster.cadre("submit", "--workers", str(workers), "--replicas", "1", *files, programs.program(name), "--",
                  *arguments(epochs), status=None)
    took_s = time.monotonic() - began_s
    cluster.check_no_tasks()
    after = cpu_of(cluster)
    return {"s": took_s} | {key: after[key] - before[key] for key in before}


def per_step(cluster, workers, name):
    """Seconds of each kind for one step."""
    runs = {epochs: [trained(cluster, workers, name, epochs) for _ in range(TIMES)] for epochs in (FEW, MANY)}
    few, many = ({key: statistics.median(run[key] for run in runs[epochs]) for key in runs[epochs][0]}
                 for epochs in (FEW, MANY))
    return {key: (many[key] - few[key]) / ((MANY - FEW) * STEPS_PER_EPOCH) for key in many}


def run_round(samples):
    from cluster import Cluster
    with Cluster(workers=2, slots=1) as cluster:
        for workers in (1, 2):
            for kind, name in KINDS.items():
                samples.measure(kind, workers, lambda n=name, w=workers: per_step(cluster, w, n))


def report(samples):
    def us(kind, workers):
        return shown((samples.median(kind, workers, "s") or 0) * 1e6)

    def added(kind, workers):
        ratio = samples.ratio(kind, FREE, workers, "s")
        return "-" if ratio is None else f"{(ratio - 1) * 100:+.1f}%"

    print_table(["us per step", "1 worker", "added", "2 workers", "added", "goal", "others"],
                [[kind, us(kind, 1), added(kind, 1), us(kind, 2), added(kind, 2), GOALS.get(kind, ""),
                  percent(samples.disturbed(kind))] for kind in KINDS])
    print_table(["CPU seconds per 1,000 steps", "tasks", "workers' daemons", "coordinator", "daemons, of the tasks'",
                 f"goal {GOAL_CPU * 100:.0f}%"],
                [cpu_line(samples, kind, workers) for workers in (1, 2) for kind in KINDS])


def cpu_line(samples, kind, workers):
    tasks, daemons, coordinator = (samples.median(kind, workers, name)
                                   for name in ("tasks_s", "workers_s", "coordinator_s"))
    cells = [f"{kind}, {workers} worker{'s' if workers > 1 else ''}"]
    if not tasks:
        return [*cells, "-", "-", "-", "-", "-"]
    share = (daemons + coordinator) / tasks
    return [*cells, *(shown(value * 1000) for value in (tasks, daemons, coordinator)), f"{share * 100:.1f}%",
            "met" if share <= GOAL_CPU else "MISSED"]
