# SPDX-License-Identifier: Apache-2.0
"""An elastic plain job takes tasks in right after a save: all begin again together, from what was just saved. It is no
failure, nothing that was saved is lost, and no program loses what it did."""
import os
import re
import signal

from client import SUCCEEDED
from cluster import Cluster
from test_plain import Folder
from testing import check, check_equal, check_in, run, scaled, wait_for

TIMING = ["--lease", scaled("2s"), "--rewind-patience", scaled("4s"), "--grace", scaled("10s")]
WORKER = ["--heartbeat", "300ms"]
LEAVES = re.compile(r"task (\d+) leaves with (\d+): tasks join or leave, and all begin again: saved at step (\d+)")
BEGINS = re.compile(r"task (\d+) of (\d+) begins with (\d+)")


class Growing:
    """A job of the grower (grower.c), on a cluster that may get more workers."""

    def __init__(self, workers, least, most, hold=False, **fields):
        self.hold = hold  # before its first save
        self.folder = Folder()
        self.cluster = Cluster(workers=workers, coordinator=TIMING, worker=WORKER)
        self.fields = {"workers": most, "workers_min": least, "max_restarts": 0} | fields

    def __enter__(self):
        self.folder.__enter__()
        self.cluster.__enter__()
        self.client = self.cluster.client
        if self.hold:
            self.flag("hold", True)
        with open(os.environ["CADRE_TEST_GROWER"], "rb") as file:
            self.job = self.client.submit(file.read(), arguments=[self.folder.path], **self.fields)
        if not self.hold:
            self.saves_of(min(len(self.cluster.workers), self.fields["workers"]))
        return self

    def __exit__(self, *failure):
        self.cluster.__exit__(*failure)
        self.folder.__exit__(*failure)

    def flag(self, name, is_set):
        if is_set:
            with open(self.folder.file(name), "w", encoding="ascii"):
                pass
        else:
            os.unlink(self.folder.file(name))

    def workers_come(self, count):
        """All at the same moment."""
        first = len(self.cluster.workers)
        came = [self.cluster.worker(f"w{first + i}", 1, WORKER) for i in range(count)]
        self.cluster.workers += came
        for worker in came:
            worker.start(ready=False)
        for worker in came:
            worker.wait_ready()
        return came

    def info(self):
        return self.client.get(self.job)

    def saves_of(self, tasks):
        """Until a generation of so many tasks has saved a state, and another one."""
        info = self.client.watch_until(self.job, lambda info: info.roster == tasks and info.checkpoint,
                                       f"{tasks} tasks", 90)
        return self.client.watch_until(self.job, lambda later: later.roster == tasks
                                       and later.position > info.position + 1, f"a save of {tasks} tasks", 90)

    def waiting(self, count):
        """Until so many tasks wait to join."""
        def those():
            shown = self.cluster.cadre("job", str(self.job)).stdout.decode()
            found = re.search(r"(\d+) more waits? for the next save", shown)
            return found and int(found[1]) == count
        wait_for(f"{count} tasks that wait", those)

    def slot_on(self, worker):
        return next(task.slot for task in self.info().tasks if task.worker == worker.name)

    def coordinator_is_killed(self):
        self.cluster.coordinator.kill()
        self.cluster.coordinator.start()
        self.client = self.cluster.new_client()

    def log(self):
        return self.client.log(self.job).decode()

    def end(self, restarts=0):
        """Its end, and the proof that each state was gone on from. Returns the sizes of its worlds, in order."""
        self.flag("end", True)
        info = self.client.wait(self.job, 120)
        log = self.log()
        check_equal((info.state, info.restarts), (SUCCEEDED, restarts), f"{info} {log[-2000:]}")
        for _, counted, saved in LEAVES.findall(log):
            check_equal(counted, saved, "what was saved when it left")
            check(saved in {at for _, _, at in BEGINS.findall(log)}, f"no task went on from {saved}: {log[-2000:]}")
        worlds = [(int(size), int(saves)) for size, saves in
                  re.findall(r"(\d+)x(\d+)", re.search(r"saved by (.*)", log)[1])]
        check_equal(sum(saves for _, saves in worlds) + 1, info.position, "saves, and the step to the end")
        return [size for size, _ in worlds]


def test_workers_that_come_are_used_after_the_next_save():
    with Growing(workers=1, least=1, most=3) as job:
        job.workers_come(2)
        info = job.saves_of(3)
        check_equal(info.generation, 2, "two that come at the same moment enter together")
        check_in("tasks join; all tasks began again from the checkpoint of step", info.message, "what people are shown")
        check_equal(job.end(), [1, 3], "the worlds")
        check_equal(len(LEAVES.findall(job.log())), 1, "tasks that left in order")


def test_a_job_that_has_all_its_tasks_is_left_alone():
    with Growing(workers=2, least=1, most=2) as job:
        job.workers_come(1)
        job.saves_of(2)
        check_equal(job.info().generation, 1, "its generation")
        check_equal(job.end(), [2], "the worlds")


def test_a_program_that_does_not_save_is_left_alone():
    """What waits for it is shown, and may die; no failure of the job."""
    with Growing(workers=1, least=1, most=2) as job:
        job.flag("hold", True)
        worker, = job.workers_come(1)
        job.waiting(1)
        slot = job.slot_on(worker)
        before = job.info()
        check_equal((before.generation, before.roster), (1, 1), "it runs as before")
        os.kill(before.tasks[slot].pid, signal.SIGKILL)
        job.client.watch_until(job.job, lambda info: info.tasks[slot].pid != before.tasks[slot].pid, "its end")
        job.flag("hold", False)
        job.saves_of(1)
        check_equal(job.end(), [1], "the worlds")


def test_a_member_is_killed_while_another_task_waits():
    with Growing(workers=2, least=1, most=3, max_restarts=1) as job:
        job.flag("hold", True)
        job.workers_come(1)
        job.waiting(1)
        os.kill(job.info().tasks[0].pid, signal.SIGKILL)
        job.flag("hold", False)
        job.saves_of(3)
        check_equal(job.end(restarts=1), [2, 3], "the worlds")


def test_the_coordinator_is_killed_while_a_task_waits():
    with Growing(workers=1, least=1, most=2) as job:
        job.flag("hold", True)
        job.workers_come(1)
        job.waiting(1)
        job.coordinator_is_killed()
        job.flag("hold", False)
        job.saves_of(2)
        check_equal(job.end(), [1, 2], "the worlds")


def test_the_coordinator_is_killed_when_all_begin_again():
    """As soon as a task has left, which it says only when its state is on record."""
    with Growing(workers=1, least=1, most=2) as job:
        pid = job.info().tasks[0].pid
        job.workers_come(1)
        wait_for("the first task has left", lambda: not os.path.exists(f"/proc/{pid}"))
        job.coordinator_is_killed()
        job.saves_of(2)
        check_equal(job.end(), [1, 2], "the worlds")


def test_workers_that_come_before_the_first_save():
    with Growing(workers=1, least=1, most=2, hold=True) as job:
        job.workers_come(1)
        job.waiting(1)
        job.flag("hold", False)
        job.saves_of(2)
        check_equal(job.end(), [1, 2], "the worlds")


def test_a_drain_before_the_first_save_loses_nothing():
    with Growing(workers=2, least=1, most=1, hold=True) as job:
        job.client.watch_until(job.job, lambda info: info.roster == 1, "its task")
        worker = job.info().tasks[0].worker
        job.cluster.cadre("drain", worker)
        job.flag("hold", False)
        job.client.watch_until(job.job, lambda info: info.generation == 2, "it has moved", 90)
        check(job.info().tasks[0].worker != worker, "it is where it was")
        check_in("task 0 of 1 begins with 1\n", job.log(), "the state that it went on from")
        job.end()


if __name__ == "__main__":
    run(globals())
