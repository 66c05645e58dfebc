# SPDX-License-Identifier: Apache-2.0
"""A client of the coordinator that knows nothing but what is generated from the .proto files."""
import hashlib
import os
import sys

import testing

try:
    import grpc
    import google.protobuf  # noqa: F401, imported here so that its absence has a message of its own
except ImportError as absent:
    testing.skip(f"{absent}: apt-get install python3-grpcio python3-protobuf")

STUBS = os.environ.get("CADRE_TEST_STUBS", "")
if not os.path.exists(os.path.join(STUBS, "done")):
    testing.skip("the Python client was not generated: apt-get install protobuf-compiler-grpc, then build again")
sys.path.insert(0, STUBS)

from cadre.v1 import (agent_pb2, agent_pb2_grpc, common_pb2, coordinators_pb2,  # noqa: E402, F401
                      coordinators_pb2_grpc, jobs_pb2, jobs_pb2_grpc)
from health.v1 import health_pb2, health_pb2_grpc  # noqa: E402, F401

CALL_S = 240  # against a call that hangs
CHUNK_BYTES = 256 * 1024
FINAL = (jobs_pb2.JOB_STATE_SUCCEEDED, jobs_pb2.JOB_STATE_FAILED, jobs_pb2.JOB_STATE_CANCELLED,
         jobs_pb2.JOB_STATE_PREEMPTED)
QUEUED = jobs_pb2.JOB_STATE_QUEUED
RUNNING = jobs_pb2.JOB_STATE_RUNNING
SUCCEEDED, FAILED, CANCELLED, PREEMPTED = FINAL


def blob_chunks(content, digest=None):
    """A content as PutBlob takes it."""
    digest = digest or hashlib.sha256(content).digest()
    yield common_pb2.BlobChunk(header=common_pb2.BlobHeader(sha256=digest, size_bytes=len(content)))
    for at in range(0, len(content), CHUNK_BYTES):
        yield common_pb2.BlobChunk(data=content[at:at + CHUNK_BYTES])


def job_file(name, content, executable=False):
    return common_pb2.JobFile(name=name, sha256=hashlib.sha256(content).digest(), size_bytes=len(content),
                              executable=executable)


class Client:
    """The four steps of jobs.proto, and the raw stubs beside them."""

    def __init__(self, address):
        # A connection of its own: one to a coordinator that was restarted meanwhile would be handed on else.
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.jobs = jobs_pb2_grpc.JobsStub(self.channel)
        self.agents = agent_pb2_grpc.AgentsStub(self.channel)
        self.coordinators = coordinators_pb2_grpc.CoordinatorsStub(self.channel)
        self.health = health_pb2_grpc.HealthStub(self.channel)

    def close(self):
        self.channel.close()

    def upload(self, contents):
        """Returns how many of them the coordinator did not have."""
        by_hash = {hashlib.sha256(content).digest(): content for content in contents}
        missing = self.jobs.MissingBlobs(common_pb2.BlobList(sha256=list(by_hash)), timeout=CALL_S).sha256
        for digest in missing:
            self.jobs.PutBlob(blob_chunks(by_hash[digest]), timeout=CALL_S)
        return len(missing)

    def submit(self, content, files=None, name="job", **fields):
        """Uploads the program and the files, and submits; returns the job's number."""
        files = files or {}
        self.upload([content, *files.values()])
        spec = common_pb2.JobSpec(name=name, program=job_file("program", content, True),
                                  files=[job_file(path, data) for path, data in files.items()],
                                  **{"workers": 1, **fields})
        return self.jobs.Submit(spec, timeout=CALL_S).id

    def get(self, job):
        return self.jobs.Get(jobs_pb2.JobRequest(id=job), timeout=CALL_S)

    def watch_until(self, job, condition, what, deadline_s=CALL_S):
        """Follows the job until condition(info) holds; returns that info."""
        last = None
        stream = self.jobs.Watch(jobs_pb2.JobRequest(id=job), timeout=max(deadline_s, CALL_S))
        try:
            for info in stream:
                last = info
                if condition(info):
                    return info
        except grpc.RpcError as error:
            raise testing.Failure(f"job {job}: {what} did not come: {error.code().name} {error.details()}; "
                                  f"it stands at {last}") from error
        finally:
            stream.cancel()
        raise testing.Failure(f"job {job}: {what} did not come before its end: {last}")

    def wait(self, job, deadline_s=CALL_S):
        """The job's final info."""
        return self.watch_until(job, lambda info: info.state in FINAL, "the end", deadline_s)

    def wait_running(self, job):
        return self.watch_until(job, lambda info: info.state == RUNNING, "the start of all its tasks")

    def run(self, content, deadline_s=CALL_S, **fields):
        return self.wait(self.submit(content, **fields), deadline_s)

    def cancel(self, job):
        return self.jobs.Cancel(jobs_pb2.JobRequest(id=job), timeout=CALL_S)

    def log(self, job, slot=None, follow=False):
        """What a task printed, or all of them one after the other."""
        request = jobs_pb2.LogsRequest(id=job, follow=follow)
        if slot is not None:
            request.slot = slot
        parts = {}
        ended = set()
        for chunk in self.jobs.Logs(request, timeout=CALL_S):
            part = parts.setdefault(chunk.slot, bytearray())
            testing.check_equal(chunk.offset, len(part), f"offset of a chunk of task {chunk.slot}'s log")
            part += chunk.data
            if chunk.end:
                ended.add(chunk.slot)
        testing.check_equal(ended, set(parts), "the logs that were said to be whole")
        return b"".join(parts[key] for key in sorted(parts))

    def outputs(self, job):
        """Path -> content of what the job left."""
        listed = self.jobs.ListOutputs(jobs_pb2.JobRequest(id=job), timeout=CALL_S).outputs
        return {item.path: self.output(job, item.path) for item in listed}

    def output(self, job, path):
        chunks = list(self.jobs.GetOutput(jobs_pb2.GetOutputRequest(id=job, path=path), timeout=CALL_S))
        content = b"".join(chunk.data for chunk in chunks)
        testing.check_equal(len(content), chunks[0].header.size_bytes, f"size of {path}")
        return content

    def workers(self):
        return list(self.jobs.ListWorkers(jobs_pb2.ListWorkersRequest(), timeout=CALL_S).workers)

    def is_alive(self):
        return self.jobs.Version(jobs_pb2.VersionRequest(), timeout=CALL_S).version != ""


def refusal(call, *arguments, **options):
    """The code's name and the text with which a call is refused."""
    try:
        answer = call(*arguments, **{"timeout": CALL_S, **options})
        if hasattr(answer, "__iter__"):
            answer = list(answer)
    except grpc.RpcError as error:
        return error.code().name, error.details()
    raise testing.Failure(f"the call was not refused but answered with {testing.shown(answer)}")
