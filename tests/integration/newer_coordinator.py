# SPDX-License-Identifier: Apache-2.0
"""A coordinator of a later version, as far as a client can tell: generated from .proto files that were edited for it.
A process of its own, for its messages have the names of ours.

usage: newer_coordinator.py ADDRESS FOLDER    FOLDER: the edited stubs; prints "ready" when it listens and
ends with its standard input
"""
import sys
from concurrent import futures

import grpc

sys.path.insert(0, sys.argv[2])
from cadre.v1 import jobs_pb2, jobs_pb2_grpc  # noqa: E402


def job(number, state):
    info = jobs_pb2.JobInfo(id=number, name="later", program="later", state=state, message="paused by its owner",
                            workers=1, workers_min=1, mood="fine", moods=["a", "b"])
    info.tasks.add(slot=0, incarnation=1, state=9, worker="w0", mood="good")
    return info


class Jobs(jobs_pb2_grpc.JobsServicer):
    """The methods that it has in common with today's, but Verify and Drain, which it has no more."""

    def Version(self, request, context):
        return jobs_pb2.VersionResponse(version="99.1.0", agent_protocol=99, task_frame=77, workers=1, mood="new")

    def Get(self, request, context):
        return job(request.id, jobs_pb2.JOB_STATE_PAUSED)

    def List(self, request, context):
        return jobs_pb2.ListJobsResponse(jobs=[job(2, jobs_pb2.JOB_STATE_PAUSED), job(1, 5)], mood="long")

    def Watch(self, request, context):
        for state in (3, jobs_pb2.JOB_STATE_PAUSED, 3, 5):
            yield job(request.id, state)

    def Logs(self, request, context):
        yield jobs_pb2.LogChunk(job=request.id, data=b"from a later version\n", end=True, mood="blue")

    def MissingBlobs(self, request, context):
        from cadre.v1 import common_pb2
        return common_pb2.BlobList()

    def Submit(self, request, context):
        return jobs_pb2.SubmitResponse(id=5, mood="glad")

    def ListWorkers(self, request, context):
        answer = jobs_pb2.ListWorkersResponse()
        answer.workers.add(id=1, name="w0", host="h", version="99", slots=1, connected=True, mood="calm")
        return answer


def main():
    server = grpc.server(futures.ThreadPoolExecutor(4))
    jobs_pb2_grpc.add_JobsServicer_to_server(Jobs(), server)
    server.add_insecure_port(sys.argv[1])
    server.start()
    print("ready", flush=True)
    sys.stdin.read()
    server.stop(0).wait()


if __name__ == "__main__":
    main()
