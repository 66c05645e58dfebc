# SPDX-License-Identifier: Apache-2.0
"""What tasks and hosts use, and for whom steps wait, as people and programs see it: `cadre job`, `top`, `workers`, and
/metrics of the worker. A host without control groups sums up processes: both ways are asked for the same things."""
import json
import os
import re
import signal

from client import RUNNING
from cluster import Cluster, script, trainer
from exposition import Metrics
from pages import ask
from testing import check, check_equal, check_in, run, wait_for

MIB = 1 << 20
BURNER = script("while :; do :; done")
# `tail` holds all of it until it can write it, and `sleep` reads nothing.
HOLDER = script(f"head -c {200 * MIB} /dev/zero | tail -c {200 * MIB} | sleep 1000")


def job_of(cluster, job):
    return json.loads(cluster.cadre("job", str(job), "--json").stdout)


def until(cluster, job, what, condition):
    """The job, once its only task, or the job, is as it should be."""
    def found():
        info = job_of(cluster, job)
        return info if condition(info) else None
    return wait_for(f"job {job}: {what}", found)


def usage(info, task=0):
    return info["tasks"][task]["usage"]


def stop(cluster, *jobs):
    for job in jobs:
        cluster.client.cancel(job)
    for job in jobs:
        cluster.client.wait(job)


def test_a_task_that_burns_a_core():
    with Cluster() as cluster:
        job = cluster.client.submit(BURNER)
        # On a busy machine it gets a part of a core; on any its use is not that of a task that sleeps.
        info = until(cluster, job, "burns", lambda info: (usage(info)["cpu_thousandths"] or 0) > 300)
        check(usage(info)["cpu_thousandths"] < 2000, f"one thread: {usage(info)}")
        check(usage(info)["memory_bytes"] > 0, f"its memory: {usage(info)}")
        check_equal((usage(info)["gpu_percent"], usage(info)["gpu_memory_bytes"]), (None, None), "it has no GPU")
        shown = cluster.cadre("job", str(job)).stdout.decode()
        check(re.search(r"CPU +MEMORY +LOG", shown), f"columns of cadre job: {shown}")
        top = cluster.cadre("top", "--once").stdout.decode()
        check(re.search(rf"(?m)^ *{job} +0 +\d+\.\d\d +[\d.]+ .iB", top), f"its row of cadre top: {top}")
        worker = json.loads(cluster.cadre("workers", "--json").stdout)["workers"][0]
        check(worker["usage"]["cpu_thousandths"] > 0 and worker["usage"]["memory_bytes"] > 0, f"the host: {worker}")
        check(re.search(r"\d\.\d\d/\d+ +[\d.]+( .iB)?/", cluster.cadre("workers").stdout.decode()), "cadre workers")
        stop(cluster, job)
        check_equal(usage(job_of(cluster, job))["cpu_thousandths"], None, "one that ended uses nothing")


def test_a_task_that_holds_memory():
    with Cluster() as cluster:
        job = cluster.client.submit(HOLDER)
        info = until(cluster, job, "holds 200 MiB", lambda info: (usage(info)["memory_bytes"] or 0) >= 200 * MIB)
        check(usage(info)["memory_peak_bytes"] >= usage(info)["memory_bytes"], f"its peak: {usage(info)}")
        check(usage(info)["memory_bytes"] < 800 * MIB, f"not much more: {usage(info)}")
        stop(cluster, job)


def test_a_worker_shows_its_tasks_to_prometheus():
    with Cluster(worker=["--http", "127.0.0.1:0"]) as cluster:
        job = cluster.client.submit(BURNER)
        of_task = (f"job={job}", "task=0")

        def samples():
            metrics = Metrics(ask(cluster.workers[0], "/metrics")[1])
            return metrics if metrics.values.get(("cadre_worker_task_cpu_seconds_total", *of_task), 0) > 0.1 else None
        metrics = wait_for("its CPU time", samples)
        check(metrics[("cadre_worker_task_memory_bytes", *of_task)] > 0, "its memory")
        check(metrics["cadre_worker_host_cpu_seconds_total"] > 0, "the host's CPU time")
        check(metrics["cadre_worker_host_memory_used_bytes"] > 0, "the host's memory")
        check(0 < metrics["cadre_worker_measuring_cpu_seconds_total"] < 1, "what measuring cost, in seconds")
        stop(cluster, job)


def test_a_stopped_task_is_waited_for():
    with Cluster(workers=2) as cluster:
        client = cluster.client
        job = client.submit(trainer(), workers=2, arguments=["100000000"], stall_us=10 ** 9)
        client.watch_until(job, lambda info: info.state == RUNNING and info.position > 10, "that it trains")
        check_equal(job_of(cluster, job)["wait"], None, "none waits")
        task = job_of(cluster, job)["tasks"][1]
        os.kill(task["pid"], signal.SIGSTOP)
        try:
            info = until(cluster, job, "task 1 has been waited for for a second",
                         lambda info: info["wait"] is not None and info["wait"]["waited_us"] > 1000000)
            check_equal((info["wait"]["task"], info["wait"]["worker"]), (1, task["worker"]), "who")
            check_in("the others wait for it (", cluster.cadre("job", str(job)).stdout.decode(), "cadre job")
            top = cluster.cadre("top", "--once").stdout.decode()
            check_in(f"job {job} waits for task 1 on {task['worker']} (", top, "cadre top")
            frame = json.loads(cluster.cadre("top", "--once", "--json").stdout)
            check_equal([(wait["job"], wait["task"]) for wait in frame["waits"]], [(job, 1)], "its JSON")
        finally:
            os.kill(task["pid"], signal.SIGCONT)
        info = until(cluster, job, "none waits any more", lambda info: info["wait"] is None)
        check(info["tasks"][1]["waited_us"] > 1000000, f"how long the others waited: {info['tasks'][1]}")
        check_equal(info["tasks"][0]["waited_us"], 0, "for the other one")
        check_in("the others waited for it: ", cluster.cadre("job", str(job)).stdout.decode(), "cadre job")
        stop(cluster, job)


if __name__ == "__main__":
    run(globals())
