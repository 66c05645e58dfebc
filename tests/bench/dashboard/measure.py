# SPDX-License-Identifier: Apache-2.0
"""What browsers cost the coordinator: its CPU beside a job with steps of 1 ms, without and with 200 of them; deaf ones
ask once a second whatever the coordinator says."""
import os
import time

from driver import amount, meter, programs
from driver.samples import percent, print_table, shown

TITLE = "the coordinator's CPU beside a job with steps of 1 ms, and HTTP clients that poll once a second"
CLIENTS = amount.of(200, 5)
ROWS = {"no clients": None, f"{CLIENTS} clients": (), f"{CLIENTS} deaf clients": ("deaf",)}
SECONDS = amount.of(10, 1)
HERE = os.path.dirname(os.path.abspath(__file__))
SHOWN = (("CPU, % of a core", "cpu_percent"), ("CPU of a step, us", "cpu_step_us"), ("steps/s", "steps_per_s"),
         ("answers/s", "answers_per_s"), ("p50, ms", "p50_ms"), ("p99, ms", "p99_ms"))


def watched(cluster, port, job, asking):
    pid = cluster.coordinator.process.pid
    began_s, began_cpu_s, position = time.monotonic(), meter.cpu_s(pid), cluster.client.get(job).position
    found = {}
    if asking is not None:
        said = programs.run(programs.DEBIAN_PYTHON, "-B", os.path.join(HERE, "clients.py"), str(port), str(job),
                            str(CLIENTS), str(SECONDS), *asking)
        found = programs.figures(said)
    else:
        time.sleep(SECONDS)
    used_s, took_s = meter.cpu_s(pid) - began_cpu_s, time.monotonic() - began_s
    return {**found, **rates(used_s, took_s, cluster.client.get(job).position - position, found.get("answers", 0))}


def rates(used_s, took_s, steps, answers):
    """Figures of a window; a step has no CPU where none was applied in it."""
    found = {"cpu_percent": 100 * used_s / took_s, "steps_per_s": steps / took_s, "answers_per_s": answers / took_s}
    if steps > 0:
        found["cpu_step_us"] = used_s * 1e6 / steps
    return found


def run_round(samples):
    from client import RUNNING
    from cluster import Cluster
    from http_api import OPEN
    from pages import http_port
    from testing import wait_for
    with open(programs.program("bench_reporting"), "rb") as file:
        program = file.read()
    with Cluster(workers=1, slots=1, coordinator=OPEN) as cluster:
        job = cluster.client.submit(program, arguments=[str(10 ** 9), "1000", "1"])
        wait_for("it runs", lambda: (info := cluster.client.get(job)).state == RUNNING and info.position > 100)
        for row, asking in ROWS.items():
            samples.measure(row, "", lambda a=asking: watched(cluster, http_port(cluster.coordinator), job, a))
        cluster.cadre("cancel", str(job))


def report(samples):
    rows = [[row, *(shown(samples.median(row, "", name)) for _, name in SHOWN), percent(samples.disturbed(row))]
            for row in ROWS]
    print_table(["", *(title for title, _ in SHOWN), "others"], rows)
    # A step costs the coordinator something, and clients that share its CPUs make fewer of them.
    step_us = samples.median("no clients", "", "cpu_step_us")
    for row, asking in ROWS.items():
        used, steps_per_s = samples.median(row, "", "cpu_percent"), samples.median(row, "", "steps_per_s")
        if asking is not None and step_us is not None and used is not None:
            print(f"  more with {row}, at as many steps: {used - step_us * steps_per_s / 1e4:.2f}% of a core")
