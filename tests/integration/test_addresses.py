# SPDX-License-Identifier: Apache-2.0
"""Several addresses of the coordinator: one is not there, one never answers, one names another; clients and workers
find the one that leads, and find it again when it moves."""
import contextlib
import os
import signal
import socket
import subprocess
from concurrent import futures

from client import SUCCEEDED, Client, grpc
from cluster import Cluster, clean_environment, program, script
from testing import HANG_S, check, check_equal, check_in, run, wait_for


class Elsewhere(grpc.GenericRpcHandler):
    """A coordinator that does not lead: it answers each call, of any service, with the address of the one that does."""

    def __init__(self, listen, leader):
        self.leader = leader
        self.asked = []
        self.server = grpc.server(futures.ThreadPoolExecutor(8))
        self.server.add_generic_rpc_handlers([self])
        self.server.add_insecure_port(listen)
        self.server.start()

    def service(self, details):
        self.asked.append(details.method)
        return grpc.stream_stream_rpc_method_handler(self.refuse)

    def refuse(self, messages, context):
        context.set_trailing_metadata((("cadre-leader", self.leader),))
        context.abort(grpc.StatusCode.UNAVAILABLE, "the coordinator here does not lead")
        yield b""

    def close(self):
        self.server.stop(0).wait()


@contextlib.contextmanager
def elsewhere(listen, leader):
    server = Elsewhere(listen, leader)
    try:
        yield server
    finally:
        server.close()


@contextlib.contextmanager
def silent(path):
    """Listens, and accepts no connection."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(16)
        yield f"unix:{path}"
    os.unlink(path)


def set_coordinator(worker, addresses):
    worker.argv[worker.argv.index("--coordinator") + 1] = addresses


def cadre(addresses, *arguments, status=0):
    done = subprocess.run([program("cadre"), *arguments], capture_output=True, timeout=HANG_S, check=False, text=True,
                          env=clean_environment() | {"CADRE_COORDINATOR": addresses})
    check_equal(done.returncode, status, f"status of {arguments}: {done.stderr}")
    return done


def test_the_one_that_answers_is_found():
    with Cluster(workers=1, start=False) as cluster, silent(f"{cluster.folder}/silent") as mute:
        absent = f"unix:{cluster.folder}/none"
        worker = cluster.workers[0]
        set_coordinator(worker, f"{absent},{mute},{cluster.address}")
        cluster.coordinator.start()
        worker.start()
        check_in(f'coordinator={cluster.address}\n', worker.log(), "whom the worker joined")
        for addresses in (f"{absent},{cluster.address}", f"{mute},{absent},{cluster.address}",
                          f"{cluster.address},{absent}"):
            done = cadre(addresses, "submit", "/bin/echo", "it ran")
            check_in("it ran", done.stdout, "what the job printed")
        check_in("succeeded", cadre(f"{absent},{cluster.address}", "jobs").stdout, "the list")
        said = cadre(f"{absent},{absent}2", "jobs", status=3).stderr
        check_in(f"no coordinator answers at {absent},{absent}2: start cadre-coordinator", said, "the sentence")


def test_a_coordinator_that_moves_is_found_again():
    with Cluster(workers=1) as cluster:
        second = f"unix:{cluster.folder}/second.sock"
        both = f"{second},{cluster.address}"
        worker = cluster.workers[0]
        worker.stop()
        set_coordinator(worker, both)
        worker.start()
        gate = f"{cluster.folder}/gate"
        with open(f"{cluster.folder}/waits", "wb") as file:
            file.write(script(f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo last"))
        os.chmod(file.name, 0o755)
        following = [subprocess.Popen([program("cadre"), *verb], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, env=clean_environment() | {"CADRE_COORDINATOR": both})
                     for verb in (("submit", file.name),)]
        check_in("submitted", following[0].stdout.readline(), "the submission")
        cluster.client.wait_running(1)
        following.append(subprocess.Popen([program("cadre"), "logs", "-f", "1"], stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True,
                                          env=clean_environment() | {"CADRE_COORDINATOR": both}))
        check_in("first", following[1].stdout.readline(), "the log")
        joined = worker.log().count("joined the coordinator")
        cluster.coordinator.kill()
        cluster.coordinator.argv = [second if part == cluster.address else part for part in cluster.coordinator.argv]
        cluster.coordinator.start()
        wait_for("the worker joined it again", lambda: worker.log().count("joined the coordinator") > joined)
        check_in(f'coordinator={second}\n', worker.log(), "whom the worker joined")
        with open(gate, "wb"):
            pass
        for process in following:
            said = process.communicate(timeout=HANG_S)[0]
            check_equal(process.returncode, 0, f"status of {process.args}: {said}")
            check_equal(said.count("last"), 1, f"the last line, in {said}")
        moved = Client(second)
        check_equal(moved.get(1).state, SUCCEEDED, "the job's end")
        moved.close()
        os.unlink(f"{cluster.folder}/c.sock")  # the one that was killed left it


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def test_each_line_comes_once_over_changes_of_the_leader():
    """The one that led is killed and names the next one from then on, while a task prints: three times."""
    with Cluster(workers=1, start=False) as cluster:
        places = [f"unix:{cluster.folder}/place{i}" for i in range(4)]
        gate, coordinator, worker = f"{cluster.folder}/gate", cluster.coordinator, cluster.workers[0]
        coordinator.argv = [places[0] if part == cluster.address else part for part in coordinator.argv]
        coordinator.start()
        set_coordinator(worker, f"{places[0]},{places[1]}")  # the others it learns
        worker.start()
        client = Client(places[0])
        job = client.submit(script(f"i=0; while [ ! -e {gate} ]; do i=$((i + 1)); echo line $i; sleep 0.01; done"))
        client.wait_running(job)
        client.close()
        followers = {}
        for name, addresses in (("one", places[0]), ("two", f"{places[0]},{places[1]}")):
            path = f"{cluster.folder}/{name}"
            with open(path, "wb") as file:
                followers[path] = subprocess.Popen([program("cadre"), "logs", "-f", str(job)], stdout=file,
                                                   env=clean_environment() | {"CADRE_COORDINATOR": addresses})
            wait_for("it follows", lambda read=path: "line 1\n" in text_of(read))
        with contextlib.ExitStack() as stack:
            for place, following in zip(places, places[1:]):
                joined = worker.log().count("joined the coordinator")
                coordinator.kill()
                stack.enter_context(elsewhere(place, following))
                coordinator.argv = [following if part == place else part for part in coordinator.argv]
                coordinator.start()
                wait_for("the worker joined it again",
                         lambda n=joined: worker.log().count("joined the coordinator") > n)
            with open(gate, "wb"):
                pass
            for path, process in followers.items():
                check_equal(process.wait(HANG_S), 0, f"status of {process.args}")
                lines = text_of(path).splitlines()
                check_equal(lines, [f"line {i + 1}" for i in range(len(lines))], "the lines")
        last = Client(places[-1])
        check_equal(last.wait(job).state, SUCCEEDED, "the job's end")
        check_equal(last.log(job).decode().splitlines()[-1], lines[-1], "the last line")
        last.close()


def test_the_leader_that_another_names_is_followed():
    with Cluster(workers=1, start=False) as cluster, \
            elsewhere(f"unix:{cluster.folder}/follower", cluster.address) as follower:
        first = f"unix:{cluster.folder}/follower"
        worker = cluster.workers[0]
        set_coordinator(worker, first)
        cluster.coordinator.start()
        worker.start()
        check(follower.asked.count("/cadre.v1.Agents/Join") >= 1, "the worker did not ask the follower")
        check_in("it ran", cadre(first, "submit", "/bin/echo", "it ran").stdout, "what the job printed")
        check_equal(follower.asked.count("/cadre.v1.Jobs/Version"), 1, "questions of the client that followed")
        check_equal(follower.asked.count("/cadre.v1.Jobs/Submit"), 0, "submissions at the follower")
        # And one that names an address which is none.
        follower.leader = "no address"
        said = cadre(first, "jobs", status=3).stderr
        check_in("the coordinator here does not lead", said, "the sentence")
        check_in("succeeded", cadre(f"{first},{cluster.address}", "jobs").stdout, "the list")


def test_wrong_lists_have_one_sentence():
    with Cluster(workers=1, start=False) as cluster:
        many = ",".join(f"127.0.0.1:{port}" for port in range(1, 18))
        for addresses, sentence in (("127.0.0.1:1,,127.0.0.1:2", "one of them is empty"),
                                    ("127.0.0.1:1,localhost:1", 'address "localhost:1": the list names it twice'),
                                    (f"{cluster.address},127.0.0.1:1", "a list is of Unix sockets or of HOST:PORT"),
                                    ("127.0.0.1:1,h2:7070", 'address "h2:7070" is not a loopback address'),
                                    (many, "the list has more than 16 addresses")):
            said = cadre(addresses, "jobs", status=2).stderr
            check_in(sentence, said, "the sentence of cadre")
            check_equal(len(said.splitlines()), 1, f"lines: {said}")
            worker = cluster.workers[0]
            set_coordinator(worker, addresses)
            worker.start(ready=False)
            check_equal(worker.wait_end(), 1, "exit status of the worker")
            check_in(sentence.replace('"', '\\"'), worker.log(), "the worker's log")


if __name__ == "__main__":
    run(globals())
