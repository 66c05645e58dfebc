# SPDX-License-Identifier: Apache-2.0
"""A coordinator's HTTP address without a coordinator: the files of the page, and answers of /api/ that are made up, in
the form of the real ones. For what a cluster of this machine cannot have: 10,000 jobs, 1,000 workers, 300 tasks, names
that attack, a coordinator that is away for as long as a test wants."""
import http.server
import json
import os
import threading
import urllib.parse

ASSETS = os.environ.get("CADRE_TEST_ASSETS", "")
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
         ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml"}
POLICY = ("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
BEGAN_US = 1_790_000_000_000_000
JOBS, WORKERS = 10_000, 1_000
ATTACK = '<img src=x onerror="window.attacked=1">\x1b[31m\u202e'
STORY = 9_999  # the job with a history and curves
WIDE = 9_998   # the one with 300 tasks
SERVED = 9_997  # the one with parameter servers and an evaluator


def second(number):
    return BEGAN_US + int(number * 1_000_000)


def job(number, tasks=2, state="succeeded", name="fit", message="", position=1000):
    final = state not in ("queued", "running")
    return {"id": number, "name": name, "program": "fit", "state": state, "final": final,
            "code": "ABORTED" if state == "failed" else "OK", "message": message, "exit_code": int(state == "failed"),
            "workers": tasks, "workers_min": tasks, "roster": tasks if state == "running" else 0, "restarts": 0,
            "replicas": 0, "priority": 0, "memory_bytes": 0, "cpu_thousandths": 0, "pids": 0, "time_limit_us": 0,
            "submitted_us": second(0), "started_us": 0 if state == "queued" else second(1),
            "ended_us": second(100) if final else 0, "position": position, "verified": None, "generation": 1,
            "checkpoint": "", "wait": None, "progress": None, "outputs_folder": ""}


def one_job(number):
    """The job of a number: some in each state, two with a history."""
    if number == JOBS:
        return job(number, name=ATTACK, state="failed", message=ATTACK)
    if number in (STORY, WIDE):
        tasks = 300 if number == WIDE else 3
        found = job(number, tasks=tasks, state="running", name="story" * 40, position=900)
        found["progress"] = {"stream": "train", "epoch": 4, "epochs": 10, "step": 5, "steps": 10,
                             "samples_per_s": 1234.5, "left_s": 61.0, "metrics": {"loss": 0.25, ATTACK: None}}
        found["outputs_folder"] = f"s3://results/{'deep/' * 40}{ATTACK}//"
        return found
    if number == SERVED:
        found = job(number, tasks=6, state="running", name="served")
        found["ps_job"] = {"workers": 2, "servers": 2, "evaluators": 1}
        found["evaluation"] = {"stream": "evaluation", "epoch": 7, "epochs": 0, "step": 1200, "steps": 0,
                               "samples_per_s": 0.0, "left_s": None, "metrics": {"loss": 0.125, ATTACK: None}}
        return found
    if number % 100 == 3:
        return job(number, tasks=64, state="queued", message="waits for more workers: it asks for 64 slots", position=0)
    if number % 7 == 0:
        return job(number, state="failed", message="task 0 on worker w0 exited with status 1")
    return job(number)


def tasks_of(found):
    return [{"task": i, "state": "running" if found["state"] == "running" else "exited", "worker": f"w{i:04}",
             "incarnation": i + 1, "pid": 100 + i, "exit_code": None, "exit_signal": None, "exit_text": "",
             "uses_cadre": True, "log_bytes": 1000 * i, "fetch": None, "usage": usage(),
             "waited_us": 4_200_000 if i == 1 else 0}
            for i in range(found["workers"])]


def usage():
    return {"cpu_thousandths": 31_980, "memory_bytes": 5 << 34, "memory_peak_bytes": 3 << 35, "gpu_percent": 97,
            "gpu_memory_bytes": 70 << 30}


def worker(number):
    gpu = {"name": "Card", "uuid": f"GPU-{number}", "bus": "0000:01:00.0", "memory_bytes": 1 << 36,
           "compute_major": 9, "compute_minor": 0, "unused": ""}
    return {"id": number, "name": f"w{number:04}", "state": "draining" if number == 7 else "ready",
            "drained_by": "an operator" if number == 7 else "", "drained_why": ATTACK if number == 7 else "",
            "host": f"host{number}", "version": "0.1.9" if number == 5 else "0.2.0", "slots": 4,
            "slots_used": number % 5, "cpus": 64, "memory_bytes": 1 << 38, "joined_us": second(0), "gpus": [gpu],
            "gpus_usable": 1, "gpus_omitted": 0, "gpu_driver": "555.1", "gpu_runtime": "12.4", "nccl": 22809,
            "gpu_reason": "", "usage": usage(), "certificate_ends_us": second(86400 * (3 if number == 3 else 300))}


def event(kind, time_s, **fields):
    return {"time_us": second(time_s), "kind": kind, "generation": 1, "position": 0, "task": None, "incarnation": 0,
            "tasks": 0, "undone": 0, "restarted": False, "waited_us": 0, "exit_code": 0, "exit_signal": 0,
            "worker": "", "roster": "", "text": ""} | fields


def story(found):
    """Two tasks are lost, one is waited for, 40 steps are undone from a checkpoint."""
    count = found["workers"]
    events = [event("submitted", 0, generation=0), event("started", 1, tasks=count, generation=0)]
    events += [event("task_started", 2, task=i, worker=f"w{i:04}", incarnation=i + 1) for i in range(count)]
    events += [
        event("generation", 4, tasks=count, roster=f"0-{count - 1}"),
        event("checkpoint", 20, position=300),
        event("stalled", 25, position=400, task=2, worker="w0002"),
        event("went_on", 29, position=400, waited_us=4_000_000),
        event("task_lost", 40, position=600, task=1, worker="w0001", incarnation=2, text=f"killed: {ATTACK}"),
        event("task_started", 41, position=600, task=1, worker="w0009", incarnation=count + 1),
        event("generation", 43, generation=2, position=600, tasks=count),
        event("checkpoint", 50, generation=2, position=700),
        event("task_lost", 60, generation=2, position=740, task=0, worker="w0000", incarnation=1),
        event("task_started", 62, generation=2, position=740, task=0, worker="w0000", incarnation=count + 2),
        event("generation", 64, generation=3, position=700, undone=40, restarted=True, tasks=count)]
    return [{"number": i + 1} | one for i, one in enumerate(events)]


def curves(found):
    """`loss` has buckets, then points with a gap; `rate` spans magnitudes; one name attacks."""
    loss = [[step, 100 / step if step % 50 else "NaN"] for step in range(257, 901)]
    bucket = [{"first_step": 64 * i + 1, "last_step": 64 * (i + 1), "count": 64, "not_finite": 0,
               "minimum": 0.5 / (i + 1), "maximum": 2 / (i + 1), "mean": 1 / (i + 1), "last": 1 / (i + 1)}
              for i in range(4)]
    rate = [[step, 10 ** (-step / 200)] for step in range(1, 901)]
    generations = [{"generation": n + 1, "first_step": first, "tasks": found["workers"], "restarted": n == 2,
                    "began_us": second(4)} for n, first in enumerate((0, 600, 700))]
    return {"id": found["id"], "generations": generations, "lost_bytes": 0, "refused": 0, "series": [
        {"name": "loss", "stride": 64, "buckets": bucket, "points": loss},
        {"name": "rate", "stride": 1, "buckets": [], "points": rate},
        {"name": ATTACK, "stride": 1, "buckets": [], "points": [[1, "Infinity"], [2, "NaN"]]}]}


def log_page(found, values):
    lines = [f"line {i} of task {values['task']}" if i != 3 else ATTACK for i in range(200)]
    offset = int(values.get("offset", 0))
    shown, at = [], 0
    for text in lines:
        if at >= offset:
            shown.append({"job": found["id"], "task": int(values["task"]), "stream": "stdout", "received_us": second(5),
                          "offset": at, "left_out": 0, "text": text, "partial": False})
        at += len(text.encode()) + 1
    return {"lines": shown, "next_offset": at, "end_offset": at}


def listing(values):
    before = int(values.get("before", JOBS + 1))
    limit = int(values.get("limit", 200))
    state = values.get("state")
    fits = []
    for number in range(before - 1, 0, -1):
        found = one_job(number)
        if not state or found["state"] == state or (state == "live" and not found["final"]):
            fits.append(found)
        if len(fits) > limit:
            break
    return {"jobs": fits[:limit], "more": len(fits) > limit}


def workers(values):
    limit = int(values.get("limit", 200))
    fits = [worker(i) for i in range(WORKERS) if f"w{i:04}" > values.get("after", "")]
    return {"workers": fits[:limit], "more": len(fits) > limit}


def answer_of_job(parts, values):
    found = one_job(int(parts[0]))
    about = parts[1] if len(parts) > 1 else ""
    has_story = found["id"] in (STORY, WIDE)
    if about == "history":
        events = [one for one in (story(found) if has_story else []) if one["number"] > int(values.get("after", 0))]
        return {"id": found["id"], "name": found["name"], "state": found["state"], "events": events, "dropped": 0,
                "more": False}
    if about == "metrics":
        return curves(found) if has_story else {"id": found["id"], "series": [], "generations": [], "lost_bytes": 0,
                                           "refused": 0}
    if about == "logs":
        return log_page(found, values)
    if about == "shards":
        files = [{"name": f"part-{i}{ATTACK}", "rank": i % 3, "read": i, "total": 100} for i in range(500)]
        return {"id": found["id"], "datasets": [{"dataset": ATTACK, "policy": "FILE", "epoch": 4, "step": 5,
                                                 "readers": 3, "file_count": 500, "files_read": 0, "files": files}]}
    if about == "verification":
        epoch = {"stream": 1, "name": "train", "epoch": 0, "steps": 10, "steps_whole": 10, "samples": 160,
                 "source_samples": 160, "verdict": "exact", "text": "every one of 160 samples exactly once"}
        return {"id": found["id"], "name": found["name"], "state": found["state"], "conclusion": "proved",
                "committed": 900, "steps_proved": 900, "tiled": True, "tiling": "3 generations own the steps",
                "exact": 1, "as_defined": 0, "differing": 0, "not_provable": 0, "epochs": [epoch] * 3000,
                "generations": [], "more": False, "verified": []}
    return found | {"tasks": tasks_of(found)}


class Standin:
    """with Standin() as standin: ... standin.url; stop() and start() make it go away and come back."""

    def __init__(self, may=True):
        self.may = may
        self.posted = []
        self.poll_ms = None  # with what time between two polls it answers
        self.tokens = set()  # that came in headers
        self.port = 0
        self.server = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def start(self):
        standin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                if self.path.startswith("/api/"):
                    standin.tokens.add(self.headers.get("Authorization"))
                self.reply(*standin.answer(self.path))

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                standin.posted.append((self.path, self.headers.get("Content-Type"), body))
                self.reply(200, "application/json", b"{}")

            def reply(self, status, kind, body):
                try:
                    self.send_response(status)
                    for name, value in (("Content-Type", kind), ("Content-Length", str(len(body))),
                                        ("Content-Security-Policy", POLICY), ("Cache-Control", "no-store")):
                        self.send_header(name, value)
                    if standin.poll_ms is not None:
                        self.send_header("Cadre-Poll-Ms", str(standin.poll_ms))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    pass  # the browser asks no longer

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def answer(self, target):
        address = urllib.parse.urlsplit(target)
        values = dict(urllib.parse.parse_qsl(address.query))
        if address.path == "/" or address.path.startswith("/assets/"):
            name = os.path.basename(address.path) or "index.html"
            path = os.path.join(ASSETS, name)
            if not os.path.isfile(path):
                return 404, "text/plain", b"no such file"
            with open(path, "rb") as file:
                return 200, TYPES[os.path.splitext(name)[1]], file.read()
        parts = [urllib.parse.unquote(part) for part in address.path.split("/")[2:]]
        return 200, "application/json", json.dumps(self.api(parts, values)).encode()

    def api(self, parts, values):
        if parts == ["cluster"]:
            return {"time_us": second(90), "workers_ready": WORKERS - 1, "workers_draining": 1, "workers_away": 0,
                    "slots": 4 * WORKERS, "slots_used": 2000, "gpus": WORKERS, "jobs_running": 2, "jobs_queued": 100,
                    "version": "0.2.0", "tls": {"used": True, "certificate_ends_us": second(86400 * 3)},
                    "role": "client", "may": {"cancel": self.may, "drain": self.may}}
        if parts == ["jobs"]:
            return listing(values)
        if parts == ["workers"]:
            return workers(values)
        if parts[0] == "workers":
            return {"workers": [worker(int(parts[1][1:]))]}
        return answer_of_job(parts[1:], values)
