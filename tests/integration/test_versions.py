# SPDX-License-Identifier: Apache-2.0
"""Programs of different versions meet: what is unknown is passed over, what cannot be is refused with both versions."""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent import futures

from client import CALL_S, SUCCEEDED, agent_pb2, common_pb2, grpc, job_file, jobs_pb2, refusal
from cluster import Cluster, clean_environment, program, script, trainer
from testing import HANG_S, check, check_equal, check_in, run, skip, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
PROTO = os.path.join(HERE, "..", "..", "proto")
JOBS_EDITED = "cadre/v1/jobs.proto"
OLDEST = 8  # AGENT_PROTOCOL_OLDEST


def edit(text):
    """jobs.proto of a later version: a state more, fields that no process here knows, two methods fewer."""
    text = text.replace("JOB_STATE_PREEMPTED = 8;", "JOB_STATE_PREEMPTED = 8;\n  JOB_STATE_PAUSED = 9;")
    text = re.sub(r"^message (\w+) \{$", r"message \1 {\n  string mood = 900;\n  repeated string moods = 901;", text,
                  flags=re.MULTILINE)
    return re.sub(r"^  rpc (Verify|Drain)\(.*\n", "", text, flags=re.MULTILINE)


@contextlib.contextmanager
def later_coordinator():
    """Its address."""
    if shutil.which("protoc") is None or shutil.which("grpc_python_plugin") is None:
        skip("there is no protoc or no grpc_python_plugin")
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        protos, stubs = os.path.join(folder, "proto"), os.path.join(folder, "stubs")
        shutil.copytree(os.path.join(PROTO, "cadre"), os.path.join(protos, "cadre"))
        os.mkdir(stubs)
        with open(os.path.join(protos, JOBS_EDITED), "r+", encoding="utf-8") as file:
            text = edit(file.read())
            file.seek(0)
            file.write(text)
        subprocess.run(["protoc", "-I", protos, f"--plugin=protoc-gen-grpc_python={shutil.which('grpc_python_plugin')}",
                        f"--python_out={stubs}", f"--grpc_python_out={stubs}", "cadre/v1/common.proto",
                        "cadre/v1/task.proto", JOBS_EDITED], check=True)
        address = f"unix:{folder}/later.sock"
        server = subprocess.Popen([sys.executable, "-B", os.path.join(HERE, "newer_coordinator.py"), address, stubs],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            check_equal(server.stdout.readline(), "ready\n", "the start of the later coordinator")
            yield address
        finally:
            server.stdin.close()
            server.wait(CALL_S)
            server.stdout.close()


def cadre(address, *arguments, status=0):
    done = subprocess.run([program("cadre"), *arguments], capture_output=True, timeout=HANG_S, check=False, text=True,
                          env=clean_environment() | {"CADRE_COORDINATOR": address})
    check_equal(done.returncode, status, f"status of {arguments}: {done.stderr}")
    return done.stdout + done.stderr


def test_a_client_meets_a_later_coordinator():
    with later_coordinator() as address:
        said = cadre(address, "job", "3")
        check_in("unknown (9)", said, "the job's state")
        check_in("paused by its owner", said, "its message")
        job = json.loads(cadre(address, "job", "3", "--json"))
        check_equal((job["state"], job["final"], job["tasks"][0]["state"]), ("unknown (9)", False, "unknown (9)"),
                    "the states as JSON")
        check_in("unknown (9)", cadre(address, "jobs"), "the list")
        check_in("99.1.0", cadre(address, "version"), "the coordinator's version")
        check_in("w0", cadre(address, "workers"), "workers")
        # Followed to its end, over a state that no process here knows.
        check_in("from a later version", cadre(address, "submit", "/bin/true"), "the job that was followed")
        for arguments, method, status in ((["verify", "3"], "Verify", 3), (["drain", "w0"], "Drain", 1)):
            said = cadre(address, *arguments, status=status)
            check_in("version 99.1.0 and does not know " + method, said, "the sentence")
            check_in("this client of version ", said, "the sentence")
            check_in("upgrade the client", said, "which side")
            check_equal(len(said.splitlines()), 1, f"lines: {said}")


def unknown_fields(message):
    """The message with fields at its end that no process knows, of each kind."""
    return (message.SerializeToString() + b"\xa0\x38\x07" + b"\xaa\x38\x04mood" + b"\xa5\x38" + bytes(4) +
            b"\xa1\x38" + bytes(8))


def test_a_later_client_meets_this_coordinator():
    content = script("echo done")
    with Cluster() as cluster:
        client = cluster.client
        client.upload([content])
        spec = common_pb2.JobSpec(name="later", program=job_file("program", content, True), workers=1)
        submit = client.channel.unary_unary("/cadre.v1.Jobs/Submit",
                                            response_deserializer=jobs_pb2.SubmitResponse.FromString)
        job = submit(unknown_fields(spec), timeout=CALL_S).id
        watch = client.channel.unary_stream("/cadre.v1.Jobs/Watch", response_deserializer=jobs_pb2.JobInfo.FromString)
        last = list(watch(unknown_fields(jobs_pb2.JobRequest(id=job)), timeout=CALL_S))[-1]
        check_equal(last.state, SUCCEEDED, str(last))
        pause = client.channel.unary_unary("/cadre.v1.Jobs/Pause")
        check_equal(refusal(pause, b"")[0], "UNIMPLEMENTED", "a method that does not exist yet")


class Between:
    """A proxy of Agents.Join that says other protocol versions in the worker's name: from `oldest` to `newest`, or with
    None `oldest` alone, as workers that know no ranges do."""

    def __init__(self, coordinator, listen, oldest, newest=None, chooses=None):
        self.range = oldest, newest
        self.chooses = chooses  # the version that the coordinator says, in place of its own choice
        self.welcomes = []
        self.channel = grpc.insecure_channel(coordinator, options=[("grpc.use_local_subchannel_pool", 1)])
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        join = grpc.stream_stream_rpc_method_handler(self.join)
        self.server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler("cadre.v1.Agents", {"Join": join})])
        self.server.add_insecure_port(listen)
        self.server.start()

    def changed(self, messages):
        for message in messages:
            up = agent_pb2.AgentUp.FromString(message)
            if up.WhichOneof("message") == "hello":
                up.hello.protocol_version, up.hello.protocol_newest = self.range[0], self.range[1] or 0
            yield up.SerializeToString()

    def join(self, messages, context):
        down = self.channel.stream_stream("/cadre.v1.Agents/Join")(self.changed(messages))
        context.add_callback(down.cancel)
        try:
            for message in down:
                said = agent_pb2.AgentDown.FromString(message)
                if said.WhichOneof("message") == "welcome":
                    self.welcomes.append(said.welcome.protocol_version)
                    if self.chooses is not None:
                        said.welcome.protocol_version = self.chooses
                yield said.SerializeToString()
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def close(self):
        self.server.stop(0).wait()
        self.channel.close()


@contextlib.contextmanager
def cluster_between(*versions, **options):
    """A cluster whose worker is not started, and what is between it and the coordinator: with versions, which are
    added to the coordinator's own."""
    with Cluster(workers=1, start=False) as cluster:
        cluster.coordinator.start()
        own = cluster.client.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S).agent_protocol
        between = Between(cluster.address, f"unix:{cluster.folder}/between.sock", *(own + more for more in versions),
                          **{name: own + more for name, more in options.items()})
        worker = cluster.workers[0]
        worker.argv[worker.argv.index(cluster.address)] = f"unix:{cluster.folder}/between.sock"
        try:
            yield cluster, worker, between, own
        finally:
            between.close()


def test_a_worker_of_another_protocol_is_refused():
    for versions, shown in (((1,), "{1}"), ((1, 3), "{1} to {3}")):
        with cluster_between(*versions) as (cluster, worker, between, own):
            worker.start(ready=False)
            theirs = shown.format(*range(own, own + 4))
            sentence = f"has agent protocol {theirs}, this coordinator {OLDEST} to {own}: install the same version"
            wait_for("both ranges in the coordinator's log", lambda: sentence in cluster.coordinator.log())
            wait_for("both ranges in the worker's log", lambda: sentence in worker.log())
            check_equal(between.welcomes, [], "welcomes")
            check_equal(cluster.client.workers(), [], "workers that the coordinator took")
            worker.stop()  # it goes on trying: the coordinator may be upgraded


def test_a_worker_that_serves_more_protocols_joins():
    for versions in ((0, 2), (0,)):
        with cluster_between(*versions) as (cluster, worker, between, own):
            worker.start()
            check_equal(between.welcomes, [own], "the version that the coordinator chose")
            check_in(f"protocol={own}", worker.log(), "the worker's log")
            check_equal([worker.name for worker in cluster.client.workers()], ["w0"], "workers that it took")
            worker.stop()


def test_a_worker_of_an_earlier_protocol_joins():
    with cluster_between(-1) as (cluster, worker, between, own):
        worker.start()
        check_equal(between.welcomes, [own - 1], "the version that the coordinator chose")
        check_in(f"protocol={own - 1}", worker.log(), "the worker's log")
        check_equal([worker.name for worker in cluster.client.workers()], ["w0"], "workers that it took")
        worker.stop()


def test_a_coordinator_that_chooses_another_protocol_is_refused():
    with cluster_between(0, 1, chooses=1) as (_, worker, _, own):
        worker.start(ready=False)
        wait_for("the worker says so", lambda: f"which chose agent protocol {own + 1} of the" in worker.log())
        check(not os.path.exists(worker.ready_file), "it joined all the same")
        worker.stop()


# Sends to the daemon as the libcadre of another version would: the frame's preamble has another number.
OTHER_UID = b'''#!/usr/bin/python3
import os, socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(os.environ["CADRE_SOCKET"])
version = int(os.environ["CADRE_TASK_FRAME"]) + 1
peer.sendall(b"CADRE\\0" + version.to_bytes(2, "little") + (0).to_bytes(4, "little"))
while peer.recv(4096):
    pass
print("the daemon hung up on version", version)
'''


def test_a_task_of_another_frame_version_is_refused():
    with Cluster() as cluster:
        frame = cluster.client.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S).task_frame
        info = cluster.client.run(OTHER_UID)
        check_equal(cluster.client.log(info.id), f"the daemon hung up on version {frame + 1}\n".encode(), str(info))
        check_in(f"has version {frame + 1} of the frames between program and daemon", cluster.workers[0].log(),
                 "the worker's log")
        check_in(f"version {frame};", cluster.workers[0].log(), "the worker's log")
        # And a program of ours under a daemon that says another number.
        later = script(f"cp trainer.bin t && chmod 755 t && CADRE_TASK_FRAME={frame + 1} exec ./t 5")
        info = cluster.client.run(later, files={"trainer.bin": trainer()}, max_restarts=0)
        check_in(f"the worker daemon uses version {frame + 1}", info.message + cluster.client.log(info.id).decode(),
                 str(info))
        check_in(f"for version {frame}", info.message + cluster.client.log(info.id).decode(), str(info))


if __name__ == "__main__":
    run(globals())
