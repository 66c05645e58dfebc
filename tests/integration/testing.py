# SPDX-License-Identifier: Apache-2.0
"""What every test script needs: waiting with a deadline, checks that say what they saw, a runner."""
import os
import re
import sys
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))

from speed import AT_START, Patience  # noqa: E402

DEADLINE_S = 30
HANG_S = 600  # for what only a fault keeps from ending
SLOW = min(8.0, AT_START)
SKIPPED = 77  # what ctest takes for that


class Failure(Exception):
    """A check that did not hold."""


def scaled(option):
    """A time of a daemon's option, "900ms", as long on this machine as that is on an idle one."""
    number, unit = re.fullmatch(r"(\d+)(ms|s)", option).groups()
    return f"{int(int(number) * SLOW * (1000 if unit == 's' else 1))}ms"


def skip(reason):
    """Ends the test as skipped, or the script that runs none."""
    print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED)


def descendants(pid):
    """The processes below it: a task is a child of its keeper, which is the daemon's."""
    found = []
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        return found  # it has just ended
    for child in children:
        found += [child, *descendants(child)]
    return found


def cpu_s(pid):
    """What a process has used of the CPUs, in seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mib(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 2 ** 20


def wait_for(what, condition, deadline_s=DEADLINE_S):
    """Returns the first true value of condition(); fails with `what` at the deadline, which is later on a busy
    machine."""
    patience = Patience(deadline_s)
    while True:
        value = condition()
        if value:
            return value
        if patience.is_over():
            raise Failure(f"not within {deadline_s} s of an idle machine, {patience.passed_s():.0f} s of this: {what}")
        time.sleep(0.02)


def check(condition, what):
    if not condition:
        raise Failure(what)


def check_equal(seen, wanted, what):
    if seen != wanted:
        raise Failure(f"{what}: {shown(seen)} instead of {shown(wanted)}")


def check_in(part, text, what):
    if part not in text:
        raise Failure(f"{what}: {shown(part)} is not in {shown(text)}")


def shown(value):
    text = repr(value)
    return text if len(text) < 2000 else f"{text[:1000]} ... ({len(text)} characters)"


def run(tests):
    """Runs the functions of the calling script whose names begin with test_; arguments select some by name."""
    if not os.environ.get("CADRE_TEST_BIN"):
        skip("CADRE_TEST_BIN, CADRE_TEST_STUBS and CADRE_TEST_TRAINER are not set: run it by ctest")
    wanted = sys.argv[1:]
    failed = 0
    skipped = 0
    count = 0
    for name, test in list(tests.items()):
        if not name.startswith("test_") or (wanted and not any(part in name for part in wanted)):
            continue
        count += 1
        began = time.monotonic()
        try:
            test()
            verdict = "ok"
        except Failure as failure:
            where = traceback.extract_tb(failure.__traceback__)
            lines = " < ".join(f"{frame.name}:{frame.lineno}" for frame in reversed(where) if frame.name != "run")
            verdict = f"FAILED ({lines})\n    {failure}"
            failed += 1
        except SystemExit as end:
            if end.code != SKIPPED:
                raise
            verdict = "skipped"
            skipped += 1
        except Exception:  # a test that breaks is a test that fails, and the others go on
            verdict = "FAILED\n" + traceback.format_exc()
            failed += 1
        print(f"{name}: {verdict} [{time.monotonic() - began:.1f} s]", flush=True)
    if count == 0:
        print("no test has such a name")
    sys.exit(1 if failed or count == 0 else SKIPPED if skipped else 0)
