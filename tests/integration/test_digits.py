# SPDX-License-Identifier: Apache-2.0
"""The example: it learns, and the same job gives the same bits, on a cluster and under `cadre run`."""
import json
import os
import re
import signal
import struct
import subprocess
import tempfile

from client import FAILED, SUCCEEDED
from cluster import Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, cpu_s, descendants, run, wait_for

GUIDE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../deploy/docs/guides/faults.md")

REPLICAS = 2
TASKS = 2


def read(name):
    with open(program(name), "rb") as file:
        return file.read()


def data_files():
    return {name: read(name) for name in ("digits-train.bin", "digits-test.bin")}


def parse_checkpoint(content):
    """Name -> (type, shape) of a safetensors file; every byte belongs to one tensor."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + size])
    metadata = header.pop("__metadata__", {})
    end = 0
    for entry in sorted(header.values(), key=lambda entry: entry["data_offsets"]):
        first, after = entry["data_offsets"]
        check_equal(first, end, "a tensor begins where the one before it ends")
        elements = 1
        for dimension in entry["shape"]:
            elements *= dimension
        check_equal(after - first, elements * {"F32": 4, "I64": 8, "U8": 1}[entry["dtype"]], "size of a tensor")
        end = after
    check_equal(8 + size + end, len(content), "size of the checkpoint")
    return {name: (entry["dtype"], entry["shape"]) for name, entry in header.items()}, metadata


def train(client):
    """The checkpoint of one job; its log and progress are looked at on the way."""
    job = client.submit(read("digits"), files=data_files(), name="digits", workers=TASKS, replicas=REPLICAS)
    info = client.wait(job, 60)
    check_equal((info.state, info.exit_code), (SUCCEEDED, 0), str(info))
    found = re.search(rb"^test accuracy: (\d+\.\d)%$", client.log(job), re.M)
    check(found, f"no accuracy in the log: {client.log(job)!r}")
    check(float(found.group(1)) >= 97, f"accuracy {found.group(1)}")
    check_equal({metric.name for metric in info.progress.metrics}, {"loss", "accuracy"}, "metrics of the progress")
    outputs = client.outputs(job)
    check_in(info.checkpoint, outputs, "the checkpoint's manifest among the outputs")
    tensors = info.checkpoint.replace(".json", ".safetensors")
    left = outputs["0/" + tensors.partition("/")[2]]
    check(outputs[tensors] == left, "what was published is not what the chief left")
    return left


def test_it_learns_and_repeats_bit_for_bit():
    with Cluster(workers=2) as cluster:
        checkpoint = train(cluster.client)
        tensors, _ = parse_checkpoint(checkpoint)
        check(len(tensors) >= 4, f"tensors {tensors}")
        types = {"state/tally": "U8", **{f"{name}/updates": "I64" for name in ("w1", "b1", "w2", "b2")}}
        check(all(kind == types.get(name, "F32") for name, (kind, _) in tensors.items()), f"types {tensors}")
        check(train(cluster.client) == checkpoint, "the second run left other bits")
        check(checkpoint_of_cadre_run() == checkpoint, "`cadre run -n 2` left other bits than the cluster")


def checkpoint_of_cadre_run():
    """The same job without daemons."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run([program("cadre"), "run", "-n", str(TASKS), "--replicas", str(REPLICAS),
                               program("digits")], cwd=folder, capture_output=True, timeout=HANG_S, check=False,
                              env=clean_environment())
        check_equal(done.returncode, 0, f"status of cadre run: {done.stderr.decode(errors='replace')[-1000:]}")
        check_in(b"test accuracy: ", done.stdout, "what cadre run printed")
        left = [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names
                if name.endswith(".safetensors")]
        check_equal(len(left), 1, f"checkpoints in {left}")
        with open(left[0], "rb") as file:
            return file.read()


def test_the_drill_of_the_guide():
    with open(GUIDE, encoding="utf-8") as file:
        calm, drill, compare = re.search(r"^(cadre run .*)\n(cadre run .*)\n(cmp .*)$", file.read(), re.M).groups()
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        environment = clean_environment() | {"PATH": f"{os.path.dirname(program('cadre'))}:{os.environ['PATH']}"}
        for name in ("digits", "digits-train.bin", "digits-test.bin"):
            os.symlink(program(name), os.path.join(folder, name))

        def start(command):
            return subprocess.Popen(["sh", "-c", f"exec {command}"], env=environment, cwd=folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

        def end(process):
            out, err = process.communicate(timeout=HANG_S)
            check_equal(process.returncode, 0, f"status of {process.args}: {out[-500:]} {err[-1000:]}")

        end(start(calm))
        process = start(drill)
        killed = set()
        for index in range(2):
            tasks = wait_for("two tasks train", lambda: process.poll() or tasks_in_training(process.pid, killed))
            check(isinstance(tasks, list), f"it ended before kill {index}: {tasks}")
            os.kill(tasks[index], signal.SIGKILL)
            killed.add(tasks[index])
        end(process)
        end(start(compare))


def tasks_in_training(pid, killed):
    """Both tasks below it, once both have used so much of a CPU that they train; else nothing."""
    tasks = []
    for task in set(descendants(pid)) - killed:
        try:
            with open(f"/proc/{task}/comm", encoding="ascii") as file:
                if file.read() == "digits\n" and cpu_s(task) > 0.1:
                    tasks.append(task)
        except OSError:
            pass  # it has just ended
    return sorted(tasks) if len(tasks) == 2 else None


def test_data_cut_short():
    files = data_files()
    files["digits-train.bin"] = files["digits-train.bin"][:-30]
    with Cluster(workers=2) as cluster:
        info = cluster.client.run(read("digits"), files=files, name="cut", workers=TASKS)
        check_equal(info.state, FAILED, str(info))
        check(info.exit_code != 0, str(info))
        check_in("digits-train.bin", info.message, "the message")
        log = b"".join(cluster.client.log(info.id, slot) for slot in range(TASKS))
        lines = [line for line in log.splitlines() if b"digits-train.bin" in line]
        check(lines, "no line of the log names the file")


if __name__ == "__main__":
    run(globals())
