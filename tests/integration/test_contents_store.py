# SPDX-License-Identifier: Apache-2.0
"""A coordinator whose contents lie in a real object store: what its disk has may be lost at any time, a store that is
away costs nothing but waiting, and what is wrong with it is said in a sentence."""
import hashlib
import os
import shutil

import grpc

import stored_contents
from checkpoints import EVERY, published
from client import SUCCEEDED, Client, health_pb2, jobs_pb2
from cluster import Cluster, script
from learning import FAST, FAST_WORKER, Learning, kill_all
from testing import check, check_equal, check_in, run, wait_for

from chosen import chosen_store  # its folder is added by stored_contents
from proxy import Proxy


class StoredCluster(Cluster):
    """One whose coordinator has --contents in the store. `endpoint`: of a proxy before it."""

    def __init__(self, place=None, endpoint=None, user=None, coordinator=(), **named):
        self.place = place or stored_contents.fresh_place()
        super().__init__(coordinator=[*FAST, "--contents", self.place, *coordinator], worker=FAST_WORKER, **named)
        self.coordinator.environment = stored_contents.variables(endpoint=endpoint, user=user)

    def names(self, below=""):
        return [name for name in stored_contents.names(self.place) if name.startswith(below)]

    def lose_disk(self):
        """The coordinator is killed, and another one starts elsewhere: it has the ledger, and nothing else."""
        self.coordinator.kill()
        shutil.rmtree(f"{self.coordinator.state}/cache")

    def start_again(self):
        self.coordinator.start()
        self.clients.insert(0, Client(self.address))
        return self.client

    def health(self):
        return self.client.health.Check(health_pb2.HealthCheckRequest(service="cadre.v1.Jobs"), timeout=60).status


def everything(cluster, job):
    """What clients see of it."""
    values = cluster.cadre("metrics", str(job), "--json").stdout
    return cluster.client.outputs(job), cluster.client.log(job), values


def test_a_job_leaves_all_in_the_store():
    """Programs, checkpoints, logs, outputs, values; a coordinator whose disk is lost shows the same of them."""
    with StoredCluster(workers=2) as cluster:
        learning = Learning(cluster, "save=1", workers=2, checkpoint_every=EVERY)
        learning.end()
        learning.check_learned()
        before = everything(cluster, learning.job)
        check(len(before[1]) > 0, "the log is empty")
        names = cluster.names()
        for folder in ("blobs/", f"jobs/{learning.job}/logs/0/", f"jobs/{learning.job}/logs/1/"):
            check(any(name.startswith(folder) for name in names), f"nothing lies in {folder}: {names}")
        for name in (name for name in names if name.startswith("blobs/")):
            content = stored_contents.read(cluster.place, name)
            check_equal(hashlib.sha256(content).hexdigest(), name.removeprefix("blobs/"), "the hash of a content")
        check(not os.path.exists(f"{cluster.coordinator.state}/blobs"), "the state directory has contents")
        cluster.lose_disk()
        cluster.start_again()
        check(everything(cluster, learning.job) == before, "another coordinator shows something else")
        Learning(cluster, workers=1, restore_from=learning.job).end()


def test_outputs_of_all_kinds():
    """Empty ones, difficult names, replaced ones, and one of several parts."""
    with StoredCluster() as cluster:
        job = cluster.client.submit(script(
            "cd \"$CADRE_OUTPUT_DIR\"; mkdir -p 'a b/c'; printf x > 'a b/c/d+e%f=g'; : > empty; "
            "printf ü > ü; head -c 70000000 /dev/zero > large; echo done"))
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
        outputs = cluster.client.outputs(job)
        check_equal({path: len(content) for path, content in outputs.items()},
                    {"0/a b/c/d+e%f=g": 1, "0/empty": 0, "0/ü": 2, "0/large": 70000000}, "the outputs")
        check_equal(outputs["0/large"], bytes(70000000), "the large one")
        check_equal(cluster.client.log(job), b"done\n", "the log")
        said = cluster.cadre("get", str(job), "0/nosuch", status=None, cwd=cluster.folder).stderr.decode()
        check_in("left no file 0/nosuch", said, "what is not there")
        check(not os.path.exists(f"{cluster.folder}/job-{job}"), "a folder without files was left")


def test_all_goes_with_the_job():
    with StoredCluster(coordinator=["--keep-jobs", "1"]) as cluster:
        first = cluster.client.submit(script("echo one; echo two > \"$CADRE_OUTPUT_DIR/file\""))
        cluster.client.wait(first)
        check(cluster.names(f"jobs/{first}/"), "the first job left nothing")
        for _ in range(2):
            cluster.client.wait(cluster.client.submit(script("echo other")))
        wait_for("the first job's objects go", lambda: not cluster.names(f"jobs/{first}/"))
        wait_for("nothing is left to be removed", lambda: not cluster.names("forgotten/"))


def test_the_coordinator_is_killed_without_its_disk():
    """The job goes on with its tasks; each line of its logs is there once."""
    with StoredCluster(workers=2) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=7)
        for position in (5, 20, 35):
            learning.until_position(position)
            cluster.lose_disk()
            learning.client = cluster.start_again()
            learning.allow(position + 15)
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_checkpoints_are_fetched_from_there():
    """All tasks are killed, and the coordinator has no copy of what they go on from; a damaged copy is none."""
    with StoredCluster(workers=2) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=2, checkpoint_every=EVERY, allowed=EVERY)
        saved = published(learning, 8)
        cluster.lose_disk()
        learning.client = cluster.start_again()
        kill_all(learning.until(lambda info: all(task.pid for task in info.tasks), "the tasks"))
        learning.allow()
        learning.end()
        learning.check_learned()
        check(saved >= 8, "a checkpoint")
        folder = f"{cluster.coordinator.state}/cache/blobs"
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", "r+b") as file:
                file.write(b"!")
        path = next(path for path in cluster.client.jobs.ListOutputs(jobs_pb2.JobRequest(id=learning.job)).outputs
                    if path.path.startswith("checkpoints/") and path.path.endswith(".safetensors")).path

        def fetched():
            try:
                return cluster.client.output(learning.job, path)
            except grpc.RpcError as error:
                check_equal(error.code(), grpc.StatusCode.UNAVAILABLE, f"what a damaged copy is: {error.details()}")
                return None
        check(wait_for("the checkpoint comes", fetched), "it is empty")


def test_a_store_that_is_away():
    """As with a full disk: jobs go on, all else waits, health and the log say so; then all is there."""
    with Proxy(chosen_store().endpoint) as proxy, \
            StoredCluster(workers=2, endpoint=proxy.endpoint, coordinator=["--stall-timeout", "20m"]) as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        learning.until_position(5)
        proxy.plan.draw(refused=100)
        learning.allow(30)
        learning.until_position(30)
        away = "the object store of --contents is away"
        wait_for("the coordinator says so", lambda: away in cluster.coordinator.log())
        wait_for("its health says so", lambda: cluster.health() == health_pb2.HealthCheckResponse.NOT_SERVING)
        done = cluster.cadre("submit", "--detach", "/bin/true", status=None)
        check(done.returncode != 0, "a submission is taken while the store is away")
        check_in(away, done.stderr.decode(), "why it is refused")
        proxy.plan.clear()
        wait_for("its health is good again", lambda: cluster.health() == health_pb2.HealthCheckResponse.SERVING)
        check_in("answers again", cluster.coordinator.log(), "the log")
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_a_start_while_it_is_away():
    """The coordinator leads, jobs go on, and contents are known once it is back."""
    with Proxy(chosen_store().endpoint) as proxy, StoredCluster(workers=1, endpoint=proxy.endpoint) as cluster:
        learning = Learning(cluster, workers=1, allowed=7)
        learning.until_position(5)
        cluster.lose_disk()
        proxy.plan.draw(refused=100)
        learning.client = cluster.start_again()
        learning.allow(20)
        learning.until_position(20)
        proxy.plan.clear()
        learning.allow()
        learning.end()
        learning.check_learned()


def test_a_store_that_fails_now_and_then():
    with Proxy(chosen_store().endpoint, seed=3) as proxy, StoredCluster(workers=2, endpoint=proxy.endpoint) as cluster:
        proxy.plan.draw(**{"500": 2, "503": 1, "429": 1, "lost": 1, "reset": 1})
        learning = Learning(cluster, "save=1", workers=2, checkpoint_every=EVERY)
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()
        check(proxy.counts()["fault"], "the proxy has drawn no fault")


def test_lists_that_are_old():
    """The store's lists lack what was put lately; each time another coordinator, without any disk, goes on. Each line
    of the logs is there once, each checkpoint counts, and a submission finds what was uploaded."""
    with Proxy(chosen_store().endpoint) as proxy, StoredCluster(workers=2, endpoint=proxy.endpoint) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=EVERY)
        learning.until_position(5)
        proxy.stop_lists()
        for position in (20, 35):
            learning.allow(position)
            learning.until_position(position)
            cluster.lose_disk()
            learning.client = cluster.start_again()
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        values = cluster.cadre("metrics", str(learning.job), "--json").stdout
        leaves = cluster.client.submit(script("echo one > \"$CADRE_OUTPUT_DIR/file\""))
        cluster.client.wait(leaves)
        check_equal(cluster.client.outputs(leaves), {"0/file": b"one\n"}, "the outputs of a job that has just ended")
        cluster.lose_disk()
        learning.client = cluster.start_again()
        check_equal(cluster.cadre("metrics", str(learning.job), "--json").stdout, values, "the values")
        Learning(cluster, workers=1, restore_from=learning.job).end()
        proxy.go_on_with_lists()
        learning.check_learned()


def refused(place, words, ready=False, **named):
    cluster = StoredCluster(place=place, workers=0, start=False, **named)
    with cluster:
        cluster.coordinator.start(ready=ready)
        check(cluster.coordinator.wait_end() != 0, f"it starts with {place}")
        check_in(words, cluster.coordinator.log(), f"with {place}")


def test_bad_input():
    refused("s3://no-such-bucket-here/x", "no-such-bucket-here")
    refused("s3://Wrong/x", "--contents s3://Wrong/x has a bucket")
    refused("s3://", "--contents s3://")
    refused("https://host/path", "is read only: an object store is s3://BUCKET/PREFIX")
    refused(None, "s3:ListBucket", user=chosen_store().reader)
    wrong = type(chosen_store().writer)(chosen_store().writer.access_key, "wrong")
    refused(None, "secret key", user=wrong)


def test_a_bucket_without_a_prefix():
    stored_contents.fresh_bucket("whole-bucket")
    with StoredCluster(place="s3://whole-bucket") as cluster:
        job = cluster.client.submit(script("echo one"))
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
        cluster.lose_disk()
        check_equal(cluster.start_again().log(job), b"one\n", "its log")


def test_contents_of_before():
    """A coordinator that had them in its state directory is not started without them."""
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        cluster.client.wait(cluster.client.submit(script("echo one")))
        coordinator = cluster.coordinator
        coordinator.stop()
        coordinator.environment = stored_contents.variables()
        coordinator.argv += ["--contents", stored_contents.fresh_place()]
        coordinator.start(ready=False)
        check(coordinator.wait_end() != 0, "it starts")
        check_in("the jobs of this ledger have their contents in", coordinator.log(), "why not")
        coordinator.argv = coordinator.argv[:-2]
        coordinator.start()


def test_nothing_shows_the_secret():
    secret = stored_contents.variables()["AWS_SECRET_ACCESS_KEY"]
    with StoredCluster() as cluster:
        job = cluster.client.submit(script("env; echo one"))
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
        shown = [cluster.client.log(job).decode(), cluster.coordinator.log(),
                 cluster.cadre("job", str(job), "--json").stdout.decode()]
        for text in shown:
            check(secret not in text, f"a secret is shown: {text}")


if __name__ == "__main__":
    run(dict(globals()))
