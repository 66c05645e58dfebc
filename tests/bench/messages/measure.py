# SPDX-License-Identifier: Apache-2.0
"""Messages between two tasks of one host, beside OpenMPI and a floor."""
import os
import re

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "messages between two tasks of one host, microseconds a message, and times the floor"
FLOOR, SHARED, PRIVATE, MPI = "a flag and a copy (floor)", "Cadre, cadre_plain_alloc", "Cadre, any memory", "OpenMPI"
BATCHES = amount.of("11", "1")
SIZES = [8, 4096, 65536, 1 << 20, 4 << 20]
KINDS = {"back_and_forth": "send, then receive", "both_ways": "send_recv"}
FIGURE = re.compile(r"(\w+\.\d+)\.us=([0-9.]+)")


def figures(*argv):
    found = {name: float(value) for name, value in FIGURE.findall(programs.run(*argv))}
    if len(found) != len(SIZES) * len(KINDS):
        raise RuntimeError(f"{len(found)} of {len(SIZES) * len(KINDS)} figures were printed")
    return found


def cadre(memory):
    return lambda: figures(programs.program("cadre"), "run", "-n", "2", programs.program("bench_messages"), "--",
                           memory, BATCHES)


def mpi():
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return figures("mpirun", *root, "--oversubscribe", "-np", "2", programs.program("bench_mpi_messages"), BATCHES)


def run_round(samples):
    rows = {FLOOR: lambda: figures(programs.program("bench_floor_messages"), BATCHES), SHARED: cadre("shared"),
            PRIVATE: cadre("private")}
    if programs.absent_mpi() is None:
        rows[MPI] = mpi
    else:
        samples.mark_absent(MPI, programs.absent_mpi())
    for row, function in rows.items():
        samples.measure(row, "2 tasks", function)


def report(samples):
    for kind, title in KINDS.items():
        def cell(row, size, kind=kind):
            name = f"{kind}.{size}"
            median, ratio = samples.median(row, "2 tasks", name), samples.ratio(row, FLOOR, "2 tasks", name)
            return f"{shown(median)} ({shown(ratio)})"

        rows = [row for row in (FLOOR, SHARED, PRIVATE, MPI) if row not in samples.absent]
        print_table([title, *[f"{size:,} B" for size in SIZES], "others"],
                    [[row, *[cell(row, size) for size in SIZES], percent(samples.disturbed(row))] for row in rows])
