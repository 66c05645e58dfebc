# SPDX-License-Identifier: Apache-2.0
"""The examples gpt and digits, compiled for the stand-in: what they come to on its GPUs is what they come to on the
CPU, to rounding. It proves the programs' and Cadre's logic, never CUDA."""
import json
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "integration"))
from cluster import clean_environment, program  # noqa: E402
from testing import check, check_equal, check_in, run  # noqa: E402

LIB = os.environ.get("CADRE_TEST_LIB", "")
PROGRAMS = os.environ.get("CADRE_TEST_STANDINS", "")
GPU = {"CADRE_PLUGIN": os.path.join(LIB, "libcadre-cuda-standin.so"),
       "CADRE_NCCL": os.path.join(LIB, "libnccl-standin.so")}
CPU = {"CADRE_DEVICES": "cpu"}
TOLERANCE = 1e-4  # of a loss; weights: of the largest of their tensor
SMALL = ("--text", "text", "--layers", "2", "--heads", "2", "--channels", "16", "--length", "16", "--batch", "5",
         "--steps", "8", "--rate", "0.01", "--report", "1")


def tensors_of(folder):
    """The float32 variables of the one checkpoint below the folder, by name."""
    (path,) = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
               if name.endswith(".safetensors")]
    with open(path, "rb") as file:
        content = file.read()
    (size,) = struct.unpack_from("<Q", content)
    tensors = {}
    for name, entry in json.loads(content[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, after = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(after - first) // 4}f", content[8 + size + first:8 + size + after])
    return tensors


def train(name, *arguments, devices, tasks=0, **environment):
    """What the program printed, and the variables it left."""
    command = [os.path.join(PROGRAMS, name), *arguments]
    if tasks:
        command = [program("cadre"), "run", "-n", str(tasks), command[0], "--", *arguments]
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        with open(os.path.join(folder, "text"), "wb") as file:
            file.write(b"What is not measured is not known. " * 30)
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=100,
                              check=False,
                              env=clean_environment() | {"CADRE_OUTPUT_DIR": "."} | devices | environment)
        check_equal(done.returncode, 0, f"status of {command}: {done.stderr[-1000:]}")
        return done.stderr + done.stdout, tensors_of(folder)


def losses_of(text):
    found = [float(loss) for loss in re.findall(r"^(?:\[\d+\] )?step \d+ loss (\d+\.\d+)", text, re.M)]
    check_equal(len(found), 8, f"losses in {text!r}")
    check(all(math.isfinite(loss) for loss in found), f"losses {found}")
    return found


def check_alike(seen, wanted, what):
    check_equal(sorted(seen), sorted(wanted), f"variables of {what}")
    for name, values in wanted.items():
        largest = max(abs(value) for value in values)
        furthest = max(abs(a - b) for a, b in zip(seen[name], values))
        check(furthest <= 50 * TOLERANCE * largest + 1e-7, f"{name} of {what}: {furthest} away, of {largest}")


def check_losses(seen, wanted, what):
    for step, (a, b) in enumerate(zip(losses_of(seen), losses_of(wanted))):
        check(abs(a - b) <= TOLERANCE * b, f"loss of step {step} of {what}: {a} instead of {b}")


def test_gpt_learns_the_same_on_gpus():
    wanted, variables = train("gpt-standin", *SMALL, devices=CPU)
    check(losses_of(wanted)[-1] < losses_of(wanted)[0] - 0.5, f"it does not learn: {wanted}")
    for count in ("1", "3"):  # of three replicas one has a row less than the others
        seen, there = train("gpt-standin", *SMALL, devices=GPU, CADRE_STANDIN_DEVICES=count)
        check("not connected" not in seen, f"{count} GPUs are not connected: {seen}")
        check_losses(seen, wanted, f"{count} GPUs")
        check_alike(there, variables, f"{count} GPUs")
        check_equal(re.findall(r"held out: (\d+\.\d\d)", seen), re.findall(r"held out: (\d+\.\d\d)", wanted),
                    f"bits per byte of {count} GPUs")


def test_gpt_through_the_memory_of_hosts():
    """Two tasks on one GPU have no communicator: their sums take the other way."""
    wanted, variables = train("gpt-standin", *SMALL, devices=CPU)
    seen, there = train("gpt-standin", *SMALL, devices=GPU, tasks=2, CADRE_STANDIN_DEVICES="1")
    check_in("not connected", seen, "what two tasks of one GPU are warned of")
    check_losses(seen, wanted, "two tasks")
    check_alike(there, variables, "two tasks")


def test_gpt_writes_the_same():
    arguments = (*SMALL, "--sample", "5", "--temperature", "0")
    wanted, _ = train("gpt-standin", *arguments, devices=CPU)
    seen, _ = train("gpt-standin", *arguments, devices=GPU, CADRE_STANDIN_DEVICES="1")
    check_equal(seen.split(" GFLOP/s\n")[1], wanted.split(" GFLOP/s\n")[1], "the sample")


def test_digits_learns_the_same_on_gpus():
    arguments = ("--epochs", "2", "--data", os.environ.get("CADRE_TEST_BIN", ""))
    wanted, variables = train("digits-standin", *arguments, devices=CPU)
    seen, there = train("digits-standin", *arguments, devices=GPU, CADRE_STANDIN_DEVICES="2")
    check("not connected" not in seen, f"the GPUs are not connected: {seen}")
    check_alike(there, variables, "two GPUs")
    for pattern in (r"test accuracy: (\S+)%", r"epoch 1/2 .* loss (\S+) "):
        (a,), (b,) = re.findall(pattern, seen), re.findall(pattern, wanted)
        check(abs(float(a) - float(b)) <= 0.3 * (float(b) > 10) + 1e-3 * float(b), f"{pattern}: {a} instead of {b}")


if __name__ == "__main__":
    run(globals())
