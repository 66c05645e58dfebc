# SPDX-License-Identifier: Apache-2.0
"""`cadre history`: what happened to a job and when, as the ledger has it."""
import json
import os
import signal
import time

import flips
from checkpoints import EVERY, damage, published
from cluster import Cluster, script
from http_api import OPEN, fetch
from learning import FAST, FAST_WORKER, Learning, kill_all, pids_of
from testing import HANG_S, check, check_equal, check_in, run, wait_for

def history(cluster, job, *options):
    return json.loads(cluster.cadre("history", str(job), "--json", *options).stdout)

def events(cluster, job, *options):
    return history(cluster, job, *options)["events"]

def kinds(shown):
    """The kinds in order; what all tasks do at about the same time in order of task."""
    return [f"{event['kind']} {event['task']}" if event["task"] is not None else event["kind"] for event in shown]

def check_times(shown, since_s):
    """They are in order, numbered without a gap, and of this test's time."""
    check_equal([event["number"] for event in shown], list(range(1, len(shown) + 1)), "numbers")
    times = [event["time_us"] for event in shown]
    check_equal(times, sorted(times), "times in order")
    check(since_s * 1e6 <= times[0] and times[-1] <= (time.time() + 1) * 1e6, f"times {times} after {since_s}")

def of_kind(shown, kind):
    return [event for event in shown if event["kind"] == kind]

def test_two_kills_a_stall_and_a_start_of_the_coordinator():
    began = time.time()
    slow = ["--slow-after", "1s", "--slow-factor", "2"]
    with Cluster(workers=2, coordinator=[*FAST, *slow, *OPEN], worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, workers_min=2, max_restarts=5, allowed=10)
        job = learning.job
        for dead, allowed in ((1, 20), (0, 30)):
            info = learning.until_position(allowed - 10)
            before = info.generation
            os.kill(pids_of(info)[dead], signal.SIGKILL)
            learning.until(lambda info, before=before: info.generation > before, "another generation")
            learning.allow(allowed)
            learning.until(lambda info, allowed=allowed: info.position >= allowed and info.roster == 2, "both train")
        pids = pids_of(learning.until_position(30))
        os.kill(pids[1], signal.SIGSTOP)
        learning.allow()
        wait_for("the stall is recorded", lambda: of_kind(events(cluster, job), "stalled"))
        cluster.coordinator.kill()
        cluster.coordinator.start()
        learning.client = cluster.new_client()
        wait_for("the coordinator's start is recorded",
                 lambda: of_kind(events(cluster, job), "coordinator_restarted"))
        os.kill(pids[1], signal.SIGCONT)
        wait_for("it goes on", lambda: of_kind(events(cluster, job), "went_on"))
        learning.end()
        learning.check_learned()

        shown = events(cluster, job)
        check_times(shown, began)
        # A joiner may wait at another step than the task that goes on: then that halts there, and they regroup.

        order = [kind for kind in kinds(shown) if kind not in ("generation", "halted")]
        check_equal(order[:2], ["submitted", "started"], "how it begins")
        check_equal(sorted(order[2:4]), ["task_started 0", "task_started 1"], "its tasks")
        check_equal(order[4:11], ["task_ended 1", "task_started 1", "task_ended 0", "task_started 0", "stalled 1",
                                  "coordinator_restarted", "went_on"], "what happens")
        rest = [kind for kind in order[11:] if not kind.startswith(("stalled", "went_on"))]  # of a busy machine
        check_equal(sorted(rest), ["checkpoint", "ended", "ending", "task_ended 0", "task_ended 1"], "the end")
        generations = of_kind(shown, "generation")
        check_equal([event["generation"] for event in generations], list(range(1, len(generations) + 1)), "generations")
        check_equal(sorted({event["position"] for event in generations})[:2], [0, 10], "where they go on")
        check_equal((generations[-1]["tasks"], generations[-1]["roster"]), (2, "0-1"), "who is in the last one")
        check_equal({(event["undone"], event["restarted"]) for event in generations}, {(0, False)}, "nothing is undone")
        check_in("task 1 on worker", generations[1]["text"], "why the second generation")
        check_in("went on from step 10", generations[1]["text"], "why the second generation")
        killed = [event for event in of_kind(shown, "task_ended") if event["exit_signal"] is not None]
        check_equal([(event["task"], event["exit_signal"], event["exit_code"]) for event in killed],
                    [(1, 9, None), (0, 9, None)], "who was killed")
        stalled, went_on = of_kind(shown, "stalled")[0], of_kind(shown, "went_on")[0]
        check_equal((stalled["position"], stalled["task"], stalled["generation"]),
                    (30, 1, generations[-1]["generation"]), "the stall")
        check(1e6 <= stalled["waited_us"] < HANG_S * 1e6, f"{stalled}")
        check_in("task 1 on worker", stalled["text"], "who is waited for")
        check(went_on["position"] > 30 and went_on["waited_us"] >= stalled["waited_us"], f"{went_on}")
        check_equal((shown[-1]["kind"], shown[-1]["state"], shown[-1]["code"]), ("ended", "succeeded", "OK"), "the end")
        check_equal(fetch(cluster.coordinator, f"/api/jobs/{job}/history"), history(cluster, job), "/api/")
        some = fetch(cluster.coordinator, f"/api/jobs/{job}/history?after=3&limit=2")
        check_equal(([event["number"] for event in some["events"]], some["more"]), ([4, 5], True), "a page")
        refused = fetch(cluster.coordinator, f"/api/jobs/{job}/history?after=x", 400)
        check_equal(refused["code"], "INVALID_ARGUMENT", "no number")


def test_steps_are_undone_and_a_checkpoint_is_lost():
    """All tasks are killed, twice: all go on from the newest checkpoint, or the one before where that is damaged."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=5, checkpoint_every=EVERY, checkpoints_kept=4, allowed=4)
        published(learning, 8)
        learning.allow(10)
        kill_all(learning.until_position(10))
        learning.until(lambda info: info.generation > 1 and info.position >= 10, "they are where they were")
        second = of_kind(events(cluster, learning.job), "generation")[1]
        check_equal((second["position"], second["undone"], second["restarted"]), (8, 2, True), "what is undone")
        learning.allow(14)
        learning.until(lambda info: "checkpoint-12." in info.checkpoint and info.position >= 14, "checkpoint 12")
        damage(cluster, cluster.client, learning.job, (12,))
        kill_all(learning.get())
        learning.until(lambda info: "again from the checkpoint of step 8" in info.message, "what it goes on from")
        learning.allow()
        learning.end()
        learning.check_learned()
        shown = events(cluster, learning.job)
        lost = of_kind(shown, "checkpoint_lost")
        check_equal([event["position"] for event in lost], [12], "checkpoints that were lost")
        check_in("content does not have its hash", lost[0]["text"], "why")
        after = [event for event in of_kind(shown, "generation") if event["number"] > lost[0]["number"]][0]
        check_equal((after["position"], after["undone"], after["restarted"]), (8, 6, True), "what is undone with it")


def test_a_preemption():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, allowed=8)
        os.kill(pids_of(learning.until_position(6))[1], signal.SIGTERM)
        learning.until(lambda info: "has to leave its machine" in info.message, "the notice")
        learning.allow()
        learning.end()
        shown = events(cluster, learning.job)
        order = [event["kind"] for event in shown if event["kind"] in ("halted", "preempted", "generation", "ended")]
        check_equal(order, ["generation", "halted", "preempted", "generation", "ended"], "what happened")
        halted, preempted = of_kind(shown, "halted")[0], of_kind(shown, "preempted")[0]
        check_in(f"saved at step {halted['position']}", preempted["text"], "where it goes on")
        check_equal((preempted["position"], of_kind(shown, "generation")[1]["position"]), (halted["position"],) * 2,
                    "where it goes on")
        check_equal(of_kind(shown, "generation")[1]["undone"], 0, "steps that are undone")


def test_states_that_differ():
    with flips.start(3) as cluster:
        flipping = flips.Flipping(cluster, flips=[flips.Flip(1, 0, 21, "weights", 77)])
        flipping.end()
        (position, sentence), = flipping.found()
        shown = events(cluster, flipping.job)
        diverged, = of_kind(shown, "diverged")
        check_equal((diverged["position"], diverged["generation"]), (position, 1), "where and in which generation")
        check_in("task 1 on worker", diverged["text"], "who")
        check_in("task 1 on worker", sentence, "who, in the log")
        after = of_kind(shown, "generation")[1]
        check(after["number"] > diverged["number"] and after["restarted"], f"what follows: {after}")
        # As far as the tasks had reported what they applied: the steps of a run that ends may wait for the next one.
        check(0 <= after["undone"] <= position - after["position"], f"what is undone: {after}")


def test_the_only_task_of_a_job_stalls():
    slow = ["--slow-after", "1s", "--slow-factor", "2"]
    with Cluster(workers=1, coordinator=[*FAST, *slow], worker=FAST_WORKER) as cluster:
        with open(os.environ.get("CADRE_TEST_TRACED", ""), "rb") as file:
            job = cluster.client.submit(file.read(), arguments=["steps", "1000000", "function", "0", "50"])
        info = cluster.client.watch_until(job, lambda info: info.position >= 5, "position 5")
        stalled = None
        while stalled is None:  # it may be stopped between two steps, in which it does as it likes
            os.kill(info.tasks[0].pid, signal.SIGSTOP)
            began = time.monotonic()
            while stalled is None and time.monotonic() - began < 4:
                stalled = next(iter(of_kind(events(cluster, job), "stalled")), None)
            os.kill(info.tasks[0].pid, signal.SIGCONT)
        wait_for("it goes on", lambda: of_kind(events(cluster, job), "went_on"))
        cluster.client.cancel(job)
        check_equal(stalled["task"], 0, "who")
        check_in("task 0 on worker w0 is still in it", stalled["text"], "who")


def test_what_a_user_sees():
    with Cluster(workers=1) as cluster:
        job = cluster.client.run(script("echo a last line >&2; exit 3")).id
        text = cluster.cadre("history", str(job)).stdout.decode()
        for part in ("TIME", "submitted", "task started   task 0 on w0", "task 0 on w0 exited with status 3",
                     "failed: "):
            check_in(part, text, "the table")
        check_equal([event["kind"] for event in events(cluster, job, "--limit", "2")],
                    [event["kind"] for event in events(cluster, job)[-2:]], "the newest two")
        followed = cluster.cadre("history", str(job), "-f", "--json").stdout.decode().splitlines()
        check_equal([json.loads(line) for line in followed], events(cluster, job), "one that ended is followed")
        wrong = ((["77"], 1, "no job 77"), ([], 2, "which job"), ([str(job), "-n", "0"], 2, "within 1"),
                 (["x"], 2, "x"))
        for arguments, status, part in wrong:
            done = cluster.cadre("history", *arguments, status=status)
            check_in(part, done.stderr.decode(), f"history {arguments}")


if __name__ == "__main__":
    run(globals())
