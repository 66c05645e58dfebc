# SPDX-License-Identifier: Apache-2.0
"""What becomes of the coordinator that leads when etcd's own leader is killed, so that etcd answers nothing until its
members have elected another one: whether the lease outlasts that, and for how long the job stood."""
import time

from driver import amount
from driver.samples import percent, shown
from recovery.steady import Steps, submit, whole

TIMES = amount.of(5, 1)
MEMBERS = 3
QUICK = ("--heartbeat-interval", "20", "--election-timeout", "200")
ROWS = {"etcd elects within 1 to 2 s, L = 3 s": (3, ()),
        "etcd elects within 1 to 2 s, L = 2 s": (2, ()),
        "etcd elects within 1 to 2 s, L = 1 s": (1, ()),
        "etcd elects within 0.2 to 0.4 s, L = 1 s": (1, QUICK),
        "etcd elects within 0.2 to 0.4 s, L = 0.5 s": (0.5, QUICK)}


def end_one(cluster, steps, changes):
    """Whether another coordinator leads after it, and the longest time between two steps, ms."""
    from several import PATIENCE_S
    from testing import wait_for
    before = changes(cluster)
    steps.wait_more(time.monotonic_ns())
    killed = cluster.etcds.leader()
    killed_ns = time.monotonic_ns()
    killed.kill()
    cluster.etcds.leader()
    cluster.leader()
    elected_ns = time.monotonic_ns()
    killed.start()
    wait_for("all of etcd is there again", killed.is_healthy, PATIENCE_S)
    steps.wait_more(max(elected_ns, time.monotonic_ns()))
    times = [at for at in steps.times() if at >= killed_ns]
    stood_ms = max(later - earlier for earlier, later in zip(times, times[1:])) / 1e6
    return changes(cluster) > before, stood_ms


def end_etcd_leaders(lease, etcd, changes):
    from several import Several
    from testing import scaled
    steps = Steps()
    with Several(workers=2, members=MEMBERS, etcd=etcd, lease=lease,
                 coordinator=["--lease", scaled("10s") if amount.smoke else "10s"]) as cluster:
        job = submit(cluster, steps, workers=2)
        whole(cluster, job, 2)
        ends = [end_one(cluster, steps, changes) for _ in range(TIMES)]
        cluster.follow()
        cluster.client.cancel(job)
        cluster.client.wait(job)
    stood = sorted(one for _, one in ends)
    return {"changed": sum(change for change, _ in ends), "p50": stood[len(stood) // 2], "worst": stood[-1]}


def line(samples, row):
    return [row, f"{shown(samples.median(row, '', 'changed'))} of {TIMES}",
            *(shown(samples.median(row, "", name)) for name in ("p50", "worst")), percent(samples.disturbed(row))]
