# SPDX-License-Identifier: Apache-2.0
"""How fast a coordinator that follows applies the entries of the shared log, and copies its ledger."""
import tempfile

from driver import amount, programs
from driver.samples import percent, print_table, shown

TITLE = "entries of the shared log into the ledger, one thread"
ENTRIES = amount.of(20000, 200)
ROWS = (("a row of numbers, by SQLite alone", "floor"), ("steps of a job, one entry a transaction", "step_1"),
        ("steps, 8 entries a transaction", "step_8"), ("steps, 64 entries a transaction", "step_64"),
        ("the start of 10,000 tasks", "start"))


def apply():
    with tempfile.TemporaryDirectory() as folder:
        return programs.figures(programs.run(programs.program("bench_apply"), folder, str(ENTRIES)))


def run_round(samples):
    samples.measure("apply", "", apply)


def report(samples):
    def figure(name):
        return samples.median("apply", "", name)

    print_table(["", "us an entry", "entries a second"],
                [[text, shown(figure(f"{name}.us")), f"{1e6 / figure(f'{name}.us'):,.0f}"] for text, name in ROWS])
    print(f"  a copy of the ledger of {shown(figure('copy.mb'))} MB: {shown(figure('copy.ms'))} ms; its longest step, "
          f"as a leader copies: {shown(figure('copy.step.ms'))} ms")
    print(f"  others {percent(samples.disturbed('apply'))}")
