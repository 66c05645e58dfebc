# SPDX-License-Identifier: Apache-2.0
"""An upgrade of one coordinator after the other, to a version that writes another format of the log: it is written
once all know it, and not before."""
import os

from learning import FAST_WORKER, Learning
from several import Several, TIMING
from testing import check, check_equal, check_in, run, wait_for

RAISED = "all coordinators know a newer format of the log"
NEWER = os.environ.get("CADRE_TEST_NEWER_COORDINATOR", "")


def all_have_written(cluster):
    """What the one that leads has read of the others is what they are now."""
    leader = cluster.leader()
    wait_for("all are known", lambda: {one["state"] for one in cluster.shown(leader).values()} ==
             {"leading", "follower"} and len(cluster.shown(leader)) == len(cluster.coordinators))


def learn(cluster):
    learning = Learning(cluster, workers=1)
    check_equal(learning.end().restarts, 0, "restarts")
    learning.check_learned()


def start_as(cluster, daemon, program):
    """One that leads hands over."""
    daemon.stop()
    daemon.argv[0] = program
    daemon.start()
    cluster.follow()


def raised(cluster):
    return [one.name for one in cluster.coordinators if RAISED in one.log()]


def test_one_after_the_other():
    with Several(workers=1, coordinator=[*TIMING, "--ha-raise-format-after", "0s"], worker=FAST_WORKER) as cluster:
        older = cluster.coordinators[0].argv[0]
        leader = cluster.leader()
        followers = [one for one in cluster.coordinators if one is not leader]
        learn(cluster)
        running = Learning(cluster, workers=1, allowed=7)
        before = running.until_position(5)
        for one in [*followers, leader]:
            all_have_written(cluster)
            check_equal(raised(cluster), [], f"who raised the format before {one.name} is of the newer version")
            cluster.cadre("submit", "--detach", "/bin/true")
            start_as(cluster, one, NEWER)
        all_have_written(cluster)
        cluster.cadre("submit", "--detach", "/bin/true")
        wait_for("the format is raised", lambda: raised(cluster) == [cluster.leader().name])
        running.client = cluster.client
        running.allow()
        after = running.end()
        check_equal((after.restarts, after.generation), (0, before.generation), "restarts and the generation")
        running.check_learned()
        for one in cluster.coordinators:
            check("takes no part until an operator" not in one.log(), f"{one.name} is refused")

        late = next(one for one in cluster.coordinators if one is not cluster.leader())
        start_as(cluster, late, older)
        wait_for("an older one is refused", lambda: cluster.shown(late)[late.name]["state"] == "refused")
        check_in("the ledger has format 2, this version knows formats up to 1: install a newer version",
                 cluster.shown(late)[late.name]["text"], "what it says of itself")
        start_as(cluster, late, NEWER)
        all_have_written(cluster)
        for one in cluster.coordinators:
            if one is not late:
                one.stop()
        check(cluster.follow() is late, "it leads, with all entries")
        learn(cluster)
        for one in cluster.coordinators:
            if one is not late:
                one.start()
        check_equal(sum(one.log().count(RAISED) for one in cluster.coordinators), 1, "how often it was raised")


def test_one_that_is_away_has_its_say():
    """It may come back; what is raised stays."""
    with Several(workers=1, coordinators=2, coordinator=[*TIMING, "--ha-raise-format-after", "0s"],
                 worker=FAST_WORKER) as cluster:
        all_have_written(cluster)
        leader = cluster.leader()
        away = next(one for one in cluster.coordinators if one is not leader)
        older = away.argv[0]
        away.kill()
        start_as(cluster, leader, NEWER)
        wait_for("it is away", lambda: cluster.shown(leader)[away.name]["state"] == "away")
        learn(cluster)
        check_equal(raised(cluster), [], "who raised the format")
        away.start()
        check_equal(away.argv[0], older, "its version")
        all_have_written(cluster)
        leader.stop()
        cluster.follow(but=leader)
        learn(cluster)
        leader.start()


if __name__ == "__main__":
    run(dict(globals()))
