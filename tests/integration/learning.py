# SPDX-License-Identifier: Apache-2.0
"""The program learner.c as the tests use it, and the proof in what it leaves: its state and its logs."""
import json
import math
import os
import signal
import struct
import subprocess
import tempfile

from client import SUCCEEDED
from cluster import Cluster, clean_environment
from testing import HANG_S, Failure, check, check_equal, scaled, wait_for

LEARNER = os.environ.get("CADRE_TEST_LEARNER", "")
SAMPLES, BATCH, EPOCHS, TEST = 192, 16, 3, 40
STEPS = EPOCHS * (SAMPLES // BATCH + TEST // 8)  # of the ledger: those of the evaluation too
ALL = 10 ** 9
DTYPES = {"I64": "q", "F64": "d", "F32": "f", "U8": "B"}

# Where in the program a task dies on demand: before a step's first collective, between two, after the last; in
# an evaluation, in a reduce, in a save, at the end. (And "create": while variables are made.)
PLACES = ("step", "between", "last", "reduce", "eval", "save", "finish")

# So that a test does not wait for what it does not test.
FAST = ["--lease", scaled("900ms"), "--rewind-patience", scaled("2s"), "--report-timeout", scaled("400ms")]
FAST_WORKER = ["--heartbeat", "200ms"]


def learner():
    with open(LEARNER, "rb") as file:
        return file.read()


def tensors_of(content):
    """The tensors of a safetensors file by name: a reader that knows the format's description and nothing else."""
    (header_bytes,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + header_bytes])
    body = memoryview(content)[8 + header_bytes:]
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            code = DTYPES[entry["dtype"]]
            values = struct.unpack(f"<{(end - begin) // struct.calcsize(code)}{code}", body[begin:end])
            check_equal(len(values), math.prod(entry["shape"]), f"elements of {name}")
            tensors[name] = values
    return tensors


class Gate:
    """A learner with its `argument` stands still when it has taken so many steps of the ledger, until it is allowed
    more of them: so it is not over before the test has done what it is for."""

    def __init__(self, cluster, steps):
        self.path = os.path.join(tempfile.mkdtemp(prefix="gate-", dir=cluster.folder), "allowed")
        os.chmod(os.path.dirname(self.path), 0o755)  # tasks run as another user when we are root
        self.argument = f"allowed={self.path}"
        self.allow(steps)

    def allow(self, steps=ALL):
        """Counted from the beginning of the ledger."""
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            file.write(f"{steps}\n")
        os.rename(self.path + ".new", self.path)


class RunningJob:
    """One with a client of its coordinator."""
    client = job = None

    def until(self, condition, what):
        return self.client.watch_until(self.job, condition, what)

    def until_position(self, position):
        return self.until(lambda info: info.position >= position, f"position {position}")

    def get(self):
        return self.client.get(self.job)

    def end(self, deadline_s=60):
        info = self.client.wait(self.job, deadline_s)
        if info.state != SUCCEEDED:
            raise Failure(f"the job did not succeed: {info}\n"
                          + self.client.log(self.job)[-2000:].decode(errors="replace"))
        return info


class Learning(RunningJob):
    """One job of the learner, with a folder that its tasks log to, and a gate at `allowed` steps."""

    def __init__(self, cluster, *arguments, workers=2, allowed=None, **fields):
        self.cluster = cluster
        self.client = cluster.client
        self.folder = tempfile.mkdtemp(prefix="log-", dir=cluster.folder)
        os.chmod(self.folder, 0o777)  # tasks run as another user when we are root
        self.gate = Gate(cluster, ALL if allowed is None else allowed)
        self.allow = self.gate.allow
        self.job = self.client.submit(learner(), workers=workers, name="learner",
                                      arguments=[f"log={self.folder}", self.gate.argument, *arguments], **fields)

    def log_lines(self):
        """(epoch, step) -> the samples that were applied, as every task that applied it says."""
        steps = {}
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                for line in file:
                    if not line.endswith("\n"):
                        continue  # a task that was killed while it wrote
                    place, _, samples = line.partition(":")
                    epoch, step = (int(part) for part in place.split())
                    seen = sorted(int(sample) for sample in samples.split())
                    before = steps.setdefault((epoch, step), seen)
                    check_equal(seen, before, f"samples of epoch {epoch} step {step} in {name}")
        return steps

    def state(self):
        """The tensors of the checkpoint that cadre_finish left."""
        outputs = self.client.outputs(self.job)
        names = [path for path in outputs if path.endswith(".safetensors") and not path.startswith("checkpoints/")]
        check(names, f"no checkpoint among the outputs {sorted(outputs)}")
        newest = max(names, key=lambda path: int(path.rsplit("-", 1)[1].split(".")[0]))
        return tensors_of(outputs[newest])

    def check_once(self, epochs=EPOCHS, logs=True):
        """Each sample was applied once in each epoch, and each row of the evaluation, in whatever order. `logs`: no
        step was ever done again with other samples, as it may be under FILE."""
        state = self.state()
        check_equal(state["count"], (epochs,) * SAMPLES, "how often each sample was applied")
        check_equal(state["tested"], (epochs * TEST,), "rows tested")
        steps = self.log_lines() if logs else {}
        for epoch in range(epochs if logs else 0):
            applied = sorted(sample for key, seen in steps.items() if key[0] == epoch for sample in seen)
            check_equal(applied, list(range(SAMPLES)), f"samples logged in epoch {epoch}")
        return state

    def check_like(self, wanted):
        """The same samples were applied as in that state, and in the same order."""
        state = self.state()
        check_equal(state["count"], wanted["count"], "how often each sample was applied")
        check_equal(state["tested"], wanted["tested"], "rows tested")
        check_equal(state["order"], wanted["order"], "the chain over the order of the samples")
        check(all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(state["weights"], wanted["weights"])),
              f"weights {state['weights']} instead of {wanted['weights']}")
        logged = sorted(sample for seen in self.log_lines().values() for sample in seen)
        check_equal(tuple(logged.count(i) for i in range(SAMPLES)), wanted["count"], "how often each sample was logged")
        return state

    def check_learned(self, epochs=EPOCHS, samples=SAMPLES, test=TEST, verify=True):
        """Each sample was applied once per epoch, in the one order: as its state, its logs and the ledger say."""
        state = self.state()
        check_equal(state["count"], (epochs,) * samples, "how often each sample was applied")
        check_equal(state["tested"], (epochs * test,), "rows tested")
        wanted = undisturbed(epochs, samples)
        check_equal(state["order"], wanted["order"], "the chain over the order of the samples")
        check(all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(state["weights"], wanted["weights"])),
              f"weights {state['weights']} instead of {wanted['weights']}")
        steps = self.log_lines()
        for epoch in range(epochs):
            applied = sorted(sample for key, seen in steps.items() if key[0] == epoch for sample in seen)
            check_equal(applied, list(range(samples)), f"samples logged in epoch {epoch}")
        if verify:
            said = self.cluster.cadre("verify", str(self.job)).stdout.decode()
            check("exactly once" in said, f"cadre verify does not say so: {said}")
        return state


def first_logged(learning, lives):
    """The least (epoch, step) that tasks of later lives than these logged."""
    steps = []
    for name in os.listdir(learning.folder):
        slot, incarnation = (int(part) for part in name.split("-")[1:])
        if incarnation > lives[slot]:
            with open(os.path.join(learning.folder, name), encoding="utf-8") as file:
                first = file.readline()
                if first:
                    steps.append(tuple(int(part) for part in first.partition(":")[0].split()))
    return min(steps)


def alone(*arguments):
    """The state that a learner by hand comes to: one task, one replica, no cluster."""
    with tempfile.TemporaryDirectory(prefix="cadre-alone-") as folder:
        subprocess.run([LEARNER, *arguments], cwd=folder, env=clean_environment() | {"CADRE_OUTPUT_DIR": folder},
                       check=True, timeout=HANG_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (name,) = [name for name in os.listdir(folder) if name.endswith(".safetensors")]
        with open(os.path.join(folder, name), "rb") as file:
            return tensors_of(file.read())


KNOWN = {}


def undisturbed(epochs=EPOCHS, samples=SAMPLES, workers=1):
    """The state that so many tasks come to without a fault."""
    key = (epochs, samples, workers)
    if key not in KNOWN:
        with Cluster(slots=workers) as cluster:
            learning = Learning(cluster, f"epochs={epochs}", f"samples={samples}", workers=workers)
            learning.end()
            KNOWN[key] = learning.state()
    return KNOWN[key]


def pids_of(info):
    return {task.slot: task.pid for task in info.tasks}


def kill_all(info):
    for pid in pids_of(info).values():
        os.kill(pid, signal.SIGKILL)


def wait_training(learning, tasks):
    """Until so many tasks train together."""
    return wait_for(f"{tasks} tasks train", lambda: learning.get() if learning.get().roster == tasks else None)


def step_until(learning, condition, what):
    """Allows four more steps at a time, until condition(info) holds: what takes effect at a step has one, and the job
    is not over before."""
    info = learning.get()
    while not condition(info):
        end = info.position + 4
        learning.allow(end)
        info = learning.until(lambda info, end=end: condition(info) or info.position >= end, what)
    return info


def let_in(learning, tasks):
    """Until so many tasks train together: they come while the job stands still."""
    wait_for(f"{tasks} tasks are there", lambda: sum(task.uses_cadre for task in learning.get().tasks) == tasks)
    return step_until(learning, lambda info: info.roster == tasks, f"{tasks} tasks train")
