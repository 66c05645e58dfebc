# SPDX-License-Identifier: Apache-2.0
"""Jobs whose data and checkpoints are in a store that fails now and then, and their tasks and worker daemons killed
again and again: what is drawn, how it is done, and what must hold in the end."""
import hashlib
import json
import os
import random
import re
import signal
import tempfile
import time

from learning import SAMPLES, BATCH, TEST, Learning, alone
from proxied_cluster import ProxiedCluster
from sources import SIZES, write_lines, write_records
from testing import check, check_equal, wait_for

from s3 import S3Error  # its folder is added by proxied_cluster

EVERY, KEPT = 4, 3
STEPS = 8  # that are taken around each kill
EPOCH_STEPS = SAMPLES // BATCH + TEST // 8
BULK = 10 * (1 << 20) // 8  # numbers of state beside: a checkpoint is two parts
FAULTS = {"500": 1.5, "503": 1, "429": 0.5, "cut": 1, "reset": 1}  # percent of all requests
MOMENTS = ("at once", "after a while", "get", "put", "put-part", "finish-upload")
MOMENT_S = 3  # for a request that may not come
MANIFEST = re.compile(r"checkpoint-(\d+)(\.\d+)?\.json$")
RESTARTS = 1000
STALL_US = 4000000
GONE = (S3Error, OSError)


class Drill(ProxiedCluster):
    """One job at a time."""

    def __init__(self, seed, bucket):
        super().__init__(bucket, workers=3, seed=seed)
        self.draw = random.Random(f"the kills of {seed}")
        self.seed = seed
        self.learning = None
        self.jobs = self.kills = self.restarts = self.left_uploads = self.checked = 0
        self.moments = {}
        self.took_s = []

    # --- a job ---

    def begin(self, kills):
        """Its data into the bucket, and the job, which stands still before its first kill."""
        self.jobs += 1
        self.run = f"run-{self.jobs}"
        self.by_files, self.least = self.draw.choice(((False, 0), (False, 2), (True, 2)))
        self.data = write_lines(self.cluster, range(SAMPLES), SIZES) if self.by_files else \
            write_records(self.cluster, (75, SAMPLES - 75))
        self.put_folder(self.data, f"{self.run}/data")
        self.epochs = -(-STEPS * (kills + 1) // EPOCH_STEPS) + 1
        via = self.draw.choice(("turns", "threads", "flat"))
        self.source = ["source=lines", "shard=file", f"via={via}"] if self.by_files else ["source=records"]
        variables = self.variables()
        if self.draw.random() < 0.5:
            variables["CADRE_CACHE_FOLDER"] = tempfile.mkdtemp(prefix="cache-", dir=self.cluster.folder)
            os.chmod(variables["CADRE_CACHE_FOLDER"], 0o777)  # tasks run as another user when we are root
        if random.Random(f"neighbours of {self.seed}, {self.run}").random() < 0.5:
            variables["CADRE_OBJECT_NEIGHBOURS"] = "on"
        self.gate = STEPS
        self.proxy.plan.draw(**FAULTS)
        self.learning = Learning(
            self.cluster, *self.source, f"data=s3://{self.bucket.name}/{self.run}/data", f"epochs={self.epochs}",
            f"constant={self.draw.choice((0, BULK))}", workers=3 if self.least else 2, workers_min=self.least,
            allowed=self.gate, max_restarts=RESTARTS, stall_us=STALL_US,
            checkpoint_every=EVERY, checkpoints_kept=KEPT,
            checkpoint_folder=f"s3://{self.bucket.name}/{self.run}/state",
            environment=[f"{name}={value}" for name, value in variables.items()])
        self.until_gate("the beginning")

    def until_gate(self, what):
        self.learning.until(lambda info: info.position >= self.gate - 1, f"step {self.gate} after: {what}")

    def kill(self, kind, moment):
        """While the job takes some steps; then it has taken them."""
        began = time.monotonic()
        before = self.proxy.requests
        self.gate += STEPS
        self.learning.allow(self.gate)
        if moment == "after a while":
            time.sleep(self.draw.random())  # here the passing of time is what is tested
        elif moment != "at once":
            self.wait_for_request(moment, before)
        KINDS[kind](self)
        self.kills += 1
        self.moments[moment] = self.moments.get(moment, 0) + 1
        self.until_gate(f"{kind}, {moment}")
        self.took_s.append(time.monotonic() - began)
        self.check_newest()

    def wait_for_request(self, operation, before):
        """Until one more is on its way, for some seconds: a checkpoint may be left out, and what is in memory is not
        read."""
        end = time.monotonic() + MOMENT_S
        while time.monotonic() < end:
            with self.proxy.lock:
                newest = list(self.proxy.records)[-100:]
            if any(one.operation == operation and one.request.serial > before for one in newest):
                return
            time.sleep(0.002)

    def end(self):
        """Each sample once, and each checkpoint that counts whole."""
        self.learning.allow()
        self.restarts += self.learning.end(deadline_s=240).restarts
        said = self.cluster.cadre("verify", str(self.learning.job)).stdout.decode()
        if self.by_files:  # what a step had is proved by the state alone, because the order is not defined
            self.learning.check_once(epochs=self.epochs, logs=False)
        else:
            self.learning.check_like(alone(*self.source, f"data={self.data}", f"epochs={self.epochs}"))
            check("exactly once" in said, f"cadre verify does not say so: {said}")
        self.check_newest()
        for name in self.manifests()[-KEPT:]:
            self.check_whole(name)
        self.left_uploads += len(self.bucket.uploads(f"{self.run}/"))

    # --- checkpoints ---

    def manifests(self):
        """Their names, the newest last."""
        found = (MANIFEST.search(entry.key) for entry in self.bucket.list(f"{self.run}/state/"))
        return [match[0] for match in sorted((match for match in found if match), key=lambda match: int(match[1]))]

    def check_whole(self, name):
        """By its manifest, with a reader that knows the format alone."""
        folder = f"{self.run}/state"
        manifest = json.loads(self.bucket.get(f"{folder}/{name}"))
        check_equal(manifest["position"], int(MANIFEST.search(name)[1]), f"the position in {name}")
        tensors = self.bucket.get(f"{folder}/{manifest['file']['name']}")
        check_equal(len(tensors), manifest["file"]["bytes"], f"the bytes of the tensors of {name}")
        at = 0
        for number, block in enumerate(manifest["blocks"]):
            part = tensors[at:at + block["bytes"]]
            check_equal(hashlib.sha256(part).hexdigest(), block["sha256"], f"block {number} of {name}")
            at += block["bytes"]
        check_equal(at, len(tensors), f"the bytes of all blocks of {name}")

    def check_newest(self):
        """What the ledger names as the newest: it may be another one the next moment."""
        while True:
            name = self.learning.get().checkpoint
            try:
                if name:
                    self.check_whole(MANIFEST.search(name)[0])
                    self.checked += 1
                return
            except GONE:
                check(self.learning.get().checkpoint != name, f"{name}, which the ledger names, cannot be read")

    # --- who is killed ---

    def tasks(self):
        return [task for task in self.learning.get().tasks if task.pid > 0]

    def kill_tasks(self, count):
        """The first of them is the chief, who writes checkpoints."""
        tasks = self.tasks()
        for task in self.draw.sample(tasks, min(count, len(tasks))):
            send(task.pid, signal.SIGKILL)

    def kill_one(self):
        self.kill_tasks(1)

    def kill_two(self):
        self.kill_tasks(2)

    def kill_all(self):
        self.kill_tasks(100)

    def kill_chief(self):
        for task in self.tasks()[:1]:
            send(task.pid, signal.SIGKILL)

    def kill_worker(self):
        self.kill_and_start(self.draw.choice(self.cluster.workers))

    def kill_worker_of_chief(self):
        names = [task.worker for task in self.tasks()[:1]]
        for worker in self.cluster.workers:
            if worker.name in names:
                self.kill_and_start(worker)

    def kill_worker_and_task(self):
        self.kill_chief()
        self.kill_worker()

    @staticmethod
    def kill_and_start(worker):
        if worker.runs():
            worker.kill()
        worker.start()

    def stop_chief(self):
        """With its worker, as a host that stands still. It goes on when another one has taken its place, perhaps in the
        middle of a write, and for a while no one ends it."""
        for task in self.tasks()[:1]:
            worker = next(worker for worker in self.cluster.workers if worker.name == task.worker)
            generation = self.learning.get().generation
            worker.signal(signal.SIGSTOP)
            send(task.pid, signal.SIGSTOP)
            wait_for("the others go on", lambda g=generation: self.learning.get().generation > g or self.at_gate(), 60)
            send(task.pid, signal.SIGCONT)
            time.sleep(self.draw.random())  # here the passing of time is what is tested
            worker.signal(signal.SIGCONT)

    def at_gate(self):
        return self.learning.get().position >= self.gate - 1


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


KINDS = {"a task is killed": Drill.kill_one,
         "two tasks are killed": Drill.kill_two,
         "all tasks are killed": Drill.kill_all,
         "the chief is killed": Drill.kill_chief,
         "the host of the chief stands still, and goes on": Drill.stop_chief,
         "a worker is killed": Drill.kill_worker,
         "the worker of the chief is killed": Drill.kill_worker_of_chief,
         "the chief and a worker are killed": Drill.kill_worker_and_task}
