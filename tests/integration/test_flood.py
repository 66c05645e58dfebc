# SPDX-License-Identifier: Apache-2.0
"""Any messages of any client cost the coordinator 16 MiB at most: a message is refused by the length that it
announces, before it is there; and a caller has few unfinished ones."""
import os
import re
import socket
import ssl
import threading

from client import CALL_S, grpc, jobs_pb2, jobs_pb2_grpc
from cluster import Cluster
from pki import Pki
from raw_http2 import Http2
from testing import check, check_equal, check_in, resident_mib, run, wait_for

FLOOD = 600 << 20
MOST_MIB = 16
UNARY, UPLOAD, CHAT = "/cadre.v1.Jobs/Get", "/cadre.v1.Jobs/PutBlob", \
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
FOLLOW = "/cadre.v1.Jobs/Watch"


class Watched:
    """The most memory that a process had while the block ran, over what it had before."""

    def __init__(self, pid):
        self.pid = pid

    def peak(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return int(re.search(r"^VmHWM:\s+(\d+) kB$", file.read(), re.M)[1]) / 1024

    def __enter__(self):
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak begins again
        self.before = resident_mib(self.pid)
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            grown = self.peak() - self.before
            check(grown <= MOST_MIB, f"the coordinator grew by {grown:.1f} MiB, from {self.before:.1f}")


class Secured(Cluster):
    """A coordinator over TLS on a port of its choice."""

    def __init__(self):
        super().__init__(workers=0, start=False)
        self.pki = Pki(self.folder)
        self.coordinator.argv += ["--listen", "0.0.0.0:0", "--tls-dir",
                                  self.pki.issue("coordinator", "main", "--host", "localhost")]

    def __enter__(self):
        super().__enter__()
        self.coordinator.start()
        with open(self.coordinator.ready_file, encoding="ascii") as file:
            self.port = int(re.search(r"^0\.0\.0\.0:(\d+)$", file.read(), re.M)[1])
        return self

    def channel(self, role, name):
        tls = self.pki.issue(role, name, "--force")
        ca, key, cert = (open(os.path.join(tls, f"{part}.pem"), "rb").read() for part in ("ca", "key", "cert"))
        return grpc.secure_channel(f"127.0.0.1:{self.port}", grpc.ssl_channel_credentials(ca, key, cert), options=[
            ("grpc.ssl_target_name_override", "localhost"), ("grpc.use_local_subchannel_pool", 1)])

    def socket(self, role, name):
        tls = self.pki.issue(role, name, "--force")
        context = ssl.create_default_context(cafile=os.path.join(tls, "ca.pem"))
        context.load_cert_chain(os.path.join(tls, "cert.pem"), os.path.join(tls, "key.pem"))
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", self.port))
        return context.wrap_socket(plain, server_hostname="localhost")


def outcome(channel, path, content):
    """How a call ends that sends one message of these bytes, as a unary one, and as a stream that goes on."""
    if path == UNARY:
        call = channel.unary_unary(path, request_serializer=bytes).future(content, timeout=4 * CALL_S)
    elif path == UPLOAD:
        call = channel.stream_unary(path, request_serializer=bytes).future(iter([content]), timeout=4 * CALL_S)
    elif path == FOLLOW:
        call = channel.unary_stream(path, request_serializer=bytes)(content, timeout=4 * CALL_S)
    else:
        call = channel.stream_stream(path, request_serializer=bytes)(iter([content]), timeout=4 * CALL_S)
    return call.code().name, call.details()


def test_one_huge_message():
    """To each kind of method, from those who may call it and those who may not."""
    with Secured() as cluster:
        channels = [("viewer", cluster.channel("viewer", "eve")), ("client", cluster.channel("client", "anna"))]
        huge = bytes(FLOOD)
        for role, channel in channels:
            code, _ = outcome(channel, UNARY, b"")
            check_equal(code, "INVALID_ARGUMENT", "a job without a number")
            for path in (UNARY, FOLLOW, CHAT, UPLOAD):
                denied = (role, path) == ("viewer", UPLOAD)
                with Watched(cluster.coordinator.process.pid):
                    code, text = outcome(channel, path, huge)
                check_equal(code, "PERMISSION_DENIED" if denied else "RESOURCE_EXHAUSTED", f"{role}, {path}: {text}")
                if not denied:
                    check_in(str(FLOOD), text, "the length")
            answer = jobs_pb2_grpc.JobsStub(channel).List(jobs_pb2.ListJobsRequest(), timeout=CALL_S)
            check_equal(list(answer.jobs), [], "the same connection, afterwards")
            channel.close()


def test_many_unfinished_messages():
    """Each of a length that is fine, and without its last byte: with TLS over several connections of one caller."""
    with Secured() as cluster:
        sender = [Http2(cluster.socket("viewer", "eve")) for _ in range(4)]
        with Watched(cluster.coordinator.process.pid):
            flood(sender, (UNARY, FOLLOW, CHAT))
        check(any(each.reset for each in sender), "none is refused")
        one = cluster.channel("viewer", "eve")
        wait_for("the caller is taken again when its connections are gone", lambda: outcome(one, UNARY, bytes(4 << 20))[
            0] == "RESOURCE_EXHAUSTED" and outcome(one, UNARY, b"")[0] == "INVALID_ARGUMENT")
        one.close()


def flood(senders, paths):
    def send(sender):
        sender.receive(5)
        for i in range(100):
            sender.open(1 + 2 * i, paths[i % len(paths)], 4 << 20)
        sender.send_all()
        sender.connection.close()
    threads = [threading.Thread(target=send, args=(sender,)) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_stranger():
    """On a port with TLS, without a certificate; and on one without TLS, where a connection is a caller."""
    with Secured() as cluster, Watched(cluster.coordinator.process.pid):
        for first in (b"", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\xff\xff\x01\xff\xff\xff"):
            with socket.create_connection(("127.0.0.1", cluster.port)) as connection:
                try:
                    for _ in range(600):
                        connection.sendall(first + bytes(1 << 20))
                except OSError:
                    pass
    with Cluster(workers=0, coordinator=["--listen", "127.0.0.1:0"]) as cluster:
        with open(cluster.coordinator.ready_file, encoding="ascii") as file:
            port = int(re.search(r"^127\.0\.0\.1:(\d+)$", file.read(), re.M)[1])
        with Watched(cluster.coordinator.process.pid):
            flood([Http2(socket.create_connection(("127.0.0.1", port)))], (UNARY, FOLLOW, CHAT, UPLOAD))
        huge = bytes(FLOOD)
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        for path in (UNARY, FOLLOW, CHAT, UPLOAD):
            with Watched(cluster.coordinator.process.pid):
                code, text = outcome(channel, path, huge)
            check_equal(code, "RESOURCE_EXHAUSTED", f"{path}: {text}")
        channel.close()


run(globals())
