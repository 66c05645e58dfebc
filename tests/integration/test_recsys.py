# SPDX-License-Identifier: Apache-2.0
"""The example with parameter servers: it learns, by hand, on this machine, and on a cluster with an evaluator."""
import os
import re
import subprocess
import tempfile

from cluster import Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run

SMALL = ("--rows", "100000", "--rounds", "6", "--closures", "50")
SERVERS = ("--strategy", "parameter_server", "--workers", "2", "--ps", "2")


def train(command, environment=None):
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False,
                              env=environment or clean_environment() | {"CADRE_OUTPUT_DIR": "."})
        left = [name for _, _, names in os.walk(folder) for name in names if name.endswith(".safetensors")]
    check_equal(done.returncode, 0, f"status of {command}: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    return done.stdout, left


def check_learned(text):
    """The loss falls, and not below the truth's own."""
    found = re.findall(r"test loss: (\d\.\d+) at first, (\d\.\d+) now; of the truth itself (\d\.\d+)", text)
    check_equal(len(found), 1, f"last lines in {text!r}")
    first, last, best = (float(number) for number in found[0])
    check(best < last < first - 0.05, f"test loss: {first} at first, {last} now, {best} of the truth")


def test_by_hand_and_on_this_machine():
    for command in ([program("recsys"), *SMALL], [program("cadre"), "run", *SERVERS, program("recsys"), "--", *SMALL]):
        text, left = train(command)
        check_learned(text)
        check_equal(len(left), 1, f"checkpoints of {command}: {left}")


def test_on_a_cluster():
    with Cluster(workers=2, slots=3) as cluster:
        text, _ = train([program("cadre"), "submit", *SERVERS, "--evaluators", "1", program("recsys"), "--", *SMALL],
                        clean_environment() | {"CADRE_COORDINATOR": cluster.address})
        check_learned(text)
        losses = [float(loss) for loss in re.findall(r"round \d+: test loss (\d\.\d+)", text)]
        check(len(losses) >= 1 and losses[-1] < 0.66, f"what the evaluator saw: {losses}")


def test_what_is_refused():
    for arguments, words in ((["--rounds", "0"], "not a whole number"), (["--rate", "no"], "not a number above 0"),
                             (["more"], "is not an option")):
        done = subprocess.run([program("recsys"), *arguments], capture_output=True, text=True, timeout=HANG_S,
                              check=False, env=clean_environment())
        check_equal(done.returncode, 2, f"status of {arguments}")
        check_in(words, done.stderr, f"{arguments}")


if __name__ == "__main__":
    run(globals())
