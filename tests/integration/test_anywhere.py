# SPDX-License-Identifier: Apache-2.0
"""The example that trains one model file with variables in any place, and goes on elsewhere from its checkpoints."""
import os
import re
import subprocess
import tempfile

from cluster import Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run

SERVERS = ("--strategy", "parameter_server", "--workers", "2", "--ps", "2")
KINDS = ("mirrored", "central_storage", "parameter_server")


def train(command, folder, **environment):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False,
                          env=clean_environment() | {"CADRE_OUTPUT_DIR": "."} | environment)
    check_equal(done.returncode, 0, f"status of {command}: {done.stdout[-1000:]} {done.stderr[-1000:]}")
    found = re.findall(r"the weights are (\S+) from the true ones", done.stdout)
    check_equal(len(found), 1, f"last lines of {command}: {done.stdout[-1000:]}")
    check(float(found[0]) < 1e-3, f"{command}: {found[0]}")
    return found[0]


def test_any_strategy_learns():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        for kind in KINDS:
            for replicas in ("1", "2"):
                train([program("anywhere"), kind], folder, CADRE_REPLICAS=replicas)
        train([program("cadre"), "run", "-n", "2", program("anywhere"), "multi_worker"], folder)
        for replicas in ("1", "2"):
            train([program("cadre"), "run", *SERVERS, "--replicas", replicas, program("anywhere"), "parameter_server"],
                  folder)


def test_on_a_cluster():
    with Cluster(workers=2, slots=3) as cluster, tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        train([program("cadre"), "submit", *SERVERS, program("anywhere"), "parameter_server"], folder,
              CADRE_COORDINATOR=cluster.address)


def test_checkpoints_go_from_place_to_place():
    """Whose position says that all is done has what the one before had learned; then on from servers."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        for kind in ("mirrored", "central_storage"):
            left = os.path.join(folder, kind)
            os.mkdir(left)
            learned = train([program("anywhere"), kind], folder, CADRE_CHECKPOINT_DIR=left,
                            CADRE_CHECKPOINT_EVERY="100")
            check_equal(train([program("anywhere"), "parameter_server"], folder, CADRE_RESTORE=left), learned,
                        f"from {kind} to servers")
        left = os.path.join(folder, "servers")
        os.mkdir(left)
        train([program("anywhere"), "parameter_server"], folder, CADRE_CHECKPOINT_DIR=left, CADRE_CHECKPOINT_EVERY="1")
        for kind in ("mirrored", "central_storage"):
            train([program("anywhere"), kind], folder, CADRE_RESTORE=left)


def test_what_is_refused():
    for arguments in ([], ["elsewhere"]):
        done = subprocess.run([program("anywhere"), *arguments], capture_output=True, text=True, timeout=HANG_S,
                              check=False, env=clean_environment())
        check_equal(done.returncode, 2, f"status of {arguments}")
        check_in("usage: anywhere", done.stderr, f"{arguments}")


if __name__ == "__main__":
    run(globals())
