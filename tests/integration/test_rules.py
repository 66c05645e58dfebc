# SPDX-License-Identifier: Apache-2.0
"""The alerts in deploy/prometheus, as Prometheus reads them: each fires once, over series of the daemons' names, and
most of them over pages of real daemons to which what they are about has happened."""
import os
import re
import resource
import signal
import subprocess

from client import FAILED, blob_chunks, refusal
from cluster import Cluster, script, trainer
from pages import ask
from pki import Pki
from promtool import FOLDER, INSTALLED, RULES, Scrapes, alerts, check_fires, evaluate, series
from testing import check, check_equal, run, scaled, skip, wait_for

if not INSTALLED:
    skip("promtool is not installed: apt-get install prometheus")

HTTP = ["--http", "127.0.0.1:0"]
C, W = "cadre-coordinator", "cadre-worker"
LE = ("0.1", "0.25", "0.5", "1", "+Inf")


def steady(value, minutes=20):
    return [value] * (minutes + 1)


def counted(*values, minutes=20):
    """A counter: these values, then the last one."""
    return list(values) + [values[-1]] * (minutes + 1 - len(values))


def slow(name, bound):
    """Ten observations a minute, all of them between `bound` and the next one."""
    return [(C, f"{name}_bucket", {"le": le}, [10 * minute if float(le) > bound else 0 for minute in range(21)])
            for le in LE]


def storage(blobs):
    return [(C, "cadre_storage_quota_bytes", {}, steady(1000)),
            *((C, "cadre_storage_bytes", {"kind": kind}, steady(size))
              for kind, size in (("blobs", blobs), ("logs", 100), ("outputs", 50)))]


def one(job, name, labels, values):
    return [(job, name, labels, values)]


# Alert: series over which it fires, the first minute in which it does, its labels (severity, and of which daemon), its
# sentence, series over which it does not, which are next to those.
CASES = {
    "CadreCoordinatorDown": (
        one(C, "up", {}, [1, 0, *steady(0)]), 2, ("critical", C),
        "No answer from the coordinator coordinator:9464 for a minute", one(C, "up", {}, [1, 0, *steady(1)])),
    "CadreNoLeader": (
        one(C, "cadre_coordinator_leads", {}, [1, 0, *steady(0)]), 2, ("critical", None), "No coordinator leads",
        one(C, "cadre_coordinator_leads", {}, [1, 0, *steady(1)])),
    "CadreCoordinatorRefused": (
        one(C, "cadre_coordinator_refused", {}, [0, *steady(1)]), 1, ("critical", C),
        "The coordinator coordinator:9464 takes no part", one(C, "cadre_coordinator_refused", {}, steady(0))),
    "CadreFollowerLags": (
        one(C, "cadre_coordinator_log_head_index", {}, steady(5001)) +
        one(C, "cadre_coordinator_log_applied_index", {}, steady(4000)), 2, ("warning", C),
        "The coordinator coordinator:9464 lacks 1001 entries of the log",
        one(C, "cadre_coordinator_log_head_index", {}, steady(5000)) +
        one(C, "cadre_coordinator_log_applied_index", {}, steady(4000))),
    "CadreEtcdFails": (
        one(C, "cadre_coordinator_etcd_failing", {}, [0, *steady(1)]), 2, ("critical", C),
        "The coordinator coordinator:9464 gets no answer from etcd",
        one(C, "cadre_coordinator_etcd_failing", {}, [0, 1, 0, 1, 0, 1, 0])),
    "CadreEtcdNoSpace": (
        one(C, "cadre_coordinator_etcd_no_space", {}, [0, *steady(1)]), 1, ("critical", C),
        "etcd refuses what the coordinator coordinator:9464 writes: its database is full",
        one(C, "cadre_coordinator_etcd_no_space", {}, steady(0))),
    "CadreNoWorkers": (
        one(C, "cadre_workers", {"state": "ready"}, steady(0)) + one(C, "cadre_workers", {"state": "away"}, steady(3)),
        2, ("critical", None), "No worker takes tasks", one(C, "cadre_workers", {"state": "ready"}, steady(1))),
    "CadreWorkerLost": (
        one(C, "cadre_workers_lost_total", {}, counted(0, 0, 2)), 2, ("warning", C),
        "2 worker(s) were lost within 15 minutes", one(C, "cadre_workers_lost_total", {}, steady(7))),
    "CadreWorkerNotJoined": (
        one(W, "cadre_worker_link_up", {}, steady(0)), 2, ("warning", W),
        "The worker worker:9465 has not joined the coordinator for 2 minutes",
        one(W, "cadre_worker_link_up", {}, [0, 0, 1, 0, 0, 1, 0, 0])),
    "CadreQueueWaits": (
        one(C, "cadre_queue_oldest_wait_seconds", {}, steady(3700)), 5, ("warning", C),
        "A job has waited for 1h 1m 40s", one(C, "cadre_queue_oldest_wait_seconds", {}, steady(3600))),
    "CadreStepsStopped": (
        one(C, "cadre_tasks_training", {}, steady(2)) + one(C, "cadre_steps_committed_total", {}, steady(50)), 11,
        ("warning", C), "Jobs run, and no step was committed for 10 minutes",
        one(C, "cadre_tasks_training", {}, steady(2)) +
        one(C, "cadre_steps_committed_total", {}, [minute // 5 for minute in range(21)])),
    "CadreJobsFail": (
        one(C, "cadre_jobs_ended_total", {"state": "failed"}, counted(0, 1, 4)), 2, ("warning", C, "state", "failed"),
        "4 jobs failed within an hour",
        one(C, "cadre_jobs_ended_total", {"state": "failed"}, counted(0, 1, 3)) +
        one(C, "cadre_jobs_ended_total", {"state": "cancelled"}, counted(0, 1, 9))),
    "CadreTasksRestart": (
        one(C, "cadre_job_restarts_total", {}, counted(0, 3, 6)), 2, ("warning", C),
        "Tasks fail again and again: 6 restarts in 15 minutes",
        one(C, "cadre_job_restarts_total", {}, counted(0, 3, 5))),
    "CadreLedgerSlow": (
        slow("cadre_ledger_commit_seconds", 0.25), 11, ("warning", C),
        "1 of 100 ledger commits takes longer than 497.5ms", slow("cadre_ledger_commit_seconds", 0.1)),
    "CadreReleasesSlow": (
        slow("cadre_release_latency_seconds", 0.5), 11, ("warning", C),
        "1 of 100 releases takes the coordinator longer than 995ms", slow("cadre_release_latency_seconds", 0.25)),
    "CadreStorageNearlyFull": (
        storage(800), 5, ("warning", C), "More than 90% of --storage-quota are used", storage(750)),
    "CadreStorageRefuses": (
        one(C, "cadre_storage_refusals_total", {}, counted(0, 0, 2)), 2, ("warning", C),
        "A quota refused 2 submissions, outputs or checkpoints", one(C, "cadre_storage_refusals_total", {}, steady(2))),
    "CadreDiskNearlyFull": (
        one(W, "cadre_worker_disk_free_bytes", {}, steady(5e8)) + one(C, "cadre_disk_free_bytes", {}, steady(5e9)), 1,
        ("critical", W), "Less than 1 GB is free on the state disk of worker:9465",
        one(W, "cadre_worker_disk_free_bytes", {}, steady(1e9)) + one(C, "cadre_disk_free_bytes", {}, steady(1e9))),
    "CadreLogsDropped": (
        one(W, "cadre_worker_log_dropped_bytes_total", {}, counted(0, 0, 4096)), 2, ("warning", W),
        "The worker worker:9465 dropped output of its tasks",
        one(W, "cadre_worker_log_dropped_bytes_total", {}, steady(4096))),
    "CadreFewDescriptors": (
        one(C, "process_open_fds", {}, steady(820)) + one(C, "process_max_fds", {}, steady(1024)), 5, ("warning", C),
        "coordinator:9464 has opened more than 80% of its file descriptors",
        one(C, "process_open_fds", {}, steady(819)) + one(C, "process_max_fds", {}, steady(1024))),
    "CadreCertificateExpires": (
        one(C, "cadre_tls_certificate_expiry_timestamp_seconds", {}, steady(10 * 86400)), 0, ("warning", C),
        "The TLS certificate of coordinator:9464, or its CA, expires in 10d 0h 0m 0s",
        one(C, "cadre_tls_certificate_expiry_timestamp_seconds", {}, steady(15 * 86400))),
    "CadreDiskFull": (
        one(C, "cadre_disk_full", {}, [0, *steady(1)]), 1, ("critical", C),
        "The coordinator coordinator:9464 takes no work: its disk is full", one(C, "cadre_disk_full", {}, steady(0))),
    "CadreContentsAway": (
        one(C, "cadre_contents_away", {}, [0, *steady(1)]), 2, ("critical", C),
        "The object store of coordinator:9464 does not answer, or refuses it: uploads, logs and outputs wait",
        one(C, "cadre_contents_away", {}, [0, 1, *steady(0)])),
}


def test_alert_rules():
    for words in (["config", "prometheus.yml"], ["rules", "cadre-rules.yml"]):
        done = subprocess.run(["promtool", "check", *words], cwd=FOLDER, capture_output=True, check=False)
        check_equal(done.returncode, 0, f"promtool check {words}: {done.stdout + done.stderr}")


def test_each_alert_has_a_sentence_in_the_readme():
    with open(os.path.join(FOLDER, "README.md"), encoding="utf-8") as file:
        check_equal(re.findall(r"^\| (Cadre\w+) \|", file.read(), re.M), list(alerts()), "alerts that are explained")


def test_each_alert_fires():
    """At its time, not a minute before, with its sentence; and not where what it is about has not happened."""
    check_equal(sorted(CASES), sorted(alerts()), "alerts that are tried")
    tests = []
    for alert, (fires, minute, (severity, job, *more), summary, quiet) in CASES.items():
        firing = {"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": [{
            "exp_labels": {"severity": severity, **dict(zip(more[::2], more[1::2])),
                           **({"job": job, "instance": dict(zip((C, W), ("coordinator:9464", "worker:9465")))[job]}
                              if job else {})},
            "exp_annotations": {"summary": summary}}]}
        never = [{"eval_time": f"{at}m", "alertname": alert, "exp_alerts": []} for at in (minute, 20)]
        before = [{"eval_time": f"{minute - 1}m", "alertname": alert, "exp_alerts": []}] if minute else []
        tests.append({"name": f"{alert} fires", "input_series": [series(*item) for item in fires],
                      "alert_rule_test": [*before, firing]})
        tests.append({"name": f"{alert} does not", "input_series": [series(*item) for item in quiet],
                      "alert_rule_test": never})
    check_equal(evaluate(*tests), "", "what promtool says")


def test_a_rule_that_is_wrong_is_found():
    """The checks of this file can fail."""
    fires, minute, *_ = CASES["CadreDiskFull"]
    test = {"input_series": [series(*item) for item in fires],
            "alert_rule_test": [{"eval_time": f"{minute}m", "alertname": "CadreDiskFull", "exp_alerts": []}]}
    check("CadreDiskFull" in evaluate(test), "an alert that was not expected")


# --- over pages of real daemons ---

def page(daemon):
    return ask(daemon, "/metrics")[1]


def seen(cluster, *workers):
    """What a scrape sees now."""
    found = {C: page(cluster.coordinator) if cluster.coordinator.runs() else None}
    return found | {W: page(worker) for worker in workers}


def test_workers_that_do_not_come():
    with Cluster(workers=1, coordinator=HTTP, worker=HTTP, start=False) as cluster:
        cluster.coordinator.start()
        check_fires("CadreNoWorkers", Scrapes().add(seen(cluster)), 3)
        up = Scrapes().add(seen(cluster))
        worker = cluster.workers[0].start()
        cluster.coordinator.stop()
        wait_for("it says that it has not joined", lambda: ask(worker, "/healthz")[0] == 503)
        up.add(seen(cluster, worker))
        check_fires("CadreCoordinatorDown", up, 3)
        check_fires("CadreWorkerNotJoined", up, 4)


def test_a_worker_that_is_lost():
    timing = [*HTTP, "--lease", scaled("500ms")]
    with Cluster(workers=1, coordinator=timing, worker=["--heartbeat", "100ms"]) as cluster:
        scrapes = Scrapes().add(seen(cluster))
        cluster.workers[0].kill()
        wait_for("it is lost", lambda: re.search(r"^cadre_workers_lost_total 1$", page(cluster.coordinator), re.M))
        check_fires("CadreWorkerLost", scrapes.add(seen(cluster)), 1)
        cluster.workers[0].start()  # it clears what its earlier run left


def test_a_job_that_stands_still():
    with Cluster(workers=1, coordinator=HTTP) as cluster:
        client = cluster.client
        job = client.submit(trainer(), arguments=["1000", "0", "5", "hang"])
        wait_for("it hangs", lambda: client.get(job).position == 5)
        check_fires("CadreStepsStopped", Scrapes().add(seen(cluster)), 12)
        client.cancel(job)
        client.wait(job)


def test_jobs_that_fail():
    with Cluster(workers=1, coordinator=HTTP) as cluster:
        scrapes = Scrapes().add(seen(cluster))
        for _ in range(4):
            check_equal(cluster.client.run(script("exit 3")).state, FAILED, "its end")
        check_fires("CadreJobsFail", scrapes.add(seen(cluster)), 1)
        info = cluster.client.run(trainer(), max_restarts=6, arguments=["1000", "0", "5", "exit"])
        check_equal((info.state, info.restarts), (FAILED, 6), "the end of one that is started again and again")
        check_fires("CadreTasksRestart", scrapes.add(seen(cluster)), 2)


def test_quotas_and_limits():
    with Cluster(workers=1, coordinator=[*HTTP, "--storage-quota", "64000"],
                 worker=[*HTTP, "--log-limit", "4KiB"]) as cluster:
        worker = cluster.workers[0]
        scrapes = Scrapes().add(seen(cluster, worker))
        refused = refusal(cluster.client.jobs.PutBlob, blob_chunks(b"x" * 200000))
        check_equal(refused[0], "RESOURCE_EXHAUSTED", "a file that never fits")
        cluster.client.run(script("head -c 100000 /dev/zero | tr '\\0' x"))
        check_fires("CadreStorageRefuses", scrapes.add(seen(cluster, worker)), 1)
        check_fires("CadreLogsDropped", scrapes, 1)
        cluster.client.run(script('head -c 58000 /dev/zero >"$CADRE_OUTPUT_DIR/large"'))
        check_fires("CadreStorageNearlyFull", scrapes.add(seen(cluster, worker)), 8)


def test_a_disk_that_is_full_and_descriptors_that_run_out():
    with Cluster(workers=0, coordinator=[*HTTP, "--disk-reserve", "1000000GiB"]) as cluster:
        scrapes = Scrapes().add(seen(cluster))
        check_fires("CadreDiskFull", scrapes, 1)
        pid = cluster.coordinator.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{pid}/fd"))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + 4, before[1]))  # a connection, and what reads the page
        scrapes.add(seen(cluster))
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        check_fires("CadreFewDescriptors", scrapes, 8)


def test_a_certificate_that_expires():
    with Cluster(workers=0, start=False) as cluster:
        tls = Pki(cluster.folder).issue("coordinator", "main", "--days", "3")
        cluster.coordinator.argv += [*HTTP, "--tls-dir", tls]
        cluster.coordinator.start()
        found = page(cluster.coordinator)
        expiry = float(re.search(r"^cadre_tls_certificate_expiry_timestamp_seconds (\S+)$", found, re.M)[1])
        # In promtool's tests time begins at 0, so the page is read as if it had been taken now.
        shown = found.replace(f"{expiry:.0f}", f"{expiry - os.stat(tls + '/cert.pem').st_mtime:.0f}")
        check(shown != found, f"the expiry {expiry} is shown otherwise")
        check_fires("CadreCertificateExpires", Scrapes().add({C: shown}), 1)
        cluster.coordinator.signal(signal.SIGTERM)
        cluster.coordinator.wait_end()


if __name__ == "__main__":
    check(os.path.exists(RULES), RULES)
    run(globals())
