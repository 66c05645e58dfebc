# SPDX-License-Identifier: Apache-2.0
"""The dashboard for Grafana and the alerts, beside the pages of real daemons: every metric and label that they name is
there, and every panel shows something of a cluster in which a job runs."""
import json
import os
import re
import tempfile

from client import FAILED
from cluster import Cluster, script
from exposition import Metrics
from pages import ask
from pki import Pki
from promtool import FOLDER, INSTALLED, Scrapes, alerts, evaluate, holds, names_of
from testing import Failure, check, check_equal, check_in, run, wait_for

HTTP = ["--http", "127.0.0.1:0"]
ROWS = ["Cluster", "Jobs", "Steps", "Stalls", "Store", "RPCs"]
OF_PROMETHEUS = {"up": set(), "ALERTS": {"alertname", "alertstate"}}
OF_EACH_TARGET = {"job", "instance"}


def dashboard():
    with open(os.path.join(FOLDER, "cadre-dashboard.json"), encoding="utf-8") as file:
        return json.load(file)


def panels():
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def plain(expression):
    """Without Grafana's variables."""
    return expression.replace("$__rate_interval", "5m").replace('"$name"', '".*"')


def expressions():
    """What is shown where -> expression."""
    return {f"{panel['title']} {target['refId']}": plain(target["expr"])
            for panel in panels() for target in panel["targets"]}


class Seen:
    """A cluster with a job that trains and one that failed, scraped for two minutes."""

    def __init__(self):
        self.scrapes = Scrapes()
        with Cluster(workers=1, coordinator=HTTP, worker=HTTP, start=False) as cluster:
            cluster.coordinator.argv += ["--tls-dir", Pki(cluster.folder).issue("coordinator", "main")]
            cluster.coordinator.start()
            worker = cluster.workers[0].start()
            client = cluster.client
            self.add(cluster)
            check_equal(client.run(script("exit 3")).state, FAILED, "the end of a job that fails")
            with open(os.environ["CADRE_TEST_REPORTER"], "rb") as file:
                job = client.submit(file.read(), arguments=["steps", "100000000"])
            for more in (20, 40):  # between two pages
                before = client.get(job).position
                wait_for("steps are committed", lambda: client.get(job).position > before + more)
                wait_for("values are shown", lambda: "cadre_job_metric{" in ask(cluster.coordinator, "/metrics")[1])
                self.add(cluster)
            client.cancel(job)
            client.wait(job)
            check(worker.runs(), "the worker runs")

    def add(self, cluster):
        self.pages = {"cadre-coordinator": ask(cluster.coordinator, "/metrics")[1],
                      "cadre-worker": ask(cluster.workers[0], "/metrics")[1]}
        self.scrapes.add(self.pages)

    def labels(self):
        """Metric -> the labels that Prometheus stores it with."""
        found = {name: labels | OF_EACH_TARGET for name, labels in OF_PROMETHEUS.items()}
        for page in self.pages.values():
            for samples in Metrics(page).families.values():
                for name, labels, _ in samples:
                    stored = {f"exported_{label}" if label in OF_EACH_TARGET else label for label in labels}
                    found.setdefault(name, set(OF_EACH_TARGET)).update(stored)
        return found


SEEN = []


def seen():
    if not SEEN:
        SEEN.append(Seen())
    return SEEN[0]


def check_names(where, expression, there, legend=""):
    metrics, grouped = names_of(expression)
    check(metrics, f"{where} names no metric: {expression}")
    for name, labels in metrics.items():
        check(name in there, f"{where}: the daemons have no metric {name}")
        check(labels <= there[name], f"{where}: {name} has no label {labels - there[name]}, but {there[name]}")
    known = set().union(*(there[name] for name in metrics))
    for label in grouped | set(re.findall(r"{{(\w+)}}", legend)):
        check(label in known, f"{where}: no metric of {expression} has the label {label}")


def test_names_are_those_of_the_daemons():
    there = seen().labels()
    for alert, expression in alerts().items():
        check_names(alert, expression, there)
    for panel in panels():
        for target in panel["targets"]:
            check_names(panel["title"], plain(target["expr"]), there, target["legendFormat"])
    marks = dashboard()["annotations"]["list"][0]
    check_names("marks", marks["expr"], there, marks["textFormat"])
    query = dashboard()["templating"]["list"][1]["query"]["query"]
    name, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", query).groups()
    check_in(label, there[name], "the label that jobs are chosen by")


def test_a_name_that_is_wrong_is_found():
    """The checks of this file can fail."""
    there = seen().labels()
    for wrong in ("cadre_jobz", 'cadre_jobs{stat="queued"}', "sum by (stat) (cadre_jobs)",
                  'cadre_job_tasks{jobs=~"1"}'):
        try:
            check_names("it", wrong, there)
        except Failure as error:
            check_in("it: ", str(error), "what is said of it")
        else:
            raise Failure(f"{wrong} is taken")
    check_equal(names_of('a{b=~"x{y}",c!="d"} / on (e) rate(f_total[5m]) > bool 0.5e3'),
                ({"a": {"b", "c"}, "f_total": set()}, {"e"}), "names of an expression")


def test_the_dashboard_is_one():
    whole = dashboard()
    check_equal([panel["title"] for panel in whole["panels"] if panel["type"] == "row"], ROWS, "rows")
    check_equal(len({panel["id"] for panel in whole["panels"]}), len(whole["panels"]), "numbers of panels")
    check_equal(len(expressions()), sum(len(panel["targets"]) for panel in panels()), "titles")
    taken = set()
    for panel in whole["panels"]:
        at = panel["gridPos"]
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        check(not cells & taken and at["x"] + at["w"] <= 24, f"{panel['title']} lies on another one")
        taken |= cells
    for panel in panels():
        check(panel["description"] and panel["targets"], f"{panel['title']} says what it shows")
        check_equal(panel["datasource"], {"type": "prometheus", "uid": "${datasource}"}, panel["title"])


def test_each_panel_shows_something():
    if not INSTALLED:
        print("(without promtool, of the package prometheus, expressions are not evaluated)")
        return
    made = seen().scrapes
    shown = {where: expression for where, expression in expressions().items() if "> 0" not in expression}
    conditions = [holds(expression, made.minutes - 1) for expression in shown.values()]
    check_equal(evaluate({"input_series": made.series(), "promql_expr_test": conditions}), "", "expressions")
    rest = set(expressions()) - set(shown)
    check_equal(rest, {"State directory B"}, "panels that show something only where it is set")
    rules = {"groups": [{"name": "panels", "rules": [{"record": "panel:shown", "expr": expressions()[where]}
                                                     for where in sorted(rest)]}]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "rules.yml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(rules, file)
        check_equal(evaluate({"input_series": [], "promql_expr_test": []}, rules=(path,)), "", "its expression")


if __name__ == "__main__":
    run(globals())
