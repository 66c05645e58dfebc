# SPDX-License-Identifier: Apache-2.0
"""Workers that all join one coordinator over mutual TLS at once, while it gets a share of one CPU: what ten times as
many are for a whole one."""
import contextlib
import os
import tempfile
import time

from driver import amount

WORKERS = amount.of(1000, 10)
SHARES = amount.of((100, 20, 10), (100,))  # percent of a CPU
JOIN_S = amount.deadline_s(120)
PERIOD_US = 100000


def parent():
    """Where groups with a share of CPU are made; None: nowhere."""
    v1, v2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
    if os.access(v1, os.W_OK):
        return v1
    usable = os.access(v2, os.W_OK) and os.path.exists(f"{v2}/cgroup.subtree_control")
    return v2 if usable and "cpu" in read(f"{v2}/cgroup.subtree_control").split() else None


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def cpu_ms(pid):
    user, system = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) * 1000 // os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def group(share):
    """A control group that gets so many percent of a CPU."""
    folder = os.path.join(parent(), f"cadre-bench-{os.getpid()}")
    os.mkdir(folder)
    quota = PERIOD_US * share // 100
    if os.path.exists(f"{folder}/cpu.max"):
        write(f"{folder}/cpu.max", f"{quota} {PERIOD_US}")
    else:
        write(f"{folder}/cpu.cfs_period_us", PERIOD_US)
        write(f"{folder}/cpu.cfs_quota_us", quota)
    try:
        yield f"{folder}/cgroup.procs"
    finally:
        os.rmdir(folder)


def join_ms(share):
    """Until all have joined, and again once the coordinator was killed and started."""
    from operate import measure
    with tempfile.TemporaryDirectory(prefix="cadre-bench-pki-") as folder, group(share) as slow:
        main, certificates = measure.issue(folder, WORKERS)
        with measure.coordinator(WORKERS, measure.TLS, main) as (cluster, address):
            coordinator = cluster.coordinator
            write(slow, coordinator.process.pid)
            began = time.monotonic()
            with measure.agents_of(cluster, address, WORKERS, 0, measure.TLS, certificates) as agents:
                measure.until_ready(agents, WORKERS, JOIN_S)
                found = {"join_ms": (time.monotonic() - began) * 1000,
                         "cpu_ms": cpu_ms(coordinator.process.pid)}
                coordinator.kill()
                began = time.monotonic()
                coordinator.start()
                write(slow, coordinator.process.pid)
                measure.until_ready(agents, WORKERS, JOIN_S)
                found["again_ms"] = (time.monotonic() - began) * 1000
            measure.end(cluster)
    return found
