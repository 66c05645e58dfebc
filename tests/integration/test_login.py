# SPDX-License-Identifier: Apache-2.0
"""`cadre dashboard` and its token: with a Unix socket and with TLS, and each way in which a token is refused."""
import json
import os
import stat
import subprocess
import time

from cluster import Cluster, clean_environment, program, set_wrong_clock, with_wrong_clock
from http_api import OPEN, request
from pages import http_port
from pki import Pki
from testing import HANG_S, check, check_equal, check_in, run, wait_for

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
        check_equal(request(port, "/api/version")[2]["WWW-Authenticate"], "Bearer", "how to ask")
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
    with Cluster(workers=1, start=False) as cluster:
        pki = Pki(cluster.folder)
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", *HTTP, "--tls-dir",
                                     pki.issue("coordinator", "main", "--host", "127.0.0.1")]
        cluster.coordinator.start()
        cluster.workers[0].start()
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
        check_equal(ask(cluster, tokens["submitter"], "/api/workers/w0/drain", "POST", "{}")[0], 403, "it drains")
        drained = ask(cluster, tokens["client"], "/api/workers/w0/drain", "POST", "{}")[1]["workers"][0]
        check_equal((drained["state"], drained["drained_by"]), ("draining", "client-1"), "a client drains")


def clock_of(cluster):
    """Of the coordinator; its answers are kept for a moment."""
    return ask(cluster, login(cluster)["token"])[1]["time_us"] / 1e6


def test_the_wall_clock_does_not_end_it():
    with Cluster(workers=0, coordinator=HTTP, start=False) as cluster:
        clock = os.path.join(cluster.folder, "clock")
        with_wrong_clock(cluster.coordinator, clock)
        cluster.coordinator.start()
        token = login(cluster)["token"]
        for hours in (13, -13):
            set_wrong_clock(clock, hours * 3600)
            wait_for("the clock is wrong", lambda h=hours: abs(clock_of(cluster) - time.time() - h * 3600) < 600)
            check_equal(ask(cluster, token, "/api/cluster")[0], 200, f"the clock is wrong by {hours} h")


def test_it_ends_with_the_certificate():
    with Cluster(workers=0, start=False) as cluster:
        pki = Pki(cluster.folder)
        clock = os.path.join(cluster.folder, "clock")
        cluster.coordinator.argv += ["--listen", "127.0.0.1:0", *HTTP, "--tls-dir",
                                     pki.issue("coordinator", "main", "--host", "127.0.0.1")]
        with_wrong_clock(cluster.coordinator, clock)
        cluster.coordinator.start()
        address = cluster.coordinator.log().split("listening address=127.0.0.1:")[-1].split()[0]
        short = pki.issue("viewer", "short", "--days", "1")
        ends_s = time.time() + 86400
        set_wrong_clock(clock, 86400 - 3600)
        seen = login(cluster, "--coordinator", f"127.0.0.1:{address}", "--tls-dir", short)
        check_equal(ask(cluster, seen["token"])[0], 200, "it is good")
        check(ends_s - 1800 < seen["expires_us"] / 1e6 < ends_s + 2, f"{seen['expires_us']} beside {ends_s}")


def test_where_none_is_needed_there_is_none():
    with Cluster(workers=0, coordinator=OPEN) as cluster:
        seen = login(cluster)
        check_equal((seen["token"], seen["expires_us"]), ("", 0), "no token")
        check_equal(seen["url"], f"http://127.0.0.1:{http_port(cluster.coordinator)}/", "the address")
        check_equal(ask(cluster, None)[0], 200, "it needs none")
        check_in("It has no token", cluster.cadre("dashboard").stderr.decode(), "why")


def test_no_page():
    with Cluster(workers=0) as cluster:
        check_in("--http 127.0.0.1:9464", cluster.cadre("dashboard", status=1).stderr.decode(), "which flag is missing")


def test_with_tls_a_certificate_is_asked_for():
    with Cluster(workers=0, coordinator=["--http", "0.0.0.0:0"], start=False) as cluster:
        pki = Pki(cluster.folder)
        cluster.coordinator.argv += ["--tls-dir", pki.issue("coordinator", "main")]
        cluster.coordinator.start()
        done = cluster.cadre("dashboard")
        check_equal(done.stdout.decode(), f"https://localhost:{http_port(cluster.coordinator)}/\n", "no token")
        check_in("a certificate of the cluster", done.stderr.decode(), "what the browser asks for")
        seen = login(cluster)
        check_equal((seen["tls"], seen["url"], seen["token"]), (True, done.stdout.decode().strip(), ""), "as JSON")


def opened(cluster, environment):
    return subprocess.run([program("cadre"), "-c", cluster.address, "dashboard", "--open"], capture_output=True,
                          timeout=HANG_S, check=False, text=True, env=clean_environment() | environment)


def test_a_browser_is_opened_only_when_asked():
    with Cluster(workers=0, coordinator=HTTP) as cluster:
        tools = os.path.join(cluster.folder, "tools")
        session = os.path.join(cluster.folder, "session")
        got = os.path.join(cluster.folder, "got")
        os.mkdir(tools)
        os.mkdir(session, 0o700)
        opener = os.path.join(tools, "xdg-open")
        with open(opener, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\ncp "$1" "{got}"\necho "$*" > "{got}.arguments"\n')
        os.chmod(opener, 0o755)
        environment = {"PATH": f"{tools}:/usr/bin:/bin", "XDG_RUNTIME_DIR": session}
        done = opened(cluster, environment)
        check_equal(done.returncode, 0, done.stderr)
        with open(got, encoding="utf-8") as file:
            check_in(f'content="0; url={done.stdout.strip()}"', file.read(), "the file leads to the address")
        with open(got + ".arguments", encoding="utf-8") as file:
            check("token" not in file.read(), "arguments can be seen by all users of the host")
        page = os.path.join(session, "cadre-dashboard.html")
        check_equal(stat.S_IMODE(os.stat(page).st_mode), 0o600, "its mode")
        os.unlink(got)
        cluster.cadre("dashboard", "--json")
        check(not os.path.exists(got), "not without --open")
        for wrong, part in (({"XDG_RUNTIME_DIR": ""}, "XDG_RUNTIME_DIR is not set"),
                            ({"XDG_RUNTIME_DIR": session + "/none"}, session),
                            ({"PATH": session}, "install xdg-utils")):
            done = opened(cluster, environment | wrong)
            check_equal((done.returncode, done.stdout.startswith("http://127.0.0.1:")), (1, True), part)
            check_in(part, done.stderr, "why")
        with open(opener, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 3\n")
        check_in("xdg-open opened no browser", opened(cluster, environment).stderr, "it failed")


if __name__ == "__main__":
    run(globals())
