# SPDX-License-Identifier: Apache-2.0
"""Three coordinators whose contents lie in a real object store: what test_several*.py ask of a folder, and that none of
them has anything that another one lacks.

    CADRE_TEST_STORE_FAULTS=14 ... test_several_store.py drill      more faults than usual, 15 at most"""
import os
import random
import shutil
import signal

os.environ["CADRE_TEST_CONTENTS"] = "store"

import stored_contents  # noqa: E402
import test_several as several_tests  # noqa: E402
import test_several_seen as seen_tests  # noqa: E402
from checkpoints import EVERY  # noqa: E402
from client import Client  # noqa: E402
from cluster import script  # noqa: E402
from learning import FAST_WORKER, Learning  # noqa: E402
from several import Several, TIMING  # noqa: E402
from proxy import Proxy  # noqa: E402
from testing import check, check_equal, check_in, run, wait_for  # noqa: E402

FAULTS = int(os.environ.get("CADRE_TEST_STORE_FAULTS", "4"))

test_one_leads_and_a_job_runs = several_tests.test_one_leads_and_a_job_runs
test_the_leader_is_killed = several_tests.test_the_leader_is_killed
test_the_leader_ends_in_order = several_tests.test_the_leader_ends_in_order
test_the_leader_is_stopped = several_tests.test_the_leader_is_stopped
test_jobs_of_before = several_tests.test_jobs_of_before
test_one_that_was_away_for_long = several_tests.test_one_that_was_away_for_long
test_each_line_is_there_once = seen_tests.test_each_line_is_there_once


def test_no_disk_is_needed():
    """Each leader is killed, and loses all of its disk: the next one has logs, outputs, checkpoints and values."""
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=7, checkpoint_every=EVERY)
        for position in (5, 20, 35):
            learning.until_position(position)
            leader = cluster.leader()
            leader.kill()
            shutil.rmtree(leader.state)
            cluster.follow(but=leader)
            learning.client = cluster.client
            leader.start()
            learning.allow(position + 15)
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_the_leader_is_killed_while_the_store_is_away():
    """The next one leads all the same, and jobs go on; one that starts follows, and leads when the store is back."""
    with Proxy(stored_contents.chosen_store().endpoint) as proxy:
        cluster = Several(workers=2, coordinators=2, coordinator=TIMING, worker=FAST_WORKER)
        cluster.environment = stored_contents.variables(endpoint=proxy.endpoint)
        with cluster:
            learning = Learning(cluster, workers=2, allowed=7)
            learning.until_position(5)
            leader = cluster.leader()
            next_one = next(one for one in cluster.coordinators if one is not leader)
            proxy.plan.draw(refused=100)
            leader.kill()
            wait_for("the next one leads", lambda: "this coordinator leads" in next_one.log())
            leader.start()
            learning.allow(20)
            cluster.clients.insert(0, Client(next_one.address))
            learning.client = cluster.client
            learning.until_position(20)
            proxy.plan.clear()
            leading = next_one.log().count("this coordinator leads")
            check_equal(leading, 1, "how often it began to lead")
            wait_for("the store is back", lambda: cluster.leads(next_one))
            learning.allow(35)
            learning.until_position(35)
            next_one.stop()
            learning.client = cluster.follow(but=next_one) and cluster.client
            learning.allow()
            check_equal(learning.end().restarts, 0, "restarts")
            learning.check_learned()


LINES = 4000


def test_a_drill():
    """Leaders are killed and stopped, their disks lost, and one answer of the store in 16 is a failure: the job learns
    what it would have learned, and each line of the other one is there once."""
    draw = random.Random("of a store")
    with Proxy(stored_contents.chosen_store().endpoint, seed=9) as proxy:
        cluster = Several(workers=3, coordinator=TIMING, worker=FAST_WORKER)
        cluster.environment = stored_contents.variables(endpoint=proxy.endpoint)
        with cluster:
            proxy.plan.draw(**{"500": 2, "503": 1, "lost": 2, "reset": 1})
            learning = Learning(cluster, workers=2, allowed=7, checkpoint_every=EVERY)
            prints = cluster.client.submit(script(f"i=0; while [ $i -lt {LINES} ]; do echo line $i; i=$((i+1)); "
                                                  "[ $((i % 40)) -ne 0 ] || sleep 0.2; done"))
            position = learning.until_position(5).position
            for _ in range(FAULTS):
                leader = cluster.leader()
                kills = draw.random() < 0.6
                leader.signal(signal.SIGKILL if kills else signal.SIGSTOP)
                cluster.follow(but=leader)
                if kills:
                    leader.wait_end()
                    shutil.rmtree(leader.state if draw.random() < 0.5 else f"{leader.state}/cache")
                    leader.start()
                else:
                    leader.signal(signal.SIGCONT)
                position += 3
                learning.allow(position)
                learning.client = cluster.client
                learning.until_position(position)
            learning.allow()
            check_equal(learning.end().restarts, 0, "restarts")
            learning.check_learned()
            cluster.client.wait(prints)
            check(cluster.client.log(prints) == b"".join(b"line %d\n" % i for i in range(LINES)), "lines are missing")


def test_another_cluster_is_refused():
    with Several(workers=0, coordinator=TIMING) as cluster:
        with Several(workers=0, coordinators=1, start=False) as other:
            other.contents = cluster.contents
            other.coordinators = [other.one(0)]
            one = other.coordinators[0].start()
            wait_for("it is refused", lambda: "the folder of --contents is that of a cluster" in one.log())


def test_another_place_is_refused():
    with Several(workers=0, coordinator=TIMING) as cluster:
        wait_for("the place has its number", lambda: "folder" in stored_contents.names(cluster.contents))
        follower = next(one for one in cluster.coordinators if one is not cluster.leader())
        follower.stop()
        place = cluster.contents
        cluster.contents = stored_contents.fresh_place()
        stray = cluster.one(cluster.coordinators.index(follower))
        stray.start(ready=False)
        check(stray.wait_end() != 0, "it leads with a place of its own")
        check_in("is another folder than the one that this cluster's coordinators share", stray.log(), "why not")
        cluster.contents = place
        follower.start()


if __name__ == "__main__":
    run(dict(globals()))
