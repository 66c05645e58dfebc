# SPDX-License-Identifier: Apache-2.0
"""What people and monitors see: /metrics and /healthz, `cadre top`, logs beyond their limit, quotas."""
import fcntl
import http.client
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import termios
import time

from client import FAILED, RUNNING, SUCCEEDED, blob_chunks, jobs_pb2, refusal
from cluster import Cluster, clean_environment, program, script, trainer
from exposition import Metrics
from learning import Learning
from pages import ask, http_port
from pki import Pki
from testing import HANG_S, Failure, check, check_equal, check_in, run, scaled, wait_for

HTTP = ["--http", "127.0.0.1:0"]


def scrape(daemon):
    status, text, headers = ask(daemon, "/metrics")
    check_equal(status, 200, "status of /metrics")
    check_equal(headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8", "its type")
    if shutil.which("promtool"):  # where it is not, integration_rules says so
        done = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True, check=False)
        check_equal((done.returncode, done.stdout + done.stderr), (0, b""), "promtool check metrics")
    return Metrics(text)


def listed(cluster):
    return {job["id"]: job for job in json.loads(cluster.cadre("jobs", "--json").stdout)["jobs"]}


def test_what_is_scraped_agrees_with_the_command():
    with Cluster(workers=2, coordinator=HTTP, worker=HTTP) as cluster:
        client = cluster.client
        job = client.submit(trainer(), name='a "name"\\', workers=2, arguments=["100000000"])
        wait_for("steps are committed", lambda: client.get(job).position > 20)
        before = listed(cluster)[job]
        seen = scrape(cluster.coordinator)
        after = listed(cluster)[job]
        label = (f"job={job}", 'name=a "name"\\')
        check(before["position"] <= seen[("cadre_job_position", *label)] <= after["position"], "its position")
        check(before["position"] <= seen["cadre_steps_committed_total"] <= after["position"], "steps of all")
        check_equal(seen["cadre_jobs", "state=running"], 1, "jobs that run")
        check_equal(seen[("cadre_job_tasks", *label)], after["roster"], "tasks")
        check_equal(seen["cadre_tasks_training"], 2, "tasks of all")
        check_equal(seen["cadre_workers", "state=ready"], 2, "workers")
        check_equal((seen["cadre_slots"], seen["cadre_slots_used"]), (2, 2), "slots")
        check_equal(seen["cadre_generations_total", "reason=started"], 1, "generations")
        check(seen["cadre_releases_total"] >= seen["cadre_release_latency_seconds_count"] > 0, "releases")
        check(seen["cadre_ledger_commit_seconds_count"] > 0, "commits")
        check_equal(seen["cadre_rpcs_total", "code=OK", "method=cadre.v1.Jobs/Submit"], 1, "calls")
        check_equal(seen["cadre_worker_streams"], 2, "streams")
        check_equal(seen["cadre_build_info", "program=cadre-coordinator",
                         f"version={json.loads(cluster.cadre('version', '--json').stdout)['client']}"], 1, "build")
        used = sum(scrape(worker)["cadre_worker_tasks", "phase=running"] for worker in cluster.workers)
        check_equal(used, 2, "tasks that run, by their workers")
        client.cancel(job)
        client.wait(job)
        check_equal(client.run(script("exit 3")).state, FAILED, "another")
        seen = scrape(cluster.coordinator)
        check_equal(seen["cadre_jobs_ended_total", "state=cancelled"], 1, "cancelled")
        check_equal(seen["cadre_jobs_ended_total", "state=failed"], 1, "failed")
        check(seen["cadre_tasks_ended_total", "how=failed"] >= 1, "tasks that failed")
        check(not any(key[0] == "cadre_job_position" for key in seen.values), "of ended jobs there are no samples")


def test_a_job_that_stands_still_says_where():
    """A program that does something else for long between two steps: all that it did before is shown."""
    with Cluster(workers=2) as cluster:
        learning = Learning(cluster, allowed=0)
        for steps in (3, 6, 9, 11, 16):  # within the window of steps, and over the end of an epoch
            learning.allow(steps)
            seen = [learning.until_position(steps).position, learning.get().position]
            check_equal(seen, [steps, steps], "the position that Watch and Get tell")
        learning.allow()
        learning.end()
        learning.check_learned()


def test_steps_are_reported_ten_times_a_second_at_most():
    count = 12
    with Cluster(workers=1) as cluster:
        client = cluster.client
        job = client.submit(trainer(), arguments=["100000000"])
        client.wait_running(job)
        wait_for("steps are committed", lambda: client.get(job).position > 0)
        watch = client.jobs.Watch(jobs_pb2.JobRequest(id=job), timeout=HANG_S)
        next(watch)
        began = time.monotonic()
        seen = [next(watch).position for _ in range(count)]
        took_s = time.monotonic() - began
        watch.cancel()
        check(seen == sorted(seen) and seen[-1] > seen[0], f"positions {seen}")
        check(took_s > 0.095 * (count - 2), f"{count} messages in {took_s:.2f} s")
        client.cancel(job)
        client.wait(job)


def test_a_lost_worker_is_counted():
    timing = [*HTTP, "--lease", scaled("500ms")]
    with Cluster(workers=2, coordinator=timing, worker=["--heartbeat", "100ms"]) as cluster:
        client = cluster.client
        job = client.submit(trainer(), workers=2, workers_min=1, arguments=["100000000"])
        wait_for("steps are committed", lambda: client.get(job).position > 5)
        cluster.workers[1].kill()
        wait_for("it goes on", lambda: client.get(job).generation > 1 and client.get(job).state == RUNNING)
        seen = scrape(cluster.coordinator)
        check_equal(seen["cadre_workers_lost_total"], 1, "workers lost")
        check_equal(seen["cadre_tasks_ended_total", "how=lost"], 1, "tasks lost")
        check_equal(seen["cadre_generations_total", "reason=lost"], 1, "generations")
        client.cancel(job)
        client.wait(job)
        cluster.workers[1].start()  # it clears what its earlier run left


def test_health():
    with Cluster(coordinator=HTTP, worker=[*HTTP, "--drain-timeout", "20s"]) as cluster:
        worker = cluster.workers[0]
        check_equal(ask(cluster.coordinator, "/healthz")[:2], (200, "ok\n"), "the coordinator")
        check_equal(ask(worker, "/healthz")[:2], (200, "ok\n"), "the worker")
        check_equal(ask(worker, "/nothing")[0], 404, "another page")
        check_equal(ask(worker, "/healthz", "DELETE")[0], 405, "another method")
        check_equal(ask(worker, "/healthz", "HEAD")[:2], (200, ""), "only its head")
        check_in("/metrics", ask(worker, "/")[1], "the list")
        cluster.coordinator.stop()
        wait_for("the worker says so", lambda: ask(worker, "/healthz")[0] == 503)
        check_in("has not joined", ask(worker, "/healthz")[1], "why")
        cluster.coordinator.start()
        wait_for("it is back", lambda: ask(worker, "/healthz")[0] == 200)
        job = cluster.client.submit(script("trap '' TERM; while :; do sleep 0.05; done"))
        cluster.client.wait_running(job)
        worker.signal(signal.SIGTERM)
        wait_for("it drains", lambda: ask(worker, "/healthz")[0] == 503)
        check_in("drains", ask(worker, "/healthz")[1], "why")
        cluster.client.cancel(job)


class Terminal:
    """A program on a terminal of its own."""

    def __init__(self, argv, environment, rows=24, columns=100, kind="xterm"):
        self.screen = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, environment | {"TERM": kind})
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.fd)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                piece = os.read(self.fd, 65536)
            except OSError:
                return
            if not piece:
                return
            self.screen += piece

    def wait(self, what, pattern):
        def seen():
            self.read()
            return re.search(pattern, self.screen)
        wait_for(what, seen, 10)
        found = re.search(pattern, self.screen)
        self.screen = self.screen[found.end():]

    def end(self):
        status = []

        def ended():
            self.read()
            pid, code = os.waitpid(self.pid, os.WNOHANG)
            status.append(code)
            return pid != 0
        wait_for("it ends", ended, 10)
        self.read()
        os.close(self.fd)
        return status[-1]


# Title, clear, clipboard, a C1 control as a byte and as a character, a direction; and what stays.
UGLY = (b"\x1b]0;own\x07 \x1b[2J \x1b]52;c;b3duZWQ=\x1b\\\\ \x9b31m \xc2\x9b31m \x1bP1$r\x1b\\\\ \xe2\x80\xaedirection"
        b" \x08\x7f \xe2\x9c\x93 \tfine")
SHOWN = (rb"\x1b]0;own\x07 \x1b[2J \x1b]52;c;b3duZWQ=\x1b\\ \x9b31m \xc2\x9b31m \x1bP1$r\x1b\\ \xe2\x80\xaedirection"
         rb" \x08\x7f " b"\xe2\x9c\x93 \tfine")


def on_terminal(*arguments, cluster):
    """What the command sends to its terminal."""
    terminal = Terminal([program("cadre"), *arguments], clean_environment() | {"CADRE_COORDINATOR": cluster.address})
    terminal.end()
    return terminal.screen.replace(b"\r\n", b"\n")


def test_a_terminal_gets_no_controls_of_a_job():
    with Cluster(slots=2) as cluster:
        ugly = os.path.join(cluster.folder, "ugly")
        with open(ugly, "wb") as file:
            file.write(UGLY + b"\n" + b"half \xe2\x9c")
        job_file = os.path.join(cluster.folder, "job")
        with open(job_file, "wb") as file:
            file.write(script("cat ugly; echo end of it; exit 0"))
        os.chmod(job_file, 0o755)
        for workers in ("1", "2"):
            screen = on_terminal("submit", "--workers", workers, "--file", ugly, job_file, cluster=cluster)
            check_in(SHOWN, screen, f"what submit shows of {workers}")
            check_in(rb"half \xe2\x9cend of it", screen, "half a character")
            for bad in (b"\x1b]", b"\x1b[2J", b"\x07", b"\x9b", b"\xe2\x80\xae", b"\x1bP"):
                check(bad not in screen, f"{bad} reaches the terminal: {screen}")
        for job in ("1", "2"):
            for options in ((), ("--task", "0"), ("--follow",)):
                screen = on_terminal("logs", *options, job, cluster=cluster)
                check_in(SHOWN, screen, f"what logs {options} shows of job {job}")
                controls = re.search(rb"\x1b[^[]|\x1b\[[^0-9]|\x1b\[2J|[\x07\x08\x7f]|\x9b", screen)
                check(not controls, f"controls: {screen}")
                raw = on_terminal("logs", "--raw", *options, job, cluster=cluster)
                check_in(UGLY, raw, "with --raw")
                check_in(UGLY, cluster.cadre("logs", *options, job).stdout, "to a pipe")
            screen = on_terminal("logs", "--json", job, cluster=cluster)
            check(not re.search(rb"[^\x09\x0a\x20-\x7f]", screen), f"JSON on a terminal: {screen}")
        screen = on_terminal("submit", "--raw", "--file", ugly, job_file, cluster=cluster)
        check_in(UGLY, screen, "submit --raw")


def check_frames_rest(environment):
    """Between two frames it waits, and uses no CPU for that."""
    with subprocess.Popen([program("cadre"), "top", "--json", "--interval", "600ms"], stdout=subprocess.PIPE,
                          env=environment) as top:
        used_s = []
        for _ in range(3):
            json.loads(top.stdout.readline())
            with open(f"/proc/{top.pid}/stat", encoding="ascii") as file:
                used_s.append(sum(map(int, file.read().split()[13:15])) / os.sysconf("SC_CLK_TCK"))
        top.send_signal(signal.SIGINT)
        check_equal(top.wait(10), 0, "exit status after SIGINT")
        check(used_s[2] - used_s[0] < 0.15, f"CPU seconds at its frames, of 1.2 s: {used_s}")


def test_a_replica_that_hangs_is_named():
    """By its task, and by the coordinator, also where no other task is there to wait for it."""
    shown = "replica 1 of task 0 on worker w0 has not come to collective 1"
    with Cluster(workers=1) as cluster:
        client = cluster.client
        job = client.submit(trainer(), replicas=2, arguments=["1000", "0", "5", "stick"])
        info = client.watch_until(job, lambda info: "is still in it" in info.message, "that a step does not end")
        info = client.watch_until(job, lambda info: shown in info.message, "which replica does not come, from its task")
        check_in("step 5 has not ended for ", info.message, "the message")
        check_in(shown, info.message, "the message")
        check_in(shown, cluster.cadre("job", str(job)).stdout.decode(), "cadre job")
        check_in(shown, json.loads(cluster.cadre("job", str(job), "--json").stdout)["message"], "its JSON")
        check_in(shown, cluster.cadre("top").stdout.decode(), "cadre top")
        check_in("replica 1 has not come to collective 1 of step 5 for 10 s", client.log(job).decode(), "its output")
        client.cancel(job)
        client.wait(job)
        info = client.run(trainer(), replicas=2, arguments=["1000", "0", "5", "stick"], max_restarts=0,
                          stall_us=14000000)
        check_equal(info.state, FAILED, "the state")
        check_in(f"{shown} in step 5 for 1", info.message, "why it ended")
        check_in(f"{shown} in step 5 for 1", cluster.coordinator.log(), "the coordinator's log")


def test_top():
    with Cluster() as cluster:
        client = cluster.client
        job = client.submit(trainer(), arguments=["100000000"])
        client.wait_running(job)
        environment = clean_environment() | {"CADRE_COORDINATOR": cluster.address}
        for leave in (b"q", signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            terminal = Terminal([program("cadre"), "top", "--interval", "200ms"], environment)
            terminal.wait("it takes the screen", rb"\x1b\[\?1049h")
            terminal.wait("the job with its speed", rb"running\x1b\[0m +1/1 +0 +\d+ +\d+")
            terminal.wait("its worker", rb"w0 ")
            terminal.resize(2, 40)
            terminal.wait("two lines", rb"\x1b\[H[^\n]*\n\x1b\[K\x1b\[J")
            if isinstance(leave, bytes):
                os.write(terminal.fd, b"\x1b[A\x1bOQ")  # an arrow and F2 leave nothing
                terminal.wait("it goes on", rb"(?s)\x1b\[H.*\x1b\[H.*\x1b\[H")
                os.write(terminal.fd, leave)
            else:
                os.kill(terminal.pid, leave)
            status = terminal.end()
            last = terminal.screen[-80:]
            check(last.endswith(b"\x1b[?7h\x1b[?25h\x1b[?1049l"), f"the screen is back: {last}")
            check_equal(status, signal.SIGHUP if leave == signal.SIGHUP else 0, f"exit status after {leave}")
        once = cluster.cadre("top").stdout.decode()
        check_in("1 worker, 1 of 1 slots used", once, "one frame")
        check("\x1b" not in once, "plain text")
        dumb = Terminal([program("cadre"), "top"], environment, kind="dumb")
        check_equal(dumb.end(), 0, "one frame on a terminal that knows no sequences")
        check_in(b"1 worker, 1 of 1 slots used", dumb.screen, "that frame")
        check(b"\x1b" not in dumb.screen, "plain text")
        frame = json.loads(cluster.cadre("top", "--once", "--json").stdout)
        check_frames_rest(environment)
        check_equal((frame["slots_used"], frame["jobs"][0]["id"], frame["workers"][0]["name"]), (1, job, "w0"), "JSON")
        client.cancel(job)
        client.wait(job)
        cluster.coordinator.kill()
        check_in(b"no coordinator answers", cluster.cadre("top", status=3).stderr, "without a coordinator")
        cluster.coordinator.start()


def cpu_s(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_top_rests_between_frames():
    with Cluster() as cluster:
        with subprocess.Popen([program("cadre"), "top", "--json", "--interval", "1s"], stdout=subprocess.PIPE,
                              env=clean_environment() | {"CADRE_COORDINATOR": cluster.address}) as top:
            check_in(b'"workers"', top.stdout.readline(), "a frame")
            before = cpu_s(top.pid)
            check_in(b'"workers"', top.stdout.readline(), "the next")
            used = cpu_s(top.pid) - before
            top.send_signal(signal.SIGINT)
            check_equal(top.wait(10), 0, "exit status")
        check(used < 0.2, f"{used} s of CPU time in a second between two frames")


LINES = 20000  # of 20 bytes each: ten times the limit
TALKER = script(f"awk 'BEGIN {{ for (i = 0; i < {LINES}; i++) printf \"line %013d \\n\", i }}'")
LIMIT = 40 * 1024


def test_a_long_log_keeps_its_beginning_and_its_end():
    with Cluster(coordinator=["--log-limit", str(LIMIT)]) as cluster:
        client = cluster.client
        job = client.submit(TALKER)
        followed = cluster.cadre("logs", "-f", str(job))
        check_equal(client.wait(job).state, SUCCEEDED, "the job")
        lines = followed.stdout.decode().splitlines()
        shown = [int(count) for count in re.findall(rb"(\d+) bytes are left out here", followed.stderr)]
        cut = [line for line in lines if not re.fullmatch(r"line \d{13} ", line)]
        lines = [line for line in lines if line not in cut]
        check_equal(len(followed.stdout) + sum(shown), LINES * 20,
                    "what the follower got, and what it was reported to have missed")
        # Where it stood when the middle of the log went, a line may have been half sent.
        check(len(cut) <= len(shown), f"lines that are broken: {cut}")
        numbers = [int(line.split()[1]) for line in lines]
        check_equal(numbers, sorted(set(numbers)), "lines twice or out of order")

        read = cluster.cadre("logs", str(job))
        lines = read.stdout.decode().splitlines()
        check_in(len(lines) * 20, range(LIMIT // 2, LIMIT + 1), "bytes that are kept")
        check_equal(int(re.search(rb"task 0: (\d+) bytes are left out here", read.stderr)[1]),
                    (LINES - len(lines)) * 20, "what is left out")
        check_equal((lines[0].split()[1], lines[-1].split()[1]), (f"{0:013}", f"{LINES - 1:013}"), "first and last")
        check_equal(client.get(job).tasks[0].log_bytes, LINES * 20, "size of the log")
        check_equal(json.loads(cluster.cadre("drain", "w0", "--json").stdout), {"worker": "w0", "tasks": 0}, "drain")
        cluster.coordinator.stop()
        cluster.coordinator.start()
        check_equal(cluster.cadre("logs", str(job)).stdout, read.stdout, "after a restart")
        tail = cluster.cadre("logs", "--tail", "5", str(job)).stdout.decode().splitlines()
        check_equal(tail, lines[-5:], "its tail")

        objects = [json.loads(line) for line in cluster.cadre("logs", "--json", str(job)).stdout.splitlines()]
        check_equal([each["text"] for each in objects], lines, "the lines as JSON")
        check_equal({(each["job"], each["task"], each["partial"]) for each in objects}, {(job, 0, False)}, "whose")
        end = 0
        for each in objects:
            check_equal(each["offset"], end + each["left_out"], f"where {each} is")
            end = each["offset"] + len(each["text"]) + 1
        check_equal(end, LINES * 20, "the end of the last line")
        objects = [json.loads(line) for line in
                   cluster.cadre("logs", "--json", "--tail", "30", str(job)).stdout.splitlines()]
        check_equal(objects[-1]["offset"], LINES * 20 - 20, "the last of a tail")


def secure_ask(port, ca, tls=None, path="/healthz"):
    """Status and text, or the exception of the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.load_verify_locations(os.path.join(ca, "ca.pem"))
    if tls:
        context.load_cert_chain(os.path.join(tls, "cert.pem"), os.path.join(tls, "key.pem"))
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return error, ""
    finally:
        connection.close()


def test_pages_over_tls():
    """Off loopback, to whom shows a certificate of the cluster's CA; and new files are taken up. Loopback is plain."""
    with Cluster(workers=0, start=False) as cluster:
        pki, other = Pki(cluster.folder, "pki"), Pki(cluster.folder, "other")
        tls = pki.issue("coordinator", "main")
        viewer = pki.issue("viewer", "prometheus")
        cluster.coordinator.argv += ["--http", "0.0.0.0:0", "--tls-dir", tls]
        cluster.coordinator.start()
        port = http_port(cluster.coordinator)
        status, text = secure_ask(port, tls, viewer)
        check_equal((status, text), (200, "ok\n"), "a viewer")
        expiry = float(re.search(r"^cadre_tls_certificate_expiry_timestamp_seconds (\S+)$",
                                 secure_ask(port, tls, viewer, "/metrics")[1], re.M)[1])
        check(time.time() < expiry < time.time() + 400 * 86400, f"it expires at {expiry}")
        for who, shown in (("no certificate", None), ("a worker", pki.issue("worker", "w0")),
                           ("a foreigner", other.issue("viewer", "eve"))):
            check(secure_ask(port, tls, shown)[0] != 200, f"{who} reads")
        status, text = plain_ask(port)
        check("ok" not in text, f"plain text is answered: {status} {text}")
        old = open(os.path.join(tls, "cert.pem"), "rb").read()
        pki.issue("coordinator", "main", "--force", into=tls)
        check(open(os.path.join(tls, "cert.pem"), "rb").read() != old, "it is the same certificate")
        cluster.coordinator.signal(signal.SIGHUP)
        wait_for("the new files are in use", lambda: "new files are in use" in cluster.coordinator.log())
        check_equal(secure_ask(port, tls, viewer)[0], 200, "a viewer, after the renewal")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE

        def shows_new():
            with context.wrap_socket(socket.create_connection(("127.0.0.1", port), 10)) as connection:
                shown = ssl.DER_cert_to_PEM_cert(connection.getpeercert(True)).encode()
            return shown.splitlines()[1] not in old  # it begins with the serial number

        wait_for("the new certificate is shown", shows_new)

        cluster.coordinator.stop()
        cluster.coordinator.argv[cluster.coordinator.argv.index("0.0.0.0:0")] = "127.0.0.1:0"
        cluster.coordinator.start()
        check_equal(ask(cluster.coordinator, "/healthz")[:2], (200, "ok\n"), "plain HTTP on loopback")
        renewed = cluster.coordinator.log().count("new files are in use")
        pki.issue("coordinator", "main", "--force", "--days", "3", into=tls)
        cluster.coordinator.signal(signal.SIGHUP)
        wait_for("new files again", lambda: cluster.coordinator.log().count("new files are in use") > renewed)
        check_equal(ask(cluster.coordinator, "/healthz")[:2], (200, "ok\n"), "plain HTTP after the renewal")
        expiry = scrape(cluster.coordinator)["cadre_tls_certificate_expiry_timestamp_seconds"]
        check(2.9 < (expiry - time.time()) / 86400 < 3.1, f"it expires at {expiry}, not in 3 days")
        wait_for("its end is logged", lambda: "expires soon" in cluster.coordinator.log())


def plain_ask(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        return error, ""
    finally:
        connection.close()


def test_quotas():
    leave = script('head -c 60000 /dev/zero >"$CADRE_OUTPUT_DIR/large"')
    with Cluster(coordinator=[*HTTP, "--storage-quota", "150000", "--job-quota", "100000"]) as cluster:
        client = cluster.client
        jobs = [client.run(leave).id for _ in range(3)]
        check_equal([client.get(job).state for job in jobs[1:]], [SUCCEEDED] * 2, "the later ones")
        refused = refusal(client.jobs.Get, jobs_pb2.JobRequest(id=jobs[0]))
        check_equal(refused[0], "NOT_FOUND", "the oldest made room")
        check(not os.path.exists(os.path.join(cluster.coordinator.state, "jobs", str(jobs[0]))), "its files are gone")
        check_equal(len(client.output(jobs[2], "0/large")), 60000, "an output")

        two = client.run(script('for i in 1 2; do head -c 60000 /dev/zero >"$CADRE_OUTPUT_DIR/$i"; done'))
        check_equal(len(client.outputs(two.id)), 1, "outputs within the job's quota")
        check_in("--job-quota", cluster.coordinator.log(), "what is said of the other")
        refused = refusal(client.jobs.PutBlob, blob_chunks(b"x" * 200000))
        check_equal(refused[0], "RESOURCE_EXHAUSTED", "a file that never fits")
        check_in("--storage-quota", refused[1], "why")
        seen = scrape(cluster.coordinator)
        check(seen["cadre_storage_refusals_total"] >= 2, "refusals")
        check(seen["cadre_jobs_forgotten_total"] >= 1, "forgotten jobs")
        check_equal(seen["cadre_storage_quota_bytes"], 150000, "the quota")


def test_a_job_in_the_logs_of_both_daemons():
    with Cluster(coordinator=["--log-format", "json", "--log-level", "debug"],
                 worker=["--log-format", "json", "--log-level", "debug"]) as cluster:
        job = cluster.client.run(script("echo hello")).id
        for daemon, wanted in ((cluster.coordinator, ["a job was submitted", "task ended", "a job ended"]),
                               (cluster.workers[0], ["preparing a task", "task started", "task ended"])):
            events = [json.loads(line) for line in daemon.log().splitlines()]
            for event in events:
                check(set(event) >= {"time", "level", "component", "message"}, f"an event of {daemon.name}: {event}")
            seen = [event["message"] for event in events if event.get("job") == job]
            for message in wanted:
                check_in(message, seen, f"what {daemon.name} says of the job")


if __name__ == "__main__":
    run(globals())
