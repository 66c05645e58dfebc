# SPDX-License-Identifier: Apache-2.0
"""A strict reader of Prometheus' text format: every family has HELP and TYPE and is there once, its samples follow
it, no sample is there twice, names and values are well formed, counters end in _total, histograms add up."""
import re

from testing import Failure, check

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? ([^ ]+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
ESCAPE = re.compile(r'\\(["\\n])')


def read_labels(text):
    labels = {}
    at = 0
    while text and at < len(text):
        match = LABEL.match(text, at)
        check(match, f"labels {text}")
        check(match[1] not in labels, f"label {match[1]} twice in {text}")
        labels[match[1]] = ESCAPE.sub(lambda found: {"n": "\n"}.get(found[1], found[1]), match[2])
        at = match.end()
    return labels


def check_histogram(name, samples):
    buckets = [(labels["le"], value) for base, labels, value in samples if base == f"{name}_bucket"]
    sums = [value for base, _, value in samples if base == f"{name}_sum"]
    counts = [value for base, _, value in samples if base == f"{name}_count"]
    check(len(sums) == 1 and len(counts) == 1 and buckets, f"{name} has buckets, a sum and a count")
    bounds = [float(bound) for bound, _ in buckets]
    values = [value for _, value in buckets]
    check(bounds == sorted(set(bounds)) and bounds[-1] == float("inf"), f"bounds of {name}: {bounds}")
    check(values == sorted(values) and values[-1] == counts[0], f"buckets of {name}: {values}, count {counts[0]}")


class Metrics:
    """metrics = Metrics(text); metrics["name", label, ...] with labels as key=value texts."""

    def __init__(self, text):
        check(text.endswith("\n"), "the text ends with a newline")
        self.types = {}
        self.values = {}
        self.families = {}
        helped = None
        family = None
        for line in text.splitlines():
            if line.startswith("# HELP "):
                helped, _, text = line[len("# HELP "):].partition(" ")
                check(text, f"HELP of {helped} is not empty")
                family = None
            elif line.startswith("# TYPE "):
                family, _, kind = line[len("# TYPE "):].partition(" ")
                check(family == helped, f"HELP stands before TYPE of {family}")
                check(family not in self.types, f"family {family} is there once")
                check(kind in ("counter", "gauge", "histogram"), f"type of {family}: {kind}")
                check((kind == "counter") == family.endswith("_total"), f"the name of the {kind} {family}")
                self.types[family] = kind
                self.families[family] = []
            else:
                self.take(line, family)
        for name, kind in self.types.items():
            if kind == "histogram":
                check_histogram(name, self.families[name])

    def take(self, line, family):
        match = SAMPLE.fullmatch(line)
        check(match and family, f"a sample: {line!r}")
        name, labels, value = match[1], read_labels(match[2]), float(match[3])
        suffixes = ("_bucket", "_sum", "_count") if self.types[family] == "histogram" else ("",)
        check(name in [family + suffix for suffix in suffixes], f"{name} stands below {family}")
        check(self.types[family] != "counter" or value >= 0, f"counter {name} is {value}")
        key = (name, *sorted(f"{label}={text}" for label, text in labels.items()))
        check(key not in self.values, f"sample {key} is there once")
        self.values[key] = value
        self.families[family].append((name, labels, value))

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if key not in self.values:
            raise Failure(f"no sample {key}; there are {sorted(self.values)}")
        return self.values[key]
