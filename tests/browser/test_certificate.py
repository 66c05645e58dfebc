# SPDX-License-Identifier: Apache-2.0
"""The page over TLS: what a browser is shown that has no certificate, a viewer's, an operator's."""
import json

from browser import Browser
from cluster import Cluster, script
from identity import Identity
from pages import http_port
from pki import Pki
from testing import check_equal, check_in, run, wait_for


def state_of(cluster, job):
    return json.loads(cluster.cadre("job", str(job), "--json").stdout)["state"]


def test_what_a_certificate_allows():
    with Cluster(workers=1, start=False) as cluster:
        pki = Pki(cluster.folder)
        tls = pki.issue("coordinator", "main", "--host", "127.0.0.1")
        cluster.coordinator.argv += ["--http", "0.0.0.0:0", "--tls-dir", tls]
        cluster.coordinator.start()
        cluster.workers[0].start()
        job = cluster.client.submit(script("sleep 1000"), name="sleeper")
        origin = f"https://127.0.0.1:{http_port(cluster.coordinator)}"
        with Browser(identity=Identity(origin, tls)) as page:
            page.open(f"{origin}/")
            check_in("Show a certificate of the cluster's CA", page.text(), "without a certificate")
            check_equal(page.count("main"), 0, "parts of the page without a certificate")
        with Browser(identity=Identity(origin, tls, pki.issue("viewer", "vera"))) as page:
            page.open(f"{origin}/#/jobs/{job}")
            page.wait_text("running", "h1 + .badge")
            check_equal(page.count('[data-key="cancel"]'), 0, "what a viewer may cancel")
            refused = page.module("const answer = await fetch(args[0], { method: 'POST', body: '{}', "
                                  "headers: { 'Content-Type': 'application/json' } }); "
                                  "return [answer.status, (await answer.json()).code];", f"/api/jobs/{job}/cancel")
            check_equal(refused, [403, "PERMISSION_DENIED"], "a viewer that asks for it all the same")
            check_equal(state_of(cluster, job), "running", "the job")
        with Browser(identity=Identity(origin, tls, pki.issue("client", "olga"))) as page:
            page.open(f"{origin}/#/jobs/{job}")
            page.wait_text("sleeper", "h1")
            page.click('[data-key="cancel"]')
            wait_for("it is confirmed", lambda: page.count("dialog[open]"))
            check_equal(state_of(cluster, job), "running", "before it is confirmed")
            page.click("dialog[open] button.strong")
            page.wait_text("cancelled", "h1 + .badge")
            check_equal(state_of(cluster, job), "cancelled", "the job")
            page.check_quiet()


if __name__ == "__main__":
    run(globals())
