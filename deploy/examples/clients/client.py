# SPDX-License-Identifier: Apache-2.0
"""Submits a program as a job of two tasks, shows what it prints, and fetches what it leaves.

python3 client.py ADDRESS PROGRAM [ARGUMENT...]     CADRE_TLS_DIR: the folder with the client's certificate, if any
"""
import hashlib
import os
import sys

import grpc
from cadre.v1.common_pb2 import BlobChunk, BlobHeader, BlobList, JobFile, JobSpec
from cadre.v1.jobs_pb2 import GetOutputRequest, JobRequest, JobState, LogsRequest
from cadre.v1.jobs_pb2_grpc import JobsStub


def connect(address, tls_folder):
    if not tls_folder:
        return grpc.insecure_channel(address)
    files = [open(os.path.join(tls_folder, name), "rb").read() for name in ("ca.pem", "key.pem", "cert.pem")]
    # Every coordinator's certificate has this name, on whatever host it is.
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(*files),
                               options=[("grpc.ssl_target_name_override", "coordinator.cadre")])


def upload(jobs, content):
    """The coordinator keeps contents by their hash: one that it has is not sent again."""
    digest = hashlib.sha256(content).digest()
    chunks = [BlobChunk(header=BlobHeader(sha256=digest, size_bytes=len(content)))]
    chunks += [BlobChunk(data=content[at:at + 2**20]) for at in range(0, len(content), 2**20)]
    if jobs.MissingBlobs(BlobList(sha256=[digest])).sha256:
        jobs.PutBlob(iter(chunks))
    return digest


def main(address, path, *arguments):
    jobs = JobsStub(connect(address, os.environ.get("CADRE_TLS_DIR")))
    content = open(path, "rb").read()
    program = JobFile(name=os.path.basename(path), sha256=upload(jobs, content), size_bytes=len(content),
                      executable=True)
    job = jobs.Submit(JobSpec(name="by Python", program=program, arguments=arguments, workers=2)).id
    for info in jobs.Watch(JobRequest(id=job)):
        if info.state not in (JobState.JOB_STATE_QUEUED, JobState.JOB_STATE_STARTING):
            break
        print(f"job {job} waits. {info.message}")
    for chunk in jobs.Logs(LogsRequest(id=job, follow=True)):
        print(chunk.data.decode(errors="replace"), end="", flush=True)
    info = list(jobs.Watch(JobRequest(id=job)))[-1]
    print(f"job {job}: {JobState.Name(info.state)} after {info.position} steps. {info.message}")
    for output in jobs.ListOutputs(JobRequest(id=job)).outputs:
        target = f"outputs/{job}" + os.path.normpath("/" + output.path)  # never above that folder
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.writelines(chunk.data for chunk in jobs.GetOutput(GetOutputRequest(id=job, path=output.path)))
        print("fetched", target)
    return info.exit_code


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(*sys.argv[1:]))
    except grpc.RpcError as error:
        sys.exit(f"{error.code().name}: {error.details()}")
