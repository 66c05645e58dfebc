# SPDX-License-Identifier: Apache-2.0
"""What an operator of three coordinators can get wrong, and reads then: in the log, and of `cadre coordinators`, which
also one that does not lead answers."""
import json
import os
import shutil
import signal

from learning import FAST_WORKER
from several import Several
from testing import check, check_equal, check_in, run, wait_for

SILENT = "etcd does not answer this coordinator, which cannot lead until it does"


def say(cluster, daemon, *words, status):
    return cluster.cadre("--coordinator", daemon.address, *words, status=status).stderr.decode()


def test_etcd_is_not_there():
    with Several(workers=0, start=False) as cluster:
        cluster.etcds.members[0].kill()
        one = cluster.coordinators[0]
        one.start()
        wait_for("its log says so", lambda: SILENT in one.log())
        check_in(cluster.etcds.members[0].endpoint(), one.log(), "where etcd is not")
        itself = cluster.shown(one)["c0"]
        check_equal(itself["state"], "follower", "its state")
        check_in("etcd at", itself["text"], "what it says of itself")
        said = say(cluster, one, "jobs", status=3)
        check_in("the coordinator c0 does not lead, and it is not known which one does, because etcd at", said, "jobs")
        check_in("as when it has no quorum", said, "jobs")
        check_in("--stale", said, "jobs")
        check_in("daemon: ready", one.log(), "it is ready all the same")
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
            check_in("login", one.log(), f"the reason of {one.name}")
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
        itself = cluster.shown(one)[one.name]
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


def ends(daemon, text):
    """It ends by itself, and says why."""
    check(daemon.wait_end() != 0, f"{daemon.name} ends well")
    check_in(text, daemon.log(), f"the log of {daemon.name}")


def test_two_of_one_name():
    """The second one ends, however often it is started, as long as the first one is alive; the first one can be killed
    and started again meanwhile. Once the first one is gone the second one has its name."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        first, other = cluster.coordinators
        wait_for("its name is known", lambda: "c0" in cluster.shown(other))
        other.stop()
        other.argv += ["--name", "c0"]
        cluster.follow()
        ready = other.log().count("daemon: ready")
        for _ in range(2):
            other.start(ready=False)
            ends(other, f"another coordinator has the name c0, the one at {first.address}")
            check("this coordinator leads" not in other.log().rsplit("waits for its name", 1)[1], "it leads meanwhile")
            check_equal(other.log().count("daemon: ready"), ready, "how often it was ready")
            first.kill()
            first.start()
            wait_for("it leads again, and waits for no name",
                     lambda: cluster.leads(first) and "waits for its name" not in first.log())
        first.stop()
        other.start()
        cluster.follow(but=first)
        check_equal(cluster.shown(other)["c0"]["address"], other.address, "where c0 is")
        first.start(ready=False)
        ends(first, f"another coordinator has the name c0, the one at {other.address}")


def test_a_name_whose_state_folder_is_lost():
    """It waits as long as another one might be alive, and says so."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        one = cluster.coordinators[0]
        wait_for("its name is known", lambda: "c0" in cluster.shown(cluster.coordinators[1]))
        one.kill()
        shutil.rmtree(one.state)
        one.start()
        wait_for("it waits", lambda: "this coordinator waits for its name" in one.log())
        check_in("the name c0 is that of a coordinator at", cluster.shown(one)["c0"]["text"], "what it says of itself")
        wait_for("it has its name", lambda: cluster.shown(one)["c0"]["text"] == "")
        cluster.coordinators[1].stop()
        check(cluster.leader() is one, "it leads")
        cluster.coordinators[1].start()


def test_one_that_was_stopped_is_replaced_and_goes_on():
    """Its name is another one's meanwhile: it ends."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        first, other = cluster.coordinators
        wait_for("its name is known", lambda: "c0" in cluster.shown(other))
        other.stop()
        other.argv += ["--name", "c0"]
        first.signal(signal.SIGSTOP)
        other.start()
        cluster.follow(but=first)
        first.signal(signal.SIGCONT)
        ends(first, f"another coordinator has the name c0, the one at {other.address}")
        check(cluster.leads(other), "the other one leads")


def test_contents_of_another_cluster():
    """Two clusters share no folder, nor does one that leads alone; nor does a new cluster begin over the contents of
    one whose ledger is gone."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        cluster.leader()
        known, new = cluster.coordinators
        for one in cluster.coordinators:
            one.stop()
        new.argv += ["--ha", cluster.etcds.address("another")]
        text = "etcd holds no ledger beneath the prefix of --ha, and the folder of --contents is that of a cluster"
        shutil.rmtree(new.state)
        new.start()
        wait_for("a new one is refused", lambda: text in new.log())
        new.stop()
        own = f"{cluster.folder}/own"
        os.mkdir(own)
        contents = ["--contents", own]
        argv = list(new.argv)
        new.argv += contents
        new.start()
        wait_for("the other cluster is there", lambda: cluster.leads(new))
        new.stop()
        new.argv = argv
        new.start(ready=False)
        ends(new, f"--contents {cluster.contents} is the folder of another cluster")
        known.argv += contents
        known.start(ready=False)
        ends(known, f"--contents {own} is the folder of another cluster")
        shutil.rmtree(new.state)
        new.start()
        wait_for("one without a ledger is refused", lambda: "than that of the contents" in new.log())
        new.stop()
        shutil.rmtree(known.state)
        for option in ("--ha", "--ha-lease", "--name"):
            at = known.argv.index(option)
            del known.argv[at:at + 2]
        known.start(ready=False)
        ends(known, f"--contents {own} is the folder of a cluster with several coordinators")


def test_contents_that_are_not_shared():
    """One whose folder is another one than that of the others, as when nothing is mounted there, does not start, with
    and without a ledger of before, also when it is the only one, and leaves no file there. A copy of the folder is as
    good."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        mark = f"{cluster.contents}/folder"
        leader = cluster.leader()
        wait_for("the folder has a number", lambda: os.path.exists(mark))
        wait_for("etcd has it", lambda: "contents" in cluster.etcds.ctl("get", "cadre/contents"))
        other = next(one for one in cluster.coordinators if one is not leader)
        wait_for("it has the ledger", lambda: f"another coordinator leads name={leader.name}" in other.log())
        argv, own = list(other.argv), f"{cluster.folder}/own"
        os.mkdir(own)
        text = f"--contents {own} is another folder than the one that this cluster's coordinators share"
        for lost in (False, True):
            other.stop()
            if lost:
                shutil.rmtree(other.state)
            other.argv = argv + ["--contents", own]
            other.start(ready=False)
            ends(other, text)
            check_equal([name for name in os.listdir(own) if os.listdir(f"{own}/{name}")], [], "what it leaves there")
            other.argv = argv
            other.start()
        other.stop()
        leader.stop()
        other.argv = argv + ["--contents", own]
        other.start(ready=False)
        ends(other, text)
        check("this coordinator leads" not in other.log().rsplit(text, 2)[1], "it leads")
        shutil.copytree(cluster.contents, own, dirs_exist_ok=True)
        other.start()
        cluster.follow(but=leader)


def test_contents_of_a_version_without_numbers():
    """The folder and etcd get one while coordinators run, as with the first leader of a newer version."""
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        leader, mark = cluster.leader(), f"{cluster.contents}/folder"
        wait_for("etcd has it", lambda: "contents" in cluster.etcds.ctl("get", "cadre/contents"))
        for one in cluster.coordinators:
            one.stop()
        os.unlink(mark)
        cluster.etcds.ctl("del", "cadre/contents")
        for one in cluster.coordinators:
            one.start()
        leader = cluster.follow()
        wait_for("the folder has a number again", lambda: os.path.exists(mark))
        wait_for("etcd has it", lambda: "contents" in cluster.etcds.ctl("get", "cadre/contents"))
        leader.kill()
        cluster.follow(but=leader)
        leader.start()


def test_prefix_of_another_cluster():
    with Several(workers=0, coordinators=2, lease="2s") as cluster:
        cluster.leader()
        one = cluster.coordinators[1]
        one.stop()
        shutil.rmtree(one.state)
        os.mkdir(f"{cluster.folder}/own")
        one.argv += ["--contents", f"{cluster.folder}/own"]
        argv = list(one.argv)
        one.argv += ["--ha", cluster.etcds.address("another")]
        one.start()
        wait_for("its cluster is there", lambda: cluster.leads(one))
        one.stop()
        one.argv = argv
        one.start()
        text = "etcd holds the ledger of another cluster than this coordinator's: correct the prefix"
        wait_for("it is refused", lambda: text in one.log())
        check_equal(cluster.shown(one)[one.name]["state"], "refused", "its state")


def test_names_and_addresses():
    with Several(workers=0, start=False) as cluster:
        for options, text in ((["--name", "a b"], "--name a b"), (["--name", ""], "--name"),
                              (["--advertise", "h1"], "--advertise"),
                              (["--listen", "0.0.0.0:0"], "--listen 0.0.0.0:0 names no host"),
                              (["--listen", "[::]:0"], "give it --advertise HOST:PORT"),
                              (["--advertise", "unix:/a,,"], "--advertise"),
                              (["--ha-user", "a", "--ha-password-file", "/nosuch"], "--ha-password-file")):
            one = cluster.one(0)
            one.argv += options
            one.start(ready=False)
            check(one.wait_end() != 0, f"it starts with {options}")
            check_in(text, one.log(), f"with {options}")


def test_a_client_from_elsewhere():
    """It does not reach the address that a coordinator names, but the same one by an address of its own list."""
    with Several(workers=0, coordinators=2, start=False) as cluster:
        for number, one in enumerate(cluster.coordinators):
            one.argv += ["--advertise", f"nosuch-{number}:7070"]
            one.start()
        leader = cluster.follow()
        other = next(one for one in cluster.coordinators if one is not leader)
        wait_for("the other one knows it", lambda: "another coordinator leads" in other.log())
        for addresses in ([other, leader], [leader, other]):
            said = cluster.cadre("--coordinator", ",".join(one.address for one in addresses), "jobs", "--json").stdout
            check_equal(json.loads(said)["jobs"], [], "jobs")


def test_only_one_is_shown_as_leading():
    """Though what the one that was killed wrote of itself is still there."""
    with Several(workers=0, lease="1s") as cluster:
        leader = cluster.leader()
        wait_for("it has written that", lambda: all(
            cluster.shown(one)[leader.name]["state"] == "leading" for one in cluster.coordinators))
        leader.kill()
        new = cluster.follow(but=leader)
        states = {name: one["state"] for name, one in cluster.shown(new).items()}
        check_equal([name for name, state in states.items() if state == "leading"], [new.name], f"of {states}")
        leader.start()


if __name__ == "__main__":
    run(dict(globals()))
