# SPDX-License-Identifier: Apache-2.0
"""The same under torchrun: a loop of all-reduces that writes down when each was done."""
import os
import struct
import sys
import time

import torch
import torch.distributed as dist

folder, step_us = sys.argv[1], int(sys.argv[3])
dist.init_process_group("gloo")
restart = os.environ["TORCHELASTIC_RESTART_COUNT"]
with open(f"{folder}/pid-{dist.get_rank()}", "w", encoding="ascii") as file:
    file.write(str(os.getpid()))
one = torch.ones(1)
step = 0
with open(f"{folder}/steps-{dist.get_rank()}-{restart}", "ab", buffering=0) as file:
    while True:
        end = time.monotonic_ns() + step_us * 1000
        while time.monotonic_ns() < end:
            pass
        dist.all_reduce(one)
        one.fill_(1)
        step += 1
        file.write(struct.pack("<QQ", step, time.monotonic_ns()))
