#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A part's window takes the processes of tasks for its own: those that run, and those that daemons have waited for."""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from driver import meter  # noqa: E402

USED_S = 0.3
LEAST_S = USED_S / 2  # the kernel counts in ticks, and a part of one not at all
WORK = f"""
import os, sys, time
while time.process_time() < {USED_S}:
    pass
print('worked', flush=True)
sys.stdin.read(1)
"""
# As a daemon's keeper starts a task: in a session of its own, and waits for it. It prints after that, and stays.
KEEPER = f"""
import subprocess, sys
subprocess.run([sys.executable, '-c', {WORK!r}], start_new_session=True)
print('waited', flush=True)
sys.stdin.read(1)
"""


def main():
    before_s = meter.own_s()
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              bufsize=1)
    for said, when in (("worked", "while the task runs"), ("waited", "once its keeper has waited for it")):
        line = keeper.stdout.readline().strip()
        assert line == said, f"{line!r} instead of {said!r}"
        used_s = meter.own_s() - before_s
        assert used_s >= LEAST_S, f"{used_s:.3f} s are own, not {LEAST_S}, {when}"
        keeper.stdin.write("x")
        keeper.stdin.flush()
    keeper.communicate()
    used_s = meter.own_s() - before_s
    assert used_s >= LEAST_S, f"{used_s:.3f} s are own, not {LEAST_S}, once all have ended"


main()
