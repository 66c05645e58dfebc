# SPDX-License-Identifier: Apache-2.0
"""What /api/ answers later, from files and from the ledger: values, logs, proofs; also while a job runs, to many who
ask the same, and to those who go away."""
import json
import os
import socket

from client import FAILED, RUNNING, SUCCEEDED
from cluster import Cluster, script, trainer
from http_api import OPEN, error_of, fetch, printed
from learning import FAST, FAST_WORKER, Learning
from pages import ask, http_port
from testing import check, check_equal, run, wait_for

REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
TEXT = "printf 'one\\ntwo\\n'; printf 'err\\n' >&2; printf 'caf\\303\\251 \\377 \\033[31m\\n\\nno newline'"


def reporter():
    with open(REPORTER, "rb") as file:
        return file.read()


def printed_log(cluster, job, task):
    done = cluster.cadre("logs", str(job), "--task", str(task), "--json")
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def log_by_page(coordinator, job, task):
    """From the beginning to the end: the lines, and how many pages there are."""
    lines, offset, pages = [], 0, 0
    while True:
        page = fetch(coordinator, f"/api/jobs/{job}/logs?task={task}&offset={offset}")
        lines += page["lines"]
        pages += 1
        check(page["next_offset"] > offset or page["next_offset"] == page["end_offset"], f"it goes on: {offset}")
        offset = page["next_offset"]
        if offset == page["end_offset"]:
            return lines, pages


def test_values_are_those_of_the_command():
    with Cluster(workers=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.submit(reporter(), workers=2, arguments=["steps", "300"])
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job")
        check_equal(fetch(here, f"/api/jobs/{job}/metrics"), printed(cluster, "metrics", str(job)), "all")
        for arguments, steps in (("from=100&to=200", "100:200"), ("from=299", "299:"), ("to=7", ":7")):
            check_equal(fetch(here, f"/api/jobs/{job}/metrics?{arguments}"),
                        printed(cluster, "metrics", str(job), "--steps", steps), arguments)
        silent = cluster.client.run(script("true")).id
        check_equal(fetch(here, f"/api/jobs/{silent}/metrics"), printed(cluster, "metrics", str(silent)), "none")
        error_of(here, "/api/jobs/99/metrics", 404, "NOT_FOUND", "there is no job 99")
        for wrong in ("from=9&to=8", "to=0"):
            error_of(here, f"/api/jobs/{job}/metrics?{wrong}", 400, "INVALID_ARGUMENT", "is no range of steps")
        error_of(here, f"/api/jobs/{job}/metrics?from=1e3", 400, "INVALID_ARGUMENT", "is no whole number")
        error_of(here, f"/api/jobs/{job}/metrics?steps=1:2", 400, "INVALID_ARGUMENT", "has no argument \"steps\"")


def test_values_that_are_no_numbers():
    with Cluster(coordinator=OPEN) as cluster:
        job = cluster.client.submit(reporter(), arguments=["steps", "8", "odd"])
        cluster.client.wait(job)
        check_equal(fetch(cluster.coordinator, f"/api/jobs/{job}/metrics"), printed(cluster, "metrics", str(job)),
                    "strange names and values")


def test_logs_are_those_of_the_command():
    with Cluster(workers=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        text = cluster.client.submit(script(TEXT), workers=2)
        cluster.client.wait(text)
        for task in (0, 1):
            wanted = printed_log(cluster, text, task)
            check(len(wanted) == 6, f"its lines: {wanted}")
            check_equal(log_by_page(here, text, task), (wanted, 1), "from the beginning")
            tail = fetch(here, f"/api/jobs/{text}/logs?task={task}")
            check_equal((tail["lines"], tail["next_offset"]), (wanted, tail["end_offset"]), "all is new")
        many = cluster.client.run(script("seq 1 60000")).id
        wanted = printed_log(cluster, many, 0)
        lines, pages = log_by_page(here, many, 0)
        check_equal([line["text"] for line in lines], [str(i) for i in range(1, 60001)], "numbers")
        check_equal(lines, wanted, "the same objects")
        check(pages > 5, f"pages: {pages}")
        tail = fetch(here, f"/api/jobs/{many}/logs?task=0")
        check_equal(tail["lines"], wanted[-1000:], "the newest lines")
        long = cluster.client.run(script("head -c 300000 /dev/zero | tr '\\0' x; echo; echo end")).id
        # The time of a piece is that of its first byte; the command prints that of the line's.
        def pieces(lines):
            return [line | {"received_us": 0} for line in lines]
        lines, _ = log_by_page(here, long, 0)
        check_equal(pieces(lines), pieces(printed_log(cluster, long, 0)), "a long line")
        check_equal(fetch(here, f"/api/jobs/{long}/logs?task=0&offset=999999999")["lines"], [], "behind the end")


def test_a_log_that_grows():
    with Cluster(coordinator=OPEN) as cluster:
        here = cluster.coordinator
        path = os.path.join(cluster.folder, "gate")
        os.mkfifo(path)
        os.chmod(path, 0o644)
        job = cluster.client.submit(script(f"printf 'one\\n12%%'; head -c 1 {path}; printf ' 25%%\\nend\\n'"))
        log = f"/api/jobs/{job}/logs?task=0"

        def texts(page):
            return [(line["text"], line["partial"]) for line in page["lines"]]
        page = wait_for("it prints", lambda: (got := fetch(here, log)) and len(got["lines"]) == 2 and got)
        check_equal(texts(page), [("one", False), ("12%", True)], "a line that is not whole")
        check_equal((page["next_offset"], page["end_offset"]), (4, 7), "it comes again")
        with open(path, "wb", buffering=0) as gate:
            gate.write(b":")
        cluster.client.wait(job)
        check_equal(texts(fetch(here, f"{log}&offset=4")), [("12%: 25%", False), ("end", False)], "whole")


def test_what_is_no_log():
    with Cluster(coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.run(script("true")).id
        check_equal(fetch(here, f"/api/jobs/{job}/logs?task=0"), {"lines": [], "next_offset": 0, "end_offset": 0},
                    "nothing was printed")
        error_of(here, f"/api/jobs/{job}/logs", 400, "INVALID_ARGUMENT", "add task=0")
        error_of(here, f"/api/jobs/{job}/logs?task=1", 404, "NOT_FOUND", "no task 1")
        error_of(here, "/api/jobs/9/logs?task=0", 404, "NOT_FOUND", "there is no job 9")
        for wrong in ("task=-1", "task=4294967296", "task=0&offset=x", "task=0&offset=-1", "task=%00"):
            error_of(here, f"/api/jobs/{job}/logs?{wrong}", 400, "INVALID_ARGUMENT", "")


def test_proofs_are_those_of_the_command():
    with Cluster(workers=2, coordinator=[*OPEN, *FAST], worker=FAST_WORKER) as cluster:
        here = cluster.coordinator
        learning = Learning(cluster, workers=2)
        learning.end()
        wrong = Learning(cluster, "twice=1:20", workers=2)
        wrong.end()
        for job, conclusion, status in ((learning.job, "proved", 0), (wrong.job, "differs", 1)):
            proof = fetch(here, f"/api/jobs/{job}/verification")
            check_equal(proof["conclusion"], conclusion, "in a word")
            done = cluster.cadre("verify", str(job), "--json", status=status)
            check_equal(proof, json.loads(done.stdout), "the proof")
        error_of(here, "/api/jobs/99/verification", 404, "NOT_FOUND", "there is no job 99")
        error_of(here, f"/api/jobs/{learning.job}/verification?a=b", 400, "INVALID_ARGUMENT", "no argument")


def test_a_proof_of_many_pages_while_the_job_runs():
    """Epochs of one step: the proof takes several turns, and others are answered meanwhile."""
    with Cluster(workers=1, slots=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.submit(trainer(), workers=2, arguments=["100000000"])
        wait_for("it runs", lambda: cluster.client.get(job).position > 100)
        port = http_port(here)
        many = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(60)]
        paths = [f"/api/jobs/{job}/{rest}" for rest in ("verification", "metrics", "logs?task=0")]
        for at, connection in enumerate(many):
            connection.sendall(f"GET {paths[at % 3]} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for connection in many[:30]:
            connection.close()
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "beside them")
        for connection in many[30:]:
            check(connection.recv(16).startswith(b"HTTP/1.1 200"), "each is answered")
            connection.close()
        proof = fetch(here, f"/api/jobs/{job}/verification")
        check(proof["state"] == "running" and proof["committed"] > 0 and proof["tiled"], f"its proof: {proof}")
        check_equal(cluster.client.get(job).state, RUNNING, "it runs on")
        cluster.cadre("cancel", str(job))


def test_a_job_that_is_forgotten():
    with Cluster(coordinator=[*OPEN, "--keep-jobs", "1"]) as cluster:
        here = cluster.coordinator
        job = cluster.client.run(script("echo text")).id
        paths = [f"/api/jobs/{job}{rest}" for rest in ("", "/shards", "/metrics", "/logs?task=0", "/verification")]
        for path in paths:
            fetch(here, path)
        check_equal(cluster.client.run(script("exit 1")).state, FAILED, "the next one")
        wait_for("the first is forgotten", lambda: cluster.cadre("job", str(job), status=None).returncode != 0)
        for path in paths:
            error_of(here, path, 404, "NOT_FOUND", f"there is no job {job}")


def test_the_coordinator_ends_while_answers_are_made():
    with Cluster(coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.run(script("seq 1 30000")).id
        connections = []
        for at in range(100):
            connection = socket.create_connection(("127.0.0.1", http_port(here)), timeout=30)
            rest = f"logs?task=0&offset={at}" if at % 2 else f"metrics?from={at}"
            connection.sendall(f"GET /api/jobs/{job}/{rest} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            connections.append(connection)
        for worker in cluster.workers:
            worker.stop()
        here.stop()
        for connection in connections:
            connection.close()


if __name__ == "__main__":
    run(globals())
