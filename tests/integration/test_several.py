# SPDX-License-Identifier: Apache-2.0
"""Three coordinators with one ledger in etcd: whatever becomes of the one that leads, jobs compute on, another one
leads, and no step is lost, done twice or restarted."""
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess

from client import QUEUED, SUCCEEDED
from learning import FAST_WORKER, Learning
from cluster import clean_environment
from several import Several, TIMING
from testing import HANG_S, check, check_equal, check_in, run, wait_for


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
                              (["--ha", "etcd://10.0.0.1:2379/p"], "10.0.0.1"),
                              (["--ha", "127.0.0.1"], "--ha: address")):
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
    without_quorum(coordinators=3)


def test_no_quorum_and_the_same_one_leads_afterwards():
    """The workers' streams to it stay, and what it has refused meanwhile is sent again."""
    without_quorum(coordinators=1)


def without_quorum(coordinators):
    with Several(workers=2, coordinators=coordinators, members=3, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "save=1", workers=2, allowed=16)
        before = learning.until_position(16)
        leader = cluster.leader()
        killed = cluster.etcds.members[:2]
        for member in killed:
            member.kill()
        wait_for("the leader says so", lambda: "etcd does not answer" in leader.log())
        learning.allow(30)
        wait_for("a checkpoint is written, which the leader does not take now", lambda: glob.glob(
            f"{cluster.folder}/w*/tasks/*/**/*checkpoint-17*", recursive=True))
        for member in killed:
            member.start()
        cluster.follow()
        next_step(cluster, learning, before, 17)
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


def noted(daemon):
    """What the copy of one that does not run says of the cluster: etcd's number, the term, the secret."""
    ledger = sqlite3.connect(f"{daemon.state}/ledger.db")
    try:
        return ledger.execute("SELECT etcd_id, term_seen, secret FROM shared_log, meta").fetchone()
    finally:
        ledger.close()


def test_one_that_was_away_for_long():
    """What it lacks is trimmed from the log, so it installs a snapshot, which changes nothing of what it knows of the
    cluster; then it leads. A new one without any ledger comes in the same way."""
    with Several(workers=2, coordinator=[*TIMING, *SNAPSHOTS], worker=FAST_WORKER) as cluster:
        first = Learning(cluster, workers=2)
        first.end()
        leader = cluster.leader()
        away, other = [one for one in cluster.coordinators if one is not leader]
        away.stop()
        before = noted(away)
        for _ in range(2):
            made = leader.log().count("a snapshot of the ledger is made")
            Learning(cluster, workers=2).end()
            wait_for("a snapshot", lambda made=made: leader.log().count("a snapshot of the ledger is made") > made)
        wait_for("all but the last two are removed", lambda: len(cluster.snapshots()) == 2)
        other.kill()
        shutil.rmtree(other.state)
        for one in (away, other):
            one.start()
            wait_for(f"{one.name} installs a snapshot", lambda one=one: "which a snapshot replaces" in one.log())
        away.stop()
        check_equal(noted(away), before, "what its copy says of the cluster")
        away.start()
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


def test_who_dies_is_resigned_for():
    """By what the service manager runs afterwards, or by the process that it starts: the next one does not wait for the
    lease, which is longer than this test is patient."""
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER, lease="9m") as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        before = learning.until_position(5)
        for position, by_program in ((5, True), (20, False)):
            learning.allow(position + 15)
            leader = cluster.leader()
            leader.kill()
            if by_program:
                maintain(leader, "--resign")
            leader.start()
            cluster.follow()
            next_step(cluster, learning, before, position)
        learning.allow()
        check_equal(learning.end().restarts, 0, "restarts")
        learning.check_learned()


def maintain(daemon, *options, status=0):
    """Runs the program for one thing, on the state directory of a daemon that does not run; what it said."""
    at = daemon.argv.index("--ready-file")
    done = subprocess.run([*daemon.argv[:at], *daemon.argv[at + 2:], *options], capture_output=True, text=True,
                          timeout=HANG_S, check=False, env=clean_environment() | daemon.environment)
    check_equal(done.returncode, status, f"status of {options}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def without_ha(cluster):
    """The first coordinator, as one that leads alone."""
    alone = cluster.one(0)
    for option in ("--ha", "--ha-lease", "--name", "--contents"):
        at = alone.argv.index(option)
        del alone.argv[at:at + 2]
    return alone


def move_contents(source, target):
    for name in ("blobs", "jobs"):
        shutil.rmtree(os.path.join(target, name), ignore_errors=True)
        shutil.move(os.path.join(source, name), os.path.join(target, name))


def test_into_etcd_and_back():
    """With jobs that run and wait, and tasks that compute meanwhile."""
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER, start=False) as cluster:
        alone = without_ha(cluster)
        first = cluster.coordinators[0]
        cluster.coordinators.append(alone)
        alone.start()
        for worker in cluster.workers:
            worker.start()
        cluster.follow()
        running = Learning(cluster, workers=2, allowed=7)
        before = running.until_position(5)
        waiting = Learning(cluster, workers=2)
        alone.stop()
        check_in("of a coordinator that led alone", refused(first), "a ledger that is in no log")
        exported = os.path.join(cluster.folder, "exported.db")
        said = maintain(cluster.coordinators[1], "--export", exported, status=1)
        check_in("holds no ledger", said, "a state directory without one")
        check(not os.path.exists(exported), "an empty ledger is exported")
        check_in("blobs was not moved", maintain(first, "--import", status=1), "contents that are not shared")
        move_contents(alone.state, cluster.contents)
        maintain(first, "--import")
        check_in("already", maintain(first, "--import", status=1), "twice")
        for one in cluster.coordinators[:3]:
            one.start()
        cluster.follow()
        running.allow(20)
        next_step(cluster, running, before, 5)
        for one in cluster.coordinators[:3]:
            one.stop()
        check_in("is a copy of a log in etcd", refused(alone), "a copy that leads alone")
        newest = cluster.coordinators[2]  # it was stopped last
        maintain(newest, "--export", exported)
        check_in("there is such a file", maintain(newest, "--export", exported, status=1), "twice")
        shutil.rmtree(alone.state)
        os.mkdir(alone.state)
        shutil.move(exported, os.path.join(alone.state, "ledger.db"))
        move_contents(cluster.contents, alone.state)
        alone.start()
        cluster.follow()
        running.client = waiting.client = cluster.client
        running.allow()
        for learning in (running, waiting):
            check_equal(learning.end().restarts, 0, "restarts")
            learning.check_learned()


def refused(daemon):
    """Its log, after a start that fails."""
    daemon.start(ready=False)
    check(daemon.wait_end() != 0, f"{daemon.name} starts")
    return daemon.log()


def test_a_leader_that_was_replaced_is_ended():
    """SIGTERM comes while it starts again as a follower."""
    with Several(workers=0) as cluster:
        for _ in range(3):
            leader = cluster.leader()
            leader.signal(signal.SIGSTOP)
            cluster.follow(but=leader)
            leader.signal(signal.SIGCONT)
            wait_for("it is replaced", lambda: "takes no part any more" in leader.log())
            leader.stop()
            leader.start()


def test_a_restored_etcd_is_seeded_again():
    with Several(workers=2, coordinator=TIMING, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=7)
        before = learning.until_position(5)
        member = cluster.etcds.members[0]
        state, backup = os.path.join(member.folder, member.name), os.path.join(member.folder, "backup")
        member.kill()
        shutil.copytree(state, backup)
        member.start()
        cluster.cadre("submit", "--detach", "/bin/true")  # is queued, and the backup does not know of it
        newest = cluster.leader()
        for one in cluster.coordinators:
            one.kill()
        member.kill()
        shutil.rmtree(state)
        os.rename(backup, state)
        member.start()
        wait_for("etcd is back", member.is_healthy)
        for one in cluster.coordinators:
            one.start()
        wait_for("it is refused", lambda: "--reseed" in newest.log())
        for one in cluster.coordinators:
            one.kill()
        maintain(newest, "--reseed")
        for one in cluster.coordinators:
            one.start()
        cluster.follow()
        learning.allow(20)
        next_step(cluster, learning, before, 5)
        said = json.loads(cluster.cadre("jobs", "--json").stdout)
        check_equal(len(said["jobs"]), 2, "jobs")
        learning.allow()
        learning.end()
        learning.check_learned()


if __name__ == "__main__":
    run(dict(globals()))
