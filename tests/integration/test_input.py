# SPDX-License-Identifier: Apache-2.0
"""Datasets of files under running jobs: shared out by files or by samples, indexable or not, while tasks die, come
and go. Every sample is applied exactly once per epoch; where the order is promised it is the undisturbed one."""
import json
import os
import signal

from client import FAILED, SUCCEEDED
from cluster import Cluster
from learning import FAST, FAST_WORKER, Learning, alone, let_in, pids_of
from sources import SIZES, lines, listed, records, sieve
from testing import check, check_equal, check_in, run, wait_for

def by_files(cluster, *arguments, shard="file", sizes=SIZES, **fields):
    return Learning(cluster, *lines(cluster, sizes), f"shard={shard}", *arguments, **fields)


def shards(cluster, job):
    said = json.loads(cluster.cadre("job", str(job), "--shards", "--json").stdout)
    return {dataset["dataset"]: dataset for dataset in said["datasets"]}


# ---- by files ----

def test_files_are_shared_out():
    for workers in (1, 2, 3, 7):
        with Cluster(workers=1, slots=workers, coordinator=FAST, worker=FAST_WORKER) as cluster:
            learning = by_files(cluster, workers=workers)
            learning.end()
            learning.check_once()


def test_who_reads_what_is_shown():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, workers=3, workers_min=2, allowed=5)
        learning.until_position(3)
        train = wait_for("the files are shown", lambda: shards(cluster, learning.job).get("train"))
        check_equal((train["policy"], train["file_count"]), ("FILE", len(SIZES)), f"of {train}")
        check(all(file["rank"] in (None, 0, 1, 2) for file in train["files"]), f"ranks in {train}")
        check_equal(sorted(file["name"] for file in train["files"]), [f"{i}.txt" for i in range(len(SIZES))], "names")
        text = cluster.cadre("job", str(learning.job), "--shards").stdout.decode()
        check_in("train  FILE: whole files, by 3 tasks", text, "what people see")
        learning.allow()
        learning.end()
        learning.check_once()


def test_a_reader_of_files_dies():
    """What it had not read is handed out again: to the others, and to the one that comes in its place."""
    for fields in ({"workers": 3, "workers_min": 2}, {"workers": 2}):
        with Cluster(workers=fields["workers"], coordinator=FAST, worker=FAST_WORKER) as cluster:
            for place in ("step", "between", "last", "reduce"):
                for step in (3, 9):
                    learning = by_files(cluster, f"die=1:{step}:{place}", max_restarts=1, **fields)
                    check_equal(learning.end().restarts, 1, "restarts")
                    learning.check_once(logs=False)


def test_the_lease_of_a_reader_expires():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, workers=3, workers_min=2, allowed=7)
        info = learning.until_position(5)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[2].worker)
        victim.signal(signal.SIGSTOP)
        os.kill(pids_of(info)[2], signal.SIGSTOP)
        learning.allow()
        learning.until(lambda info: info.generation > 1, "the others go on")
        victim.signal(signal.SIGCONT)
        learning.end()
        learning.check_once(logs=False)


def test_readers_of_files_come_and_all_die():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, "epochs=4", workers=3, workers_min=2, checkpoint_every=5, max_restarts=4,
                            allowed=5)
        learning.until_position(5)
        cluster.workers.append(cluster.worker("w2", 1, FAST_WORKER).start())
        before = let_in(learning, 3).position
        learning.allow(before + 12)
        info = learning.until_position(before + 12)
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        learning.allow()
        learning.end()
        learning.check_once(epochs=4, logs=False)  # steps behind the checkpoint had other samples the first time


def test_fewer_files_than_workers():
    for shard in ("file", "auto"):
        with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
            learning = by_files(cluster, shard=shard, sizes=(100, 92), workers=3)
            info = cluster.client.wait(learning.job)
            check_equal(info.state, FAILED, str(info))
            text = info.message + cluster.client.log(learning.job).decode(errors="replace")
            check_in("2 files", text, "the message")
            check_in("CADRE_SHARD_DATA", text, "the advice")


def test_who_did_not_ask_for_files_is_warned_once():
    """That the order changes with the tasks, where their number may change, and where it must not nothing."""
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for arguments, fields, times in ((("die=1:9:step",), {"workers_min": 2}, 1), ((), {"workers_min": 2}, 1),
                                         ((), {}, 0)):
            learning = by_files(cluster, *arguments, shard="auto", workers=3, max_restarts=1, **fields)
            check_equal(learning.end().state, SUCCEEDED, "its end")
            log = cluster.client.log(learning.job).decode(errors="replace")
            check_equal(log.count("with CADRE_SHARD_DATA the order stays the same"), times, log)


# ---- lists of files that one source holds ----

def test_lists_are_shared_out_while_tasks_die():
    """Records of TFRecord files and lines of text: each task reads files of its own, each of them once."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        sources = (listed(cluster), [*lines(cluster), "via=list"])
        for source, shard, death, fields in (
                (sources[0], "file", "die=1:5:step", {"workers": 3, "workers_min": 2}),
                (sources[0], "auto", "die=2:9:between", {"workers": 3, "workers_min": 2}),
                (sources[1], "auto", "die=0:7:last", {"workers": 2}),
                (sources[1], "file", "die=1:3:reduce", {"workers": 3, "workers_min": 2})):
            learning = Learning(cluster, *source, f"shard={shard}", death, max_restarts=1, allowed=2, **fields)
            train = wait_for("the files are shown", lambda: shards(cluster, learning.job).get("train"))
            check_equal((train["policy"], train["file_count"]), ("FILE", len(SIZES)), f"of {train}")
            learning.allow()
            check_equal(learning.end().restarts, 1, "restarts")
            learning.check_once(logs=False)
            said = cluster.cadre("verify", str(learning.job)).stdout.decode()
            check_in("samples of its files exactly once", said, "what is proved")


def test_a_job_goes_on_in_the_middle_of_a_list():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, *listed(cluster), "shard=auto", workers=3, workers_min=2, checkpoint_every=5,
                            max_restarts=3, allowed=8)
        info = learning.until_position(8)
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        learning.allow()
        learning.end()
        learning.check_once(logs=False)


def test_a_list_of_fewer_files_than_workers():
    """By its name FILE is refused, AUTO has something better, and says so once."""
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        source = listed(cluster, (100, 92))
        learning = Learning(cluster, *source, "shard=file", workers=3)
        info = cluster.client.wait(learning.job)
        check_equal(info.state, FAILED, str(info))
        check_in("2 files", info.message + cluster.client.log(learning.job).decode(errors="replace"), "the message")
        wanted = alone(*source)
        learning = Learning(cluster, *source, "shard=auto", "die=1:9:step", workers=3, max_restarts=1)
        learning.end()
        learning.check_like(wanted)
        log = cluster.client.log(learning.job).decode(errors="replace")
        check_equal(log.count("not by files (CADRE_SHARD_AUTO), so each task reads all of it"), 1, log)


# ---- by samples ----

def test_indexed_records_keep_their_order():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        source = records(cluster)
        folder = source[1].removeprefix("data=")
        for workers, arguments in ((1, ()), (3, ("die=1:20:last",)), (2, ("die=0:20:step",))):
            learning = Learning(cluster, *source, *arguments, workers=workers, max_restarts=1)
            learning.end()
            learning.check_learned()
        left = sorted(os.listdir(folder))
        check_equal(left, ["0.tfrecord", "0.tfrecord.cadre-index", "1.tfrecord", "1.tfrecord.cadre-index"], "files")


def test_a_pipeline_that_is_not_indexable_goes_on_where_it_was():
    """A filter behind an interleave before a shuffle buffer: read in order, by every task."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        source = sieve(cluster)
        wanted = alone(*source)
        for arguments in (("die=1:20:between",), ("die=0:9:last",)):
            learning = Learning(cluster, *source, *arguments, workers=3, workers_min=2, max_restarts=1)
            learning.end()
            learning.check_like(wanted)
        learning = Learning(cluster, *source, workers=2, checkpoint_every=5, max_restarts=2, allowed=25)
        info = learning.until_position(23)
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        learning.allow()
        learning.end()
        learning.check_like(wanted)


def test_tasks_with_other_files_are_refused():
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for arguments in ([*lines(cluster), "shard=file"], [*lines(cluster), "shard=data"], sieve(cluster)):
            learning = Learning(cluster, *arguments, "odd=2", workers=3)
            info = cluster.client.wait(learning.job)
            check_equal(info.state, FAILED, str(info))
            text = info.message + cluster.client.log(learning.job).decode(errors="replace")
            check_in("differs", text, "the message")
            check_in("take", text, "the line that differs")


if __name__ == "__main__":
    run(globals())
