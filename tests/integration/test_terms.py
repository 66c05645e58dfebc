# SPDX-License-Identifier: Apache-2.0
"""Copies of a coordinator's state directory: a worker serves one coordinator of its cluster, and both sides say so."""
import contextlib
import os
import shutil
import signal

from client import SUCCEEDED
from cluster import Cluster, Daemon, processes_naming, program, script
from learning import FAST_WORKER
from testing import check, check_equal, check_in, run, wait_for

LEASE = ["--lease", "15s"]


def beside(cluster, name, *options):
    """Another coordinator of the same folder; its state directory is to be put there."""
    return Daemon(cluster, name, [program("cadre-coordinator"), "--listen", f"unix:{cluster.folder}/{name}.sock",
                                  "--grace", "1s", *options])


def joins(worker):
    return worker.log().count("joined the coordinator")


def check_refuses(worker, coordinator, part):
    wait_for(f"{worker.name} says why", lambda: part in worker.log())
    wait_for(f"{coordinator.name} says why", lambda: part in coordinator.log())
    check(not os.path.exists(worker.ready_file), "it joined all the same")


def test_two_with_copies_of_one_state_directory():
    with Cluster(workers=1, coordinator=LEASE, worker=FAST_WORKER) as cluster:
        worker = cluster.workers[0]
        check_equal(cluster.client.wait(cluster.client.submit(script("exit 0"))).state, SUCCEEDED, "state")
        twin = beside(cluster, "twin")
        cluster.coordinator.stop()
        shutil.copytree(cluster.coordinator.state, twin.state)
        cluster.coordinator.start()
        twin.start()
        wait_for("it joined again", lambda: joins(worker) == 2)
        worker.stop()
        first = list(worker.argv)
        worker.argv = [f"unix:{cluster.folder}/twin.sock" if part == cluster.address else part for part in first]
        worker.start(ready=False)
        check_refuses(worker, twin, "two run with copies of one state directory")
        check_in("--supersede", worker.log(), "what the worker says")
        worker.stop()
        worker.argv = first
        worker.start()  # and the one that it knows goes on
        check_equal(cluster.new_client().wait(cluster.clients[-1].submit(script("exit 0"))).state, SUCCEEDED, "state")
        twin.stop()


def test_an_older_copy_needs_a_word():
    with Cluster(workers=2, coordinator=LEASE, worker=FAST_WORKER) as cluster:
        coordinator = cluster.coordinator
        backup = f"{cluster.folder}/backup"
        check_equal(cluster.client.wait(cluster.client.submit(script("exit 0"))).state, SUCCEEDED, "state")
        coordinator.stop()
        shutil.copytree(coordinator.state, backup)
        for starts in (2, 3):
            coordinator.start()
            wait_for("they joined again", lambda n=starts: all(joins(worker) == n for worker in cluster.workers))
            coordinator.stop()
        shutil.rmtree(coordinator.state)
        shutil.copytree(backup, coordinator.state)
        coordinator.start()
        for worker in cluster.workers:
            wait_for("it says why", lambda w=worker: "or this state directory is an older copy" in w.log())
        check_in("or this state directory is an older copy", coordinator.log(), "what the coordinator says")
        coordinator.stop()
        plain = list(coordinator.argv)
        coordinator.argv = [*plain, "--supersede"]
        coordinator.start()
        job = cluster.new_client().submit(script("exit 0"), workers=2)
        check_equal(cluster.clients[-1].wait(job).state, SUCCEEDED, "state")
        check_equal(job, 2, "the job after the one that the copy knows")
        check_in("supersedes the one that a worker knew", coordinator.log(), "what the coordinator says")
        coordinator.stop()
        coordinator.argv = plain
        coordinator.start()  # its number stays above
        check_equal(cluster.new_client().wait(cluster.clients[-1].submit(script("exit 0"), workers=2)).state, SUCCEEDED,
                    "state")


def test_a_worker_moves_to_another_cluster_without_tasks():
    with Cluster(workers=1, coordinator=LEASE, worker=["--keep-tasks", *FAST_WORKER]) as cluster:
        worker = cluster.workers[0]
        cluster.client.wait_running(cluster.client.submit(script("echo up; while :; do sleep 0.05; done")))
        cluster.coordinator.kill()
        shutil.rmtree(cluster.coordinator.state)
        cluster.coordinator.start()
        wait_for("it says why", lambda: "is of another cluster: tasks of the one" in worker.log())
        for pid in processes_naming(f"CADRE_SOCKET={worker.state}/"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("it moves", lambda: "this worker moves to another cluster" in worker.log())
        wait_for("what it had of the other one is gone", lambda: not os.listdir(f"{worker.state}/tasks"))
        check_equal(cluster.new_client().wait(cluster.clients[-1].submit(script("exit 0"))).state, SUCCEEDED, "state")


if __name__ == "__main__":
    run(globals())
