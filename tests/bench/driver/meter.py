# SPDX-License-Identifier: Apache-2.0
"""How disturbed a measurement was: the share of the machine's CPU that was taken by others while it ran.

What the machine was busy with comes from /proc/stat, what was ours from the times of this process and of all its
descendants: of those that were waited for, and of those that run. The tasks of a job are among them, as children of a
keeper, which is one of its daemon. The rest is others' (and the kernel's softirqs, which loopback causes on our
behalf)."""
import os
import resource
import time

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CPUS = os.cpu_count()


def busy_s():
    """Seconds of CPU that anybody used since boot, the hypervisor's share included."""
    with open("/proc/stat", encoding="ascii") as file:
        fields = [int(field) for field in file.readline().split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields
    return (user + nice + system + irq + softirq + steal) / TICKS_PER_S


def cpu_s(pid):
    """What the threads of a process have used, in seconds, as the scheduler counts it: to the nanosecond."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total / 1e9


def stat_of(pid):
    """Its parent, what it used and what its children used that it has waited for, in seconds; None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rsplit(")", 1)[1].split()
    except OSError:
        return None
    user, system, children_user, children_system = (int(field) / TICKS_PER_S for field in fields[11:15])
    return int(fields[1]), user + system, children_user + children_system


def descendants_s():
    """What those used that run now, and those that they have waited for."""
    stats = {int(name): stat for name in os.listdir("/proc") if name.isdigit() and (stat := stat_of(name))}
    children = {}
    for pid, (parent, _, _) in stats.items():
        children.setdefault(parent, []).append(pid)
    total, known = 0.0, children.get(os.getpid(), [])
    while known:
        pid = known.pop()
        total += stats[pid][1] + stats[pid][2]
        known += children.get(pid, [])
    return total


def own_s():
    total = descendants_s()
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


class Window:
    """with Window() as window: ...; then window.others is their share of the machine, 0 to 1."""

    def __init__(self):
        self.others = 0.0
        self.wall_s = 0.0

    def __enter__(self):
        self.busy_s, self.own_s, self.began_s = busy_s(), own_s(), time.monotonic()
        return self

    def __exit__(self, *_):
        self.wall_s = time.monotonic() - self.began_s
        others_s = (busy_s() - self.busy_s) - (own_s() - self.own_s)
        self.others = min(1.0, max(0.0, others_s / (self.wall_s * CPUS)))  # ticks make a short window a little wrong


def wait_for_quiet(patience_s, limit=0.1):
    """Waits until others used less than `limit` of the machine for half a second; gives up after `patience_s`."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with Window() as window:
            time.sleep(0.5)
        if window.others < limit:
            return True
    return False
