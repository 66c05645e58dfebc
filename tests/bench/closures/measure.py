# SPDX-License-Identifier: Apache-2.0
"""Closures that do nothing: how many a second, and how long one takes."""
import subprocess
import sys

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "closures that do nothing, microseconds; each worker a process of its own"
WORKERS = amount.of((1, 2, 4), (1, 2))
PART = amount.of("1", "100")  # 100: a hundredth of all


def closures(workers):
    # A task's lines come with its number in brackets.
    done = subprocess.run([programs.program("cadre"), "run", "--strategy", "parameter_server", "--ps", "1", "--workers",
                           str(workers), programs.program("bench_closures"), "--", str(workers), PART],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=amount.deadline_s(120), check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{done.returncode}: {done.stderr[-300:]}")
    return programs.figures("\n".join(line.split("] ", 1)[1] for line in done.stdout.splitlines() if "] " in line))


def run_round(samples):
    for workers in WORKERS:
        samples.measure(workers, "", lambda workers=workers: closures(workers))


def report(samples):
    names = ("alone.p50", "alone.p99", "rate.p50", "rate.p99", "rate.worst")
    print_table(["workers", "alone p50", "p99", "at 1,000/s p50", "p99", "worst", "most a second", "others"],
                [[workers, *(shown(samples.median(workers, "", name)) for name in names),
                  f"{samples.median(workers, '', 'flood.each') or 0:,.0f}", percent(samples.disturbed(workers))]
                 for workers in WORKERS])
    print("  alone: from scheduling to having the result; at 1,000/s a worker: from scheduling to running")
    print("  goals: 1,000 a second and worker at least, p99 below 5,000")


if __name__ == "__main__":
    sys.exit("run it by tests/bench/run closures")
