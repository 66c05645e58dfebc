# SPDX-License-Identifier: Apache-2.0
"""Programs that are started by hand on the addresses of a cluster: by TF_CONFIG, by Slurm's variables."""
import contextlib
import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

from cluster import TRAINER, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run, wait_for

TASKS = 3
REPLICAS = 2
DIGITS = program("digits")
BRIEF = (DIGITS, "--epochs", "4")
LONG = (DIGITS, "--epochs", "40")  # a task is killed meanwhile
TYPES = (("chief", 0), ("worker", 0), ("worker", 1))


def free_ports(count):
    """Ports at which no process listens now, one after the other where that is possible."""
    for base in range(20000 + os.getpid() % 10000, 60000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(base, base + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                return list(range(base, base + count))
            except OSError:
                continue
    return []


def own_address():
    """An address of this host that is not of the loopback network; None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


class Programs:
    """The programs of one cluster, each in a folder of its own. None is left behind."""

    def __init__(self, argv=BRIEF, host="localhost", **environment):
        self.argv = list(argv)
        self.folder = tempfile.mkdtemp(prefix="cadre-cluster-")
        self.ports = free_ports(TASKS)
        self.host = host
        self.environment = environment
        self.processes = {}
        self.lives = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        shutil.rmtree(self.folder)

    def config(self, task):
        address = [f"{self.host}:{port}" for port in self.ports]
        kind, index = TYPES[task]
        return json.dumps({"cluster": {"chief": address[:1], "worker": address[1:]},
                           "task": {"type": kind, "index": index}})

    def start(self, task, name=None, argv=None, **environment):
        """Starts the program of a task; `name` tells two of them apart."""
        self.lives += 1
        name = name or str(task)
        folder = os.path.join(self.folder, name)
        os.makedirs(folder, exist_ok=True)
        settings = {"TF_CONFIG": self.config(task), "CADRE_REPLICAS": str(REPLICAS), "CADRE_OUTPUT_DIR": ".",
                    **self.environment, **environment}
        with open(os.path.join(folder, "log"), "wb") as log:
            self.processes[name] = subprocess.Popen(
                argv or self.argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**bare_environment(), **{key: value for key, value in settings.items() if value is not None}})
        return self

    def start_all(self, **environment):
        for task in range(TASKS):
            self.start(task, **environment)
        return self

    def log(self, name):
        with open(os.path.join(self.folder, str(name), "log"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self, name, wanted=None, deadline_s=60):
        """The exit status of a program, which must be the wanted one."""
        process = self.processes[str(name)]
        wait_for(f"the end of task {name}", lambda: process.poll() is not None, deadline_s)
        if wanted is not None:
            check_equal(process.returncode, wanted, f"status of task {name}: {self.log(name)[-1500:]}")
        return process.returncode

    def end_all(self):
        for task in range(TASKS):
            self.end(task, 0)

    def until_trains(self, epoch=2):
        wait_for(f"epoch {epoch}", lambda: re.search(rf"epoch {epoch}/", self.log(0)))

    def kill(self, name, number=signal.SIGKILL):
        process = self.processes[str(name)]
        process.send_signal(number)
        process.wait()

    def refused(self, name, code, *parts):
        """The program ended with that error, whose sentence has these parts."""
        self.end(name, 1)
        for part in (code, *parts):
            check_in(part, self.log(name), f"the error of task {name}")

    def checkpoint(self):
        (name,) = [name for name in os.listdir(os.path.join(self.folder, "0")) if name.endswith(".safetensors")]
        with open(os.path.join(self.folder, "0", name), "rb") as file:
            return file.read()


def bare_environment():
    return {name: value for name, value in clean_environment().items()
            if name != "TF_CONFIG" and not name.startswith("SLURM_")}


@functools.cache
def checkpoint_of_cadre_run(*argv):
    with tempfile.TemporaryDirectory(prefix="cadre-cluster-") as folder:
        subprocess.run([program("cadre"), "run", "-n", str(TASKS), "--replicas", str(REPLICAS), argv[0],
                        "--", *argv[1:]], cwd=folder, env=bare_environment(), check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (path,) = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                   if name.endswith(".safetensors")]
        with open(path, "rb") as file:
            return file.read()


def test_programs_of_tf_config_train_as_one():
    with Programs() as programs:
        for task in reversed(range(TASKS)):  # the first waits for the others
            programs.start(task)
        programs.end_all()
        check_in("test accuracy: ", programs.log(0), "what the chief printed")
        check_in("epoch 4/4", programs.log(0), "the progress that the chief shows")
        check("epoch" not in programs.log(1), f"another one shows progress: {programs.log(1)}")
        check(programs.checkpoint() == checkpoint_of_cadre_run(*BRIEF), "other bits than under `cadre run`")


def test_a_shell_loop_is_enough():
    with Programs() as programs:
        cluster = json.dumps([f"localhost:{port}" for port in programs.ports])
        loop = (f"""for i in 0 1 2; do TF_CONFIG='{{"cluster": {{"worker": {cluster}}}, """
                f""""task": {{"type": "worker", "index": '$i'}}}}' CADRE_OUTPUT_DIR=$i {DIGITS} & done\nwait""")
        for task in range(TASKS):
            os.mkdir(os.path.join(programs.folder, str(task)))
        done = subprocess.run(["sh", "-c", loop], cwd=programs.folder, env=bare_environment(), capture_output=True,
                              timeout=HANG_S, check=False)
        check_in(b"test accuracy: ", done.stdout, f"what the loop printed ({done.stderr[-500:]!r})")
        check(programs.checkpoint(), "no checkpoint")


def test_slurm_variables():
    with Programs(TF_CONFIG=None, SLURM_STEP_NUM_TASKS=str(TASKS), SLURM_STEP_NODELIST="localhost",
                  SLURM_STEP_TASKS_PER_NODE=str(TASKS)) as programs:
        programs.environment["CADRE_CLUSTER_PORT"] = str(programs.ports[0])
        for task in range(TASKS):
            programs.start(task, SLURM_PROCID=str(task))
        programs.end_all()
        check(programs.checkpoint() == checkpoint_of_cadre_run(*BRIEF), "other bits than under `cadre run`")
        programs.start(0, "odd", SLURM_PROCID="5")
        programs.refused("odd", "INVALID_ARGUMENT", "SLURM_PROCID is 5", "CADRE_CLUSTER=none")
        programs.start(0, "alone", SLURM_PROCID="5", CADRE_CLUSTER="none")
        programs.end("alone", 0)


def test_a_killed_worker_ends_the_others():
    with Programs([DIGITS, "--epochs", "5000"], CADRE_CLUSTER_GRACE_S="1") as programs:
        programs.start_all().until_trains()
        programs.kill(2)
        for task in (0, 1):
            programs.refused(task, "UNAVAILABLE", "task 2 was lost", f"localhost:{programs.ports[2]}")


def test_a_killed_worker_is_started_again():
    with Programs(LONG, CADRE_CLUSTER_GRACE_S="60") as programs:
        programs.start_all().until_trains()
        programs.kill(2)
        programs.start(2)
        programs.until_trains(6)
        programs.kill(1)
        programs.start(1)
        programs.end_all()
        check(programs.checkpoint() == checkpoint_of_cadre_run(*LONG), "other bits than without a loss")


def test_two_killed_workers_are_started_again():
    with Programs(LONG, CADRE_CLUSTER_GRACE_S="60") as programs:
        programs.start_all().until_trains()
        programs.kill(1)
        programs.kill(2)
        programs.start(2)
        programs.start(1)
        programs.end_all()
        check(programs.checkpoint() == checkpoint_of_cadre_run(*LONG), "other bits than without a loss")


def test_a_killed_chief_ends_all():
    with Programs([DIGITS, "--epochs", "5000"]) as programs:
        programs.start_all().until_trains()
        programs.kill(0)
        for task in (1, 2):
            programs.refused(task, "UNAVAILABLE", "task 0 (chief 0 at localhost:", "which runs the coordinator")


def test_a_chief_that_is_killed_before_all_are_there():
    with Programs() as programs:
        programs.start(0).start(1)
        wait_for("the chief listens", lambda: is_listening(programs.ports[0]))
        programs.kill(0)
        programs.start(0).start(2)  # who waits does not mind
        programs.end_all()


def test_a_worker_that_never_comes():
    with Programs(CADRE_CLUSTER_WAIT_S="2") as programs:
        programs.start(0).start(1)
        for task in (0, 1):
            programs.refused(task, "DEADLINE_EXCEEDED", "2 of 3 tasks", "missing: task 2 (worker 1 at localhost:")


def test_a_chief_that_never_comes():
    with Programs(CADRE_CLUSTER_WAIT_S="1") as programs:
        programs.start(1)
        programs.refused(1, "DEADLINE_EXCEEDED", "task 0 (chief 0 at localhost:", "Connection refused")


def test_keys():
    with Programs() as programs:
        keys = {}
        for name, content in (("right", b"k" * 32), ("wrong", b"w" * 32), ("short", b"s" * 31)):
            keys[name] = os.path.join(programs.folder, name)
            with open(keys[name], "wb") as file:
                file.write(content)
        programs.start_all(CADRE_CLUSTER_KEY_FILE=keys["right"]).end_all()
        programs.environment["CADRE_CLUSTER_WAIT_S"] = "3"
        programs.start(0, CADRE_CLUSTER_KEY_FILE=keys["right"]).start(1, CADRE_CLUSTER_KEY_FILE=keys["right"])
        programs.start(2, CADRE_CLUSTER_KEY_FILE=keys["wrong"])
        programs.refused(2, "UNAUTHENTICATED", "did not prove that it has this task's key", "CADRE_CLUSTER_KEY_FILE")
        programs.start(2, "without")
        programs.refused("without", "UNAUTHENTICATED", "this program without")
        for task in (0, 1):
            programs.refused(task, "DEADLINE_EXCEEDED", "missing: task 2", "task 2 was refused")
        programs.start(2, "too short", CADRE_CLUSTER_KEY_FILE=keys["short"])
        programs.refused("too short", "INVALID_ARGUMENT", "31 bytes")
        programs.start(2, "absent", CADRE_CLUSTER_KEY_FILE="/nowhere/key")
        programs.refused("absent", "NOT_FOUND", "/nowhere/key")


def test_over_a_network():
    address = own_address()
    if address is None:
        return  # there is none here
    with Programs(host=address) as programs:
        programs.start(1)
        programs.refused(1, "FAILED_PRECONDITION", "CADRE_CLUSTER_KEY_FILE", "CADRE_CLUSTER_INSECURE=1")
        key = os.path.join(programs.folder, "key")
        with open(key, "wb") as file:
            file.write(os.urandom(32))
        programs.start_all(CADRE_CLUSTER_KEY_FILE=key).end_all()
        programs.start_all(CADRE_CLUSTER_INSECURE="1").end_all()


def test_two_programs_as_one_task():
    with Programs([DIGITS, "--epochs", "80"]) as programs:
        programs.start_all().until_trains()
        programs.start(1, "again")
        programs.refused("again", "ALREADY_EXISTS", "task 1 (worker 0 at localhost:", "is connected already")
        programs.start(0, "chief again")
        programs.refused("chief again", "ALREADY_EXISTS", "is in use")
        programs.end_all()


def test_programs_of_different_clusters():
    with Programs() as programs, Programs() as others:
        others.ports[2] += TASKS
        programs.start(0)
        others.start(1)
        others.refused(1, "FAILED_PRECONDITION", "another cluster")


def test_a_failing_step_fails_everywhere():
    """The program of one task fails in its step: the others receive its error, whichever of them it is."""
    for failing in (0, 2):
        with Programs([TRAINER, "100000"]) as programs:
            for task in range(TASKS):
                programs.start(task, argv=[TRAINER, "100000", "0", "50", "fail"],
                               CADRE_SLOT="0" if task == failing else None)
            for task in range(TASKS):
                programs.refused(task, "DATA_LOSS", "the shard is empty")


def test_a_failing_program_ends_all():
    with Programs([TRAINER, "100000"], CADRE_CLUSTER_GRACE_S="0") as programs:
        programs.start(0).start(1)
        programs.start(2, argv=[TRAINER, "100000", "0", "50", "exit"], CADRE_SLOT="0")
        programs.end(2, 7)
        for task in (0, 1):
            programs.refused(task, "UNAVAILABLE", "task 2")


def test_configurations_that_are_none():
    with Programs() as programs:
        cases = (("{", "INVALID_ARGUMENT", "TF_CONFIG is no proper JSON"),
                 ('{"cluster": {"worker": ["a:1", "a:2"]}}', "INVALID_ARGUMENT", '"task"'),
                 ('{"cluster": {"worker": ["a:1", "a:1"]}, "task": {"type": "worker", "index": 0}}',
                  "INVALID_ARGUMENT", "the address a:1"),
                 ('{"cluster": {"worker": ["a:1", "b"]}, "task": {"type": "worker", "index": 0}}',
                  "INVALID_ARGUMENT", "HOST:PORT"),
                 ('{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
                  "INVALID_ARGUMENT", "index 2"),
                 ('{"cluster": {"chief": ["a:1", "b:1"]}, "task": {"type": "chief", "index": 0}}',
                  "INVALID_ARGUMENT", "'chief'"),
                 ('{"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}, "task": {"type": "ps", "index": 0}}',
                  "FAILED_PRECONDITION", "no chief task", 'add a job "chief"',
                  "cadre_strategy_multi_worker_mirrored"),
                 ('{"cluster": {"worker": ["no.such.host.invalid:1", "b:1"]}, "task": {"type": "worker", "index": 0}}',
                  "UNAVAILABLE", "no.such.host.invalid"))
        for number, (config, code, *parts) in enumerate(cases):
            programs.start(0, f"case{number}", TF_CONFIG=config)
            programs.refused(f"case{number}", code, *parts)


def test_programs_that_are_a_job_by_themselves():
    with Programs([DIGITS, "--epochs", "2"]) as programs:
        cases = ("", "{}", '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 0}}',
                 '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "evaluator", "index": 0}}')
        for number, config in enumerate(cases):
            programs.start(0, f"case{number}", TF_CONFIG=config)
            programs.end(f"case{number}", 0)
        programs.start(0, "none", CADRE_CLUSTER="none")
        programs.end("none", 0)


def test_a_daemon_goes_before_tf_config():
    with Programs() as programs:
        done = subprocess.run([program("cadre"), "run", "-n", "2", DIGITS, "--", "--epochs", "2"],
                              cwd=programs.folder, env={**bare_environment(), "TF_CONFIG": "{"}, capture_output=True,
                              timeout=HANG_S, check=False)
        check_equal(done.returncode, 0, f"status: {done.stderr[-500:]!r}")


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_strangers_do_not_disturb():
    """Connections that say nothing, say nonsense, or greet and then send more than is allowed."""
    with Programs() as programs, contextlib.ExitStack() as stack:
        programs.start(0)
        wait_for("the chief listens", lambda: is_listening(programs.ports[0]))
        for number in range(200):
            stranger = stack.enter_context(socket.socket())
            stranger.settimeout(10)
            stranger.connect(("127.0.0.1", programs.ports[0]))
            if number % 2 == 0:
                with contextlib.suppress(OSError):
                    stranger.sendall(os.urandom(5000))
        programs.start(1).start(2)
        programs.end_all()
        check(programs.checkpoint() == checkpoint_of_cadre_run(*BRIEF), "other bits than under `cadre run`")


def test_a_checkpoint_that_not_all_go_on_from():
    with Programs([DIGITS, "--epochs", "2"]) as programs:
        programs.start_all().end_all()
        (name,) = [name for name in os.listdir(os.path.join(programs.folder, "0")) if name.endswith(".json")]
        manifest = os.path.join(programs.folder, "0", name)
        programs.argv = [DIGITS, "--epochs", "3"]
        programs.environment["CADRE_CLUSTER_WAIT_S"] = "2"
        programs.start(0, "first", CADRE_RESTORE=manifest).start(1)
        programs.refused(1, "FAILED_PRECONDITION", "goes on from step", "CADRE_RESTORE")
        programs.refused("first", "DEADLINE_EXCEEDED", "task 1 was refused")
        programs.environment["CADRE_CLUSTER_WAIT_S"] = "60"
        programs.start_all(CADRE_RESTORE=manifest).end_all()
        check_in("epoch 3/3", programs.log(0), "the progress that the chief shows")
        check("epoch 1/3" not in programs.log(0), f"it began again: {programs.log(0)}")


if __name__ == "__main__":
    run(globals())
