# SPDX-License-Identifier: Apache-2.0
"""What a trace costs a job: blocks of its steps that are traced, each beside the two blocks around it that are not."""
import json
import math
import os
import statistics

from driver import programs
from driver.samples import percent, print_table, shown

TITLE = "blocks of steps that are traced beside those around them"
BLOCK = {1000: 250, 0: 2500}  # steps, by microseconds of work in a step
PAIRS = 12  # traced blocks of one run
AHEAD = 3   # blocks from the position to the next that is traced


def step_times(cluster, job):
    lines = cluster.cadre("logs", str(job)).stdout.decode().splitlines()
    return [float(line.split()[2]) for line in lines if line.startswith("block ")]


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
        times = step_times(cluster, job)
        os.unlink("trace.json")
    ratios = [2 * times[at] / (times[at - 1] + times[at + 1]) for at in traced if at + 1 < len(times)]
    return ratios, {"step_us": statistics.median(times) / block / 1000, "spans": spans / PAIRS / block}


pairs = {busy_us: [] for busy_us in BLOCK}


def run_round(samples):
    for busy_us in BLOCK:
        def measured(busy_us=busy_us):
            ratios, figures = train(busy_us)
            pairs[busy_us] += ratios
            return figures
        samples.measure("traced", busy_us, measured)


def report(samples):
    rows = []
    for busy_us, ratios in pairs.items():
        if len(ratios) < 2:
            continue
        ratios.sort()
        # Of the median, by order statistics: 95% (binomial, normal approximation).
        half = 0.98 * math.sqrt(len(ratios))
        low = ratios[max(0, math.floor(len(ratios) / 2 - half))]
        high = ratios[min(len(ratios) - 1, math.ceil(len(ratios) / 2 + half))]
        rows.append([f"{busy_us} us", shown(samples.median("traced", busy_us, "step_us")),
                     shown(samples.median("traced", busy_us, "spans"), 2), len(ratios),
                     f"{statistics.median(ratios):.4f}", f"{low:.4f} to {high:.4f}",
                     percent(samples.disturbed("traced"))])
    print_table(["work of a step", "us a step", "spans a step", "pairs", "traced / not", "95% of the median", "others"],
                rows)
