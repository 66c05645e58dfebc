# SPDX-License-Identifier: Apache-2.0
"""Pushes to a parameter server and pulls from it, beside blocking TCP and Redis."""
from driver import amount, programs
from driver.samples import print_table, shown

TITLE = "parameter servers: a push, a pull, a gather"
SIZES = {16: "16 B", 65536: "64 KiB", 4 << 20: "4 MiB", 16 << 20: "16 MiB", 64 << 20: "64 MiB"}
CLIENTS = (1, 2)
PART = amount.of("1", "1000")  # 1000: a thousandth of all rounds
FLOOR, CADRE, REDIS = "TCP, blocking", "cadre", "Redis"
BACKED = "cadre, with a backup"
BACKED_GOAL = 1.6  # times the time without one
PUSHES = ("assign", "add", "sgd")
GATHER = "gather.16"  # of 1,000 rows, whatever the size is called


def floor(clients):
    return programs.figures(programs.run(programs.program("bench_floor_servers"), str(clients), PART))


def cadre(clients):
    return programs.figures(programs.run(programs.program("bench_cadre_servers"), str(clients), PART))


def backed(clients):
    return programs.figures(programs.run(programs.program("bench_cadre_servers"), str(clients), PART, "0", "backup"))


def redis(clients):
    with programs.redis_server() as port:
        return programs.figures(programs.run(programs.program("bench_redis_servers"), port, str(clients), PART))


def run_round(samples):
    no_redis = programs.absent_redis()
    for clients in CLIENTS:
        samples.measure(FLOOR, clients, lambda: floor(clients))
        samples.measure(CADRE, clients, lambda: cadre(clients))
        samples.measure(BACKED, clients, lambda: backed(clients))
        if no_redis is None:
            samples.measure(REDIS, clients, lambda: redis(clients))
    if no_redis is not None:
        samples.mark_absent(REDIS, no_redis)


def speed(samples, row, base, clients, name, base_name):
    """How many times as fast as the base."""
    own, other = samples.median(row, clients, name), samples.median(base, clients, base_name)
    return own / other if own and other else None


def met(speed_or_none, goal):
    return "-" if speed_or_none is None else "met" if speed_or_none >= goal else "MISSED"


def goal_of(size):
    return 0.5 if size == 16 else 0.7 if size >= 4 << 20 else None


def line_of(samples, clients, size, operation):
    base = "pull" if operation == "pull" else "push"
    name, base_name = f"rate.{operation}.{size}", f"rate.{base}.{size}"
    times = speed(samples, CADRE, FLOOR, clients, name, base_name)
    beside = speed(samples, CADRE, REDIS, clients, name, base_name)
    goal = goal_of(size)
    return [f"{SIZES[size]}, {clients}: {operation}", shown(samples.median(CADRE, clients, f"us.{operation}.{size}")),
            shown(samples.median(FLOOR, clients, f"us.{base}.{size}")),
            shown(samples.median(REDIS, clients, f"us.{base}.{size}")), shown(times),
            met(times, goal) if goal else "", shown(beside),
            met(beside, 1) if operation in ("assign", "pull") and size >= 4 << 20 else ""]


def backed_line(samples, clients, size, operation):
    own, alone = (samples.median(row, clients, f"us.{operation}.{size}") for row in (BACKED, CADRE))
    times = own / alone if own and alone else None
    return [f"{SIZES[size]}, {clients}: {operation}", shown(own), shown(alone), shown(times),
            "-" if times is None else "met" if times <= BACKED_GOAL else "MISSED"]


def report(samples):
    lines = [line_of(samples, clients, size, operation)
             for clients in CLIENTS for size in SIZES for operation in (*PUSHES, "pull")]
    print_table(["size, clients", "us", "TCP us", "Redis us", "of TCP's rate", "", "of Redis'", ""], lines)
    print_table(["with a backup", "us", "without, us", "times", ""], [
        backed_line(samples, clients, size, operation)
        for clients in CLIENTS for size in SIZES for operation in PUSHES])
    own, trip, rows = (samples.median(row, 1, f"us.{name}") for row, name in
                       ((CADRE, GATHER), (FLOOR, "pull.16"), (FLOOR, GATHER)))
    print(f"  gather of 1,000 rows of 64 floats: {shown(own)} us; a round trip of TCP {shown(trip)}, of the same bytes "
          f"{shown(rows)}")
    print("  goals: half of TCP at 16 B, 0.7 from 4 MiB up; as fast as Redis from 4 MiB up; a gather below 3 round "
          f"trips of the same bytes; with a backup at most {BACKED_GOAL} times the time without")
