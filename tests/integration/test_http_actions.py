# SPDX-License-Identifier: Apache-2.0
"""What a page may do: cancel, drain and undrain, for a caller whose role allows it, from this server's own page only;
and clients of /api/ that read slowly, or never."""
import http.client
import json
import os
import socket
import ssl

from client import CANCELLED, RUNNING
from cluster import Cluster, script, trainer
from http_api import OPEN, error_of, fetch, own, raw, request
from pages import ask, http_port
from pki import Pki
from testing import check, check_equal, check_in, resident_mib, run, wait_for


def post(coordinator, path, status=200, body="{}", **headers):
    """As the page does it; a header that is None is left out."""
    sent = own(coordinator) | {name.replace("_", "-"): value for name, value in headers.items()}
    return fetch(coordinator, path, status, method="POST", body=body,
                 headers={name: value for name, value in sent.items() if value is not None})


def refused(coordinator, path, status, code, part, body="{}", **headers):
    error = post(coordinator, path, status, body, **headers)
    check_equal(error["code"], code, path)
    check_in(part, error["message"], path)


def test_the_page_acts():
    with Cluster(workers=1, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        job = cluster.client.submit(trainer(), arguments=["100000000"])
        waits = cluster.client.submit(trainer(), arguments=["1"])
        wait_for("it runs", lambda: cluster.client.get(job).state == RUNNING)
        answer = post(here, f"/api/jobs/{waits}/cancel")
        check_equal((answer["id"], answer["state"]), (waits, "cancelled"), "one that waits")
        check_equal(post(here, f"/api/jobs/{waits}/cancel"), answer, "again: it has ended")
        drained = post(here, "/api/workers/w0/drain", body=json.dumps({"reason": "kernel é"}))["workers"][0]
        check_equal((drained["state"], drained["drained_by"], drained["drained_why"]),
                    ("draining", "a browser on this host", "kernel é"), "drained")
        check_equal(fetch(here, "/api/cluster")["workers_draining"], 1, "the next answer says so")
        check_equal(post(here, "/api/workers/w0/undrain")["workers"][0]["state"], "ready", "undrained")
        check_equal(post(here, f"/api/jobs/{job}/cancel")["id"], job, "one that runs")
        check_equal(cluster.client.wait(job).state, CANCELLED, "its end")
        check_in("a worker is drained worker=w0 by=\"a browser on this host\"", here.log(), "the log")


def test_other_sites_do_not_act():
    with Cluster(workers=1, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        job = cluster.client.submit(trainer(), arguments=["100000000"])
        paths = [f"/api/jobs/{job}/cancel", "/api/workers/w0/drain"]
        for path in paths:
            for headers in ({"Origin": None, "Sec_Fetch_Site": None}, {"Sec_Fetch_Site": "cross-site"},
                            {"Sec_Fetch_Site": "same-site"}, {"Origin": None, "Sec_Fetch_Site": "none"},
                            {"Origin": "http://evil.example"}, {"Origin": "null"},
                            {"Origin": f"https://localhost:{port}"}, {"Origin": f"http://localhost:{port + 1}"},
                            {"Origin": "http://evil.example", "Sec_Fetch_Site": None}):
                refused(here, path, 403, "PERMISSION_DENIED", "another site", **headers)
            refused(here, path, 421, "INVALID_ARGUMENT", "not the host", Host=f"evil.example:{port}",
                    Origin=f"http://evil.example:{port}")
            for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data",
                         "application/json-seq"):
                refused(here, path, 415, "INVALID_ARGUMENT", "application/json", Content_Type=kind)
            error_of(here, path, 405, "UNIMPLEMENTED", "only POST")
            check_equal(request(port, path)[2]["Allow"], "POST", "what it allows")
            check_equal(request(port, path, {"Origin": "http://evil.example"}, "OPTIONS")[2]
                        ["Access-Control-Allow-Origin"], None, "a question beforehand")
        for path in (f"/api/jobs/{job}", "/api/cluster", "/metrics", "/healthz", "/"):
            status, _, headers = request(port, path, own(here), "POST", "{}")
            check_equal((status, headers["Allow"]), (405, "GET, HEAD"), path)
        check_equal(cluster.client.get(job).state in (CANCELLED,), False, "the job was not cancelled")
        check_equal(fetch(here, "/api/workers/w0")["workers"][0]["state"], "ready", "the worker was not drained")
        post(here, paths[0])


def test_bodies():
    with Cluster(workers=1, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        drain = "/api/workers/w0/drain"
        for body in ("", "x", "[]", "null", "{", '{"a": 1, "a": 1}', "[" * 4000, '{"reason": "\\ud800"}'):
            refused(here, drain, 400, "INVALID_ARGUMENT", "no JSON object", body)
        refused(here, drain, 400, "INVALID_ARGUMENT", "means nothing here", '{"why": "x"}')
        refused(here, "/api/workers/w0/undrain", 400, "INVALID_ARGUMENT", "means nothing here", '{"reason": "x"}')
        for reason in (1, None, ["x"], "a" * 128, "a\nb", "\u001b[31m"):
            refused(here, drain, 400, "INVALID_ARGUMENT", "\"reason\" is no text", json.dumps({"reason": reason}))
        refused(here, drain, 413, "INVALID_ARGUMENT", "longer than 4096 bytes", "{}" + " " * 5000)
        refused(here, "/api/workers/w9/drain", 404, "NOT_FOUND", "w9")
        refused(here, "/api/jobs/9/cancel", 404, "NOT_FOUND", "there is no job 9")
        refused(here, "/api/jobs/x/cancel", 400, "INVALID_ARGUMENT", "is not the number of a job")
        head = "".join(f"{name}: {value}\r\n" for name, value in own(here).items())
        begin = f"POST {drain} HTTP/1.1\r\n{head}"
        chunks = (b"1000\r\n" + b" " * 4096 + b"\r\n") * 300
        endless = raw(port, f"{begin}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks)
        check(endless == b"" or endless.startswith(b"HTTP/1.1 4"), f"a body without end: {endless[:60]}")
        for length in ("-1", "x", "99999999999999999999"):
            answer = raw(port, f"{begin}Content-Length: {length}\r\n\r\n{{}}".encode())
            check(answer == b"" or answer.startswith(b"HTTP/1.1 4"), f"a length of {length}: {answer[:60]}")
        check_equal(fetch(here, "/api/workers/w0")["workers"][0]["state"], "ready", "nothing happened")
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "it goes on")


def secure(port, ca, tls, path, method="GET", **headers):
    context = ssl.create_default_context(cafile=os.path.join(ca, "ca.pem"))
    context.check_hostname = False
    context.load_cert_chain(os.path.join(tls, "cert.pem"), os.path.join(tls, "key.pem"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    try:
        connection.request(method, path, body="{}" if method == "POST" else None, headers=headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_roles_of_certificates():
    with Cluster(workers=1, start=False) as cluster:
        here = cluster.coordinator
        pki = Pki(cluster.folder)
        tls = pki.issue("coordinator", "main")
        here.argv += ["--http", "0.0.0.0:0", "--tls-dir", tls]
        here.start()
        cluster.workers[0].start()
        port = http_port(here)
        job = cluster.client.submit(script("sleep 1000"))
        act = {"Content-Type": "application/json", "Origin": f"https://127.0.0.1:{port}"}
        cancel, drain = f"/api/jobs/{job}/cancel", "/api/workers/w0/drain"
        for role, may_cancel, may_drain in (("viewer", False, False), ("submitter", True, False),
                                            ("client", True, True)):
            shown = pki.issue(role, f"a-{role}")
            status, seen = secure(port, tls, shown, "/api/cluster")
            check_equal((status, seen["role"], seen["may"]), (200, role, {"cancel": may_cancel, "drain": may_drain}),
                        "what it says")
            check_equal((seen["tls"]["used"], seen["tls"]["certificate_ends_us"] > 0), (True, True), "TLS")
            # A number that no job has: one that may act is allowed to ask for it.
            for path, may in ((f"/api/jobs/{job + 9}/cancel", may_cancel), ("/api/workers/w9/drain", may_drain)):
                status, error = secure(port, tls, shown, path, "POST", **act)
                check_equal((status, error["code"]), (404, "NOT_FOUND") if may else (403, "PERMISSION_DENIED"),
                            f"{role}: {path}")
        client = pki.issue("client", "anna")
        evil = act | {"Origin": "https://evil.example"}
        check_equal(secure(port, tls, client, cancel, "POST", **evil)[0], 403, "another site")
        status, seen = secure(port, tls, client, drain, "POST", **act)
        check_equal((status, seen["workers"][0]["drained_by"]), (200, "anna"), "by its name")
        check_equal(secure(port, tls, client, "/api/workers/w0/undrain", "POST", **act)[0], 200, "ends")
        check_equal(secure(port, tls, client, cancel, "POST", **act)[0], 200, "cancelled")
        cluster.client.wait(job)


def test_nothing_acts_without_a_token():
    with Cluster(workers=1, coordinator=["--http", "127.0.0.1:0"]) as cluster:  # gRPC at a Unix socket only
        here = cluster.coordinator
        job = cluster.client.submit(script("sleep 1000"))
        for path in (f"/api/jobs/{job}/cancel", "/api/workers/w0/drain"):
            refused(here, path, 401, "UNAUTHENTICATED", "cadre dashboard")
            refused(here, path, 401, "UNAUTHENTICATED", "", Authorization="Bearer x")
        cluster.cadre("cancel", str(job))


def test_a_reader_that_stops():
    """A large answer to many who never read it: the coordinator keeps it once, and closes them."""
    with Cluster(workers=1, slots=2, coordinator=OPEN) as cluster:
        here = cluster.coordinator
        port = http_port(here)
        text = cluster.client.run(script("yes 'a line of text that is long enough to be worth it' | head -c 400000")).id
        job = cluster.client.submit(trainer(), workers=2, arguments=["100000000"])
        wait_for("it runs", lambda: cluster.client.get(job).position > 0)
        large = f"/api/jobs/{text}/logs?task=0&offset=0"
        fetch(here, large)
        before = resident_mib(here.process.pid)
        readers = []
        for _ in range(200):
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(("127.0.0.1", port))
            connection.sendall(f"GET {large} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            readers.append(connection)
        at = cluster.client.get(job).position
        check_equal(ask(here, "/healthz")[:2], (200, "ok\n"), "beside them")
        check_equal(ask(here, "/metrics")[0], 200, "a scrape")
        wait_for("the job goes on", lambda: cluster.client.get(job).position > at)
        check(resident_mib(here.process.pid) < before + 100, "its memory")

        def ended(connection):
            try:
                while connection.recv(1 << 20):
                    pass
                return True
            except ConnectionResetError:
                return True

        for connection in readers:
            connection.settimeout(60)
            check(ended(connection), "it is ended")
            connection.close()
        cluster.cadre("cancel", str(job))


if __name__ == "__main__":
    run(globals())
