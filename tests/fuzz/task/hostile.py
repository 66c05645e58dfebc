#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A task that does to its daemon what the file `visits` says, step by step. Whatever is refused it goes on."""
import json
import os
import signal
import socket
import sys

WAIT_S = 0.15  # for an answer; for a daemon that does not read any more


class Visitor:
    def __init__(self):
        self.peers = {}

    def connect(self, key):
        peer = socket.socket(socket.AF_UNIX)
        peer.settimeout(WAIT_S)
        peer.connect(os.environ["CADRE_SOCKET"])
        self.peers[key] = peer

    def send(self, key, text, times=1):
        for _ in range(times):
            self.peers[key].sendall(bytes.fromhex(text))

    def drip(self, key, text):
        """A byte at a time."""
        for byte in bytes.fromhex(text)[:64]:
            self.peers[key].sendall(bytes([byte]))

    def give(self, key, text, count):
        """Bytes, and descriptors that no call takes."""
        socket.send_fds(self.peers[key], [bytes.fromhex(text)], [0, 1, 2][:count])

    def half_close(self, key):
        self.peers[key].shutdown(socket.SHUT_WR)

    def read(self, key):
        while self.peers[key].recv(65536):
            pass

    def close(self, key):
        self.peers.pop(key).close()


def end(how):
    print("done", flush=True)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stays":
        signal.pause()
    os._exit(how)  # what is open is closed by the kernel


def main():
    with open("visits", encoding="ascii") as file:
        script = json.load(file)
    visitor = Visitor()
    for step in script["steps"]:
        try:
            getattr(visitor, step[0])(*step[1:])
        except (OSError, KeyError):
            pass
    end(script["end"])


if __name__ == "__main__":
    sys.exit(main())
