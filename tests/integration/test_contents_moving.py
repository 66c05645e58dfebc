# SPDX-License-Identifier: Apache-2.0
"""cadre-coordinator --copy-contents: an operator's folder of contents goes into a real object store, and back. What
clients see of jobs is the same; a copy that is cut off goes on; a coordinator starts on nothing that is not whole."""
import os
import re
import shutil
import signal
import subprocess

import stored_contents
from checkpoints import EVERY
from client import SUCCEEDED, Client
from cluster import Cluster, clean_environment, program, script
from learning import FAST, FAST_WORKER, Learning
from several import Several, TIMING
from test_several import maintain, without_ha
from testing import HANG_S, check, check_equal, check_in, run, wait_for

from chosen import chosen_store  # its folder is added by stored_contents
from proxy import Proxy

REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


def everything(cluster, jobs):
    """What clients see of them."""
    client = cluster.client
    return {job: (client.outputs(job), client.log(job), cluster.cadre("metrics", str(job), "--json").stdout,
                  cluster.cadre("get", str(job), "--list").stdout) for job in jobs}


def end_of_jobs(cluster):
    """One of each kind: with checkpoints and outputs that are their files, with difficult outputs, with values, with
    a long log, and with nothing."""
    learning = Learning(cluster, "save=1", workers=2, checkpoint_every=EVERY)
    learning.end()
    jobs = [learning.job]
    for content, arguments in ((script(
            "cd \"$CADRE_OUTPUT_DIR\"; mkdir -p 'a b/c'; printf x > 'a b/c/d+e%f=g'; : > empty; printf ü > ü; "
            "head -c 9000000 /dev/urandom > large; echo done; echo wrong >&2"), []),
            (content_of(REPORTER), ["steps", "50"]),
            (script("i=0; while [ $i -lt 4000 ]; do echo \"line $i of a long log\"; i=$((i + 1)); done"), []),
            (script(":"), [])):
        job = cluster.client.submit(content, arguments=arguments)
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "a job")
        jobs.append(job)
    return jobs


def tool_of(cluster, *arguments, state=None):
    return [program("cadre-coordinator"), "--state-dir", state or cluster.coordinator.state, *arguments]


def copy(cluster, *arguments, endpoint=None, status=0, state=None):
    done = subprocess.run(tool_of(cluster, *arguments, state=state), capture_output=True, timeout=HANG_S, check=False,
                          env=clean_environment() | stored_contents.variables(endpoint=endpoint))
    said = (done.stdout + done.stderr).decode(errors="replace")
    check_equal(done.returncode, status, f"what a copy with {arguments} ends with: {said}")
    return said


def start_with(cluster, place):
    """None: in the state directory."""
    coordinator = cluster.coordinator
    if "--contents" in coordinator.argv:
        at = coordinator.argv.index("--contents")
        del coordinator.argv[at:at + 2]
    coordinator.argv += ["--contents", place] if place else []
    coordinator.environment = stored_contents.variables()
    coordinator.start()
    cluster.clients.insert(0, Client(cluster.address))


def refused(cluster, words):
    """The coordinator as it is configured does not start."""
    coordinator = cluster.coordinator
    coordinator.environment = stored_contents.variables()
    coordinator.start(ready=False)
    check(coordinator.wait_end() != 0, "it starts")
    check_in(words, coordinator.log(), "why not")


def test_there_and_back():
    """Ended jobs show the same from the store, from new ones beside them, and from the folder again."""
    place = stored_contents.fresh_place()
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        coordinator = cluster.coordinator
        state = coordinator.state
        jobs = end_of_jobs(cluster)
        before = everything(cluster, jobs)
        said = copy(cluster, "--contents", place, "--copy-contents", state, status=1)
        check_in("is held by pid", said, "a copy while the coordinator runs")
        coordinator.stop()
        settled = f"jobs/{jobs[0]}/files/0"  # what an object among a job's files is to be
        os.makedirs(os.path.dirname(os.path.join(state, settled)))
        with open(os.path.join(state, settled), "wb") as file:
            file.write(b"settled")
        said = copy(cluster, "--contents", place, "--copy-contents", state, "--dry-run")
        for words in ("what=contents", "what=logs", "what=values", "what=outputs", "nothing is copied"):
            check_in(words, said, "what would be copied")
        check_equal(stored_contents.names(place), [], "what a dry run copies")
        said = copy(cluster, "--contents", place, "--copy-contents", state)
        check_in("next: start each coordinator with this --contents", said, "what is next")
        said = copy(cluster, "--contents", f"{place}/", "--copy-contents", f"{state}/")
        check_in("they were copied already", said, "the same once more")
        check_equal([name for name in stored_contents.names(place) if settled in name],
                    [f"{settled}/{'0' * 16}-{'0' * 16}", f"{settled}/newest"], "what is settled, in the store")

        refused(cluster, f"were copied to {place}")
        shutil.rmtree(f"{state}/blobs")
        shutil.rmtree(f"{state}/jobs")
        start_with(cluster, place)
        check(everything(cluster, jobs) == before, "the store shows something else")
        Learning(cluster, workers=1, restore_from=jobs[0]).end()
        jobs.append(cluster.client.submit(script("echo new; echo new > \"$CADRE_OUTPUT_DIR/file\"")))
        cluster.client.wait(jobs[-1])
        before = everything(cluster, jobs)
        coordinator.stop()

        said = copy(cluster, "--copy-contents", place)
        check_in("next: start the coordinator without --contents", said, "what is next")
        check_equal(content_of(os.path.join(state, settled)), b"settled", "what is settled, in the folder again")
        refused(cluster, f"were copied to {state}")
        start_with(cluster, None)
        check(everything(cluster, jobs) == before, "the folder shows something else")
        Learning(cluster, workers=1, restore_from=jobs[0]).end()
        before = everything(cluster, jobs)
        coordinator.stop()

        copy(cluster, "--contents", place, "--copy-contents", state)
        start_with(cluster, place)
        check(everything(cluster, jobs) == before, "the store, again, shows something else")


def test_jobs_go_on_meanwhile():
    """One that computes while its coordinator is away: each line of its log is there once, and no step is lost."""
    place = stored_contents.fresh_place()
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=EVERY)
        learning.until_position(5)
        cluster.coordinator.stop()
        copy(cluster, "--contents", place, "--copy-contents", cluster.coordinator.state)
        start_with(cluster, place)
        learning.client = cluster.client
        learning.allow(30)
        learning.until_position(30)
        cluster.coordinator.stop()
        copy(cluster, "--copy-contents", place)
        start_with(cluster, None)
        learning.client = cluster.client
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_ahead():
    """While the coordinator runs all but what changes is copied; what it removed since is not there afterwards."""
    place = stored_contents.fresh_place()
    with Cluster(workers=2, coordinator=[*FAST, "--keep-jobs", "1"], worker=FAST_WORKER) as cluster:
        state = cluster.coordinator.state
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=2)
        learning.until_position(5)
        said = copy(cluster, "--contents", place, "--copy-contents", state, "--ahead")
        check_in("run this once more without --ahead", said, "what is next")
        first = stored_contents.names(place)
        check(first and all(name.startswith("blobs/") or name == "moving" for name in first), f"copied: {first}")
        learning.allow(30)
        learning.until_position(30)
        copy(cluster, "--contents", place, "--copy-contents", state, "--ahead")
        cluster.coordinator.stop()
        said = copy(cluster, "--contents", place, "--copy-contents", state)
        check("there_already=0" not in said, f"the last run copies all once more: {said}")
        check_equal({name for name in stored_contents.names(place) if name.startswith("blobs/")},
                    {f"blobs/{name}" for name in os.listdir(f"{state}/blobs")}, "contents")
        start_with(cluster, place)
        learning.client = cluster.client
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_cut_off():
    """Killed in the middle, several times: nothing starts on what is there, and the last run brings the rest."""
    place = stored_contents.fresh_place()
    with Proxy(chosen_store().endpoint, seed=5) as proxy, \
            Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        jobs = end_of_jobs(cluster)
        before = everything(cluster, jobs)
        coordinator = cluster.coordinator
        coordinator.stop()
        arguments = ["--contents", place, "--copy-contents", coordinator.state]
        for puts in (3, 9, 20):
            proxy.clear_counts()
            with subprocess.Popen(tool_of(cluster, *arguments), stderr=subprocess.DEVNULL,
                                  env=clean_environment() | stored_contents.variables(endpoint=proxy.endpoint)) as tool:
                wait_for(f"{puts} objects are put",
                         lambda puts=puts: proxy.counts()["operation"].get("put", 0) > puts or tool.poll() is not None)
                tool.send_signal(signal.SIGKILL)
                check_equal(tool.wait(), -signal.SIGKILL, f"what the copy ends with, after {puts} objects")
        coordinator.argv += ["--contents", place]
        refused(cluster, "are not whole")
        coordinator.argv = coordinator.argv[:-2]
        said = copy(cluster, "--contents", place, "--copy-contents", cluster.folder, status=1)
        check_in(f"is a copy of {coordinator.state}", said, "a copy of another folder to it")

        proxy.plan.draw(**{"500": 5, "503": 3, "429": 2, "lost": 2, "reset": 2})
        said = copy(cluster, *arguments, endpoint=proxy.endpoint)
        check(proxy.counts()["fault"], "the proxy has drawn no fault")
        check("there_already=0" not in said, f"the last run copies all once more: {said}")
        start_with(cluster, place)
        check(everything(cluster, jobs) == before, "the store shows something else")


def test_a_store_that_is_away():
    """For a while in the middle of the copy: it waits."""
    place = stored_contents.fresh_place()
    with Proxy(chosen_store().endpoint) as proxy, Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        jobs = end_of_jobs(cluster)
        before = everything(cluster, jobs)
        cluster.coordinator.stop()
        arguments = ["--contents", place, "--copy-contents", cluster.coordinator.state]
        log = f"{cluster.folder}/copy.log"
        with open(log, "wb") as out, subprocess.Popen(
                tool_of(cluster, *arguments), stderr=out,
                env=clean_environment() | stored_contents.variables(endpoint=proxy.endpoint)) as tool:
            wait_for("some objects are put", lambda: proxy.counts()["operation"].get("put", 0) > 5)
            proxy.plan.draw(refused=100)
            wait_for("the copy says so", lambda: b"is away" in content_of(log))
            check(tool.poll() is None, "the copy ends at once")
            proxy.plan.clear()
            check_equal(tool.wait(HANG_S), 0, f"what it ends with: {content_of(log).decode()}")
        start_with(cluster, place)
        check(everything(cluster, jobs) == before, "the store shows something else")


def test_how_far_it_is():
    """On a terminal: amount, rate and time left."""
    place = stored_contents.fresh_place()
    with Proxy(chosen_store().endpoint) as proxy, Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        cluster.client.wait(cluster.client.submit(script(
            "cd \"$CADRE_OUTPUT_DIR\"; head -c 60000000 /dev/urandom > large; for i in 1 2 3; do echo $i > $i; done")))
        cluster.coordinator.stop()
        proxy.link.bytes_s = 30e6
        shown, terminal = os.openpty()
        with subprocess.Popen(
                tool_of(cluster, "--contents", place, "--copy-contents", cluster.coordinator.state), stderr=terminal,
                env=clean_environment() | stored_contents.variables(endpoint=proxy.endpoint)) as tool:
            os.close(terminal)
            said = b""
            try:
                while piece := os.read(shown, 1 << 16):
                    said += piece
            except OSError:
                pass  # the other end is closed
            check_equal(tool.wait(HANG_S), 0, f"what it ends with: {said.decode()}")
        os.close(shown)
        line = re.compile(rb"copying contents +[0-9.]+ [KM]iB/[0-9.]+ MiB \[.*\] +[0-9.]+ [KM]iB/s +0:0[0-9] left")
        check(line.search(said), f"no line says how far it is: {said.decode()}")
        check(b"=>" in said, f"no line is of the middle of a large file: {said.decode()}")


def test_damaged_ones():
    """They are named, and nothing counts before the operator has decided."""
    place = stored_contents.fresh_place()
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        state = cluster.coordinator.state
        job = cluster.client.submit(script("echo one"))
        cluster.client.wait(job)
        cluster.coordinator.stop()
        (name,) = os.listdir(f"{state}/blobs")
        good = content_of(f"{state}/blobs/{name}")
        with open(f"{state}/blobs/{name}", "r+b") as file:
            file.write(b"!")
        said = copy(cluster, "--contents", place, "--copy-contents", state, status=1)
        check_in(f"{name} does not have its hash", said, "what is damaged")
        check_in("all is copied but for 1", said, "how it ends")
        with open(f"{state}/blobs/{name}", "wb") as file:
            file.write(good)
        copy(cluster, "--contents", place, "--copy-contents", state)
        start_with(cluster, place)
        check_equal(cluster.client.log(job), b"one\n", "its log")


def test_what_is_refused():
    place = stored_contents.fresh_place()
    with Cluster(workers=0, start=False) as cluster:
        state = cluster.coordinator.state
        os.makedirs(state, mode=0o700)
        own = f"{cluster.folder}/own"
        os.mkdir(own)
        for arguments, words in (
                (["--copy-contents", own], "for two of a kind use cp -a"),
                (["--contents", place, "--copy-contents", "s3://b/c"], "for two of a kind use the store's own tools"),
                (["--contents", place, "--copy-contents", f"{own}/no"], f"there is no folder {own}/no"),
                (["--contents", place, "--copy-contents", own], f"there are no contents in {own}"),
                (["--contents", "s3://Wrong/x", "--copy-contents", own], "s3://Wrong/x has a bucket"),
                (["--contents", "s3://no-such-bucket-here/x", "--copy-contents", own], "no-such-bucket-here"),
                (["--copy-contents", own, "--check"], "are done one at a time"),
                (["--dry-run"], "name FROM")):
            check_in(words, copy(cluster, *arguments, status=1), f"with {arguments}")
        os.makedirs(f"{own}/blobs")
        with open(f"{own}/blobs/{'0' * 64}", "wb"):
            pass
        stored_contents.write(place, "blobs/" + "1" * 64, b"another cluster's")
        check_in("there are other contents", copy(cluster, "--contents", place, "--copy-contents", own, status=1),
                 "a place that is not empty")


def test_started_with_other_contents():
    """A ledger whose jobs need what the place of --contents lacks: it does not start, and says what to do."""
    place = stored_contents.fresh_place()
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        coordinator = cluster.coordinator
        own = f"{cluster.folder}/own"
        os.mkdir(own)
        coordinator.stop()
        start_with(cluster, own)
        job = cluster.client.submit(script("echo one"))
        cluster.client.wait(job)
        said = copy(cluster, "--contents", place, "--copy-contents", own, state=f"{cluster.folder}/other", status=1)
        check_in(f"a coordinator is at work on {own}", said, "a copy while a coordinator uses the folder")
        coordinator.stop()
        coordinator.argv[-1] = place
        refused(cluster, f"--copy-contents {own}")
        coordinator.argv = coordinator.argv[:-2]
        refused(cluster, f"the contents in {coordinator.state} are not those of this ledger's jobs")
        copy(cluster, "--contents", place, "--copy-contents", own)
        start_with(cluster, place)
        check_equal(cluster.client.log(job), b"one\n", "its log")


def test_several_coordinators():
    """Of several, with the ledger in etcd: the mark of the cluster and the snapshots go, too."""
    place = stored_contents.fresh_place()
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=EVERY)
        learning.until_position(5)
        ended = cluster.client.submit(script("echo one"))
        coordinators = cluster.coordinators
        said = copy(cluster, "--contents", place, "--copy-contents", cluster.contents, state=f"{cluster.folder}/tool",
                    status=1)
        check_in("a coordinator is at work", said, "a copy while they run")
        for one in coordinators:
            one.stop()
        one = coordinators[0]
        at = one.argv.index("--contents")
        old = one.argv[at + 1]
        one.argv[at + 1] = place
        one.environment = stored_contents.variables()
        one.start(ready=False)
        check(one.wait_end() != 0, "it starts on an empty store")
        check_in("--copy-contents", one.log(), "what it says")
        copy(cluster, "--contents", place, "--copy-contents", old, state=one.state)
        coordinators[1].start(ready=False)
        check(coordinators[1].wait_end() != 0, "it starts on the folder of before")
        for one in coordinators:
            one.argv[one.argv.index("--contents") + 1] = place
            one.environment = stored_contents.variables()
            one.start()
        cluster.follow()
        learning.client = cluster.client
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()
        check_equal(cluster.client.log(ended), b"one\n", "the log of another job")


def test_from_one_to_several():
    """Its contents into the store, its ledger into etcd, with a job that runs."""
    place = stored_contents.fresh_place()
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER, start=False) as cluster:
        alone = without_ha(cluster)
        cluster.coordinators.append(alone)
        alone.start()
        for worker in cluster.workers:
            worker.start()
        cluster.follow()
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=EVERY)
        learning.until_position(5)
        alone.stop()
        three = cluster.coordinators[:3]
        for one in three:
            one.argv[one.argv.index("--contents") + 1] = place
            one.environment = stored_contents.variables()
        said = maintain(three[0], "--import", status=1)
        check_in(f"--copy-contents {alone.state}", said, "contents that are not there")
        copy(cluster, "--contents", place, "--copy-contents", alone.state, state=alone.state)
        maintain(three[0], "--import")
        for one in three:
            one.start()
        cluster.follow()
        learning.client = cluster.client
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


if __name__ == "__main__":
    run(dict(globals()))
