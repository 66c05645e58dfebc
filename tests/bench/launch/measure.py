# SPDX-License-Identifier: Apache-2.0
"""From the exec of a launcher to the first all-reduce of two workers."""
import os
import re
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "from submit to the first all-reduce of two workers, seconds"
FLOOR, CADRE, RUN, MPI = "fork + exec + TCP (floor)", "cadre submit", "cadre run", "mpirun"
TIMES = amount.of(5, 1)
GOAL_S = 0.3
STAMP = re.compile(r"first_all_reduce_ns=(\d+)")


def first_all_reduce(run, *argv):
    """Seconds until the last of the two had the sum, and until the launcher ended."""
    began_ns = time.monotonic_ns()
    text = run(*argv)
    ended_ns = time.monotonic_ns()
    stamps = [int(stamp) for stamp in STAMP.findall(text)]
    if len(stamps) != 2:
        raise RuntimeError(f"{len(stamps)} of 2 workers said when they had reduced")
    return {"first": (max(stamps) - began_ns) / 1e9, "whole": (ended_ns - began_ns) / 1e9}


def best_of_several(measure):
    """The median of several launches on one cluster: the first one uploads the program."""
    launches = sorted((measure() for _ in range(TIMES)), key=lambda figures: figures["first"])
    return launches[len(launches) // 2]


def floor():
    return best_of_several(lambda: first_all_reduce(programs.run, programs.program("bench_floor_launch")))


def submit():
    from cluster import Cluster
    with Cluster(workers=2, slots=1) as cluster:
        def cadre(*arguments):
            return cluster.cadre(*arguments).stdout.decode()
        return best_of_several(lambda: first_all_reduce(
            cadre, "submit", "--workers", "2", "--replicas", "1", programs.program("bench_first_all_reduce")))


def run():
    return best_of_several(lambda: first_all_reduce(
        programs.run, programs.program("cadre"), "run", "-n", "2", "--replicas", "1",
        programs.program("bench_first_all_reduce")))


def mpi():
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return best_of_several(lambda: first_all_reduce(
        programs.run, "mpirun", *root, "--oversubscribe", "-np", "2", programs.program("bench_mpi_launch")))


def run_round(samples):
    kinds = {FLOOR: floor, CADRE: submit, RUN: run}
    if programs.absent_mpi() is None:
        kinds[MPI] = mpi
    else:
        samples.mark_absent(MPI, programs.absent_mpi())
    for row, function in kinds.items():
        samples.measure(row, "2 workers", function)


def report(samples):
    def line(row):
        first, whole = (samples.median(row, "2 workers", name) for name in ("first", "whole"))
        return [row, shown(first), shown(whole), shown(samples.ratio(row, FLOOR, "2 workers", "first")),
                percent(samples.disturbed(row))]

    rows = [row for row in (FLOOR, CADRE, RUN, MPI) if row not in samples.absent]
    print_table(["", "first all-reduce", "launcher ended", "times the floor", "others"],
                [line(row) for row in rows] + [["goal: cadre submit below", GOAL_S, "", "", ""]])
