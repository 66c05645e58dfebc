#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""torch_read.py WORKERS KIND FILES...: a PyTorch DataLoader over TFRecord files; prints records_s and bytes_s of its
second epoch. Each loader worker has a shuffle buffer of 10,000; batches of 64. KIND: "tensors" (a tensor each, stacked
by default_collate), "joined" (bytes, joined and wrapped once a batch: the leanest way found), "arrays" (the same,
handed over from worker processes as numpy arrays through a pipe). Checksums are not looked at: Python has none."""
import os
import random
import struct
import sys
import time

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WORKERS, KIND, FILES = int(sys.argv[1]), sys.argv[2], sorted(sys.argv[3:])
SLOTS, BATCH, HEAD = 10000, 64, struct.Struct("<QI")


def records(path):
    with open(path, "rb", buffering=1 << 20) as file:
        while head := file.read(HEAD.size):
            yield file.read(HEAD.unpack(head)[0])
            file.read(4)


class Shuffled(IterableDataset):
    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        draw, held = random.Random(first), []
        for path in FILES[first::step]:
            for record in records(path):
                if len(held) < SLOTS:
                    held.append(record)
                    continue
                slot = draw.randrange(SLOTS)
                record, held[slot] = held[slot], record
                yield self.sample(record)
        draw.shuffle(held)
        for record in held:
            yield self.sample(record)

    @staticmethod
    def sample(record):
        if KIND != "tensors":
            return record
        return int.from_bytes(record[:8], "little"), torch.frombuffer(bytearray(record), dtype=torch.uint8)[8:]


def joined(samples):
    rows = torch.frombuffer(bytearray(b"".join(samples)), dtype=torch.uint8).view(len(samples), -1)
    numbers = rows[:, :8].contiguous().view(torch.int64).flatten()
    return (numbers.numpy(), rows.numpy()) if KIND == "arrays" else (numbers, rows[:, 8:])


def epoch(loader):
    begun, count, total = time.perf_counter(), 0, 0
    for numbers, _ in loader:
        count += len(numbers)
        total += int(numbers.sum())
    if total != count * (count - 1) // 2:
        sys.exit("records are lost or doubled")
    return count, time.perf_counter() - begun


torch.set_num_threads(1)
source = DataLoader(Shuffled(), batch_size=BATCH, num_workers=WORKERS, collate_fn=None if KIND == "tensors" else joined)
epoch(source)
found, seconds = epoch(source)
print(f"records_s={found / seconds:.0f}\nbytes_s={sum(map(os.path.getsize, FILES)) / seconds:.0f}")
