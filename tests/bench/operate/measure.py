# SPDX-License-Identifier: Apache-2.0
"""A coordinator under load: N workers' streams on one job, and thousands of jobs in its queue."""
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown
from operate import followers, reconnect

TITLE = "a coordinator with N workers on one job, each a stream; and with thousands of jobs in its queue"
WORKERS = amount.of({100: 500, 300: 500, 1000: 500}, {20: 20})
TLS_ROUNDS = 200
FLOOR = "TCP + epoll (floor)"
SOCKET, TCP = "cadre, Unix socket", "cadre, TCP"
EACH, TLS = "cadre, TCP, a connection each", "cadre, TLS, a connection each"
JOIN_S = amount.deadline_s(90)  # who has not joined then does not
REPORT = "1s"  # how long a worker whose stream broke is waited for
JOBS, CLIENTS = amount.of((10000, 8), (100, 2))
ROWS = (("to join all, ms", "join_ms"), ("resident at a worker, KiB", "resident_worker_kib"),
        ("release p50, us", "release_p50_us"), ("release p99, us", "release_p99_us"),
        ("a step, us", "step_us"), ("CPU of a step, us", "cpu_step_us"),
        ("CPU when idle, ms/s", "cpu_idle_ms_per_s"), ("a tenth vanishes, ms", "regroup_ms"),
        ("CPU of that, ms", "regroup_cpu_ms"), ("all join again after kill -9, ms", "again_ms"))


def floor(workers, rounds):
    return programs.figures(programs.run(programs.program("bench_floor_release"), str(workers), str(rounds)))


def end(cluster):
    """The job's tasks never existed: an orderly end of the daemon would wait for them."""
    cluster.coordinator.process.send_signal(signal.SIGKILL)
    cluster.coordinator.process.wait()
    cluster.sweep()


def issue(folder, workers):
    """Certificates of the coordinator and of each worker, as a cluster has them."""
    from pki import Pki
    certificates = os.path.join(folder, "certificates")
    os.mkdir(certificates)
    pki = Pki(folder)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: pki.issue("worker", f"w{i}", into=os.path.join(certificates, f"w{i}")), range(workers)))
    return pki.issue("coordinator", "main"), certificates


def cadre(workers, rounds, row):
    with tempfile.TemporaryDirectory(prefix="cadre-bench-pki-") as folder:
        main, certificates = issue(folder, workers) if row == TLS else (None, None)
        found = steps(workers, rounds, row, main, certificates)
        if row in (EACH, TLS):
            found.update(joins_again(workers, row, main, certificates))
        return found


@contextlib.contextmanager
def coordinator(workers, row, main):
    """The cluster, and the address that the workers of this row use."""
    from cluster import Cluster
    limits = ["--workers-max", str(workers), "--tasks-max", str(workers), "--form-timeout", "300s", "--lease", "300s",
              "--report-timeout", REPORT, "--log-level", "error"]
    address = None if row == SOCKET else f"127.0.0.1:{programs.free_port()}"
    limits += ["--listen", address] if address else []
    limits += ["--tls-dir", main] if main else []
    with Cluster(workers=0, coordinator=limits) as cluster:
        yield cluster, address or cluster.address


@contextlib.contextmanager
def agents_of(cluster, address, workers, rounds, row, certificates):
    argv = [programs.program("bench_operate_agents"), address, str(workers), str(rounds),
            str(cluster.coordinator.process.pid)] + {EACH: ["each"], TLS: [certificates]}.get(row, [])
    agents = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield agents
    finally:
        agents.kill()
        agents.communicate()


def until_ready(agents, workers, join_s=JOIN_S):
    """What they print until all have joined."""
    late = threading.Event()
    limit = threading.Timer(join_s, lambda: (late.set(), agents.kill()))
    limit.start()
    said = ""
    while not said.endswith("ready\n"):
        line = agents.stdout.readline()
        if not line:
            break
        said += line
    limit.cancel()
    if late.is_set():
        raise RuntimeError(f"{workers} workers had not all joined after {join_s} s")
    return said


def steps(workers, rounds, row, main, certificates):
    with coordinator(workers, row, main) as (cluster, address):
        with agents_of(cluster, address, workers, rounds, row, certificates) as agents:
            said = until_ready(agents, workers)
            least = workers - workers // 10
            cluster.cadre("submit", "--detach", "--workers", f"{least}:{workers}", "/bin/true")
            text, errors = agents.communicate(timeout=amount.deadline_s(300))
        if agents.returncode != 0:
            raise RuntimeError(errors.strip()[-500:])
        end(cluster)
    found = programs.figures(said + text)
    found["resident_worker_kib"] = (found["resident_running_kib"] - found["resident_empty_kib"]) / workers
    return found


def joins_again(workers, row, main, certificates):
    """The coordinator is killed and started; from its start until all are back."""
    with coordinator(workers, row, main) as (cluster, address):
        with agents_of(cluster, address, workers, 0, row, certificates) as agents:
            until_ready(agents, workers)
            cluster.coordinator.kill()
            return {"again_ms": took(lambda: (cluster.coordinator.start(), until_ready(agents, workers))) * 1000}


def took(function):
    began = time.monotonic()
    function()
    return time.monotonic() - began


def in_parallel(clients, items, call):
    with concurrent.futures.ThreadPoolExecutor(len(clients)) as pool:
        parts = [items[i::len(clients)] for i in range(len(clients))]
        return sum(pool.map(lambda pair: [call(pair[0], item) for item in pair[1]], zip(clients, parts)), [])


def queue(jobs):
    """Submitted by several clients at once, listed, the coordinator killed and started again, cancelled."""
    from client import common_pb2, job_file, jobs_pb2
    from cluster import Cluster, script
    from testing import resident_mib
    limits = ["--jobs-max", str(jobs), "--tasks-max", str(jobs), "--log-level", "error"]
    with Cluster(workers=0, coordinator=limits) as cluster:
        program = script("exit 0")
        cluster.client.upload([program])
        spec = common_pb2.JobSpec(name="job", program=job_file("program", program, True), workers=1)
        clients = [cluster.new_client() for _ in range(CLIENTS)]
        empty = resident_mib(cluster.coordinator.process.pid)
        ids = []
        found = {"submit_per_s": jobs / took(
            lambda: ids.extend(in_parallel(clients, [spec] * jobs, lambda c, s: c.jobs.Submit(s, timeout=60).id)))}
        found["job_kib"] = (resident_mib(cluster.coordinator.process.pid) - empty) * 1024 / jobs
        found["list_ms"] = took(lambda: cluster.cadre("jobs")) * 1000
        found["beyond"] = 0 if refused(cluster, spec) else 1
        cluster.coordinator.kill()
        found["restart_ms"] = took(cluster.coordinator.start) * 1000
        clients = [cluster.new_client() for _ in range(CLIENTS)]
        found["cancel_per_s"] = jobs / took(lambda: in_parallel(
            clients, ids, lambda c, i: c.jobs.Cancel(jobs_pb2.JobRequest(id=i), timeout=60).id))
        cluster.coordinator.stop()
    return found


def refused(cluster, spec):
    from client import refusal
    return refusal(cluster.client.jobs.Submit, spec)[0] == "RESOURCE_EXHAUSTED"


def run_round(samples):
    for workers, rounds in WORKERS.items():
        samples.measure(FLOOR, workers, lambda n=workers, r=rounds: floor(n, r))
        for row in (SOCKET, TCP, EACH, TLS):
            count = min(rounds, TLS_ROUNDS) if row in (EACH, TLS) else rounds
            samples.measure(row, workers, lambda n=workers, r=count, row=row: cadre(n, r, row))
    for share in reconnect.SHARES if reconnect.parent() else ():
        samples.measure("join", share, lambda s=share: reconnect.join_ms(s))
    for jobs in (JOBS // 10, JOBS):
        samples.measure("queue", jobs, lambda n=jobs: queue(n))
    for case in followers.CASES:
        samples.measure("followers", case, lambda c=case: followers.measure(*c))


def beside_floor(samples, row, workers):
    release, least = samples.median(row, workers, "release_p50_us"), samples.median(FLOOR, workers, "last_us")
    return release / least if release is not None and least else None


def report(samples):
    head = ["", *(f"{n} workers" for n in WORKERS)]
    lines = [[FLOOR + ", release, us", *(shown(samples.median(FLOOR, n, "last_us")) for n in WORKERS)]]
    for row in (SOCKET, TCP, EACH, TLS):
        lines += [[f"{row}: {title}", *(shown(samples.median(row, n, name)) for n in WORKERS)] for title, name in ROWS]
        lines.append([f"{row}: release beside the floor", *(
            shown(beside_floor(samples, row, n)) for n in WORKERS)])
    lines.append(["others", *(percent(samples.disturbed(row)) for row in (FLOOR, SOCKET, TCP))])
    print_table(head, lines)
    print_table([f"{reconnect.WORKERS} join at once over TLS", *(f"{n} % of a CPU" for n in reconnect.SHARES)], [
        [title, *(shown(samples.median("join", n, name)) for n in reconnect.SHARES)] for title, name in (
            ("until all have, ms", "join_ms"), ("CPU of it, ms", "cpu_ms"), ("again after kill -9, ms", "again_ms"))])
    counts = (JOBS // 10, JOBS)
    print_table(["", *(f"{n} jobs queued" for n in counts)], [
        [title, *(shown(samples.median("queue", n, name)) for n in counts)] for title, name in (
            ("submissions/s", "submit_per_s"), ("cancels/s", "cancel_per_s"), ("`cadre jobs`, ms", "list_ms"),
            ("start again, ms", "restart_ms"), ("memory of a job, KiB", "job_kib"))])
    print_table(["a job of 2 tasks beside a log of 10 MiB/s that is followed by", *(
        followers.name(*case) for case in followers.CASES)], [
            [title, *(shown(samples.median("followers", case, name)) for case in followers.CASES)] for title, name in (
                ("steps/s", "steps_per_s"), ("CPU of the coordinator, ms/s", "cpu_ms_per_s"),
                ("its memory more, MiB", "grown_mib"))])
