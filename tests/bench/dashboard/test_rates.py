#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The figures of a window, and of one in which the job applied no step."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from dashboard import measure  # noqa: E402
from driver.samples import Samples  # noqa: E402


def main():
    found = measure.rates(used_s=0.5, took_s=2.0, steps=1000, answers=30)
    expected = {"cpu_percent": 25, "steps_per_s": 500, "cpu_step_us": 500, "answers_per_s": 15}
    assert found == expected, found
    still = measure.rates(used_s=0.5, took_s=2.0, steps=0, answers=0)
    assert still == {"cpu_percent": 25, "steps_per_s": 0, "answers_per_s": 0}, still
    samples = Samples(0)
    for row in measure.ROWS:
        samples.measure(row, "", lambda: still)
    measure.report(samples)  # neither has it a line of what clients cost more
    assert not samples.failed, samples.failed


main()
