# SPDX-License-Identifier: Apache-2.0
"""Faults on the hosts of three coordinators and of etcd while a job trains: it takes its steps with the tasks that it
had, and each sample is applied once, in the one order.

    test_several_drill.py --faults=300 --seed=1      drawn ones; each kind once by default"""
import argparse
import random
import sys

from hosts import Hosts
from several_drill import KINDS, Drill, WiredSeveral
from testing import run

OPTIONS = argparse.ArgumentParser(add_help=False)
OPTIONS.add_argument("--faults", type=int, default=0)
OPTIONS.add_argument("--seed", type=int, default=1)
CHOSEN = OPTIONS.parse_args([])
FAULTS_PER_JOB = 10  # of 204 steps


def show(took_ms):
    took = sorted(took_ms)
    if took:
        print(f"from the death of a leader to the next step that another one admitted: {len(took)} times, "
              f"median {took[len(took) // 2]:.0f} ms, the longest {took[-1]:.0f} ms", flush=True)


def test_a_drill():
    options = CHOSEN
    draw = random.Random(f"the faults of {options.seed}")
    kinds = [draw.choice(list(KINDS)) for _ in range(options.faults)] or list(KINDS)
    with Hosts(9) as hosts, WiredSeveral(hosts) as cluster:
        drill = Drill(cluster, options.seed)
        for begin in range(0, len(kinds), FAULTS_PER_JOB):
            drill.begin(fixed=begin // FAULTS_PER_JOB % 2 == 0)
            for number, kind in enumerate(kinds[begin:begin + FAULTS_PER_JOB], begin):
                print(f"{number}: {kind}", flush=True)
                drill.fault(kind)
            drill.end()
        show(drill.took_ms)


if __name__ == "__main__":
    CHOSEN, sys.argv[1:] = OPTIONS.parse_known_args()
    run(dict(globals()))
