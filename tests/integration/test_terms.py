# SPDX-License-Identifier: Apache-2.0
"""Copies of a coordinator's state directory: a worker serves one coordinator of its cluster, and both sides say so."""
import contextlib
import os
import shutil
import signal

from client import QUEUED, SUCCEEDED, Client
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


def leave(worker):
    """Its tasks run on."""
    worker.signal(signal.SIGUSR1)
    check_equal(worker.wait_end(), 0, "exit status after SIGUSR1")


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
        check_in("supersedes the one that a worker served", coordinator.log(), "what the coordinator says")
        coordinator.stop()
        coordinator.argv = plain
        coordinator.start()  # its number stays above
        check_equal(cluster.new_client().wait(cluster.clients[-1].submit(script("exit 0"), workers=2)).state, SUCCEEDED,
                    "state")


def test_a_worker_moves_to_another_cluster_without_tasks():
    """What it holds of the one before is dropped only on a person's word, also when it runs no more."""
    with Cluster(workers=1, coordinator=LEASE, worker=["--keep-tasks", *FAST_WORKER]) as cluster:
        worker = cluster.workers[0]
        cluster.client.wait_running(cluster.client.submit(script("echo up; while :; do sleep 0.05; done")))
        cluster.coordinator.kill()
        shutil.rmtree(cluster.coordinator.state)
        cluster.coordinator.start()
        said = "comes from another cluster, and holds state of that one: 1 task, of job 1 slot 0 for one"
        wait_for("it says why", lambda: said in worker.log())
        for pid in processes_naming(f"CADRE_SOCKET={worker.state}/"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("the task is gone", lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"))
        before = cluster.coordinator.log().count(said)
        wait_for("it is refused again", lambda: cluster.coordinator.log().count(said) > before + 1)
        check_in("start the worker once without --keep-tasks", worker.log(), "the next step")
        check("moves to another cluster" not in worker.log(), "what the tasks left is dropped")
        leave(worker)
        worker.argv.remove("--keep-tasks")
        worker.start()  # which drops it
        check_in("this worker moves to another cluster", worker.log(), "what it says")
        wait_for("what it had of the other one is gone", lambda: not os.listdir(f"{worker.state}/tasks"))
        check_equal(cluster.new_client().wait(cluster.clients[-1].submit(script("exit 0"))).state, SUCCEEDED, "state")


def test_what_a_worker_holds_of_another_cluster():
    """A task that ended and was not collected is reported to its own cluster only, although a job of the other one has
    its numbers; that one's job gets none of it, and waits."""
    with Cluster(workers=1, coordinator=LEASE, worker=["--keep-tasks", *FAST_WORKER]) as cluster:
        worker, gate = cluster.workers[0], f"{cluster.folder}/gate"
        old = cluster.client.submit(script(
            f'echo old; echo old >"$CADRE_OUTPUT_DIR/mine"; while [ ! -e {gate} ]; do sleep 0.05; done; echo end'))
        pid = cluster.client.wait_running(old).tasks[0].pid
        cluster.coordinator.kill()
        with open(gate, "wb"):
            pass
        wait_for("the task ends", lambda: not os.path.exists(f"/proc/{pid}"))
        other = beside(cluster, "other")
        other.start()
        client = Client(f"unix:{cluster.folder}/other.sock")
        new = client.submit(script('echo new; echo new >"$CADRE_OUTPUT_DIR/mine"'))
        check_equal(new, old, "the job's number in either cluster")
        leave(worker)
        first = list(worker.argv)
        worker.argv = [f"unix:{cluster.folder}/other.sock" if part == cluster.address else part for part in first]
        worker.start(ready=False)
        check_refuses(worker, other, "holds state of that one: 1 task, of job 1 slot 0 for one")
        check_equal(client.workers(), [], "workers of the other cluster")
        check_equal((client.get(new).state, client.outputs(new)), (QUEUED, {}), "the other cluster's job")
        leave(worker)

        worker.argv = first
        cluster.coordinator.start()
        worker.start()
        check_equal(cluster.new_client().wait(old).state, SUCCEEDED, "state")
        check_equal(cluster.clients[-1].outputs(old), {"0/mine": b"old\n"}, "outputs")
        check_equal(cluster.clients[-1].log(old), b"old\nend\n", "what it printed")
        wait_for("nothing is left of it", lambda: not os.listdir(f"{worker.state}/tasks"))

        leave(worker)
        worker.argv = [f"unix:{cluster.folder}/other.sock" if part == cluster.address else part for part in first]
        worker.start()
        check_equal(client.wait(new).state, SUCCEEDED, "state")
        check_equal((client.outputs(new), client.log(new)), ({"0/mine": b"new\n"}, b"new\n"), "outputs, log")
        client.close()
        other.stop()


if __name__ == "__main__":
    run(globals())
