# SPDX-License-Identifier: Apache-2.0
"""A submission whose answer was lost is repeated, and makes one job: also when the coordinator was killed between its
record and its answer."""
import contextlib
import os
import subprocess
import threading
from concurrent import futures

from client import CALL_S, SUCCEEDED, common_pb2, grpc, job_file, refusal
from cluster import Cluster, clean_environment, program, script
from testing import HANG_S, check, check_equal, check_in, run, wait_for

SUBMIT = "/cadre.v1.Jobs/Submit"


class Through(grpc.GenericRpcHandler):
    """A proxy of all methods. The answer of the first Submit is lost: `on_submitted` is called in its place."""

    def __init__(self, coordinator, listen, on_submitted):
        self.on_submitted = on_submitted
        self.submits = 0
        # It connects again at once, as often as it is asked.
        self.channel = grpc.insecure_channel(coordinator, options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 200)])
        self.server = grpc.server(futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers([self])
        self.server.add_insecure_port(listen)
        self.server.start()

    def service(self, details):
        return grpc.stream_stream_rpc_method_handler(lambda messages, context: self.pass_on(details.method, messages,
                                                                                           context))

    def pass_on(self, method, messages, context):
        down = self.channel.stream_stream(method)(messages)
        context.add_callback(down.cancel)
        try:
            for message in down:
                if method == SUBMIT:
                    self.submits += 1
                if method == SUBMIT and self.submits == 1:
                    self.on_submitted()
                    context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
                yield message
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())

    def close(self):
        self.server.stop(0).wait()
        self.channel.close()


@contextlib.contextmanager
def through(cluster, on_submitted):
    listen = f"unix:{cluster.folder}/through.sock"
    proxy = Through(cluster.address, listen, on_submitted)
    try:
        yield proxy, listen
    finally:
        proxy.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{cluster.folder}/through.sock")


def test_a_coordinator_is_killed_before_it_answers():
    for verb in (["submit"], ["submit", "--detach"]):
        with Cluster(workers=1) as cluster:
            killed = threading.Event()

            def kill(cluster=cluster, killed=killed):
                cluster.coordinator.kill()
                killed.set()

            with through(cluster, kill) as (proxy, listen):
                submitting = subprocess.Popen([program("cadre"), *verb, "/bin/echo", "it ran"], stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE, text=True,
                                              env=clean_environment() | {"CADRE_COORDINATOR": listen})
                check(killed.wait(HANG_S), "the job was not submitted")
                cluster.coordinator.start()
                stdout, stderr = submitting.communicate(timeout=HANG_S)
                check_equal(submitting.returncode, 0, f"status of cadre submit: {stderr}")
                check_in("the coordinator went away; trying again", stderr, "what cadre submit says")
                check_in("job 1 submitted", stdout + stderr, "the job")
                check(proxy.submits >= 2, "the submission was not repeated")
            client = cluster.new_client()
            check_equal(client.wait(1).state, SUCCEEDED, "the job's end")
            check_equal(client.log(1), b"it ran\n", "what the job printed")
            check_equal(cluster.cadre("jobs", "--json").stdout.count(b'"id"'), 1, "jobs")


def test_repetitions_at_one_time_make_one_job():
    content = script("echo done")
    with Cluster() as cluster:
        client = cluster.client
        client.upload([content])
        spec = common_pb2.JobSpec(name="again", program=job_file("program", content, True), workers=1,
                                  request_id=bytes(range(16)))
        with futures.ThreadPoolExecutor(8) as threads:
            jobs = set(threads.map(lambda _: client.jobs.Submit(spec, timeout=CALL_S).id, range(32)))
        check_equal(jobs, {1}, "the jobs that were made")
        check_equal(client.wait(1).state, SUCCEEDED, "the job's end")
        cluster.coordinator.kill()
        cluster.coordinator.start()
        client = cluster.new_client()
        wait_for("it answers", client.is_alive)
        check_equal(client.jobs.Submit(spec, timeout=CALL_S).id, 1, "the job, after a start")
        spec.priority = 7
        code, sentence = refusal(client.jobs.Submit, spec)
        check_equal(code, "ALREADY_EXISTS", sentence)
        check_in("job 1 was submitted with this request id and another spec", sentence, "the sentence")
        spec.request_id = b"too short"
        code, sentence = refusal(client.jobs.Submit, spec)
        check_equal(code, "INVALID_ARGUMENT", sentence)
        spec.request_id = b""  # as earlier clients: each is a job
        check_equal([client.jobs.Submit(spec, timeout=CALL_S).id for _ in range(2)], [2, 3], "jobs without an id")
        for job in (2, 3):
            client.wait(job)


if __name__ == "__main__":
    run(globals())
