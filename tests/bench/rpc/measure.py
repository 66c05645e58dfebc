# SPDX-License-Identifier: Apache-2.0
"""An echo through common/rpc beside bare epoll, over TLS beside TCP, and the ways to join gRPC and libuv."""
import os
import re
import tempfile

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "an echo of 64 bytes with 1, 8 or 64 under way: thousands of round trips a second (the server's CPU of one, us)"
WINDOW_MS = amount.of("400", "1")
LEVELS = (1, 8, 64)
ECHO, JOIN = "rpc_echo", "loop_join"
ROW = re.compile(r"(\S.*?) +(\d+) +(\d+)/s .* server +([\d.]+) us ")


def rows(text):
    """The figures of a program's table; loop_join has one for each load, below a line of its name."""
    found, load = {}, ""
    for line in text.splitlines():
        row = ROW.match(line)
        if row:
            name, level, per_s, cpu_us = row.groups()
            found[load + name, int(level), "per_s"] = float(per_s)
            found[load + name, int(level), "cpu_us"] = float(cpu_us)
        elif line and "rounds of" not in line:
            load = f"{line}, "
    if not found:
        raise RuntimeError(f"no row is in {text!r}")
    return found


def echo():
    from pki import Pki
    with tempfile.TemporaryDirectory(prefix="cadre-bench-pki-") as folder:
        environment = {**os.environ, "CADRE_TLS_DIR": Pki(folder).issue("coordinator", "main")}
        return rows(programs.run(programs.program("rpc_echo"), "1", WINDOW_MS, env=environment))


def run_round(samples):
    samples.measure(ECHO, "", echo)
    samples.measure(JOIN, "", lambda: rows(programs.run(programs.program("loop_join"), "1", WINDOW_MS)))


def report(samples):
    for program in (ECHO, JOIN):
        names = dict.fromkeys(name for row, _, (name, *_) in samples.figures if row == program)
        print_table([program, *(f"{level}" for level in LEVELS)], [[name, *(
            cell(samples, program, name, level) for level in LEVELS)] for name in names])
    print(f"  others {percent(samples.disturbed(ECHO))}, {percent(samples.disturbed(JOIN))}")


def cell(samples, program, name, level):
    per_s = samples.median(program, "", (name, level, "per_s"))
    return "-" if per_s is None else \
        f"{shown(per_s / 1000)} ({shown(samples.median(program, '', (name, level, 'cpu_us')))})"
