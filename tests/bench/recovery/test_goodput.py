#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The goodput of jobs whose positions are given: that of a pause, of steps that are done again, and of one that is
slow or slower by and by."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from recovery.goodput import EVERY_S, Progress  # noqa: E402

KILLED_S = 100


def goodput(progress_after):
    """Of a job that has made progress_after(s) steps so many seconds after a kill, at three kills."""
    progress = Progress()
    for kill in range(3):
        killed_ns = (KILLED_S + kill * EVERY_S) * 10 ** 9
        progress.add(lambda at_ns, began=killed_ns: 5000 + progress_after((at_ns - began) / 1e9), killed_ns)
    return progress.goodput()


def main():
    def near(found, wanted, by):
        assert abs(found - wanted) < by, f"{found} instead of {wanted}"

    near(goodput(lambda s: 400 * s), 1, 1e-9)
    near(goodput(lambda s: 0.4 * s), 1, 1e-9)
    near(goodput(lambda s: 400 * max(0, s - 0.3)), 1 - 0.3 / EVERY_S, 1e-9)
    near(goodput(lambda s: max(0, 400 * (s - 1) - 200)), 1 - 1.5 / EVERY_S, 1e-9)  # a pause, and 200 steps again
    assert goodput(lambda s: 400 * max(0, s - 8)) < 1 - EVERY_S / 6 / EVERY_S + 1e-9  # longer than the first sixth
    near(goodput(lambda s: 400 * s - s * s / 2), 1, 0.01)  # 8% slower at the end
    try:
        goodput(lambda s: 0)
    except RuntimeError:
        return
    raise AssertionError("a job that stands still has a goodput")


main()
