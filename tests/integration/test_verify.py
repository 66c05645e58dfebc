# SPDX-License-Identifier: Apache-2.0
"""What `cadre verify` proves, what it catches, and what it does not claim."""
import json

from client import SUCCEEDED
from cluster import Cluster
from learning import EPOCHS, FAST, FAST_WORKER, SAMPLES, Learning
from sources import lines, sieve
from testing import check, check_equal, check_in, run, wait_for


def verified(learning, status):
    """What it prints, and its exit status is checked; also as a program reads it."""
    said = learning.cluster.cadre("verify", str(learning.job), status=status).stdout.decode()
    read = learning.cluster.cadre("verify", str(learning.job), "--json", status=status).stdout
    return said, json.loads(read)


def test_a_job_without_a_fault_is_proved():
    with Cluster(workers=2) as cluster:
        learning = Learning(cluster, workers=2)
        learning.end()
        said, read = verified(learning, 0)
        check_in("exactly once", said, "the conclusion")
        check_equal(read["conclusion"], "proved", "in a word")
        check_equal(read["steps_proved"], read["committed"], f"steps proved in {read}")


def test_samples_that_are_consumed_twice_are_caught():
    """A bug inside the library: a task reads another one's part of one batch. Nothing else notices it."""
    with Cluster(workers=2) as cluster:
        learning = Learning(cluster, "twice=1:20", workers=2)
        end = learning.end()
        check_equal(end.state, SUCCEEDED, str(end))
        counts = sorted(learning.state()["count"])
        check_equal((counts[0], counts[-1]), (EPOCHS - 1, EPOCHS + 1), "the least and the most that one was applied")
        wrong = set()
        for epoch in range(EPOCHS):
            seen = sorted(sample for key, line in learning.log_lines().items() if key[0] == epoch for sample in line)
            if seen != list(range(SAMPLES)):
                wrong.add(epoch)
        check_equal(len(wrong), 1, f"epochs in which it happened: {wrong}")
        said, read = verified(learning, 1)
        differs = {epoch["epoch"] for epoch in read["epochs"] if epoch["verdict"] == "differs"}
        check_equal(differs, wrong, f"epochs that differ in {read}")
        lines = [line for line in said.splitlines() if "differs" in line and line.startswith("train")]
        check(len(lines) == 1 and lines[0].split()[1] == str(wrong.pop() + 1), f"the epoch is not named: {said}")


def test_what_makes_no_claim_is_not_proved():
    """Each task reads all for itself: nothing says what a step should hold."""
    with Cluster(workers=2) as cluster:
        learning = Learning(cluster, "shard=off", workers=2)
        learning.end()
        check_equal(learning.state()["count"], (2 * EPOCHS,) * SAMPLES, "how often each sample was applied")
        said, read = verified(learning, 3)
        check_in("nothing could be proved", said, "the conclusion")
        check_equal((read["exact"], read["as_defined"], read["differing"]), (0, 0, 0), str(read))


def by_files(cluster, *arguments, **fields):
    return Learning(cluster, *lines(cluster), "shard=file", *arguments, **fields)


def test_files_are_proved_while_tasks_die():
    """Whole files, read by tasks that die: each line was consumed exactly once, and that is proved."""
    for fields in ({"workers": 1}, {"workers": 3, "workers_min": 2}, {"workers": 2}):
        with Cluster(workers=fields["workers"], coordinator=FAST, worker=FAST_WORKER) as cluster:
            for arguments in ((), ("die=0:9:step",), ("die=0:11:last",), ("die=0:3:between",), ("die=0:23:last",)):
                learning = by_files(cluster, *arguments, max_restarts=1, **fields)
                check_equal(learning.end().state, SUCCEEDED, "its end")
                said, read = verified(learning, 0)
                verdicts = {epoch["verdict"] for epoch in read["epochs"] if epoch["name"] == "train"}
                check_equal(verdicts, {"exact"}, f"with {arguments} {fields}, in {said}")
                check_in(f"every one of {SAMPLES} samples of its files exactly once", said, "the reason")


def test_a_line_of_a_file_that_is_consumed_twice_is_caught():
    """One that its reader gives once more, in the place of the next."""
    with Cluster(workers=2) as cluster:
        learning = by_files(cluster, "twice=1:2", workers=2)
        check_equal(learning.end().state, SUCCEEDED, "its end")
        counts = sorted(learning.state()["count"])
        check_equal((counts[0], counts[-1]), (EPOCHS - 1, EPOCHS + 1), "the least and the most that one was applied")
        said, read = verified(learning, 1)
        verdicts = sorted(epoch["verdict"] for epoch in read["epochs"] if epoch["name"] == "train")
        check_equal(verdicts, ["differs"] + ["exact"] * (EPOCHS - 1), said)


def test_what_a_filter_drops_is_not_claimed():
    with Cluster(workers=2) as cluster:
        learning = Learning(cluster, *sieve(cluster), "shard=file", workers=2)
        check_equal(learning.end().state, SUCCEEDED, "its end")
        said, read = verified(learning, 4)
        check_equal(read["conclusion"], "partly proved", "in a word")
        check_in("partly proved: ", said, "the conclusion")
        check(0 < read["steps_proved"] < read["committed"], f"steps: {read}")
        check_in(f"the other {read['committed'] - read['steps_proved']} steps cannot be proved", said, "how many")
        verdicts = {(epoch["name"], epoch["verdict"]) for epoch in read["epochs"]}
        check_equal(verdicts, {("train", "not provable"), ("test", "exact")}, said)
        check_in("the pipeline drops them", said, "the reason")


def test_more_epochs_than_a_page_holds():
    """Of two datasets, asked for while the job goes on and when it is over; each epoch once."""
    epochs = 4100
    with Cluster(workers=1) as cluster:
        learning = Learning(cluster, "samples=4", "batch=4", "test=1", f"epochs={epochs}", workers=1)
        wait_for("a thousand steps", lambda: learning.client.get(learning.job).position > 1000)
        read = json.loads(cluster.cadre("verify", str(learning.job), "--json", status=None).stdout)
        check_equal((read["differing"], read["not_provable"], read["more"]), (0, 0, False), "while it goes on")
        check(0 <= read["committed"] - read["steps_proved"] <= 64, f"all but the newest: {read['committed']}")
        learning.end()
        said, read = verified(learning, 0)
        check_equal((read["exact"], read["steps_proved"]), (2 * epochs, 2 * epochs), said[-300:])
        check_equal([(epoch["stream"], epoch["epoch"]) for epoch in read["epochs"]],
                    [(stream, epoch) for stream in (1, 2) for epoch in range(epochs)], "the epochs")


def test_two_jobs_are_compared():
    """A drill in which tasks die reads what the calm run does; one whose task reads a batch twice does not."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        calm, drill, wrong = (Learning(cluster, *arguments, workers=2, max_restarts=1)
                              for arguments in ((), ("die=0:9:step",), ("twice=1:20",)))
        for learning in (calm, drill, wrong):
            check_equal(learning.end().state, SUCCEEDED, "its end")
        said = cluster.cadre("verify", str(calm.job), str(drill.job), status=0).stdout.decode()
        check_in("equal: both consumed the same samples as far as both go: ", said, "the outcome")
        check_in("; states equal at ", said, "what was compared of the states")
        said, read = verified(calm, 0)
        check_equal(read["verified"], sorted(read["verified"], key=lambda state: state["position"]), "the states")
        newest = read["verified"][-1]
        check_in(f"the newest step {newest['position']} with digest {newest['digest']}\n", said, "the newest")
        said = cluster.cadre("verify", str(calm.job), str(wrong.job), status=1).stdout.decode()
        read = cluster.cadre("verify", str(calm.job), str(wrong.job), "--json", status=1).stdout
        place = json.loads(read)["difference"]
        check_in(f"differs: {place['text']}", said, "the outcome")
        _, read = verified(wrong, 1)
        differs = [epoch["epoch"] for epoch in read["epochs"] if epoch["verdict"] == "differs"]
        check_equal((place["what"], place["name"], [place["epoch"]]), ("consumed", "train", differs), said)


def test_the_states_of_two_jobs_are_compared():
    """Two that consume the same and learn otherwise: the first state that differs is named."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        one, other = (Learning(cluster, f"decay={decay}", workers=2, checkpoint_every=8) for decay in (90, 80))
        for learning in (one, other):
            check_equal(learning.end().state, SUCCEEDED, "its end")
        states = [{state["position"]: state["digest"] for state in verified(learning, 0)[1]["verified"]}
                  for learning in (one, other)]
        both = sorted(states[0].keys() & states[1].keys() - {0})
        check(both and all(states[0][at] != states[1][at] for at in both), f"states that can be compared of {states}")
        said = cluster.cadre("verify", str(one.job), str(other.job), status=1).stdout.decode()
        read = cluster.cadre("verify", str(one.job), str(other.job), "--json", status=1).stdout
        place = json.loads(read)["difference"]
        check_equal((place["what"], place["position"]), ("state", both[0]), f"where they differ: {place}")
        check_in(f"differs: {place['text']}", said, "the outcome")


if __name__ == "__main__":
    run(globals())
