# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in a real object store: of jobs and of `cadre run`, with tasks and uploads that are cut off, damaged
objects, and credentials that nothing shows."""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile

from checkpoints import EVERY, published
from client import FAILED, jobs_pb2
from cluster import Cluster, clean_environment, processes_naming, program
from earlier_coordinator import VERSION, EarlierCoordinator
from learning import FAST, FAST_WORKER, LEARNER, Learning, first_logged, kill_all
from testing import HANG_S, check, check_equal, check_in, run, wait_for

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "object_storage"))
from chosen import chosen_store, environment_of, fresh_bucket  # noqa: E402
from proxy import Proxy  # noqa: E402

BULKY = os.environ.get("CADRE_TEST_BULKY", "")
BULKY_MIB = 40  # of which the first 8 MiB are a part


def keys_of(bucket, prefix):
    return sorted(entry.key for entry in bucket.list(prefix))


def secret():
    return chosen_store().variables()["AWS_SECRET_ACCESS_KEY"]


def check_secret(cluster, job):
    """Nothing shows the job's credentials: what people see, what daemons log, what tasks print."""
    shown = [cluster.cadre(*arguments).stdout.decode() for arguments in (
        ("job", str(job)), ("job", str(job), "--json"), ("jobs", "--json"), ("history", str(job), "--json"),
        ("logs", str(job)), ("workers", "--json"))]
    shown += [daemon.log() for daemon in [cluster.coordinator, *cluster.workers]]
    for text in shown:
        check(secret() not in text, f"a secret is shown: {text}")


def test_a_job_goes_on_from_there():
    """All tasks are killed. What the job comes to is what it comes to without a store; the key has a space."""
    bucket = fresh_bucket("going-on")
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, checkpoint_every=EVERY, allowed=EVERY,
                            checkpoint_folder="s3://going-on/run 1/", environment=environment_of())
        saved = published(learning, 8)
        check_equal(keys_of(bucket, "run 1/"), [f"run 1/checkpoint-{step}.{kind}" for step in (4, 8)
                                               for kind in ("json", "safetensors")], "the objects")
        info = learning.get()
        kill_all(info)
        learning.allow()
        learning.end()
        learning.check_learned()
        check(first_logged(learning, {task.slot: task.incarnation for task in info.tasks}) >= (0, saved),
              "it began again")
        check_secret(cluster, learning.job)
        check_fetched(cluster, learning.job, bucket)


def command(cluster, *arguments, status=0, **variables):
    """`cadre` with these credentials of its own and no others; what it said. The status None: it failed."""
    own = clean_environment() | {"CADRE_COORDINATOR": cluster.address, "AWS_EC2_METADATA_DISABLED": "true",
                                 "HOME": cluster.folder}
    done = subprocess.run([program("cadre"), *arguments], capture_output=True, timeout=HANG_S, check=False,
                          cwd=cluster.folder, env=own | variables)
    said = (done.stdout + done.stderr).decode(errors="replace")
    check(done.returncode == status or (status is None and done.returncode > 0),
          f"cadre {' '.join(arguments)} ended with {done.returncode}: {said}")
    return said


def check_fetched(cluster, job, bucket):
    """`cadre get` reads the objects with the credentials of its caller, who may have none, or not enough."""
    own = chosen_store().variables()
    keys = keys_of(bucket, "run 1/checkpoint-")
    paths = ["checkpoints/" + key.split("/", 1)[1] for key in keys]
    listed = json.loads(command(cluster, "get", str(job), "--list", "--json", **own))["outputs"]
    check_equal([(item["path"], item["size_bytes"]) for item in listed if item["path"].startswith("checkpoints/")],
                [(path, len(bucket.get(key))) for path, key in zip(paths, keys)], "the list")
    command(cluster, "get", str(job), "checkpoints", "-o", "fetched", **own)
    for path, key in zip(paths, keys):
        with open(f"{cluster.folder}/fetched/{path}", "rb") as file:
            check(file.read() == bucket.get(key), f"the bytes of {path}")
    said = command(cluster, "get", str(job), "checkpoints", "-o", "none", status=1)
    check_in("no credentials for the object store", said, "without credentials")
    check(not os.path.exists(f"{cluster.folder}/none"), "a folder without files was left")
    said = command(cluster, "get", str(job), "--list", status=1)
    check_in(paths[0], said, "what is listed without credentials")
    damage(bucket, keys[1])
    said = command(cluster, "get", str(job), paths[1], "-o", "damaged", status=1, **own)
    check_in("does not have its hash: the object is damaged", said, "of damaged tensors")
    bucket.put(keys[0], b"{}")
    said = command(cluster, "get", str(job), paths[0], "-o", "damaged", status=1, **own)
    check_in(keys[0], said, "of another manifest")
    check(not os.path.exists(f"{cluster.folder}/damaged"), "something was left of damaged files")


def test_a_job_goes_on_from_what_no_job_wrote():
    """A checkpoint of `cadre run` in a store: looked at with the caller's credentials, read with the job's."""
    bucket = fresh_bucket("foreign")
    own = chosen_store().variables()
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        here(cluster.folder, program("cadre"), "run", "--checkpoint-every", "20", "-n", "2", "--checkpoint-folder",
             "s3://foreign/models/base/", LEARNER)
        wanted = bucket.get("models/base/checkpoint-51.safetensors")
        given = [word for item in environment_of() for word in ("--env", item)]
        submit = ["submit", "-n", "2", "--checkpoint-every", "20"]
        first = "s3://foreign/models/base/checkpoint-20.json"
        command(cluster, *submit, *given, "--restore", first, "--checkpoint-folder", "s3://foreign/again", LEARNER)
        check(bucket.get("again/checkpoint-51.safetensors") == wanted, "the bytes")
        check_equal(min(generation.resume for generation in
                        cluster.client.jobs.Verify(jobs_pb2.JobRequest(id=1)).generations), 20, "the first step")
        # Of a folder the newest that is there; the job has its credentials by name alone, and its own go elsewhere.
        bucket.put("models/base/checkpoint-51.safetensors", b"short")
        names = [word for name in own for word in ("--env", name)]
        steps = sorted(int(key.split("-")[-1].split(".")[0]) for key in keys_of(bucket, "models/base/")
                       if key.endswith(".json"))
        said = command(cluster, *submit, *names, "--restore", "s3://foreign/models/base", LEARNER, **own)
        check_in(f"that of step {steps[-2]} is taken", said, "what it says of the newest")
        # What is wrong is said before there is a job.
        jobs = len(cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs)
        for words, restore, environment in (
                ("no credentials for the object store", first, {"AWS_ENDPOINT_URL": chosen_store().endpoint}),
                ("checkpoint-21.json", "s3://foreign/models/base/checkpoint-21.json", own),
                ("holds no checkpoint", "s3://foreign/nothing", own),
                ("is whole", "s3://foreign/models/base/checkpoint-51.json", own)):
            said = command(cluster, *submit, "--restore", restore, LEARNER, status=1, **environment)
            check_in("--restore", said, "what is wrong")
            check(words in said or words == "is whole" and "not whole" in said, f"'{words}' is not said: {said}")
        said = command(cluster, *submit, "--restore", "s3:/foreign", LEARNER, status=2, **own)
        check_in("nor s3://BUCKET/KEY", said, "of what is no path")
        check_equal(len(cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs), jobs, "jobs")
        # Damage that only the one who reads all of it finds, the worker with the job's credentials.
        damage(bucket, "models/base/checkpoint-20.safetensors")
        said = command(cluster, *submit, *given, "--restore", first, LEARNER, status=None, **own)
        check_in("the checkpoint of step 20", said, "the end of a job")
        check_in("does not have its hash", said, "the end of a job")


def test_an_earlier_coordinator_is_given_no_such_job():
    """It would pass over what it does not know: the job would begin with nothing, or leave its files elsewhere."""
    bucket = fresh_bucket("earlier")
    bucket.put("file", b"bytes")
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder, EarlierCoordinator(folder) as earlier:
        here(folder, program("cadre"), "run", "--checkpoint-every", "20", "--checkpoint-folder", "s3://earlier/run",
             LEARNER)
        for options, words in ((("--restore", "s3://earlier/run"), "no start from a checkpoint in an object store"),
                               (("--checkpoint-folder", "s3://earlier/new"), "no checkpoint folder in an object store"),
                               (("--outputs", "s3://earlier/out"), "no outputs that workers write to an object store"),
                               (("--file", "s3://earlier/file"), "no files that workers fetch from an object store")):
            said = here(folder, program("cadre"), "submit", "--coordinator", earlier.address, *options, LEARNER,
                        status=1)
            check_in(f"the coordinator at {earlier.address} has version {VERSION}, which knows {words}", said, options)
            check_in("upgrade the coordinator", said, options)
        check_equal(set(earlier.asked), {"Version"}, "what the coordinator was asked")


def test_a_damaged_object_is_not_the_end():
    """The worker finds it with the job's credentials: the newest whole one counts, of the same job and for another."""
    bucket = fresh_bucket("damaged")
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        fields = {"checkpoint_folder": "s3://damaged/run", "environment": environment_of(),
                  "checkpoint_every": EVERY, "checkpoints_kept": 4}
        learning = Learning(cluster, workers=2, max_restarts=2, allowed=EVERY, **fields)
        published(learning, 16)
        damage(bucket, "run/checkpoint-16.safetensors")
        kill_all(learning.get())
        shown = learning.until(lambda now: "again from the checkpoint of step 12" in now.message, "the one before")
        check_in("the checkpoint of step 16 is damaged (block 1 of 1 of checkpoint-16.safetensors does not have its "
                 "hash)", shown.message, "what the job says")
        cluster.client.cancel(learning.job)
        cluster.client.wait(learning.job)
        damage(bucket, "run/checkpoint-12.safetensors")
        again = Learning(cluster, workers=1, restore_from=learning.job, **fields)
        again.end()
        check_equal(min(generation.resume for generation in
                        cluster.client.jobs.Verify(jobs_pb2.JobRequest(id=again.job)).generations), 8,
                    "the first step of the other job")


def damage(bucket, key):
    body = bytearray(bucket.get(key))
    body[-1] ^= 1
    bucket.put(key, bytes(body))


def test_no_credentials():
    fresh_bucket("refused")
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        without = [item for item in environment_of() if not item.startswith("AWS_SECRET")]
        for environment, words in ((without, "s3://refused/run"),
                                   (environment_of(user=chosen_store().reader), "s3:PutObject")):
            learning = Learning(cluster, workers=1, max_restarts=0, checkpoint_every=EVERY,
                                checkpoint_folder="s3://refused/run", environment=environment)
            end = cluster.client.wait(learning.job)
            check_equal(end.state, FAILED, "a job that may not write there")
            check_in(words, end.message + cluster.client.log(learning.job).decode(errors="replace"), "what it says")


def test_a_writer_is_killed_in_the_middle_of_an_upload():
    """Nothing is seen of the upload, the job goes on, and what is left of the upload is removed."""
    store = chosen_store()
    bucket = fresh_bucket("cut-off")
    with Proxy(store.endpoint) as proxy, Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        proxy.link.bytes_s = 4e6
        with open(BULKY, "rb") as file:
            job = cluster.client.submit(file.read(), workers=1, max_restarts=3, arguments=[str(BULKY_MIB)],
                                        checkpoint_folder="s3://cut-off/run",
                                        environment=environment_of(endpoint=proxy.endpoint))
        for _ in range(2):
            task = cluster.client.watch_until(job, lambda info: info.tasks and info.tasks[0].pid > 0, "a task").tasks[0]
            wait_for("an upload is on its way", lambda: bucket.uploads("run/"))
            os.kill(task.pid, signal.SIGKILL)
            check_equal(keys_of(bucket, "run/checkpoint-"), [], "what is seen of a half-written checkpoint")
            cluster.client.watch_until(job, lambda info, old=task: info.tasks and
                                       info.tasks[0].incarnation > old.incarnation, "the next task")
        proxy.link.bytes_s = 0.0
        cluster.client.wait(job)
        start = f"run/checkpoint-1.{task.incarnation + 1}"  # the third writer is in the name
        check_equal(keys_of(bucket, "run/"), [f"{start}.json", f"{start}.safetensors"], "the objects")
        check_equal(bucket.uploads("run/"), [], "uploads that are left")
        manifest = json.loads(bucket.get(f"{start}.json"))
        check_equal(len(bucket.get(f"{start}.safetensors")), manifest["file"]["bytes"], "the bytes")


def here(folder, *command, status=0, **environment):
    done = subprocess.run(command, capture_output=True, timeout=HANG_S, check=False, cwd=folder,
                          env=clean_environment() | chosen_store().variables() | environment)
    said = (done.stdout + done.stderr).decode(errors="replace")
    check_equal(done.returncode, status, f"the status of {command}: {said}")
    return said


def newest(folder):
    (path,) = glob.glob(f"{folder}/**/checkpoint-51.safetensors", recursive=True)
    with open(path, "rb") as file:
        return file.read()


def test_run_and_by_hand():
    """The same bytes as in files; on from an object, and from a folder of which the newest one is damaged."""
    bucket = fresh_bucket("by-hand")
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        it = [program("cadre"), "run", "--checkpoint-every", "20", "-n", "2"]
        here(folder, *it, "--checkpoint-folder", "files", LEARNER)
        here(folder, *it, "--checkpoint-folder", "s3://by-hand/run/", LEARNER)
        wanted = newest(f"{folder}/files")
        check(bucket.get("run/checkpoint-51.safetensors") == wanted, "the bytes in the store")
        found = keys_of(bucket, "")
        steps = [20, 40, 51] if "run/checkpoint-40.json" in found else [20, 51]  # it may be left out
        check_equal(found, [f"run/checkpoint-{step}.{kind}" for step in steps for kind in ("json", "safetensors")],
                    "the objects")
        for begin in ("s3://by-hand/run/checkpoint-20.json", "s3://by-hand/run"):
            here(folder, *it, "--restore", begin, "--checkpoint-folder", "s3://by-hand/again", LEARNER)
            check(bucket.get("again/checkpoint-51.safetensors") == wanted, f"the bytes, on from {begin}")
        damage(bucket, "run/checkpoint-51.safetensors")
        said = here(folder, *it, "--restore", "s3://by-hand/run", "--checkpoint-folder", "restored", LEARNER)
        check_in("the checkpoint of step 51 in s3://by-hand/run is damaged", said, "the warning")
        check(newest(f"{folder}/restored") == wanted, "the bytes, on from the one before")
        said = here(folder, *it, "--restore", "s3://by-hand/none.json", LEARNER, status=1)
        check_in("s3://by-hand/none.json", said, "what a missing one is called")
        here(folder, LEARNER, CADRE_CHECKPOINT_DIR="s3://by-hand/hand/", CADRE_RESTORE="s3://by-hand/run")
        check_equal(keys_of(bucket, "hand/"), ["hand/checkpoint-51.json", "hand/checkpoint-51.safetensors"],
                    "what a program by hand left")
        said = here(folder, LEARNER, CADRE_CHECKPOINT_DIR="s3://Wrong/x", status=1)
        check_in("CADRE_CHECKPOINT_DIR is 's3://Wrong/x', which has a bucket", said, "what is wrong with it")


def test_run_is_interrupted_while_it_looks():
    """A list without an end: Ctrl-C ends the command, as before any task is there, and nothing stays behind."""
    fresh_bucket("endless")
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder, Proxy(chosen_store().endpoint) as proxy:
        proxy.plan.next("list-endless", count=10 ** 6)
        variables = {**clean_environment(), **chosen_store().variables(endpoint=proxy.endpoint)}
        one = subprocess.Popen([program("cadre"), "run", "--restore", "s3://endless/run", LEARNER], cwd=folder,
                               env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for("some pages", lambda: proxy.counts()["operation"].get("list", 0) > 2)
            one.send_signal(signal.SIGINT)
            check_equal(one.wait(HANG_S), -signal.SIGINT, "the command's end")
        finally:
            one.kill()
            one.wait()
        check_equal(os.listdir(folder), [], "what is left")


def test_a_store_that_fails_now_and_then():
    """A twentieth of all answers is a failure: the job does not notice."""
    fresh_bucket("shaky")
    with Proxy(chosen_store().endpoint, seed=5) as proxy, \
            Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        proxy.plan.draw(**{"500": 2, "503": 2, "429": 1})
        learning = Learning(cluster, workers=2, checkpoint_every=EVERY, checkpoint_folder="s3://shaky/run",
                            environment=environment_of(endpoint=proxy.endpoint))
        end = learning.end()
        learning.check_learned()
        check_equal(end.restarts, 0, "restarts")
        check(proxy.counts()["fault"], "the proxy has drawn no fault")


run(globals())
