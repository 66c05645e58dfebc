# SPDX-License-Identifier: Apache-2.0
"""For how long a job stands when the coordinator that leads is killed or stopped: until a step that another one has
admitted."""
import signal
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown
from recovery.measure import distribution
from recovery.steady import Steps, submit, whole
from takeover import etcd_leader

TITLE = "the leader of three coordinators ends, milliseconds: from the signal to the next step that another one admits"
KILLED_3, KILLED_1, STOPPED = "kill -9, L = 3 s", "kill -9, L = 1 s", "SIGTERM, L = 3 s"
ROWS = {KILLED_3: (signal.SIGKILL, 3), KILLED_1: (signal.SIGKILL, 1), STOPPED: (signal.SIGTERM, 3)}
TIMES = amount.of(10, 1)
GOAL_MS = 500  # beyond the lease, which a leader that is stopped does not leave to the next one
LEADS = "this coordinator leads"  # in the log of each that begins to
MEMBERS = 3


def scaled_lease(seconds):
    """As an option: in a test as long as the machine is slow."""
    from testing import scaled
    text = f"{seconds * 1000:.0f}ms"
    return scaled(text) if amount.smoke else text


def changes(cluster):
    return sum(one.log().count(LEADS) for one in cluster.coordinators)


def end_leader(cluster, steps, number, least_ms):
    """The leader gets the signal, and is started again once the job goes on; until when the job stood."""
    from several import PATIENCE_S
    from testing import wait_for
    leader, before = cluster.leader(), changes(cluster)
    steps.wait_more(time.monotonic_ns())
    signalled_ns = alone_ns = time.monotonic_ns()

    def is_led():
        nonlocal alone_ns
        if changes(cluster) > before:
            return True
        alone_ns = time.monotonic_ns()
        return False

    leader.signal(number)
    wait_for("another one leads", is_led, PATIENCE_S)
    steps.wait_more(time.monotonic_ns())
    leader.process.wait()
    leader.start()
    stood_ms = (first_admitted_ns(steps.times(), alone_ns) - signalled_ns) / 1e6
    if stood_ms < least_ms:
        raise RuntimeError(f"the job stood for {stood_ms:.0f} ms: no other one can have led within {least_ms:.0f} ms")
    return stood_ms


def first_admitted_ns(times, alone_ns):
    """The first step after the longest pause of those that end when another one may lead: tasks first do what the one
    before had admitted, up to 1,024 steps, and then wait."""
    return max((later - earlier, later) for earlier, later in zip(times, times[1:]) if later > alone_ns)[1]


def end_leaders(number, lease_s):
    from several import Several
    steps = Steps()
    lease = scaled_lease(lease_s)
    # The newest word of the leader in etcd is at most a sixth of the lease old when it is killed.
    least_ms = lease_s * 1000 / 2 if number == signal.SIGKILL else 0
    with Several(workers=2, members=MEMBERS, lease=lease, coordinator=["--lease", scaled_lease(10)]) as cluster:
        job = submit(cluster, steps, workers=2)
        whole(cluster, job, 2)
        stood = [end_leader(cluster, steps, number, least_ms) for _ in range(TIMES)]
        cluster.follow()
        cluster.client.cancel(job)
        cluster.client.wait(job)
    return distribution(stood)


def run_round(samples):
    why = programs.absent_etcd()
    for row, (number, lease_s) in ROWS.items():
        if why is None:
            samples.measure(row, "", lambda number=number, lease_s=lease_s: end_leaders(number, lease_s))
        else:
            samples.mark_absent(row, why)
    for row, (lease_s, etcd) in etcd_leader.ROWS.items():
        if why is None:
            samples.measure(row, "", lambda lease_s=lease_s, etcd=etcd: etcd_leader.end_etcd_leaders(
                scaled_lease(lease_s), etcd, changes))
        else:
            samples.mark_absent(row, why)


def report(samples):
    if samples.absent:
        return
    print_table(["the leader gets", "p50", "p99", "worst", "goal of p99", "", "others"],
                [line(samples, row, number, lease_s) for row, (number, lease_s) in ROWS.items()])
    print(f"  {TIMES} times in a round: p99 is the worst of them; medians over the rounds\n")
    print_table(["etcd's leader gets kill -9", "another coordinator leads", "job stood: p50, ms", "worst", "others"],
                [etcd_leader.line(samples, row) for row in etcd_leader.ROWS])


def line(samples, row, number, lease_s):
    goal_ms = GOAL_MS + (lease_s * 1000 if number == signal.SIGKILL else 0)
    p99 = samples.median(row, "", "p99")
    verdict = "-" if p99 is None else "met" if p99 <= goal_ms else "MISSED"
    return [row, *(shown(samples.median(row, "", name)) for name in ("p50", "p99", "worst")), f"{goal_ms:,}", verdict,
            percent(samples.disturbed(row))]
