# SPDX-License-Identifier: Apache-2.0
"""Of its disk a worker daemon promises only that it knows which start of the coordinator it joined last, for its host's
tasks die with its power. Whatever is left of its state, it starts, clears away what its tasks left, and never gives a
damaged content of its cache to a task."""
import hashlib
import os

from client import SUCCEEDED
from cluster import Cluster, script
from recording import Recording, Replay
from testing import check, check_equal, check_in, run, wait_for

DATA = b"".join(b"line %d of what lies in the cache\n" % number for number in range(400))
COPIES = script("""cp data "$CADRE_OUTPUT_DIR/copy"; mkdir "$CADRE_OUTPUT_DIR/deep"; echo said
echo two > "$CADRE_OUTPUT_DIR/deep/two"; test ! -e wait || sleep 1000""")


def check_copied(client, job):
    info = client.wait(job)
    check_equal((info.state, info.message), (SUCCEEDED, info.message), f"the end of job {job}: {info.message}")
    check_equal(hashlib.sha256(client.output(job, "0/copy")).hexdigest(), hashlib.sha256(DATA).hexdigest(),
                "what the task was given")


def known(worker):
    """What it noted of the coordinator."""
    path = os.path.join(worker.state, "coordinator")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="ascii") as file:
        return file.read()


def join_again(cluster, recording):
    """The next start of the coordinator, of a higher number and another nonce."""
    worker = cluster.workers[0]
    before = known(worker)
    cluster.coordinator.stop()
    cluster.coordinator.start()
    wait_for("the worker knows of the new start", lambda: known(worker) != before)
    wait_for("it accepts it", lambda: worker.log().count("joined the coordinator") == 2)
    recording.promise("joined", ended=True, coordinator=known(worker))


def record():
    """A job that ends, and one that still runs when the daemon is killed."""
    with Cluster(workers=1, slots=2, start=False) as cluster:
        recording = Recording(cluster.folder)
        worker = cluster.workers[0]
        recording.attach(worker)
        cluster.coordinator.start()
        worker.start()
        client = cluster.client
        recording.promise("joined", ended=True, coordinator=known(worker))
        join_again(cluster, recording)
        check_copied(client, client.submit(COPIES, files={"data": DATA}))
        job = client.submit(COPIES, files={"data": DATA, "wait": b""})
        client.wait_running(job)
        wait_for("it has said something", lambda: client.log(job) == b"said\n")
        client.cancel(job)
        client.wait(job)
        cluster.end()
        recording.end()
        return recording


def test_whatever_is_left_of_its_state():
    with record() as recording, Cluster(workers=1) as cluster:
        worker = cluster.workers[0]
        worker.stop()

        joined = [promise.facts["coordinator"] for promise in recording.promises()]
        check(joined[0] != joined[1], "both starts of the coordinator are the same")

        def show(kept, at):
            if kept:
                check_in(known(worker), joined[len(kept) - 1:len(kept) + 1],
                         "what it knows of the coordinator, of the last start and perhaps the next")
            worker.start()
            check_copied(cluster.client, cluster.client.submit(COPIES, files={"data": DATA}))
            tasks = os.path.join(worker.state, "tasks")
            wait_for(f"{tasks} is empty", lambda: not os.listdir(tasks))
            worker.stop()

        replayed = Replay(recording, "w0", seed=1)
        replayed.run(cluster.folder, show, 0.4)
        print(f"{replayed.states} states")
        check_in("of this worker's cache was damaged", worker.log(), "what the daemon found in some of them")


if __name__ == "__main__":
    run(globals())
