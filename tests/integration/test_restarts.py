# SPDX-License-Identifier: Apache-2.0
"""Daemons that come late, go in order, or are killed: no process waits for ever, and what is reported is true."""
import os
import signal

from client import CANCELLED, QUEUED, RUNNING, SUCCEEDED, grpc, jobs_pb2
from cluster import Cluster, processes_naming, script, trainer
from testing import HANG_S, check, check_equal, check_in, run, scaled, wait_for

FOREVER = script("echo up; while :; do sleep 0.05; done")


def tasks_of(worker):
    return processes_naming(f"CADRE_SOCKET={worker.state}/")


def connected(client):
    return sorted(worker.name for worker in client.workers() if worker.connected)


def start_job(cluster, content=FOREVER, **fields):
    job = cluster.client.submit(content, **fields)
    cluster.client.wait_running(job)
    return job


def test_worker_first():
    with Cluster(workers=1, start=False) as cluster:
        worker = cluster.workers[0].start(ready=False)
        wait_for("it logs that no coordinator is there", lambda: "trying again" in worker.log())
        check(worker.runs(), "the worker gave up")
        cluster.coordinator.start()
        worker.wait_ready()
        check_equal(cluster.client.run(script("exit 0")).state, SUCCEEDED, "a job")


def test_coordinator_restarts_while_nothing_runs():
    with Cluster(workers=1) as cluster:
        client = cluster.client
        done = client.run(script('echo kept; echo left >"$CADRE_OUTPUT_DIR/file"'))
        check_equal(done.state, SUCCEEDED, str(done))
        waiting = client.submit(script("exit 0"), workers=2, name="waiting")
        cluster.coordinator.stop()
        check(cluster.workers[0].runs(), "the worker went with its coordinator")
        cluster.coordinator.start()
        client = cluster.new_client()
        wait_for("the worker is back", lambda: connected(client) == ["w0"])
        again = client.get(done.id)
        check_equal((again.state, again.message, again.ended_us), (done.state, done.message, done.ended_us),
                    "an ended job")
        check_equal(client.log(done.id), b"kept\n", "its log")
        check_equal(client.outputs(done.id), {"0/file": b"left\n"}, "its outputs")
        info = client.get(waiting)
        check_equal((info.state, info.name), (QUEUED, "waiting"), "the job in the queue")
        cluster.workers.append(cluster.worker("w1").start())
        check_equal(client.wait(waiting).state, SUCCEEDED, "the job in the queue goes on")
        check(client.submit(script("exit 0")) > waiting, "numbers of jobs go on")


def test_coordinator_is_killed_under_a_running_job():
    """Of programs that know nothing of Cadre: they run on (of training jobs: test_coordinator.py)."""
    with Cluster(workers=2) as cluster:
        job = start_job(cluster, workers=2)
        before = cluster.client.get(job)
        cluster.coordinator.kill()
        cluster.coordinator.start()
        client = cluster.new_client()
        wait_for("both workers are back", lambda: connected(client) == ["w0", "w1"])
        after = client.watch_until(job, lambda info: all(task.pid for task in info.tasks), "its tasks")
        check_equal((after.state, [(task.pid, task.worker) for task in after.tasks]),
                    (RUNNING, [(task.pid, task.worker) for task in before.tasks]), "the tasks")
        client.cancel(job)
        check_equal(client.wait(job).state, CANCELLED, "the job, once it is cancelled")
        for worker in cluster.workers:
            wait_for(f"the tasks on {worker.name} are gone", lambda w=worker: not tasks_of(w), 10)
        check_equal(client.run(script("exit 0"), workers=2).state, SUCCEEDED, "the next job")


def test_sigterm_of_a_coordinator_with_open_calls():
    with Cluster(workers=1) as cluster:
        job = start_job(cluster)
        watch = cluster.client.jobs.Watch(jobs_pb2.JobRequest(id=job), timeout=HANG_S)
        logs = cluster.client.jobs.Logs(jobs_pb2.LogsRequest(id=job, follow=True), timeout=HANG_S)
        check_equal(next(watch).state, RUNNING, "state")
        check_equal(next(logs).data, b"up\n", "log")
        cluster.coordinator.stop()
        for stream in (watch, logs):
            try:
                list(stream)
            except grpc.RpcError as error:
                check_equal(error.code().name, "UNAVAILABLE", error.details())
                continue
            check(False, "a stream ended with OK although the job had not ended")
        check(not os.path.exists(f"{cluster.folder}/c.sock"), "the socket is left")
        cluster.workers[0].stop()
        check(not tasks_of(cluster.workers[0]), "the task outlived its worker")


def test_sigterm_of_a_worker_with_a_running_job():
    with Cluster(workers=2) as cluster:
        client = cluster.client
        job = start_job(cluster, script('trap \'echo ending; echo kept >"$CADRE_OUTPUT_DIR/file"; exit 0\' TERM\n'
                                        'echo up; while :; do sleep 0.05; done'), workers=2)
        wait_for("both tasks have begun", lambda: client.log(job).count(b"up\n") == 2)
        gone = next(worker for worker in cluster.workers if worker.name == client.get(job).tasks[1].worker)
        gone.stop()
        wait_for("the worker is gone from the list", lambda: gone.name not in connected(client))
        cluster.workers.append(cluster.worker("w2").start())
        client.watch_until(job, lambda info: info.tasks[1].worker == "w2" and info.tasks[1].pid, "task 1 elsewhere")
        client.cancel(job)
        check_equal(client.wait(job).state, CANCELLED, "state")
        check_equal(client.run(script("exit 0"), workers=2).state, SUCCEEDED, "the next job")


def test_a_worker_is_killed():
    with Cluster(workers=2, coordinator=["--lease", scaled("800ms")], worker=["--heartbeat", "200ms"]) as cluster:
        client = cluster.client
        job = start_job(cluster, trainer(), arguments=["100000000"], workers=2)
        client.watch_until(job, lambda info: info.position > 3, "a few steps")
        victim = next(worker for worker in cluster.workers if worker.name == client.get(job).tasks[1].worker)
        victim.kill()
        info = client.watch_until(job, lambda info: "lost with worker" in info.message, "its loss")
        check_in(victim.name, info.message, "the message")
        victim.start()
        wait_for("the next run ended the tasks of the first",
                 lambda: all("1.1.2" not in line for line in tasks_of(victim).values()), 5)
        client.watch_until(job, lambda now: now.generation > info.generation and now.position > info.position, "a step")
        client.cancel(job)
        client.wait(job)
        wait_for("its folders are gone", lambda: os.listdir(f"{victim.state}/tasks") == [])
        check_equal(client.run(script("exit 0"), workers=2).state, SUCCEEDED, "the next job")


def test_a_worker_stands_still():
    """Not dead, only silent: it is lost when the patience is over, and learns so when it wakes up."""
    with Cluster(workers=1, coordinator=["--lease", scaled("600ms"), "--rewind-patience", scaled("1s")],
                 worker=["--heartbeat", "150ms"]) as cluster:
        client = cluster.client
        job = start_job(cluster)
        old = client.get(job).tasks[0].pid
        worker = cluster.workers[0]
        worker.signal(signal.SIGSTOP)
        info = client.watch_until(job, lambda info: info.message != "", "its loss")
        check_in("w0", info.message, "the message")
        check_in("silent", info.message, "the message")
        worker.signal(signal.SIGCONT)
        client.watch_until(job, lambda info: info.tasks[0].pid not in (0, old), "another incarnation of the task")
        wait_for("the first is gone", lambda: old not in tasks_of(worker), 10)
        client.cancel(job)
        check_equal(client.wait(job).state, CANCELLED, "state")
        check_equal(client.run(script("exit 0")).state, SUCCEEDED, "the next job")


def test_orphans_end():
    """Tasks of a cluster without a coordinator end when the limit is over."""
    with Cluster(workers=1, worker=["--orphan-limit", "500ms"]) as cluster:
        start_job(cluster)
        check(tasks_of(cluster.workers[0]), "there is no task")
        cluster.coordinator.kill()
        wait_for("the orphan is ended", lambda: not tasks_of(cluster.workers[0]), 10)
        os.unlink(f"{cluster.folder}/c.sock")
        os.unlink(cluster.coordinator.ready_file)


if __name__ == "__main__":
    run(globals())
