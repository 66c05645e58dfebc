# SPDX-License-Identifier: Apache-2.0
"""What people see of three coordinators: pages of metrics and health, the list, and the output of tasks, of which each
line is there once, in order, whichever coordinators lead meanwhile."""
import json
import os
import subprocess
import tempfile

import grpc

from client import Client, SUCCEEDED, coordinators_pb2
from cluster import clean_environment, program, script
from exposition import Metrics
from learning import FAST, FAST_WORKER
from pages import ask
from several import Several
from testing import HANG_S, check, check_equal, check_in, run, wait_for


def page(daemon):
    return Metrics(ask(daemon, "/metrics")[1])


def is_well(daemon):
    """False also while it starts again, because another one leads."""
    try:
        return page(daemon)["cadre_coordinator_etcd_failing"] == 0 and ask(daemon, "/healthz")[0] == 200
    except OSError:
        return False


def all_follow(cluster):
    pages = [page(one) for one in cluster.coordinators]
    heads = {one["cadre_coordinator_log_head_index"] for one in pages}
    applied = {one["cadre_coordinator_log_applied_index"] for one in pages}
    return pages if len(heads) == 1 and heads == applied else None


def test_pages():
    with Several(workers=0, coordinator=["--http", "127.0.0.1:0", *FAST]) as cluster:
        leader = cluster.leader()
        before = page(leader)["cadre_coordinator_log_head_index"]
        cluster.client.submit(script("true"))  # waits: the ledger grows while one leads
        wait_for("the log is longer", lambda: page(leader)["cadre_coordinator_log_head_index"] > before)
        pages = wait_for("all have the same entries", lambda: all_follow(cluster))
        for row in json.loads(cluster.cadre("coordinators", "--json").stdout)["coordinators"]:
            check(not row["leader"] or row["lag_entries"] == 0, f"its own copy: {row}")
        check_equal(sum(one["cadre_coordinator_leads"] for one in pages), 1, "coordinators that lead")
        check_equal({one["cadre_coordinator_term"] for one in pages}, {1}, "terms")
        for one, shown in zip(cluster.coordinators, pages):
            check_equal(shown["cadre_coordinator_leads"], one is leader, f"whether {one.name} leads")
            check_equal(shown["cadre_coordinator_time_to_send_seconds"] > 0, one is leader, f"the time of {one.name}")
            check_equal(shown["cadre_coordinator_etcd_failing"], 0, f"failures of {one.name}")
            check_equal(ask(one, "/healthz")[0], 200, f"the health of {one.name}")
        cluster.etcds.members[0].kill()
        wait_for("etcd is missed", lambda: page(leader)["cadre_coordinator_etcd_failing"] == 1)
        wait_for("it may not send", lambda: page(leader)["cadre_coordinator_leads"] == 0)
        check(page(leader)["cadre_coordinator_etcd_failures_total"] > 0, "failures are counted")
        check_equal(ask(leader, "/healthz")[0], 503, "its health")
        cluster.etcds.members[0].start()
        wait_for("all is well", lambda: all(is_well(one) for one in cluster.coordinators))


def test_the_page_of_one_that_follows():
    with Several(workers=0, coordinators=2,
                 coordinator=["--http", "127.0.0.1:0", "--listen", "127.0.0.1:0", *FAST]) as cluster:
        leader = cluster.leader()
        other = next(one for one in cluster.coordinators if one is not leader)
        check_equal(ask(leader, "/api/jobs")[0], 200, "the page of the leader")
        said = wait_for("it knows who leads", lambda: next((
            said for said in [ask(other, "/api/jobs")] if f"{leader.name} leads" in said[1]), None))
        check_equal(said[0], 503, f"of {said[1]}")
        check_in(f"the coordinator {other.name} does not lead", said[1], "its page")
        check_in(f"{leader.name} leads, which clients and workers reach at 127.0.0.1:", said[1], "its page")


def states(daemon):
    """What it says of all coordinators, whether it leads or not."""
    client = Client(daemon.address)
    try:
        listed = client.coordinators.List(coordinators_pb2.ListCoordinatorsRequest(), timeout=HANG_S).coordinators
        return {one.name: one.state for one in listed}
    finally:
        client.close()


def test_the_list():
    with Several(workers=0, coordinator=FAST) as cluster:
        leader = cluster.leader()
        wanted = {one.name: "leading" if one is leader else "follower" for one in cluster.coordinators}
        for one in cluster.coordinators:
            wait_for(f"{one.name} knows all", lambda one=one: states(one) == wanted)
        shown = json.loads(cluster.cadre("coordinators", "--json").stdout)["coordinators"]
        check_equal([one["name"] for one in shown], sorted(wanted), "their names")
        check_equal([one["name"] for one in shown if one["leader"]], [leader.name], "who leads")
        check_in("leading", cluster.cadre("coordinators").stdout.decode(), "the table")
        leader.kill()
        after = cluster.leader(but=leader)
        wait_for("it is away", lambda: states(after) == wanted | {leader.name: "away", after.name: "leading"})
        shown = json.loads(cluster.cadre("coordinators", "--json").stdout)["coordinators"]
        check_equal([one["name"] for one in shown if one["leader"]], [after.name], "who leads now")
        leader.start()


def test_the_list_without_etcd():
    """Of the others nothing is known then: they may be as well as the one that says so."""
    with Several(workers=0, coordinator=FAST) as cluster:
        leader = cluster.leader()
        wanted = {one.name: "leading" if one is leader else "follower" for one in cluster.coordinators}
        for one in cluster.coordinators:
            wait_for(f"{one.name} knows all", lambda one=one: states(one) == wanted)
        cluster.etcds.members[0].kill()
        for one in cluster.coordinators:
            others = [other.name for other in cluster.coordinators if other is not one]
            wait_for(f"{one.name} knows none of the others",
                     lambda one=one, others=others: {states(one)[name] for name in others} == {"unknown"})
            own = states(one)[one.name]
            check_in(own, ["suspended"] if one is leader else ["follower", "candidate"], "its own state")
        cluster.etcds.members[0].start()

        def all_know_all():
            try:
                return all(sorted(states(one).values()) == ["follower", "follower", "leading"]
                           for one in cluster.coordinators)
            except grpc.RpcError:
                return False  # one that was replaced starts again

        wait_for("all know all", all_know_all)


def numbered(count):
    return "".join(f"{number}\n" for number in range(1, count + 1))


def test_each_line_is_there_once():
    with Several(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        folder = tempfile.mkdtemp(prefix="gate-", dir=cluster.folder)
        os.chmod(folder, 0o755)  # tasks run as another user when we are root
        end = os.path.join(folder, "end")
        job = cluster.client.submit(script(f'n=0; until [ -e {end} ]; do n=$((n+1)); echo $n; sleep 0.005; done'))
        cluster.client.wait_running(job)
        with subprocess.Popen([program("cadre"), "logs", "-f", str(job)], stdout=subprocess.PIPE, bufsize=0,
                              env=clean_environment() | {"CADRE_COORDINATOR": cluster.address}) as follower:
            first = follower.stdout.readline()
            for _ in range(2):
                seen = len(cluster.client.log(job))
                leader = cluster.leader()
                leader.kill()
                cluster.follow(but=leader)
                wait_for("the log goes on", lambda: len(cluster.client.log(job)) > seen + 200)
                leader.start()
            open(end, "wb").close()
            check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
            followed = (first + follower.communicate(timeout=HANG_S)[0]).decode()
        kept = cluster.client.log(job).decode()
        check_equal(kept, numbered(kept.count("\n")), "the log")
        check_equal(followed, kept, "what a client that followed has")


if __name__ == "__main__":
    run(dict(globals()))
