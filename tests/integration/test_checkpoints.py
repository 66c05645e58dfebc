# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: published when they can be read without their writer, restored by any number of tasks, in the middle of
an epoch."""
import contextlib
import json
import os
import shutil
import signal
import tempfile

from checkpoints import EVERY, damage, published
from client import FAILED, jobs_pb2
from cluster import Cluster, trainer
from learning import EPOCHS, FAST, FAST_WORKER, Learning, first_logged, kill_all, tensors_of
from testing import check, check_equal, check_in, run, wait_for

def shared_folder(cluster):
    folder = tempfile.mkdtemp(prefix="shared-", dir=cluster.folder)
    os.chmod(folder, 0o777)
    return folder


def test_resume_in_the_middle_of_an_epoch():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, checkpoint_every=EVERY, allowed=EVERY)
        saved = published(learning, 8)
        info = learning.get()
        kill_all(info)
        learning.allow()
        learning.end()
        learning.check_learned()
        epoch, step = first_logged(learning, {task.slot: task.incarnation for task in info.tasks})
        check(epoch > 0 or step >= saved, f"it began again at epoch {epoch} step {step}, not at {saved}")


def test_the_writer_is_gone():
    """The chief's worker dies, and all that it had on its disk with it."""
    for shared in (False, True):
        with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
            fields = {"checkpoint_folder": shared_folder(cluster)} if shared else {}
            learning = Learning(cluster, workers=1, max_restarts=1, checkpoint_every=EVERY, allowed=EVERY, **fields)
            saved = published(learning, 8)
            info = learning.get()
            writer = next(worker for worker in cluster.workers if worker.name == info.tasks[0].worker)
            writer.kill()
            with contextlib.suppress(ProcessLookupError):  # its keeper may have been quicker
                os.kill(info.tasks[0].pid, signal.SIGKILL)
            shutil.rmtree(writer.state)
            learning.allow()
            end = learning.end()
            check(end.tasks[0].worker != writer.name, "it went on where it was")
            learning.check_learned()
            check(first_logged(learning, {0: info.tasks[0].incarnation}) >= (0, saved), "it did not begin again")
            writer.start()


def test_another_job_at_another_size():
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=3, checkpoint_every=EVERY, allowed=EVERY)
        saved = published(learning, 8)
        cluster.client.cancel(learning.job)
        cluster.client.wait(learning.job)
        for workers in (1, 2):
            again = Learning(cluster, workers=workers, restore_from=learning.job)
            again.end()
            state = again.state()
            check_equal(state["count"], (EPOCHS,) * 192, "how often each sample was applied")
            check(min(again.log_lines()) >= (0, saved), "it did not begin again")
        nothing = Learning(cluster, workers=1)
        nothing.end()


def test_going_on_from_the_end():
    """With nothing left to do a job leaves what the one before it left."""
    with Cluster(workers=1, slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        first = Learning(cluster, workers=2)
        first.end()
        again = Learning(cluster, workers=2, restore_from=first.job)
        again.end()
        check_equal(again.state(), first.state(), "the tensors")
        names = [[path for path in sorted(cluster.client.outputs(learning.job)) if path.startswith("0/") and
                  "/events/" not in path]
                 for learning in (first, again)]
        check_equal(names[1], names[0], "the files")


def test_a_damaged_checkpoint_is_not_the_end():
    """The two newest are damaged: all tasks begin again from the third, once, and it is said why."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=2, checkpoint_every=EVERY, checkpoints_kept=4,
                            allowed=EVERY)
        published(learning, 16)
        kept = damage(cluster, cluster.client, learning.job, (12, 16))
        check_equal(kept, [4, 8, 12, 16], "checkpoints that are kept")
        kill_all(learning.get())
        shown = learning.until(lambda now: "again from the checkpoint of step 8" in now.message, "what it goes on from")
        check_in("the checkpoint of step 12 is damaged (its content does not have its hash)", shown.message,
                 "what the job says")
        learning.allow()
        end = learning.end()
        learning.check_learned()
        check_equal(end.restarts, 1, "restarts that count")
        log = cluster.coordinator.log()
        for step in (12, 16):
            check_in(f"a checkpoint is damaged: the one before it counts job=1 step={step} ", log, "the log")
        check_in("exactly", cluster.cadre("verify", "1").stdout.decode(), "what can be proved")


def test_a_restored_job_that_takes_no_step():
    """What it reads and what it leaves is what it was restored from, without a dataset too."""
    with Cluster(workers=1, slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        program = os.path.join(cluster.folder, "trainer")
        with open(program, "wb") as file:
            file.write(trainer())
        os.chmod(program, 0o755)
        restore, wanted = [], None
        for taken in (10, 0, 0):
            cluster.cadre("submit", "--workers", "2", *restore, "--", program, "10", "bare")
            job = max(job.id for job in client.jobs.List(jobs_pb2.ListJobsRequest()).jobs)
            check_in(f"the sum is 20 after {taken} steps", client.log(job).decode(), f"what job {job} said")
            outputs = client.outputs(job)
            (left,) = [tensors_of(outputs[name]) for name in outputs if name.endswith("checkpoint-10.safetensors")
                       and not name.startswith("checkpoints/")]
            check_equal(left["sum"], (20.0,), f"the sum that job {job} left")
            wanted = wanted or left
            check_equal(left, wanted, "all tensors")
            restore = ["--restore", str(job)]


def test_what_cadre_get_brings():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "pace=5", workers=1, checkpoint_every=10, checkpoints_kept=2)
        learning.end()
        outputs = cluster.client.outputs(learning.job)
        manifests = sorted(path for path in outputs if path.startswith("checkpoints/") and path.endswith(".json"))
        check_equal(len(manifests), 2, f"checkpoints that are kept, of {sorted(outputs)}")
        for path in manifests:
            manifest = json.loads(outputs[path])
            content = outputs[path.replace(".json", ".safetensors")]
            check_equal(manifest["file"]["bytes"], len(content), "size in the manifest")
            check_equal(sum(block["bytes"] for block in manifest["blocks"]), len(content), "bytes of all blocks")
            check_in("count", tensors_of(content), "the tensors")
        target = tempfile.mkdtemp(dir=cluster.folder)
        cluster.cadre("get", str(learning.job), "--to", target, status=None)


def test_a_shared_folder_that_is_none():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, checkpoint_folder="/nowhere/at/all")
        end = cluster.client.wait(learning.job)
        check_equal(end.state, FAILED, str(end))
        check_in("/nowhere/at/all", end.message, "the message")


def test_a_shared_folder_keeps_the_newest():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        folder = shared_folder(cluster)
        with open(os.path.join(folder, "mine"), "w", encoding="utf-8") as file:
            file.write("not to be touched")
        learning = Learning(cluster, "pace=5", workers=2, checkpoint_every=4, checkpoints_kept=2,
                            checkpoint_folder=folder)
        learning.end()
        learning.check_learned()
        wait_for("two are kept", lambda: len([name for name in os.listdir(folder) if name.endswith(".json")]) == 2)
        left = [name for name in os.listdir(folder) if not name.startswith("checkpoint-") and name != "mine"]
        check_equal(left, [], "other files")


if __name__ == "__main__":
    run(globals())
