# SPDX-License-Identifier: Apache-2.0
"""Jobs that go on from checkpoints of others, of which some are damaged."""
import hashlib
import json
import os
import re

import grpc

from checkpoints import EVERY, damage, kept_steps, published
from client import FAILED, jobs_pb2
from cluster import Cluster
from learning import EPOCHS, FAST, FAST_WORKER, LEARNER, Learning
from testing import check, check_equal, check_in, run

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
        told = again.until(lambda info: f"goes on from that of step {steps[-3]} of job 1" in info.message,
                           "what it goes on from")
        check_in(f"the checkpoint of step {steps[-2]} of job 1 is damaged ({WHY})", told.message, "what the job says")
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


if __name__ == "__main__":
    run(globals())
