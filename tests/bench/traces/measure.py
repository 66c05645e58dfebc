# SPDX-License-Identifier: Apache-2.0
"""What a trace costs a job: blocks of its steps that are traced, each beside the two blocks around it that are not."""
import json
import math
import os
import statistics

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "blocks of steps that are traced beside those around them"
BLOCK = amount.of({1000: 250, 0: 2500}, {1000: 100, 0: 1000})  # steps, by microseconds of work in a step
PAIRS = amount.of(12, 2)  # traced blocks of one run
AHEAD = 3   # blocks from the position to the next that is traced


def block_times(cluster, job):
    """Of each block its time and the CPU time of all but the work, in nanoseconds."""
    lines = cluster.cadre("logs", str(job)).stdout.decode().splitlines()
    return [tuple(map(float, line.split()[2:4])) for line in lines if line.startswith("block ")]


def trace_blocks(cluster, job, block):
    """Traces one block after another, with blocks between them that are not traced; returns which, and spans."""
    traced, spans = [], 0
    position = 0
    while len(traced) < PAIRS:
        position = cluster.client.watch_until(job, lambda info, least=position: info.position >= least,
                                              "more steps").position
        at = position // block + AHEAD
        read = cluster.cadre("trace", str(job), "--steps", f"{at * block}:{(at + 1) * block}", "-o", "trace.json",
                             "--json", status=None)
        if read.returncode == 0:
            traced.append(at)
            spans += json.loads(read.stdout)["spans"]
        position = (at + 2) * block
    return traced, spans


def train(busy_us):
    from cluster import Cluster
    block = BLOCK[busy_us]
    with Cluster(workers=1, slots=1) as cluster:
        with open(programs.program("bench_tracing"), "rb") as file:
            job = cluster.client.submit(file.read(), workers=1, replicas=1,
                                        arguments=["1000000000", str(busy_us), str(block)])
        traced, spans = trace_blocks(cluster, job, block)
        cluster.client.watch_until(job, lambda info: info.position >= (traced[-1] + 2) * block, "the last block")
        cluster.cadre("cancel", str(job))
        cluster.client.wait(job)
        times = block_times(cluster, job)
        os.unlink("trace.json")
    whole = [at for at in traced if 0 < at < len(times) - 1]
    ratios = [2 * times[at][0] / (times[at - 1][0] + times[at + 1][0]) for at in whole]
    more = [(times[at][1] - (times[at - 1][1] + times[at + 1][1]) / 2) / block / 1000 for at in whole]
    figures = {"step_us": statistics.median(time for time, _ in times) / block / 1000,
               "cpu_us": statistics.median(cpu for _, cpu in times) / block / 1000, "spans": spans / PAIRS / block}
    return ratios, more, figures


found = {busy_us: ([], []) for busy_us in BLOCK}


def run_round(samples):
    for busy_us in BLOCK:
        def measured(busy_us=busy_us):
            ratios, more, figures = train(busy_us)
            found[busy_us][0].extend(ratios)
            found[busy_us][1].extend(more)
            return figures
        samples.measure("traced", busy_us, measured)


def interval(values):
    """Of the median, by order statistics: 95% (binomial, normal approximation)."""
    values = sorted(values)
    half = 0.98 * math.sqrt(len(values))
    return (values[max(0, math.floor(len(values) / 2 - half))],
            values[min(len(values) - 1, math.ceil(len(values) / 2 + half))])


def report(samples):
    rows = []
    for busy_us, (ratios, more) in found.items():
        if len(ratios) < 2:
            continue
        for what, values, places in (("time, traced / not", ratios, 4), ("CPU us more a step", more, 2)):
            low, high = interval(values)
            rows.append([f"{busy_us} us", shown(samples.median("traced", busy_us, "step_us")),
                         shown(samples.median("traced", busy_us, "cpu_us")),
                         shown(samples.median("traced", busy_us, "spans"), 2), what,
                         f"{statistics.median(values):.{places}f}", f"{low:.{places}f} to {high:.{places}f}",
                         len(values), percent(samples.disturbed("traced"))])
    print_table(["work of a step", "us a step", "CPU us besides", "spans a step", "", "median", "95% of it", "pairs",
                 "others"], rows)
