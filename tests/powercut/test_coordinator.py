# SPDX-License-Identifier: Apache-2.0
"""What the coordinator has said is there after a power cut, whatever of the rest the disk has: jobs, their ends, what
they left, checkpoints, the proof; and it starts without an error. The disk is README.md's.

By hand: --seeds FROM:TO [--trace FILE]"""
import hashlib
import os
import shutil
import sqlite3
import sys
import tempfile

import grpc
from client import CALL_S, CANCELLED, FINAL, SUCCEEDED, Client, common_pb2, job_file, jobs_pb2
from cluster import CONTENT, Cluster, Daemon, program, script
from learning import learner
from recording import Lost, Recording, Replay, must_notice, wait_for_sync
from testing import Failure, check, check_equal, check_in, run, wait_for

KEPT = 4  # --keep-jobs
REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
REPORTED = 80
LEAVES = script("""mkdir -p "$CADRE_OUTPUT_DIR/deep/deeper"
echo one > "$CADRE_OUTPUT_DIR/one"; echo two > "$CADRE_OUTPUT_DIR/deep/two"
echo three > "$CADRE_OUTPUT_DIR/deep/deeper/three"; echo said""")


def digest(content):
    return hashlib.sha256(content).hexdigest()


def losses(client, job):
    """What reporter.c reported, by step."""
    answer = client.jobs.Metrics(jobs_pb2.MetricsRequest(id=job, names=["loss"]), timeout=CALL_S)
    return [[point.step, point.value] for series in answer.series for point in series.points]


# ---- what happens ----

def start_known_to(worker):
    """(cluster, start) of the coordinator that the worker daemon joined last."""
    with open(os.path.join(worker.state, "coordinator"), encoding="ascii") as file:
        words = file.read().split()
    return words[1], int(words[3])


class History:
    """A client that writes down what it was promised."""

    def __init__(self, cluster, recording):
        self.cluster = cluster
        self.client = cluster.client
        self.recording = recording

    def submit(self, name, content, files=None, **fields):
        job = self.client.submit(content, files=files, name=name, **fields)
        contents = [digest(part) for part in (content, *(files or {}).values())]
        self.recording.promise("job", job=job, name=name, contents=contents)
        return job

    def running(self, job):
        info = self.client.watch_until(job, lambda info: info.generation, "its first generation")  # or it has ended
        self.recording.promise("generation", job=job, generation=info.generation)

    def ended(self, job, state):
        info = self.client.wait(job, 60)
        check_equal(info.state, state, f"the end of job {job}: {info.message}")
        self.recording.promise("end", job=job, state=info.state, exit_code=info.exit_code, message=info.message)
        outputs = {path: digest(content) for path, content in self.client.outputs(job).items()}
        proof = self.client.jobs.Verify(jobs_pb2.JobRequest(id=job), timeout=CALL_S)
        self.recording.promise("left", since="end", job=job, outputs=outputs, committed=proof.committed,
                               epochs=str(proof.epochs))
        return outputs

    def checkpoint(self, job):
        info = self.client.watch_until(job, lambda info: info.checkpoint, "a checkpoint")
        self.recording.promise("published", job=job)
        paths = [info.checkpoint, info.checkpoint.replace(".json", ".safetensors")]
        self.recording.promise("checkpoint", since="published", job=job,
                               outputs={path: digest(self.client.output(job, path)) for path in paths})

    def reports(self):
        """A job whose values come in several writes."""
        with open(REPORTER, "rb") as file:
            job = self.submit("reports", file.read(), arguments=["steps", str(REPORTED), "pause", "5"])
        self.ended(job, SUCCEEDED)
        check_equal(losses(self.client, job), [[step, 1000 - step] for step in range(1, REPORTED + 1)], "its values")

    def wait_forever(self):
        """A job that stands still says nothing that would have to be on the disk at once: what was recorded of its
        steps comes there all the same."""
        job = self.submit("stands", learner(), arguments=["stop=0:9"], workers=1)
        position = self.client.watch_until(job, lambda info: info.position > 0, "some steps").position
        wait_for_sync(self.recording, "ledger.db-wal")
        self.recording.promise("steps", ended=True, job=job, position=position)
        self.client.cancel(job)
        self.ended(job, CANCELLED)

    def started(self):
        """What a worker that has joined knows of the coordinator: which start of which cluster it is."""
        cluster, start = start_known_to(self.cluster.workers[0])
        self.recording.promise("start", cluster=cluster, start=start)

    def started_again(self):
        """Killed without a word, while a job waits."""
        waits = self.submit("stays", script("exit 0"), workers=5)
        _, start = start_known_to(self.cluster.workers[0])
        self.recording.kill(self.cluster.coordinator)
        self.cluster.coordinator.start()
        wait_for("the worker knows of the new start",
                 lambda: start_known_to(self.cluster.workers[0])[1] > start)
        self.client = self.cluster.new_client()
        self.started()
        self.client.cancel(waits)
        self.ended(waits, CANCELLED)
        return waits

    def superseded(self):
        """A worker has seen a later start, as after the return of an older ledger: the next one is above that."""
        worker, coordinator = self.cluster.workers[0], self.cluster.coordinator
        cluster, start = start_known_to(worker)
        worker.stop()
        with open(os.path.join(worker.state, "coordinator"), "w", encoding="ascii") as file:
            file.write(f"cluster {cluster} start {start + 7} nonce 000000000000abcd\n")
        self.recording.kill(coordinator)
        coordinator.argv.append("--supersede")
        coordinator.start()
        worker.start()
        check(start_known_to(worker)[1] > start + 7, "the worker joined a start that is not above the one it knew")
        self.client = self.cluster.new_client()
        self.started()

    def drain(self, why, ends=False):
        """`why`: of the client; the newest one counts. While it is asked the answer may be either."""
        facts = {"worker": self.cluster.workers[0].name, "why": None if ends else why}
        self.recording.promise("asks", ended=True, **facts)
        self.client.jobs.Drain(jobs_pb2.DrainRequest(worker=facts["worker"], reason=why, ends=ends), timeout=CALL_S)
        self.recording.promise("drain", **facts)

    def drains(self):
        self.drain("a new disk")
        self.drain("a new fan")
        self.drain("", ends=True)

    def forgotten(self, job, by):
        wait_for(f"job {job} is forgotten", lambda: not self.knows(job))
        self.recording.promise("forgotten", job=job, by=by)

    def knows(self, job):
        try:
            return self.client.get(job) is not None
        except grpc.RpcError as error:
            check_equal(error.code().name, "NOT_FOUND", "what is said of a job that was forgotten")
            return False

    def live(self):
        self.started()
        self.drains()
        first = self.submit("leaves", LEAVES, files={"data": b"of the job " * 300})
        outputs = self.ended(first, SUCCEEDED)
        check_equal(len(outputs), 3, "files that the first job left")
        learns = self.submit("learns", learner(), arguments=["pace=3"], workers=2, checkpoint_every=20,
                             checkpoints_kept=9)
        self.running(learns)
        self.checkpoint(learns)
        self.ended(learns, SUCCEEDED)
        self.reports()
        waits = self.submit("waits", script("exit 0"), workers=5)
        self.client.cancel(waits)
        self.ended(waits, CANCELLED)
        self.wait_forever()
        self.forgotten(first, waits)
        self.forgotten(learns, self.started_again())
        self.superseded()
        self.drain("for good")


def record():
    with Cluster(workers=1, slots=2, start=False, coordinator=["--keep-jobs", str(KEPT)]) as cluster:
        recording = Recording(cluster.folder)
        recording.attach(cluster.coordinator)
        cluster.coordinator.start()
        cluster.workers[0].start()
        History(cluster, recording).live()
        cluster.end()
        recording.end()
        return recording


# ---- what is there afterwards ----

class After:
    """A coordinator started on what the power cut left."""

    def __init__(self, promises):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        self.address = f"unix:{self.folder}/c.sock"
        self.daemon = Daemon(self, "coordinator", [program("cadre-coordinator"), "--listen", self.address])
        self.kept = []
        self.at = 0
        self.forgets = {promise.facts["job"]: promise.facts["by"] for promise in promises
                        if promise.kind == "forgotten"}
        self.submitted = {promise.facts["job"]: promise.at for promise in promises if promise.kind == "job"}
        self.client = None

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        shutil.rmtree(self.folder)

    def show(self, kept, at):
        self.kept, self.at = kept, at
        self.check_contents()
        self.check_steps()
        drained = self.check_drains()
        try:
            self.daemon.start()
            self.client = Client(self.address)
            self.check_jobs()
            self.check_numbers()
            self.check_start()
            self.check_undrain(drained)
            check(self.daemon.runs(), "the coordinator ended")
        except grpc.RpcError as error:
            raise Lost(f"{error.code().name}: {error.details()}") from error
        except Failure as failure:
            raise Lost(f"{failure}\n{self.daemon.log()[-2000:]}") from failure
        finally:
            if self.client is not None:
                self.client.close()
            self.daemon.kill()
            if os.path.exists(self.daemon.log_path):
                os.unlink(self.daemon.log_path)

    def of(self, kind):
        return [promise.facts for promise in self.kept if promise.kind == kind]

    def check_contents(self):
        folder = os.path.join(self.daemon.state, "blobs")
        for name in os.listdir(folder) if os.path.isdir(folder) else []:
            if CONTENT.match(name):
                with open(os.path.join(folder, name), "rb") as file:
                    check_equal(digest(file.read()), name, "the content of a file that has its hash as its name")

    def ask_ledger(self, *questions):
        """The first row of each answer, of a copy: it may be another one's to repair."""
        with tempfile.TemporaryDirectory(dir=self.folder) as copy:
            for name in os.listdir(self.daemon.state):
                if name.startswith("ledger.db"):
                    shutil.copy(os.path.join(self.daemon.state, name), copy)
            ledger = sqlite3.connect(os.path.join(copy, "ledger.db"))
            answers = [ledger.execute(question).fetchone() for question in questions]
            ledger.close()
        return answers

    def check_steps(self):
        for facts in self.of("steps"):
            job, wanted = facts["job"], facts["position"]
            row, there = self.ask_ledger(f"SELECT up_to FROM watermark WHERE job = {job}",
                                         f"SELECT state FROM job WHERE id = {job}")
            forgotten = there is None and self.may_be_forgotten(job)
            check(forgotten or (row is not None and row[0] >= wanted),
                  f"job {job} had done {wanted} steps, the ledger knows of {row}")

    def check_start(self):
        """Else the workers that saw the ones before would refuse it."""
        (cluster, start), = self.ask_ledger("SELECT cluster, starts FROM meta")
        for facts in self.of("start"):
            check_equal(f"{cluster % 2 ** 64:016x}", facts["cluster"], "the cluster's number")
            check(start > facts["start"], f"start {facts['start']} was sent to workers, and this one is start {start}")

    def check_drains(self):
        """Which workers are drained, and what the client gave as the reason."""
        kept = [promise for promise in self.kept if promise.kind in ("asks", "drain")]
        drained = {}
        for name in {promise.facts["worker"] for promise in kept if promise.kind == "drain"}:
            of_it = [promise for promise in kept if promise.facts["worker"] == name]
            last = max(at for at, promise in enumerate(of_it) if promise.kind == "drain")
            row, = self.ask_ledger(f"SELECT why FROM drain WHERE worker = '{name}'")
            check_in(row[0] if row else None, [promise.facts["why"] for promise in of_it[last:]],
                     f"why {name} is drained, of what was answered and is being asked")
            drained[name] = row is not None
        return drained

    def check_undrain(self, drained):
        """The coordinator knows of them, and of no others."""
        for name, was in drained.items():
            try:
                self.client.jobs.Drain(jobs_pb2.DrainRequest(worker=name, ends=True), timeout=CALL_S)
                check(was, f"{name} was not drained any more, and is")
            except grpc.RpcError as error:
                check_equal((was, error.code().name), (False, "NOT_FOUND"), f"what is said of the drain of {name}")

    def may_be_forgotten(self, job):
        by = self.forgets.get(job)
        return by is not None and self.at >= self.submitted[by]

    def check_jobs(self):
        there = {info.id: info for info in self.client.jobs.List(
            jobs_pb2.ListJobsRequest(), timeout=CALL_S).jobs}
        for facts in self.of("job"):
            job = facts["job"]
            if job not in there:
                check(self.may_be_forgotten(job), f"job {job} is lost")
                continue
            check_equal(there[job].name, facts["name"], f"name of job {job}")
            if there[job].state not in FINAL:
                for content in facts["contents"]:
                    path = os.path.join(self.daemon.state, "blobs", content)
                    check(os.path.exists(path), f"the content {content} of job {job} is lost")
        for facts in self.of("generation"):
            if facts["job"] in there:
                check(there[facts["job"]].generation >= facts["generation"],
                      f"job {facts['job']} had generation {facts['generation']}, and has {there[facts['job']]}")
        for facts in self.of("end"):
            self.check_end(there.get(facts["job"]), facts)
        for job in there:
            self.client.log(job)  # of which nothing is promised but that it can be read
            self.check_values(job)
        for facts in self.of("left") + self.of("checkpoint"):
            if facts["job"] in there:
                self.check_left(facts)

    def check_values(self, job):
        """They are not synced, as logs are not: those of some steps from the first on are there, and no others."""
        there = losses(self.client, job)
        check_equal(there, [[step, 1000 - step] for step in range(1, len(there) + 1)], f"values of job {job}")
        check(len(there) <= REPORTED, f"values that job {job} never reported: {there}")

    def check_end(self, info, facts):
        for name in ("state", "exit_code", "message"):
            if info is not None:
                check_equal(getattr(info, name), facts[name], f"{name} of job {info.id}, which has ended")

    def check_left(self, facts):
        job = facts["job"]
        for path, wanted in facts["outputs"].items():
            check_equal(digest(self.client.output(job, path)), wanted, f"the content of {path} of job {job}")
        if "epochs" in facts:
            proof = self.client.jobs.Verify(jobs_pb2.JobRequest(id=job), timeout=CALL_S)
            check_equal((proof.committed, str(proof.epochs)), (facts["committed"], facts["epochs"]),
                        f"what is proved of job {job}")

    def check_numbers(self):
        """No number of a job is given twice."""
        content = script("exit 0")
        self.client.upload([content])
        spec = common_pb2.JobSpec(name="next", program=job_file("program", content, True), workers=1)
        number = self.client.jobs.Submit(spec, timeout=CALL_S).id
        last = max((facts["job"] for facts in self.of("job")), default=0)
        check(number > last, f"job {last} was sent before, and number {number} is given")


def replay(recording, share, **options):
    """How many states there were."""
    with After(recording.promises()) as after:
        replayed = Replay(recording, "coordinator", **options)
        replayed.run(after.folder, after.show, share)
        return replayed.states


FAULTS = {
    "the ledger's journal": lambda path: path.endswith("ledger.db-wal"),
    "the ledger": lambda path: path.endswith("ledger.db"),
    "contents": lambda path: "/blobs/" in path,
    "the folder of contents": lambda path: path.endswith("/blobs"),
    "the folders of outputs": lambda path: "/outputs" in path,
    "the folders of jobs": lambda path: path.endswith("/jobs") or os.path.basename(os.path.dirname(path)) == "jobs",
    "the state directory": lambda path: path == "coordinator",
    "what the state directory is in": lambda path: path == ".",
}


def test_a_power_cut_at_any_moment():
    with record() as recording:
        print(f"{replay(recording, 0.05, seed=1)} states")


def test_a_sync_that_is_missing_is_noticed():
    with record() as recording:
        for what, ignored in FAULTS.items():
            must_notice(f"{what} without a sync",
                        lambda ignored=ignored: replay(recording, 0, seed=1, ignored=ignored))


def by_hand(seeds, trace=None):
    """With a power cut at each moment that matters, each seed in a history of its own, or all in one of before."""
    first, _, end = seeds.partition(":")
    for seed in range(int(first), int(end)):
        with record() if trace is None else Recording("", trace) as recording:
            print(f"seed {seed}: {replay(recording, 1, seed=seed, draws=4, singles=4)} states", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--seeds"]:
        by_hand(sys.argv[2], sys.argv[4] if sys.argv[3:4] == ["--trace"] else None)
    else:
        run(globals())
