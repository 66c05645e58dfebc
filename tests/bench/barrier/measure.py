# SPDX-License-Identifier: Apache-2.0
"""Barrier rounds in a closed loop: what a participant waits from its arrival to its release."""
import array
import os
import statistics

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "one barrier round, microseconds from arrival to release, median (p99)"
ROUNDS = amount.of({2: 3000, 8: 2000, 32: 800, 128: 300}, {2: 20, 8: 10})
FLOOR, REDIS, STORE = "TCP + epoll (floor)", "Redis INCR + BLPOP", "torch TCPStore"
CADRE, CADRE_TCP = "cadre", "cadre, daemons on TCP"
GOALS = {2: 2.5, 8: 2.5, 32: 2.0, 128: 2.0}


def read_times(path, participants, rounds):
    """Checks that it was a barrier, and gives what the calls took after the first fifth of the rounds."""
    stamps = array.array("Q")
    with open(path, "rb") as file:
        stamps.frombytes(file.read())
    os.unlink(path)
    if len(stamps) != participants * rounds * 2 or 0 in stamps:
        raise RuntimeError("a participant did not write all its times")
    calls = []
    for number in range(rounds):
        first = [participant * rounds * 2 + number * 2 for participant in range(participants)]
        if min(stamps[at + 1] for at in first) < max(stamps[at] for at in first):
            raise RuntimeError(f"round {number}: a participant left before the last one arrived")
        if number >= rounds // 5:
            calls += [(stamps[at + 1] - stamps[at]) / 1000 for at in first]
    calls.sort()
    return {"median": statistics.median(calls), "p99": calls[len(calls) * 99 // 100]}


def times_file():
    path = os.path.join(os.getcwd(), "times")
    with open(path, "wb"):
        pass
    os.chmod(path, 0o666)  # a task may run as another user
    return path


def floor(participants, rounds):
    path = times_file()
    programs.run(programs.program("bench_floor_barrier"), str(participants), str(rounds), path)
    return read_times(path, participants, rounds)


def store(participants, rounds):
    path = times_file()
    programs.run(programs.DEBIAN_PYTHON, os.path.join(programs.BENCH, "barrier", "store_barrier.py"),
                 str(participants), str(rounds), path)
    return read_times(path, participants, rounds)


def redis(participants, rounds):
    path = times_file()
    with programs.redis_server() as port:
        programs.run(programs.program("bench_redis_barrier"), str(participants), str(rounds), path, port)
    return read_times(path, participants, rounds)


def listen_on_tcp(cluster):
    """Daemons use loopback instead of a Unix socket, as those of several hosts would."""
    address = f"127.0.0.1:{programs.free_port()}"
    for daemon in (cluster.coordinator, *cluster.workers):
        daemon.argv = [address if argument == cluster.address else argument for argument in daemon.argv]
    cluster.address = address


def cadre(participants, rounds, tcp=False):
    from cluster import Cluster
    path = times_file()
    cluster = Cluster(workers=2, slots=participants // 2)
    if tcp:
        listen_on_tcp(cluster)
    with cluster:
        cluster.cadre("submit", "--workers", str(participants), programs.program("bench_cadre_barrier"), "--",
                      str(rounds), path)
    return read_times(path, participants, rounds)


def cadre_tcp(participants, rounds):
    return cadre(participants, rounds, tcp=True)


def run_round(samples):
    kinds = {FLOOR: floor, CADRE: cadre, CADRE_TCP: cadre_tcp}
    for row, function, absent in ((REDIS, redis, programs.absent_redis()), (STORE, store, programs.absent_torch())):
        if absent is None:
            kinds[row] = function
        else:
            samples.mark_absent(row, absent)
    for participants, rounds in ROUNDS.items():
        for row, function in kinds.items():
            samples.measure(row, participants, lambda f=function, n=participants, r=rounds: f(n, r))


def report(samples):
    def cell(row, participants):
        median, p99 = (samples.median(row, participants, name) for name in ("median", "p99"))
        return "-" if median is None else f"{shown(median)} ({shown(p99)})"

    rows = [row for row in (FLOOR, CADRE, CADRE_TCP, REDIS, STORE) if row not in samples.absent]
    print_table(["", *(f"N={n}" for n in ROUNDS), "others"],
                [[row, *(cell(row, n) for n in ROUNDS), percent(samples.disturbed(row))] for row in rows])
    print_table(["ratio of the medians", *(f"N={n}" for n in ROUNDS)],
                [[f"{CADRE} / {base}", *(shown(samples.ratio(CADRE, base, n, "median")) for n in ROUNDS)]
                 for base in rows if base not in (CADRE, CADRE_TCP)]
                + [["goal: at most, of the floor", *(GOALS[n] for n in ROUNDS)]])
