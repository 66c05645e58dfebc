# SPDX-License-Identifier: Apache-2.0
"""What was measured, round by round, and the tables of medians that are printed of it."""
import math
import statistics

from driver import meter

# Student's t for 95 %, two-sided, by degrees of freedom from 1; more have the normal distribution's.
STUDENT_T = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11,
             2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04)


class Samples:
    """Figures under (row, column) keys; one figure a round."""

    def __init__(self, patience_s):
        self.patience_s = patience_s
        self.figures = {}
        self.others = {}
        self.absent = {}
        self.failed = []

    def measure(self, row, column, function):
        """Keeps what function() returns, a dict of figures, under `row` and `column`, with how disturbed it was. A
        measurement that fails is reported and does not end the run."""
        meter.wait_for_quiet(self.patience_s)
        window = meter.Window()
        try:
            with window:
                figures = function()
        except Exception as error:  # the other measurements go on; the exit status tells
            self.failed.append(f"{row} {column}: {error}")
            return
        for name, value in figures.items():
            self.figures.setdefault((row, column, name), []).append(value)
        self.others.setdefault((row, column), []).append(window.others)

    def mark_absent(self, row, why):
        self.absent[row] = why

    def median(self, row, column, name):
        """None when there is no such figure."""
        values = self.figures.get((row, column, name))
        return statistics.median(values) if values else None

    def spread(self, row, column, name):
        """Half the distance between the lowest and the highest round, as a share of the median; None without one."""
        values = self.figures.get((row, column, name))
        if not values or len(values) < 2:
            return None
        return (max(values) - min(values)) / 2 / statistics.median(values)

    def ratio(self, row, base, column, name):
        value, floor = self.median(row, column, name), self.median(base, column, name)
        return value / floor if value is not None and floor else None

    def paired_ratio(self, row, base, column, name):
        """The geometric mean of the ratios of the measurements that were taken one after the other, and the bounds
        between which it is with 95 % confidence; None without two pairs."""
        values, floors = (self.figures.get((key, column, name), []) for key in (row, base))
        if len(values) != len(floors) or len(values) < 2 or min(values + floors) <= 0:
            return None
        logs = [math.log(value / floor) for value, floor in zip(values, floors)]
        mean, degrees = statistics.fmean(logs), len(logs) - 1
        quantile = STUDENT_T[degrees - 1] if degrees <= len(STUDENT_T) else 1.96
        half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
        return tuple(math.exp(value) for value in (mean, mean - half, mean + half))

    def disturbed(self, row):
        """The worst round of any of the row's columns."""
        values = [share for (key, _), shares in self.others.items() if key == row for share in shares]
        return max(values, default=None)


def shown(value, digits=3):
    """A figure with so many significant digits, without an exponent."""
    if value is None:
        return "-"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    places = digits
    magnitude = abs(value)
    while magnitude >= 1 and places > 0:
        magnitude /= 10
        places -= 1
    return f"{value:.{places}f}"


def percent(share):
    return "-" if share is None else f"{share * 100:.0f}%"


def print_table(head, rows):
    """Columns as wide as they need to be; the first one left-aligned."""
    lines = [head, *rows]
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [str(cell).rjust(width) for cell, width in zip(line, widths)]
        cells[0] = str(line[0]).ljust(widths[0])
        print("  " + "  ".join(cells).rstrip())
    print()
