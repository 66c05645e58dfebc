# SPDX-License-Identifier: Apache-2.0
"""Bits that flip in the memory of a replica: found within a few steps, in no published checkpoint, and no bit of the
end is another one.

CADRE_TEST_FLIPS and CADRE_TEST_SEED draw more of them, and others: CADRE_TEST_FLIPS=1000 test_divergence.py drill."""
import collections
import os
import random
import re
import tempfile

from client import FAILED, SUCCEEDED
from cluster import Cluster
from learning import FAST, FAST_WORKER, Gate
from testing import check, check_equal, check_in, run, wait_for

FLIPPER = os.environ.get("CADRE_TEST_FLIPPER", "")
FLIPS = int(os.environ.get("CADRE_TEST_FLIPS", "12"))
SEED = int(os.environ.get("CADRE_TEST_SEED", "1"))
EVERY = 3       # steps between two comparisons
CHECKPOINT = 4  # and between two checkpoints
STEPS = 60
FAILED_PRECONDITION = 9
BREAK = re.compile(r"a generation is formed job=(\d+) .*? position=(\d+) reason=\"(.*"
                   r"(?:state than most replicas|have different states) after (\d+) steps?.*)\"$", re.MULTILINE)

# A flip there stays until it is found, whatever the program does meanwhile.
LASTING = ("weights", "rows", "chain", "use", "gradient", "thread")
# There it is written over before anybody reads it, or rounded off: found or not, the end is the same.
PASSING = ("average", "scratch")
# Of these a task holds one, for all its replicas: with one task there is nothing to compare it with.
ONE_OF_A_TASK = ("rows", "chain")


def flipper():
    with open(FLIPPER, "rb") as file:
        return file.read()


class Flip(collections.namedtuple("Flip", "slot replica position place bit")):
    def __str__(self):
        return "flip=" + ":".join(str(part) for part in self)


class Flipping:
    """One job of the flipper, in whose memory these bits flip."""

    def __init__(self, cluster, *arguments, flips=(), steps=STEPS, pace=2, verify=EVERY, **fields):
        self.cluster = cluster
        self.client = cluster.client
        self.flips = flips
        self.folder = tempfile.mkdtemp(prefix="flips-", dir=cluster.folder)
        os.chmod(self.folder, 0o777)  # tasks run as another user when we are root
        self.job = self.client.submit(flipper(), name="flipper", arguments=[
            f"steps={steps}", f"pace={pace}", f"flips={self.folder}", *map(str, flips), *arguments],
            environment=[f"CADRE_VERIFY_STATE={verify}"], **{
                "workers": 3, "max_restarts": 100, "checkpoint_every": CHECKPOINT, "checkpoints_kept": 1000, **fields})

    def made(self):
        """Where each flip was made, by its number."""
        found = {}
        for name in os.listdir(self.folder):
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                found[int(name)] = int(file.read())
        return found

    def end(self, deadline_s=60):
        info = self.client.wait(self.job, deadline_s)
        check(info.state == SUCCEEDED, f"the job did not succeed: {info}\n"
              + self.client.log(self.job)[-2000:].decode(errors="replace"))
        return info

    def found(self):
        """Where states were found to differ, and the sentences, as generations after it were formed."""
        return [(int(after), sentence) for job, _, sentence, after in BREAK.findall(self.cluster.coordinator.log())
                if int(job) == self.job]

    def checkpoints(self):
        """The content by position of all that were published. What a task wrote and nobody published is beside them."""
        found = {}
        for path, content in self.client.outputs(self.job).items():
            match = re.fullmatch(r"checkpoints/checkpoint-(\d+)\.safetensors", path)
            if match:
                found[int(match.group(1))] = content
        return found

    def check_end(self, calm):
        """Its end, and all that it published, is bitwise that of a job in which nothing flips."""
        wanted, left = calm.checkpoints(), self.checkpoints()
        check(left[STEPS] == wanted[STEPS], "the end has other bytes than that of a job without a flip")
        both = set(wanted) & set(left)
        check(len(both) > 1, f"checkpoints of both: {sorted(wanted)}, {sorted(left)}")
        for position in sorted(both):
            check(left[position] == wanted[position], f"the checkpoint of step {position} has a wrong value")


def start(workers=3, slots=1):
    return Cluster(workers=workers, slots=slots, coordinator=FAST, worker=FAST_WORKER)


def calm_run(cluster, **fields):
    calm = Flipping(cluster, **{"pace": 5, **fields})
    check_equal(calm.end().restarts, 0, "restarts without a flip")
    return calm


def check_found(flipping, flip):
    """In time, once. Returns the sentence."""
    made = flipping.made()[0]
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
            flipping = Flipping(cluster, flips=[flip], replicas=replicas)
            check_equal(flipping.end().restarts, 1, "restarts")
            sentence = check_found(flipping, flip)
            check_in(f"task {slot} on worker w", sentence, "who")
            check_in("has another state than most replicas", sentence, "who")
            check_in("from the checkpoint of step ", sentence, "what all went on from")
            told = cluster.cadre("job", str(flipping.job)).stdout.decode()
            check_in(f"task {slot} on worker w", told, "cadre job")
            check_in(f"step {STEPS} of {STEPS}", told, "what is verified")
            flipping.check_end(calm)


def test_one_of_two_flips():
    with start(2) as cluster:
        calm = calm_run(cluster, workers=2)
        for slot, place in ((0, "weights"), (1, "use"), (0, "rows")):
            flip = Flip(slot, 0, 21, place, 5)
            flipping = Flipping(cluster, flips=[flip], workers=2)
            check_equal(flipping.end().restarts, 1, "restarts")
            sentence = check_found(flipping, flip)
            check_in("the replicas have different states after", sentence, "who")
            check_in("nobody knows which is right", sentence, "who")
            flipping.check_end(calm)


def test_one_task_flips():
    """Its checkpoint is written before the step's first collective compares what its replicas hold."""
    with start(1) as cluster:
        calm = calm_run(cluster, workers=1, replicas=2, checkpoint_every=4)
        flip = Flip(0, 0, 23, "weights", 77)
        flipping = Flipping(cluster, "slow=30", flips=[flip], workers=1, replicas=2, verify=4, checkpoint_every=4)
        check_equal(flipping.end().restarts, 1, "restarts")
        flipping.check_end(calm)


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


SHAPES = ((3, 1), (3, 2), (2, 1), (2, 2), (1, 2), (1, 3), (4, 1))  # tasks, replicas of each


class Drill:
    """Short jobs with one to three flips each, one after the other, drawn from a seed."""

    def __init__(self, cluster, calm, seed):
        self.cluster = cluster
        self.draw = random.Random(seed)
        self.calm = calm.checkpoints()
        self.flips = self.jobs = self.published = 0
        self.made = collections.Counter()   # by place
        self.found = collections.Counter()
        self.late = collections.Counter()   # steps from the flip to where it was found
        self.wrong = []

    def flips_of(self, tasks, replicas, every):
        """So far apart that what was found of one is behind what is verified before the next."""
        apart = 2 * every + 6
        position = self.draw.randrange(0, apart)
        flips = []
        while position < STEPS and len(flips) < 3:
            place = self.draw.choice([place for place in LASTING * 2 + PASSING
                                      if tasks > 1 or place not in ONE_OF_A_TASK])
            replica = 0 if place in ONE_OF_A_TASK else self.draw.randrange(replicas)
            flips.append(Flip(self.draw.randrange(tasks), replica, position, place, self.draw.randrange(2 ** 20)))
            position += apart + self.draw.randrange(0, 12)
        return flips

    def once(self):
        tasks, replicas = self.draw.choice(SHAPES)
        every = self.draw.randrange(1, 6)
        flips = self.flips_of(tasks, replicas, every)
        checkpoint = self.draw.choice((3, 4, 5, 7))
        flipping = Flipping(self.cluster, flips=flips, verify=every, workers=tasks, replicas=replicas,
                            checkpoint_every=checkpoint, pace=self.draw.choice((0, 1, 2, 3)))
        self.jobs += 1
        info = flipping.client.wait(flipping.job, 120)
        self.count(flipping, flips, every)
        problems = self.problems(flipping, info)
        if problems:
            said = f"job {flipping.job} {tasks}x{replicas} --verify-state {every} checkpoint_every={checkpoint}: " \
                   f"{' '.join(map(str, flips))}: {'; '.join(problems)}"
            print(said, flush=True)
            self.wrong.append(said)
        for worker in flipping.client.workers():
            if worker.drained_by:
                self.cluster.cadre("undrain", worker.name)

    def count(self, flipping, flips, every):
        made, found = flipping.made(), [position for position, _ in flipping.found()]
        for i, flip in enumerate(flips):
            if i not in made:
                continue
            self.flips += 1
            self.made[flip.place] += 1
            behind = [position for position in found if made[i] <= position <= made[i] + every + 6]
            if behind:
                found.remove(behind[0])
                self.found[flip.place] += 1
                if flip.place != "thread":
                    self.late[behind[0] - made[i]] += 1
                    if behind[0] > made[i] + every + 1:
                        self.wrong.append(f"job {flipping.job}: {flip} was found at {behind[0]} only")
            elif flip.place in LASTING and flip.place != "thread":
                self.wrong.append(f"job {flipping.job}: {flip} was not found")

    def problems(self, flipping, info):
        if info.state != SUCCEEDED:
            return [f"it ended with {info.code}: {info.message}"]
        left = flipping.checkpoints()
        self.published += len(left)
        if STEPS not in left:
            return ["its last checkpoint is missing"]
        return [f"the checkpoint of step {position} is wrong" for position in sorted(left)
                if position in self.calm and left[position] != self.calm[position]]

    def told(self):
        places = ", ".join(f"{place} {self.found[place]} of {count}" for place, count in sorted(self.made.items()))
        late = ", ".join(f"{steps}: {count}" for steps, count in sorted(self.late.items()))
        return (f"{self.flips} flips in {self.jobs} jobs, {sum(self.found.values())} found ({places}); steps from "
                f"flip to find {{{late}}}; {self.published} checkpoints, {len(self.wrong)} problems")


def test_a_drill():
    with start(9) as cluster:  # those that are drained meanwhile are three at most
        drill = Drill(cluster, calm_run(cluster, checkpoint_every=1, pace=10), SEED)
        while drill.flips < FLIPS:
            drill.once()
        print(drill.told())
        check_equal(drill.wrong, [], "what went wrong")


if __name__ == "__main__":
    run(globals())
