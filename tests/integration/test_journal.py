# SPDX-License-Identifier: Apache-2.0
"""Where standard error is the journal's, each event arrives there with its fields. The journal is played: a socket in
its place, in a mount namespace of the test's own."""
import os
import re
import socket
import struct
import threading

from cluster import Cluster, script
from small_disk import SmallDisk, may_mount
from testing import check, check_equal, run, skip

SOCKET = "/run/systemd/journal/socket"
EVENT = {"MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER", "CADRE_COMPONENT"}


def parse(datagram):
    """FIELD=value lines; a value with newlines is FIELD, its length and its bytes."""
    fields = {}
    while datagram:
        line, _, rest = datagram.partition(b"\n")
        name, has_value, value = line.partition(b"=")
        if not has_value:
            size = struct.unpack("<Q", rest[:8])[0]
            value, rest = rest[8:8 + size], rest[8 + size + 1:]
        check(name.decode() not in fields, f"{name} twice in {datagram}")
        fields[name.decode()] = value.decode()
        datagram = rest
    return fields


class Journal:
    """Reads what is sent there; a sender waits when no process does."""

    def __init__(self):
        os.makedirs(os.path.dirname(SOCKET))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(SOCKET)
        self.entries = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        while datagram := self.socket.recv(1 << 20):
            self.entries.append(parse(datagram))

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", SOCKET)
        self.thread.join(10)
        self.socket.close()

    def find(self, message):
        return [entry for entry in self.entries if message in entry["MESSAGE"]]


def start_below(daemon):
    """With its log file as what systemd would have given it: the journal's stream."""
    with open(daemon.log_path, "ab") as log:
        status = os.fstat(log.fileno())
    os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino}"
    try:
        daemon.start()
    finally:
        del os.environ["JOURNAL_STREAM"]


def test_events_arrive_with_their_fields():
    if not may_mount():
        skip("this user may not mount over /run in a namespace of its own")
    with SmallDisk("/run", 1), Cluster(start=False) as cluster:
        journal = Journal()
        start_below(cluster.coordinator)
        start_below(cluster.workers[0])
        job = cluster.client.run(script("echo hello; exit 3"), name="a job").id
        cluster.end()
        journal.close()
        for daemon in (cluster.coordinator, cluster.workers[0]):
            check_equal(daemon.log(), "", f"what {daemon.name} wrote beside it")
        for entry in journal.entries:
            check(set(entry) >= EVENT, f"an event without its fields: {entry}")
            said = entry["MESSAGE"]
            check(said.startswith(entry["CADRE_COMPONENT"] + ": "), f"its component: {entry}")
            for key, value in re.findall(r" ([a-z_]+)=([^\s\"]+)(?= |$)", re.sub(r'"(\\.|[^"\\])*"', '""', said)):
                check_equal(entry.get("CADRE_" + key.upper()), value, f"the field {key} of {entry}")
        taken = journal.find("a job was submitted")[0]
        check_equal({name: taken[name] for name in ("CADRE_JOB", "CADRE_NAME", "PRIORITY", "SYSLOG_IDENTIFIER")},
                    {"CADRE_JOB": str(job), "CADRE_NAME": "a job", "PRIORITY": "6",
                     "SYSLOG_IDENTIFIER": "cadre-coordinator"}, "a job was submitted")
        started = journal.find("task started")[0]
        check_equal((started["CADRE_JOB"], started["CADRE_SLOT"], started["SYSLOG_IDENTIFIER"]),
                    (str(job), "0", "cadre-worker"), "task started")
        ended = [entry for entry in journal.find("task ended") if entry["SYSLOG_IDENTIFIER"] == "cadre-coordinator"]
        check_equal([(entry["CADRE_JOB"], entry["CADRE_CODE"]) for entry in ended], [(str(job), "3")], "task ended")


if __name__ == "__main__":
    run(globals())
