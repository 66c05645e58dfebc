#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Values into jobs and out of them: exported, imported and restored, by hand, under `cadre run` and on a cluster, also
when a task dies; the files are read with nothing of Cadre's."""
import json
import os
import re
import signal
import struct
import subprocess
import tempfile

from client import SUCCEEDED
from cluster import Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run, wait_for

RESTORER = os.environ.get("CADRE_TEST_RESTORER", "")


def write_safetensors(path, values):
    """A file as another program would write it: "w", and a value that no program asks for."""
    data = struct.pack("<3d2f", *values, 0.5, 1.5)
    header = json.dumps({"unasked": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]},
                         "w": {"dtype": "F64", "shape": [3], "data_offsets": [0, 24]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data)


def read_safetensors(path):
    """Its metadata, and values by name; all are F64."""
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    check_equal((8 + length) % 8, 0, "alignment of the data")
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    values = {}
    for name, entry in header.items():
        check_equal(entry["dtype"], "F64", name)
        begin, end = entry["data_offsets"]
        values[name] = list(struct.unpack(f"<{(end - begin) // 8}d", data[8 + length + begin:8 + length + end]))
    return metadata, values


class Place:
    """A folder with a file of values, and a gate."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="cadre-export-")
        self.file = self.path("given.safetensors")
        self.gate = self.path("gate")
        write_safetensors(self.file, [2.5, 2.5, 2.5])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def open_gate(self):
        with open(self.gate, "w", encoding="ascii"):
            pass

    def command(self, how, *before, file=None):
        dashes = ["--"] if before else []
        return [*before, RESTORER, *dashes, how, file or self.file, self.gate, "out.safetensors"]

    def start(self, command):
        """Its output goes to a file that can be read meanwhile."""
        with open(self.path("said"), "wb") as said:
            return subprocess.Popen(command, cwd=self.folder.name, env=clean_environment(), stdin=subprocess.DEVNULL,
                                    stdout=said, stderr=subprocess.STDOUT)

    def said(self):
        with open(self.path("said"), encoding="utf-8") as file:
            return file.read()

    def call(self, command):
        job = self.start(command)
        check_equal(job.wait(HANG_S), 0, f"the end of {command}, which said {self.said()}")
        return self.said()


def check_out(path, began, steps):
    metadata, values = read_safetensors(path)
    check_equal(metadata, {"format": "cadre", "position": str(steps), "variable/weights": "w"}, "the metadata")
    check_equal(values, {"weights": [began + steps] * 3}, "the values")


def test_what_others_wrote_and_read():
    """By hand and as two tasks: imported and restored values are the file's, and come out again."""
    with Place() as place:
        place.open_gate()
        for before in ([], [program("cadre"), "run", "-n", "2"]):
            for how in ("import", "restore"):
                said = place.call(place.command(how, *before))
                check_equal(said.count("has 2.5 2.5, its own"), 2 if before else 1, f"{how} {before}: {said}")
                check_out(place.path("out.safetensors"), 2.5, 1)
        os.replace(place.path("out.safetensors"), place.path("again.safetensors"))
        said = place.call(place.command("restore", program("cadre"), "run", "-n", "3",
                                        file=place.path("again.safetensors")))
        check_equal(said.count("has 3.5 3.5, its own"), 3, f"found by the variable's name: {said}")


def test_a_task_dies():
    """The one in its place passes over the restore, and has the others' values."""
    with Place() as place:
        job = place.start(place.command("restore", program("cadre"), "run", "-n", "2", "--max-restarts", "3"))
        try:
            pids = wait_for("both step", lambda: [int(pid) for pid in re.findall(r"(\d+) steps\n", place.said())][1:]
                            and [int(pid) for pid in re.findall(r"(\d+) steps\n", place.said())])
            os.kill(pids[1], signal.SIGKILL)
            wait_for("another one has joined", lambda: len(re.findall(r"(\d+) steps\n", place.said())) == 3)
            place.open_gate()
            check_equal(job.wait(HANG_S), 0, f"the end of the job, which said {place.said()}")
        finally:
            job.kill()
            job.wait()
        said = place.said()
        check_equal(said.count("its own"), 2, f"who restored: {said}")
        check_equal(said.count("passed over"), 1, f"who passed over it: {said}")
        ends = re.findall(r"ends with ([\d.]+) after (\d+) steps", said)
        check_equal(len(ends), 2, f"who came to the end: {said}")
        check(ends[0] == ends[1] and ends[0][0] == "2.5", f"what they ended with: {ends}")
        check_out(place.path("out.safetensors"), 2.5, int(ends[0][1]))


def test_on_a_cluster():
    """The file travels with the job, and what is exported comes back with its outputs."""
    with Place() as place, Cluster(workers=2) as cluster, open(RESTORER, "rb") as content:
        with open(place.file, "rb") as file:
            given = file.read()
        restorer = content.read()
        for how in ("import", "restore"):
            job = cluster.client.submit(restorer, files={"given.safetensors": given}, workers=2,
                                        arguments=[how, "given.safetensors", "/", "out.safetensors"])
            info = cluster.client.wait(job)
            check_equal(info.state, SUCCEEDED, f"{how}: {info.message}")
            check_equal(cluster.client.log(job).count(b"has 2.5 2.5, its own"), 2, how)
            outputs = {path: content for path, content in cluster.client.outputs(job).items()
                       if path.endswith("/out.safetensors")}
            check_equal(len(outputs), 1, f"who exported: {list(outputs)}")
            path = place.path("fetched.safetensors")
            with open(path, "wb") as file:
                file.write(*outputs.values())
            check_out(path, 2.5, 1)


def test_damage_is_reported():
    """A file that was cut short: no task steps, and the first sentence names the file and the tensor."""
    with Place() as place:
        place.open_gate()
        with open(place.file, "r+b") as file:
            file.truncate(os.path.getsize(place.file) - 1)
        for how in ("import", "restore"):
            job = place.start(place.command(how, program("cadre"), "run", "-n", "2"))
            check(job.wait(HANG_S) != 0, "a job of a damaged file succeeded")
            check_in("given.safetensors: tensor 'unasked' is at bytes 24 to 32 of 31", place.said(), how)
            check("steps" not in place.said().split("tensor 'unasked'")[0], "a task stepped")


if __name__ == "__main__":
    run(globals())
