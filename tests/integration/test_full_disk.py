# SPDX-License-Identifier: Apache-2.0
"""The disk of the coordinator, or of a worker, fills up under running jobs: a clear state, nothing is lost, and it goes
on by itself when there is room."""
import os
import time

from client import RUNNING, SUCCEEDED, common_pb2, health_pb2, job_file, jobs_pb2, refusal
from cluster import Cluster, script
from learning import FAST, FAST_WORKER, STEPS, Learning
from pages import ask
from several import Several
from small_disk import SmallDisk, limit_files, may_mount, unlimit_files, wait_log
from testing import SLOW, check, check_equal, check_in, run, scaled, skip, wait_for

HTTP = ["--http", "127.0.0.1:0"]
HELD = "the ledger cannot be written: jobs wait"
GOES_ON = "the ledger is written again"
WAL_BYTES = 48 * 1024  # the log of the ledger is longer after a few steps


def service_health(client):
    request = health_pb2.HealthCheckRequest(service="cadre.v1.Jobs")
    return client.health.Check(request, timeout=10).status


def check_health(daemon, status, words):
    said = ask(daemon, "/healthz")
    check_equal(said[0], status, f"status of /healthz: {said[1]}")
    check_in(words, said[1], "/healthz")


def check_refusals(cluster, learning):
    client = cluster.client
    spec = client.get(learning.job)
    for call, request in ((client.jobs.Cancel, jobs_pb2.JobRequest(id=learning.job)),
                          (client.jobs.Checkpoint, jobs_pb2.JobRequest(id=learning.job)),
                          (client.jobs.Drain, jobs_pb2.DrainRequest(worker="w0"))):
        code, said = refusal(call, request)
        check_equal(code, "RESOURCE_EXHAUSTED", said)
        check_in("disk is full: free space in " + cluster.coordinator.state, said, "the refusal")
    check_equal(spec.state, RUNNING, str(spec))
    listed = cluster.cadre("jobs").stdout.decode()
    check_in(" running ", listed.lower(), "what cadre jobs lists")
    check_equal(service_health(client), health_pb2.HealthCheckResponse.NOT_SERVING, "health")
    check(client.is_alive(), "readers go on")


def check_stands_still(learning, seconds):
    """Longer than any lease, when the steps that were admitted before are done: no worker is given up for a silence
    that was ours."""
    seen = {}  # position -> since when
    def stands():
        since = seen.setdefault(learning.get().position, time.monotonic())
        return time.monotonic() - since > seconds * SLOW
    wait_for("no step is taken for a while", stands, 3 * seconds * SLOW + 30)
    info = learning.get()
    check(info.position < STEPS, f"steps were admitted that are not stored: {info}")
    return info


def test_no_room_for_the_ledger():
    """By a limit on the size of files, so that it is tested everywhere."""
    with Cluster(workers=2, coordinator=[*FAST, *HTTP], worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=14)
        before = learning.until_position(12)
        limit_files(cluster.coordinator, WAL_BYTES)
        learning.allow()
        wait_log(cluster.coordinator, HELD)
        info = check_stands_still(learning, 2)
        check_in("ledger.db", info.message, "what the job says")
        check_refusals(cluster, learning)
        check_health(cluster.coordinator, 503, "jobs wait until then")
        unlimit_files(cluster.coordinator)
        wait_log(cluster.coordinator, GOES_ON)
        end = learning.end()
        check_equal((end.restarts, end.generation), (0, before.generation), "restarts, generation")
        learning.check_learned()
        check_equal(service_health(cluster.client), health_pb2.HealthCheckResponse.SERVING, "health")
        check_health(cluster.coordinator, 200, "ok")
        check_equal(cluster.coordinator.log().count(HELD), 1, "how often it is logged")


def test_killed_while_there_is_no_room():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=14)
        before = learning.until_position(12)
        limit_files(cluster.coordinator, WAL_BYTES)
        learning.allow()
        wait_log(cluster.coordinator, HELD)
        cluster.coordinator.kill()
        whole = cluster.coordinator.argv
        cluster.coordinator.argv = ["prlimit", f"--fsize={WAL_BYTES}:", *whole]
        cluster.coordinator.start()
        learning.client = cluster.new_client()
        wait_log(cluster.coordinator, HELD, 2)
        unlimit_files(cluster.coordinator)
        wait_log(cluster.coordinator, GOES_ON)
        check_equal(learning.end().generation, before.generation, "the generation")
        learning.check_learned()


def test_the_disk_of_the_coordinator_fills_up():
    """Short of room first: what can wait does, and the job goes on. Then there is none at all."""
    if not may_mount():
        skip("this user may not mount a small file system")
    with Cluster(workers=2, slots=2, coordinator=[*FAST, "--disk-reserve", "4MiB", *HTTP],
                 worker=FAST_WORKER, start=False) as cluster, SmallDisk(cluster.coordinator.state, 24) as disk:
        cluster.coordinator.start()
        for worker in cluster.workers:
            worker.start()
        learning = Learning(cluster, workers=2, allowed=5)
        gate = os.path.join(cluster.folder, "gate")
        lines = 20000
        printer = cluster.client.submit(script(
            f'while [ ! -e {gate} ]; do sleep 0.02; done; seq {lines}; echo whole > "$CADRE_OUTPUT_DIR/file"'))
        cluster.client.wait_running(printer)
        at = learning.until_position(5).position
        disk.leave(2 << 20)
        wait_for("it is seen", lambda: ask(cluster.coordinator, "/healthz")[0] == 503)
        wait_log(cluster.coordinator, "the disk is nearly full")
        with open(gate, "wb"):
            pass
        code, said = refuse_submit(cluster.client)
        check_equal(code, "RESOURCE_EXHAUSTED", said)
        check_in("are kept for the ledger (--disk-reserve)", said, "the refusal")
        learning.allow(at + 5)
        learning.until_position(at + 5)  # the job goes on
        check_equal(cluster.client.log(printer), b"", "what is kept of a log")
        check_health(cluster.coordinator, 503, "nearly full")
        disk.leave(0)
        wait_for("it is seen", lambda: "are free" in refuse_submit(cluster.client)[1])
        learning.allow()
        disk.clear()
        wait_for("there is room", lambda: ask(cluster.coordinator, "/healthz")[0] == 200)
        check_health(cluster.coordinator, 200, "ok")
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()
        check_equal(cluster.client.wait(printer).state, SUCCEEDED, "the one that prints")
        check_equal(cluster.client.log(printer), b"".join(b"%d\n" % n for n in range(1, lines + 1)), "its log")
        check_equal(cluster.client.outputs(printer), {"0/file": b"whole\n"}, "its outputs")
        for worker in cluster.workers:
            worker.stop()
        cluster.coordinator.stop()


def refuse_submit(client):
    program = job_file("program", script("exit 0"), True)
    return refusal(client.jobs.Submit, common_pb2.JobSpec(name="job", program=program, workers=1))


def test_the_disk_of_a_worker_fills_up():
    """A task waits for room to start; what one prints is lost, and the log says how much; a checkpoint that cannot be
    written is one that is not there."""
    if not may_mount():
        skip("this user may not mount a small file system")
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=[*FAST_WORKER, *HTTP], start=False) as cluster:
        worker = cluster.workers[0]
        with SmallDisk(worker.state, 64) as disk:  # twice the program, and the 8 MiB below which no task starts
            cluster.coordinator.start()
            worker.start()
            gate = os.path.join(cluster.folder, "gate")
            printer = cluster.client.submit(script(
                f"echo before; until [ -e {gate}.full ]; do sleep 0.02; done; seq 100000; echo x > {gate}.printed; "
                f"until [ -e {gate}.room ]; do sleep 0.02; done; echo after"))
            learning = Learning(cluster, workers=1, checkpoint_every=5, allowed=5)
            at = learning.until_position(5).position
            os.chmod(cluster.folder, 0o777)
            disk.leave(0)
            with open(gate + ".full", "wb"):
                pass
            wait_for("it has printed", lambda: os.path.exists(gate + ".printed"))
            wait_log(worker, "a task's output is lost")
            late = cluster.client.submit(script("echo late"), files={"data": b"x" * 100000})
            wait_log(worker, "a task waits for room to start")
            check_health(worker, 503, "no task can start")
            learning.allow(at + 12)
            learning.until_position(at + 12)
            check_equal(cluster.client.get(learning.job).restarts, 0, "restarts of the one that saves")
            disk.clear()
            learning.allow()
            check_health(worker, 200, "ok")
            with open(gate + ".room", "wb"):
                pass
            check_equal(cluster.client.wait(late).state, SUCCEEDED, "the one that waited")
            check_equal(cluster.client.wait(printer).state, SUCCEEDED, "the one that printed")
            said = cluster.client.log(printer)
            check(said.startswith(b"before\n") and said.endswith(b"after\n"), f"its log: {said[:50]} {said[-200:]}")
            check_in(b"bytes of output are lost here: the worker could not write them]", said, "the notice")
            learning.end()
            learning.check_learned()
            worker.stop()
            cluster.coordinator.stop()


NO_ROOM = "this coordinator's copy of the ledger cannot be written"
ROOM = "this coordinator's copy of the ledger is written again"
SEVERAL = ["--lease", scaled("10s"), "--rewind-patience", scaled("60s"), "--disk-reserve", "0"]


def go_on(cluster, learning, before):
    """A few more steps, with the same tasks."""
    cluster.follow()
    learning.client = cluster.client
    position = learning.get().position
    learning.allow(position + 15)
    after = learning.until_position(position + 10)
    check_equal([task.incarnation for task in after.tasks], [task.incarnation for task in before.tasks], "the tasks")
    return after


def test_the_disk_of_one_of_several_coordinators_fills_up():
    """It lets another one lead at once. It follows when there is room, whatever else happens until then."""
    if not may_mount():
        skip("this user may not mount a small file system")
    with Several(workers=2, coordinator=SEVERAL, worker=FAST_WORKER, start=False) as cluster:
        full = cluster.coordinators[0]
        with SmallDisk(full.state, 16) as disk:
            full.start()
            cluster.leader()
            for daemon in [*cluster.coordinators[1:], *cluster.workers]:
                daemon.start()
            cluster.follow()
            learning = Learning(cluster, "save=1", "epochs=6", workers=2, allowed=7)
            before = learning.until_position(5)
            disk.leave(0)
            learning.allow(30)
            wait_log(full, NO_ROOM)
            wait_log(full, "it has left")
            go_on(cluster, learning, before)
            second = cluster.leader()
            second.kill()  # what there is no room for is then the number of a term
            go_on(cluster, learning, before)
            check(full.runs() and not cluster.leads(full), "the one without room follows")
            check_equal(full.log().count("the ledger is in etcd"), 2, "how often it started")
            full.kill()
            full.start()
            second.start()
            wait_log(full, NO_ROOM, 3)
            disk.clear()
            wait_log(full, ROOM)
            for other in cluster.coordinators[1:]:
                other.stop()
            go_on(cluster, learning, before)
            check(cluster.leads(full), "it leads again")
            learning.allow()
            check_equal(learning.end().restarts, 0, "restarts")
            learning.check_learned(epochs=6)
            for daemon in [*cluster.workers, full]:
                daemon.stop()


if __name__ == "__main__":
    run(globals())
