# SPDX-License-Identifier: Apache-2.0
"""Jobs that wait, for what, and in which order they go on."""
import os

from client import CANCELLED, QUEUED, RUNNING, SUCCEEDED
from cluster import Cluster, script
from testing import check, check_equal, check_in, run, wait_for

# Runs until the file named by its first argument is there.
WAITER = script('touch "$1.started"; while [ ! -e "$1" ]; do sleep 0.02; done')


class Gate:
    """What a WAITER waits for; any user's task may look at it."""

    def __init__(self, cluster, name):
        self.folder = os.path.join(cluster.folder, "gates")
        os.makedirs(self.folder, exist_ok=True)
        os.chmod(self.folder, 0o777)
        self.path = os.path.join(self.folder, name)

    def open(self):
        with open(self.path, "wb"):
            pass

    def started(self):
        return os.path.exists(self.path + ".started")


def workers_of(info):
    return {task.worker for task in info.tasks}


def test_two_run_and_the_third_waits():
    with Cluster(workers=2) as cluster:
        client = cluster.client
        gates = [Gate(cluster, name) for name in "abc"]
        jobs = [client.submit(WAITER, arguments=[gate.path]) for gate in gates]
        first, second = (client.wait_running(job) for job in jobs[:2])
        check_equal(workers_of(first) | workers_of(second), {"w0", "w1"}, "each has a worker of its own")
        third = client.get(jobs[2])
        check_equal(third.state, QUEUED, "state of the third")
        check_equal(third.message, "waits for 1 free slot, 0 of 2 are free", "what it says")
        check_equal(third.tasks[0].worker, "", "worker of the third")
        used = {worker.name: worker.slots_used for worker in client.workers()}
        check_equal(used, {"w0": 1, "w1": 1}, "slots in use")
        gates[1].open()
        check_equal(client.wait(jobs[1]).state, SUCCEEDED, "the second")
        third = client.wait_running(jobs[2])
        check_equal(workers_of(third), workers_of(second), "the third has the slot of the second")
        check_equal(client.get(jobs[0]).state, RUNNING, "the first was left alone")
        gates[0].open()
        gates[2].open()
        for job in jobs:
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")


def test_more_workers_than_there_are():
    with Cluster(workers=1) as cluster:
        client = cluster.client
        late = cluster.worker("late")
        cluster.workers.append(late)
        job = client.submit(script("exit 0"), workers=2)
        info = client.get(job)
        check_equal(info.state, QUEUED, str(info))
        check_in("it asks for 2 slots, the cluster has 1", info.message, "what it says")
        late.start()
        info = client.wait(job)
        check_equal((info.state, workers_of(info)), (SUCCEEDED, {"w0", "late"}), str(info))


def test_priorities():
    with Cluster(workers=1, worker=["--job-uids", "none"]) as cluster:  # all write into one file
        client = cluster.client
        gate = Gate(cluster, "gate")
        running = client.submit(WAITER, arguments=[gate.path])
        client.wait_running(running)
        order = os.path.join(gate.folder, "order")
        program = script('echo "$1" >>"$2"')
        submitted = [("low", -1), ("first", 0), ("second", 0), ("high", 7)]
        jobs = [client.submit(program, arguments=[name, order], priority=priority) for name, priority in submitted]
        infos = [client.get(job) for job in jobs]
        check(all(info.state == QUEUED for info in infos), "all wait")
        check_equal([info.priority for info in infos], [-1, 0, 0, 7], "priorities")
        gate.open()
        for job in jobs:
            check_equal(client.wait(job).state, SUCCEEDED, f"job {job}")
        with open(order, encoding="ascii") as file:
            check_equal(file.read().split(), ["high", "first", "second", "low"], "order")


def test_cancel_in_the_queue_and_while_running():
    with Cluster(workers=1) as cluster:
        client = cluster.client
        gate = Gate(cluster, "gate")
        running = client.submit(WAITER, arguments=[gate.path])
        client.wait_running(running)
        waiting = client.submit(WAITER, arguments=[gate.path + "2"])
        last = client.submit(script("exit 0"))
        check_equal(client.cancel(waiting).state, CANCELLED, "a job in the queue is cancelled at once")
        wait_for("the first has begun", gate.started)
        client.cancel(running)
        info = client.wait(running)
        check_equal((info.state, info.exit_code, info.message), (CANCELLED, 130, "cancelled"), str(info))
        check_equal(info.tasks[0].exit.signal, 15, "signal")
        check_equal(client.wait(last).state, SUCCEEDED, "the one behind them")
        check(not os.path.exists(gate.path + "2.started"), "the cancelled job was started")


def test_slots():
    with Cluster(workers=1, slots=3) as cluster:
        client = cluster.client
        gate = Gate(cluster, "gate")
        job = client.submit(WAITER, arguments=[gate.path], workers=3)
        info = client.wait_running(job)
        check_equal([(task.worker, task.slot) for task in info.tasks], [("w0", 0), ("w0", 1), ("w0", 2)], "tasks")
        check_equal(client.workers()[0].slots_used, 3, "slots in use")
        gate.open()
        check_equal(client.wait(job).state, SUCCEEDED, str(info))
        wait_for("the slots are free", lambda: client.workers()[0].slots_used == 0)


if __name__ == "__main__":
    run(globals())
