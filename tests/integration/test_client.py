# SPDX-License-Identifier: Apache-2.0
"""A client in another language, generated from the .proto files, does all that a client does."""
import json
import os

from client import CANCELLED, SUCCEEDED, coordinators_pb2, grpc, health_pb2, jobs_pb2, refusal
from cluster import Cluster, script
from testing import HANG_S, check, check_equal, check_in, run


def test_lifetime_of_a_job():
    content = script('echo "hello from $CADRE_SLOT of $CADRE_TASKS: $1 $GREETING $(cat data/words.txt)"\n'
                     'echo "left by $CADRE_SLOT" >"$CADRE_OUTPUT_DIR/result.txt"\n'
                     'mkdir "$CADRE_OUTPUT_DIR/more"; printf x >"$CADRE_OUTPUT_DIR/more/x"')
    with Cluster(workers=2) as cluster:
        client = cluster.client
        check_equal(client.upload([content]), 1, "contents that were missing")
        check_equal(client.upload([content]), 0, "contents that were missing the second time")
        job = client.submit(content, files={"data/words.txt": b"some words"}, arguments=["first"], workers=2,
                            environment=["GREETING=good day"], name="greeting")
        states = []
        for info in client.jobs.Watch(jobs_pb2.JobRequest(id=job), timeout=HANG_S):
            states.append(info.state)
        check_equal(info.state, SUCCEEDED, f"final state of {info}")
        check_equal(sorted(states), states, "states in order")
        check_equal((info.id, info.name, info.program, info.workers, info.code, info.exit_code),
                    (job, "greeting", "program", 2, 0, 0), "what is shown of the job")
        check(0 < info.submitted_us <= info.started_us <= info.ended_us, "times in order")
        check_equal([task.slot for task in info.tasks], [0, 1], "slots")
        check_equal({task.worker for task in info.tasks}, {"w0", "w1"}, "workers")
        for slot in (0, 1):
            line = f"hello from {slot} of 2: first good day some words\n".encode()
            check_equal(client.log(job, slot), line, f"log of task {slot}")
            check_equal(info.tasks[slot].log_bytes, len(line), "size of the log")
        check_equal(client.outputs(job), {"0/more/x": b"x", "0/result.txt": b"left by 0\n",
                                          "1/more/x": b"x", "1/result.txt": b"left by 1\n"}, "outputs")
        listed = client.jobs.List(jobs_pb2.ListJobsRequest(), timeout=HANG_S)
        check_equal(([item.id for item in listed.jobs], listed.more), ([job], False), "the list of jobs")
        version = client.jobs.Version(jobs_pb2.VersionRequest(), timeout=HANG_S)
        check_equal((version.jobs_live, version.workers), (0, 2), "numbers in Version")
        check_equal(sorted((worker.name, worker.slots, worker.connected) for worker in client.workers()),
                    [("w0", 1, True), ("w1", 1, True)], "workers")


def test_logs_are_followed():
    # The second line is written when the first has been read.
    content = script('echo first; while [ ! -e go ]; do sleep 0.02; done; echo second')
    with Cluster() as cluster:
        client = cluster.client
        job = client.submit(content)
        seen = b""
        for chunk in client.jobs.Logs(jobs_pb2.LogsRequest(id=job, follow=True), timeout=HANG_S):
            if not seen and chunk.data:
                check_equal(chunk.data, b"first\n", "first chunk")
                open(f"{cluster.workers[0].state}/tasks/{job}.0.1/work/go", "wb").close()
            seen += chunk.data
        check_equal(seen, b"first\nsecond\n", "the whole log")
        check_equal(client.wait(job).state, SUCCEEDED, "state")
        tail = b"".join(chunk.data for chunk in
                        client.jobs.Logs(jobs_pb2.LogsRequest(id=job, tail_bytes=4), timeout=HANG_S))
        check_equal(tail, b"ond\n", "the tail")


def test_cancel_checkpoint_drain_verify():
    """The rest of what a client may ask, with what proto/ says and nothing else."""
    content = script('echo "up $1"; while :; do sleep 0.05; done')
    with Cluster(workers=2) as cluster:
        client = cluster.client
        first, second = (client.submit(content, arguments=[name]) for name in ("first", "second"))
        for job in (first, second):
            client.wait_running(job)
        code, text = refusal(client.jobs.Checkpoint, jobs_pb2.JobRequest(id=first))
        check_equal(code, "FAILED_PRECONDITION", text)
        check(client.cancel(first).state in (jobs_pb2.JOB_STATE_ENDING, CANCELLED), "the answer to Cancel")
        ended = client.wait(first)
        check_equal((ended.state, ended.code), (CANCELLED, 1), str(ended))
        check_equal(client.cancel(first).state, CANCELLED, "once more, with a job that has ended")
        check_equal(client.log(first), b"up first\n", "its log")
        check_equal(client.get(second).state, jobs_pb2.JOB_STATE_RUNNING, "the other one")
        proof = client.jobs.Verify(jobs_pb2.VerifyRequest(id=second), timeout=HANG_S)
        check_equal((proof.job.id, proof.committed, len(proof.epochs)), (second, 0, 0), "a proof of nothing")
        idle = {"w0", "w1"} - {client.get(second).tasks[0].worker}
        client.jobs.Drain(jobs_pb2.DrainRequest(worker=idle.pop()), timeout=HANG_S)
        check_equal(sorted((worker.draining, worker.slots_used) for worker in client.workers()),
                    [(False, 1), (True, 0)], "workers after the drain")
        for call, request in ((client.jobs.Drain, jobs_pb2.DrainRequest),
                              (client.jobs.ListWorkers, jobs_pb2.ListWorkersRequest)):
            code, text = refusal(call, request(worker="absent"))
            check_equal(code, "NOT_FOUND", text)
            check_equal(text, "no worker is named absent: `cadre workers` lists them", "the sentence")
        check("absent" not in cluster.coordinator.log(), "what was not done is logged as done")
        check_equal(cluster.coordinator.log().count("a worker is drained"), 1, "drains in the log")
        client.cancel(second)
        client.wait(second)


def test_absent_things():
    with Cluster() as cluster:
        jobs = cluster.client.jobs
        for call in (jobs.Get, jobs.Cancel, jobs.ListOutputs, jobs.Watch):
            code, text = refusal(call, jobs_pb2.JobRequest(id=77))
            check_equal(code, "NOT_FOUND", text)
            check_in("77", text, "the sentence")
        check_equal(refusal(jobs.Logs, jobs_pb2.LogsRequest(id=77))[0], "NOT_FOUND", "Logs")
        check_equal(refusal(jobs.GetOutput, jobs_pb2.GetOutputRequest(id=77, path="0/x"))[0], "NOT_FOUND", "GetOutput")
        job = cluster.client.submit(script("exit 0"))
        cluster.client.wait(job)
        code, text = refusal(jobs.GetOutput, jobs_pb2.GetOutputRequest(id=job, path="0/model.bin"))
        check_equal(code, "NOT_FOUND", text)
        check_in("0/model.bin", text, "the sentence")
        check_equal(refusal(jobs.GetOutput, jobs_pb2.GetOutputRequest(id=job, path="../logs/0"))[0],
                    "INVALID_ARGUMENT", "a path that leads out")
        check_equal(refusal(jobs.Logs, jobs_pb2.LogsRequest(id=job, slot=5))[0], "OUT_OF_RANGE", "no such task")


def test_a_single_coordinator_leads():
    with Cluster(workers=0) as cluster:
        coordinators = cluster.client.coordinators
        answer = coordinators.Leader(coordinators_pb2.LeaderRequest(), timeout=HANG_S)
        leader = answer.self
        check(leader.leads and leader.state == "leading", f"the leader is {leader}")
        check(leader.term.cluster != 0 and leader.term.start == 1, f"its term is {leader.term}")
        check_in(cluster.address, leader.addresses.split(","), "its addresses")
        check_equal((answer.leader, answer.leader_addresses), (leader.name, leader.addresses), "who leads")
        listed = coordinators.List(coordinators_pb2.ListCoordinatorsRequest(), timeout=HANG_S).coordinators
        check_equal(list(listed), [leader], "the list")
        shown = json.loads(cluster.cadre("coordinators", "--json").stdout)["coordinators"]
        check_equal([(one["name"], one["leader"], one["lag_entries"]) for one in shown], [(leader.name, True, 0)],
                    "cadre coordinators --json")
        check_in(f"{leader.name} ", cluster.cadre("coordinators").stdout.decode(), "the table")


def test_health():
    serving = health_pb2.HealthCheckResponse.SERVING
    with Cluster(workers=0) as cluster:
        health = cluster.client.health
        for service in ("", "cadre.v1.Jobs", "cadre.v1.Agents", "cadre.v1.Coordinators"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service), timeout=HANG_S)
            check_equal(answer.status, serving, f"health of {service!r}")
        code, _ = refusal(health.Check, health_pb2.HealthCheckRequest(service="cadre.v1.Nothing"))
        check_equal(code, "NOT_FOUND", "an unknown service")
        watch = health.Watch(health_pb2.HealthCheckRequest(service="cadre.v1.Jobs"), timeout=HANG_S)
        check_equal(next(watch).status, serving, "first message of Watch")
        unknown = health.Watch(health_pb2.HealthCheckRequest(service="nothing"), timeout=HANG_S)
        check_equal(next(unknown).status, health_pb2.HealthCheckResponse.SERVICE_UNKNOWN, "Watch of an unknown one")
        unknown.cancel()
        cluster.coordinator.stop()
        rest = []
        try:
            rest = [message.status for message in watch]
        except grpc.RpcError as error:
            check_equal(error.code().name, "UNAVAILABLE", "the end of Watch")
        check(serving not in rest, f"Watch said {rest} while the coordinator went away")
        check("c.sock" not in os.listdir(cluster.folder), "the socket is left")


if __name__ == "__main__":
    run(globals())
