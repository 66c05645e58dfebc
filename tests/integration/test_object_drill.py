# SPDX-License-Identifier: Apache-2.0
"""Tasks and worker daemons killed under jobs that read their samples from an object store and save their state there,
while a twentieth of its answers is an error, a body that is cut, or a reset: each sample is applied once, in the one
order where there is one, and each checkpoint that the ledger names is whole.

    test_object_drill.py --kills=200 --seed=1      drawn ones; each kind once by default
    test_object_drill.py --only=chief              those with this in their names"""
import argparse
import random
import sys

from object_drill import KINDS, MOMENTS, Drill
from testing import run

OPTIONS = argparse.ArgumentParser(add_help=False)
OPTIONS.add_argument("--kills", type=int, default=0)
OPTIONS.add_argument("--seed", type=int, default=1)
OPTIONS.add_argument("--only", default="")
CHOSEN = OPTIONS.parse_args([])
KILLS_PER_JOB = 10


def test_a_drill():
    options = CHOSEN
    draw = random.Random(f"what is killed of {options.seed}")
    known = [kind for kind in KINDS if options.only in kind]
    kinds = [draw.choice(known) for _ in range(options.kills)] or known
    with Drill(options.seed, "drill") as drill:
        for begin in range(0, len(kinds), KILLS_PER_JOB):
            chosen = kinds[begin:begin + KILLS_PER_JOB]
            drill.begin(len(chosen))
            for number, kind in enumerate(chosen, begin):
                moment = draw.choice(MOMENTS)
                print(f"{number}, {drill.run}: {kind}, {moment}", flush=True)
                drill.kill(kind, moment)
            drill.end()
        took = sorted(drill.took_s)
        print(f"{drill.kills} kills in {drill.jobs} jobs, {drill.restarts} restarts; from a kill to the last of the "
              f"steps around it: median {took[len(took) // 2]:.1f} s, the longest {took[-1]:.1f} s; the newest "
              f"checkpoint was whole {drill.checked} times; {drill.proxy.counts()['fault']} of {drill.proxy.requests} "
              f"requests; moments {drill.moments}; {drill.left_uploads} uploads of dead writers are left", flush=True)


if __name__ == "__main__":
    CHOSEN, sys.argv[1:] = OPTIONS.parse_known_args()
    run(dict(globals()))
