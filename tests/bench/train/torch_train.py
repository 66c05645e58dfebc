# SPDX-License-Identifier: Apache-2.0
"""The training of the example mlp in PyTorch: a plain loop, or DistributedDataParallel over gloo with two processes.

    torch_train.py digits|big 1|2 EPOCHS DIGITS-TRAIN.BIN"""
import os
import sys
import tempfile
import time

import torch
import torch.distributed
import torch.multiprocessing
from torch import nn


def load(model, path):
    """Widths, batch, images and labels."""
    if model == "big":
        draws = torch.Generator().manual_seed(1)
        return ([784, 2048, 2048, 10], 256, torch.rand(2048, 784, generator=draws),
                torch.randint(0, 10, (2048,), generator=draws))
    with open(path, "rb") as file:
        records = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8).reshape(-1, 65)
    return [64, 256, 256, 10], 64, records[:, :64].float() / 16, records[:, 64].long()


def network(widths):
    layers = []
    for before, after in zip(widths, widths[1:]):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(rank, processes, model, epochs, path, meeting):
    torch.set_num_threads(1)
    torch.manual_seed(1)
    widths, batch, images, labels = load(model, path)
    net = network(widths)
    if processes > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)
        net = nn.parallel.DistributedDataParallel(net, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    mean_loss = nn.CrossEntropyLoss()
    began, steps, total = 0.0, 0, 0.0
    for epoch in range(epochs):
        order = torch.randperm(len(images))  # the same on all, for they draw from the same seed
        total = 0.0
        for first in range(0, len(images), batch):
            mine = order[first:first + batch].chunk(processes)[rank]
            optimizer.zero_grad(set_to_none=True)
            loss = mean_loss(net(images[mine]), labels[mine])
            loss.backward()
            optimizer.step()
            total += loss.item()
            steps += epoch > 0
        began = began if epoch else time.perf_counter()
    took = time.perf_counter() - began
    if rank == 0:
        print(f"steps_per_s={steps / took:.3f}\nloss={total * batch / len(images):.6f}", flush=True)
    if processes > 1:
        torch.distributed.destroy_process_group()


def main():
    model, processes, epochs, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    if processes == 1:
        train(0, 1, model, epochs, path, None)
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, args=(processes, model, epochs, path, os.path.join(folder, "meeting")),
                                    nprocs=processes)


if __name__ == "__main__":
    main()
