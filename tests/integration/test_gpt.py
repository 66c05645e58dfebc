# SPDX-License-Identifier: Apache-2.0
"""The example gpt under daemons: it learns, and a task that is killed in the middle changes no bit of it."""
import os
import re
import signal
import subprocess
import tempfile

from client import SUCCEEDED
from cluster import Cluster, clean_environment, program
from learning import FAST, FAST_WORKER, pids_of
from testing import HANG_S, check, check_equal, check_in, run, wait_for

STEPS = 200
SMALL = ("--layers", "2", "--heads", "2", "--channels", "32", "--length", "32", "--batch", "8", "--rate", "0.01",
         "--report", "20")
WORDS = ("the", "worker", "holds", "a", "lease", "of", "its", "own", "and", "waits", "for", "every", "step", "to",
         "end")


def text():
    """Sentences that are easy to foretell, the same on every machine."""
    state = 1
    words = []
    while len(words) < 8000:
        state = (state * 1103515245 + 12345) % 2 ** 31
        words.append(WORDS[(state >> 16) % len(WORDS)])
    return " ".join(words).encode()


def numbers(log):
    """The loss by the step it was reported at, and the bits per byte of the part that was held out."""
    found = re.findall(r"^(?:\[\d+\] )?step (\d+) loss (\d+\.\d+)", log, re.M)
    bits = re.findall(r"^(?:\[\d+\] )?held out: (\d+\.\d+) bits per byte$", log, re.M)
    check(found and bits, f"no numbers in {log!r}")
    return {int(step): loss for step, loss in found}, bits[-1]


def train(cluster, kill):
    """Log and checkpoint of two tasks, of which one may be killed when it has reported a fifth of the steps."""
    client = cluster.client
    with open(program("gpt"), "rb") as file:
        job = client.submit(file.read(), files={"text": text()}, name="gpt", workers=2, max_restarts=3,
                            arguments=["--text", "text", "--steps", str(STEPS), *SMALL])
    if kill is not None:
        def trains():
            steps = re.findall(rb"^step (\d+) loss", client.log(job), re.M)
            pids = pids_of(client.get(job))
            return pids.get(kill) if steps and int(steps[-1]) >= STEPS // 5 and len(pids) == 2 else None
        os.kill(wait_for("two tasks train", trains), signal.SIGKILL)
    info = client.wait(job, 60)
    check_equal((info.state, info.exit_code), (SUCCEEDED, 0), str(info))
    check_equal({metric.name for metric in info.progress.metrics}, {"loss", "bytes/s"}, "metrics of the progress")
    outputs = client.outputs(job)
    tensors = info.checkpoint.replace(".json", ".safetensors")
    check_in(tensors, outputs, "the checkpoint among the outputs")
    return b"".join(client.log(job, slot) for slot in range(2)).decode(), outputs[tensors], info


def test_a_kill_changes_nothing():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        log, checkpoint, _ = train(cluster, None)
        losses, bits = numbers(log)
        check(float(losses[20]) > 2 > float(losses[STEPS]), f"it does not learn: {losses}")
        check(float(bits) < 2.5, f"{bits} bits per byte of what it was not trained on")
        drilled_log, drilled, info = train(cluster, kill=1)
        check(info.generation > 1, f"nothing was killed: {info}")
        drilled_losses, drilled_bits = numbers(drilled_log)
        check_equal(drilled_losses[STEPS], losses[STEPS], "loss of the last step")
        check_equal(drilled_bits, bits, "bits per byte")
        check(drilled == checkpoint, "the checkpoint of a job whose task was killed has other bits")


def by_hand(folder, *arguments, status=0, **environment):
    done = subprocess.run([program("gpt"), *arguments], cwd=folder, capture_output=True, text=True, errors="replace",
                          timeout=HANG_S, check=False, env=clean_environment() | environment)
    check_equal(done.returncode, status, f"status of gpt {arguments}: {done.stderr[-1000:]}")
    return done.stderr + done.stdout


def test_it_goes_on_from_a_checkpoint():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(text())
        arguments = ("--text", "text", "--steps", "60", "--sample", "40", *SMALL)
        whole = by_hand(folder, *arguments, CADRE_CHECKPOINT_EVERY="50")  # another one before might be on its way
        rest = by_hand(folder, *arguments, CADRE_RESTORE="checkpoint-50.json")
        check_equal(numbers(rest)[0], {60: numbers(whole)[0][60]}, "losses after the checkpoint")
        check_equal(rest.split(" GFLOP/s\n")[1], whole.split(" GFLOP/s\n")[1], "the sample")
        spread = by_hand(folder, *arguments, CADRE_REPLICAS="3")
        for step, loss in numbers(whole)[0].items():
            seen = float(numbers(spread)[0][step])
            check(abs(seen - float(loss)) < 1e-3, f"step {step}: loss {seen} of three replicas, {loss} of one")


def test_what_is_refused():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        for arguments, status, words in ((["--channels", "30"], 2, "4 heads cannot share alike"),
                                         (["--rate", "fast"], 2, "not a number from 0 to 100"),
                                         (["--steps", "1.5"], 2, "not a whole number"),
                                         (["--precision", "f8"], 2, "there are f32, tf32 and bf16"),
                                         (["more"], 2, "is not an option"),
                                         (["--text", "nowhere"], 1, "nowhere cannot be opened")):
            check_in(words, by_hand(folder, *arguments, status=status), f"what gpt {arguments} says")
        with open(os.path.join(folder, "short"), "wb") as file:
            file.write(b"too short")
        check_in("give a longer text", by_hand(folder, "--text", "short", status=1), "of a short text")


if __name__ == "__main__":
    run(globals())
