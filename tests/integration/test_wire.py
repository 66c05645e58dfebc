# SPDX-License-Identifier: Apache-2.0
"""Bad messages and clients that vanish. While each case runs a healthy job trains on the same cluster, to success."""
import contextlib
import hashlib
import os
import signal
import subprocess
import sys
import threading

from client import (CALL_S, SUCCEEDED, Client, agent_pb2, blob_chunks, common_pb2, grpc, job_file, jobs_pb2, refusal)
from cluster import Cluster, script, trainer
from testing import check, check_equal, check_in, run, wait_for

GARBAGE = b"\xff" * 20
JOBS = "/cadre.v1.Jobs/"
AGENTS = "/cadre.v1.Agents/"
HASH = hashlib.sha256(b"absent content").digest()


@contextlib.contextmanager
def healthy_cluster():
    """A cluster on which a job of two tasks trains; it must get through whatever the block does, and to its end."""
    with Cluster(workers=2, slots=2) as cluster:
        client = cluster.client
        # One trains all the time and is cancelled in the end; the other begins when the file is there, and succeeds.
        stop = os.path.join(cluster.folder, "stop")
        unpack = "echo up; cp trainer.bin trainer && chmod 755 trainer\n"
        job = client.submit(script(unpack + "while [ ! -e $1 ]; do sleep 0.02; done; exec ./trainer 2000"),
                            files={"trainer.bin": trainer()}, arguments=[stop], workers=2)
        training = client.submit(script(unpack + "exec ./trainer 100000000"), files={"trainer.bin": trainer()},
                                 workers=2)
        client.watch_until(training, lambda info: info.position > 0, "its first step")
        yield cluster
        before = client.get(training).position
        client.watch_until(training, lambda info: info.position > before, "one more step")
        client.cancel(training)
        client.wait(training)
        with open(stop, "wb"):
            pass
        info = client.wait(job)
        check_equal((info.state, info.position), (SUCCEEDED, 2000), str(info))


def raw(client, path):
    """A unary method of bytes."""
    return client.channel.unary_unary(path, request_serializer=bytes, response_deserializer=bytes)


def test_malformed_and_oversized_messages():
    with healthy_cluster() as cluster:
        client = cluster.client
        for method in ("Submit", "Get", "Cancel", "MissingBlobs", "ListOutputs", "Watch", "Logs", "GetOutput"):
            code, text = refusal(raw(client, JOBS + method), GARBAGE)
            check_equal(code, "INVALID_ARGUMENT", f"{method} of garbage: {text}")
            check(text and text.isprintable(), f"{method}: {text!r}")
        code, text = refusal(raw(client, AGENTS + "GetBlob"), GARBAGE)
        check_equal(code, "INVALID_ARGUMENT", f"GetBlob of garbage: {text}")
        for method in ("Submit", "Get", "List", "Cancel", "MissingBlobs", "ListOutputs", "ListWorkers", "Version"):
            code, text = refusal(raw(client, JOBS + method), bytes(5 << 20))
            check_equal(code, "RESOURCE_EXHAUSTED", f"5 MiB to {method}: {text}")
        for path in (JOBS + "Destroy", "/cadre.v1.Nothing/Get", "/x/y"):
            check_equal(refusal(raw(client, path), b"")[0], "UNIMPLEMENTED", path)
        code, _ = refusal(client.channel.stream_unary(JOBS + "PutBlob", request_serializer=bytes), iter([GARBAGE]))
        check_equal(code, "INVALID_ARGUMENT", "PutBlob of garbage")
        code, _ = refusal(client.channel.stream_unary(JOBS + "PutBlob", request_serializer=bytes), iter([]))
        check_equal(code, "INVALID_ARGUMENT", "PutBlob of nothing")


def refused_as(name):
    return "RESOURCE_EXHAUSTED" if len(name) > 1023 else "INVALID_ARGUMENT"


def test_specs_that_are_refused():
    with healthy_cluster() as cluster:
        client = cluster.client
        content = script("exit 0")
        client.upload([content])

        def submit(**fields):
            spec = {"name": "bad", "program": job_file("program", content, True), "workers": 1, **fields}
            code, text = refusal(client.jobs.Submit, common_pb2.JobSpec(**spec))
            check(text and text.isprintable() and len(text) < 512, f"the sentence {text!r}")
            return code, text

        names = {"..": '".."', "../out": '".."', "a/../../b": '".."', "/etc/passwd": "relative", "a//b": "empty",
                 "": "empty", "a/": "empty", ".": '"."', "x" * 4096: "4096", "tab\there": "control",
                 "line\nbreak": "control", "y" * 300: "255"}
        for name, part in names.items():
            code, text = submit(files=[job_file(name, content)])
            check_equal(code, refused_as(name), f"file {name[:20]!r}: {text}")
            check_in(part, text, f"file {name[:20]!r}")
            check_in("JobFile.name", text, f"the field for {name[:20]!r}")
            code, text = submit(program=job_file(name, content, True))
            check_equal(code, refused_as(name), f"program {name[:20]!r}: {text}")
            check_in("JobFile.name", text, f"the field for the program {name[:20]!r}")
        for pair in (("a", "a"), ("a/b", "a"), ("program", "b")):
            code, text = submit(files=[job_file(name, content) for name in pair])
            check_equal(code, "INVALID_ARGUMENT", f"files {pair}: {text}")
        for fields, part in (({"workers": 0}, "workers"), ({"workers": 20000}, "workers"),
                             ({"replicas": 257}, "replicas"), ({"name": ""}, "name"), ({"name": "n" * 200}, "name"),
                             ({"name": "a\x1bb"}, "name"),
                             ({"environment": ["NOVALUE"]}, "environment"), ({"environment": ["1=2"]}, "environment"),
                             ({"program": None}, "program")):
            code, text = submit(**fields)
            check(code in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), f"{fields}: {code} {text}")
            check_in(part, text, "the field")
        code, text = submit(files=[common_pb2.JobFile(name="data", sha256=HASH, size_bytes=5)])
        check_equal(code, "FAILED_PRECONDITION", text)
        check_in("data", text, "the sentence")
        code, text = submit(files=[common_pb2.JobFile(name="data", sha256=b"short", size_bytes=5)])
        check_equal(code, "INVALID_ARGUMENT", text)
        code, text = submit(program=common_pb2.JobFile(name="p", sha256=hashlib.sha256(content).digest(), size_bytes=1))
        check_equal(code, "INVALID_ARGUMENT", text)
        check_equal(len(client.jobs.List(jobs_pb2.ListJobsRequest(), timeout=CALL_S).jobs), 2, "jobs in the list")


def blobs(cluster):
    return set(os.listdir(f"{cluster.coordinator.state}/blobs"))


def test_contents():
    with healthy_cluster() as cluster:
        client = cluster.client
        before = blobs(cluster)
        content = os.urandom(3 << 20)
        code, text = refusal(client.jobs.PutBlob, blob_chunks(content, HASH))
        check_equal(code, "DATA_LOSS", text)
        whole = list(blob_chunks(content))
        code, text = refusal(client.jobs.PutBlob, iter(whole[:-1]))
        check_equal(code, "DATA_LOSS", f"an upload that ends early: {text}")
        code, text = refusal(client.jobs.PutBlob, iter(whole + [common_pb2.BlobChunk(data=b"more")]))
        check_equal(code, "INVALID_ARGUMENT", f"an upload that goes on: {text}")
        code, text = refusal(client.jobs.PutBlob, iter(whole[1:]))
        check_equal(code, "INVALID_ARGUMENT", f"an upload without a header: {text}")
        code, text = refusal(client.jobs.PutBlob, iter([whole[0], whole[0]]))
        check_equal(code, "INVALID_ARGUMENT", f"an upload with two headers: {text}")
        huge = common_pb2.BlobChunk(header=common_pb2.BlobHeader(sha256=HASH, size_bytes=1 << 60))
        check(refusal(client.jobs.PutBlob, iter([huge]))[0] in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"), "a huge one")
        code, text = refusal(client.jobs.PutBlob, iter([whole[0], common_pb2.BlobChunk(data=content[:2 << 20])]))
        check_equal(code, "RESOURCE_EXHAUSTED", f"a chunk of 2 MiB: {text}")
        wait_for("nothing is kept of bad uploads", lambda: blobs(cluster) == before)
        check_equal(list(client.jobs.MissingBlobs(common_pb2.BlobList(sha256=[HASH]), timeout=CALL_S).sha256), [HASH],
                    "the content that was announced")

        # Two clients send the same content at the same time, chunk by chunk in turn.
        turn = threading.Barrier(2)

        def in_turn():
            for chunk in whole:
                turn.wait(10)
                yield chunk
        clients = [client, cluster.new_client()]
        futures = [each.jobs.PutBlob.future(in_turn(), timeout=CALL_S) for each in clients]
        for future in futures:
            future.result()
        name = hashlib.sha256(content).hexdigest()
        check_equal(blobs(cluster), before | {name}, "what is kept of two uploads")
        with open(f"{cluster.coordinator.state}/blobs/{name}", "rb") as file:
            check(file.read() == content, "the content is another")
        check_equal(client.upload([content]), 0, "contents that are missing")
        got = b"".join(chunk.data for chunk in
                       client.agents.GetBlob(common_pb2.GetBlobRequest(sha256=hashlib.sha256(content).digest()),
                                             timeout=CALL_S))
        check(got == content, "GetBlob gives another content")
        check_equal(refusal(client.agents.GetBlob, common_pb2.GetBlobRequest(sha256=HASH))[0], "NOT_FOUND", "GetBlob")


def test_clients_that_vanish():
    """Killed in the middle of Watch, Logs and PutBlob."""
    with healthy_cluster() as cluster:
        before = blobs(cluster)
        victims = {what: subprocess.Popen([sys.executable, "-B", __file__, "--victim", what, cluster.address],
                                          stdout=subprocess.PIPE, env=os.environ) for what in VICTIMS}
        try:
            for what, victim in victims.items():
                os.set_blocking(victim.stdout.fileno(), False)
                said = wait_for(f"the client is in {what}", victim.stdout.readline)
                check_equal(said, b"in the middle\n", f"what the client in {what} says")
            wait_for("the upload is under way", lambda: len(blobs(cluster)) == len(before) + 1)
        finally:
            for victim in victims.values():
                victim.send_signal(signal.SIGKILL)
                victim.wait()
                victim.stdout.close()
        wait_for("the half upload is removed", lambda: blobs(cluster) == before, 10)
        check(cluster.client.is_alive(), "the coordinator")


def hold_watch(client):
    watch = client.jobs.Watch(jobs_pb2.JobRequest(id=2))
    next(watch)
    return watch


def hold_logs(client):
    logs = client.jobs.Logs(jobs_pb2.LogsRequest(id=2, follow=True))
    next(logs)
    return logs


def hold_upload(client):
    sent = threading.Event()

    def chunks():
        yield from list(blob_chunks(bytes(1 << 20)))[:3]
        sent.set()
        threading.Event().wait()
    upload = client.jobs.PutBlob.future(chunks())
    sent.wait()
    return upload


VICTIMS = {"Watch": hold_watch, "Logs": hold_logs, "PutBlob": hold_upload}


def join(client, *messages):
    """What the coordinator says to an agent that says that, to the end. The agent leaves after its welcome."""
    leave = threading.Event()

    def requests():
        yield from messages
        leave.wait(CALL_S)
    said = []
    try:
        for message in client.agents.Join(requests(), timeout=CALL_S):
            said.append(message)
            if message.WhichOneof("message") == "welcome":
                leave.set()
    except grpc.RpcError as error:
        return said, error.code().name, error.details()
    finally:
        leave.set()
    return said, "OK", ""


def hello(**fields):
    return agent_pb2.AgentUp(hello=agent_pb2.AgentHello(
        **{"protocol_version": 1, "library_version": "test", "name": "stranger", "host": "here", "boot_nonce": 7,
           "slots": 1, **fields}))


def test_agents_that_are_refused():
    with healthy_cluster() as cluster:
        client = cluster.client
        version = client.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S)
        said, code, text = join(client, hello(protocol_version=version.agent_protocol + 1))
        check_equal((said, code), ([], "FAILED_PRECONDITION"), text)
        check_in(str(version.agent_protocol + 1), text, "the version that is refused")
        said, code, text = join(client, hello(protocol_version=version.agent_protocol, name="w0"))
        check_equal((said, code), ([], "ALREADY_EXISTS"), text)
        check_in("w0", text, "the sentence")
        for fields in ({"name": ""}, {"name": "a\nb"}, {"slots": 0}, {"slots": 5000}):
            said, code, text = join(client, hello(**{"protocol_version": version.agent_protocol, **fields}))
            check_equal((said, code), ([], "INVALID_ARGUMENT"), f"{fields}: {text}")
        said, code, text = join(client, agent_pb2.AgentUp(heartbeat=agent_pb2.AgentHeartbeat()))
        check_equal((said, code), ([], "INVALID_ARGUMENT"), f"a stream without hello: {text}")
        said, code, text = join(client, agent_pb2.AgentUp())
        check_equal((said, code), ([], "INVALID_ARGUMENT"), text)
        stream = client.channel.stream_stream(AGENTS + "Join", request_serializer=bytes, response_deserializer=bytes)
        check_equal(refusal(stream, iter([GARBAGE]))[0], "INVALID_ARGUMENT", "garbage")
        # One that came in properly and then reports on what is not its own is read, but changes nothing.
        task = common_pb2.TaskRef(job=2, slot=0, incarnation=1)
        said, code, text = join(
            client, hello(protocol_version=version.agent_protocol),
            agent_pb2.AgentUp(gone=agent_pb2.AgentTaskGone(task=task, exit=common_pb2.TaskExit(code=9))),
            agent_pb2.AgentUp(log=agent_pb2.AgentLog(task=task, offset=0, data=b"forged")))
        check_in("welcome", [message.WhichOneof("message") for message in said], f"{code} {text}")
        check(b"forged" not in client.log(2), "another agent's log was taken")
        header = agent_pb2.OutputHeader(task=task, path="../../../escape", size_bytes=1)
        code, text = refusal(client.agents.PutOutput, iter([agent_pb2.OutputChunk(header=header, data=b"x")]))
        check_equal(code, "INVALID_ARGUMENT", text)
        wait_for("only the workers are left",
                 lambda: sorted(worker.name for worker in client.workers() if worker.connected) == ["w0", "w1"])


if __name__ == "__main__":
    if "--victim" in sys.argv:
        held = VICTIMS[sys.argv[2]](Client(sys.argv[3]))
        print("in the middle\n", end="", flush=True)
        threading.Event().wait()
    run(globals())
