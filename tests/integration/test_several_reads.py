# SPDX-License-Identifier: Apache-2.0
"""What clients are answered by three coordinators: nothing older than they have seen, and with --stale by each of
them, also while none leads."""
import json

import grpc

from client import CALL_S, Client, jobs_pb2
from several import PATIENCE_S, Several
from testing import check, check_equal, check_in, run, wait_for

PROGRAM = b"#!/bin/sh\nexit 0\n"


def listed(client, ledger=None, stale=False):
    """The numbers of the jobs, and what the end of the answer says."""
    metadata = ([("cadre-ledger", ledger)] if ledger else []) + ([("cadre-stale", "1")] if stale else [])
    answer, call = client.jobs.List.with_call(jobs_pb2.ListJobsRequest(), metadata=metadata, timeout=CALL_S)
    return [job.id for job in answer.jobs], dict(call.trailing_metadata())


def refused(client, ledger=None, stale=False):
    """The sentence and the end of the answer of a coordinator that does not list the jobs."""
    try:
        jobs, _ = listed(client, ledger, stale)
    except grpc.RpcError as error:
        check_equal(error.code(), grpc.StatusCode.UNAVAILABLE, "the status")
        return error.details(), dict(error.trailing_metadata())
    raise AssertionError(f"it was answered: {jobs}")


def position(text):
    """Cluster, term, index."""
    return [int(number) for number in text.split(".")]


def written(cluster, term, index):
    return f"{cluster}.{term}.{index}"


def follower(cluster, leader):
    """A client of one that does not lead."""
    one = next(one for one in cluster.coordinators if one is not leader)
    return one, Client(one.address)


def test_no_answer_is_older():
    with Several(workers=0) as cluster:
        leader = cluster.leader()
        first = cluster.client.submit(PROGRAM)
        jobs, end = listed(cluster.client)
        check_equal(jobs, [first], "the jobs")
        check("cadre-age-ms" not in end, "the leader's answer is of now")
        identity, term, index = position(end["cadre-ledger"])
        second = cluster.client.submit(PROGRAM)
        jobs, end = listed(cluster.client, ledger=end["cadre-ledger"])
        check_equal(jobs, [second, first], "the jobs")
        check(position(end["cadre-ledger"]) > [identity, term, index], "each entry counts")

        index = position(end["cadre-ledger"])[2]
        for newer in (written(identity, term, index + 1000), written(identity, term + 1, 0)):
            said, end = refused(cluster.client, ledger=newer)
            check_in("this client was answered from entry", said, "the sentence")
            check_equal(end["cadre-leader"], "", "the leader that it names")
        listed(cluster.client, ledger=written(identity + 1, term + 9, 9))  # of another cluster
        listed(cluster.client, ledger="nonsense")

        leader.kill()
        cluster.follow(but=leader)
        jobs, end = listed(cluster.client, ledger=written(identity, term, index))
        check_equal(jobs, [second, first], "the jobs")
        check(position(end["cadre-ledger"])[1] > term, "the newer term")
        leader.start()


def test_a_follower_answers_who_takes_old_answers():
    with Several(workers=0) as cluster:
        leader = cluster.leader()
        one, client = follower(cluster, leader)
        job = cluster.client.submit(PROGRAM)
        _, end = listed(cluster.client)
        newest = end["cadre-ledger"]
        check_equal(refused(client)[1]["cadre-leader"], leader.address, "the leader that it names")

        def answered():
            """Until it has what this client has seen, it names the leader."""
            try:
                return listed(client, ledger=newest, stale=True)
            except grpc.RpcError as error:
                check_equal(dict(error.trailing_metadata())["cadre-leader"], leader.address, "the leader")
                return None

        jobs, end = wait_for("the follower has the entry", answered, PATIENCE_S)
        check_equal(jobs, [job], "the jobs")
        check(int(end["cadre-age-ms"]) > 0, "its age")
        check(position(end["cadre-ledger"]) >= position(newest), "the entry of its copy")
        identity, term, index = position(end["cadre-ledger"])
        said, end = refused(client, ledger=written(identity, term, index + 1000), stale=True)
        check_equal(end["cadre-leader"], leader.address, "the leader that it names")

        shown = client.jobs.Get(jobs_pb2.JobRequest(id=job), metadata=[("cadre-stale", "1")], timeout=CALL_S)
        check_equal(shown.id, job, "the job")
        past = client.jobs.History(jobs_pb2.HistoryRequest(id=job), metadata=[("cadre-stale", "1")], timeout=CALL_S)
        check(past.events, "the events of its history")
        try:
            client.jobs.Cancel(jobs_pb2.JobRequest(id=job), metadata=[("cadre-stale", "1")], timeout=CALL_S)
            check(False, "only the leader changes something")
        except grpc.RpcError as error:
            check_equal(error.code(), grpc.StatusCode.UNAVAILABLE, "the status")

        # What is submitted later is seen, although the follower keeps what it has read for a moment.
        later = cluster.client.submit(PROGRAM)
        _, end = listed(cluster.client)
        newest = end["cadre-ledger"]
        check_equal(wait_for("the next entry", answered, PATIENCE_S)[0], [later, job], "the jobs")

        client.close()
        done = cluster.cadre("--coordinator", one.address, "jobs", "--stale")
        check_in("cadre jobs: as of ", done.stderr.decode(), "the age")
        leader.kill()
        cluster.follow(but=leader)  # perhaps the one that was asked: the copy is its engine's now
        check_equal(listed(cluster.client)[0], [later, job], "the jobs")
        leader.start()


def test_without_etcd_the_copies_are_read():
    with Several(workers=0) as cluster:
        leader = cluster.leader()
        job = cluster.client.submit(PROGRAM)
        one, client = follower(cluster, leader)
        wait_for("the follower has the job", lambda: listed(client, stale=True)[0] == [job], PATIENCE_S)
        cluster.etcds.members[0].kill()
        wait_for("none leads", lambda: not cluster.leads(leader) or "etcd does not answer" in leader.log(), PATIENCE_S)
        refused(cluster.client)
        for asked in (cluster.client, client):  # the one that led, too
            jobs, end = listed(asked, stale=True)
            check_equal(jobs, [job], "the jobs")
            check(int(end["cadre-age-ms"]) > 0, "their age")

        def age():
            return int(listed(client, stale=True)[1]["cadre-age-ms"])

        first = age()
        wait_for("they grow older", lambda: age() > first + 500, PATIENCE_S)
        done = cluster.cadre("jobs", "--stale", "--json")
        check_equal([entry["id"] for entry in json.loads(done.stdout)["jobs"]], [job], "the jobs")
        check_in("does not lead", done.stderr.decode(), "the age")
        client.close()
        one.kill()
        one.start()
        done = cluster.cadre("--coordinator", one.address, "jobs", "--stale")
        check_in("as of an unknown time", done.stderr.decode(), "the age of a copy that was read by none since")
        cluster.etcds.members[0].start()
        cluster.follow()
        check_equal(listed(cluster.client)[0], [job], "the jobs")


if __name__ == "__main__":
    run(globals())
