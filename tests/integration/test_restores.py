# SPDX-License-Identifier: Apache-2.0
"""Going on from checkpoints of which some are damaged: of another job, in a folder, by hand."""
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile

import grpc

from checkpoints import EVERY, damage, kept_steps, published
from client import FAILED, jobs_pb2
from cluster import TRAINER, Cluster, clean_environment, program
from learning import EPOCHS, FAST, FAST_WORKER, LEARNER, Learning, pids_of
from testing import HANG_S, check, check_equal, check_in, run

WHY = "its content does not have its hash"


def trained(cluster):
    """A job that was cancelled, and the steps of its checkpoints."""
    learning = Learning(cluster, workers=2, checkpoint_every=EVERY, checkpoints_kept=4, allowed=EVERY)
    published(learning, 16)
    cluster.client.cancel(learning.job)
    cluster.client.wait(learning.job)
    steps = kept_steps(cluster, learning.job)
    check_equal(len(steps), 4, f"checkpoints of {steps}")
    return learning, steps


def check_exact(cluster, client, job, begins):
    """All was applied once, and is proved from the step that was taken."""
    proof = cluster.cadre("verify", str(job)).stdout.decode()
    check_in("exactly", proof, "what can be proved")
    verified = client.jobs.Verify(jobs_pb2.JobRequest(id=job))
    check_equal(min(generation.resume for generation in verified.generations), begins, "the first step of the proof")


def test_what_a_worker_finds_damaged():
    """The two newest, after the tasks were placed: the job goes on from the third, and all say so."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning, steps = trained(cluster)
        damage(cluster, cluster.client, learning.job, steps[-2:])
        again = Learning(cluster, workers=2, restore_from=learning.job, allowed=steps[-1])
        shown = again.until(lambda info: f"goes on from that of step {steps[-3]} of job 1" in info.message,
                           "what it goes on from")
        check_in(f"the checkpoint of step {steps[-2]} of job 1 is damaged ({WHY})", shown.message, "what the job says")
        cluster.coordinator.kill()
        cluster.coordinator.start()
        again.client = cluster.new_client()
        again.allow()
        end = again.end()
        check_equal(end.restarts, 0, "restarts that count")
        check_equal(again.state()["count"], (EPOCHS,) * 192, "how often each sample was applied")
        check_exact(cluster, again.client, again.job, steps[-3])
        log = cluster.coordinator.log()
        for job in (learning.job, again.job):
            for step, before in zip(steps[-2:], steps[-3:-1]):
                check_in(f"the one before it counts job={job} step={step} before={before} reason=\"{WHY}\"", log,
                         "the log")


def test_what_is_known_before():
    """The answer of the submission says it, after a start of the coordinator too; a step that was named is not
    replaced; and at last nothing is left."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning, steps = trained(cluster)
        damage(cluster, cluster.client, learning.job, steps[-1:])
        named = Learning(cluster, workers=1, restore_from=learning.job, restore_step=steps[-1])
        end = cluster.client.wait(named.job)
        check_equal(end.state, FAILED, "a step that was named")
        kept = ", ".join(str(step) for step in steps[:-2]) + f" and {steps[-2]}"
        check_in(f"DATA_LOSS: the checkpoint of step {steps[-1]} of job 1 is damaged ({WHY}), and it is the one that "
                 f"the job goes on from; job 1 keeps those of the steps {kept}: name one with --restore 1@{steps[-2]}",
                 f"{grpc_name(end.code)}: {end.message}", "what it says")
        cluster.coordinator.kill()
        cluster.coordinator.start()
        client = cluster.new_client()
        submitted = submit(cluster, "--restore", "1")
        note = f"the checkpoint of step {steps[-1]} of job 1 is damaged ({WHY}): the job goes on from that of step " \
               f"{steps[-2]}"
        check_in(f"cadre submit: {note}\n", submitted.stderr.decode(), "what submit says")
        check_in(note, cluster.coordinator.log(), "the log")
        job = int(re.search(r"job (\d+) submitted", submitted.stdout.decode())[1])
        client.wait(job)
        check_exact(cluster, client, job, steps[-2])
        refused = submit(cluster, "--restore", f"1@{steps[-1]}", status=1)
        check_in(f"the checkpoint of step {steps[-1]} of job 1 is damaged ({WHY}): it keeps those of the steps {kept}",
                 refused.stderr.decode(), "a step that is known to be damaged")
        damage(cluster, client, learning.job, steps[:-1])
        end = client.wait(int(re.search(r"job (\d+) submitted", submit(cluster, "--restore", "1").stdout.decode())[1]))
        check_in(f"the checkpoint of step {steps[0]} of job 1 is damaged ({WHY}), and it is the one that the job goes "
                 "on from; job 1 keeps no other that is whole", end.message, "what it says")
        refused = submit(cluster, "--restore", "1", status=1)
        check_in(f"job 1 has no checkpoint that is whole: the newest, of step {steps[-1]}, is damaged ({WHY}), and it "
                 "keeps no other", refused.stderr.decode(), "what submit says")


def grpc_name(code):
    return next(status.name for status in grpc.StatusCode if status.value[0] == code)


def submit(cluster, *options, status=0):
    return cluster.cadre("submit", "--detach", "--workers", "2", *options, "--", LEARNER, f"log={cluster.folder}",
                         status=status)


def test_a_manifest_that_is_gone():
    with Cluster(workers=1, slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning, steps = trained(cluster)
        outputs = cluster.client.outputs(learning.job)
        os.unlink(manifest_of(cluster, outputs, steps[-1]))
        again = Learning(cluster, workers=1, restore_from=learning.job)
        again.end()
        check_exact(cluster, again.client, again.job, steps[-2])


def manifest_of(cluster, outputs, step):
    content = outputs[f"checkpoints/checkpoint-{step}.json"]
    check(json.loads(content)["position"] == step, "another step")
    return f"{cluster.coordinator.state}/blobs/{hashlib.sha256(content).hexdigest()}"


def flip_file(path):
    """The last byte, which is of a tensor."""
    with open(path, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        last = file.read(1)
        file.seek(-1, os.SEEK_END)
        file.write(bytes([last[0] ^ 1]))


class Folder:
    """Checkpoints of the steps 3, 6 and 9 of the trainer, each of a `cadre run` of two tasks."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="cadre-test-")
        self.saved = os.path.join(self.path, "saved")
        self.steps = [3, 6, 9]
        for step in self.steps:
            self.run("cadre", "run", "-n", "2", "-o", "first", "--checkpoint-folder", self.saved, TRAINER, "--",
                     str(step), "bare")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def file(self, step, kind="safetensors"):
        return os.path.join(self.saved, f"checkpoint-{step}.{kind}")

    def flip(self, step):
        flip_file(self.file(step))

    def run(self, *argv, status=0, **environment):
        done = subprocess.run([program(argv[0]) if argv[0] == "cadre" else argv[0], *argv[1:]], cwd=self.path,
                              capture_output=True, timeout=HANG_S, check=False, env=clean_environment() | environment)
        said = (done.stdout + done.stderr).decode(errors="replace")
        check_equal(done.returncode, status, f"status of {argv}, which said {said[-1500:]}")
        return said

    def restore(self, tasks, path, status=0):
        """What a run that goes on from there says; tasks 0: by hand."""
        if tasks == 0:
            return self.run(TRAINER, "12", "bare", status=status, CADRE_RESTORE=path)
        return self.run("cadre", "run", "-n", str(tasks), "-o", "out", "--restore", path, TRAINER, "--", "12", "bare",
                        status=status)


def test_the_newest_whole_one_of_a_folder():
    with Folder() as folder:
        third, second, newest = folder.steps
        for tasks in (0, 2):
            said = folder.restore(tasks, folder.saved)
            check_in(f"after {12 - newest} steps", said, "what was taken")
            check("warning" not in said, f"nothing is damaged: {said}")
        folder.flip(newest)
        why = f"the checkpoint of step {newest} in {folder.saved} is damaged (block 1 of 1 of " \
              f"checkpoint-{newest}.safetensors does not have its hash)"
        for tasks in (0, 2):
            said = folder.restore(tasks, folder.saved)
            check_equal(said.count("warning"), 1, f"warnings: {said}")
            check_in(f"warning: {why}: that of step {second} is taken\n", said, "the warning")
            check_equal(said.count(f"after {12 - second} steps"), max(tasks, 1), f"tasks that took it: {said}")
        os.unlink(folder.file(second, "json"))
        for tasks in (0, 2):
            said = folder.restore(tasks, folder.saved)
            check_in(f"warning: {why}, and so are 1 before it: that of step {third} is taken\n", said, "the warning")
            check_equal(said.count(f"after {12 - third} steps"), max(tasks, 1), f"tasks that took it: {said}")
        with open(folder.file(third), "r+b") as file:
            file.truncate(20)
        for tasks in (0, 2):
            said = folder.restore(tasks, folder.saved, status=1)
            check_in(f"no checkpoint in {folder.saved} is whole: that of step {newest} is damaged (block 1 of 1 of "
                     f"checkpoint-{newest}.safetensors does not have its hash), and so are all before it", said,
                     "the error")


def test_a_file_that_was_named_is_not_replaced():
    with Folder() as folder:
        second, newest = folder.steps[-2:]
        instead = f"the newest whole one beside it is {folder.file(second, 'json')}: name that, or the folder " \
                  f"{folder.saved}"
        folder.flip(newest)
        for tasks in (0, 2):
            said = folder.restore(tasks, folder.file(newest, "json"), status=1)
            check_in(f"{folder.file(newest)} is damaged: block 0", said, "the error")
            check_in(instead, said, "the error")
        with open(folder.file(newest), "r+b") as file:
            file.truncate(20)
        for tasks in (0, 2):
            check_in(instead, folder.restore(tasks, folder.file(newest, "json"), status=1), "the error")
        os.unlink(folder.file(newest, "json"))
        for tasks in (0, 2):
            check_in(instead, folder.restore(tasks, folder.file(newest, "json"), status=1), "the error")


def damage_folder(folder, steps):
    """A byte, the end, and the manifest of the newest, the one before it, and so on."""
    ways = [lambda path: flip_file(f"{path}.safetensors"), lambda path: os.truncate(f"{path}.safetensors", 20),
            lambda path: os.unlink(f"{path}.json")]
    for step, way in zip(reversed(steps), ways):
        way(os.path.join(folder, f"checkpoint-{step}"))


def steps_in(folder):
    return sorted(int(re.search(r"-(\d+)\.json", name)[1]) for name in os.listdir(folder) if name.endswith(".json"))


def test_a_shared_folder():
    """Of its own after all its tasks were killed, and of another job: the newest that is whole counts."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        shared = tempfile.mkdtemp(prefix="shared-", dir=cluster.folder)
        os.chmod(shared, 0o777)
        fields = {"workers": 2, "checkpoint_folder": shared}
        learning = Learning(cluster, checkpoint_every=EVERY, checkpoints_kept=6, max_restarts=2, allowed=EVERY,
                            **fields)
        published(learning, 20)
        info = learning.get()
        steps = steps_in(shared)
        damage_folder(shared, steps[-3:])
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        shown = learning.until(lambda now: f"again from the checkpoint of step {steps[-4]}" in now.message,
                              "what it goes on from")
        check_in(f"the checkpoint of step {steps[-3]} is damaged (checkpoint-{steps[-3]}.json is missing)",
                 shown.message, "what the job says")
        learning.allow()
        learning.end()
        learning.check_learned()
        steps = kept_steps(cluster, learning.job)
        damage_folder(shared, steps[-2:])
        again = Learning(cluster, restore_from=learning.job, **fields)
        end = again.end()
        check_equal(end.restarts, 0, "restarts that count")
        check_equal(again.state()["count"], (EPOCHS,) * 192, "how often each sample was applied")
        check_exact(cluster, cluster.client, again.job, steps[-3])
        log = cluster.coordinator.log()
        check_in(f"the one before it counts job={again.job} step={steps[-2]} "
                 f"reason=\"checkpoint-{steps[-2]}.safetensors has 20 bytes", log, "the log")


def test_a_folder_that_is_not_there_is_no_damage():
    """Nothing of it is given up: the job fails, and the next one goes on when it is there again."""
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        shared = tempfile.mkdtemp(prefix="shared-", dir=cluster.folder)
        os.chmod(shared, 0o777)
        fields = {"workers": 1, "checkpoint_folder": shared}
        first = Learning(cluster, checkpoint_every=4, **fields)
        first.end()
        newest = steps_in(shared)[-1]
        os.rename(shared, f"{shared}-away")
        os.mkdir(shared)
        os.chmod(shared, 0o777)
        failed = cluster.client.wait(Learning(cluster, restore_from=first.job, **fields).job)
        check_equal(failed.state, FAILED, str(failed))
        os.rmdir(shared)
        os.rename(f"{shared}-away", shared)
        again = Learning(cluster, restore_from=first.job, **fields)
        check_equal(again.end().position, newest, "where it stands")


def test_a_run_that_begins_again():
    """`cadre run` whose task was killed: of the checkpoints that it left the newest whole one."""
    with Folder() as folder:
        script = os.path.join(folder.path, "once")
        own = os.path.join(folder.path, "own")
        with open(script, "w", encoding="utf-8") as file:
            file.write(f"""#!/bin/sh
                if [ ! -e {folder.path}/was ]; then
                    touch {folder.path}/was
                    {LEARNER} log={folder.path} pace=10 &
                    while [ ! -e {own}/checkpoint-12.json ]; do sleep 0.02; done
                    kill -9 $!
                    for file in {own}/*.safetensors; do
                        [ $file = {own}/checkpoint-4.safetensors ] || truncate -s 20 $file
                    done
                    kill -9 $$
                fi
                exec {LEARNER} log={folder.path}
                """)
        os.chmod(script, 0o755)
        said = folder.run("cadre", "run", "--max-restarts", "2", "--checkpoint-every", "4", "--keep-checkpoints", "20",
                          "--checkpoint-folder", own, script)
        check_in("the checkpoint of step 8 is damaged (checkpoint-8.safetensors has 20 bytes", said, "what is said")
        check_in("again from the checkpoint of step 4", said, "what is said")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]


def test_tasks_by_hand_follow_the_first():
    """What the others see in the folder is something else: they take what the first one chose, or all fail."""
    with Folder() as folder:
        second, newest = folder.steps[-2:]
        others = os.path.join(folder.path, "others")
        shutil.copytree(folder.saved, others)
        folder.flip(newest)
        for seen, wanted in (([folder.saved, others, others], second), ([others, folder.saved, "/nowhere"], None),
                             ([None, folder.saved, folder.saved], None)):
            cluster = [f"127.0.0.1:{port}" for port in free_ports(3)]
            running = []
            for task, path in enumerate(seen):
                settings = {"TF_CONFIG": json.dumps({"cluster": {"worker": cluster},
                                                     "task": {"type": "worker", "index": task}}),
                            "CADRE_OUTPUT_DIR": folder.path, "CADRE_CLUSTER_WAIT_S": "10"}
                if path is not None:
                    settings["CADRE_RESTORE"] = path
                running.append(subprocess.Popen([TRAINER, "12", "bare"], cwd=folder.path, stdout=subprocess.PIPE,
                                                stderr=subprocess.STDOUT, env=clean_environment() | settings))
            said = [process.communicate(timeout=HANG_S)[0].decode(errors="replace") for process in running]
            if wanted is None:
                check(any(process.returncode != 0 for process in running), f"they trained: {said}")
                check(not any("the sum is" in text for text in said), f"they took different ones: {said}")
                continue
            check_equal([process.returncode for process in running], [0] * 3, f"how they ended: {said}")
            for text in said:
                check_in(f"after {12 - wanted} steps", text, "what was taken")
            check_equal([text.count("warning") for text in said], [1, 0, 0], "who warns")


if __name__ == "__main__":
    run(globals())
