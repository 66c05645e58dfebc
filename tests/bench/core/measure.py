# SPDX-License-Identifier: Apache-2.0
"""The cores and the mesh by themselves, without processes, sockets to daemons or disks."""
import re

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "the cores alone, and the all-reduce of 340 KB over 2 replicas"
CORE, SIM, MESH = "coordinator's core, 1,000 workers", "simulator, 64 workers", "all-reduce"
SEEDS = amount.of(100, 2)
CORE_ROUNDS, MESH_TIMES, KERNEL_ROUNDS = amount.of(("1000", "2000", "20"), ("10", "20", "1"))
KERNELS = "reduction kernels"
SIZES = ("16 KiB", "256 KiB", "4 MiB", "64 MiB")


def sim():
    text = programs.run(programs.program("sim"), "--seeds", f"1:{SEEDS + 1}")
    return {"seeds_per_s": float(re.search(r"([\d.]+) seeds/s", text).group(1))}


def kernels():
    """GB/s of each row of the program's table at each size."""
    text = programs.run(programs.program("bench_reduce_kernels"), KERNEL_ROUNDS)
    found = {}
    for line in text.splitlines()[1:]:
        name, *values = re.split(r"  +", line.strip())
        found.update({(name, size): float(value) for size, value in zip(SIZES, values, strict=True)})
    if not found:
        raise RuntimeError(f"no row is in {text!r}")
    return found


def run_round(samples):
    samples.measure(CORE, "", lambda: programs.figures(
        programs.run(programs.program("bench_core_events"), CORE_ROUNDS)))
    samples.measure(SIM, "", sim)
    samples.measure(MESH, "", lambda: programs.figures(
        programs.run(programs.program("bench_mesh_all_reduce"), MESH_TIMES)))
    samples.measure(KERNELS, "", kernels)


def report(samples):
    floor = samples.median(MESH, "", "floor_us")

    def times_floor(value):
        return shown(value / floor) if value and floor else "-"

    threads, tcp = samples.median(MESH, "", "threads_us"), samples.median(MESH, "", "tcp_us")
    print_table(["", "figure", "unit", "times the floor", "others"], [
        [CORE, shown(samples.median(CORE, "", "arrivals_per_s")), "arrivals/s", "", percent(samples.disturbed(CORE))],
        [SIM, shown(samples.median(SIM, "", "seeds_per_s")), "seeds/s", "", percent(samples.disturbed(SIM))],
        ["add + memcpy, one thread (floor)", shown(floor), "us", "", percent(samples.disturbed(MESH))],
        ["all-reduce, 2 threads", shown(threads), "us", times_floor(threads), ""],
        ["all-reduce, 2 tasks over TCP", shown(tcp), "us", times_floor(tcp), ""]])
    names = dict.fromkeys(name for row, _, (name, *_) in samples.figures if row == KERNELS)
    print_table(["GB/s read and written, one thread", *SIZES], [
        [name, *(shown(samples.median(KERNELS, "", (name, size))) for size in SIZES)] for name in names])
    print(f"  others {percent(samples.disturbed(KERNELS))}")
