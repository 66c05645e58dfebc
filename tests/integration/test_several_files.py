# SPDX-License-Identifier: Apache-2.0
"""Which bytes an object among a job's files has, with several coordinators: the leader changes between the fetches of
two tasks, and the object is replaced meanwhile. No two tasks have different bytes of it."""
import hashlib
import os
import signal

from client import FAILED, SUCCEEDED
from cluster import script
from learning import FAST_WORKER
from several import Several, TIMING
from stored_files import object_file, submit_raw
from testing import check, check_equal, check_in, run, wait_for

import stored_contents
from chosen import chosen_store, environment_of, fresh_bucket  # its folder is added by stored_files
from proxy import Proxy

OLD, NEW = b"the old bytes\n", b"the new bytes\n"


def digest(content):
    return hashlib.sha256(content).hexdigest()


class Fetches:
    """A job of two tasks on two workers: the one looks at the object at once, the other when it may."""

    def __init__(self, cluster, proxy, bucket):
        self.cluster, self.proxy, self.bucket = cluster, proxy, bucket
        bucket.put("object", OLD)
        proxy.plan.next("held", operation="head", key="object")
        self.job = submit_raw(cluster, script("cat object"), [object_file("object", f"s3://{bucket.name}/object")],
                              workers=2, max_restarts=0, environment=environment_of(endpoint=proxy.endpoint))
        self.first = wait_for("one worker has the object", lambda: self.one_with(OLD))
        wait_for("the other one waits", proxy.held_count)
        self.second = next(worker for worker in cluster.workers if worker is not self.first)

    def one_with(self, content):
        return next((worker for worker in self.cluster.workers
                     if os.path.exists(f"{worker.state}/blobs/{digest(content)}")), None)

    def end(self):
        return self.cluster.client.wait(self.job)

    def check_refused(self):
        """The one that came later is refused, and its bytes are in no task."""
        end = self.end()
        check_equal(end.state, FAILED, f"the job's state, of which the tasks have {self.printed()}")
        for words in (f"s3://{self.bucket.name}/object is not what it was when this job's tasks fetched it first",
                      "put the object back, or submit the job again"):
            check_in(words, end.message, "why")
        check(len(set(self.printed())) <= 1, f"tasks have different bytes: {self.printed()}")

    def printed(self):
        log = self.cluster.client.log(self.job)
        return [content for content in (OLD, NEW) for _ in range(log.count(content))]


def test_the_leader_changes_between_two_fetches():
    """Its contents in a folder that the coordinators share; it is killed when it has answered the first task."""
    bucket = fresh_bucket("between")
    for replaced in (True, False):
        with Proxy(chosen_store().endpoint) as proxy, \
                Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
            fetches = Fetches(cluster, proxy, bucket)
            settled = f"{cluster.contents}/jobs/{fetches.job}/files/0"
            wait_for("the first task's bytes count", lambda path=settled: os.path.exists(path))
            leader = cluster.leader()
            leader.kill()
            cluster.follow(but=leader)
            if replaced:
                bucket.put("object", NEW)
            proxy.let_go()
            if replaced:
                fetches.check_refused()
            else:
                check_equal((fetches.end().state, fetches.printed()), (SUCCEEDED, [OLD, OLD]), "of the same object")
            leader.start()


class InStore:
    """Coordinators whose contents are in the store, behind a proxy of their own."""

    def __init__(self, proxy):
        os.environ["CADRE_TEST_CONTENTS"] = "store"
        try:
            self.cluster = Several(workers=2, coordinator=TIMING, worker=FAST_WORKER)
        finally:
            del os.environ["CADRE_TEST_CONTENTS"]
        self.cluster.environment = stored_contents.variables(endpoint=proxy.endpoint)


def test_the_same_with_contents_in_a_store():
    bucket = fresh_bucket("between-stored")
    with Proxy(chosen_store().endpoint) as proxy, Proxy(chosen_store().endpoint) as theirs, \
            InStore(theirs).cluster as cluster:
        fetches = Fetches(cluster, proxy, bucket)
        wait_for("the first task's bytes count", lambda: [
            name for name in stored_contents.names(cluster.contents) if name.startswith(f"jobs/{fetches.job}/files/")])
        leader = cluster.leader()
        leader.kill()
        cluster.follow(but=leader)
        bucket.put("object", NEW)
        proxy.let_go()
        fetches.check_refused()
        leader.start()


def test_a_write_of_the_one_that_led_before_comes_late():
    """The bytes of the first task are on their way to the store when its leader is killed, and its worker hangs. The
    second task has other ones, by the next leader; then that write arrives, and the first task has its bytes again."""
    bucket = fresh_bucket("late-write")
    with Proxy(chosen_store().endpoint) as proxy, Proxy(chosen_store().endpoint) as theirs, \
            InStore(theirs).cluster as cluster:
        theirs.plan.next("held", count=1000, operation="put", key="/files/")
        fetches = Fetches(cluster, proxy, bucket)
        wait_for("the write is on its way", lambda: theirs.held_count() > 0)
        theirs.plan.clear()
        fetches.first.signal(signal.SIGSTOP)
        leader = cluster.leader()
        leader.kill()
        cluster.follow(but=leader)
        bucket.put("object", NEW)
        proxy.let_go()
        wait_for("the second worker has the new object", lambda: fetches.one_with(NEW) is fetches.second)
        wait_for("it counts, and the second task starts", lambda: "task started" in fetches.second.log())
        theirs.let_go()
        wait_for("the late write is there", lambda: all(record.status for record in theirs.records
                                                        if record.fault == "held"))
        bucket.put("object", OLD)
        fetches.first.signal(signal.SIGCONT)
        fetches.check_refused()
        leader.start()


run(globals())
