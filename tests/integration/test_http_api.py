# SPDX-License-Identifier: Apache-2.0
"""/api/ of the coordinator says what --json of the command says, and what it refuses: other sites, other hosts, wrong
paths and numbers, clients that do not read, and many at once."""
import socket
import time

from client import RUNNING
from cluster import Cluster, script, trainer
from http_api import OPEN, error_of, fetch, printed, raw, request
from pages import ask, http_port
from testing import check, check_equal, check_in, run, wait_for


def test_it_says_what_the_command_says():
    with Cluster(workers=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        strange = 'a "<script>&\\ é name'
        jobs = [cluster.client.run(script("echo done"), name=f"job {i}").id for i in range(3)]
        jobs.append(cluster.client.run(script("exit 3"), name=strange).id)
        for job in jobs:
            check_equal(fetch(here, f"/api/jobs/{job}"), printed(cluster, "job", str(job)), f"job {job}")
            shards = printed(cluster, "job", str(job), "--shards")
            check_equal(fetch(here, f"/api/jobs/{job}/shards"), shards, "its shards")
        check_equal(fetch(here, f"/api/jobs/{jobs[-1]}")["name"], strange, "its name")
        check_equal(fetch(here, "/api/jobs"), printed(cluster, "jobs"), "jobs")
        workers = printed(cluster, "workers")
        check_equal(fetch(here, "/api/workers"), workers | {"more": False}, "workers")
        check_equal(fetch(here, "/api/workers/w1"), printed(cluster, "workers", "w1"), "one of them")
        version = fetch(here, "/api/version")
        check_equal(version["coordinator"], printed(cluster, "version")["coordinator"], "the version")
        check(abs(version["time_us"] / 1e6 - time.time()) < 600, f"its clock: {version['time_us']}")


def test_lists_have_pages():
    with Cluster(workers=3, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        failed = cluster.client.run(script("exit 1")).id
        jobs = [cluster.client.run(script("true")).id for _ in range(4)]
        live = cluster.client.submit(trainer(), arguments=["100000000"])
        wait_for("it runs", lambda: cluster.client.get(live).state == RUNNING)

        def ids(arguments):
            page = fetch(here, f"/api/jobs?{arguments}")
            return [job["id"] for job in page["jobs"]], page["more"]

        check_equal(ids("limit=2"), ([live, jobs[3]], True), "the newest two")
        check_equal(ids(f"limit=2&before={jobs[3]}"), ([jobs[2], jobs[1]], True), "those before")
        check_equal(ids(f"limit=2&before={jobs[1]}"), ([jobs[0], failed], False), "the last ones")
        check_equal(ids("state=live"), ([live], False), "those that have not ended")
        check_equal(ids("state=failed"), ([failed], False), "one state")
        check_equal(ids("state=queued"), ([], False), "another")
        first = fetch(here, "/api/workers?limit=2")
        rest = fetch(here, f"/api/workers?limit=2&after={first['workers'][-1]['name']}")
        check_equal((len(first["workers"]), first["more"], len(rest["workers"]), rest["more"]), (2, True, 1, False),
                    "workers by page")
        check_equal(sorted(worker["name"] for worker in first["workers"] + rest["workers"]), ["w0", "w1", "w2"], "all")
        cluster.cadre("cancel", str(live))


def test_the_cluster_in_numbers():
    with Cluster(workers=2, slots=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.submit(trainer(), workers=2, arguments=["100000000"])
        waits = cluster.client.submit(trainer(), workers=4, arguments=["1"])
        wait_for("it runs", lambda: cluster.client.get(job).state == RUNNING)
        cluster.cadre("drain", "w1")
        wait_for("it says so", lambda: fetch(here, "/api/cluster")["workers_draining"] == 1)
        seen = fetch(here, "/api/cluster")
        keys = ("workers_ready", "workers_away", "jobs_running", "jobs_queued", "gpus")
        check_equal({key: seen[key] for key in keys},
                    {"workers_ready": 1, "workers_away": 0, "jobs_running": 1, "jobs_queued": 1, "gpus": 0}, "sums")
        check_equal((seen["role"], seen["may"]), ("local", {"cancel": True, "drain": True}), "the caller")
        check_equal(seen["tls"], {"used": False, "certificate_ends_us": 0}, "no TLS")
        for one in (job, waits):
            cluster.cadre("cancel", str(one))


def test_what_is_wrong_is_refused():
    with Cluster(workers=1, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        error_of(here, "/api/jobs/7", 404, "NOT_FOUND", "there is no job 7")
        error_of(here, "/api/workers/unknown", 404, "NOT_FOUND", "no worker is named unknown")
        error_of(here, "/api/workers?after=gone", 404, "NOT_FOUND", "no worker is named gone")
        error_of(here, "/api/secrets", 404, "NOT_FOUND", "there is no /api/secrets")
        error_of(here, "/api/jobs/1/2/3", 404, "NOT_FOUND", "there is no /api/jobs/1/2/3")
        for wrong in ("0", "-1", "1x", "+1", "0x1", "99999999999999999999", "%3Cscript%3E"):
            error_of(here, f"/api/jobs/{wrong}", 400, "INVALID_ARGUMENT", "is not the number of a job")
        for wrong in ("limit=201", "limit=-1", "limit=", "before=x"):
            error_of(here, f"/api/jobs?{wrong}", 400, "INVALID_ARGUMENT", "is no whole number")
        error_of(here, "/api/jobs?state=unknown", 400, "INVALID_ARGUMENT", "neither \"live\" nor a state")
        error_of(here, "/api/jobs?color=red", 400, "INVALID_ARGUMENT", "has no argument \"color\"")
        error_of(here, "/api/jobs?limit=1&limit=2", 400, "INVALID_ARGUMENT", "an argument twice")
        error_of(here, "/api/jobs/%00", 400, "INVALID_ARGUMENT", "no text")
        error_of(here, "/api/jobs", 405, "UNIMPLEMENTED", "Only GET and HEAD", method="DELETE")
        error_of(here, "/api/jobs?" + "a" * 3000, 400, "INVALID_ARGUMENT", "longer than 2047 bytes")
        check_equal(request(port, "/api/cluster", method="HEAD")[:2], (200, b""), "only its head")
        for path in ("/assets/../../etc/passwd", "/assets/%2e%2e/%2e%2e/etc/passwd", "/assets/..%2f..%2fetc/passwd",
                     "/assets//etc/passwd", "/../etc/passwd", "/assets/", "/api/../metrics"):
            answer = raw(port, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            check(answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), f"{path}: {answer[:60]}")
            check(b"root:" not in answer, path)
        for text in (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
                     b"GET  HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                     b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            answer = raw(port, text)
            check(answer == b"" or answer.startswith(b"HTTP/1.1 4"), f"{text[:40]}: {answer[:60]}")
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "it goes on")


def test_other_sites_are_refused():
    with Cluster(workers=0, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        for path in ("/", "/api/cluster", "/metrics", "/healthz", "/assets/index.html"):
            for host in ("evil.example", f"evil.example:{port}", f"localhost.evil.example:{port}", "10.1.2.3"):
                check_equal(request(port, path, {"Host": host})[0], 421, f"{path} of {host}")
        for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
                        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"}):
            error_of(here, "/api/cluster", 403, "PERMISSION_DENIED", "another site", headers=headers)
        own = {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}", "Sec-Fetch-Site": "same-origin"}
        fetch(here, "/api/cluster", headers=own)
        check_equal(request(port, "/", {"Sec-Fetch-Site": "cross-site"})[0], 200, "a link to the page")


def test_the_page_is_served():
    with Cluster(workers=0, coordinator=OPEN) as cluster:
        port = http_port(cluster.coordinator)
        status, body, headers = request(port, "/")
        check_equal((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"), "the page")
        check_in("default-src 'none'", headers["Content-Security-Policy"], "its policy")
        check(b"style=" not in body and b"<script>" not in body, "nothing is inline")
        check_equal((headers["Cache-Control"], headers["Access-Control-Allow-Origin"]), ("no-cache", None), "headers")
        again = request(port, "/", {"If-None-Match": headers["ETag"]})
        check_equal(again[:2], (304, b""), "it is known")
        check_in("/metrics", request(port, "/pages")[1].decode(), "the list of pages")


def test_who_may_see_it():
    with Cluster(workers=0, coordinator=["--http", "127.0.0.1:0"]) as cluster:  # gRPC at a Unix socket only
        here = cluster.coordinator
        error_of(here, "/api/cluster", 401, "UNAUTHENTICATED", "cadre dashboard")
        error_of(here, "/api/jobs/1", 401, "UNAUTHENTICATED", "cadre dashboard", headers={"Authorization": "Bearer x"})
        check_equal([request(http_port(here), path)[0] for path in ("/", "/pages", "/metrics", "/healthz")], [200] * 4,
                    "what is open")


def test_many_and_slow_clients():
    with Cluster(workers=1, slots=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        job = cluster.client.submit(trainer(), workers=2, arguments=["100000000"])
        wait_for("it runs", lambda: cluster.client.get(job).position > 0)
        check_equal(request(port, "/api/version")[2]["Cadre-Poll-Ms"], "1000", "how often one browser asks")
        many = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(200)]
        for connection in many:
            connection.sendall(f"GET /api/jobs/{job} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "with 200 beside it")
        for connection in many:
            check(connection.recv(16).startswith(b"HTTP/1.1 200"), "each is answered")
        poll_ms = int(request(port, "/api/cluster")[2]["Cadre-Poll-Ms"])
        check(2000 <= poll_ms <= 4000, f"with 200 connections a browser asks every {poll_ms} ms")
        silent = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(700)]
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "with more than there may be")
        check_equal(ask(here, "/metrics")[0], 200, "a scrape")
        for connection in many + silent:
            connection.close()
        before = cluster.client.get(job).position
        wait_for("it goes on", lambda: cluster.client.get(job).position > before)
        cluster.cadre("cancel", str(job))


if __name__ == "__main__":
    run(globals())
