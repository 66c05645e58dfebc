# SPDX-License-Identifier: Apache-2.0
"""The bounds, which are measured in the same run, and the levels that the collectives are held to."""
import math

from collectives.names import (ARENA, FRESH_SIZES, FUSED, GLOO_ROWS, HOSTS, LOOPBACK, MESH_FORM, OPENMPI_TCP_TUNED,
                               SHARED_PEERS, SIZES, TCP_ROWS, THREADS, TWO_HOSTS, size_name)
from driver.samples import shown

REDUCTIONS = ("all_reduce", "fresh")


def figure(samples, row, operation, ranks, size, kind="us"):
    return samples.median(row, ranks, f"{operation}.{size}.{kind}")


def memory_bound(samples, operation, ranks, size):
    """One pass over all vectors by as many threads as have CPUs, and one hand-over."""
    one_pass, hand_over = figure(samples, FUSED, operation, ranks, size), samples.median(FUSED, ranks, "hand_over_us")
    return None if one_pass is None or hand_over is None else one_pass + hand_over


def tcp_bound(samples, _operation, ranks, size):
    """Whatever the algorithm, 2 (p - 1) n bytes cross in all, and a rank depends on the others through log2(p)
    exchanges. Both at loopback's best, which is that of a buffer in the cache: all that a pipeline of pieces sends
    was just reduced or received, however large the vector."""
    step = samples.median(LOOPBACK, "", "step_us")
    rates = [rate for held in FRESH_SIZES if (rate := samples.median(LOOPBACK, "", f"rate.{held}"))]
    if not step or not rates:
        return None
    return 2 * (ranks - 1) * size / max(rates) * 1e6 + math.log2(ranks) * step


def bound_of(samples, row, operation, ranks, size):
    if operation not in REDUCTIONS or row == TWO_HOSTS:
        return None
    return (tcp_bound if row in TCP_ROWS else memory_bound)(samples, operation, ranks, size)


def best_of(samples, rows, operation, ranks, size, kind):
    return min((value for row in rows if (value := figure(samples, row, operation, ranks, size, kind))), default=None)


def times_bound(samples, row, operation, ranks, size, kind):
    value, bound = figure(samples, row, operation, ranks, size, kind), bound_of(samples, row, operation, ranks, size)
    return value / bound if value and bound else None


def times_peers(samples, row, peers, operation, ranks, size, kind):
    value = figure(samples, row, operation, ranks, size, kind)
    best = best_of(samples, peers, operation, ranks, size, kind)
    return value / best if value and best else None


def judged(name, limit, found):
    """One line: of all pairs of figure and place the worst; the level is met when that is within the limit."""
    found = [(value, where) for value, where in found if value is not None]
    if not found:
        return [name, f"<= {shown(limit)}", "-", "-", "not measured"]
    value, where = max(found)
    over = [place for figure_, place in found if figure_ > limit]
    return [name, f"<= {shown(limit)}", shown(value), where,
            "met" if not over else f"MISSED in {len(over)} of {len(found)}"]


def cells(row, peers, operations, ranks_list, chosen):
    """The places where a row is held against its bound (no peers) or the best of peers."""
    def cases(samples, kind):
        for operation in operations:
            for ranks in ranks_list:
                for size in chosen if operation == "all_reduce" else [s for s in chosen if s in FRESH_SIZES]:
                    value = times_peers(samples, row, peers, operation, ranks, size, kind) if peers else \
                        times_bound(samples, row, operation, ranks, size, kind)
                    yield value, f"{size_name(size)}, {ranks} ranks{', fresh' if operation == 'fresh' else ''}"
    return cases


LARGE, LARGER = SIZES[2:], SIZES[3:]
AGAINST_BOUNDS = [
    ("one host, 2 ranks, from 64 KiB: times the bound", 1.5, cells(ARENA, None, ["all_reduce"], [2], LARGE)),
    ("the same, fresh", 1.5, cells(ARENA, None, ["fresh"], [2], LARGE)),
    ("one host, 2 ranks, 4 B: times the bound", 3, cells(ARENA, None, ["all_reduce"], [2], [4])),
    ("one host, 4 ranks, from 1 MiB: times the bound", 2, cells(ARENA, None, ["all_reduce"], [4], LARGER)),
    ("the same, fresh", 2, cells(ARENA, None, ["fresh"], [4], LARGER)),
    ("one host, from 64 KiB: times the best peer", 0.5, cells(ARENA, SHARED_PEERS, REDUCTIONS, [2, 4], LARGE)),
    ("one host, below 64 KiB: times the best peer", 1, cells(ARENA, SHARED_PEERS, ["all_reduce"], [2, 4], SIZES[:2])),
    ("TCP only, 2 ranks, from 64 KiB: times the bound", 1.6, cells(HOSTS, None, ["all_reduce"], [2], LARGE)),
    ("TCP only, 4 ranks, from 1 MiB: times the bound", 1.6, cells(HOSTS, None, ["all_reduce"], [4], LARGER)),
    ("TCP only: times tuned OpenMPI", 0.9, cells(HOSTS, [OPENMPI_TCP_TUNED], REDUCTIONS, [2, 4], SIZES)),
    ("TCP only, up to 1 MiB: times the best of Gloo", 0.5, cells(HOSTS, GLOO_ROWS, REDUCTIONS, [2, 4], SIZES[:4])),
    ("TCP only, above: times the best of Gloo", 1 / 1.5, cells(HOSTS, GLOO_ROWS, REDUCTIONS, [2, 4], SIZES[4:])),
    ("one task, 2 replicas, from 1 MiB: times the bound", 1.3, cells(THREADS, None, ["all_reduce"], [2], LARGER)),
    ("one task, 4 replicas, from 1 MiB: times the bound", 1.5, cells(THREADS, None, ["all_reduce"], [4], LARGER)),
]


def judge(samples):
    """The lines of the table. The last cell holds the best batches of both sides against the limit: what a disturbed
    machine leaves to see."""
    rows = [judged(name, limit, cases(samples, "us")) + judged(name, limit, cases(samples, "best_us"))[4:]
            for name, limit, cases in AGAINST_BOUNDS]
    for name, limit, key in (("8 processes form a mesh: ms", 50, "form_worst_ms"),
                             ("an abort is received: ms", 10, "abort_worst_ms")):
        rows.append(judged(name, limit, [(samples.median(MESH_FORM, "", f"{kind}_{key}"), kind.replace("_", " "))
                                         for kind in ("one_host", "two_hosts")]) + [""])
    return rows
