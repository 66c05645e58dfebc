# SPDX-License-Identifier: Apache-2.0
"""The command against a cluster: what a user may have meant by a job, worker or output that does not exist; and several
jobs that are cancelled at once."""
import json

from client import jobs_pb2
from cluster import Cluster, script
from testing import check_equal, check_in, run

SLEEPS = script("while :; do sleep 0.05; done")


def errors(cluster, *arguments, status=1):
    return cluster.cadre(*arguments, status=status).stderr.decode()


def test_jobs():
    with Cluster() as cluster:
        check_in("there is no job 7: see `cadre jobs`; there are none yet", errors(cluster, "job", "7"), "job")
        for _ in range(12):
            cluster.client.wait(cluster.client.submit(script("exit 0"), name="sort"))
        for verb in ("job", "logs", "cancel", "checkpoint", "get"):
            check_in("; did you mean 12?", errors(cluster, verb, "112"), verb)
        check_in("; did you mean 12?", errors(cluster, "verify", "112", status=3), "verify")
        check_in("; the newest is 12", errors(cluster, "job", "70345"), "a number that is near to none")
        check_in("is not the number of a job: `cadre jobs` lists them; did you mean 12, the newest job sort?",
                 errors(cluster, "logs", "sotr", status=2), "a job's name")
        said = errors(cluster, "logs", "frobnicate", status=2)
        check_in("`cadre jobs` lists them\n", said, "a name that is near to none")


def test_workers():
    with Cluster(workers=2) as cluster:
        for verb in ("workers", "drain"):
            said = errors(cluster, verb, "w00")
            check_equal(said, f"cadre {verb}: no worker is named w00: `cadre workers` lists them; did you mean w0?\n",
                        verb)
        check_in("`cadre workers` lists those that are drained\n", errors(cluster, "undrain", "w1"),
                 "a worker that there is")


def test_outputs():
    with Cluster() as cluster:
        job = cluster.client.submit(script("cd $CADRE_OUTPUT_DIR && mkdir more && echo x >model.bin && "
                                           "echo y >more/weights.bin"))
        cluster.client.wait(job)
        for wrong, right in (("0/modle.bin", "0/model.bin"), ("model.bin", "0/model.bin"),
                             ("more/wieghts.bin", "0/more/weights.bin")):
            said = errors(cluster, "get", str(job), wrong, "-o", f"{cluster.folder}/out")
            check_in(f"; did you mean {right}?", said, wrong)


def test_several_are_cancelled():
    with Cluster(slots=3) as cluster:
        jobs = [cluster.client.submit(SLEEPS) for _ in range(3)]
        for job in jobs:
            cluster.client.wait_running(job)
        done = cluster.cadre("cancel", str(jobs[0]), "77", "x", str(jobs[1]), status=2)
        check_equal(done.stdout.decode(),
                    f"job {jobs[0]} is being cancelled\njob {jobs[1]} is being cancelled\n", "what it prints")
        said = done.stderr.decode()
        check_in("job 77 does not exist", said, "its errors")
        check_in('"x" is not the number of a job', said, "its errors")
        for job in jobs[:2]:
            check_equal(cluster.client.wait(job).state, jobs_pb2.JOB_STATE_CANCELLED, f"job {job}")
        check_equal(cluster.client.get(jobs[2]).state, jobs_pb2.JOB_STATE_RUNNING, "the one that was not named")
        done = cluster.cadre("cancel", "--json", "77", str(jobs[2]), str(jobs[0]), status=1)
        answers = json.loads(done.stdout)["cancelled"]
        check_equal([(answer["argument"], answer["code"]) for answer in answers],
                    [("77", "NOT_FOUND"), (str(jobs[2]), "OK"), (str(jobs[0]), "OK")], "what became of each")
        check_equal((answers[0]["job"], answers[1]["job"]["id"], answers[2]["job"]["state"]),
                    (None, jobs[2], "cancelled"), "their jobs")
        check_in("job 77 does not exist", answers[0]["message"], "why not")
        cluster.client.wait(jobs[2])
        check_equal(json.loads(cluster.cadre("cancel", "--json", str(jobs[2])).stdout)["id"], jobs[2],
                    "one alone is an object as before")


if __name__ == "__main__":
    run(globals())
