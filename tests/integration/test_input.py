# SPDX-License-Identifier: Apache-2.0
"""Datasets of files under running jobs: shared out by files or by samples, indexable or not, while tasks die, come
and go. Every sample is applied exactly once per epoch; where the order is promised it is the undisturbed one."""
import json
import math
import os
import shutil
import signal
import struct
import tempfile

from client import FAILED
from cluster import Cluster
from learning import EPOCHS, FAST, FAST_WORKER, SAMPLES, TEST, Learning, pids_of, wait_training
from testing import check, check_equal, check_in, run, wait_for

SIZES = (40, 8, 33, 1, 50, 17, 43)  # lines of each file: 192 in all
CRC32C = 0x82F63B78


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (CRC32C if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def folder_of(cluster):
    folder = tempfile.mkdtemp(prefix="data-", dir=cluster.folder)
    os.chmod(folder, 0o777)
    return folder


def lines(cluster, numbers, sizes=SIZES):
    folder, at = folder_of(cluster), 0
    for i, size in enumerate(sizes):
        with open(os.path.join(folder, f"{i}.txt"), "w", encoding="ascii") as file:
            file.writelines(f"{number}\n" for number in numbers[at:at + size])
        at += size
    check_equal(at, len(numbers), "numbers in the files")
    return folder


def records(cluster):
    folder = folder_of(cluster)
    for i, numbers in enumerate((range(0, 75), range(75, SAMPLES))):
        with open(os.path.join(folder, f"{i}.tfrecord"), "wb") as file:
            for number in numbers:
                head, body = struct.pack("<Q", 8), struct.pack("<q", number)
                file.write(head + crc32c(head) + body + crc32c(body))
    return folder


def by_files(cluster, *arguments, shard="file", sizes=SIZES, **fields):
    folder = lines(cluster, range(SAMPLES), sizes)
    return Learning(cluster, "source=lines", f"data={folder}", f"shard={shard}", *arguments, **fields)


def check_once(learning, epochs=EPOCHS):
    """Each sample was applied once in each epoch, and each row of the evaluation."""
    state = learning.state()
    check_equal(state["count"], (epochs,) * SAMPLES, "how often each sample was applied")
    check_equal(state["tested"], (epochs * TEST,), "rows tested")
    steps = learning.log_lines()
    for epoch in range(epochs):
        applied = sorted(sample for key, seen in steps.items() if key[0] == epoch for sample in seen)
        check_equal(applied, list(range(SAMPLES)), f"samples logged in epoch {epoch}")
    return state


def shards(cluster, job):
    said = json.loads(cluster.cadre("job", str(job), "--shards", "--json").stdout)
    return {dataset["dataset"]: dataset for dataset in said["datasets"]}


# ---- by files ----

def test_files_are_shared_out():
    for workers in (1, 2, 3, 7):
        with Cluster(workers=1, slots=workers, coordinator=FAST, worker=FAST_WORKER) as cluster:
            learning = by_files(cluster, workers=workers)
            learning.end()
            check_once(learning)


def test_who_reads_what_is_shown():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, "pace=25", workers=3, workers_min=2)
        learning.until_position(3)
        train = wait_for("the files are told", lambda: shards(cluster, learning.job).get("train"))
        check_equal((train["policy"], train["file_count"]), ("FILE", len(SIZES)), f"of {train}")
        check(all(file["rank"] in (None, 0, 1, 2) for file in train["files"]), f"ranks in {train}")
        check_equal(sorted(file["name"] for file in train["files"]), [f"{i}.txt" for i in range(len(SIZES))], "names")
        text = cluster.cadre("job", str(learning.job), "--shards").stdout.decode()
        check_in("train  FILE: whole files, by 3 tasks", text, "what people see")
        learning.end()
        check_once(learning)


def test_a_reader_of_files_dies():
    """What it had not read is handed out again: to the others, and to the one that comes in its place."""
    for fields in ({"workers": 3, "workers_min": 2}, {"workers": 2}):
        with Cluster(workers=fields["workers"], coordinator=FAST, worker=FAST_WORKER) as cluster:
            for place in ("step", "between", "last", "reduce"):
                for step in (3, 9):
                    learning = by_files(cluster, f"die=1:{step}:{place}", max_restarts=1, **fields)
                    check_equal(learning.end().restarts, 1, "restarts")
                    check_once(learning)


def test_the_lease_of_a_reader_expires():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, "pace=15", workers=3, workers_min=2)
        info = learning.until_position(5)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[2].worker)
        victim.signal(signal.SIGSTOP)
        os.kill(pids_of(info)[2], signal.SIGSTOP)
        learning.until(lambda info: info.generation > 1, "the others go on")
        victim.signal(signal.SIGCONT)
        learning.end()
        check_once(learning)


def test_readers_of_files_come_and_all_die():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = by_files(cluster, "pace=15", "epochs=4", workers=3, workers_min=2, checkpoint_every=5,
                            max_restarts=4)
        learning.until_position(5)
        cluster.workers.append(cluster.worker("w2", 1, FAST_WORKER).start())
        info = wait_training(learning, 3)
        before = info.position
        info = learning.until_position(before + 12)
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        learning.end()
        check_once(learning, epochs=4)


def test_fewer_files_than_workers():
    for shard in ("file", "auto"):
        with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
            learning = by_files(cluster, shard=shard, sizes=(100, 92), workers=3)
            info = cluster.client.wait(learning.job)
            check_equal(info.state, FAILED, str(info))
            text = info.message + cluster.client.log(learning.job).decode(errors="replace")
            check_in("2 files", text, "the message")
            check_in("CADRE_SHARD_DATA", text, "the advice")


# ---- by samples ----

def test_indexed_records_keep_their_order():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        folder = records(cluster)
        for workers, arguments in ((1, ()), (3, ("die=1:20:last",)), (2, ("die=0:20:step",))):
            learning = Learning(cluster, "source=records", f"data={folder}", *arguments, workers=workers,
                                max_restarts=1)
            learning.end()
            learning.check_learned()
        left = sorted(os.listdir(folder))
        check_equal(left, ["0.tfrecord", "0.tfrecord.cadre-index", "1.tfrecord", "1.tfrecord.cadre-index"], "files")


def sieve(cluster, *arguments, **fields):
    folder = lines(cluster, range(2 * SAMPLES), tuple(2 * size for size in SIZES))
    return Learning(cluster, "source=sieve", f"data={folder}", *arguments, **fields)


def check_sieved(learning, wanted):
    state = check_once(learning)
    check_equal(state["order"], wanted["order"], "the chain over the order of the samples")
    check(all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(state["weights"], wanted["weights"])), "weights")


def test_a_pipeline_that_is_not_indexable_goes_on_where_it_was():
    """A filter behind an interleave before a shuffle buffer: read in order, by every task."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        alone = sieve(cluster, workers=1)
        alone.end()
        wanted = check_once(alone)
        for arguments in (("die=1:20:between",), ("die=0:9:last",)):
            learning = sieve(cluster, *arguments, workers=3, workers_min=2, max_restarts=1)
            learning.end()
            check_sieved(learning, wanted)
        learning = sieve(cluster, "pace=10", workers=2, checkpoint_every=5, max_restarts=2)
        info = learning.until_position(23)
        for pid in pids_of(info).values():
            os.kill(pid, signal.SIGKILL)
        learning.end()
        check_sieved(learning, wanted)


def test_tasks_with_other_files_are_refused():
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for arguments in (("source=lines", "shard=file"), ("source=lines", "shard=data"), ("source=sieve",)):
            folder = lines(cluster, range(SAMPLES))
            learning = Learning(cluster, f"data={folder}", "odd=2", *arguments, workers=3)
            info = cluster.client.wait(learning.job)
            check_equal(info.state, FAILED, str(info))
            text = info.message + cluster.client.log(learning.job).decode(errors="replace")
            check_in("differs", text, "the message")
            check_in("take", text, "the line that differs")
            shutil.rmtree(folder)


if __name__ == "__main__":
    run(globals())
