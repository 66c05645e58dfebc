# SPDX-License-Identifier: Apache-2.0
"""For how long a job stands when something of it is killed: from the kill to the next step that is applied."""
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time

from driver import amount, programs
from driver.samples import percent, print_table, shown
from recovery import goodput
from recovery.steady import DEADLINE_S, STEP_US, Steps, submit, whole

TITLE = "how long a job stands after a kill -9, milliseconds: from the kill to the next applied step"
ELASTIC, FIXED, ALONE = "a task, 2 of 3 go on", "a task, 1 of 2 waits for it", "the only task, from a checkpoint"
STATE = "a task, with 64 MiB of state"
SILENT, COORDINATOR, TORCH = "a silent host, less the lease", "the coordinator", "torchrun: a task"
KILLS = amount.of(15, 1)
SILENT_HOSTS, COORDINATORS, TORCH_KILLS = amount.of((3, 5, 3), (1, 1, 1))
LEASE_S = 2


def distribution(values):
    values = sorted(values)
    return {"p50": statistics.median(values), "p99": values[min(len(values) - 1, int(len(values) * 0.99))],
            "worst": values[-1]}


def kill_tasks(workers, workers_min, slot, state_bytes=4096, **fields):
    from cluster import Cluster
    steps, stood = Steps(), []
    with Cluster(workers=workers, slots=1) as cluster:
        job = submit(cluster, steps, state_bytes, workers=workers, workers_min=workers_min, **fields)
        for _ in range(KILLS):
            info = whole(cluster, job, workers)
            steps.wait_more(time.monotonic_ns())
            info = cluster.client.get(job)
            killed_ns = time.monotonic_ns()
            os.kill(next(task.pid for task in info.tasks if task.slot == slot), signal.SIGKILL)
            steps.wait_more(killed_ns)
            cluster.client.watch_until(job, lambda now, then=info.generation: now.generation > then, "a plan",
                                       DEADLINE_S)
            whole(cluster, job, workers)
            stood.append(steps.stood_ms(killed_ns))
        cluster.client.cancel(job)
        cluster.client.wait(job)
    return distribution(stood)


def silent_host():
    """The worker and all its tasks and keepers stop at once, as a host does that loses its power: the lease has to
    lapse. In the end the host is back, with all of them."""
    from cluster import Cluster, processes_naming
    stood = []
    for _ in range(SILENT_HOSTS):
        steps = Steps()
        options = {"coordinator": ["--lease", f"{LEASE_S}s"], "worker": ["--heartbeat", "300ms"]}
        with Cluster(workers=3, slots=1, **options) as cluster:
            job = submit(cluster, steps, workers=3, workers_min=2)
            info = whole(cluster, job, 3)
            steps.wait_more(time.monotonic_ns())
            host = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
            killed_ns = time.monotonic_ns()
            pids = [host.process.pid, *processes_naming(f"CADRE_SOCKET={host.state}/")]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            steps.wait_more(killed_ns + LEASE_S * 500_000_000)
            stood.append(steps.stood_ms(killed_ns) - LEASE_S * 1000)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):  # the daemon, which is the first, ends its tasks
                    os.kill(pid, signal.SIGCONT)
            cluster.client.cancel(job)
            cluster.client.wait(job)
    return distribution(stood)


def kill_coordinator():
    from cluster import Cluster
    steps, stood = Steps(), []
    with Cluster(workers=2, slots=1) as cluster:
        job = submit(cluster, steps, workers=2)
        for _ in range(COORDINATORS):
            whole(cluster, job, 2)
            steps.wait_more(time.monotonic_ns(), 200)
            killed_ns = time.monotonic_ns()
            cluster.coordinator.kill()
            cluster.coordinator.start()
            cluster.new_client()
            cluster.clients.reverse()
            steps.wait_more(time.monotonic_ns(), 200)
            stood.append(steps.stood_ms(killed_ns))
        cluster.client.cancel(job)
        cluster.client.wait(job)
    return distribution(stood)


# Its defaults, 0 (none) and 3 (all), are lost in its parser from Python 3.11 on, where the members of a flag are those
# of one bit: it fails without a value of one bit for both.
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--redirects", "1", "--tee", "1"]


def torchrun():
    """Its own default of looking after the workers, and 0.1 s."""
    figures = {}
    for name, options in (("default", []), ("p50", ["--monitor_interval", "0.1"])):
        stood = []
        steps = Steps()
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_steady.py")
        launcher = subprocess.Popen(
            [programs.DEBIAN_PYTHON, *TORCHRUN, "--log_dir", steps.folder, "--nproc_per_node", "2", "--max_restarts",
             "100", *options, script, steps.folder, "4096", str(STEP_US)], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            for _ in range(TORCH_KILLS):
                steps.wait_more(time.monotonic_ns())
                with open(f"{steps.folder}/pid-1", encoding="ascii") as file:
                    pid = int(file.read())
                killed_ns = time.monotonic_ns()
                os.kill(pid, signal.SIGKILL)
                steps.wait_more(killed_ns + 200_000_000)
                stood.append(steps.stood_ms(killed_ns))
        finally:
            launcher.terminate()
            launcher.wait()
        figures[name] = statistics.median(stood)
        figures["worst"] = max(stood)
    return figures


def absent_torchrun():
    """None, or why it cannot be compared with."""
    if programs.absent_torch() is not None:
        return programs.absent_torch()
    done = subprocess.run([programs.DEBIAN_PYTHON, *TORCHRUN, "--no_python", "true"], capture_output=True, text=True,
                          timeout=amount.deadline_s(60), check=False)
    why = (done.stderr.strip() or f"it ended with {done.returncode}").splitlines()[-1]
    return None if done.returncode == 0 else f"torchrun does not run here: {why}"


def run_round(samples):
    samples.measure(ELASTIC, "", lambda: kill_tasks(3, 2, 1))
    samples.measure(FIXED, "", lambda: kill_tasks(2, 2, 1))
    samples.measure(STATE, "", lambda: kill_tasks(2, 2, 1, 64 << 20))
    samples.measure(ALONE, "", lambda: kill_tasks(1, 1, 0, checkpoint_every=100))
    samples.measure(SILENT, "", silent_host)
    samples.measure(COORDINATOR, "", kill_coordinator)
    absent = absent_torchrun()
    if absent is None:
        samples.measure(TORCH, "", torchrun)
    else:
        samples.mark_absent(TORCH, absent)
    goodput.run_round(samples)


def report(samples):
    goals = {ELASTIC: "300 / 1000", FIXED: "300 / 1000", SILENT: "300", COORDINATOR: "2000"}
    rows = [row for row in (ELASTIC, FIXED, STATE, ALONE, SILENT, COORDINATOR, TORCH) if row not in samples.absent]
    print_table(["killed", "p50", "p99", "worst", "goal", "others"],
                [[row, *(shown(samples.median(row, "", name)) for name in ("p50", "p99", "worst")),
                  goals.get(row, ""), percent(samples.disturbed(row))] for row in rows])
    default = samples.median(TORCH, "", "default")
    if default is not None:
        print(f"  torchrun with its default interval: {shown(default)} ms; it restarts all tasks and keeps no state\n")
    goodput.report(samples)


if __name__ == "__main__":
    sys.exit("run it by tests/bench/run recovery")
