# SPDX-License-Identifier: Apache-2.0
"""Where tasks listen for each other: within --mesh-ports, on --mesh-host, and what is said when no port is left."""
import os
import socket
import subprocess

from cluster import TRAINER, Cluster, clean_environment, program, trainer
from testing import HANG_S, check, check_equal, check_in, run, wait_for

HOST = f"127.{90 + os.getpid() % 100}.{os.getpid() // 250 % 250}.{os.getpid() % 250}"  # no other test listens there
PORTS = [47000, 47001]
RANGE = "47000:47001"


def listening():
    """The ports of HOST at which a process listens."""
    shown = subprocess.run(["ss", "-Hltn", "src", HOST], capture_output=True, text=True, check=True).stdout
    return sorted(int(line.split()[3].rsplit(":", 1)[1]) for line in shown.splitlines())


def occupy(port):
    """A socket of another program on that port."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # behind connections of the test before
    taken.bind((HOST, port))
    taken.listen()
    return taken


def test_tasks_listen_within_the_range():
    with Cluster(slots=2, worker=["--mesh-host", HOST, "--mesh-ports", RANGE]) as cluster:
        for _ in range(2):  # the next job's tasks take the ports that these leave
            job = cluster.client.submit(trainer(), workers=2, arguments=["1000", "0", "5", "hang"])
            wait_for("both tasks listen", lambda: listening() == PORTS)
            cluster.client.cancel(job)
            cluster.client.wait(job)
            wait_for("the ports are free", lambda: listening() == [])
        check_equal(cluster.client.run(trainer(), workers=2, arguments=["8"]).exit_code, 0, "exit status")


def test_servers_listen_within_the_range():
    with Cluster(slots=3, worker=["--mesh-host", HOST, "--mesh-ports", "47000:47002"]) as cluster:
        pusher = os.environ["CADRE_TEST_PUSHER"]
        cluster.cadre("submit", "--detach", "--strategy", "parameter_server", "--workers", "1", "--ps", "1", pusher,
                      "--", "--rounds", "100000", "--closures", "1", "--length", "4", "--work-us", "1000")
        seen = set()

        def some():
            seen.update(listening())
            return seen
        wait_for("a server listens", some)
        check(seen <= {47000, 47001, 47002}, f"listening: {seen}")
        cluster.client.cancel(1)
        cluster.client.wait(1)


def test_all_in_use():
    with Cluster(slots=2, worker=["--mesh-host", HOST, "--mesh-ports", RANGE]) as cluster, occupy(PORTS[0]):
        job = cluster.client.submit(trainer(), workers=2, arguments=["8"])
        check(cluster.client.wait(job).exit_code != 0, "the job ended well")
        log = cluster.client.log(job).decode()
        check_in(f"all ports of {RANGE} are in use", log, "the log")
        check_in("give --mesh-ports, or CADRE_MESH_PORTS, a range", log, "the log")


def test_ranges_that_are_none_are_refused():
    with Cluster() as cluster:
        for ports, said in (("47000", "write FIRST:LAST"), ("80:90", "within 1024..65535"), ("9:8", "write FIRST:LAST"),
                            ("47000:47000", "at least 47000:47001")):
            worker = cluster.worker("w9", 2, ["--mesh-ports", ports])
            worker.start(ready=False)
            check_equal(worker.wait_end(), 1, f"exit status of --mesh-ports {ports}")
            check_in(f"--mesh-ports {ports}:", worker.log(), "the log")
            check_in(said, worker.log(), "the log")
            worker.process = None


def run_here(*arguments, **environment):
    return subprocess.run([program("cadre"), "run", *arguments], capture_output=True, text=True, timeout=HANG_S,
                          check=False, env=clean_environment() | environment)


def test_cadre_run_has_the_range():
    port = 40000 + os.getpid() % 10000 * 2
    done = run_here("-n", "2", "--mesh-ports", f"{port}:{port + 40}", TRAINER, "8")
    check_equal(done.returncode, 0, f"exit status: {done.stderr}")
    done = run_here("-n", "2", "--mesh-ports", "47000:47000", TRAINER, "8")
    check_equal(done.returncode, 2, f"exit status: {done.stderr}")
    check_in("2 tasks listen at one each", done.stderr, "the refusal")
    done = run_here("-n", "2", TRAINER, "8", CADRE_MESH_PORTS="many")
    check_equal(done.returncode, 2, f"exit status: {done.stderr}")
    check_in("write FIRST:LAST", done.stderr, "the refusal")


run(globals())
