# SPDX-License-Identifier: Apache-2.0
"""What was measured, round by round, and the tables of medians that are printed of it."""
import statistics

from driver import meter


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
