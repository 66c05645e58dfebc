# SPDX-License-Identifier: Apache-2.0
"""The page of a real coordinator: what is shown is what `cadre ... --json` says, while tasks and the coordinator are
killed. With CADRE_TEST_PICTURES=FOLDER it writes pictures there."""
import json
import os
import re
import signal

from browser import Browser
from cluster import BIN, Cluster, script
from http_api import OPEN
from pages import http_port
from testing import HANG_S, check, check_equal, check_in, run, wait_for

REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
ATTACK = '<img src=x onerror="window.attacked=1">'


def address(cluster):
    return f"http://127.0.0.1:{http_port(cluster.coordinator)}/"


def printed(cluster, *arguments, status=0):
    return json.loads(cluster.cadre(*arguments, "--json", status=status).stdout)


def submitted(cluster, tasks, *arguments, name="reporter"):
    done = cluster.cadre("submit", "--detach", "--json", "--name", name, "-n", str(tasks), REPORTER, *arguments)
    return json.loads(done.stdout)["id"]


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


def events_of(cluster, job):
    """What `cadre history` says, newest first, as rows of the page."""
    events = printed(cluster, "history", str(job))["events"]
    return [(one["kind"], f"{one['position']:,}", str(one["generation"] or "–")) for one in reversed(events)][:50]


def events_shown(page):
    return [tuple(row) for row in page.run(
        "return [...document.querySelectorAll('tr[data-kind]')].map((row) => [row.dataset.kind,"
        " row.cells[3].innerText.trim(), row.cells[4].innerText.trim()])")]


def check_ended(cluster, page, job):
    """What an ended job's tabs show is what each command says."""
    check_equal(number(page.text("#position")), printed(cluster, "job", str(job))["position"], "steps at the end")
    wait_for("the page has each event", lambda: events_shown(page) == events_of(cluster, job))
    kills = sum(one["kind"] == "task_ended" and one["exit_signal"] == signal.SIGKILL
                for one in printed(cluster, "history", str(job))["events"])
    check_equal((kills, page.count("svg.timeline .lost")), (2, 2), "kills in the ledger, crosses in its picture")
    page.press("2")
    series = printed(cluster, "metrics", str(job))["series"]
    page.wait_count("svg.chart", len(series))
    for one in series:
        step, value = one["points"][-1]
        readout = page.text(f'[data-key="card/{one["name"]}"] .readout')
        check_in(f"step {step:,}", readout, f"the newest step of {one['name']}")
        check_in(f"{value:,.0f}", readout, f"its value")
    page.press("5")
    proof = printed(cluster, "verify", str(job), status=None)
    page.wait_text(proof["conclusion"], '[data-key="Proof"] .badge')
    check_in(f"{proof['steps_proved']:,} of {proof['committed']:,}", page.text("main"), "steps that are proved")


def check_same(cluster, page, job, what):
    wait_for(f"{what}: the page says what the command says", lambda: shown(page) == said(cluster, job))
    check_position(cluster, page, job)


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
        check_ended(cluster, page, job)
        page.check_quiet()


def test_what_tasks_use_and_who_is_waited_for():
    with Cluster(workers=2, coordinator=OPEN) as cluster, Browser() as page:
        job = submitted(cluster, 2, "steps", "1000000", "pause", "2")
        page.open(f"{address(cluster)}#/jobs/{job}")
        wait_for("CPU time of both tasks", lambda: len(
            [text for text in page.texts('[data-use="cpu"]') if re.fullmatch(r"\d+\.\d\d", text.strip())]) == 2)
        check(all(re.fullmatch(r"[\d.]+ .iB", text.strip()) for text in page.texts('[data-use="memory"]')), "memory")
        check_equal(page.count('[data-key="wait"]'), 0, "none is waited for")
        task = printed(cluster, "job", str(job))["tasks"][1]
        os.kill(task["pid"], signal.SIGSTOP)
        try:
            page.wait_text(f"The others wait for task 1 on {task['worker']}: ", '[data-key="wait"]')
        finally:
            os.kill(task["pid"], signal.SIGCONT)
        wait_for("the job goes on", lambda: page.count('[data-key="wait"]') == 0)
        wait_for("how long it was waited for", lambda: page.text('[data-key="task-1"] [data-use="waited"]') != "–")
        check_in(" s", page.text('[data-key="task-1"] [data-use="waited"]'), "how long it was waited for")
        check(printed(cluster, "job", str(job))["tasks"][1]["waited_us"] > 0, "the command says so, too")
        shows = "return getComputedStyle(document.querySelector('tr[data-task=\\'1\\'] [data-use=all]')).display"
        check_equal(page.run(shows), "none", "in columns where there is room")
        page.resize(320)
        check(page.run(shows) != "none", "in one line where there is not")
        wait_for("in one line where there is not", lambda: re.fullmatch(
            r"\d+\.\d\d CPUs · [\d.]+ .iB · waited for .* s", page.text('[data-key="task-1"] [data-use="all"]')))
        page.resize(1280)
        page.open(f"{address(cluster)}#/workers")
        page.wait_text(" of ", '[data-key="worker-w0"] [data-use="memory"]')
        cluster.cadre("cancel", str(job))
        page.check_quiet()


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
        page.check_quiet()


def test_the_keyboard_alone():
    from selenium.webdriver.common.keys import Keys
    with Cluster(workers=1, coordinator=OPEN) as cluster, Browser() as page:
        gate = os.path.join(cluster.folder, "gate")
        job = cluster.client.submit(script(f"echo begin; echo '{ATTACK}' >&2; until [ -e {gate} ]; do sleep 0.1; done;"
                                           " printf 'the end'"), name="printer")
        page.open(address(cluster))
        page.wait_text("printer", "main")
        page.press("j", Keys.ENTER)
        page.wait_text("running", "h1 + .badge")
        page.press("3")
        page.wait_text("begin", ".log")
        check_equal(page.run("return location.hash"), f"#/jobs/{job}/logs", "the address")
        page.wait_text(ATTACK, ".log .stderr")
        with open(gate, "w", encoding="ascii"):
            pass
        page.wait_text("the end", ".log")
        page.wait_text("succeeded", "h1 + .badge")
        lines = [json.loads(one)["text"] for one in cluster.cadre("logs", str(job), "--json").stdout.splitlines()]
        times_apart = "return [...document.querySelectorAll('.log > div')].map((one) => one.lastChild.textContent)"
        check_equal(page.run(times_apart), lines, "each line once, as `cadre logs` has it")
        page.press("4", "w")
        wait_for("workers are listed", lambda: page.texts(".name") == ["w0"])


def test_a_login_token():
    with Cluster(workers=1, coordinator=["--http", "127.0.0.1:0"]) as cluster, Browser() as page:
        page.open(address(cluster))
        page.wait_text("cadre dashboard", "main")
        check_in("This page may not read the cluster.", page.text("main"), "what is said without a token")
        url = printed(cluster, "dashboard")["url"]
        page.open(url)
        page.wait_text("There is no job yet.", "main")
        token = url.split("token=")[1]
        check_equal(page.run("return location.hash"), "#/jobs", "the address bar")
        check(not any(token in one for one in page.asked() if one != url), "the token is in an address")
        page.open(f"{address(cluster)}#/workers")
        wait_for("workers are listed", lambda: page.texts(".name") == ["w0"])


def kill_all(cluster, job):
    """Kills all tasks at once, so that the steps since the newest checkpoint are done again."""
    before = printed(cluster, "job", str(job))
    for task in before["tasks"]:
        os.kill(task["pid"], signal.SIGKILL)
    wait_for("it began again", lambda: printed(cluster, "job", str(job))["generation"] > before["generation"])


def pass_position(cluster, job, position):
    wait_for(f"step {position}", lambda: printed(cluster, "job", str(job))["position"] >= position, HANG_S)


def test_pictures():
    """Those of the documents: a job of which one task is killed, then all; wide, and narrow in the dark."""
    folder = os.environ.get("CADRE_TEST_PICTURES")
    if not folder:
        return  # only by hand
    os.makedirs(folder, exist_ok=True)
    digits = [os.path.join(BIN, name) for name in ("digits", "digits-train.bin", "digits-test.bin")]
    with Cluster(workers=3, coordinator=OPEN) as cluster:
        done = cluster.cadre("submit", "--detach", "--json", "-n", "3", "--checkpoint-every", "1000", "--file",
                             digits[1], "--file", digits[2], digits[0], "--", "--epochs", "400")
        job = json.loads(done.stdout)["id"]
        pass_position(cluster, job, 2500)
        kill_task(cluster, job, 1)
        pass_position(cluster, job, 5800)
        kill_all(cluster, job)
        pass_position(cluster, job, 8000)
        pictures = [("wide", 1280, 900, False, ""), ("narrow", 320, 1280, True, ""),
                    ("step", 1280, 800, False, "?by=step"),
                    ("curves", 1280, 900, False, "/curves"), ("curves-narrow", 320, 860, True, "/curves"),
                    ("logs", 1280, 900, False, "/logs"), ("proof", 1280, 900, True, "/proof")]
        for name, width, height, dark, view in pictures:
            with Browser(width, height, dark) as page:
                page.open(f"{address(cluster)}#/jobs/{job}{view}")
                wait_for(f"{name} is shown", lambda: page.count(".tabs") and not page.count("[aria-busy]"))
                page.screenshot(os.path.join(folder, f"job-{name}.png"))
        cluster.cadre("cancel", str(job))


if __name__ == "__main__":
    run(globals())
