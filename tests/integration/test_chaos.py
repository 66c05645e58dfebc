# SPDX-License-Identifier: Apache-2.0
"""Faults drawn from a seed, on real processes: whatever happened, once all is healed the job ends well, every sample
was applied exactly once, and nothing is left.

    test_chaos.py --rounds=200            new seeds; each failure prints how to run it again
    test_chaos.py --seed=7                the same faults again
    --jobs=2                              so many at a time
    --source=lines                        with input of this kind, whatever the seed says: see chaos.py
    --debug                               daemons log all that they do
    --keep, --keep-failed                 the folder with their logs stays

The seed draws what is done and when; what the processes do meanwhile is theirs, so a failure may take some runs."""
import argparse
import json
import random
import subprocess
import sys
import time
import traceback
from multiprocessing.pool import ThreadPool

from chaos import Chaos, Input, Plan
from client import CANCELLED, FAILED, SUCCEEDED
from learning import EPOCHS, TEST, alone
from testing import Failure, check_equal, check_in, run

# Short ones that have each kind of fault among them, and some that once failed.
SEEDS = (107, 1060, 2089, 1072, 1070, 153)


def check_verified(learning, drawn):
    """What can be proved is; of the rest nothing is said."""
    exact = {"train": drawn.proved, "test": not drawn.exam}
    status = 0 if any(exact.values()) else None
    said = json.loads(learning.cluster.cadre("verify", str(learning.job), "--json", status=status).stdout)
    verdicts = {(epoch["name"], epoch["epoch"]): epoch["verdict"] for epoch in said["epochs"]}
    wanted = {(name, epoch): "exact" if exact[name] else "not provable" for name in exact for epoch in range(EPOCHS)}
    check_equal(verdicts, wanted, f"verdicts of {said}")


def check_learned(chaos):
    """Each sample once in each epoch, and in the one order where it is promised."""
    learning, drawn = chaos.learning, chaos.plan.input
    if drawn.ordered:
        learning.check_like(alone(*chaos.source))
    elif drawn.by_files:
        learning.check_once(logs=False)
    else:
        check_equal(learning.state()["tested"], (EPOCHS * TEST,), "rows tested")
    check_verified(learning, drawn)


def play(seed, source=None, options=()):
    """One round; returns what became of the job."""
    plan = Plan(seed, source)
    print(f"seed {seed}: {plan}", flush=True)
    chaos = Chaos(plan, options)
    with chaos.cluster:
        chaos.submit()
        chaos.run()
        learning = chaos.learning
        end = learning.client.wait(learning.job, 60)
        if chaos.cancelled:
            check_equal(end.state, CANCELLED, f"state of a cancelled job: {end}")
        elif end.state == FAILED:  # rightly so when a task was gone before it could exit in order
            check_in("steps were done by then", end.message, "why it failed")
        else:
            learning.end()
        if end.state == SUCCEEDED:
            check_learned(chaos)
        chaos.tidy_up()
        return end


def test_chosen_seeds():
    for seed in SEEDS:
        play(seed)


def one_round(seed, chosen):
    began = time.monotonic()
    try:
        end = play(seed, chosen.source, ["--log-level", "debug"] if chosen.debug else [])
        print(f"    ok [{time.monotonic() - began:.1f} s] generation {end.generation}, {end.restarts} restarts",
              flush=True)
        return True
    except Exception as failure:  # the other rounds go on
        said = failure if isinstance(failure, Failure) else traceback.format_exc()
        source = f" --source {chosen.source}" if chosen.source else ""
        print(f"    FAILED [{time.monotonic() - began:.1f} s] {said}\n    again: test_chaos.py --seed {seed}{source}",
              flush=True)
        return False


def round_apart(seed):
    """In a process of its own, so that several can be under way."""
    options = [word for word in sys.argv[1:] if word.startswith(("--source=", "--debug", "--keep"))]
    done = subprocess.run([sys.executable, "-B", __file__, f"--seed={seed}", *options], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    print(done.stdout.decode(errors="replace").rpartition("1 rounds from")[0], end="", flush=True)
    return done.returncode == 0


def by_hand(chosen):
    first = random.SystemRandom().randrange(1000000) if chosen.seed is None else chosen.seed
    seeds = range(first, first + chosen.rounds)
    if chosen.jobs > 1:
        with ThreadPool(chosen.jobs) as pool:
            well = pool.map(round_apart, seeds, chunksize=1)
    else:
        well = [one_round(seed, chosen) for seed in seeds]
    failed = [seed for seed, is_well in zip(seeds, well) if not is_well]
    print(f"{chosen.rounds} rounds from seed {first}; failed: {failed or 'none'}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--source", choices=Input.SOURCES)
    parser.add_argument("--debug", action="store_true")
    parser.add_argument("--keep", "--keep-failed", action="store_true")
    chosen, _ = parser.parse_known_args()
    if chosen.seed is not None or chosen.rounds > 1:
        by_hand(chosen)
    run(globals())
