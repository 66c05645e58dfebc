# SPDX-License-Identifier: Apache-2.0
"""What a seed draws: a job, its input, a cluster, and faults on its real processes; and how the faults are done."""
import heapq
import itertools
import os
import random
import signal
import tempfile
import time

import grpc

import sources
from client import CANCELLED, FINAL
from cluster import Cluster, processes_naming
from learning import BATCH, FAST, FAST_WORKER, PLACES, SAMPLES, STEPS, TEST, Learning
from testing import check_equal, wait_for

OPTIONS = [*FAST, "--wait", "60s"]
DEADLY = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV)


class Fault:
    """One fault: when (after the job was submitted), which, for how long, and dice for whom."""

    def __init__(self, draw, kinds, within_ms):
        self.at_ms = draw.randint(50, within_ms)
        self.kind = draw.choice(kinds)
        self.lasts_ms = draw.choice((0, draw.randint(0, 300), draw.randint(300, 1500), draw.randint(1500, 3000)))
        self.dice = random.Random(draw.random())

    def __str__(self):
        return f"{self.at_ms} ms {self.kind} for {self.lasts_ms} ms"


def draw_sizes(draw, total, files):
    """Of files that have so many lines together; some have none."""
    cuts = sorted(draw.randint(0, total) for _ in range(files - 1))
    return [end - begin for begin, end in zip([0, *cuts], [*cuts, total])]


class Input:
    """What is trained on, and what is promised of it."""
    SOURCES = ("range", "records", "sieve", "lines", "function")
    SHARDS = {"records": ("data", "auto"), "sieve": ("data", "file"), "lines": ("file", "file", "auto", "data")}

    def __init__(self, seed, tasks, at_first, source=None):
        draw = random.Random(f"the input of {seed}")  # apart, so that it changes no faults
        self.source = draw.choice(self.SOURCES)
        self.source = source or self.source
        self.shard = draw.choice(self.SHARDS.get(self.source, ("data",)))
        self.via = draw.choice(("turns", "turns", "flat", "stirred", "threads"))
        # Fewer files than tasks at the end, but not at first: the job grows beyond their number.
        self.few = self.by_files and at_first < tasks and draw.random() < 0.5
        files = draw.randint(at_first, tasks - 1) if self.few else draw.randint(tasks, tasks + 8)
        self.sizes = draw_sizes(draw, SAMPLES, files)
        exam = draw_sizes(draw, TEST, draw.randint(tasks, tasks + 3))
        self.exam = exam if draw.random() < 0.3 else None
        # An epoch may be a part of the samples: steps of the ledger's, or the program leaves it.
        steps = draw.randint(1, SAMPLES // BATCH - 1)
        self.part = draw.choice(("", "", "", f"steps={steps}", f"leave={steps}"))
        self.mix = f"mix={draw.choice((0, 0, 0, 1))}"

    @property
    def by_files(self):
        return self.source in ("lines", "sieve") and self.shard in ("file", "auto")

    @property
    def ordered(self):
        return not self.by_files and self.source != "function"

    @property
    def verdict(self):
        if self.source not in ("range", "records"):
            return None
        return "as defined" if self.part else "exact"

    def arguments(self, cluster):
        """Makes its files."""
        also = [self.mix, self.part] if self.part else [self.mix]
        also += sources.exam(cluster, self.exam) if self.exam else []
        if self.source in ("range", "function"):
            return [f"source={self.source}", *also]
        if self.source == "records":
            return [*sources.records(cluster), f"shard={self.shard}", *also]
        make = sources.lines if self.source == "lines" else sources.sieve
        return [*make(cluster, self.sizes), f"shard={self.shard}", f"via={self.via}", *also]

    def __str__(self):
        also = f" {self.mix}" + (f" {self.part}" if self.part else "") + (f" exam={self.exam}" if self.exam else "")
        if self.source in ("range", "records", "function"):
            return f"{self.source} {self.shard}{also}"
        return f"{self.source} {self.shard} {self.via} {self.sizes}{also}"


class Plan:
    """All that follows from a seed; the source may be given. `fold`: how many times as long, with as many times the
    faults."""

    def __init__(self, seed, source=None, fold=1):
        draw = random.Random(seed)
        self.seed = seed
        self.tasks = draw.randint(1, 4)
        self.least = draw.choice((0, draw.randint(1, self.tasks)))
        self.replicas = draw.randint(1, 2)
        self.slots = draw.randint(1, 2)
        self.workers = -(-self.tasks // self.slots) + draw.randint(0, 1)
        self.pace_ms = draw.choice((2, 10, 20, 40))
        self.save = draw.randint(0, 1)
        self.shared = draw.random() < 0.3
        self.every = draw.choice((0, 1, 4, 7))
        kinds = sorted(draw.sample(sorted(KINDS), draw.randint(1, 4)))
        self.pace_ms *= fold
        self.faults = [Fault(draw, kinds, 300 + STEPS * self.pace_ms) for _ in range(draw.randint(1, 6) * fold)]
        self.die = ""  # one of the first tasks also dies by itself, at a chosen place
        if draw.random() < 0.5:
            self.die = f"die={draw.randrange(self.tasks)}:{draw.randint(1, STEPS)}:{draw.choice(PLACES)}"
        at_first = self.least or self.tasks
        self.late = random.Random(f"what is created late of {seed}").choice((0, 0, 1))
        self.input = Input(seed, self.tasks, at_first, source)
        if self.input.few:
            self.slots, self.workers = 1, at_first
            late = random.Random(f"who comes late of {seed}")
            for _ in range(self.tasks - at_first):
                self.faults.append(Fault(late, ["a worker is added"], 300 + STEPS * self.pace_ms))
        self.faults.sort(key=lambda fault: fault.at_ms)

    def __str__(self):
        faults = ", ".join(str(fault) for fault in self.faults)
        return (f"{self.input}; {self.least or self.tasks}:{self.tasks} tasks of {self.replicas} replicas "
                f"on {self.workers} workers of {self.slots} slots, pace={self.pace_ms} save={self.save} "
                f"every={self.every} shared={self.shared} late={self.late} {self.die}; {faults}")


class Chaos:
    """A plan under way."""

    def __init__(self, plan, options=()):
        self.plan = plan
        self.cluster = Cluster(plan.workers, plan.slots, [*OPTIONS, *options], [*FAST_WORKER, *options])
        self.worker_options = [*FAST_WORKER, *options]
        self.learning = None
        self.source = []  # arguments of the learner
        self.cancelled = False
        self.later = []
        self.serial = itertools.count()
        self.has_run = False
        self.stopped = set()  # pids
        self.drained = set()  # names of workers
        self.ended = set()  # those that must end in order

    def submit(self):
        plan = self.plan
        fields = {}
        if plan.shared:
            fields["checkpoint_folder"] = tempfile.mkdtemp(prefix="shared-", dir=self.cluster.folder)
            os.chmod(fields["checkpoint_folder"], 0o777)
        self.source = plan.input.arguments(self.cluster)
        arguments = [f"pace={plan.pace_ms}", f"save={plan.save}", f"late={plan.late}", plan.die][:4 if plan.die else 3]
        self.learning = Learning(
            self.cluster, *self.source, *arguments, workers=plan.tasks, workers_min=plan.least, replicas=plan.replicas,
            max_restarts=100, stall_us=1500000, checkpoint_every=plan.every, **fields)

    def do_later(self, delay_ms, what, *arguments):
        heapq.heappush(self.later, (time.monotonic() + delay_ms / 1000, next(self.serial), what, arguments))

    def run(self):
        """The faults at their times: here the passing of time is what is tested."""
        for fault in self.plan.faults:
            self.do_later(fault.at_ms, KINDS[fault.kind], self, fault)
        while self.later:
            at, _, what, arguments = heapq.heappop(self.later)
            time.sleep(max(0.0, at - time.monotonic()))
            what(*arguments)
        self.heal()

    # --- faults ---

    def task_pids(self):
        """Found without the coordinator, which may be down."""
        return sorted(processes_naming(f"CADRE_SOCKET={self.cluster.folder}"))

    def runs(self):
        """Whether the job ever trained. Before that a task that fails ends it, and rightly so."""
        if self.coordinator_answers():
            self.has_run = self.has_run or self.learning.get().generation > 0
        return self.has_run

    def kill_tasks(self, fault, count):
        if not self.runs():
            return
        pids = self.task_pids()
        for pid in fault.dice.sample(pids, min(count, len(pids))):
            send(pid, fault.dice.choice(DEADLY))
            send(pid, signal.SIGCONT)

    def kill_one_task(self, fault):
        self.kill_tasks(fault, 1)

    def kill_two_tasks(self, fault):
        self.kill_tasks(fault, 2)

    def kill_all_tasks(self, fault):
        self.kill_tasks(fault, 1000)

    def stop_task(self, fault):
        pids = self.task_pids()
        if pids:
            self.stop_pid(fault, fault.dice.choice(pids))

    def stop_pid(self, fault, pid):
        send(pid, signal.SIGSTOP)
        self.stopped.add(pid)
        self.do_later(fault.lasts_ms, self.continue_pid, pid)

    def continue_pid(self, pid):
        self.stopped.discard(pid)
        send(pid, signal.SIGCONT)

    def a_worker(self, fault):
        running = [worker for worker in self.cluster.workers if worker.runs()]
        return fault.dice.choice(running) if running else None

    def stop_worker(self, fault):
        worker = self.a_worker(fault)
        if worker:
            self.stop_pid(fault, worker.process.pid)

    def kill_worker(self, fault):
        worker = self.a_worker(fault)
        if worker:
            self.ended.discard(worker.process)
            worker.kill()
            if fault.lasts_ms < 2500:  # else it comes back when all is over, unless it is needed before
                self.do_later(fault.lasts_ms, self.start_worker, worker)

    def end_worker(self, fault):
        worker = self.a_worker(fault)
        if worker and os.path.exists(worker.ready_file):
            worker.signal(signal.SIGTERM)
            self.ended.add(worker.process)
            self.do_later(fault.lasts_ms, self.start_worker, worker)

    @staticmethod
    def start_worker(worker):
        if not worker.runs():
            worker.start(ready=False)

    def add_worker(self, fault):
        self.new_worker()

    def new_worker(self):
        name = f"w{len(self.cluster.workers)}"
        self.cluster.workers.append(self.cluster.worker(name, self.plan.slots, self.worker_options).start(ready=False))

    def drain_worker(self, fault):
        worker = self.a_worker(fault)
        if worker and self.coordinator_answers():
            self.cluster.cadre("drain", worker.name, status=None)
            self.drained.add(worker.name)

    def coordinator_answers(self):
        coordinator = self.cluster.coordinator
        return coordinator.runs() and coordinator.process.pid not in self.stopped

    def kill_coordinator(self, fault):
        if self.cluster.coordinator.runs():
            self.cluster.coordinator.kill()
            self.do_later(fault.lasts_ms, self.start_coordinator)

    def stop_coordinator(self, fault):
        if self.cluster.coordinator.runs():
            self.stop_pid(fault, self.cluster.coordinator.process.pid)

    def start_coordinator(self):
        if not self.cluster.coordinator.runs():
            self.cluster.coordinator.start()
            self.learning.client = self.cluster.new_client()

    def cancel(self, _fault):
        if not self.coordinator_answers():
            return
        try:
            state = self.learning.client.cancel(self.learning.job).state
            self.cancelled = self.cancelled or state == CANCELLED or state not in FINAL
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.FAILED_PRECONDITION:
                raise  # else it ends already

    # --- and their end ---

    def heal(self):
        """All that stopped goes on, the coordinator is there, and there is room for as many tasks as are needed."""
        for pid in list(self.stopped):
            self.continue_pid(pid)
        self.start_coordinator()
        for name in sorted(self.drained):
            self.cluster.cadre("undrain", name, status=None)  # 1: the drain was not received
        self.drained.clear()
        needed = self.plan.least or self.plan.tasks
        for worker in self.cluster.workers:
            if self.room() < needed:
                self.start_worker(worker)
        while self.room() < needed:
            self.new_worker()

    def room(self):
        return self.plan.slots * sum(worker.runs() and worker.name not in self.drained
                                     and worker.process not in self.ended for worker in self.cluster.workers)

    def tidy_up(self):
        """Workers that were ordered to end did so in order; those that were killed remove, when they start again,
        what they left."""
        for process in self.ended:
            wait_for("a worker ends after SIGTERM", lambda p=process: p.poll() is not None, 60)
            check_equal(process.returncode, 0, "exit status of a worker after SIGTERM")
        for worker in self.cluster.workers:
            self.start_worker(worker)
            worker.wait_ready()


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


KINDS = {
    "a task is killed": Chaos.kill_one_task,
    "two tasks are killed": Chaos.kill_two_tasks,
    "all tasks are killed": Chaos.kill_all_tasks,
    "a task stands still": Chaos.stop_task,
    "a worker is killed": Chaos.kill_worker,
    "a worker stands still": Chaos.stop_worker,
    "a worker is ended": Chaos.end_worker,
    "a worker is drained": Chaos.drain_worker,
    "a worker is added": Chaos.add_worker,
    "the coordinator is killed": Chaos.kill_coordinator,
    "the coordinator stands still": Chaos.stop_coordinator,
    "the job is cancelled": Chaos.cancel,
}
