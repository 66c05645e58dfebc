# SPDX-License-Identifier: Apache-2.0
"""Three coordinators with one ledger in etcd: whatever becomes of the one that leads, jobs compute on, another one
leads, and no step is lost, done twice or restarted."""
import os
import shutil
import signal

from client import QUEUED, SUCCEEDED
from learning import FAST_WORKER, Learning
from several import Several
from testing import check, check_equal, check_in, run, scaled, wait_for

# The leases of workers are longer than a change of the leader takes.
TIMING = ["--lease", scaled("10s"), "--rewind-patience", scaled("60s"), "--report-timeout", scaled("2s")]


def lives(info):
    return {task.slot: (task.incarnation, task.pid) for task in info.tasks}


def adopted(info):
    return all(task.pid for task in info.tasks)


def next_step(cluster, learning, before, position):
    """The job goes on under the coordinator that leads now, with the same tasks."""
    learning.client = cluster.client
    after = learning.until(lambda info: info.position > position and adopted(info), "the next step")
    check_equal(lives(after), lives(before), "the lives of the tasks")
    check_equal(after.generation, before.generation, "the generation")


def test_one_leads_and_a_job_runs():
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2)
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()
        cluster.check_all_follow()


def test_the_leader_is_killed():
    with Several(workers=3, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=3, allowed=7)
        for position in (5, 20, 35):
            before = learning.until_position(position)
            learning.allow(position + 15)
            leader = cluster.leader()
            leader.kill()
            cluster.follow(but=leader)
            next_step(cluster, learning, before, position)
            leader.start()
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def test_the_leader_ends_in_order():
    """The next one does not wait for the lease, which is longer than this test is patient."""
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER, lease="9m") as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        before = learning.until_position(5)
        learning.allow(20)
        leader = cluster.leader()
        leader.stop()
        cluster.follow(but=leader)
        next_step(cluster, learning, before, 5)
        learning.allow()
        learning.end()
        learning.check_learned()
        leader.start()


def test_jobs_of_before():
    """What was submitted and what had ended is known to the next one; a submission goes to it."""
    with Several(workers=1, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        done = Learning(cluster, workers=1)
        done.end()
        running = Learning(cluster, workers=1, allowed=7)
        running.until_position(5)
        waiting = Learning(cluster, workers=1)
        check_equal(waiting.get().state, QUEUED, "the one that waits")
        leader = cluster.leader()
        leader.kill()
        listed = cluster.cadre("jobs").stdout.decode()
        said = cluster.cadre("submit", "--detach", "/bin/true").stdout.decode()
        cluster.follow(but=leader)
        for learning in (done, running, waiting):
            learning.client = cluster.client
        check_equal(done.get().state, SUCCEEDED, "the one that had ended")
        running.allow()
        running.end()
        waiting.end()
        for learning in (done, running, waiting):
            learning.check_learned()
        check(said.strip() != "", "the submission was answered")
        check_in("learner", listed, "jobs while no coordinator leads yet")
        leader.start()


def test_bad_options():
    with Several(workers=0, start=False) as cluster:
        cluster.etcds.members[0].kill()
        for options, text in ((["--contents", ""], "needs --contents"), (["--contents", "/nosuch"], "/nosuch"),
                              (["--ha", "etcd://10.0.0.1:2379/p"], "10.0.0.1"), (["--ha", "127.0.0.1"], "etcd://")):
            one = cluster.one(0)
            if options == ["--contents", ""]:
                at = one.argv.index("--contents")
                del one.argv[at:at + 2]
            else:
                one.argv += options
            one.start(ready=False)
            check(one.wait_end() != 0, f"it starts with {options}")
            check_in(text, one.log(), f"with {options}")


def test_no_quorum():
    """Nothing is sent that is not in the log; all goes on by itself."""
    with Several(workers=2, members=3, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        before = learning.until_position(5)
        leader = cluster.leader()
        killed = cluster.etcds.members[:2]
        for member in killed:
            member.kill()
        wait_for("the leader says so", lambda: "etcd does not answer" in leader.log())
        learning.allow(20)
        for member in killed:
            member.start()
        cluster.follow()
        next_step(cluster, learning, before, 5)
        learning.allow()
        learning.end()
        learning.check_learned()


def test_the_leader_is_stopped():
    """It goes on after another has led, and starts again as a follower."""
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        before = learning.until_position(5)
        learning.allow(20)
        leader = cluster.leader()
        leader.signal(signal.SIGSTOP)
        cluster.follow(but=leader)
        leader.signal(signal.SIGCONT)
        next_step(cluster, learning, before, 5)
        wait_for("it follows", lambda: leader.log().count("this coordinator follows") == 2)
        check(leader.runs(), "it runs under the same pid")
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


SNAPSHOTS = ["--ha-snapshot-bytes", "4KiB", "--ha-snapshot-every", "1s", "--ha-keep", "0s"]


def test_one_that_was_away_for_long():
    """What it lacks is trimmed from the log, so it installs a snapshot; then it leads. A new one without any ledger
    comes in the same way."""
    with Several(workers=2, coordinator=[*TIMING, *SNAPSHOTS], worker=FAST_WORKER) as cluster:
        first = Learning(cluster, workers=2)
        first.end()
        leader = cluster.leader()
        away, other = [one for one in cluster.coordinators if one is not leader]
        away.kill()
        for _ in range(2):
            made = leader.log().count("a snapshot of the ledger is made")
            Learning(cluster, workers=2).end()
            wait_for("a snapshot", lambda made=made: leader.log().count("a snapshot of the ledger is made") > made)
        wait_for("the older ones are removed", lambda: len(os.listdir(f"{cluster.contents}/snapshots")) == 1)
        other.kill()
        shutil.rmtree(other.state)
        for one in (away, other):
            one.start()
            wait_for(f"{one.name} installs a snapshot", lambda one=one: "which a snapshot replaces" in one.log())
        running = Learning(cluster, workers=2, allowed=7)
        running.until_position(5)
        leader.kill()
        cluster.follow(but=leader)
        first.client = running.client = cluster.client
        running.allow()
        check_equal(running.end().restarts, 0, "restarts")
        running.check_learned()
        first.check_learned()
        leader.start()


if __name__ == "__main__":
    run(dict(globals()))
