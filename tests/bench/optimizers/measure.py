# SPDX-License-Identifier: Apache-2.0
"""What an optimizer does to a variable that no cache holds, beside a loop that reads and writes as much."""
from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "updates of variables by an optimizer, as a share of the memory's bandwidth, one thread"
ROW = "one thread"
RULES = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "rmsprop_all", "adam", "adamw", "lamb"]
LEAST = 0.9
MIB = amount.of("128", "1")


def run_round(samples):
    program = programs.program("bench_optimizers")
    samples.measure(ROW, "", lambda: programs.figures(programs.run(program, MIB, timeout_s=600)))


def report(samples):
    lines = []
    for rule in RULES:
        share = samples.median(ROW, "", f"{rule}_share")
        lines.append([rule, shown(samples.median(ROW, "", f"{rule}_gb_per_s")), shown(share),
                      percent(samples.spread(ROW, "", f"{rule}_share") or 0),
                      "-" if share is None else "met" if share >= LEAST else "MISSED"])
    print_table(["", "GB/s", "share of the floor", "spread", f"goal {LEAST}"], lines)
    print(f"  others at most {percent(samples.disturbed(ROW) or 0)}")
