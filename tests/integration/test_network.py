# SPDX-License-Identifier: Apache-2.0
"""Hosts whose cable is pulled: the others cannot distinguish whether they are alive or dead. After the lease the others
go on; where there are none, the silent are waited for."""
import time

from cluster import Cluster, processes_naming
from hosts import Hosts
from learning import FAST, FAST_WORKER, Learning
from testing import SLOW, check, check_equal, run, scaled, wait_for

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
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        lost = info.tasks[1].worker
        hosts.cut(cluster.host_of(lost))
        learning.allow(16)  # they are inside of a step
        after = learning.until(lambda info: info.roster == 2 and info.tasks[1].worker not in ("", lost), "another host")
        learning.allow()
        check_equal(after.tasks[0].incarnation, info.tasks[0].incarnation, "the incarnation of task 0")
        hosts.heal(cluster.host_of(lost))
        end = learning.end()
        check_equal(end.restarts, 0, "restarts")
        learning.check_learned()
        worker = next(worker for worker in cluster.workers if worker.name == lost)
        wait_for("its old task is gone", lambda: not processes_naming(f"CADRE_SOCKET={worker.state}/"), 20)
        wait_for("it is in again", lambda: all(w.connected for w in cluster.client.workers()) and
                 len(cluster.client.workers()) == 3, 20)


LEASE_S = 0.9 * SLOW
PATIENT = [*FAST, "--rewind-patience", scaled("30s")]


def lives_of(info):
    return info.restarts, [task.incarnation for task in info.tasks]


def last(seconds):
    """A cut is as long as it is."""
    end = time.monotonic() + seconds
    wait_for("the cut is over", lambda: time.monotonic() >= end, seconds + 10)


def check_cut(seconds, cut, heal):
    """All workers are lost to the coordinator for longer than a lease, and none to each other: then their tasks go on
    as if nothing had been, where they were."""
    with Hosts(3) as hosts, Wired(hosts, 2, timing=PATIENT) as cluster:
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        cut(hosts)
        learning.allow()
        last(seconds)
        heal(hosts)
        end = learning.end()
        check_equal(lives_of(end), lives_of(info), "lives")
        learning.check_learned()


def test_the_coordinator_is_cut_off():
    check_cut(4 * LEASE_S, lambda hosts: hosts.cut(0), lambda hosts: hosts.heal(0))


def test_no_message_of_the_coordinator_arrives():
    check_cut(4 * LEASE_S, lambda hosts: hosts.mute(0, (1, 2)), lambda hosts: hosts.unmute(0, (1, 2)))


def test_no_message_to_the_coordinator_arrives():
    def each(hosts, change):
        for host in (1, 2):
            change(hosts)(host, (0,))
    check_cut(4 * LEASE_S, lambda hosts: each(hosts, lambda hosts: hosts.mute),
              lambda hosts: each(hosts, lambda hosts: hosts.unmute))


def test_half_of_the_workers_are_cut_off():
    """A job that is wholly among them waits for them."""
    with Hosts(3) as hosts, Wired(hosts, 2, timing=PATIENT) as cluster:
        alone = Learning(cluster, workers=1, allowed=12)
        info = alone.until_position(10)
        hosts.cut(cluster.host_of(info.tasks[0].worker))
        alone.allow()
        last(4 * LEASE_S)
        hosts.heal(cluster.host_of(info.tasks[0].worker))
        check_equal(lives_of(alone.end()), lives_of(info), "lives of the job that was cut off")
        alone.check_learned()


def test_a_host_that_died_is_waited_for_no_longer_than_the_patience():
    patience_s = 4 * SLOW
    timing = [*FAST, "--rewind-patience", f"{patience_s * 1000:.0f}ms"]
    with Hosts(3) as hosts, Wired(hosts, 2, timing=timing) as cluster:
        learning = Learning(cluster, workers=1, checkpoint_every=5, allowed=12)
        info = learning.until_position(10)
        died = info.tasks[0].worker
        began = time.monotonic()
        hosts.cut(cluster.host_of(died))
        learning.allow()
        learning.until(lambda now: now.tasks[0].worker not in ("", died), "another host")
        waited_s = time.monotonic() - began
        check(waited_s > patience_s - 1, f"given up after {waited_s:.1f} s")
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()
        hosts.heal(cluster.host_of(died))


def test_a_short_cut_is_nothing():
    with Hosts(3) as hosts, Wired(hosts, 2, timing=()) as cluster:  # TCP itself waits longer and longer to try again
        learning = Learning(cluster, workers=2, allowed=12)
        info = learning.until_position(10)
        hosts.cut(2)
        learning.allow()
        hosts.heal(2)
        learning.end()
        end = learning.get()
        check_equal((end.restarts, [task.incarnation for task in end.tasks]),
                    (0, [task.incarnation for task in info.tasks]), "lives")
        check(end.generation <= 2, f"more than one new generation: {end}")
        learning.check_learned()


if __name__ == "__main__":
    run(globals())
