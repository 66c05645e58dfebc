# SPDX-License-Identifier: Apache-2.0
"""Bits that flip in the memory of a replica: found within a few steps, in no published checkpoint, and no bit of the
end is another one.

CADRE_TEST_FLIPS and CADRE_TEST_SEED draw more of them, and others: CADRE_TEST_FLIPS=1000 test_divergence.py drill."""
import os
import signal

from client import FAILED
from flip_drill import Drill
from flips import EVERY, STEPS, Flip, Flipping, calm_run, start
from learning import FAST_WORKER, Gate
from testing import check, check_equal, check_in, run, wait_for

FLIPS = int(os.environ.get("CADRE_TEST_FLIPS", "12"))
SEED = int(os.environ.get("CADRE_TEST_SEED", "1"))
FAILED_PRECONDITION = 9
PUBLISHED_MS = 20  # between two steps: a checkpoint is published before the flip at step 21


def check_found(flipping, flip):
    """In time, once. Returns the sentence."""
    made = flipping.seen()[0].made
    found = flipping.found()
    check_equal(len(found), 1, f"that it was found, of {flip}: {found}")
    position, sentence = found[0]
    check(made <= position <= made + EVERY + 1, f"{flip}, made at step {made}, was found at {position}")
    check_in("all tasks began again from", sentence, "what followed")
    return sentence


def test_one_of_three_flips():
    with start(4) as cluster:  # so that one of them may be drained, after its second flip
        calm = calm_run(cluster)
        for replicas, place in ((1, "use"), (1, "gradient"), (2, "weights"), (2, "chain")):
            slot = ("use", "gradient", "weights", "chain").index(place) % 3
            flip = Flip(slot, 1 if place == "weights" else 0, 21, place, 77)
            flipping = Flipping(cluster, flips=[flip], replicas=replicas, pace=PUBLISHED_MS)
            check_equal(flipping.end().restarts, 1, "restarts")
            sentence = check_found(flipping, flip)
            check_in(f"task {slot} on worker w", sentence, "who")
            check_in("has another state than most replicas", sentence, "who")
            check_in("from the checkpoint of step ", sentence, "what all went on from")
            shown = cluster.cadre("job", str(flipping.job)).stdout.decode()
            check_in(f"task {slot} on worker w", shown, "cadre job")
            check_in(f"step {STEPS} of {STEPS}", shown, "what is verified")
            flipping.check_end(calm)


def test_one_of_two_flips():
    with start(2) as cluster:
        calm = calm_run(cluster, workers=2)
        for slot, place in ((0, "weights"), (1, "use"), (0, "rows")):
            flip = Flip(slot, 0, 21, place, 5)
            flipping = Flipping(cluster, flips=[flip], workers=2, pace=PUBLISHED_MS)
            check_equal(flipping.end().restarts, 1, "restarts")
            sentence = check_found(flipping, flip)
            check_in("the replicas have different states after", sentence, "who")
            check_in("it is not known which is right", sentence, "who")
            flipping.check_end(calm)


def test_one_task_flips():
    """Its checkpoint is written before the step's first collective compares what its replicas hold."""
    with start(1) as cluster:
        calm = calm_run(cluster, workers=1, replicas=2, checkpoint_every=4)
        flip = Flip(0, 0, 23, "weights", 77)
        flipping = Flipping(cluster, "slow=30", flips=[flip], workers=1, replicas=2, verify=4, checkpoint_every=4)
        check_equal(flipping.end().restarts, 1, "restarts")
        flipping.check_end(calm)


def test_the_chiefs_copy_flips():
    """What the replicas hold is right: one checkpoint less is published, and the last is written once more."""
    with start() as cluster:
        calm = calm_run(cluster)
        for shape in ({"workers": 3}, {"workers": 1, "replicas": 2}):
            for position in (20, STEPS - 1):
                flipping = Flipping(cluster, flips=[Flip(0, 0, position, "copy", 0)], pace=10, **shape)
                check_equal(flipping.end().restarts, 0, "restarts")
                check_equal(flipping.seen()[0].made, position, "where the copy flipped")
                flipping.check_end(calm)
                left = flipping.checkpoints()
                # Of others one may be left out, since the one before is still being written.
                check(20 not in left or position > 20, f"the copy that flipped was published: {sorted(left)}")


def test_a_coordinator_starts_between_two():
    """What it knew of states that differed before, and on which workers, it knows still."""
    with start(4) as cluster:  # one of them is drained
        gate = Gate(cluster, 30)
        flips = [Flip(1, 0, 21, "weights", 5), Flip(1, 0, 45, "weights", 6)]
        flipping = Flipping(cluster, gate.argument, flips=flips)
        flipping.client.watch_until(flipping.job, lambda info: info.restarts == 1 and info.position >= 30, "step 30")
        worker = {task.slot: task.worker for task in flipping.client.get(flipping.job).tasks}[1]
        cluster.coordinator.kill()
        cluster.coordinator.start()
        flipping.client = cluster.new_client()
        gate.allow(STEPS)
        flipping.client.wait(flipping.job, 60)
        drained = [worker.name for worker in flipping.client.workers() if worker.drained_by]
        check_equal(drained, [worker], "who was named twice")


def test_a_program_that_is_wrong():
    with start() as cluster:
        for wrong, fields in (("own", {}), ("rand", {"workers": 2}), ("rows", {"replicas": 2}), ("clock", {}),
                              ("own", {"workers": 1, "replicas": 2})):
            flipping = Flipping(cluster, f"wrong={wrong}", **fields)
            info = flipping.client.wait(flipping.job, 60)
            check_equal(info.state, FAILED, f"the state of one with {wrong}")
            check_equal(info.code, FAILED_PRECONDITION, f"the code of {info.message}")
            check_in("look for an uninitialised value, a sum over local rows, a clock, rand(), a thread", info.message,
                     "the message")
            check_equal(info.restarts, 1, "restarts")
            published = [path for path in flipping.client.outputs(flipping.job) if path.startswith("checkpoints/")]
            check_equal(published, [], "what was published of wrong values")
            for worker in flipping.client.workers():
                if worker.drained_by:
                    cluster.cadre("undrain", worker.name)


def test_nothing_is_compared():
    with start() as cluster:
        flipping = Flipping(cluster, "wrong=own", verify="off")
        info = flipping.end()
        check_equal((info.restarts, info.verified_digest), (0, 0), "restarts, and what was verified")
        check_equal(flipping.found(), [], "what was found")
        check("verified" not in cluster.cadre("job", str(flipping.job)).stdout.decode(), "cadre job says verified")


def test_who_joins_differs():
    """In its first step, which compares."""
    with start(2) as cluster:
        calm = calm_run(cluster, workers=2)
        gate = Gate(cluster, 9)
        flip = Flip(2, 0, 0, "weights", 1234)
        flipping = Flipping(cluster, gate.argument, flips=[flip], workers=3, workers_min=2)
        flipping.client.watch_until(flipping.job, lambda info: info.position >= 9, "step 9")
        joiner = cluster.worker("w2", 1, FAST_WORKER)
        cluster.workers.append(joiner)
        joiner.start()
        wait_for("a third task", lambda: sum(task.uses_cadre for task in flipping.client.get(flipping.job).tasks) == 3)
        gate.allow(STEPS)
        flipping.end()
        check_in("task 2 on worker w2 has another state than most replicas", check_found(flipping, flip), "who")
        flipping.check_end(calm)


RARE = {"steps": 200, "checkpoint_every": 100}  # nothing but checkpoints is compared, at 100 and at the end
FLIPPED, ENDED = 102, 104                       # a bit flips there, and there its task ends


def flips_and_ends(cluster, slot, place="weights", **fields):
    """An elastic job in which a bit has flipped, and which was not compared since; and its gate, which is closed."""
    gate = Gate(cluster, ENDED)
    flipping = Flipping(cluster, gate.argument, flips=[Flip(slot, 0, FLIPPED, place, 77)], verify=1000, pace=20,
                        **RARE, **{"workers_min": 2, **fields})
    flipping.client.watch_until(flipping.job, lambda info: info.position >= ENDED, f"step {ENDED}")
    wait_for("the flip", lambda: flipping.seen() != {})
    return flipping, gate


def check_found_before(flipping, calm):
    """All began again from the checkpoint before it, and the end is right."""
    flipping.end()
    found = flipping.found()
    check_equal(len(found), 1, f"that it was found: {found}")
    position, sentence = found[0]
    check(ENDED <= position < 200, f"it was found at {position}")
    check_in("all tasks began again from the checkpoint of step 100", sentence, "what followed")
    flipping.check_end(calm)
    return sentence


def test_who_drains_has_flipped():
    """Found where all pause for that, before it is released."""
    with start(4) as cluster:
        calm = calm_run(cluster, workers=3, **RARE)
        flipping, gate = flips_and_ends(cluster, 1)
        tasks = {task.slot: task.worker for task in flipping.client.get(flipping.job).tasks}
        cluster.cadre("drain", tasks[1])
        gate.allow()
        sentence = check_found_before(flipping, calm)
        check_in(f"task 1 on worker {tasks[1]} has another state than most replicas", sentence, "who")


def test_who_gives_its_state_has_flipped():
    """Found where all stand still for who joins, before that gets it."""
    with start(2) as cluster:
        calm = calm_run(cluster, workers=2, **RARE)
        flipping, gate = flips_and_ends(cluster, 0, workers=3)
        joiner = cluster.worker("w2", 1, FAST_WORKER)
        cluster.workers.append(joiner)
        joiner.start()
        wait_for("a third task", lambda: sum(task.uses_cadre for task in flipping.client.get(flipping.job).tasks) == 3)
        gate.allow()
        check_in("it is not known which is right", check_found_before(flipping, calm), "who")


def test_who_gives_its_state_flips_where_it_stands():
    """When it has reported what it holds, and alone: no other task can find it."""
    with start(1) as cluster:
        calm = calm_run(cluster, workers=1, **RARE)
        flipping, gate = flips_and_ends(cluster, 0, "stood", workers=2, workers_min=1)
        joiner = cluster.worker("w1", 1, FAST_WORKER)
        cluster.workers.append(joiner)
        joiner.start()
        wait_for("a second task", lambda: sum(task.uses_cadre for task in flipping.client.get(flipping.job).tasks) == 2)
        gate.allow()
        sentence = check_found_before(flipping, calm)
        check_in("task 0 on worker w0 has another state than most replicas", sentence, "who")
        check_in("replica 0 (task 0) does not hold in their variables what it held before that step", sentence, "what")


def test_who_is_lost_has_flipped():
    """No task compares what it held since the last time: taken as right, or, with --verify-losses, not gone on from."""
    with start(3) as cluster:
        calm = calm_run(cluster, workers=3, **RARE)
        for losses in (False, True):
            flipping, gate = flips_and_ends(cluster, 1, workers=3, losses=losses)
            generation = flipping.client.get(flipping.job).generation
            os.kill(flipping.seen()[0].pid, signal.SIGKILL)
            flipping.client.watch_until(flipping.job, lambda info, than=generation: info.generation > than, "the next")
            note = flipping.client.get(flipping.job).message
            gate.allow()
            flipping.end()
            check_equal(flipping.found(), [], "what was found")
            if losses:
                flipping.check_end(calm)
                check_in("; what it held was not compared, so all tasks began again from the checkpoint of step 100",
                         note, "what followed")
            else:
                left, wanted = flipping.checkpoints(), calm.checkpoints()
                check(left[100] == wanted[100], "what was compared before is wrong")
                check(left[200] != wanted[200], "what the task that was lost had given to the sums has gone")


def test_a_drill():
    with start(9) as cluster:  # those that are drained meanwhile are three at most
        drill = Drill(cluster, calm_run(cluster, checkpoint_every=1, pace=10), SEED)
        while drill.flips < FLIPS:
            drill.once()
        print(drill.summary())
        check_equal(drill.wrong, [], "what went wrong")


if __name__ == "__main__":
    run(globals())
