# SPDX-License-Identifier: Apache-2.0
"""How disturbed a measurement was: the share of the machine's CPU that was taken by others while it ran.

What the machine was busy with comes from /proc/stat, what was ours from the times of this process and of the children
that were waited for; the rest is others' (and the kernel's softirqs, which loopback causes on our behalf). A window
must therefore begin before its processes start and end after they have ended."""
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


def own_s():
    total = 0.0
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
        self.others = max(0.0, others_s / (self.wall_s * CPUS))


def wait_for_quiet(patience_s, limit=0.1):
    """Waits until others used less than `limit` of the machine for half a second; gives up after `patience_s`."""
    end = time.monotonic() + patience_s
    while time.monotonic() < end:
        with Window() as window:
            time.sleep(0.5)
        if window.others < limit:
            return True
    return False
