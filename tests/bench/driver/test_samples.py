#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Ratios of pairs: what disturbs both runs of a pair alike changes neither the ratio nor its bounds."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from driver.samples import Samples  # noqa: E402


def pairs(values, floors):
    samples = Samples(0)
    samples.figures = {("a", 1, "s"): values, ("b", 1, "s"): floors}
    return samples.paired_ratio("a", "b", 1, "s")


def main():
    mean, low, high = pairs([1.1, 2.2, 4.4], [1.0, 2.0, 4.0])
    assert abs(mean - 1.1) < 1e-9 and high - low < 1e-9, (mean, low, high)
    mean, low, high = pairs([1.0, 1.21], [1.0, 1.0])
    assert abs(mean - 1.1) < 1e-9, mean
    assert low < 0.5 < 2 < high, (low, high)  # two pairs say little
    assert pairs([1.0], [1.0]) is None
    assert pairs([1.0, 1.0], [1.0]) is None  # a measurement has failed: pairs are not known
    assert pairs([1.0, 0.0], [1.0, 1.0]) is None


main()
