# SPDX-License-Identifier: Apache-2.0
"""The example with OpenBLAS: it learns, and 1, 2 and 3 tasks come to the same losses."""
import os
import re
import signal
import subprocess
import tempfile

from cluster import clean_environment, program
from testing import HANG_S, check, check_equal, descendants, run, skip, wait_for

EPOCHS = 5
DRILL_EPOCHS = 60
TOLERANCE = 1e-3  # of the loss, as the example's README promises


def train(*arguments, tasks=0, replicas=1):
    """What a run printed; by hand without tasks. Each begins in an empty folder, and leaves a checkpoint there."""
    command = [program("mlp"), *arguments]
    if tasks:
        command = [program("cadre"), "run", "-n", str(tasks), program("mlp"), "--", *arguments]
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG_S, check=False,
                              env=clean_environment() | {"CADRE_REPLICAS": str(replicas), "CADRE_OUTPUT_DIR": "."})
        check_equal(done.returncode, 0, f"status of {command}: {done.stderr[-1000:]}")
        left = [name for _, _, names in os.walk(folder) for name in names if name.endswith(".safetensors")]
        check_equal(len(left), 1, f"checkpoints in {left}")
    return done.stdout


def losses(text):
    """In order of epochs, which are printed once."""
    found = re.findall(r"^(?:\[\d+\] )?epoch (\d+) loss (\d+\.\d+)$", text, re.M)
    check_equal([int(epoch) for epoch, _ in found], list(range(len(found))), f"epochs in {text!r}")
    return [float(loss) for _, loss in found]


def accuracy(text):
    found = re.findall(r"^(?:\[\d+\] )?test accuracy: (\d+\.\d)%$", text, re.M)
    check_equal(len(found), 1, f"accuracies in {text!r}")
    return float(found[0])


def check_alike(seen, wanted, what):
    check_equal(len(seen), len(wanted), f"epochs of {what}")
    for epoch, (a, b) in enumerate(zip(seen, wanted)):
        check(abs(a - b) <= TOLERANCE * b, f"loss of epoch {epoch} of {what}: {a} instead of {b}")


def test_tasks_come_to_the_same_losses():
    arguments = ("--epochs", str(EPOCHS))
    alone = train(*arguments)
    wanted = losses(alone)
    check_equal(len(wanted), EPOCHS, f"epochs in {alone!r}")
    check(wanted[-1] < 0.2 * wanted[0], f"it does not learn: {wanted}")
    check(accuracy(alone) > 90, alone)
    check_equal(losses(train(*arguments)), wanted, "losses of a second run by hand")
    for tasks in (2, 3):
        check_alike(losses(train(*arguments, tasks=tasks)), wanted, f"{tasks} tasks")
    check_alike(losses(train(*arguments, replicas=3)), wanted, "three replicas of one process")


def test_buckets_change_nothing():
    wanted = losses(train("--epochs", "2", tasks=2))
    for kib in (0, 64):  # each layer alone, and one that leaves in the middle
        check_alike(losses(train("--epochs", "2", "--bucket-kib", str(kib), tasks=2)), wanted, f"{kib} KiB")


def tasks_of(pid):
    """The tasks of a `cadre run`: processes below it that have become the program."""
    tasks = []
    for child in descendants(pid):
        try:
            if os.readlink(f"/proc/{child}/exe") == os.path.realpath(program("mlp")):
                tasks.append(child)
        except OSError:
            pass  # it has just ended
    return tasks


def train_and_kill(kills):
    """The checkpoint of two tasks, of which one is killed so often while they train."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        log = os.path.join(folder, "log")
        with open(log, "wb") as out:
            job = subprocess.Popen([program("cadre"), "run", "-n", "2", "--max-restarts", "9", program("mlp"), "--",
                                    "--epochs", str(DRILL_EPOCHS)], cwd=folder, stdout=out, stderr=subprocess.STDOUT,
                                   env=clean_environment())
        try:
            for kill in range(kills):
                def trains(epoch=DRILL_EPOCHS * (kill + 1) // (kills + 2)):
                    with open(log, encoding="utf-8") as file:
                        begun = [int(number) for number in re.findall(r"epoch (\d+) loss", file.read())]
                    return max(begun, default=0) >= epoch and len(tasks_of(job.pid)) == 2
                wait_for(f"two tasks train, before kill {kill}", trains, 60)
                os.kill(tasks_of(job.pid)[kill % 2], signal.SIGKILL)
            status = job.wait(60)
        finally:
            job.kill()
            job.wait()
        with open(log, encoding="utf-8") as file:
            check_equal(status, 0, f"status of a job with {kills} kills: {file.read()[-2000:]}")
        (left,) = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                   if name.endswith(".safetensors")]
        with open(left, "rb") as file:
            return os.path.basename(left), file.read()


def test_kills_change_no_bit():
    name, calm = train_and_kill(0)
    drilled = train_and_kill(3)
    check_equal(drilled[0], name, "the position at the end")
    check(drilled[1] == calm, "the checkpoint of a job whose tasks were killed has other bits")


def test_what_is_refused():
    for arguments, words in ((["--model", "huge"], "there are digits and big"),
                             (["--lr", "no"], "not a number above 0"),
                             (["--epochs", "0"], "not a whole number from 1"), (["more"], "is not an option")):
        done = subprocess.run([program("mlp"), *arguments], capture_output=True, text=True, timeout=HANG_S, check=False,
                              env=clean_environment())
        check_equal(done.returncode, 2, f"status of {arguments}")
        check(words in done.stderr, f"{arguments}: {done.stderr!r}")


if __name__ == "__main__":
    if os.environ.get("CADRE_TEST_BIN") and not os.path.exists(program("mlp")):
        skip("the example mlp was not built: OpenBLAS is missing (libopenblas-dev)")
    run(globals())
