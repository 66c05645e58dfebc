#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the digits example at 1 and 2 replicas, for one epoch at 4 too, and reads its checkpoints with nothing of
Cadre's: accuracy, equal bits from run to run, equal values (to float tolerance) at any number of replicas, and the
command line's refusals."""

import array
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

DIGITS = sys.argv[1]
BRIEF = "--brief" in sys.argv[2:]  # one number of replicas, for a few epochs: under sanitizers more takes long
EPOCHS, ACCURACY = ("4", 93.0) if BRIEF else ("20", 97.0)
TALLY = "state/tally"  # bytes: the program's own struct of three doubles
TYPES = {"F32": ("f", 4), "I64": ("q", 8), "U8": ("B", 1)}


def run(replicas, folder, *arguments, restore=None):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CADRE_")}
    environment.update(CADRE_REPLICAS=str(replicas), CADRE_OUTPUT_DIR=folder)
    if restore:
        environment["CADRE_RESTORE"] = restore
    return subprocess.run([DIGITS, *arguments], env=environment, capture_output=True, text=True, timeout=60)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    ends = []
    for name, entry in header.items():
        code, size = TYPES[entry["dtype"]]
        begin, end = entry["data_offsets"]
        count = 1
        for dim in entry["shape"]:
            count *= dim
        assert end - begin == count * size and (8 + length + begin) % size == 0, (name, entry)
        tensors[name] = array.array(code, data[8 + length + begin:8 + length + end])
        ends.append((begin, end))
    ends.sort()
    assert ends[0][0] == 0 and ends[-1][1] == len(data) - 8 - length, "holes at the ends"
    assert all(a[1] == b[0] for a, b in zip(ends, ends[1:])), "holes between tensors"
    return metadata, tensors


def crc32c(data):
    """Castagnoli's polynomial, bit-reversed, bit by bit in a table."""
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 0xff] ^ crc >> 8
    return f"{crc ^ 0xffffffff:08x}"


def check_manifest(path, tensors):
    with open(path, encoding="utf-8") as file:
        manifest = json.load(file)
    with open(tensors, "rb") as file:
        data = file.read()
    assert (manifest["format"], manifest["version"]) == ("cadre-checkpoint", 2), manifest
    assert f"-{manifest['position']}." in path, manifest["position"]
    assert manifest["file"] == {"name": os.path.basename(tensors), "bytes": len(data),
                                "sha256": hashlib.sha256(data).hexdigest()}, manifest["file"]
    at = 0
    for block in manifest["blocks"]:
        piece = data[at:at + block["bytes"]]
        assert block == {"offset": at, "bytes": len(piece), "crc32c": crc32c(piece),
                         "sha256": hashlib.sha256(piece).hexdigest()}, block
        at += len(piece)
    assert at == len(data), "bytes beyond the blocks"
    assert {stream["name"]: stream["epochs_begun"] for stream in manifest["streams"]}, "where the datasets stand"


def train(replicas, scratch, *arguments):
    files = []
    for turn in range(2):
        folder = os.path.join(scratch, f"r{replicas}t{turn}{''.join(arguments)}")
        os.mkdir(folder)
        result = run(replicas, folder, *arguments)
        assert result.returncode == 0, result.stderr
        names = sorted(os.listdir(folder))
        assert len(names) == 3 and re.fullmatch(r"checkpoint-\d+\.safetensors", names[1]), names
        assert names[2] == "events", names
        assert names[0] == names[1].replace(".safetensors", ".json"), names
        files.append(os.path.join(folder, names[1]))
        check_manifest(os.path.join(folder, names[0]), files[-1])
    contents = [open(file, "rb").read() for file in files]
    assert contents[0] == contents[1], f"two runs of {replicas} replicas differ"
    accuracy = re.fullmatch(r"test accuracy: (\d+\.\d)%\n", result.stdout)
    assert accuracy, result.stdout
    return float(accuracy[1]), files[0], result.stderr


def worst(a, b):
    assert a.keys() == b.keys()
    return max(abs(x - y) / (1 + abs(x)) for name in a if name != TALLY for x, y in zip(a[name], b[name]))


def main():
    with tempfile.TemporaryDirectory() as scratch:
        for replicas in (1, 2)[:1 if BRIEF else 2]:
            accuracy, path, shown = train(replicas, scratch, *(["--epochs", EPOCHS] if BRIEF else []))
            metadata, tensors = read_safetensors(path)
            assert accuracy >= ACCURACY, accuracy
            assert metadata["format"] == "cadre" and f"-{metadata['position']}." in path, metadata
            weights = ("w1", "b1", "w2", "b2")
            assert set(tensors) == {TALLY, *weights, *(f"{w}/momentum" for w in weights),
                                    *(f"{w}/updates" for w in weights)}, set(tensors)
            _, _, kept = struct.unpack("3d", tensors[TALLY].tobytes())
            assert f"{kept * 100:.1f}" == f"{accuracy:.1f}", (kept, accuracy)
            # On a busy machine it may also say how often the replicas' states are compared, and what that came to.
            lines = [line for line in shown.splitlines() if not re.search("(are|were) compared", line)]
            assert len(lines) == int(EPOCHS) and f"epoch {EPOCHS}/{EPOCHS}" in shown and "\r" not in shown, shown
            print(f"{replicas} replicas: {accuracy}%, {metadata['position']} steps")
        # Rounding differs with the number of replicas, and grows from step to step: compared after one epoch.
        first = read_safetensors(train(1, scratch, "--epochs", "1")[1])[1]
        for replicas in (2, 4):
            other = read_safetensors(train(replicas, scratch, "--epochs", "1")[1])[1]
            distance = worst(first, other)
            print(f"1 and {replicas} replicas after one epoch: {distance:.2g} apart")
            assert distance < 1e-4, distance
        # A job that goes on where all is done knows what it came to.
        accuracy, path, _ = train(1, scratch, "--epochs", "3")
        again = run(1, scratch, "--epochs", "3", restore=path.replace(".safetensors", ".json"))
        assert again.returncode == 0 and f"test accuracy: {accuracy:.1f}%" in again.stdout, again
        quiet = run(1, scratch, "--epochs", "1", "--no-progress")
        assert quiet.returncode == 0 and quiet.stderr == "", quiet.stderr
        for arguments, part in ((["--epochs", "0"], "--epochs is '0'"), (["--lr", "fast"], "--lr is 'fast'"),
                                (["--what"], "what"), (["more"], "'more'")):
            result = run(1, scratch, *arguments)
            assert result.returncode == 2 and part in result.stderr, (arguments, result)
        absent = run(1, scratch, "--data", "/nonexistent")
        assert absent.returncode == 1 and "/nonexistent/digits-train.bin" in absent.stderr, absent.stderr
        cut = os.path.join(scratch, "cut")
        os.mkdir(cut)
        for name in ("digits-train.bin", "digits-test.bin"):
            with open(os.path.join(os.path.dirname(DIGITS), name), "rb") as file:
                whole = file.read()
            with open(os.path.join(cut, name), "wb") as file:
                file.write(whole[:-1])
        damaged = run(1, scratch, "--data", cut)
        assert damaged.returncode == 1 and "DATA_LOSS" in damaged.stderr, damaged.stderr


main()
