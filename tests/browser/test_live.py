# SPDX-License-Identifier: Apache-2.0
"""The page of a real coordinator: what is shown is what `cadre ... --json` says, while tasks and the coordinator are
killed. With CADRE_TEST_PICTURES=FOLDER it writes pictures there."""
import json
import os
import signal

from browser import Browser
from cluster import Cluster
from http_api import OPEN
from pages import http_port
from testing import check, check_equal, check_in, run, wait_for

REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
ATTACK = '<img src=x onerror="window.attacked=1">'


def address(cluster):
    return f"http://127.0.0.1:{http_port(cluster.coordinator)}/"


def printed(cluster, *arguments):
    return json.loads(cluster.cadre(*arguments, "--json").stdout)


def submitted(cluster, tasks, *arguments, name="reporter"):
    done = cluster.cadre("submit", "--detach", "--json", "--name", name, "-n", str(tasks), REPORTER, *arguments)
    return json.loads(done.stdout)["id"]


def complaints(page):
    """What the browser logged, but for parts of a job that this coordinator does not have."""
    return [entry for entry in page.complaints() if "status of 404" not in entry]


def number(text):
    return int(text.replace(",", ""))


def shown(page):
    """What the page says of a job, as far as it does not change by itself."""
    rows = page.run("return [...document.querySelectorAll('tr[data-task]')].map((row) => [...row.cells].map((cell) => "
                    "cell.innerText.trim()))")
    return {"state": page.text("h1 + .badge").strip(), "generation": page.text("#generation"),
            "tasks": [(int(row[0]), row[1].split("\n")[0], row[2], int(row[3]), row[4]) for row in rows]}


def said(cluster, job):
    """The same of the command."""
    seen = printed(cluster, "job", str(job))
    return {"state": seen["state"], "generation": str(seen["generation"]),
            "tasks": [(task["task"], task["state"], task["worker"] or "–", task["incarnation"],
                       str(task["pid"]) if task["pid"] > 0 else "–") for task in seen["tasks"]]}


def check_position(cluster, page, job):
    """The page gets to where the job is now, and is never ahead of it."""
    least = printed(cluster, "job", str(job))["position"]
    wait_for("the page has the job's position", lambda: number(page.text("#position")) >= least)
    reached = number(page.text("#position"))
    check(reached <= printed(cluster, "job", str(job))["position"], "the page is ahead of the job")


def kill_task(cluster, job, task):
    """Kills a task and waits until all train again, in another generation."""
    before = printed(cluster, "job", str(job))
    os.kill(before["tasks"][task]["pid"], signal.SIGKILL)

    def again():
        now = printed(cluster, "job", str(job))
        return now["generation"] > before["generation"] and now["roster"] == before["workers"]
    wait_for(f"task {task} is replaced", again)


def check_same(cluster, page, job, what):
    wait_for(f"{what}: the page says what the command says", lambda: shown(page) == said(cluster, job))
    check_position(cluster, page, job)


def picture(page, name, height):
    folder = os.environ.get("CADRE_TEST_PICTURES")
    if folder:
        os.makedirs(folder, exist_ok=True)
        page.screenshot(os.path.join(folder, name), height)


def test_a_job_whose_tasks_are_killed():
    with Cluster(workers=3, slots=2, coordinator=OPEN) as cluster, Browser() as page:
        job = submitted(cluster, 3, "steps", "1000000", "pause", "2", "saves", "500")
        wait_for("it trains", lambda: printed(cluster, "job", str(job))["position"] > 0)
        page.open(f"{address(cluster)}#/jobs/{job}")
        page.wait_text("reporter", "h1")
        check_same(cluster, page, job, "at the start")
        for task in (1, 0):
            kill_task(cluster, job, task)
            check_same(cluster, page, job, f"after the loss of task {task}")
        cluster.cadre("cancel", str(job))
        page.wait_text("cancelled", "h1 + .badge")
        check_same(cluster, page, job, "at the end")
        check_equal(number(page.text("#position")), printed(cluster, "job", str(job))["position"], "steps at the end")
        check_equal(complaints(page), [], "the browser's log")


def test_a_coordinator_that_is_killed():
    with Cluster(workers=2, coordinator=OPEN) as cluster, Browser() as page:
        job = submitted(cluster, 2, "steps", "1000000", "pause", "2")
        url = address(cluster)
        page.open(f"{url}#/jobs/{job}")
        check_same(cluster, page, job, "before")
        cluster.coordinator.kill()
        page.wait_text("does not answer", "#banner")
        check_equal(page.text("h1 + .badge").strip(), "running", "what was known stays")
        argv = cluster.coordinator.argv
        argv[argv.index("--http") + 1] = url[len("http://"):-1]
        cluster.coordinator.start()
        page.wait_count("#banner .banner", 0)
        wait_for("it trains", lambda: printed(cluster, "job", str(job))["state"] == "running")
        check_same(cluster, page, job, "after")
        cluster.cadre("cancel", str(job))
        page.wait_text("cancelled", "h1 + .badge")


def test_lists_and_names():
    with Cluster(workers=2, slots=2, coordinator=OPEN) as cluster, Browser() as page:
        jobs = [submitted(cluster, 1, "steps", "3", name=ATTACK),
                submitted(cluster, 2, "steps", "1000000", "pause", "2"),
                submitted(cluster, 4, "steps", "5", name="waits")]
        wait_for("one has ended", lambda: printed(cluster, "job", str(jobs[0]))["final"])
        page.open(address(cluster))
        listed = lambda: [(number(one["id"]), one["name"], one["state"]) for one in page.run(  # noqa: E731
            "return [...document.querySelectorAll('tbody tr')].map((row) => ({ id: row.cells[0].innerText,"
            " name: row.querySelector('.name').innerText, state: row.cells[2].innerText.trim() }))")]
        wanted = [(one["id"], one["name"], one["state"]) for one in printed(cluster, "jobs")["jobs"]]
        wait_for(f"the list is {wanted}", lambda: listed() == wanted)
        check_in(ATTACK, page.text("main"), "a name that attacks is text")
        queued = printed(cluster, "job", str(jobs[2]))["message"]
        page.wait_text(queued)
        page.open(f"{address(cluster)}#/workers")
        wait_for("workers are listed", lambda: sorted(page.texts(".name")) == ["w0", "w1"])
        page.click('[data-key="worker-w1"] a')
        page.wait_text("Tasks on this worker get no GPU.")
        for view in ("", "/curves", "/logs", "/shards", "/proof"):
            page.open(f"{address(cluster)}#/jobs/{jobs[0]}{view}")
            wait_for(f"{view} is shown", lambda: page.count(".tabs") and not page.count("[aria-busy]"))
            check_equal(page.run("return window.attacked ?? null"), None, f"a name ran a script in {view}")
        for job in jobs[1:]:
            cluster.cadre("cancel", str(job))
        others = [url for url in page.asked() if not url.startswith((address(cluster), "data:", "chrome:", "about:"))]
        check_equal(others, [], "requests to other origins")
        check_equal(complaints(page), [], "the browser's log")


def test_the_keyboard_alone():
    from selenium.webdriver.common.keys import Keys
    with Cluster(workers=1, coordinator=OPEN) as cluster, Browser() as page:
        job = submitted(cluster, 1, "steps", "5")
        wait_for("it has ended", lambda: printed(cluster, "job", str(job))["final"])
        page.open(address(cluster))
        page.wait_text("reporter", "main")
        page.press("j", Keys.ENTER)
        page.wait_text("succeeded", "h1 + .badge")
        page.press("3")
        wait_for("its logs are shown", lambda: page.run("return location.hash") == f"#/jobs/{job}/logs")
        page.wait_text("Logs", "main h2")
        page.press("4", "w")
        wait_for("workers are listed", lambda: page.texts(".name") == ["w0"])


if __name__ == "__main__":
    run(globals())
