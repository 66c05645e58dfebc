# SPDX-License-Identifier: Apache-2.0
"""What an operator of three coordinators can get wrong, and reads then: in the log, and of `cadre coordinators`, which
also one that does not lead answers."""
import json
import shutil

from learning import FAST_WORKER
from several import Several
from testing import check, check_equal, check_in, run, wait_for

SILENT = "etcd does not answer this coordinator, which cannot lead until it does"


def shown(cluster, daemon):
    """What this one says of all coordinators, by name."""
    said = cluster.cadre("--coordinator", daemon.address, "coordinators", "--json").stdout
    return {one["name"]: one for one in json.loads(said)["coordinators"]}


def say(cluster, daemon, *words, status):
    return cluster.cadre("--coordinator", daemon.address, *words, status=status).stderr.decode()


def test_etcd_is_not_there():
    with Several(workers=0, start=False) as cluster:
        cluster.etcds.members[0].kill()
        one = cluster.coordinators[0]
        one.start()
        wait_for("its log says so", lambda: SILENT in one.log())
        check_in(cluster.etcds.members[0].endpoint(), one.log(), "where etcd is not")
        itself = shown(cluster, one)["c0"]
        check_equal(itself["state"], "follower", "its state")
        check_in("etcd at", itself["text"], "what it says of itself")
        said = say(cluster, one, "jobs", status=3)
        check_in("the coordinator c0 does not lead, and it is not known which one does, because etcd at", said, "jobs")
        check("start cadre-coordinator" not in said, f"it is started: {said}")
        cluster.etcds.members[0].start()
        wait_for("etcd is back", lambda: "etcd answers this coordinator again" in one.log())
        cluster.follow()
        check_equal(one.log().count(SILENT), 1, "how often it was said")


def test_etcd_wants_a_password():
    with Several(workers=0, start=False) as cluster:
        for words in (("user", "add", "root:r"), ("user", "grant-role", "root", "root"), ("auth", "enable")):
            cluster.etcds.ctl(*words)
        wrong = f"{cluster.folder}/password"
        with open(wrong, "w", encoding="ascii") as file:
            file.write("wrong\n")
        without, guesses = cluster.coordinators[:2]
        guesses.argv += ["--ha-user", "root", "--ha-password-file", wrong]
        for one in (without, guesses):
            one.start()
            wait_for(f"the log of {one.name} says so", lambda one=one: SILENT in one.log())
            check_in("user", one.log(), f"the reason of {one.name}")
        cluster.etcds.ctl("auth", "disable", user="root:r")
        cluster.follow()


def test_one_that_is_refused():
    """It has the ledger of another prefix."""
    with Several(workers=0) as cluster:
        leader = cluster.leader()
        one = next(one for one in cluster.coordinators if one is not leader)
        wait_for("it has the ledger", lambda: f"another coordinator leads name={leader.name}" in one.log())
        one.stop()
        one.argv += ["--ha", cluster.etcds.address("another")]
        one.start()
        wait_for("it is refused", lambda: "takes no part until an operator has looked" in one.log())
        itself = shown(cluster, one)[one.name]
        check_equal(itself["state"], "refused", "its state")
        check_in("correct the prefix", itself["text"], "what it says of itself")
        check_in(f"the coordinator {one.name} takes no part", say(cluster, one, "jobs", status=3), "jobs")


def test_etcd_is_restored():
    """With --accept-restored all go on with the older ledger, and what they have of it is theirs at the next start."""
    with Several(workers=1, coordinators=2, worker=FAST_WORKER, lease="5s") as cluster:
        etcd, cadre = cluster.etcds.members[0], cluster.cadre
        data = f"{etcd.folder}/{etcd.name}"
        cadre("submit", "/bin/true")
        etcd.kill()
        shutil.copytree(data, f"{data}.backup")
        etcd.start()
        cluster.follow()
        cadre("submit", "/bin/true")
        etcd.kill()
        shutil.rmtree(data)
        shutil.copytree(f"{data}.backup", data)
        etcd.start()
        for one in cluster.coordinators:
            wait_for(f"{one.name} is refused", lambda one=one: "--accept-restored" in one.log())
        for options in (["--accept-restored"], []):
            for one in cluster.coordinators:
                one.stop()
            for one in cluster.coordinators:
                argv = list(one.argv)
                one.argv += options
                one.start()
                one.argv = argv
            cluster.follow()
            check_equal(len(json.loads(cadre("jobs", "--json").stdout)["jobs"]), 1, "the jobs of before the backup")


def test_two_of_one_name():
    with Several(workers=0) as cluster:
        other = cluster.coordinators[1]
        other.stop()
        other.argv += ["--name", "c0"]
        other.start()
        text = "another coordinator uses this one's name"
        wait_for("one of them finds out", lambda: text in other.log() or text in cluster.coordinators[0].log())
        check(text not in cluster.coordinators[2].log(), "the one with a name of its own says so")


def test_names_and_addresses():
    with Several(workers=0, start=False) as cluster:
        for options, text in ((["--name", "a b"], "--name a b"), (["--name", ""], "--name"),
                              (["--advertise", "h1"], "--advertise"), (["--advertise", "unix:/a,,"], "--advertise"),
                              (["--ha-user", "a", "--ha-password-file", "/nosuch"], "--ha-password-file")):
            one = cluster.one(0)
            one.argv += options
            one.start(ready=False)
            check(one.wait_end() != 0, f"it starts with {options}")
            check_in(text, one.log(), f"with {options}")


def test_only_one_is_shown_as_leading():
    """Though what the one that was killed wrote of itself is still there."""
    with Several(workers=0, lease="1s") as cluster:
        leader = cluster.leader()
        wait_for("it has written that", lambda: all(
            shown(cluster, one)[leader.name]["state"] == "leading" for one in cluster.coordinators))
        leader.kill()
        new = cluster.follow(but=leader)
        states = {name: one["state"] for name, one in shown(cluster, new).items()}
        check_equal([name for name, state in states.items() if state == "leading"], [new.name], f"of {states}")
        leader.start()


if __name__ == "__main__":
    run(dict(globals()))
