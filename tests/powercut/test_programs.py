# SPDX-License-Identifier: Apache-2.0
"""A checkpoint that a program waited for is there after a power cut, and so is the one of its end: of programs by hand,
of `cadre run`, in a shared folder. The program is saver.c."""
import os
import re
import shutil
import subprocess
import tempfile

from cluster import clean_environment, program
from recording import Lost, Recording, Replay, must_notice
from testing import HANG_S, check, check_equal, run

SAVER = os.environ.get("CADRE_TEST_SAVER", "")
STEPS = 4
NAME = re.compile(r"checkpoint-(\d+)\.json$")


class Saving:
    """with Saving(["cadre", "run", ...]) as saving: PLACE is the folder that matters."""

    def __init__(self, argv, make=False, **environment):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        self.recording = Recording(self.folder)
        self.place = os.path.join(self.recording.folder, "place")
        self.argv = [argument.replace("PLACE", self.place) for argument in argv] + [SAVER, str(STEPS)]
        self.environment = {name: value.replace("PLACE", self.place) for name, value in environment.items()}
        if make:
            self.recording.make_folder("place")

    def __enter__(self):
        said = subprocess.run(
            self.argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder, timeout=HANG_S,
            env=clean_environment() | self.recording.environment() | self.environment, check=False)
        check_equal(said.returncode, 0, f"the end of {self.argv}, which said {said.stdout}")
        self.recording.promise("finished", ended=True, position=STEPS)
        self.recording.end()
        return self

    def __exit__(self, kind, error, trace):
        os.unlink(self.recording.trace)
        shutil.rmtree(self.folder)

    def replay(self, share, **options):
        with tempfile.TemporaryDirectory(prefix="cadre-test-") as after:
            replayed = Replay(self.recording, "place", **options)
            replayed.run(after, lambda kept, at: check_checkpoints(after, kept), share)
            return replayed.states


def check_checkpoints(folder, kept):
    """The last that was promised is there, and it and every newer one are whole."""
    promised = [promise.facts for promise in kept if promise.kind == "saved"]
    promised += [promise.facts["position"] for promise in kept if promise.kind == "finished"]
    last = max(promised, default=0)
    manifests = {}
    for place, _, names in os.walk(os.path.join(folder, "place")):
        for name in names:
            if match := NAME.match(name):
                manifests[int(match[1])] = os.path.join(place, name)
    check(last == 0 or last in manifests, f"the checkpoint of step {last} is lost, there are {sorted(manifests)}")
    for position in sorted(manifests):
        if position >= max(last, 1):
            go_on(folder, manifests[position], position)


def go_on(folder, manifest, position):
    """By a program that checks what it is given."""
    with tempfile.TemporaryDirectory(dir=folder) as outputs:
        said = subprocess.run(
            [SAVER, "0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=HANG_S, check=False,
            env=clean_environment() | {"CADRE_OUTPUT_DIR": outputs, "CADRE_RESTORE": manifest})
    if said.returncode != 0 or f"went on from {position}\n" not in said.stdout:
        raise Lost(f"no program can go on from {os.path.basename(manifest)}: {said.stdout}")


def is_tensors(path):
    return path.endswith(".safetensors") or ".safetensors." in path


def is_manifest(path):
    return path.endswith(".json") or ".json." in path


def try_all(saving, **folders):
    """No power cut takes what was promised; without one of the syncs some do."""
    print(f"{saving.replay(0.5, seed=1)} states")
    faults = {"tensors": is_tensors, "a manifest": is_manifest, **folders}
    for what, ignored in faults.items():
        must_notice(f"{what} without a sync",
                    lambda ignored=ignored: saving.replay(1, seed=1, draws=0, ignored=ignored))


def test_by_hand():
    with Saving([], make=True, CADRE_OUTPUT_DIR="PLACE") as saving:
        try_all(saving, **{"the folder": lambda path: path == "place"})


def test_of_a_run():
    with Saving([program("cadre"), "run", "-n", "1", "-o", "PLACE"]) as saving:
        try_all(saving, **{"the task's folder": lambda path: path == "place/0",
                           "the folder of outputs": lambda path: path == "place",
                           "what the folder of outputs is in": lambda path: path == "."})


def test_of_a_run_in_a_shared_folder():
    with Saving([program("cadre"), "run", "-n", "2", "--checkpoint-folder", "PLACE"]) as saving:
        try_all(saving, **{"the folder": lambda path: path == "place",
                           "what the folder is in": lambda path: path == "."})


if __name__ == "__main__":
    run(globals())
