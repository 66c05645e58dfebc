# SPDX-License-Identifier: Apache-2.0
"""What people read when a task dies: who, where, how, its last words, and what Cadre did; while it happens, and
afterwards."""
import os
import signal
import subprocess
import tempfile

from client import jobs_pb2
from cluster import Cluster, clean_environment, program
from learning import ALL, FAST, FAST_WORKER, LEARNER, STEPS, Gate
from testing import HANG_S, check, check_equal, check_in, run, scaled, wait_for

WAIT = scaled("1s")
FINAL = (jobs_pb2.JOB_STATE_SUCCEEDED, jobs_pb2.JOB_STATE_FAILED)


class Submitted:
    """`cadre submit` of the learner, as a user sees it."""

    def __init__(self, cluster, *options, arguments=(), allowed=ALL):
        self.cluster = cluster
        self.gate = Gate(cluster, allowed)
        self.path = tempfile.mktemp(prefix="printed-", dir=cluster.folder)
        with open(self.path, "wb") as errors:
            self.process = subprocess.Popen(
                [program("cadre"), "submit", *options, "--", LEARNER, self.gate.argument, *arguments],
                stdout=subprocess.PIPE, stderr=errors, env=clean_environment() | {"CADRE_COORDINATOR": cluster.address})
        self.job = wait_for("the job", self.number)

    def number(self):
        """Of the newest job, which is ours when it runs this program's process."""
        jobs = self.cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs
        return max((job.id for job in jobs if job.state not in FINAL), default=None)

    def until_position(self, position):
        return self.cluster.client.watch_until(self.job, lambda info: info.position >= position, f"step {position}")

    def until_checkpoint(self):
        return self.cluster.client.watch_until(self.job, lambda info: info.checkpoint, "a checkpoint")

    def printed(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def allow_until_printed(self, steps, part):
        """So many steps, and all when that is printed: what is reported of a job while it ends would not be."""
        self.gate.allow(steps)
        wait_for(f"it prints that {part}", lambda: part in self.printed() or self.process.poll() is not None)
        self.gate.allow()

    def end(self, status):
        """The lines on stderr that tell of this job, without the progress."""
        out, _ = self.process.communicate(timeout=HANG_S)
        said = [line for line in self.printed().splitlines() if line.startswith(f"job {self.job}")]
        check_equal(self.process.returncode, status, f"status of submit, which printed {out.decode()} {self.printed()}")
        return said

    def shown(self):
        """The message of `cadre job`."""
        lines = self.cluster.cadre("job", str(self.job)).stdout.decode().splitlines()
        return next((line.split(None, 1)[1] for line in lines if line.strip().startswith("message ")), "")


def in_words(option):
    milliseconds = int(option.removesuffix("ms"))
    return f"{milliseconds} ms" if milliseconds % 1000 else f"{milliseconds // 1000} s"


def check_printed(submitted, said, sentence):
    """Once, in one line, or in two where the first half was news already; and it can be read afterwards."""
    words = [line.split(": ", 1)[-1] for line in said]
    halves = [f"{first}; {second}" for first, second in zip(words, words[1:])
              if sentence not in first and sentence not in second]
    telling = [text for text in words + halves if sentence in text]
    check_equal(len(telling), 1, f"lines that say {sentence!r} among {said}")
    check_in(sentence, submitted.shown(), "cadre job")


def test_a_signal():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitted = Submitted(cluster, "--workers", "2", arguments=["die=1:20:step"], allowed=3)
        name = submitted.until_position(1).tasks[1].worker
        submitted.allow_until_printed(30, "went on from step")
        how = f'task 1 on worker {name} was killed by signal 9 (Killed): learner: dies at "step"'
        said = submitted.end(0)
        check_printed(submitted, said, f"{how}; the other went on from step 20")
        check_in(f"finished after {STEPS} steps; last interruption: {how}", submitted.shown(), "cadre job")
        submitted = Submitted(cluster, "--workers", "2", "--max-restarts", "0", arguments=["die=1:20:step"])
        check_printed(submitted, submitted.end(137), how)
        # Who was stopped because of it is not taken for another one that died.
        table = cluster.cadre("job", str(submitted.job)).stdout.decode()
        check_in("stopped by Cadre", table, "the line of task 0")


def test_an_exit():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitted = Submitted(cluster, "--workers", "2", arguments=["exit=1:20"], allowed=3)
        name = submitted.until_position(1).tasks[1].worker
        submitted.allow_until_printed(30, "went on from step")
        how = f"task 1 on worker {name} exited with status 3: learner: shard 7: Input/output error"
        check_printed(submitted, submitted.end(0), f"{how}; the other went on from step 20")
        submitted = Submitted(cluster, "--workers", "2", "--max-restarts", "0", arguments=["exit=1:20"])
        check_printed(submitted, submitted.end(3), how)


def test_no_state_is_left():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitted = Submitted(cluster, "--workers", "1", arguments=["exit=0:20"], allowed=30)
        submitted.allow_until_printed(30, "all tasks began again")
        check_printed(submitted, submitted.end(0), "status 3: learner: shard 7: Input/output error; no state was left, "
                   "so all tasks began again, and Cadre has no checkpoint of the job")
        submitted = Submitted(cluster, "--workers", "1", "--checkpoint-every", "4", allowed=17)
        submitted.until_position(15)
        pid = submitted.until_checkpoint().tasks[0].pid
        os.kill(pid, signal.SIGKILL)
        submitted.allow_until_printed(30, "began again from the checkpoint of step ")
        printed = [line for line in submitted.end(0) if "began again from the checkpoint of step " in line]
        check(printed and int(printed[0].rsplit(" ", 1)[1]) >= 4, f"the checkpoint is not named: {printed}")


def lose_worker(cluster, submitted, slot):
    name = submitted.until_position(8).tasks[slot].worker
    next(worker for worker in cluster.workers if worker.name == name).kill()
    return name


def test_a_lost_worker():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitted = Submitted(cluster, "--workers", "2", "--wait", WAIT, allowed=10)
        name = lose_worker(cluster, submitted, 1)
        said = submitted.end(1)
        lost = f"task 1 was lost with worker {name}, whose connection ended and which "\
               f"did not come back in {in_words(FAST[1])}"
        waits = [line for line in said if "waits for 1 more task (0 of 1 slot is free)" in line]
        check(waits, f"what it waits for is not printed: {said}")
        check_in(f"of at most {in_words(WAIT)}", waits[-1], "how long")
        check_printed(submitted, said, "1 of 2 tasks is left, and no place for another was found within "
                   f"{in_words(WAIT)}: {lost}")
        next(worker for worker in cluster.workers if worker.name == name).start()
        submitted = Submitted(cluster, "--workers", "1:2", allowed=10)
        name = lose_worker(cluster, submitted, 1)
        submitted.allow_until_printed(30, "went on from step")
        said = submitted.end(0)
        went_on = [line for line in said if "went on from step" in line]
        check_equal(len(went_on), 1, f"lines that say that it went on among {said}")
        check_in(f" worker {name}", submitted.shown(), "cadre job")  # lost, or silent before that was known
        next(worker for worker in cluster.workers if worker.name == name).start()


def test_a_drain():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitted = Submitted(cluster, "--workers", "1:2", allowed=10)
        name = submitted.until_position(8).tasks[1].worker
        cluster.cadre("drain", name)
        submitted.allow_until_printed(30, "went on from step")
        said = submitted.end(0)
        check(any("1 task had to leave, since its worker drains; the other went on from step" in line for line in said),
              f"the drain is not printed: {said}")


if __name__ == "__main__":
    run(globals())
