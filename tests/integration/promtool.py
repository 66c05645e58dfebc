# SPDX-License-Identifier: Apache-2.0
"""Prometheus without a server: promtool evaluates rules and expressions over series that a test makes, or over pages
that daemons gave to a scrape, one a minute."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from exposition import Metrics
from testing import check, check_equal

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "deploy", "prometheus")
RULES = os.path.join(FOLDER, "cadre-rules.yml")
INSTALLED = shutil.which("promtool") is not None
WHERE = {"cadre-coordinator": "coordinator:9464", "cadre-worker": "worker:9465"}


def alerts():
    """Name -> expression, as the rules have them."""
    with open(RULES, encoding="utf-8") as file:
        return dict(re.findall(r"- alert: (\w+)\n\s+expr: (.*)\n", file.read()))


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def series(job, name, labels, values):
    """As a scrape of `job` stores it: a label that it sets itself is renamed where a sample has it."""
    named = {f"exported_{label}" if label in ("job", "instance") else label: text for label, text in labels.items()}
    named.update(instance=WHERE[job], job=job)
    inside = ",".join(f"{label}={quoted(text)}" for label, text in sorted(named.items()))
    return {"series": f"{name}{{{inside}}}", "values": " ".join(str(value) for value in values)}


class Scrapes:
    """Pages of a cluster, one a minute; None: the daemon did not answer."""

    def __init__(self):
        self.minutes = 0
        self.values = {}  # (job, name, labels) -> {minute: value}

    def add(self, pages):
        """`pages`: job -> what its daemon answered."""
        for job, page in pages.items():
            self.put(job, "up", {}, 0 if page is None else 1)
            for samples in (Metrics(page).families.values() if page is not None else ()):
                for name, labels, value in samples:
                    self.put(job, name, labels, value)
        self.minutes += 1
        return self

    def put(self, job, name, labels, value):
        key = (job, name, tuple(sorted(labels.items())))
        self.values.setdefault(key, {})[self.minutes] = value

    def series(self, after=0):
        """All of them; the last page goes on for so many minutes."""
        found = []
        for (job, name, labels), values in self.values.items():
            listed = [values.get(minute, "_") for minute in range(self.minutes)]
            last = values.get(self.minutes - 1, "_")
            found.append(series(job, name, dict(labels), listed + [last] * after))
        return found


def evaluate(*tests, rules=(RULES,)):
    """Runs tests as promtool's documentation of unit tests has them. Returns its text; "" when all hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "test.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"rule_files": [os.path.abspath(rule) for rule in rules], "evaluation_interval": "1m",
                       "tests": [{"interval": "1m", **test} for test in tests]}, file)
        done = subprocess.run(["promtool", "test", "rules", path], capture_output=True, check=False, text=True)
    check(done.returncode == 0 or "FAILED" in done.stdout + done.stderr, f"promtool: {done.stdout}{done.stderr}")
    return "" if done.returncode == 0 else done.stdout + done.stderr


def holds(expression, minute):
    """A condition for evaluate(): the expression has a result then."""
    return {"expr": f"count({expression}) > bool 0", "eval_time": f"{minute}m",
            "exp_samples": [{"labels": "{}", "value": 1}]}


def check_fires(alert, scrapes, minute):
    """Over these pages, of which the last goes on until then."""
    found = scrapes.series(after=max(minute + 1 - scrapes.minutes, 0))
    firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    check_equal(evaluate({"input_series": found, "promql_expr_test": [holds(firing, minute)]}), "", f"{alert} fires")


# --- names in expressions ---

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
WORDS = {"and", "or", "unless", "by", "without", "on", "ignoring", "group_left", "group_right", "bool", "offset", "inf",
         "nan"}


def names_of(expression):
    """(metric -> labels that are matched, labels that are grouped by) of an expression."""
    found = {}
    grouped = set()
    text = re.sub(r'"(?:[^"\\]|\\.)*"', '""', expression)
    for match in re.finditer(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", text):
        grouped |= set(NAME.findall(match[1]))
    text = re.sub(r"\b(?:by|without|on|ignoring)\s*\([^)]*\)|\[[^\]]*\]", " ", text)
    for match in re.finditer(r"(?<![\w.])([a-zA-Z_:][\w:]*)\s*(\{[^}]*\}|\()?", text):
        name, behind = match[1], match[2] or ""
        if behind != "(" and name not in WORDS:
            labels = set(re.findall(r"([a-zA-Z_]\w*)\s*(?:=~|!~|!=|=)", behind))
            found.setdefault(name, set()).update(labels)
    return found, grouped
