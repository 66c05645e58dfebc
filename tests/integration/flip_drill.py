# SPDX-License-Identifier: Apache-2.0
"""Short jobs with some flips each, drawn from a seed, and what is to become of each flip."""
import collections
import os
import random
import re
import signal

from client import FINAL, RUNNING, SUCCEEDED
from flips import LASTING, ONE_OF_A_TASK, PASSING, STEPS, Flip, Flipping
from testing import wait_for

SHAPES = ((3, 1), (3, 2), (2, 1), (2, 2), (1, 2), (1, 3), (4, 1))  # tasks, replicas of each
MOST, LEAST = 4, 2  # tasks of an elastic job
LATE = 3            # steps that a flip is made behind its own at most, since its task is not there yet
RESUMED = re.compile(r"all tasks began again(?: from the checkpoint of step (\d+)|, and Cadre has no checkpoint)")


class Churn:
    """Workers come and go, and tasks die, while an elastic job trains, those in whose memory a bit has flipped not
    less than others. Never so many at once that one task is left: it could not tell that its state differs."""

    def __init__(self, cluster, draw):
        self.cluster = cluster
        self.client = cluster.client
        self.draw = draw
        self.done = collections.Counter()
        self.killed = set()  # processes of this job

    def drained(self):
        return [worker.name for worker in self.client.workers() if worker.drained_by]

    def leave_room(self, places):
        """So many workers are left."""
        names = [worker.name for worker in self.cluster.workers]
        for name in self.draw.sample(names, len(names) - places):
            self.cluster.cadre("drain", name)

    def undrain(self, count):
        """Of those that drain so many, if there are; the coordinator may have drained more than the drill."""
        for name in self.drained()[:count]:
            self.cluster.cadre("undrain", name)

    def until(self, flipping, condition, what):
        def holds():
            if len(self.drained()) > len(self.cluster.workers) - LEAST:
                self.undrain(1)
            info = self.client.get(flipping.job)
            return info if info.state in FINAL or condition(info) else None
        return wait_for(what, holds)

    def act(self, flipping, position):
        """One of them comes, goes or dies at that step or later, and the others have gone on."""
        self.until(flipping, lambda info: info.position >= position and info.state == RUNNING,
                   f"step {position} of job {flipping.job}")
        with flipping.hold():
            self.act_now(flipping)

    def act_now(self, flipping):
        info = self.client.get(flipping.job)
        pids = {seen.pid for seen in flipping.seen().values()}
        tasks = [task for task in info.tasks if task.pid > 0]
        flipped = [task for task in tasks if task.pid in pids]
        kinds = ["kill", "leave", "replace"] if info.roster == len(tasks) > LEAST else []
        kinds += ["join"] if info.roster < MOST else []
        if info.state != RUNNING or not kinds:
            return
        kind = self.draw.choice(kinds)
        task = self.draw.choice(flipped if flipped and self.draw.randrange(3) > 0 else tasks or [None])
        if kind == "kill":
            try:
                os.kill(task.pid, signal.SIGKILL)
            except ProcessLookupError:
                return  # all have just begun again
            self.killed.add(task.pid)
        self.done[kind + (" of one that flipped" if task in flipped and kind != "join" else "")] += 1
        if kind in ("join", "replace"):
            self.undrain(1)
        if kind in ("leave", "replace"):
            self.cluster.cadre("drain", task.worker)
        self.until(flipping, lambda now: now.generation > info.generation, f"another generation after: {kind}")


class Drill:
    """Short jobs with one to three flips each, one after the other, drawn from a seed."""

    def __init__(self, cluster, calm, seed):
        self.cluster = cluster
        self.draw = random.Random(seed)
        self.churn = Churn(cluster, random.Random(seed))  # of its own: what it draws depends on the time
        self.calm = calm.checkpoints()
        self.flips = self.published = 0
        self.jobs = collections.Counter()   # by shape
        self.made = collections.Counter()   # by place
        self.found = collections.Counter()
        self.why = collections.Counter()    # by explanation, of those that were not found
        self.late = collections.Counter()   # steps from the flip to where it was found
        self.unknown = collections.Counter()  # by end, of jobs in which no task could find one
        self.wrong = []

    def flips_of(self, tasks, replicas, every):
        """So far apart that what was found of one is behind what is verified before the next. A thread takes its
        time."""
        apart = 2 * every + 6
        position = self.draw.randrange(0, apart)
        flips = []
        while position < STEPS and len(flips) < 3:
            place = self.draw.choice([place for place in LASTING * 2 + PASSING
                                      if tasks > 1 or place not in ONE_OF_A_TASK])
            replica = 0 if place in ONE_OF_A_TASK else self.draw.randrange(replicas)
            flips.append(Flip(self.draw.randrange(tasks), replica, position, place, self.draw.randrange(2 ** 20)))
            position += apart + self.draw.randrange(0, 12) + (20 if place == "thread" else 0)
        return flips

    def places_of_churn(self, flips):
        """Most often soon after a bit has flipped, before that is compared."""
        behind = [flip.position + 1 for flip in flips if flip.position < STEPS - 12]
        return sorted({*behind, *self.draw.sample(range(4, STEPS - 10), 3 - len(behind))})

    def once(self):
        elastic = self.draw.randrange(4) == 0
        tasks, replicas = (MOST, self.draw.choice((1, 1, 2))) if elastic else self.draw.choice(SHAPES)
        every = self.draw.randrange(6, 12) if elastic else self.draw.randrange(1, 6)
        checkpoint = self.draw.choice((3, 4, 5, 7))
        flips = self.flips_of(tasks, replicas, every)
        losses = elastic and self.draw.randrange(2) == 0
        fields = {"workers_min": LEAST, "pace": self.draw.choice((5, 10)), "losses": losses} if elastic else \
            {"pace": self.draw.choice((0, 1, 2, 3))}
        self.churn.killed.clear()
        if elastic:
            self.churn.leave_room(self.draw.randrange(LEAST + 1, MOST + 1))
        flipping = Flipping(self.cluster, f"late={LATE}", flips=flips, verify=every, workers=tasks, replicas=replicas,
                            checkpoint_every=checkpoint, **fields)
        shape = f"{LEAST}:{MOST}{' --verify-losses' if losses else ''}" if elastic else f"{tasks}x{replicas}"
        self.jobs[shape] += 1
        for position in self.places_of_churn(flips) if elastic else ():
            self.churn.act(flipping, position)
        self.churn.undrain(len(self.cluster.workers))
        problems = self.judge(flipping, flips, every)
        problems += self.ends(flipping, STEPS if losses else self.beyond_finding(flipping))
        if problems:
            said = f"job {flipping.job} {shape} --verify-state {every} checkpoint_every={checkpoint}: " \
                   f"{' '.join(map(str, flips))}: {'; '.join(problems)}"
            print(said, flush=True)
            self.wrong.append(said)
        self.churn.undrain(len(self.cluster.workers))

    def beyond_finding(self, flipping):
        """From which step on a wrong value may be in the sums of all, and no task holds another state: a task was
        killed, or took over the state of another, before its own was compared. STEPS: from none on."""
        return min((seen.made for seen in flipping.seen().values()
                    if seen.pid in self.churn.killed or seen.end == "received"), default=STEPS)

    def ends(self, flipping, unknown):
        """Up to step `unknown` all is right; and behind it, if there is no such step."""
        info = flipping.client.get(flipping.job)
        if info.state != SUCCEEDED:
            return [f"it ended with {info.code}: {info.message}"]
        left = flipping.checkpoints()
        self.published += len(left)
        if STEPS not in left:
            return ["its last checkpoint is missing"]
        wrong = [position for position in sorted(left)
                 if position in self.calm and left[position] != self.calm[position]]
        if unknown < STEPS:
            self.unknown["wrong" if wrong else "right"] += 1
        return [f"the checkpoint of step {position} is wrong" for position in wrong if position <= unknown]

    def judge(self, flipping, flips, every):
        """Each flip that was made was found in time, or one of few explanations holds of it; nothing else was found."""
        flipping.client.wait(flipping.job, 120)
        seen = flipping.seen()
        found = flipping.found()
        left = list(found)
        problems = []
        missing = []
        for number, flip in enumerate(flips):
            if number not in seen:
                continue
            self.flips += 1
            self.made[flip.place] += 1
            made = seen[number].made
            latest = STEPS if flip.place == "thread" else made + every + 6  # some milliseconds later
            behind = [one for one in left if made <= one[0] <= latest]
            if not behind:
                missing.append(number)
                continue
            left.remove(behind[0])
            self.found[flip.place] += 1
            problems += self.found_of(flip, made, behind[0], every)
        for number in missing:
            why = self.explain(flips[number], seen[number], found, every)
            if why is None:
                problems.append(f"{flips[number]} was not found: {vars(seen[number])}")
            else:
                self.why[why] += 1
        return problems + [f"this was found, and nothing had flipped: {one}" for one in left]

    def found_of(self, flip, made, found, every):
        problems = []
        position, sentence = found
        if flip.place != "thread":  # it flips a while after it was asked to
            self.late[position - made] += 1
            if position > made + every + 1:
                problems.append(f"{flip} was found at {position} only")
        resumed = RESUMED.search(sentence)
        latest = position if flip.place == "thread" else made
        if resumed is None or int(resumed.group(1) or 0) > latest:
            problems.append(f"all began again behind {flip}, made at {made}: {sentence}")
        return problems

    def explain(self, flip, seen, found, every):
        """Why it was not found; None: it should have been."""
        if seen.end == "gone" and flip.place in PASSING + ("thread",):
            return "written over before it was compared"
        if seen.end == "gone" and flip.place == "gradient":
            return "its step was undone"
        if seen.end == "received":
            return "its task got the state of another"
        if seen.pid in self.churn.killed:
            return "its task was killed"
        if seen.end == "ended" and flip.place == "thread":
            return "made after the last comparison"
        if len(seen.stays) <= every + 1 and any(seen.made <= position for position, _ in found):
            return "another one was found at once"
        return None

    def summary(self):
        def counts(counter):
            return ", ".join(f"{name}: {count}" for name, count in sorted(counter.items()))
        places = ", ".join(f"{place} {self.found[place]} of {count}" for place, count in sorted(self.made.items()))
        return (f"{self.flips} flips in {sum(self.jobs.values())} jobs ({counts(self.jobs)}; "
                f"{counts(self.churn.done)}), {sum(self.found.values())} found ({places}); not found "
                f"{{{counts(self.why)}}}; steps from flip to find {{{counts(self.late)}}}; "
                f"{self.published} checkpoints, {len(self.wrong)} problems; ends of jobs in which no task could "
                f"find one {{{counts(self.unknown)}}}")
