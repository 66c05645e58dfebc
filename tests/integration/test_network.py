# SPDX-License-Identifier: Apache-2.0
"""Hosts whose cable is pulled: alive or dead, nobody can tell. After the lease the others go on."""
from cluster import Cluster, processes_naming
from hosts import Hosts
from learning import FAST, FAST_WORKER, Learning
from testing import check, check_equal, run, wait_for

PORT = 7077


class Wired(Cluster):
    """A cluster whose daemons run on hosts: the coordinator on host 0, worker i on host i + 1."""

    def __init__(self, hosts, workers, timing=FAST):
        listen = f"{Hosts.address(0)}:{PORT}"
        super().__init__(workers=0, coordinator=["--listen", listen, *timing])
        self.hosts = hosts
        self.coordinator.argv = hosts.on(0, self.coordinator.argv)
        for i in range(workers):
            worker = self.worker(f"w{i}", 1, FAST_WORKER)  # tasks meet on the address toward host 0
            at = worker.argv.index("--coordinator") + 1
            worker.argv[at] = listen
            worker.argv = hosts.on(i + 1, worker.argv)
            self.workers.append(worker)

    def host_of(self, name):
        return int(name[1:]) + 1


def test_a_host_is_cut_off():
    with Hosts(4) as hosts, Wired(hosts, 3) as cluster:
        learning = Learning(cluster, "pace=15", workers=2)
        info = learning.until_position(10)
        lost = info.tasks[1].worker
        hosts.cut(cluster.host_of(lost))
        after = learning.until(lambda info: info.roster == 2 and info.tasks[1].worker not in ("", lost), "another host")
        check_equal(after.tasks[0].incarnation, info.tasks[0].incarnation, "the life of task 0")
        hosts.heal(cluster.host_of(lost))
        end = learning.end()
        check_equal(end.restarts, 0, "restarts")
        learning.check_learned()
        worker = next(worker for worker in cluster.workers if worker.name == lost)
        wait_for("its old task is gone", lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"), 20)
        wait_for("it is in again", lambda: all(w.connected for w in cluster.client.workers()) and
                 len(cluster.client.workers()) == 3, 20)


def test_the_coordinator_is_cut_off():
    """Longer than a lease: all workers are lost to it, and none to each other. Nothing is applied twice."""
    with Hosts(3) as hosts, Wired(hosts, 2) as cluster:
        learning = Learning(cluster, "pace=15", workers=2, checkpoint_every=5)
        learning.until_position(10)
        hosts.cut(0)
        wait_for("the workers are lost", lambda: not any(w.connected for w in cluster.client.workers()), 20)
        hosts.heal(0)
        learning.end()
        learning.check_learned()


def test_a_short_cut_is_nothing():
    with Hosts(3) as hosts, Wired(hosts, 2, timing=()) as cluster:  # TCP itself waits longer and longer to try again
        learning = Learning(cluster, "pace=15", workers=2)
        info = learning.until_position(10)
        hosts.cut(2)
        hosts.heal(2)
        learning.end()
        end = learning.get()
        check_equal((end.restarts, [task.incarnation for task in end.tasks]),
                    (0, [task.incarnation for task in info.tasks]), "lives")
        check(end.generation <= 2, f"more than one new generation: {end}")
        learning.check_learned()


if __name__ == "__main__":
    run(globals())
