# SPDX-License-Identifier: Apache-2.0
"""What a ledger costs that three coordinators share in etcd, beside one coordinator with SQLite: steps of digits,
barrier rounds, submissions, CPU."""
import statistics
import time

from barrier.measure import read_times, times_file
from driver import amount, meter, programs
from driver.samples import percent, print_table, shown
from steps.measure import FILES, arguments

TITLE = "three coordinators with a ledger in etcd, beside one with SQLite"
SQLITE, ONE_ETCD, THREE_ETCDS = "one, SQLite", "three, one etcd", "three, three etcds"
MEMBERS = {SQLITE: 0, ONE_ETCD: 1, THREE_ETCDS: 3}
PAIRS = amount.of(2, 1)  # in a round
WORKERS = (1, 2)
FEW, MANY = amount.of((20, 220), (1, 2))  # epochs of two runs whose difference is free of start and end
STEPS_PER_EPOCH = 29  # those of the evaluation among them
BARRIERS = {2: 1, 8: 4}  # participants: slots of each of two workers
ROUNDS = amount.of({2: 3000, 8: 2000}, {2: 20, 8: 10})
SUBMISSIONS, ROUND_TRIPS = amount.of((100, 300), (3, 10))
ENTRY_BYTES = 1000  # about what a submission adds to the log
GOAL, GOAL_ROUND_TRIPS = 0.05, 2
SUBMISSION = "a submission"


def opened(kind, slots):
    """Two workers, and coordinators of that kind."""
    from cluster import Cluster
    from several import LEASE, Several
    if kind == SQLITE:
        return Cluster(workers=2, slots=slots)
    return Several(workers=2, slots=slots, members=MEMBERS[kind], lease=LEASE if amount.smoke else "3s")


class Parts:
    """The processes of a cluster whose CPU is counted."""

    def __init__(self, cluster, kind):
        self.cluster = cluster
        self.leader = cluster.coordinator if kind == SQLITE else cluster.leader()
        self.followers = [one for one in cluster.coordinators if one is not self.leader]
        self.members = [] if kind == SQLITE else cluster.etcds.members

    def cpu_s(self):
        """That of the leader, of a follower, and of all etcds; seconds."""
        def total(processes):
            return sum(meter.cpu_s(one.process.pid) for one in processes)
        return {"leader_s": total([self.leader]), "follower_s": total(self.followers) / max(1, len(self.followers)),
                "etcd_s": total(self.members)}

    def check(self):
        if self.members and not self.cluster.leads(self.leader):
            raise RuntimeError("another coordinator leads than at the begin")


def trained(parts, workers, epochs):
    files = [option for path in FILES for option in ("--file", path)]
    before, began_s = parts.cpu_s(), time.monotonic()
    parts.cluster.cadre("submit", "--workers", str(workers), "--replicas", "1", *files, programs.program("digits"),
                        "--", *arguments(epochs))
    took_s, after = time.monotonic() - began_s, parts.cpu_s()
    parts.check()
    return {"s": took_s} | {key: after[key] - before[key] for key in before}


def step(parts, workers):
    """Seconds of each kind for one step of digits."""
    less, more = (trained(parts, workers, epochs) for epochs in (FEW, MANY))
    return {key: (more[key] - less[key]) / ((MANY - FEW) * STEPS_PER_EPOCH) for key in more}


def barrier(parts, participants):
    path, rounds = times_file(), ROUNDS[participants]
    parts.cluster.cadre("submit", "--workers", str(participants), programs.program("bench_cadre_barrier"), "--",
                        str(rounds), path)
    parts.check()
    return {"s": read_times(path, participants, rounds)["median"] / 1e6}


def submissions(parts):
    """From the call of Submit to its answer. The job needs more workers than there are, and is cancelled at once."""
    from client import CALL_S, common_pb2, job_file
    from cluster import script
    client, content, took_s = parts.cluster.client, script("true"), []
    client.upload([content])
    spec = common_pb2.JobSpec(name="queued", program=job_file("program", content, True), workers=100)
    for _ in range(SUBMISSIONS):
        began_s = time.monotonic()
        job = client.jobs.Submit(spec, timeout=CALL_S).id
        took_s.append(time.monotonic() - began_s)
        client.cancel(job)
    parts.check()
    took_s.sort()
    return {"s": statistics.median(took_s), "p99_s": took_s[len(took_s) * 99 // 100]}


def round_trip(parts):
    """A guarded transaction of etcd, by the client of etcd that coordinators use, beside an idle leader."""
    from test_etcd import Driver, good
    with Driver(parts.cluster.etcds.address("bench")) as driver:
        good(driver.txn("first"))
        return {"s": int(good(driver.ask(f"bench {ROUND_TRIPS} {ENTRY_BYTES}"))["p50_us"]) / 1e6}


def named(what, count):
    return f"{what}, {count} {'worker' if what == 'a step' else 'task'}{'s' if count > 1 else ''}"


def measure_kind(samples, kind):
    """All that is compared, in a cluster of that kind."""
    for tasks, slots in BARRIERS.items():
        with opened(kind, slots) as cluster:
            parts = Parts(cluster, kind)
            samples.measure(kind, named("a barrier round", tasks), lambda p=parts, n=tasks: barrier(p, n))
            if slots > 1:
                continue
            for workers in WORKERS:
                samples.measure(kind, named("a step", workers), lambda p=parts, n=workers: step(p, n))
            samples.measure(kind, SUBMISSION, lambda p=parts: submissions(p))
            if kind != SQLITE:
                samples.measure(kind, "a round trip", lambda p=parts: round_trip(p))


def run_round(samples):
    why = programs.absent_etcd()
    if why is not None:
        samples.mark_absent(ONE_ETCD, why)
        samples.mark_absent(THREE_ETCDS, why)
        return
    for _ in range(PAIRS):
        for kind in MEMBERS:
            measure_kind(samples, kind)


def report(samples):
    if samples.absent:
        return
    columns = [named("a step", n) for n in WORKERS] + [named("a barrier round", n) for n in BARRIERS]
    kinds = [kind for kind in MEMBERS if kind != SQLITE]
    print_table(["microseconds", SQLITE, *kinds],
                [[column, *(figure(samples, kind, column, "s", 1e6) for kind in MEMBERS)]
                 for column in columns])
    print_table([f"beside {SQLITE}", "added", "95% between", f"goal {GOAL * 100:.0f}%", "others"],
                [added_line(samples, kind, column) for column in columns for kind in kinds])
    print_table(["milliseconds", "p50", "p99", "a round trip of etcd", "more than SQLite, round trips",
                 f"goal {GOAL_ROUND_TRIPS}"], [submission_line(samples, kind) for kind in MEMBERS])
    print_table(["CPU seconds per 1,000 steps", "leader", "a follower", "all etcds"],
                [[f"{kind}, {column}", *(figure(samples, kind, column, name, 1000)
                                         for name in ("leader_s", "follower_s", "etcd_s"))]
                 for column in columns[:len(WORKERS)] for kind in MEMBERS])


def figure(samples, kind, column, name, times):
    median = samples.median(kind, column, name)
    return shown(median and median * times)


def added_line(samples, kind, column):
    paired = samples.paired_ratio(kind, SQLITE, column, "s")
    if paired is None:
        return [f"{column}: {kind}", "-", "-", "-", "-"]
    added, low, high = (f"{(ratio - 1) * 100:+.1f}%" for ratio in paired)
    verdict = "met" if paired[2] - 1 <= GOAL else "MISSED" if paired[1] - 1 > GOAL else "open"
    return [f"{column}: {kind}", added, f"{low} and {high}", verdict,
            percent(max(samples.disturbed(one) or 0 for one in (kind, SQLITE)))]


def submission_line(samples, kind):
    median, base = (samples.median(one, SUBMISSION, "s") for one in (kind, SQLITE))
    trip = samples.median(kind, "a round trip", "s")
    cells = [f"{SUBMISSION}: {kind}", *(figure(samples, kind, SUBMISSION, name, 1e3) for name in ("s", "p99_s"))]
    if not (median and base and trip):
        return [*cells, "", "", ""]
    more = (median - base) / trip
    return [*cells, shown(trip * 1e3), shown(more), "met" if more <= GOAL_ROUND_TRIPS else "MISSED"]
