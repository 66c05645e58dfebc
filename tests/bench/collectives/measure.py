# SPDX-License-Identifier: Apache-2.0
"""Collectives of float32 over 2 and 4 ranks: the host mesh beside its floors and beside OpenMPI, MPICH and Gloo."""
import os
import shutil
import tempfile

from collectives import levels
from collectives.names import (ARENA, FRESH_SIZES, FUSED, GLOO_ROWS, HOSTS, LOOPBACK, MESH_FORM, MPICH, MPICH_TCP,
                               OPENMPI, OPENMPI_TCP, OPENMPI_TCP_TUNED, OPENMPI_TUNED, PEERS, PRIVATE, RANKS, SIZES,
                               THREADS, TWO_HOSTS, size_name)
from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "all-reduce, reduce-scatter, broadcast, all-gather, barrier of float32, over loopback and shared memory"
ALL = "rfsbgxh"
BUDGET_MS = amount.of("100", "1")
PEER_RANKS = amount.of(RANKS, RANKS[:1])
CADRE = {ARENA: "arena", PRIVATE: "private", THREADS: "threads", HOSTS: "hosts", TWO_HOSTS: "two_hosts"}
# Peers take memory that stays theirs and comes in large pages, and loopback's send buffer at its best.
TUNED_MALLOC = "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296:glibc.malloc.hugetlb=1"
TCP = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
OPENMPI_OPTIONS = {OPENMPI: ([], {}), OPENMPI_TUNED: ([], {"GLIBC_TUNABLES": TUNED_MALLOC}), OPENMPI_TCP: (TCP, {}),
                   OPENMPI_TCP_TUNED: (TCP + ["--mca", "btl_tcp_sndbuf", "131072"], {"GLIBC_TUNABLES": TUNED_MALLOC})}
MPICH_OPTIONS = {MPICH: {}, MPICH_TCP: {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "MPIR_CVAR_NOLOCAL": "1"}}


def sizes(chosen=SIZES):
    return ",".join(map(str, chosen))


def cadre(kind, ranks):
    return programs.figures(programs.run(programs.program("bench_cadre_collectives"), kind, str(ranks), ALL, sizes(),
                                         BUDGET_MS))


def with_board(command, environment, *arguments):
    """Ranks that a launcher starts meet in a file of zeros."""
    with tempfile.NamedTemporaryFile(prefix="board-", dir=".") as board:
        board.truncate(4096)
        return programs.figures(programs.run(*command, os.path.abspath(board.name), *arguments,
                                             env=os.environ | environment))


def openmpi(ranks, options, environment):
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return with_board(["mpirun.openmpi", "--oversubscribe", *options, "-np", str(ranks),
                       programs.program("bench_openmpi_collectives")], root | environment,
                      str(ranks), ALL, sizes(), BUDGET_MS)


def mpich(ranks, environment):
    # It waits busily and never yields: milliseconds an operation where two ranks share a CPU, so only a few of them.
    some = ranks > (os.cpu_count() or 1)
    return with_board(["mpirun.mpich", "-np", str(ranks), programs.program("bench_mpich_collectives")], environment,
                      str(ranks), "rx" if some else ALL, sizes([4, 65536, 1 << 20, 16 << 20] if some else SIZES),
                      BUDGET_MS)


def gloo(algorithm, ranks):
    with tempfile.TemporaryDirectory(prefix="gloo-", dir=".") as folder:
        return programs.figures(programs.run(programs.program("bench_gloo_collectives"), algorithm, folder, str(ranks),
                                             ALL if algorithm == "ring" else "rf", sizes(), BUDGET_MS))


def absent(launcher, name):
    if launcher and shutil.which(launcher) is None:
        return f"{launcher} is not installed"
    return None if os.path.exists(programs.program(name)) else "its headers were not there when this was built"


def floors(samples, ranks):
    samples.measure(FUSED, ranks, lambda: programs.figures(
        programs.run(programs.program("bench_floor_fused"), str(ranks), sizes(), BUDGET_MS)))


def own_rows(samples, ranks):
    for row, kind in CADRE.items():
        if row != TWO_HOSTS or ranks > 2:
            samples.measure(row, ranks, lambda kind=kind: cadre(kind, ranks))


def peer_rows(samples, ranks):
    for row, (options, environment) in OPENMPI_OPTIONS.items():
        why = absent("mpirun.openmpi", "bench_openmpi_collectives")
        if why:
            samples.mark_absent(row, why)
        else:
            samples.measure(row, ranks, lambda o=options, e=environment: openmpi(ranks, o, e))
    for row, environment in MPICH_OPTIONS.items():
        why = absent("mpirun.mpich", "bench_mpich_collectives")
        if why:
            samples.mark_absent(row, why)
        elif row == MPICH or ranks <= (os.cpu_count() or 1):
            samples.measure(row, ranks, lambda e=environment: mpich(ranks, e))
    for row, algorithm in GLOO_ROWS.items():
        why = absent(None, "bench_gloo_collectives")
        if why:
            samples.mark_absent(row, why)
        else:
            samples.measure(row, ranks, lambda a=algorithm: gloo(a, ranks))


def form():
    # Two figures a line.
    return programs.figures(programs.run(programs.program("bench_mesh_form")).replace(" ", "\n"))


def run_round(samples):
    samples.measure(LOOPBACK, "", lambda: programs.figures(
        programs.run(programs.program("bench_floor_loopback"), sizes(FRESH_SIZES), "1")))
    for ranks in RANKS:
        floors(samples, ranks)
        own_rows(samples, ranks)
        if ranks in PEER_RANKS:
            peer_rows(samples, ranks)
    samples.measure(MESH_FORM, "", form)


def print_operation(samples, operation, ranks):
    chosen = FRESH_SIZES if operation == "fresh" else SIZES
    rows = []
    if operation in levels.REDUCTIONS:
        for name, bound in (("bound: shared memory", levels.memory_bound), ("bound: TCP", levels.tcp_bound)):
            rows.append([name, *(shown(bound(samples, operation, ranks, size)) for size in chosen), ""])
    for row in [*CADRE, *PEERS]:
        cells = []
        for size in chosen:
            value = levels.figure(samples, row, operation, ranks, size)
            bound = levels.bound_of(samples, row, operation, ranks, size)
            cells.append(shown(value) + (f" ({shown(value / bound, 2)}x)" if value and bound else ""))
        if any(cell != "-" for cell in cells):
            rows.append([row, *cells, percent(max(samples.others.get((row, ranks), [0])))])
    unit = "us (times its bound)" if operation in levels.REDUCTIONS else "us"
    print(f"  {operation.replace('_', '-')}, {ranks} ranks: {unit}")
    print_table(["", *map(size_name, chosen), "others"], rows)


def print_barrier(samples):
    print("  barrier: us")
    print_table(["", *(f"{ranks} ranks" for ranks in RANKS)], [
        [row, *(shown(levels.figure(samples, row, "barrier", ranks, 4)) for ranks in RANKS)]
        for row in [*CADRE, *PEERS] if levels.figure(samples, row, "barrier", RANKS[0], 4)
        or levels.figure(samples, row, "barrier", RANKS[-1], 4)])


def print_bits(samples):
    """Sums of numbers of many magnitudes: who has the same bits on all ranks, in all rounds, and as cadre."""
    print("  bits of a sum, at all sizes")
    rows = []
    for row in [*CADRE, *PEERS]:
        for ranks in RANKS:
            hashes = {size: samples.figures.get((row, ranks, f"bits.{size}")) for size in SIZES}
            if not any(hashes.values()):
                continue
            same = all(len(set(values)) == 1 for values in hashes.values() if values)
            differ = any(value for size in SIZES
                         for value in samples.figures.get((row, ranks, f"bits_differ.{size}"), []))
            as_ours = all(set(values) == set(samples.figures.get((ARENA, ranks, f"bits.{size}"), []))
                          for size, values in hashes.items() if values)
            rows.append([f"{row}, {ranks} ranks", "no" if differ else "yes", "yes" if same else "no",
                         "yes" if as_ours else "no"])
    print_table(["", "same on all ranks", "in all rounds", f"as {ARENA}"], rows)


def print_wrong(samples):
    wrong = [f"{row}, {ranks} ranks, {name[:-6]}" for (row, ranks, name), values in samples.figures.items()
             if name.endswith(".wrong") and any(values)]
    checked = sum(len(values) for (_, _, name), values in samples.figures.items() if name.endswith(".wrong"))
    print(f"  results checked: {checked}; wrong: {', '.join(wrong) or 'none'}\n")


def report(samples):
    for operation in ("all_reduce", "fresh", "reduce_scatter", "broadcast", "all_gather"):
        for ranks in RANKS:
            print_operation(samples, operation, ranks)
    print_barrier(samples)
    print_bits(samples)
    print_wrong(samples)
    for kind in ("one_host", "two_hosts"):
        print(f"  8 processes, {kind.replace('_', ' ')}: a mesh forms in "
              f"{shown(samples.median(MESH_FORM, '', f'{kind}_form_ms'))} ms, at worst "
              f"{shown(samples.median(MESH_FORM, '', f'{kind}_form_worst_ms'))}; an abort is received in "
              f"{shown(samples.median(MESH_FORM, '', f'{kind}_abort_ms'))} ms, at worst "
              f"{shown(samples.median(MESH_FORM, '', f'{kind}_abort_worst_ms'))}")
    print()
    print_table(["level", "asked", "worst found", "at", "", "by best batches"], levels.judge(samples))
