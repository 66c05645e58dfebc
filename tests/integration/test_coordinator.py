# SPDX-License-Identifier: Apache-2.0
"""The coordinator is killed under running jobs: they compute on, are adopted, and nothing restarts."""
import os
import signal

from client import SUCCEEDED
from cluster import Cluster
from learning import FAST, FAST_WORKER, Learning, pids_of
from testing import check, check_equal, run, wait_for


def restart(cluster, learning, meanwhile=None):
    """Kills the coordinator; `meanwhile` happens before it is there again."""
    cluster.coordinator.kill()
    if meanwhile is not None:
        meanwhile()
    cluster.coordinator.start()
    learning.client = cluster.new_client()


def lives(info):
    return {task.slot: (task.incarnation, task.pid) for task in info.tasks}


def adopted(info):
    """All tasks have reported since the coordinator's start."""
    return all(task.pid for task in info.tasks)


def test_killed_while_a_job_trains():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=3, allowed=7)
        for position in (5, 20, 35):
            before = learning.until_position(position)
            learning.allow(position + 15)  # it is among steps
            restart(cluster, learning)
            after = learning.until(lambda info, p=position: info.position > p and adopted(info), "the next step")
            check_equal(lives(after), lives(before), "the lives of the tasks")
            check_equal(after.generation, before.generation, "the generation")
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_killed_twice_in_a_row():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=10)
        before = learning.until_position(10)
        learning.allow(30)
        for _ in range(4):
            restart(cluster, learning)
        after = learning.until(lambda info: info.position > before.position and adopted(info), "a step")
        check_equal(lives(after), lives(before), "lives")
        learning.allow()
        learning.end()
        learning.check_learned()


def test_a_task_dies_without_a_coordinator():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, allowed=12)
        before = learning.until_position(10)
        restart(cluster, learning, lambda: os.kill(pids_of(before)[1], signal.SIGKILL))
        learning.allow()
        end = learning.end()
        check_equal(end.tasks[0].incarnation, before.tasks[0].incarnation, "the incarnation of task 0")
        check_equal(end.restarts, 1, "restarts")
        learning.check_learned()


def test_a_worker_dies_without_a_coordinator():
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        before = learning.until_position(10)
        victim = next(worker for worker in cluster.workers if worker.name == before.tasks[1].worker)
        restart(cluster, learning, victim.kill)
        learning.allow()
        end = learning.end()
        check_equal(end.tasks[0].incarnation, before.tasks[0].incarnation, "the incarnation of task 0")
        learning.check_learned()
        victim.start()


def test_killed_while_the_job_regroups():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, allowed=12)
        before = learning.until_position(10)
        os.kill(pids_of(before)[1], signal.SIGKILL)
        learning.allow()
        restart(cluster, learning)
        learning.end()
        learning.check_learned()


def test_the_queue_and_the_ended_stay():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        done = Learning(cluster, workers=1)
        done.end()
        running = Learning(cluster, workers=1, allowed=7)
        running.until_position(5)
        waiting = Learning(cluster, workers=1)
        restart(cluster, running)
        done.client = waiting.client = running.client
        check_equal(done.get().state, SUCCEEDED, "the one that had ended")
        running.allow()
        running.end()
        waiting.end()
        running.check_learned()
        done.check_learned()


def test_a_state_folder_has_one_coordinator():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        second = cluster.worker("second")
        second.argv = [*cluster.coordinator.argv[:1], "--listen", f"unix:{cluster.folder}/d.sock", "--state-dir",
                       cluster.coordinator.state, "--ready-file", second.ready_file]
        second.start(ready=False)
        check(second.wait_end() != 0, "two coordinators in one state folder")
        check(cluster.coordinator.state in second.log(), f"the folder is not named: {second.log()}")
        wait_for("the first goes on", cluster.client.is_alive)


def test_workers_are_listed_before_they_are_back():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        learning.until_position(5)
        for worker in cluster.workers:
            worker.signal(signal.SIGSTOP)
        restart(cluster, learning)
        shown = cluster.cadre("workers").stdout.decode()
        lines = sorted(line.split()[:2] for line in shown.splitlines()[1:3])
        check_equal(lines, [["w0", "expected"], ["w1", "expected"]], "`cadre workers`")
        for worker in cluster.workers:
            worker.signal(signal.SIGCONT)
        learning.allow()
        learning.end()
        learning.check_learned()
        check_equal(sorted(w.name for w in cluster.client.workers() if w.connected), ["w0", "w1"], "connected")



if __name__ == "__main__":
    run(globals())
