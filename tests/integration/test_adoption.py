# SPDX-License-Identifier: Apache-2.0
"""Worker daemons with --keep-tasks that leave, are killed, and come back: their tasks notice nothing."""
import os
import signal

from client import CANCELLED, FAILED, SUCCEEDED
from cluster import AS_ROOT, Cluster, processes_naming, script
from learning import FAST_WORKER, Learning, pids_of, wait_training
from testing import check, check_equal, check_in, run, scaled, wait_for

LATER_WORKER = os.environ.get("CADRE_TEST_NEWER_WORKER", "")
KEEP = ["--keep-tasks", *FAST_WORKER]
# Shorter than a restart takes on a slow machine would be a loss.
LEASE = ["--lease", "15s"]


def leave(worker):
    worker.signal(signal.SIGUSR1)
    check_equal(worker.wait_end(), 0, f"exit status of {worker.name} after SIGUSR1")
    check(not os.path.exists(worker.ready_file), "the ready file is left")


def kill(worker):
    worker.kill()


def tasks_of(worker):
    """Their processes, keepers apart."""
    found = processes_naming(f"CADRE_SOCKET={worker.state}/")
    return [pid for pid, line in found.items() if not line.startswith("cadre-keeper")]


def test_a_job_trains_through_restarts():
    """One daemon in order, one killed, both at once, and one while the coordinator is away."""
    with Cluster(workers=2, coordinator=LEASE, worker=KEEP) as cluster:
        learning = Learning(cluster, workers=2, allowed=0)
        before = pids_of(wait_training(learning, 2))
        first, second = cluster.workers
        step = 0

        def goes_on(what):
            """By six steps; six more may be taken meanwhile."""
            nonlocal step
            learning.allow(step + 12)
            step = learning.until(lambda info: info.position >= step + 6, f"steps after {what}").position
            info = learning.get()
            check_equal((info.generation, pids_of(info)), (1, before), f"generation and processes after {what}")

        goes_on("nothing")
        for what, end in (("SIGUSR1", leave), ("kill -9", kill)):
            end(first)
            first.start()
            goes_on(what)
        kill(first)
        kill(second)
        first.start(ready=False)
        second.start()
        first.wait_ready()
        goes_on("kill -9 of both")
        cluster.coordinator.kill()
        leave(second)
        second.start(ready=False)
        cluster.coordinator.start()
        learning.client = cluster.new_client()
        second.wait_ready()
        learning.allow()
        check_equal(learning.end().generation, 1, "the generation at its end")
        check_in("is taken over", first.log(), "the log of the daemon")
        learning.check_learned()


COUNTS = script('i=0; while [ $i -lt 400 ]; do echo "line $i"; i=$((i+1)); sleep 0.005; done; exit 7')


def test_output_is_whole_and_the_end_is_received():
    """What a task writes while no daemon is there waits, and so does how it ended."""
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(COUNTS)
        pid = client.wait_running(job).tasks[0].pid
        for number in (20, 60, 100):
            wait_for("more of its log", lambda n=number: f"line {n}\n".encode() in client.log(job))
            leave(worker)
            worker.start()
        wait_for("most of its log", lambda: b"line 150\n" in client.log(job))
        check_equal(client.get(job).tasks[0].pid, pid, "its process")
        leave(worker)
        wait_for("it ends while no daemon is there", lambda: not os.path.exists(f"/proc/{pid}"))
        worker.start()
        info = client.wait(job)
        check_equal((info.state, info.tasks[0].exit.code), (FAILED, 7), str(info))
        check_equal(client.log(job), b"".join(b"line %d\n" % i for i in range(400)), "its log")


def test_what_is_left_is_collected_by_the_next_incarnation():
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script('head -c 300000 /dev/zero >"$CADRE_OUTPUT_DIR/file"; echo up\n'
                                   'while [ ! -e "$CADRE_OUTPUT_DIR/go" ]; do sleep 0.02; done; sleep 100 & exit 0'))
        wait_for("it is up", lambda: client.log(job) == b"up\n")
        kill(worker)
        (folder,) = os.listdir(f"{worker.state}/tasks")
        with open(f"{worker.state}/tasks/{folder}/out/go", "w", encoding="ascii"):
            pass
        wait_for("it has ended, with what it started", lambda: not tasks_of(worker))
        worker.start()
        check_equal(client.wait(job).state, SUCCEEDED, "state")
        check_equal(client.outputs(job)["0/file"], bytes(300000), "what it left")


def test_a_start_that_is_refused_costs_no_task():
    """A mistake in the options at a restart; then it is mended."""
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script("echo up; while :; do sleep 0.05; done"))
        pid = client.wait_running(job).tasks[0].pid
        kill(worker)
        right = worker.argv
        for wrong in (["--http", "10.1.2.3:9"], ["--mesh-host", "no host"], ["--coordinator", "unix:relative"]):
            worker.argv = [*right, *wrong]
            worker.start(ready=False)
            check(worker.wait_end() != 0, f"{wrong} was taken")
        worker.argv = right
        worker.start()
        wait_for("it is taken over", lambda: "is taken over" in worker.log())
        check_equal(client.get(job).tasks[0].pid, pid, "its process")
        os.kill(pid, 0)
        client.cancel(job)
        check_equal(client.wait(job).state, CANCELLED, "state")


def test_an_adopted_task_can_be_killed():
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        wait_for("it is up", lambda: client.log(job) == b"up\n")
        kill(worker)
        worker.start()
        client.cancel(job)
        check_equal(client.wait(job).state, CANCELLED, "state")
        check(not tasks_of(worker), "the task lives on")


def test_a_job_is_cancelled_while_its_daemon_is_away():
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script("echo up; while :; do sleep 0.05; done"))
        wait_for("it is up", lambda: client.log(job) == b"up\n")
        leave(worker)
        client.cancel(job)
        worker.start()
        check_equal(client.wait(job).state, CANCELLED, "state")


def test_the_keeper_is_killed():
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script("setsid sleep 1000 & echo up; while :; do sleep 0.05; done"), max_restarts=0)
        wait_for("it is up", lambda: client.log(job) == b"up\n")
        keepers = [pid for pid, line in processes_naming(f"CADRE_SOCKET={worker.state}/").items()
                   if line.startswith("cadre-keeper")]
        os.kill(keepers[0], signal.SIGKILL)
        check_equal(client.wait(job).state, FAILED, "state")
        wait_for("nothing of it is left", lambda: not tasks_of(worker))


def test_a_daemon_that_never_comes_back():
    with Cluster(workers=1, coordinator=LEASE, worker=[*KEEP, "--orphan-limit", "400ms"]) as cluster:
        worker = cluster.workers[0]
        job = cluster.client.submit(script("trap '' TERM; echo up; while :; do sleep 0.05; done"))
        wait_for("it is up", lambda: cluster.client.log(job) == b"up\n")
        kill(worker)
        wait_for("the task and its keeper are gone",
                 lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"), 10)
        cluster.client.cancel(job)
        worker.start()
        check_equal(cluster.client.wait(job).state, CANCELLED, "state")


def test_a_daemon_of_another_version_comes_back():
    """It cannot exchange messages with the keeper: the task is ended, and the log has the reason. Nor with the keepers
    that it starts, as the program beside it is that of the earlier version: the job has that message."""
    with Cluster(workers=1, coordinator=LEASE, worker=KEEP) as cluster:
        worker = cluster.workers[0]
        client = cluster.client
        job = client.submit(script("echo up; while :; do sleep 0.05; done"), max_restarts=0)
        wait_for("it is up", lambda: client.log(job) == b"up\n")
        leave(worker)
        check(tasks_of(worker), "the task left with its daemon")
        worker.argv[0] = LATER_WORKER
        worker.start()
        info = client.wait(job)
        check_equal(info.state, FAILED, str(info))
        check_in("cadre-keeper here is of another version than cadre-worker", info.message, "the job's sentence")
        check_in("of another version of cadre-worker", worker.log(), "the daemon's log")
        wait_for("the task and its keeper are gone", lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"))


def test_without_the_option_tasks_end_with_their_daemon():
    with Cluster(workers=1, coordinator=["--lease", scaled("900ms")], worker=FAST_WORKER) as cluster:
        worker = cluster.workers[0]
        job = cluster.client.submit(script("echo up; while :; do sleep 0.05; done"))
        wait_for("it is up", lambda: cluster.client.log(job) == b"up\n")
        worker.signal(signal.SIGUSR1)
        wait_for("the signal is refused", lambda: "--keep-tasks" in worker.log())
        check(worker.runs(), "it left all the same")
        kill(worker)
        wait_for("the tasks are gone", lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"), 5)
        worker.start()
        cluster.client.cancel(job)
        cluster.client.wait(job)


if __name__ == "__main__":
    run(globals())
