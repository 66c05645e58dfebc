# SPDX-License-Identifier: Apache-2.0
"""The program flipper.c as the tests use it: a job in whose memory bits flip, and what it leaves of them."""
import collections
import contextlib
import os
import re
import tempfile

from client import SUCCEEDED
from cluster import Cluster
from learning import FAST, FAST_WORKER
from testing import check, check_equal

FLIPPER = os.environ.get("CADRE_TEST_FLIPPER", "")
EVERY = 3       # steps between two comparisons
CHECKPOINT = 4  # and between two checkpoints
STEPS = 60
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


class Seen:
    """What the task says of a flip that it made (flipper.c)."""

    def __init__(self, lines):
        self.made = self.pid = None
        self.stays = []     # positions where it was seen
        self.end = ""       # "gone", "received": no more of it was seen then; "ended": none was seen at all
        for word, position, *rest in map(str.split, lines.splitlines()):
            if word == "made":
                self.made, self.pid = int(position), int(rest[0])
            elif word == "stays":
                self.stays.append(int(position))
            elif word != "ended" or not self.stays:
                self.end = word


class Flipping:
    """One job of the flipper, in whose memory these bits flip."""

    def __init__(self, cluster, *arguments, flips=(), steps=STEPS, pace=2, verify=EVERY, losses=False,
                 **fields):
        self.cluster = cluster
        self.client = cluster.client
        self.flips = flips
        self.steps = steps
        self.folder = tempfile.mkdtemp(prefix="flips-", dir=cluster.folder)
        os.chmod(self.folder, 0o777)  # tasks run as another user when we are root
        self.job = self.client.submit(flipper(), name="flipper", arguments=[
            f"steps={steps}", f"pace={pace}", f"flips={self.folder}", *map(str, flips), *arguments],
            environment=[f"CADRE_VERIFY_STATE={verify}", *(["CADRE_VERIFY_LOSSES=on"] if losses else [])], **{
                "workers": 3, "max_restarts": 100, "checkpoint_every": CHECKPOINT, "checkpoints_kept": 1000, **fields})

    def seen(self):
        """What became of each flip that was made, by its number."""
        found = {}
        for name in os.listdir(self.folder):
            if name.isdigit():
                with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                    found[int(name)] = Seen(file.read())
        return found

    @contextlib.contextmanager
    def hold(self):
        """No bit flips meanwhile."""
        path = os.path.join(self.folder, "hold")
        with open(path, "w", encoding="utf-8"):
            yield
        os.unlink(path)

    def end(self, deadline_s=60):
        info = self.client.wait(self.job, deadline_s)
        check(info.state == SUCCEEDED, f"the job did not succeed: {info}\n"
              + self.client.log(self.job)[-2000:].decode(errors="replace"))
        return info

    def found(self):
        """Where states were found to differ, and the sentences, as generations after it were formed: once each, for a
        generation that is formed for another reason may bear the last sentence, too."""
        found = []
        for job, _, sentence, after in BREAK.findall(self.cluster.coordinator.log()):
            if int(job) == self.job and (int(after), sentence) not in found[-1:]:
                found.append((int(after), sentence))
        return found

    def checkpoints(self):
        """The content by position of all that were published. Unpublished files of tasks are beside them."""
        found = {}
        for path, content in self.client.outputs(self.job).items():
            match = re.fullmatch(r"checkpoints/checkpoint-(\d+)\.safetensors", path)
            if match:
                found[int(match.group(1))] = content
        return found

    def check_end(self, calm):
        """Its end, and all that it published, is bitwise that of a job in which nothing flips."""
        wanted, left = calm.checkpoints(), self.checkpoints()
        check(left[self.steps] == wanted[self.steps], "the end has other bytes than that of a job without a flip")
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
