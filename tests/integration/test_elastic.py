# SPDX-License-Identifier: Apache-2.0
"""Tasks, workers and hosts that die, stop, come and go under a running job: the others keep their process and their
state, and every sample is applied exactly once."""
import os
import signal

from client import FAILED, SUCCEEDED, jobs_pb2
from cluster import Cluster, processes_naming, script
from learning import FAST, FAST_WORKER, PLACES, STEPS, Learning, let_in, pids_of, step_until, undisturbed
from testing import check, check_equal, check_in, run, wait_for

def die_at(place, slot=1, step=20):
    return f"die={slot}:{0 if place == 'create' else step}:{place}"


def check_survived(learning, dead, tasks):
    """The job ended well after one restart of the task `dead`; the others kept their first incarnation."""
    info = learning.end()
    check_equal(info.restarts, 1, f"restarts of {info}")
    check(info.generation > 1, f"no new generation: {info}")
    lives = {task.slot: task.incarnation for task in info.tasks}
    for slot in range(tasks):
        if slot != dead:
            check(lives[slot] <= tasks, f"task {slot} was started again: {info}")
    return learning.check_learned()


def test_a_task_is_killed_at_each_place_of_an_elastic_job():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for place in (*PLACES, "create"):
            learning = Learning(cluster, die_at(place), "save=1", workers=3, workers_min=2, max_restarts=1)
            check_survived(learning, dead=1, tasks=3)


def test_a_task_is_killed_at_each_place_of_a_fixed_job():
    """All steps are taken by two, before and after: the same bits as if nothing had been."""
    wanted = undisturbed(workers=2)
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for place in (*PLACES, "create"):
            for dead in (0, 1):
                learning = Learning(cluster, die_at(place, slot=dead), "save=1", workers=2, max_restarts=1)
                state = check_survived(learning, dead=dead, tasks=2)
                check_equal([value.hex() for value in state["weights"]], [value.hex() for value in wanted["weights"]],
                            f"weights after task {dead} died at {place}")


def test_the_chief_is_killed():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for place in ("step", "between", "reduce", "save"):
            learning = Learning(cluster, die_at(place, slot=0), "save=1", workers=3, workers_min=1, max_restarts=1,
                                replicas=2)
            check_survived(learning, dead=0, tasks=3)


def test_all_tasks_are_killed():
    """Nothing of the state is left: from the newest checkpoint, or from the beginning."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for fields in ({"checkpoint_every": 5}, {}):
            learning = Learning(cluster, workers=2, max_restarts=2, allowed=25, **fields)
            info = learning.until_position(23)
            for pid in pids_of(info).values():
                os.kill(pid, signal.SIGKILL)
            learning.allow()
            learning.end()
            learning.check_learned()


def test_a_task_stands_still():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "stop=1:20", workers=2, max_restarts=0, stall_us=1200000)
        learning.end()
        learning.check_learned()


def test_slow_is_shown():
    with Cluster(workers=2, coordinator=[*FAST, "--slow-after", "300ms"], worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "stop=1:20", workers=2)
        info = learning.until(lambda info: "task 1" in info.message, "the sentence about who is waited for")
        check_in("has not ended", info.message, "the message")
        os.kill(pids_of(info)[1], signal.SIGCONT)
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_a_worker_is_killed_and_another_takes_over():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        victim.kill()
        learning.allow()
        end = learning.end()
        check(end.tasks[1].worker not in ("", victim.name), f"task 1 is not elsewhere: {end}")
        check_equal((end.tasks[0].incarnation, end.restarts), (info.tasks[0].incarnation, 0), str(end))
        learning.check_learned()
        victim.start()


def test_a_worker_is_killed_and_comes_back():
    with Cluster(workers=2, coordinator=[*FAST, "--lease", "20s"], worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        victim.kill()
        victim.start()
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_a_worker_stands_still_and_wakes_up():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        victim.signal(signal.SIGSTOP)
        learning.until(lambda info: info.tasks[1].incarnation > 2, "another one is to take the place of its task")
        learning.allow(20)
        learning.until(lambda info: info.generation > 1 and info.roster == 2, "a new generation of two")
        victim.signal(signal.SIGCONT)
        learning.allow()
        learning.end()
        learning.check_learned()
        wait_for("its old task is gone", lambda: not processes_naming(f"CADRE_SOCKET={victim.state}/"), 10)


def test_growth():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "epochs=4", workers=4, workers_min=2, allowed=5)
        learning.until_position(5)
        check_equal(learning.get().roster, 2, "tasks at first")
        cluster.workers.append(cluster.worker("w2", 1, FAST_WORKER).start())
        let_in(learning, 3)
        cluster.workers.append(cluster.worker("w3", 1, FAST_WORKER).start())
        let_in(learning, 4)
        learning.allow()
        info = learning.end()
        check_equal((info.restarts, info.generation), (0, 3), str(info))
        learning.check_learned(epochs=4)


def test_drain():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        left = info.tasks[1].worker
        cluster.cadre("drain", left)
        step_until(learning, lambda info: info.roster == 2 and info.tasks[1].worker not in ("", left),
                   "task 1 elsewhere")
        learning.allow()
        end = learning.end()
        check_equal(end.restarts, 0, "restarts")
        check_equal(end.tasks[0].incarnation, info.tasks[0].incarnation, "the incarnation of task 0")
        learning.check_learned()
        check([worker.draining for worker in cluster.client.workers() if worker.name == left] == [True], "it drains")


def test_a_drain_outlives_both_daemons():
    """It holds until a client ends it, and says who asked for it and why."""
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        cluster.cadre("drain", "w0", "--reason", "new disk")
        cluster.coordinator.kill()
        cluster.workers[0].stop()
        cluster.coordinator.start()
        cluster.workers[0].start()
        client = cluster.new_client()
        wait_for("it is back", lambda: [worker.connected for worker in client.workers()] == [True])
        shown = cluster.cadre("workers").stdout.decode()
        check_in("draining", shown, "`cadre workers`")
        check_in("w0: drained by unix:", shown, "who")
        check_in("(new disk): `cadre undrain` ends that", shown, "why")
        job = client.submit(script("exit 0"))
        check_equal(client.get(job).state, jobs_pb2.JOB_STATE_QUEUED, "a job meanwhile")
        cluster.cadre("undrain", "w0")
        check_equal(client.wait(job).state, SUCCEEDED, "the job")
        cluster.cadre("undrain", "w0", status=1)


def test_sigterm_of_a_worker():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        left = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        left.signal(signal.SIGTERM)
        step_until(learning, lambda info: info.tasks[1].worker not in ("", left.name), "task 1 elsewhere")
        left.check_end()
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_below_the_minimum():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, wait_us=1500000, allowed=12)
        info = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        victim.kill()
        waits = learning.until(lambda info: "waits for 1 more task" in info.message, "what it waits for")
        check_in(victim.name, waits.message, "the message")
        end = cluster.client.wait(learning.job)
        check_equal(end.state, FAILED, str(end))
        check_in(victim.name, end.message, "the message")
        check_in("1 of 2", end.message, "the message")
        victim.start()


def test_restarts_are_counted():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, die_at("step"), workers=2, max_restarts=0)
        end = cluster.client.wait(learning.job)
        check_equal((end.state, end.exit_code), (FAILED, 137), str(end))
        check_in("task 1", end.message, "the message")
        check_in("signal 9", end.message, "the message")
        # What the program itself says is final.
        learning = Learning(cluster, "fail=1:20", workers=2, max_restarts=5)
        end = cluster.client.wait(learning.job)
        check_equal((end.state, end.restarts), (FAILED, 0), str(end))
        check_in("sample 3 is no sample", end.message, "the message")
        check_equal(end.code, 15, "DATA_LOSS")


def test_cancel_while_it_waits():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == info.tasks[1].worker)
        victim.kill()
        learning.until(lambda info: "waits for 1 more task" in info.message, "what it waits for")
        cluster.client.cancel(learning.job)
        end = cluster.client.wait(learning.job)
        check_equal(end.state, jobs_pb2.JOB_STATE_CANCELLED, str(end))
        victim.start()


def test_the_same_at_any_number_of_workers():
    with Cluster(workers=1, slots=5) as cluster:
        for workers in (2, 3, 5):
            learning = Learning(cluster, workers=workers)
            info = learning.end()
            check_equal(info.position, STEPS, "steps")
            learning.check_learned()


if __name__ == "__main__":
    run(globals())
