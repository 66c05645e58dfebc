# SPDX-License-Identifier: Apache-2.0
"""What the control plane costs per step of digits: the same training by hand, under `cadre run` and under daemons.

Each is run with few epochs and with many; the difference is free of start and end."""
import os
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "digits: steps per second of training, and what is added per step"
HAND, HAND_2 = "by hand, 1 replica", "by hand, 2 replicas"
RUN, RUN_2 = "cadre run -n 1", "cadre run -n 2"
ONE, TWO = "daemons, 1 worker", "daemons, 2 workers"
BASES = {RUN: HAND, ONE: HAND, RUN_2: HAND_2, TWO: RUN_2}
FEW, MANY = amount.of((20, 320), (1, 2))
STEPS_PER_EPOCH = 23  # 1,438 images in batches of 64
DATA = os.path.join(programs.ROOT, "deploy", "examples", "digits")
FILES = [os.path.join(DATA, name) for name in ("digits-train.bin", "digits-test.bin")]


def arguments(epochs):
    return ["--epochs", str(epochs), "--no-progress"]


def per_step(run):
    """run(epochs) trains; gives seconds per step, the share of testing that goes with it included."""
    times = []
    for epochs in (FEW, MANY):
        began_s = time.monotonic()
        run(epochs)
        times.append(time.monotonic() - began_s)
    step_s = (times[1] - times[0]) / ((MANY - FEW) * STEPS_PER_EPOCH)
    return {"steps_per_s": 1 / step_s, "step_us": step_s * 1e6}


def by_hand(replicas):
    environment = os.environ | {"CADRE_REPLICAS": str(replicas)}
    return per_step(lambda epochs: programs.run(
        programs.program("digits"), *arguments(epochs), "--data", DATA, env=environment))


def by_run(tasks):
    return per_step(lambda epochs: programs.run(
        programs.program("cadre"), "run", "-n", str(tasks), "--replicas", "1", programs.program("digits"), "--",
        *arguments(epochs), "--data", DATA))


def by_daemons(workers):
    from cluster import Cluster
    files = [option for path in FILES for option in ("--file", path)]
    with Cluster(workers=workers, slots=1) as cluster:
        return per_step(lambda epochs: cluster.cadre(
            "submit", "--workers", str(workers), "--replicas", "1", *files, programs.program("digits"), "--",
            *arguments(epochs)))


def run_round(samples):
    for row, function in ((HAND, lambda: by_hand(1)), (RUN, lambda: by_run(1)), (ONE, lambda: by_daemons(1)),
                          (HAND_2, lambda: by_hand(2)), (RUN_2, lambda: by_run(2)), (TWO, lambda: by_daemons(2))):
        samples.measure(row, "", function)


def report(samples):
    def line(row):
        base = BASES.get(row)
        step_us, base_us = samples.median(row, "", "step_us"), samples.median(base, "", "step_us")
        cells = [row, shown(samples.median(row, "", "steps_per_s")), shown(step_us)]
        if base is None:
            cells += ["", "", ""]
        elif step_us is None or base_us is None:
            cells += [base, "-", "-"]
        else:
            cells += [base, shown(step_us / base_us), shown(step_us - base_us)]
        return [*cells, percent(samples.disturbed(row))]

    print_table(["", "steps/s", "us/step", "compared with", "ratio", "us added", "others"],
                [line(row) for row in (HAND, RUN, ONE, HAND_2, RUN_2, TWO)])
