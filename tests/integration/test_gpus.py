# SPDX-License-Identifier: Apache-2.0
"""GPUs as operators see them: what a worker tells of its host, which task gets which, what a broken driver does. A
script plays cadre-devices, so no GPU is needed, nor proved to work."""
import json
import os
import subprocess

from client import QUEUED, SUCCEEDED
from cluster import Cluster, Daemon, clean_environment, program, script
from exposition import Metrics
from pages import ask
from testing import HANG_S, check, check_equal, check_in, run, wait_for

GIB = 1 << 30
# Tells what it was given, and runs until the file named by its first argument is there.
HOLDER = script('echo "gpus=$CUDA_VISIBLE_DEVICES devices=$CADRE_DEVICES reason=$CADRE_DEVICES_REASON"\n'
                'while [ ! -e "$1" ]; do sleep 0.02; done')


def report(count, **more):
    devices = [{"name": "Played GPU", "uuid": f"GPU-{i}", "bus": f"0000:{i + 1:02x}:00.0", "memory_bytes": 141 * GIB,
                "compute_major": 9, "compute_minor": 0} for i in range(count)]
    return {"devices": devices, "driver": "580.1 (CUDA 13.0)" if count else "", "runtime": "CUDA 13.0", "nccl": 22809,
            "reason": "" if count else "the played host has none", **more}


class Host:
    """A worker of a host whose cadre-devices is a script."""

    def __init__(self, cluster, name, slots, shell, options=(), visible=None, use="exit 9"):
        self.cluster = cluster
        self.use = use  # what it does when it is asked for the use of GPUs: the text of a shell script
        self.folder = os.path.join(cluster.folder, f"{name}.bin")
        os.makedirs(self.folder)
        self.probe = os.path.join(self.folder, "cadre-devices")
        self.answer(shell)
        variables = [f"CADRE_DEVICES_PROGRAM={self.probe}"]
        variables += [f"CUDA_VISIBLE_DEVICES={visible}"] if visible is not None else []
        self.daemon = Daemon(cluster, name, [
            "env", *variables, program("cadre-worker"), "--coordinator", cluster.address, "--name", name,
            "--slots", str(slots), "--grace", "1s", *options])
        cluster.workers.append(self.daemon)
        self.daemon.start()

    def answer(self, shell):
        """What it says from the daemon's next start on: a report, or the text of a shell script."""
        if isinstance(shell, dict):
            shell = f"cat <<'END'\n{json.dumps(shell)}\nEND"
        with open(self.probe, "wb") as file:
            file.write(script(f'if [ "$1" = --use ]; then\n{self.use}\nexit\nfi\n{shell}'))
        os.chmod(self.folder, 0o755)
        os.chmod(self.probe, 0o755)

    def restart(self):
        self.daemon.stop()
        self.daemon.start()


def worker(cluster, name):
    return next(worker for worker in cluster.client.workers() if worker.name == name)


def cadre(cluster, *arguments, status=0):
    done = cluster.cadre(*arguments, status=status)
    return (done.stdout + done.stderr).decode()


class Gate:
    """What a HOLDER waits for; any user's task may look at it."""

    def __init__(self, cluster, name):
        self.path = os.path.join(cluster.folder, f"{name}.gate")

    def open(self):
        with open(self.path, "wb"):
            pass


def gpus_of(client, job, slot=0):
    """The line of the task, as soon as it is there."""
    def line():
        return next((said for said in client.log(job, slot).decode().splitlines() if "gpus=" in said), None)
    return wait_for(f"job {job} tells its GPUs", line)


def test_devices_are_shown():
    with Cluster(workers=1) as cluster:
        Host(cluster, "gpus", 4, report(8))
        info = worker(cluster, "gpus")
        check_equal((info.gpus.usable, len(info.gpus.devices), info.gpus.nccl), (8, 8, 22809), "what it has")
        check_equal(info.gpus.devices[7].uuid, "GPU-7", "the last")
        check_equal(worker(cluster, "w0").gpus.usable, 0, "the other one's")
        check_in("8 x Played GPU 141.0 GiB", cadre(cluster, "workers"), "the table")
        text = cadre(cluster, "workers", "gpus")
        for part in ("580.1 (CUDA 13.0)", "2.28.9", "GPU-7", "0000:08:00.0", "9.0"):
            check_in(part, text, "one worker")
        shown = json.loads(cadre(cluster, "workers", "gpus", "--json"))["workers"]
        check_equal([gpu["uuid"] for gpu in shown[0]["gpus"]], [f"GPU-{i}" for i in range(8)], "as JSON")
        check_in("no worker is named absent", cadre(cluster, "workers", "absent", status=1), "what it says")
        check_in('gpus="8 x Played GPU"', cluster.workers[-1].log(), "the daemon's log")


def test_tasks_have_gpus_of_their_own():
    with Cluster(workers=0) as cluster:
        Host(cluster, "gpus", 2, report(5), options=["--gpus", "4"])
        client = cluster.client
        gates = [Gate(cluster, name) for name in "abc"]
        jobs = [client.submit(HOLDER, arguments=[gate.path]) for gate in gates[:2]]
        lines = {gpus_of(client, job) for job in jobs}
        check_equal(lines, {"gpus=GPU-0,GPU-1 devices= reason=", "gpus=GPU-2,GPU-3 devices= reason="}, "both at once")
        first = gpus_of(client, jobs[0])
        gates[0].open()
        check_equal(client.wait(jobs[0]).state, SUCCEEDED, "the first")
        third = client.submit(HOLDER, arguments=[gates[2].path])
        check_equal(gpus_of(client, third), first, "the next one has those of the one that ended")
        for gate in gates:
            gate.open()
        for job in (jobs[1], third):
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")
        check_in("--gpus 4 leaves it out", cadre(cluster, "workers", "gpus"), "why the fifth is not used")


def test_jobs_that_ask_for_gpus():
    with Cluster(workers=1, slots=4) as cluster:
        host = Host(cluster, "gpus", 2, report(2))
        client = cluster.client
        gate = Gate(cluster, "gate")
        large = client.submit(script("exit 0"), gpus=2)
        check_equal(client.get(large).message, "waits for more workers: it asks for 1 slot with 2 GPUs, the cluster "
                    "has none such among 6 slots", "what no worker has")
        both = client.submit(HOLDER, arguments=[gate.path], workers=2, gpus=1)
        check_equal({task.worker for task in client.wait_running(both).tasks}, {"gpus"}, "where it runs")
        check_equal({gpus_of(client, both, slot).split()[0] for slot in (0, 1)},
                    {"gpus=GPU-0", "gpus=GPU-1"}, "with what")
        cadre(cluster, "submit", "--gpus", "1", "--detach", "/bin/true")
        waits = both + 1
        check_equal((client.get(waits).state, client.get(waits).message),
                    (QUEUED, "waits for 1 free slot with 1 GPU, 0 of 2 are free"), "the next one")
        gate.open()
        for job in (both, waits):
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")
        host.answer(report(4))  # a start later there are two for each slot
        host.restart()
        check_equal(client.wait(large).state, SUCCEEDED, "the large one")


def test_more_slots_than_gpus():
    with Cluster(workers=0) as cluster:
        Host(cluster, "few", 3, report(1))
        client = cluster.client
        gate = Gate(cluster, "gate")
        job = client.submit(HOLDER, arguments=[gate.path], workers=3)
        check_equal({gpus_of(client, job, slot) for slot in range(3)},
                    {"gpus=GPU-0 devices= reason="}, "all have the one")
        gate.open()
        client.wait(job)
        check_in("3 slots share 1 GPU", cadre(cluster, "workers"), "the warning")


def tells_none(cluster, name, reason):
    """Tasks run all the same, and get the reason for the CPU."""
    client = cluster.client
    info = worker(cluster, name)
    check_equal(info.gpus.usable, 0, "what it offers")
    check_in(reason, info.gpus.reason, "what it says")
    job = client.submit(script('echo "gpus=$CUDA_VISIBLE_DEVICES devices=$CADRE_DEVICES $CADRE_DEVICES_REASON"'))
    check_equal(client.wait(job).state, SUCCEEDED, "the job")
    check_in("gpus= devices=cpu", gpus_of(client, job), "what it was given")
    check_in(reason, gpus_of(client, job), "and why")


def test_a_broken_probe_is_a_reason():
    with Cluster(workers=0) as cluster:
        host = Host(cluster, "host", 1, "echo asking >&2; exec sleep 600", options=["--gpu-timeout", "300ms"])
        tells_none(cluster, "host", "did not end within 0.3 s: asking")
        for shell, reason in (("kill -ABRT $$", "was killed by signal 6"), ("echo none; exit 0", "cannot be read"),
                              ("echo broken driver >&2; exit 4", "ended with status 4: broken driver"),
                              (report(0), "the played host has none")):
            host.answer(shell)
            host.restart()
            tells_none(cluster, "host", reason)
        host.answer(report(1))
        host.restart()
        check_equal(worker(cluster, "host").gpus.usable, 1, "once it works again")
    with Cluster(workers=0) as cluster:
        Host(cluster, "host", 1, "exit 1", options=["--gpus", "none"])
        tells_none(cluster, "host", "the option --gpus none")


def usage_of(cluster, job):
    """What `cadre job --json` says of its first task: percent and bytes, each None where it is not known."""
    info = json.loads(cadre(cluster, "job", str(job), "--json"))
    usage = info["tasks"][0]["usage"]
    return info["tasks"][0]["worker"], usage["gpu_percent"], usage["gpu_memory_bytes"]


def until_used(cluster, job, percent, memory_bytes):
    wait_for(f"the use of job {job} is {percent}, {memory_bytes}",
             lambda: usage_of(cluster, job)[1:] == (percent, memory_bytes))


def asked_devices(host):
    """Arguments of the children of the host's daemon that answer for the use of GPUs."""
    children = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as stat, open(f"/proc/{entry}/cmdline", "rb") as command:
                parent, arguments = stat.read().rsplit(")", 1)[1].split()[1], command.read().decode().split("\0")
        except OSError:  # it is no process, or ended
            continue
        if parent == str(host.daemon.process.pid) and "--use" in arguments:
            children.append(arguments[arguments.index("--use") + 1:-1])
    return children


def test_the_use_of_gpus_is_shown():
    with Cluster(workers=0) as cluster:
        host = Host(cluster, "gpus", 2, report(4), options=["--http", "127.0.0.1:0"],
                    use='while read -r line; do echo "97,1000 20,24 -,7 60,11"; done')
        client = cluster.client
        gates = [Gate(cluster, name) for name in "ab"]
        idle = json.loads(cadre(cluster, "workers", "--json"))["workers"][0]["usage"]
        check_equal((idle["gpu_percent"], idle["gpu_memory_bytes"]), (None, None), "no child is asked without a task")
        check_equal(asked_devices(host), [], "no child")
        first = client.submit(HOLDER, arguments=[gates[0].path])
        check_equal(gpus_of(client, first).split()[0], "gpus=GPU-0,GPU-1", "what it has")
        until_used(cluster, first, 59, 1024)  # the mean, rounded, and the sum
        check_equal(asked_devices(host), [["--", "GPU-0", "GPU-1", "GPU-2", "GPU-3"]], "one child")
        second = client.submit(HOLDER, arguments=[gates[1].path])
        until_used(cluster, second, None, 18)  # of GPU-2 no percent is known
        whole = json.loads(cadre(cluster, "workers", "--json"))["workers"][0]["usage"]
        check_equal((whole["gpu_percent"], whole["gpu_memory_bytes"]), (None, 1042), "the host's")
        top = json.loads(cadre(cluster, "top", "--once", "--json"))
        used = {task["usage"]["gpu_percent"] for job in top["jobs"] for task in job["tasks"]}
        check_equal(used, {59, None}, "cadre top")
        check_in("59% 1.0 KiB", cadre(cluster, "job", str(first)), "for people")
        check("4 x Played GPU 141.0 GiB  " in cadre(cluster, "workers"), "no percent where one is not known")
        metrics = Metrics(ask(host.daemon, "/metrics")[1])
        of_task = (f"job={first}", "task=0")
        check_equal((metrics["cadre_worker_task_gpu_busy_ratio", *of_task],
                     metrics["cadre_worker_task_gpu_memory_bytes", *of_task]), (0.59, 1024), "for Prometheus")
        check_equal(metrics["cadre_worker_host_gpu_memory_used_bytes"], 1042, "the host's")
        check(("cadre_worker_host_gpu_busy_ratio",) not in metrics.values, "the host's percent is not known")
        for gate in gates:
            gate.open()
        for job in (first, second):
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")
        wait_for("the child ends with the last task that has a GPU", lambda: not asked_devices(host))
        check("is not measured" not in host.daemon.log(), host.daemon.log())


def test_use_that_is_not_answered():
    """Garbage, too much, silence, death: what is not known is null, tasks run on, and the values come back."""
    broken = {"garbage": "echo Driver/library version mismatch", "flood": "exec yes 9,9", "silence": "exec sleep 600",
              "death": "exit 3", "slow": "sleep 0.5; echo 50,7"}
    with Cluster(workers=0) as cluster:
        client = cluster.client
        flag = os.path.join(cluster.folder, "broken")
        gate = Gate(cluster, "gate")
        hosts = [Host(cluster, name, 1, report(1), options=["--gpu-timeout", "5s"], use=(
            f"while read -r line; do if [ -e {flag} ]; then {answer}; else echo 97,1000; fi; done"))
            for name, answer in broken.items()]
        jobs = [client.submit(HOLDER, arguments=[gate.path], gpus=1) for _ in hosts]
        for job in jobs:
            until_used(cluster, job, 97, 1000)
        check_in("1 x Played GPU 141.0 GiB, 97%", cadre(cluster, "workers"), "the host's, for people")
        job_on = {usage_of(cluster, job)[0]: job for job in jobs}
        check_equal(sorted(job_on), sorted(broken), "a job on each")
        with open(flag, "wb"):
            pass
        until_used(cluster, job_on["slow"], 50, 7)
        for name in ("garbage", "flood", "silence", "death"):
            until_used(cluster, job_on[name], None, None)
        for worker_info in client.workers():
            check(worker_info.connected, f"{worker_info.name} sends its heartbeats")
        os.unlink(flag)
        for job in jobs:
            until_used(cluster, job, 97, 1000)
        reasons = {"garbage": "cannot be read", "flood": "", "silence": "does not answer within --gpu-timeout",
                   "death": "has ended, or closed its output"}
        for host in hosts:
            logged = "the use of GPUs is not measured" in host.daemon.log()
            check_equal(logged, host.daemon.name in reasons, host.daemon.log())
            check_in(reasons.get(host.daemon.name, ""), host.daemon.log(), host.daemon.name)
        gate.open()
        for job in jobs:
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")


def test_local_tasks_share_out_too():
    with Cluster(workers=0, start=False) as cluster:
        folder = os.path.join(cluster.folder, "local")
        os.makedirs(folder)
        probe = os.path.join(folder, "cadre-devices")
        with open(probe, "wb") as file:
            file.write(script(f"cat <<'END'\n{json.dumps(report(2))}\nEND"))
        os.chmod(probe, 0o755)

        def tasks(*options):
            done = subprocess.run(
                [program("cadre"), "run", *options, "sh", "--", "-c", 'echo "gpus=$CUDA_VISIBLE_DEVICES"'],
                cwd=folder, env={**clean_environment(), "CADRE_DEVICES_PROGRAM": probe}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=HANG_S, check=False)
            return done.returncode, done.stdout.decode()

        code, text = tasks("--tasks", "2")
        check_equal((code, sorted(line.split("gpus=")[1] for line in text.splitlines())), (0, ["GPU-0", "GPU-1"]), text)
        check_equal(tasks(), (0, "gpus=GPU-0,GPU-1\n"), "one task has both")
        check_equal(tasks("--gpus", "1"), (0, "gpus=GPU-0\n"), "or as many as it is to have")
        check_equal(tasks("--gpus", "none"), (0, "gpus=\n"), "or none")
        code, text = tasks("--gpus", "3")
        check(code != 0, text)
        check_in("--gpus 3: this host offers 2", text, "more than there are")


if __name__ == "__main__":
    run(globals())
