# SPDX-License-Identifier: Apache-2.0
"""How long a lookup of a token takes, and how much memory its index."""
import re

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "tokens to ids, one thread"
COUNTS = amount.of((10000, 1000000), (1000,))
NAMES = ("strings", "integers")
LINE = re.compile(r"^(\w+): \d+ tokens, made in ([\d.]+) s, ([\d.]+) bytes a token, ([\d.]+) ns a token$", re.MULTILINE)


def lookup(count):
    text = programs.run(programs.program("bench_lookup"), str(count))
    found = {}
    for name, made_s, bytes_each, each_ns in LINE.findall(text):
        found.update({f"{name}.made_s": float(made_s), f"{name}.bytes": float(bytes_each),
                      f"{name}.ns": float(each_ns)})
    if len(found) != 3 * len(NAMES):
        raise RuntimeError(f"no figures of {NAMES} are in {text!r}")
    return found


def run_round(samples):
    for count in COUNTS:
        samples.measure("lookup", count, lambda n=count: lookup(n))


def report(samples):
    def figure(count, name, unit):
        return shown(samples.median("lookup", count, f"{name}.{unit}"))

    print_table(["", "tokens", "ns a token", "bytes a token", "made in, s"],
                [[name, f"{count:,}", *(figure(count, name, unit) for unit in ("ns", "bytes", "made_s"))]
                 for name in NAMES for count in COUNTS])
    print(f"  others {percent(samples.disturbed('lookup'))}")
