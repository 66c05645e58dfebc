# SPDX-License-Identifier: Apache-2.0
"""Faults on the hosts of three coordinators and of etcd while a job trains: it takes its steps with the tasks that it
had, and each sample is applied once, in the one order.

    test_several_drill.py --faults=300 --seed=1      drawn ones; each kind once by default
    test_several_drill.py --only=disk --job=elastic  those with this in their names, under one kind of job"""
import argparse
import random
import sys

from hosts import Hosts
from several_drill import JOBS, KINDS, LEASE_S, Drill, WiredSeveral
from small_disk import may_mount
from testing import run, skip

OPTIONS = argparse.ArgumentParser(add_help=False)
OPTIONS.add_argument("--faults", type=int, default=0)
OPTIONS.add_argument("--seed", type=int, default=1)
OPTIONS.add_argument("--only", default="")
OPTIONS.add_argument("--job", choices=list(JOBS))
CHOSEN = OPTIONS.parse_args([])
FAULTS_PER_JOB = 6  # which take 45 of 306 steps at most


def show(took_ms):
    took = sorted(took_ms)
    if took:
        print(f"from the death of a leader to the next step that another one admitted: {len(took)} times, median "
              f"{took[len(took) // 2]:.0f} ms, 99 % within {took[len(took) * 99 // 100]:.0f} ms, the longest "
              f"{took[-1]:.0f} ms; the lease of the lead is {LEASE_S * 1000:.0f} ms", flush=True)


def test_a_drill():
    options = CHOSEN
    if not may_mount():
        skip("this user may not mount a small file system")
    draw = random.Random(f"the faults of {options.seed}")
    known = [kind for kind in KINDS if options.only in kind]
    kinds = [draw.choice(known) for _ in range(options.faults)] or known
    with Hosts(9) as hosts, WiredSeveral(hosts) as cluster:
        drill = Drill(cluster, options.seed) if options.faults else Drill(cluster, options.seed, lasts=(0.5, 1.2))
        for begin in range(0, len(kinds), FAULTS_PER_JOB):
            job = options.job or list(JOBS)[begin // FAULTS_PER_JOB % len(JOBS)]
            drill.begin(job)
            for number, kind in enumerate(kinds[begin:begin + FAULTS_PER_JOB], begin):
                print(f"{number}, {job}: {kind}", flush=True)
                drill.fault(kind)
            drill.end()
        show(drill.took_ms)


if __name__ == "__main__":
    CHOSEN, sys.argv[1:] = OPTIONS.parse_known_args()
    run(dict(globals()))
