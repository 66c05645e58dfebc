#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The barrier that PyTorch users build on its TCPStore: add() a counter; the last sets a key, the others wait() for it.
    store_barrier.py N ROUNDS FILE
Participants are processes, forked before torch starts a thread; torch 1.13 or newer."""
import array
import datetime
import os
import signal
import socket
import sys
import time

import torch.distributed as dist


def participate(index, participants, rounds, path, port):
    store = dist.TCPStore("127.0.0.1", port, None, False, datetime.timedelta(seconds=100), wait_for_workers=False)
    store.add("up", 1)
    while store.add("up", 0) < participants:
        time.sleep(0.01)
    stamps = array.array("Q")
    for round_number in range(rounds):
        entered = time.monotonic_ns()
        if store.add("c%d" % round_number, 1) == participants:
            store.set("d%d" % round_number, "1")
        else:
            store.wait(["d%d" % round_number])
        stamps.append(entered)
        stamps.append(time.monotonic_ns())
    with open(path, "r+b") as file:
        file.seek(index * rounds * 16)
        file.write(stamps.tobytes())


def serve(port):
    """Until it is killed."""
    store = dist.TCPStore("127.0.0.1", port, None, True, datetime.timedelta(seconds=100), wait_for_workers=False)
    while store is not None:
        signal.pause()


def wait_for_server(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.05)


def main():
    participants, rounds, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    os.truncate(path, participants * rounds * 16)
    server = os.fork()
    if server == 0:
        serve(port)
    children = []
    for index in range(participants):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                wait_for_server(port)
                participate(index, participants, rounds, path, port)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    failed = any([os.waitpid(child, 0)[1] != 0 for child in children])
    os.kill(server, signal.SIGKILL)
    os.waitpid(server, 0)
    sys.exit(failed)


main()
