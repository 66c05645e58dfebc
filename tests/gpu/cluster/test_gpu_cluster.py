# SPDX-License-Identifier: Apache-2.0
"""Jobs on GPUs under the real daemons, with the stand-in's GPUs and its NCCL: what they come to, whatever is killed. It
proves Cadre's logic, never CUDA or NCCL."""
import concurrent.futures
import json
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integration"))
from client import SUCCEEDED  # noqa: E402
from cluster import Cluster, Daemon, clean_environment, program, script  # noqa: E402
from learning import FAST, FAST_WORKER, tensors_of  # noqa: E402
from testing import SLOW, Failure, check, check_equal, check_in, run, skip, wait_for  # noqa: E402

LIB = os.environ.get("CADRE_TEST_LIB", "")
NVML = os.environ.get("CADRE_TEST_NVML", "")
PROGRAM = os.environ.get("CADRE_TEST_GPU_LEARNER", "")
PLUGIN = {"CADRE_PLUGIN": os.path.join(LIB, "libcadre-cuda-standin.so"),
          "CADRE_NCCL": os.path.join(LIB, "libnccl-standin.so")}
SAMPLES, BATCH, EPOCHS, WEIGHTS = 96, 12, 3, 8
STEPS = EPOCHS * SAMPLES // BATCH
GPUS = 8  # of the one host that all workers are on
UNCONNECTED = "the GPUs of this job are not connected"


class Host:
    """A worker that offers some of the stand-in's GPUs: those of the numbers in `gpus`."""

    def __init__(self, cluster, name, gpus, slots=1, options=(), **environment):
        variables = PLUGIN | {"CADRE_STANDIN_DEVICES": str(GPUS),
                              "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))} | environment
        self.name = name
        self.daemon = Daemon(cluster, name, [
            "env", *[f"{key}={value}" for key, value in variables.items()], program("cadre-worker"), "--coordinator",
            cluster.address, "--name", name, "--slots", str(slots), "--grace", "1s", *FAST_WORKER, *options])
        cluster.workers.append(self.daemon)
        self.daemon.start()


def cluster_of(coordinator=()):
    return Cluster(workers=0, coordinator=[*FAST, *coordinator])


class Job:
    """One of the program. Tasks get the stand-in's devices by the job's environment."""

    def __init__(self, cluster, *arguments, environment=(), **fields):
        self.cluster = cluster
        self.client = cluster.client
        with open(PROGRAM, "rb") as file:
            content = file.read()
        self.job = self.client.submit(content, arguments=arguments, name="gpu-learner",
                                      environment=[f"CADRE_STANDIN_DEVICES={GPUS}", *environment],
                                      **{"workers": 2, "max_restarts": 3, **fields})

    def until(self, condition, what):
        return self.client.watch_until(self.job, condition, what)

    def until_position(self, position):
        return self.until(lambda info: info.position >= position, f"position {position}")

    def text(self):
        return self.client.log(self.job).decode(errors="replace")

    def end(self):
        """The job ended well, and everything was applied exactly once, in the one order."""
        info = self.client.wait(self.job, 60)
        if info.state != SUCCEEDED:
            raise Failure(f"the job did not succeed: {info}\n{self.text()[-3000:]}")
        check_equal(info.position, STEPS, "steps")
        names = [path for path in self.client.outputs(self.job) if path.endswith(".safetensors")]
        newest = max(names, key=lambda path: int(path.rsplit("-", 1)[1].split(".")[0]))
        check_state(tensors_of(self.client.output(self.job, newest)))
        said = self.cluster.cadre("verify", str(self.job)).stdout.decode()
        check_in("exactly once", said, "cadre verify")
        return info

    def check_connected(self):
        text = self.text()
        check(UNCONNECTED not in text, text)
        check_in("GPUs saw", text, "what the tasks say")
        check("with 0 GPUs" not in text, text)

    def check_kept(self, before, dead, restarts=1):
        """Everybody but `dead` went on in his process; `dead` has another one."""
        info = self.end()
        check_equal(info.restarts, restarts, f"restarts of {info}")
        check(info.generation > 1, f"no new generation: {info}")
        lives = lives_of(info)
        for slot, incarnation in before.items():
            check((lives[slot] == incarnation) == (slot != dead), f"lives {lives}, and {before} before: {info}")
        return info


KNOWN = []


def check_state(state):
    """Bit by bit what the CPU comes to, in one process by hand."""
    if not KNOWN:
        with Cluster(workers=0, start=False) as cluster:
            KNOWN.append(alone(cluster.folder, PROGRAM, CADRE_DEVICES="cpu")[1])
            ids = sum(range(SAMPLES))
            check_equal(KNOWN[0]["count"], (EPOCHS,) * SAMPLES, "how often each sample was applied on the CPU")
            check_equal(KNOWN[0]["weights"], tuple(float(EPOCHS * ids * (i + 1)) for i in range(WEIGHTS)), "weights")
    for name in ("count", "order", "weights"):
        check_equal(state[name], KNOWN[0][name], name)


def alone(folder, *command, **environment):
    """What a command by hand printed, and the state that it left."""
    done = subprocess.run(command, cwd=folder, env=clean_environment() | {"CADRE_OUTPUT_DIR": folder} | environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
    text = done.stdout.decode(errors="replace")
    check_equal(done.returncode, 0, f"status of {command}: {text}")
    (path,) = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
               if name.endswith(".safetensors")]
    with open(path, "rb") as file:
        state = tensors_of(file.read())
    os.unlink(path)
    return text, state


def lives_of(info):
    return {task.slot: task.incarnation for task in info.tasks}


def killed_at(place, slot=1, step=9):
    return f"die={slot}:{step}:{place}"


# --- nothing happens ---

def test_a_job_on_all_gpus():
    with cluster_of() as cluster:
        for name, gpus in (("w0", (0, 1)), ("w1", (2, 3))):
            Host(cluster, name, gpus)
        table = cluster.cadre("workers").stdout.decode()
        check_in("2 GPUs", table, "cadre workers")
        shown = json.loads(cluster.cadre("workers", "w1", "--json").stdout)["workers"][0]
        check_equal(len([gpu for gpu in shown["gpus"] if not gpu.get("unused")]), 2, f"GPUs of {shown}")
        check_in("2.28", cluster.cadre("workers", "w1").stdout.decode(), "NCCL of one worker")
        job = Job(cluster)
        job.end()
        job.check_connected()
        check_equal(job.text().count("with 2 GPUs"), 2, job.text())


def test_a_task_is_killed_in_the_middle_of_a_collective():
    """The peers stand in a collective on their devices, as with NCCL, until they abort it."""
    with cluster_of() as cluster:
        for i in range(2):
            Host(cluster, f"w{i}", range(4 * i, 4 * i + 4), slots=4)
        deaths = (("collective", 1), ("collective", 0), ("buckets", 1), ("apply", 0))
        jobs = [Job(cluster, killed_at(place, slot=dead), "save=1", max_restarts=1) for place, dead in deaths]
        for job, (_, dead) in zip(jobs, deaths):
            job.check_kept({0: 1, 1: 2}, dead)
            job.check_connected()


def test_a_smaller_group_goes_on_and_grows_again():
    with cluster_of() as cluster:
        hosts = [Host(cluster, f"w{i}", (i,)) for i in range(3)]
        job = Job(cluster, "pace=30", workers=3, workers_min=1)
        info = job.until_position(3)
        before = lives_of(info)
        left = next(host for host in hosts if host.name == info.tasks[1].worker)
        left.daemon.kill()
        job.until(lambda info: info.roster == 2 and info.generation > 1, "two go on")
        left.daemon.start()
        job.until(lambda info: info.roster == 3, "three go on")
        job.check_kept(before, 1, restarts=0)
        job.check_connected()


def held_by(pid):
    """Descriptors and threads."""
    return [len(os.listdir(f"/proc/{pid}/{folder}")) for folder in ("fd", "task")]


def test_nothing_is_left_of_a_generation():
    with cluster_of() as cluster:
        Host(cluster, "w0", (0, 1), slots=2)
        job = Job(cluster, "epochs=100000", "pace=5", max_restarts=20)
        held = []
        generation = 0
        for _ in range(6):
            info = job.until(lambda info, least=generation: info.generation > least and info.roster == 2
                             and all(task.pid for task in info.tasks), "another generation")
            generation = info.generation
            job.until_position(info.position + 1)
            held.append(held_by(info.tasks[0].pid))
            os.kill(info.tasks[1].pid, signal.SIGKILL)
        check(held[-1][0] <= max(held[1][0], held[2][0]), f"descriptors and threads of a survivor: {held}")
        check(held[-1][1] <= max(held[1][1], held[2][1]), f"descriptors and threads of a survivor: {held}")
        check_equal(lives_of(info)[0], 1, "the incarnation of the survivor")
        cluster.client.cancel(job.job)
        cluster.client.wait(job.job)
        check(UNCONNECTED not in job.text(), job.text())


def test_a_task_or_its_gpu_stands_still():
    """No task died: the one that is waited for is named, and replaced."""
    with cluster_of(["--slow-after", "300ms"]) as cluster:
        for i in range(2):
            Host(cluster, f"w{i}", range(4 * i, 4 * i + 4), slots=4)
        jobs = [Job(cluster, arguments, stall_us=int(4000000 * SLOW))
                for arguments in ("stop=1:9:collective", "stop=1:9:buckets", "hang=1:9:collective", "hang=1:9:after")]
        with concurrent.futures.ThreadPoolExecutor(len(jobs)) as watchers:  # all at once: it is replaced soon
            list(watchers.map(lambda job: job.until(
                lambda info: re.search("task 1 on worker w. is waited for", info.message), "who is waited for"), jobs))
        for job in jobs:
            info = job.end()
            check_in("task 1 on worker", info.message, "what is said at the end")
            check_in("did not come to step", info.message, "what is said at the end")
            job.check_connected()


def test_time_for_a_collective_is_over():
    """Before anybody replaces who is waited for: the one whose GPU hangs ends itself, and is started again."""
    with cluster_of() as cluster:
        Host(cluster, "w0", (0, 1), slots=2)
        job = Job(cluster, "hang=1:9:collective", environment=["CADRE_COLLECTIVE_TIMEOUT_S=1"])
        job.until(lambda info: "the device of replica 1 (task of rank 1) did not come to a collective" in info.message,
                  "whose GPU it was")
        job.end()
        job.check_connected()


def test_a_worker_is_drained():
    with cluster_of() as cluster:
        for i in range(3):
            Host(cluster, f"w{i}", (i,))
        job = Job(cluster, "pace=20")
        info = job.until_position(3)
        before = lives_of(info)
        cluster.cadre("drain", info.tasks[1].worker)
        end = job.check_kept(before, 1, restarts=0)
        check(end.tasks[1].worker not in ("", info.tasks[1].worker), f"task 1 is not elsewhere: {end}")
        job.check_connected()


def test_the_coordinator_is_killed():
    with cluster_of(["--lease", "20s"]) as cluster:  # a busy machine's workers need not be back within FAST's 0.9 s
        for i in range(2):
            Host(cluster, f"w{i}", (i,))
        job = Job(cluster, "pace=20")
        before = lives_of(job.until_position(3))
        cluster.coordinator.kill()
        cluster.coordinator.start()
        job.client = cluster.new_client()
        info = job.end()
        check_equal((info.restarts, lives_of(info)), (0, before), str(info))
        job.check_connected()


def test_an_abort_that_never_ends():
    """What the library hangs in cannot be ended from within: the task ends itself, and is started again."""
    with cluster_of() as cluster:
        Host(cluster, "w0", (0, 1, 2), slots=3)
        job = Job(cluster, killed_at("collective"), "fault=0:ncclCommAbort:-1", workers=3)
        info = job.end()
        check_in("nothing in this process can end that", job.text(), "what it says")
        lives = lives_of(info)
        check((lives[0] > 3, lives[1] > 3, lives[2]) == (True, True, 3), f"lives {lives}: {info}")
        job.check_connected()


def test_nccl_that_refuses():
    with cluster_of() as cluster:
        for i in range(2):
            Host(cluster, f"w{i}", (i,))
        job = Job(cluster, "fault=1:ncclForm:3")
        job.end()
        check_in(UNCONNECTED, job.text(), "the warning")
        check_in("task of rank 1: NCCL refused replica 1", job.text(), "the reason")


def test_two_tasks_on_one_gpu():
    with cluster_of() as cluster:
        Host(cluster, "w0", (5,), slots=2)
        check_in("2 slots share 1 GPU", cluster.cadre("workers").stdout.decode(), "cadre workers")
        job = Job(cluster)
        job.end()
        check_in(UNCONNECTED, job.text(), "the warning")


def test_a_worker_without_gpus():
    with cluster_of() as cluster:
        Host(cluster, "w0", (0,))
        Host(cluster, "w1", (1,), options=["--gpus", "none"])
        job = Job(cluster)
        job.end()
        check_in(UNCONNECTED, job.text(), "the warning")
        check_in("no GPU is used: the option --gpus none", job.text(), "what the one without says")
        # A job that asks for GPUs goes where they are, or waits.
        done = cluster.cadre("submit", "--gpus", "1", "--env", f"CADRE_STANDIN_DEVICES={GPUS}", PROGRAM)
        check_in("with 1 GPUs", (done.stdout + done.stderr).decode(), "what it printed")
        cluster.cadre("submit", "--gpus", "1", "--workers", "2", "--detach", PROGRAM)
        waits = job.job + 2
        check_in("2 slots with 1 GPU", cluster.client.get(waits).message, "what a job of two waits for")
        cluster.client.cancel(waits)


# --- by hand ---

def test_tasks_of_this_machine():
    with Cluster(workers=0, start=False) as cluster:
        gpus = PLUGIN | {"CADRE_STANDIN_DEVICES": "4"}
        text, state = alone(cluster.folder, program("cadre"), "run", "--workers", "2", PROGRAM, **gpus)
        check_state(state)
        check_equal((text.count("with 2 GPUs"), UNCONNECTED in text), (2, False), text)
        text, state = alone(cluster.folder, program("cadre"), "run", "--workers", "2", "--max-restarts", "2", PROGRAM,
                            "--", killed_at("collective"), **gpus)
        check_state(state)
        check(UNCONNECTED not in text, text)
        text, state = alone(cluster.folder, PROGRAM, **gpus)
        check_state(state)
        check_in("with 4 GPUs", text, "one process")


# --- the id of a communicator ---

def ids():
    """Of the stand-in's communicators that live; they are in the name that its ranks meet at."""
    with open("/proc/net/unix", encoding="ascii", errors="replace") as file:
        return set(re.findall(r"@nccl-standin-([0-9a-f]{32})", file.read()))


def test_no_id_is_written_anywhere():
    with cluster_of() as cluster:
        Host(cluster, "w0", (0, 1), slots=2)
        job = Job(cluster, killed_at("collective"), "pace=10")
        seen = set()
        job.until(lambda info: seen.update(ids()) or info.position >= 15, "position 15")
        job.end()
        check(len(seen) >= 2, f"ids of {seen}")
        for folder, _, names in os.walk(cluster.folder):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    content = file.read()
                for number in seen:
                    found = number.encode() in content or bytes.fromhex(number) in content
                    check(not found, f"an id is in {path}")
        for number in seen:
            check(number not in job.text(), "an id is in the log")


def test_the_use_of_gpus_is_that_of_nvml():
    """The real cadre-devices answers, over the stand-in for NVML."""
    with cluster_of() as cluster:
        path = os.path.join(cluster.folder, "nvml")

        def set_nvml(text):
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                file.write(text)
            os.rename(f"{path}.new", path)

        def use():
            usage = json.loads(cluster.cadre("job", str(job), "--json").stdout)["tasks"][0]["usage"]
            return usage["gpu_percent"], usage["gpu_memory_bytes"]
        set_nvml("")
        Host(cluster, "w0", [0, 1], LD_LIBRARY_PATH=NVML, CADRE_STANDIN_NVML=path)
        gpus = json.loads(cluster.cadre("workers", "w0", "--json").stdout)["workers"][0]["gpus"]
        job = cluster.client.submit(script("exec sleep 1000"))
        set_nvml(f"{gpus[0]['uuid']} 97 1000\n{gpus[1]['uuid']} 10 24\n")
        wait_for("the mean and the sum", lambda: use() == (54, 1024))
        set_nvml(f"{gpus[0]['uuid']} 97 1000\n{gpus[1]['uuid']} - 24\n")
        wait_for("a percent that is not known", lambda: use() == (None, 1024))
        cluster.client.cancel(job)
        cluster.client.wait(job)


if __name__ == "__main__":
    if not os.path.exists(PLUGIN["CADRE_PLUGIN"]):
        skip("the stand-in of the CUDA plugin is not built here")
    run(globals())
