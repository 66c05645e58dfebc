# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's event files, read back by the published definitions: each step's value once, whatever was killed."""
import json
import math
import os
import signal
import subprocess
import tempfile

from client import SUCCEEDED
from cluster import Cluster, clean_environment
from event_files import Run, files_in
from learning import FAST, FAST_WORKER, pids_of
from testing import HANG_S, check, check_equal, check_in, run, wait_for

SUMMARIZER = os.environ["CADRE_TEST_SUMMARIZER"]
STEPS = 60


def summarizer():
    with open(SUMMARIZER, "rb") as file:
        return file.read()


def odd(step):
    return [0.0, math.nan, math.inf, -math.inf, math.inf, -0.0][step % 6]  # 1e300 is no float


class Gate:
    """The file that says how many steps may be taken."""

    def __init__(self, folder):
        self.path = os.path.join(tempfile.mkdtemp(prefix="gate-", dir=folder), "gate")
        os.chmod(os.path.dirname(self.path), 0o755)

    def allow(self, steps):
        with open(self.path + ".new", "w", encoding="ascii") as file:
            file.write(f"{steps}\n")
        os.replace(self.path + ".new", self.path)


def check_run(seen, first, last):
    seen.check_each_step("loss", first, last, lambda step: 1 / step)
    seen.check_each_step("odd", first, last, odd)
    tens = [step for step in range(first, last + 1) if step % 10 == 0]
    check_equal(seen.series["note"], [(step, f"**step** {step} \u2713") for step in tens], "texts")
    check_equal(seen.steps("weights/w"), tens, "steps of the histograms")
    check_equal(seen.series["weights/w/not_finite"], [(step, 1) for step in tens], "what is in no bucket")
    for step, histogram in seen.series["weights/w"]:
        check_equal((list(histogram.bucket), list(histogram.bucket_limit)),
                    ([1, 0, 1, 1], [step * share for share in (0.5, 1, 1.5, 2)]), f"histogram of step {step}")
        check_equal((histogram.min, histogram.max, histogram.num, histogram.sum), (0, 2 * step, 3, 3 * step),
                    f"sums of step {step}")


def fetched(cluster, job):
    """What `cadre get` brings, as one run."""
    whole, only = tempfile.mkdtemp(dir=cluster.folder), tempfile.mkdtemp(dir=cluster.folder)
    cluster.cadre("get", str(job), "-o", whole)
    cluster.cadre("get", str(job), "events", "-o", only)
    found = files_in(os.path.join(whole, "events"))
    check_equal((os.listdir(only), files_in(os.path.join(only, "events"))), (["events"], found), "only events")
    return found


def test_by_hand():
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(folder)
        gate.allow(STEPS)

        def reported(**settings):
            return subprocess.run([SUMMARIZER, str(STEPS), gate.path], cwd=folder, capture_output=True, timeout=HANG_S,
                                  check=False, text=True, env=clean_environment() | settings)

        check_equal(reported().returncode, 0, "without an output folder")
        check(not os.path.exists(os.path.join(folder, "events")), "files that were not asked for")
        out = os.path.join(folder, "out")
        os.mkdir(out)
        check_equal(reported(CADRE_OUTPUT_DIR=out).returncode, 0, "with one")
        files = files_in(os.path.join(out, "events"))
        check_equal(len(files), 1, "files")
        seen = Run(files)
        check_run(seen, 1, STEPS)
        check_equal(seen.starts, [1], "where it begins")
        check_equal(seen.steps("cadre/step_seconds"), list(range(2, STEPS + 1)), "steps whose time is known")
        check_equal(seen.series["cadre/tasks"], [(0, 1)], "tasks")
        check_in("| 1 | 0 | 1 | 0 | started |", seen.series["cadre/generations"][0][1], "the generation")
        check_equal(reported(CADRE_EVENTS="off", CADRE_OUTPUT_DIR=out).returncode, 0, "turned off")
        check_equal(files_in(os.path.join(out, "events")), files, "files after that")
        shared = os.path.join(folder, "shared", "run")
        check_equal(reported(CADRE_EVENTS=shared).returncode, 0, "in a folder")
        check_run(Run(files_in(shared)), 1, STEPS)
        check_equal(reported(CADRE_EVENTS="on").returncode, 0, "beside it")
        check_run(Run(files_in(os.path.join(folder, "events"))), 1, STEPS)
        done = reported(CADRE_EVENTS="yes")
        check_equal(done.returncode, 1, "a word that is none")
        check_in("CADRE_EVENTS is 'yes'; set it to on, off, or the absolute path", done.stderr, "why")
        blocked = reported(CADRE_EVENTS=gate.path)
        check_equal(blocked.returncode, 0, "a training whose folder is a file")
        check_equal(blocked.stderr.count("event file is incomplete"), 1, f"warnings: {blocked.stderr}")


def test_it_goes_on_by_hand():
    """From a checkpoint, into the same folder: the values behind it are void."""
    with tempfile.TemporaryDirectory() as folder:
        gate = Gate(folder)
        settings = clean_environment() | {"CADRE_OUTPUT_DIR": folder, "CADRE_CHECKPOINT_EVERY": "20"}
        gate.allow(30)
        with subprocess.Popen([SUMMARIZER, str(STEPS), gate.path], env=settings, stderr=subprocess.DEVNULL) as first:
            events = os.path.join(folder, "events")
            wait_for("a checkpoint", lambda: os.path.exists(os.path.join(folder, "checkpoint-20.json")))
            gate.allow(50)
            wait_for("step 50 is in the file", lambda: os.path.isdir(events) and files_in(events) and
                     Run(files_in(events), whole=False).steps("loss")[-1:] == [50])
            wait_for("the next one", lambda: os.path.exists(os.path.join(folder, "checkpoint-40.json")))
            first.kill()
        before = set(files_in(events))
        gate.allow(STEPS)
        done = subprocess.run([SUMMARIZER, str(STEPS), gate.path], env=settings | {"CADRE_RESTORE": folder},
                              capture_output=True, timeout=HANG_S, check=False, text=True)
        check_equal(done.returncode, 0, f"going on: {done.stderr}")
        files = files_in(events)
        seen = Run(files, whole=False)
        check_equal(len(set(files) - before), 1, "files of the second")
        check_equal(seen.starts, [1, 41], "where they begin")
        check_run(seen, 1, STEPS)


def test_all_tasks_are_killed():
    """The job begins again from its newest checkpoint, and steps that were undone have one value."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        gate = Gate(cluster.folder)
        gate.allow(30)
        job = client.submit(summarizer(), workers=2, arguments=[str(STEPS), gate.path], max_restarts=1,
                            checkpoint_every=20)
        client.watch_until(job, lambda info: info.checkpoint.endswith("-20.json"), "the checkpoint of step 20")
        wait_for("step 30", lambda: client.get(job).position >= 30)
        for pid in pids_of(client.get(job)).values():
            os.kill(pid, signal.SIGKILL)
        gate.allow(STEPS)
        check_equal(client.wait(job).state, SUCCEEDED, "its end")
        listed = json.loads(cluster.cadre("get", str(job), "--list", "--json").stdout)
        check(any("/events/events.out.tfevents." in str(output) for output in listed["outputs"]), f"listed: {listed}")
        files = fetched(cluster, job)
        seen = Run(files, whole=False)
        check_equal((len(files), seen.starts), (2, [1, 21]), "files, and where they begin")
        check_run(seen, 1, STEPS)
        check_in("| 20 | 2 | 0, 1 | all began again from the checkpoint after 20 steps |",
                 seen.series["cadre/generations"][-1][1], "why")


def test_the_chief_is_killed():
    """Another task becomes the chief, and goes on with the values."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        gate = Gate(cluster.folder)
        job = client.submit(summarizer(), workers=3, workers_min=1, max_restarts=3, arguments=[str(STEPS), gate.path])
        newest = ""
        for steps in (17, 35):
            gate.allow(steps)
            info = client.watch_until(job, lambda info, steps=steps: info.position >= steps, f"{steps} steps")
            generation = info.generation
            newest = wait_for("the chief's file", lambda known=newest: newer_file(cluster, job, known))
            os.kill(pids_of(info)[int(newest.rsplit(".", 1)[1])], signal.SIGKILL)  # it ends with the slot
            client.watch_until(job, lambda info, before=generation: info.generation > before, "the next generation")
        gate.allow(STEPS)
        check_equal(client.wait(job).state, SUCCEEDED, "its end")
        files = fetched(cluster, job)
        check_equal(len(files), 3, f"files, one of each chief: {sorted(files)}")
        seen = Run(files, whole=False)
        check_run(seen, 1, STEPS)
        shown = seen.series["cadre/generations"][-1][1]
        check_in(" left", shown, "why")


def test_a_plain_program():
    """It goes on from the state that it saved; the steps are its own."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        gate = Gate(cluster.folder)
        gate.allow(30)
        job = client.submit(summarizer(), workers=2, arguments=[str(STEPS), gate.path, "plain"], max_restarts=1)
        wait_for("step 30 is in a file", lambda: written(cluster, job) and
                 Run(written(cluster, job), whole=False).steps("loss")[-1:] == [30])
        os.kill(pids_of(client.get(job))[0], signal.SIGKILL)  # all begin again
        gate.allow(STEPS)
        check_equal(client.wait(job).state, SUCCEEDED, "its end")
        seen = Run(fetched(cluster, job), whole=False)
        check_equal(seen.starts, [1, 21], "where the files begin")
        seen.check_each_step("loss", 1, STEPS, lambda step: 1 / step)


def written(cluster, job):
    """The event files that are at workers now."""
    found = {}
    for worker in cluster.workers:
        for folder, _, names in os.walk(worker.state):
            if any(name.startswith(f"events.out.tfevents.{job:010}.") for name in names):
                found.update(files_in(folder))
    return {name: content for name, content in found.items() if content}


def newer_file(cluster, job, known):
    """The newest event file at a worker, if it is newer than that one."""
    newest = max([known, *written(cluster, job)])
    return newest if newest != known else None


if __name__ == "__main__":
    run(globals())
