# SPDX-License-Identifier: Apache-2.0
"""A backup as the guide says it is made (a snapshot of etcd, then a copy of the contents' folder), and all that is lost
comes back from it: other etcds, and coordinators whose state folders are empty."""
import json
import os
import shutil
import signal

from checkpoints import EVERY, published
from client import CANCELLED
from learning import EPOCHS, FAST_WORKER, SAMPLES, Learning, kill_all
from several import Several, TIMING
from testing import check_equal, check_in, run, wait_for


class Backup:
    """Made while jobs run."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.snapshot, self.contents = f"{cluster.folder}/etcd.backup", f"{cluster.folder}/contents.backup"
        cluster.etcds.ctl("snapshot", "save", self.snapshot)
        shutil.copytree(cluster.contents, self.contents, symlinks=True)

    def lose_all(self):
        for one in self.cluster.coordinators:
            one.kill()
            shutil.rmtree(one.state)
        for member in self.cluster.etcds.members:
            member.kill()
        shutil.rmtree(self.cluster.contents)

    def restore(self):
        self.cluster.etcds.restore(self.snapshot, "restored")
        os.rename(self.contents, self.cluster.contents)
        for one in self.cluster.coordinators:
            argv = list(one.argv)
            one.argv += ["--accept-restored"]
            one.start()
            one.argv = argv
        self.cluster.follow()


def jobs(cluster):
    return [job["id"] for job in json.loads(cluster.cadre("jobs", "--json").stdout)["jobs"]]


def change_leader(cluster):
    leader = cluster.leader()
    leader.stop()
    cluster.follow(but=leader)
    leader.start()


def test_the_tasks_are_there():
    """A job that was as it is now goes on with its tasks, though other coordinators have led meanwhile. What has ended
    is known; what was submitted after the backup is not, and its number is another job's."""
    with Several(workers=2, coordinators=2, members=3, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        done = Learning(cluster, workers=1)
        done.end()
        running = Learning(cluster, workers=2, allowed=16)
        before = running.until_position(16)
        backup = Backup(cluster)
        running.allow(25)
        running.until_position(25)
        for _ in range(3):
            change_leader(cluster)
        late = cluster.cadre("submit", "--detach", "/bin/true").stdout
        backup.lose_all()
        backup.restore()
        check_equal(sorted(jobs(cluster)), [done.job, running.job], "jobs")
        check_equal(cluster.cadre("submit", "--detach", "/bin/true").stdout, late, "the number of the next one")
        running.client = done.client = cluster.client
        running.allow()
        end = running.end()
        check_equal((end.restarts, end.generation), (0, before.generation), "restarts and the generation")
        running.check_learned()
        done.check_learned()
        change_leader(cluster)


def test_what_came_after_it():
    """A job with a newer generation waits, and says what to do. A worker with a newer job is refused, and says what to
    do: it drops that job."""
    with Several(workers=3, coordinators=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        running = Learning(cluster, workers=2, max_restarts=5, checkpoint_every=EVERY, allowed=2)
        published(running, 12)
        backup = Backup(cluster)
        before = running.get()
        os.kill(before.tasks[1].pid, signal.SIGKILL)
        running.until(lambda info: info.generation > before.generation, "the next generation")
        late = Learning(cluster, workers=1, allowed=7)
        holder = late.until_position(5).tasks[0].worker
        backup.lose_all()
        backup.restore()
        running.client = cluster.client
        waits = running.until(lambda info: "is older than the job, which waits" in info.message, "it waits")
        check_in(f"cancel the job and submit it again with --restore {running.job}", waits.message, "what to do")
        worker = next(one for one in cluster.workers if one.name == holder)
        text = f"keeps state of job {late.job}, and the newest job in the ledger is {running.job}"
        wait_for("its worker is refused", lambda: any(text in one.log() for one in cluster.coordinators))
        running.client.cancel(running.job)
        check_equal(running.client.wait(running.job).state, CANCELLED, "the job that waited")
        worker.stop()
        worker.start()
        change_leader(cluster)  # which submits nothing any more
        again = Learning(cluster, workers=2, restore_from=running.job)
        again.end()
        check_equal(again.state()["count"], (EPOCHS,) * SAMPLES, "how often each sample was applied")


def test_workers_are_lost_too():
    """A job goes on from its newest checkpoint in the backup."""
    with Several(workers=2, coordinators=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        running = Learning(cluster, workers=2, max_restarts=5, checkpoint_every=EVERY, allowed=2)
        published(running, 12)
        backup = Backup(cluster)
        running.allow(25)
        last = running.until_position(25)
        for worker in cluster.workers:
            worker.signal(signal.SIGSTOP)
        kill_all(last)
        for worker in cluster.workers:
            worker.kill()
        backup.lose_all()
        for worker in cluster.workers:
            shutil.rmtree(worker.state)
        backup.restore()
        for worker in cluster.workers:
            worker.start()
        running.client = cluster.client
        info = running.until(lambda info: info.generation > 1, "the next generation")
        check_equal(info.position >= 12, True, f"it goes on from a checkpoint: {info}")
        running.allow()
        running.end()
        running.check_learned()


if __name__ == "__main__":
    run(dict(globals()))
