# SPDX-License-Identifier: Apache-2.0
"""A plain program: the same numbers with any number of tasks, and all of them again when one is lost."""
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile

from client import QUEUED, SUCCEEDED
from cluster import Cluster, clean_environment, processes_naming, program
from testing import HANG_S, check, check_equal, check_in, run, scaled, wait_for
from test_cluster import free_ports

SHORT = 30
LONG = 300  # epochs: a second or more
FAR = 2000  # several
TOLERANCE = 1e-4


class Folder:
    """One for checkpoints, that tasks of any user may write to."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="cadre-plain-")
        os.chmod(self.path, 0o777)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def file(self, name):
        return os.path.join(self.path, name)

    def read(self, name):
        with open(self.file(name), "rb") as file:
            return file.read()

    def weights(self, name):
        content = self.read(name)
        return struct.unpack(f"<{(len(content) - 8) // 4}f", content[8:])


def start(argv, folder, **environment):
    return subprocess.Popen(argv, cwd=folder.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, env=clean_environment() | environment)


def cadre_run(folder, name, epochs, *options):
    return start([program("cadre"), "run", *options, program("perceptron"), "--", str(epochs), folder.file(name)],
                 folder)


def finish(process, status=0):
    said, _ = process.communicate(timeout=HANG_S)
    said = said.decode(errors="replace")
    check_equal(process.returncode, status, f"exit status; it said {said[-1500:]}")
    return said


def accuracy(said):
    return said[said.rindex("test accuracy: "):].split()[2]


def tasks_of(folder, name):
    """The processes of the program itself, by their arguments."""
    return sorted(pid for pid, line in processes_naming(folder.file(name)).items()
                  if "perceptron" in line.split()[0] and "cadre" not in os.path.basename(line.split()[0]))


def one_is_killed(folder, name, tasks):
    """Once it is under way."""
    wait_for("a checkpoint", lambda: os.path.exists(folder.file(name)))
    wait_for("the tasks", lambda: len(tasks_of(folder, name)) == tasks)
    os.kill(tasks_of(folder, name)[-1], signal.SIGKILL)


def check_near(folder, name, wanted):
    worst = max(abs(a - b) for a, b in zip(folder.weights(name), folder.weights(wanted)))
    check(worst < TOLERANCE, f"{name} differs from {wanted} by {worst}")


def test_the_same_numbers_with_any_number_of_tasks():
    with Folder() as folder:
        alone = accuracy(finish(start([program("perceptron"), str(SHORT), folder.file("alone")], folder)))
        check(float(alone.rstrip("%")) >= 97, f"accuracy {alone}")
        for tasks in (1, 2, 3):
            for name in (f"{tasks}", f"{tasks}-again"):
                said = finish(cadre_run(folder, name, SHORT, "-n", str(tasks)))
                check_equal(accuracy(said), alone, f"accuracy of {tasks} tasks")
            check(folder.read(f"{tasks}") == folder.read(f"{tasks}-again"), f"{tasks} tasks: other bits")
            check_near(folder, f"{tasks}", "alone")
        check(folder.read("1") == folder.read("alone"), "one task has other bits than a program by hand")


def test_the_mpi_program_it_was_made_from():
    if not os.path.exists(program("perceptron-mpi")):
        return  # built only where there is an MPI
    with Folder() as folder:
        finish(start([program("perceptron-mpi"), str(SHORT), folder.file("mpi")], folder,
                     OMPI_MCA_btl="self", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
        finish(start([program("perceptron"), str(SHORT), folder.file("plain")], folder))
        check(folder.read("mpi") == folder.read("plain"), "other bits than those of the MPI program")


def test_a_task_is_killed_and_all_go_on_from_their_checkpoint():
    with Folder() as folder:
        finish(cadre_run(folder, "calm", LONG, "-n", "2"))
        drill = cadre_run(folder, "drill", LONG, "-n", "2", "--max-restarts", "1")
        one_is_killed(folder, "drill", 2)
        said = finish(drill)
        check_in("all tasks began again", said, "what people are shown")
        check("epoch 1:" not in said[said.index("began again"):], "it began with the first epoch again")
        check(folder.read("drill") == folder.read("calm"), "other bits than without a loss")


def test_without_a_budget_the_loss_is_the_end():
    with Folder() as folder:
        lost = cadre_run(folder, "lost", LONG, "-n", "3")
        one_is_killed(folder, "lost", 3)
        said = finish(lost, 128 + signal.SIGKILL)
        check_in("was killed by signal 9 (Killed)", said, "the end of the job")
        check_equal(tasks_of(folder, "lost"), [], "tasks that are left")


def submitted(client, arguments, **fields):
    files = {}
    for name in ("digits-train.bin", "digits-test.bin", "perceptron"):
        with open(program(name), "rb") as file:
            files[name] = file.read()
    return client.submit(files.pop("perceptron"), files=files, arguments=arguments, **fields)


def drained_in_the_middle(workers, slots):
    """The worker of task 0 is drained once a state was saved; what the job has come to then, its tasks elsewhere."""
    with Cluster(workers=workers, slots=slots) as cluster:
        client = cluster.client
        job = submitted(client, [str(FAR)], workers=2, max_restarts=3)
        client.watch_until(job, lambda info: info.checkpoint, "a state that was saved")
        worker = client.get(job).tasks[0].worker
        cluster.cadre("drain", worker)
        if workers == 1:
            info = client.watch_until(job, lambda info: info.state == QUEUED, "that it has left")
            check_in("saved at step", info.message, "why it waits")
            cluster.cadre("undrain", worker)
        else:
            client.watch_until(job, lambda info: all(task.worker not in ("", worker) for task in info.tasks),
                               "tasks elsewhere")
        info = client.wait(job, 90)
        check_equal((info.state, info.restarts), (SUCCEEDED, 0), str(info))
        text = client.log(job, 0).decode()
        check_equal(text.count("epoch 1: "), 1, "how often the training began")
        check_in("test accuracy: ", text, "its end")


def test_a_drain_with_room_elsewhere_is_not_counted():
    drained_in_the_middle(workers=2, slots=2)


def test_a_drain_without_room_waits_with_the_state_saved():
    drained_in_the_middle(workers=1, slots=2)


def test_a_lost_worker_is_not_counted():
    timing = ["--lease", scaled("2s"), "--rewind-patience", scaled("4s")]
    with Folder() as folder, Cluster(workers=3, coordinator=timing, worker=["--heartbeat", "300ms"]) as cluster:
        client = cluster.client
        job = submitted(client, [str(LONG), folder.file("job")], workers=2, max_restarts=0)
        wait_for("a checkpoint", lambda: os.path.exists(folder.file("job")))
        place = client.get(job).tasks[1].worker
        victim = next(worker for worker in cluster.workers if worker.name == place)
        victim.kill()
        info = client.wait(job, 90)
        check_equal(info.state, SUCCEEDED, str(info))
        check_equal({metric.name for metric in info.progress.metrics}, {"loss"}, "what it reported")
        check_equal((info.progress.step, info.progress.steps), (LONG, LONG), "its progress")
        victim.start()  # so that it clears up after its first run
        finish(cadre_run(folder, "calm", LONG, "-n", "2"))
        check(folder.read("job") == folder.read("calm"), "other bits than without a loss")


def by_tf_config(folder, name, epochs):
    workers = [f"localhost:{port}" for port in free_ports(2)]
    return [start([program("perceptron"), str(epochs), folder.file(name)], folder, TF_CONFIG=json.dumps(
        {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}})) for index in range(2)]


def test_programs_that_find_each_other():
    with Folder() as folder:
        first, second = by_tf_config(folder, "found", SHORT)
        check_in("test accuracy: ", finish(first), "what the first says")
        check_equal(finish(second), "", "what the second says")
        finish(cadre_run(folder, "run", SHORT, "-n", "2"))
        check(folder.read("found") == folder.read("run"), "other bits than under `cadre run`")
        first, second = by_tf_config(folder, "lost", LONG)
        wait_for("a checkpoint", lambda: os.path.exists(folder.file("lost")))
        second.kill()
        second.communicate()
        said = finish(first, 1)
        check_in("ABORTED", said, "what the first gets")
        check("rank 1" in said or "task 1" in said, f"what the first gets: {said}")  # of whom sees it first


if __name__ == "__main__":
    run(globals())
