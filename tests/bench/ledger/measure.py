# SPDX-License-Identifier: Apache-2.0
"""What the ledger costs a job under daemons: digits as it is, with the widest window, and with no barrier at all."""
import statistics
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown
from steps.measure import FEW, FILES, MANY, STEPS_PER_EPOCH, arguments

TITLE = "what the step barrier and the ledger add to a step of digits under daemons"
FREE, WIDE, DEFAULT = "no barrier", "window of 64", "default window"
KINDS = {FREE: "bench_digits_free", WIDE: "bench_digits_wide", DEFAULT: "digits"}
GOALS = {WIDE: "1%", DEFAULT: "3%"}
TIMES = amount.of(3, 1)


def trained(cluster, workers, name, epochs):
    """Seconds of the whole command; a program that never reports its end is cancelled by its own exit."""
    files = [option for path in FILES for option in ("--file", path)]
    began_s = time.monotonic()
    cluster.cadre("submit", "--workers", str(workers), "--replicas", "1", *files, programs.program(name), "--",
                  *arguments(epochs), status=None)
    return time.monotonic() - began_s


def step_us(cluster, workers, name):
    few, many = (statistics.median(trained(cluster, workers, name, epochs) for _ in range(TIMES))
                 for epochs in (FEW, MANY))
    return (many - few) / ((MANY - FEW) * STEPS_PER_EPOCH) * 1e6


def run_round(samples):
    from cluster import Cluster
    with Cluster(workers=2, slots=1) as cluster:
        for workers in (1, 2):
            for kind, name in KINDS.items():
                samples.measure(kind, workers, lambda n=name, w=workers: {"us": step_us(cluster, w, n)})


def report(samples):
    def added(kind, workers):
        ratio = samples.ratio(kind, FREE, workers, "us")
        return "-" if ratio is None else f"{(ratio - 1) * 100:+.1f}%"

    print_table(["us per step", "1 worker", "added", "2 workers", "added", "goal", "others"],
                [[kind, shown(samples.median(kind, 1, "us")), added(kind, 1), shown(samples.median(kind, 2, "us")),
                  added(kind, 2), GOALS.get(kind, ""), percent(samples.disturbed(kind))] for kind in KINDS])
