# SPDX-License-Identifier: Apache-2.0
"""Hostile tasks at the real daemon's task sockets, and strangers at the sockets of keepers, while an honest job trains
on the same worker. Nothing crashes, leaks or hangs, each job has an end and a sentence, and the honest one goes on.

    fuzz_task.py [SECONDS [SEED]]     2 s each and the seed 1; SEED.N is the N-th job of it
"""
import glob
import json
import os
import random
import signal
import socket
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "integration"))

from client import CALL_S, CANCELLED, FAILED, FINAL, SUCCEEDED, jobs_pb2  # noqa: E402
from cluster import Cluster, script, trainer  # noqa: E402
from testing import check, check_equal, check_in, run, wait_for  # noqa: E402
from visits import draw  # noqa: E402

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
END_S = 20  # a job's, once its program is through with its visits

WORD = struct.Struct("<IIqIIII")  # worker/host/keeper/messages.h
WORDS_TO_KEEPER = (0, 1, 2, 3, 4, 16, 17, 18)


def honest(client):
    """Trains until it is cancelled."""
    job = client.submit(script("cp trainer.bin t && chmod 755 t && exec ./t 100000000"), name="honest",
                        files={"trainer.bin": trainer()})
    client.watch_until(job, lambda info: info.position > 0, "its first step")
    return job


def goes_on(client, job):
    before = client.get(job)
    client.watch_until(job, lambda info: info.position > before.position, "one more step of the honest job")
    check_equal(client.get(job).generation, before.generation, "the honest job's generation")


def check_daemons(cluster, what):
    for daemon in (cluster.coordinator, *cluster.workers):
        check(daemon.runs(), f"{what}: {daemon.name} has ended")
        for word in ("Sanitizer", "runtime error"):
            check(word not in daemon.log(), f"{what}: {word} in the log of {daemon.name}")


def check_end(client, job, ends, what):
    """It comes by itself, or, for one that stays, when it is cancelled."""
    wait_for(f"{what}: its program is through or gone",
             lambda: b"done" in client.log(job) or client.get(job).state in FINAL, END_S)
    if ends == "stays":
        client.cancel(job)
    info = client.wait(job, END_S)
    check(info.state in (SUCCEEDED, CANCELLED) or (info.message and info.message.isprintable()),
          f"{what}: no sentence: {info}")


def test_tasks():
    with open(os.path.join(HERE, "hostile.py"), "rb") as file:
        hostile = file.read()
    until = time.monotonic() + SECONDS
    count = 0
    with Cluster(workers=1, slots=2, worker=["--keep-tasks"]) as cluster:
        client = cluster.client
        version = client.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S).task_frame
        training = honest(client)
        while count == 0 or time.monotonic() < until:
            visits = draw(random.Random(f"{SEED}.{count}"), version)
            job = client.submit(hostile, name=f"{SEED}.{count}", files={"visits": json.dumps(visits).encode()},
                                max_restarts=0)
            check_end(client, job, visits["end"], f"{SEED}.{count}")
            check_daemons(cluster, f"{SEED}.{count}")
            count += 1
        goes_on(client, training)
        client.cancel(training)
        client.wait(training)
    print(f"seed {SEED}: {count} hostile tasks")


# ---- strangers at a keeper ----

def packet(drawn):
    """What is said to a keeper: words of wrong versions, with wrong values, of wrong sizes. Not END, which is right."""
    what = drawn.randint(0, 3)
    if what == 0:
        return drawn.randbytes(drawn.choice([0, 1, 8, WORD.size - 1, WORD.size, WORD.size + 1, 4096]))
    version = drawn.choice([0, 2, 1 << 31]) if what == 1 else 1
    kind = drawn.choice([word for word in WORDS_TO_KEEPER if word != 17])
    return WORD.pack(version, kind, drawn.choice([-1 << 63, -9, 0, 18, 65, 1 << 40]), 0, 0, 0, 0)


def stranger(drawn, path):
    """Comes to a keeper as only its daemon may, and says what no daemon says."""
    peers = []
    for _ in range(drawn.randint(1, 3)):
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        peer.settimeout(0.2)
        peers.append(peer)
        try:
            peer.connect(path)
            for _ in range(drawn.randint(0, 4)):
                peer = drawn.choice(peers)
                if drawn.random() < 0.3:
                    socket.send_fds(peer, [packet(drawn)], [0] * drawn.choice([1, 4, 5, 200]))
                else:
                    peer.send(packet(drawn))
            if drawn.random() < 0.5:
                peer.shutdown(drawn.choice([socket.SHUT_WR, socket.SHUT_RDWR]))
            if drawn.random() < 0.5:
                peer.recv(4096)
        except OSError:
            pass  # it was hung up on, or the keeper is gone
    return peers


def test_keepers():
    """The newest connection counts, so the daemon loses its keeper: the task ends, and the daemon says so."""
    until = time.monotonic() + SECONDS
    count = 0
    with Cluster(workers=1, slots=2, worker=["--keep-tasks"]) as cluster:
        client = cluster.client
        (worker,) = cluster.workers
        training = honest(client)
        while count == 0 or time.monotonic() < until:
            drawn = random.Random(f"{SEED}.{count}.keeper")
            job = client.submit(script("echo up; while :; do sleep 0.05; done"), name=f"{SEED}.{count}", max_restarts=0)
            wait_for("it is up", lambda j=job: client.log(j) == b"up\n")
            (path,) = glob.glob(f"{worker.state}/tasks/{job}.*/keeper")
            peers = stranger(drawn, path)
            info = client.wait(job, END_S)
            check_equal(info.state, FAILED, f"{SEED}.{count}: {info}")
            check(info.message and info.message.isprintable(), f"{SEED}.{count}: no sentence: {info}")
            for peer in peers:
                peer.close()
            check_daemons(cluster, f"{SEED}.{count}")
            count += 1
        check_in("keeper", worker.log(), "the daemon's log")
        goes_on(client, training)
        client.cancel(training)
        client.wait(training)
    print(f"seed {SEED}: {count} visited keepers")


if __name__ == "__main__":
    del sys.argv[1:]
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    run(globals())
