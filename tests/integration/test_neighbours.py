# SPDX-License-Identifier: Apache-2.0
"""CADRE_OBJECT_NEIGHBOURS=on: the tasks of a job, each on a host with a memory and a disk of its own, read a shuffle of
all records of objects; what they ask of a real store all together, as a proxy before it counts, is each byte once,
however many they are. Tasks and daemons are killed meanwhile."""
import os
import signal

from learning import SAMPLES, Learning, alone, step_until
from proxied_cluster import ProxiedCluster
from sources import write_records
from testing import check, run, wait_for

MORE_BYTES = 96 << 10  # of each record
SIZES = (75, SAMPLES - 75)
EPOCHS = 3
SOURCE = ["source=records", f"epochs={EPOCHS}"]


class Bench(ProxiedCluster):
    """Objects, and what is asked of them."""

    def __init__(self, bucket, workers):
        super().__init__(bucket, workers)
        self.runs = 0

    def __enter__(self):
        super().__enter__()
        self.folder = write_records(self.cluster, SIZES, MORE_BYTES)
        self.size = sum(os.path.getsize(os.path.join(self.folder, name)) for name in os.listdir(self.folder))
        self.wanted = alone(*SOURCE, f"data={self.folder}")
        return self

    def begin(self, workers, setting, memory_mib=256, **fields):
        """A job over objects that no worker knows yet."""
        self.runs += 1
        run_name = f"run-{self.runs}"
        self.put_folder(self.folder, run_name)
        self.proxy.clear_counts()
        variables = self.variables() | {
            "CADRE_OBJECT_NEIGHBOURS": setting, "CADRE_OBJECT_MEMORY_MIB": str(memory_mib)}
        return Learning(self.cluster, *SOURCE, f"data=s3://{self.bucket.name}/{run_name}", workers=workers,
                        environment=[f"{name}={value}" for name, value in variables.items()], **fields)

    def end(self, learning):
        """Each sample once, in the one order; how often each byte of the data was asked of the store, on average."""
        learning.end()
        learning.check_like(self.wanted)
        said = self.cluster.cadre("verify", str(learning.job)).stdout.decode()
        check("exactly once" in said, f"cadre verify does not say so: {said}")
        down = self.proxy.down_of()
        return sum(count for key, count in down.items() if key.endswith(".tfrecord")) / self.size

    def asked(self, workers, setting, **named):
        times = self.end(self.begin(workers, setting, **named))
        print(f"{workers} workers, {setting}, {named}: each byte is asked of the store {times:.3f} times", flush=True)
        return times


def test_each_byte_once():
    with Bench("once", 4) as bench:
        for workers in (1, 2, 4):
            times = bench.asked(workers, "on")
            check(0.999 < times < 1.03, f"{times} times, by {workers} workers")
        times = bench.asked(4, "on", memory_mib=8)  # less than the data: the rest is on the disks
        check(0.999 < times < 1.1, f"{times} times, with little memory")
        times = bench.asked(4, "off")  # what it would be
        check(3.5 < times < 4.1, f"{times} times, by 4 workers without it")


def test_tasks_and_a_worker_are_killed():
    """A task is started again, a worker is lost and then comes back: the job is exact. The members change each time,
    and no one waits for those that are gone."""
    with Bench("killed", 3) as bench:
        learning = bench.begin(3, "on", workers_min=2, allowed=3, max_restarts=100)
        learning.until_position(2)
        os.kill(learning.get().tasks[1].pid, signal.SIGKILL)
        learning.allow(6)
        learning.until_position(5)
        task = learning.get().tasks[2]
        worker = next(worker for worker in bench.cluster.workers if worker.name == task.worker)
        worker.kill()  # its task ends with it, or goes on until it notices
        learning.allow(9)
        learning.until_position(8)
        worker.start()
        step_until(learning, lambda info: info.roster == 3, "three tasks again")
        learning.allow()
        times = bench.end(learning)
        print(f"each byte is asked of the store {times:.3f} times", flush=True)
        check(0.999 < times < 4, f"{times} times")


def test_a_task_is_killed_while_all_read():
    """Over a slow link, before the first step: what it was to ask the store for, the others ask for."""
    with Bench("reading", 3) as bench:
        bench.proxy.link.bytes_s = 4e6
        learning = bench.begin(3, "on", max_restarts=100)
        wait_for("a quarter is read", lambda: bench.proxy.counts()["down"] > bench.size / 4)
        os.kill(learning.get().tasks[1].pid, signal.SIGKILL)
        wait_for("it is started again", lambda: learning.get().restarts > 0)
        bench.proxy.link.bytes_s = 0.0
        times = bench.end(learning)
        print(f"each byte is asked of the store {times:.3f} times", flush=True)
        check(0.999 < times < 2.5, f"{times} times")


run(globals())
