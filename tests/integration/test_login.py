# SPDX-License-Identifier: Apache-2.0
"""`cadre dashboard` and its token: with a Unix socket and with TLS, and each way in which a token is refused."""
import json

from cluster import Cluster
from http_api import request
from pages import http_port
from pki import Pki
from testing import check, check_equal, check_in, run

HTTP = ["--http", "127.0.0.1:0"]


def ask(cluster, token, path="/api/version", method="GET", body=None):
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    port = http_port(cluster.coordinator)
    if method == "POST":
        headers |= {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
    status, answer, _ = request(port, path, headers, method, body)
    return status, json.loads(answer)


def login(cluster, *options):
    return json.loads(cluster.cadre("dashboard", "--json", *options).stdout)


def test_a_unix_socket():
    with Cluster(workers=1, coordinator=HTTP) as cluster:
        port = http_port(cluster.coordinator)
        check_equal(ask(cluster, None)[0], 401, "without a token")
        seen = login(cluster)
        check_equal((seen["role"], seen["name"], seen["http"]), ("local", "", f"127.0.0.1:{port}"), "whose it is")
        check_equal(seen["url"], f"http://127.0.0.1:{port}/#token={seen['token']}", "the address")
        check_equal(ask(cluster, seen["token"])[0], 200, "with it")
        printed = cluster.cadre("dashboard", "--print")
        check_in(f"http://127.0.0.1:{port}/#token=local~", printed.stdout.decode(), "--print")
        check_equal(printed.stderr, b"", "--print says no more")
        check_in("give it to no one else", cluster.cadre("dashboard").stderr.decode(), "what to know of it")
        token = seen["token"]
        for wrong in (token[:-1], token + "0", token.replace("local", "viewer"), "x", "~~~", "a" * 1000):
            status, error = ask(cluster, wrong)
            check_equal((status, error["code"]), (401, "UNAUTHENTICATED"), wrong)
            check_in("cadre dashboard", error["message"], wrong)
        check(token not in cluster.coordinator.log(), "the token is in the log")
        check(token not in request(port, "/metrics")[1].decode(), "the token is in /metrics")
        cluster.coordinator.stop()
        cluster.coordinator.start()
        check_equal(ask(cluster, token)[0], 401, "a token of an earlier start")


def test_roles_of_certificates():
    with Cluster(workers=0) as cluster:
        pki = Pki(cluster.folder)
        cluster.coordinator.stop()
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", *HTTP, "--tls-dir",
                                     pki.issue("coordinator", "main", "--host", "127.0.0.1")]
        cluster.coordinator.start()
        address = cluster.coordinator.log().split("listening address=127.0.0.1:")[-1].split()[0]
        tokens = {}
        for role in ("viewer", "submitter", "client"):
            seen = login(cluster, "--coordinator", f"127.0.0.1:{address}", "--tls-dir", pki.issue(role, f"{role}-1"))
            check_equal((seen["role"], seen["name"]), (role, f"{role}-1"), "whose it is")
            check_equal(ask(cluster, seen["token"])[0], 200, role)
            tokens[role] = seen["token"]
        refused = cluster.cadre("dashboard", "--coordinator", f"127.0.0.1:{address}", "--tls-dir",
                                pki.issue("worker", "w9"), status=1).stderr.decode()
        check_in("worker", refused, "a worker")
        status, error = ask(cluster, tokens["viewer"], "/api/jobs/1/cancel", "POST", "{}")
        check_equal((status, error["code"]), (403, "PERMISSION_DENIED"), "a viewer cancels")
        check_equal(ask(cluster, tokens["submitter"], "/api/jobs/1/cancel", "POST", "{}")[0], 404, "a submitter may")


def test_no_page():
    with Cluster(workers=0) as cluster:
        check_in("--http 127.0.0.1:9464", cluster.cadre("dashboard", status=1).stderr.decode(), "which flag is missing")


if __name__ == "__main__":
    run(globals())
