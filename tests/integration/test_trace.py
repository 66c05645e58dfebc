# SPDX-License-Identifier: Apache-2.0
"""`cadre trace`: one file over all tasks of a job that runs, on one clock, and who is waited for."""
import json
import os
import re
import signal
import subprocess
import tempfile

from client import RUNNING, common_pb2
from cluster import Cluster, clean_environment, program
from learning import FAST, FAST_WORKER
from testing import HANG_S, check, check_equal, check_in, run, wait_for

TRACED = os.environ.get("CADRE_TEST_TRACED", "")
LONG = "1000000"  # steps; no test waits for their end


def traced(cluster, *arguments, tasks=2, **fields):
    with open(TRACED, "rb") as file:
        content = file.read()
    return cluster.client.submit(content, workers=tasks, arguments=list(arguments), **fields)


def until_position(cluster, job, position):
    return cluster.client.watch_until(job, lambda info: info.state == RUNNING and info.position >= position,
                                      f"position {position}")


def start_recorder(cluster, job, *arguments):
    """A `cadre trace` that is under way."""
    recorder = subprocess.Popen([program("cadre"), "trace", str(job), *arguments], cwd=cluster.folder,
                                env=clean_environment() | {"CADRE_COORDINATOR": cluster.address},
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for("the trace begins", lambda: f"a trace begins job={job} " in cluster.coordinator.log())
    return recorder


def end(cluster, job):
    cluster.cadre("cancel", str(job))
    cluster.client.watch_until(job, lambda info: info.state > 4, "the end")


class Trace:
    """A file, read as a viewer reads it."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            whole = json.load(file)
        self.about = whole["otherData"]
        self.events = [event for event in whole["traceEvents"] if event["ph"] == "X"]
        self.names = {event["pid"]: event["args"]["name"] for event in whole["traceEvents"]
                      if event["name"] == "process_name"}
        check_equal({event["ph"] for event in whole["traceEvents"]}, {"X", "M"}, "phases")

    def named(self, name, task=None, step=None):
        pids = [pid for pid, text in self.names.items() if task is None or text.startswith(f"task {task} ")]
        return [event for event in self.events if event["name"] == name and event["pid"] in pids and
                (step is None or event["args"]["step"] == step)]

    def steps(self, task):
        return sorted({event["args"]["step"] for event in self.named("step", task)})

    def check_nested(self):
        """The spans of each thread are within each other, or apart."""
        for thread in {(event["pid"], event["tid"]) for event in self.events}:
            open_until = []
            events = [event for event in self.events if (event["pid"], event["tid"]) == thread]
            for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
                while open_until and open_until[-1] <= event["ts"] + 0.0005:
                    open_until.pop()
                last = event["ts"] + event["dur"]
                check(not open_until or last <= open_until[-1] + 0.002, f"{event} is in none of {open_until}")
                open_until.append(last)

    def check_together(self, steps):
        """The all-reduce of a step is at one time in all tasks: all are in it at some moment."""
        for step in steps:
            both = [max(self.named("all_reduce", task, step), key=lambda event: event["ts"]) for task in (0, 1)]
            begin = max(event["ts"] for event in both)
            last = min(event["ts"] + event["dur"] for event in both)
            slack = 2 * max(task["clock_error_us"] for task in self.about["tasks"])
            check(begin <= last + slack, f"step {step}: {both}")


def record(cluster, job, *arguments):
    path = os.path.join(cluster.folder, "out.json")
    said = cluster.cadre("trace", str(job), "-o", path, *arguments)
    return Trace(path), said.stdout.decode(), said.stderr.decode()


def record_steps_to_come(cluster, job, steps):
    """By their numbers: further ahead where this machine is too busy to get there in time."""
    path = os.path.join(cluster.folder, "out.json")
    for ahead in (80, 400, 2000):
        first = until_position(cluster, job, 3).position + ahead
        done = cluster.cadre("trace", str(job), "-o", path, "--steps", f"{first}:{first + steps}", status=None)
        if b"may have begun" not in done.stderr:
            break
    check_equal(done.returncode, 0, f"status: {done.stderr}")
    return first, Trace(path), done.stdout.decode()


def check_whole(trace, steps, tasks=2):
    for task in range(tasks):
        check_equal(trace.steps(task), list(steps), f"steps of task {task}")
        for step in steps:
            for name in ("input", "function", "all_reduce"):
                check(trace.named(name, task, step), f"task {task} has no {name} in step {step}")
    trace.check_nested()
    check_equal([task["lost"] + task["missing"] for task in trace.about["tasks"]], [0] * tasks, "spans that are lost")
    check_equal([task["whole"] for task in trace.about["tasks"]], [True] * tasks, "whole tasks")


def test_a_slow_input_is_named():
    with Cluster(workers=2) as cluster:
        job = traced(cluster, "steps", LONG, "input", "1", "10", "function", "0", "2", "function", "1", "2")
        first, trace, said = record_steps_to_come(cluster, job, 8)
        check_whole(trace, range(first, first + 8))
        trace.check_together(range(first, first + 8))
        check_equal(sorted(trace.names.values())[0][:9], "task 0 on", "the name of a task")
        check_in("of a step is waiting for task 1, whose input is slow.", said, "the sentence")
        check_equal(trace.about["conclusion"], said.splitlines()[0], "the sentence in the file")
        check(trace.named("wait for task 1", 0), "task 0 is shown waiting")
        read = json.loads(cluster.cadre("trace", str(job), "--steps", "+4", "--json", cwd=cluster.folder).stdout)
        check_equal((read["awaited"], read["steps"], read["end"] - read["first"]), (1, 4, 4), "the numbers")
        check(read["tasks"][1]["longer"]["input"] > 0.8, f"what takes task 1 longer: {read['tasks'][1]}")
        check(os.path.exists(os.path.join(cluster.folder, f"trace-{job}.json")), "the default name")
        read = cluster.cadre("trace", str(job), "--steps", "+2", "-o", "-")
        check_equal(json.loads(read.stdout)["otherData"]["job"], job, "on standard output")
        pipe = os.path.join(cluster.folder, "pipe")
        os.mkfifo(pipe)
        with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
            cluster.cadre("trace", str(job), "--steps", "+2", "-o", pipe)
            check_equal(json.loads(reader.communicate(timeout=HANG_S)[0])["otherData"]["job"], job, "in a pipe")
        check(os.path.exists(pipe) and not os.path.isfile(pipe), "the pipe is still one")
        end(cluster, job)


def test_other_causes_are_named():
    with Cluster(workers=2) as cluster:
        for arguments, part in ((("function", "0", "10"), "waiting for task 0, whose function takes longer."),
                                (("between", "1", "10"), "waiting for task 1, whose program does other things")):
            job = traced(cluster, "steps", LONG, *arguments)
            until_position(cluster, job, 3)
            check_in(part, record(cluster, job, "--steps", "+8")[1], "the sentence")
            end(cluster, job)


def test_a_plain_program():
    """Its steps are from one collective to the next, and all tasks begin with the same."""
    with Cluster(workers=2) as cluster:
        job = traced(cluster, "steps", LONG, "plain", "function", "1", "10", "function", "0", "2")
        cluster.client.wait_running(job)
        trace, said, _ = record(cluster, job, "--steps", "+8")
        check_in("of the time is waiting for task 1, whose program takes longer from one collective to the next. From",
                 said, "the sentence")
        steps = list(range(trace.about["first"], trace.about["end"]))
        for task in (0, 1):
            check_equal([event["args"]["step"] for event in trace.named("all_reduce", task)], steps,
                        f"collectives of task {task}")
        trace.check_nested()
        trace.check_together(steps)
        said = cluster.cadre("trace", str(job), "--steps", "5:9", status=1).stderr.decode()
        check_in("ask for +N", said, "steps of a plain program by number")
        end(cluster, job)


def traced_on_servers(cluster, *arguments):
    return traced(cluster, "ps", "steps", LONG, *arguments, tasks=4, workers_min=4, strategy="parameter_server",
                  ps_job=common_pb2.PsJob(workers=2, servers=1))


def check_spans_of_servers(trace, steps):
    """Of the chief (task 0), the two workers (1, 2), and not of the server (3)."""
    check_equal(len(trace.names), 3, f"tasks that record: {trace.names}")
    check_equal(trace.steps(0), steps, "steps of the chief")
    for step in steps:
        check_equal(len(trace.named("schedule", 0, step)), 4, f"closures scheduled in step {step}")
        check(trace.named("wait", 0, step), f"the chief's wait in step {step}")
        functions = [event for task in (1, 2) for event in trace.named("function", task, step)]
        check_equal(len(functions), 4, f"closures of step {step}")
        for name in ("pull", "push"):
            spans = [event for task in (1, 2) for event in trace.named(name, task, step)]
            check_equal([event["args"]["bytes"] for event in spans], [4] * 4, f"{name} in step {step}")
            for span in spans:
                check(any(function["pid"] == span["pid"] and function["ts"] <= span["ts"] for function in functions),
                      f"{name} is in a function: {span}")
    check(trace.named("wait", 1) or trace.named("wait", 2), "a worker waits for its next closure")
    trace.check_nested()
    check_equal([task["whole"] for task in trace.about["tasks"]], [True] * 3, "whole tasks")
    check_equal([task["lost"] + task["missing"] for task in trace.about["tasks"]], [0] * 3, "spans that are lost")


def test_parameter_servers():
    """A step is from one join to the next; who is waited for is a worker, or the chief."""
    with Cluster(workers=2, slots=2) as cluster:
        job = traced_on_servers(cluster, "function", "1", "2", "function", "2", "20")
        first = until_position(cluster, job, 3).position
        trace, said, notes = record(cluster, job, "--steps", "+8")
        check(trace.about["first"] > first, f"the first step: {trace.about['first']}")
        check_spans_of_servers(trace, list(range(trace.about["first"], trace.about["first"] + 8)))
        check_in("of a step is waiting for task 2, whose function takes longer.", said, "the sentence")
        check_equal([line for line in notes.splitlines() if "aligned" not in line], [], "the notes")
        first, trace, _ = record_steps_to_come(cluster, job, 4)
        check_spans_of_servers(trace, list(range(first, first + 4)))
        end(cluster, job)
        job = traced_on_servers(cluster, "between", "0", "30")
        until_position(cluster, job, 3)
        _, said, _ = record(cluster, job, "--steps", "+8")
        check_in("of a step is waiting for task 0, whose program does other things between steps.", said,
                 "the sentence about the chief")
        end(cluster, job)


def test_clocks_minutes_apart_are_aligned():
    """Task 1 plays a host that was started ten minutes before the other."""
    with Cluster(workers=2) as cluster:
        job = traced(cluster, "steps", LONG, "ahead", "1", "600", "function", "0", "5", "function", "1", "5")
        until_position(cluster, job, 3)
        trace, _, notes = record(cluster, job, "--steps", "+10")
        check_whole(trace, range(trace.about["first"], trace.about["end"]))
        trace.check_together(range(trace.about["first"], trace.about["end"]))
        errors = [task["clock_error_us"] for task in trace.about["tasks"]]
        check(errors[0] == 0 and 0 < errors[1] < 60e6, f"errors of the clocks: {errors}")
        check_in("clocks of hosts are aligned to", notes, "the notes")
        spread = max(event["ts"] for event in trace.events)
        check(spread < 300e6, f"the trace lasts {spread / 1e6} s")
        end(cluster, job)


def test_what_cannot_be_traced():
    with Cluster(workers=2, slots=2) as cluster:
        job = traced(cluster, "steps", LONG, "function", "0", "5")
        until_position(cluster, job, 20)
        slow = start_recorder(cluster, job, "--steps", f"{10 ** 9}:{10 ** 9 + 5}")
        for arguments, status, part in (
                (("trace", "77"), 1, "there is no job 77"),
                (("trace", str(job), "--steps", "3:5"), 1, "is traced already"),
                (("trace", str(job), "--steps", "5:3"), 2, "A:B"),
                (("trace", str(job), "--steps", "+0"), 2, "+N"),
                (("trace", str(job), "--steps", "+10001"), 2, "10000"),
                (("trace", str(job), "--json", "-o", "-"), 2, "standard output"),
                (("trace", str(job), "-o", "/nowhere/x"), 1, "cannot write /nowhere/x")):
            check_in(part, cluster.cadre(*arguments, status=status).stderr.decode(), str(arguments))
        slow.send_signal(signal.SIGINT)
        _, notes = slow.communicate(timeout=HANG_S)
        check_equal(slow.returncode, 1, f"interrupted without a step: {notes}")
        wait_for("the interrupted trace is over", lambda: b"may have begun" in cluster.cadre(
            "trace", str(job), "--steps", "3:5", status=1).stderr)
        end(cluster, job)
        check_in("has ended", cluster.cadre("trace", str(job), status=1).stderr.decode(), "a job that has ended")
        check_equal([name for name in os.listdir(cluster.folder) if name.startswith("trace")], [], "files")


def test_a_job_that_ends_or_waits():
    with Cluster(workers=1, slots=2) as cluster:
        job = traced(cluster, "steps", "60", "function", "0", "20")
        until_position(cluster, job, 2)
        trace, _, notes = record(cluster, job, "--steps", "+10000")
        check_in("before all of these steps were done", notes, "what is missing")
        check_equal(trace.steps(0)[-1], 59, "the last step of the job")
        check_equal(trace.steps(0), trace.steps(1), "steps of the tasks")
        trace.check_nested()
        long = traced(cluster, "steps", LONG)
        until_position(cluster, long, 1)
        waiting = traced(cluster, "steps", LONG, tasks=1)
        recorder = start_recorder(cluster, waiting, "--steps", "0:5", "-o", "-")
        end(cluster, long)
        read = json.loads(recorder.communicate(timeout=HANG_S)[0])
        steps = {event["args"]["step"] for event in read["traceEvents"] if event["name"] == "step"}
        check(steps <= {0, 1, 2, 3, 4} and 4 in steps, f"the first steps: {steps}")
        end(cluster, waiting)


def test_a_task_is_killed():
    """The trace has what both incarnations did, and what the kill cost."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        job = traced(cluster, "steps", LONG, "function", "0", "5", max_restarts=5)
        until_position(cluster, job, 3)
        path = os.path.join(cluster.folder, "out.json")
        recorder = start_recorder(cluster, job, "--steps", "+300", "-o", path)
        first = int(re.search(r"a trace begins job=\d+ first=(\d+)", cluster.coordinator.log()).group(1))
        info = until_position(cluster, job, first + 20)
        os.kill(next(task.pid for task in info.tasks if task.slot == 1), signal.SIGKILL)
        _, notes = recorder.communicate(timeout=HANG_S)
        check_equal(recorder.returncode, 0, f"status: {notes}")
        trace = Trace(path)
        check_in("went away", notes.decode(), "the notes")
        check(trace.named("regroup", 0), "the regrouping of task 0")
        check_equal(trace.steps(0), list(range(first, first + 300)), "steps of the task that goes on")
        trace.check_nested()
        end(cluster, job)


def test_a_task_is_stopped():
    """The time limit ends the trace; the task that does not answer is named."""
    with Cluster(workers=2) as cluster:
        job = traced(cluster, "steps", LONG, "function", "0", "5")
        pid = next(task.pid for task in until_position(cluster, job, 3).tasks if task.slot == 1)
        os.kill(pid, signal.SIGSTOP)
        said = cluster.cadre("trace", str(job), "--steps", "+100", "--limit", "500ms", "-o", "x.json", status=None,
                             cwd=cluster.folder).stderr.decode()
        check_in("the time was over", said, "why it ends")
        check_in("task 1 on", said, "the task that is stopped")
        check_in("does not answer: it is stopped", said, "what is known of it")
        os.kill(pid, signal.SIGCONT)
        position = cluster.client.get(job).position
        until_position(cluster, job, position + 100)
        trace, _, _ = record(cluster, job, "--steps", "+5")
        check_whole(trace, range(trace.about["first"], trace.about["end"]))
        end(cluster, job)


def test_the_coordinator_is_killed():
    """The command keeps what came; the tasks stop recording by themselves, and can be traced again."""
    with Cluster(workers=2) as cluster:
        job = traced(cluster, "steps", LONG, "function", "0", "20")
        until_position(cluster, job, 3)
        path = os.path.join(cluster.folder, "out.json")
        recorder = start_recorder(cluster, job, "--steps", "+10000", "-o", path)
        seen = until_position(cluster, job, 1).position
        until_position(cluster, job, seen + 150)
        cluster.coordinator.kill()
        _, notes = recorder.communicate(timeout=HANG_S)
        check_equal(recorder.returncode, 3, f"status: {notes}")
        check(len(Trace(path).steps(0)) > 10, f"steps of what came before: {Trace(path).steps(0)}")
        cluster.coordinator.start()
        client = cluster.new_client()
        running = lambda info, least: info.state == RUNNING and info.position >= least  # noqa: E731
        seen = client.watch_until(job, lambda info: running(info, 1), "the first step").position
        client.watch_until(job, lambda info: running(info, seen + 3), "more steps")
        trace, _, _ = record(cluster, job, "--steps", "+5")
        check_whole(trace, range(trace.about["first"], trace.about["end"]))
        cluster.cadre("cancel", str(job))
        client.watch_until(job, lambda info: info.state > 4, "the end")


def test_one_machine():
    """`cadre run --trace`, of a program with steps and of a plain one."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        def traced_run(*arguments, status=0):
            done = subprocess.run([program("cadre"), "run", "-n", "2", *arguments], cwd=folder, env=clean_environment(),
                                  capture_output=True, timeout=HANG_S, check=False)
            said = done.stderr.decode()
            check_equal(done.returncode, status, f"status: {said}")
            return said

        path = os.path.join(folder, "out.json")
        said = traced_run("--trace", path, TRACED, "--", "steps", "60", "input", "1", "10", "function", "0", "1")
        check_in("is waiting for task 1, whose input is slow.", said, "the sentence")
        check_whole(Trace(path), range(10, 30))
        said = traced_run("--trace", path, "--trace-steps", "5:15", TRACED, "--", "steps", "60", "plain", "input", "0",
                          "5")
        check_in("of the time is waiting for task 0, whose program takes longer", said, "the sentence")
        check_equal(sorted({event["args"]["step"] for event in Trace(path).named("all_reduce")}),
                    list(range(5, 15)), "collectives")
        said = traced_run("--trace", path, "--trace-steps", "50:70", TRACED, "--", "steps", "60")
        check_equal(Trace(path).steps(0), list(range(50, 60)), "steps of a job that ends before")
        os.unlink(path)
        said = traced_run("--trace", path, "--trace-steps", "500:510", TRACED, "--", "steps", "60")
        check_in("no step of 500:510 was recorded", said, "steps that never come")
        for arguments, part in ((("--trace-steps", "5:9"), "give --trace FILE"), (("--trace", "-"), "a file"),
                                (("--trace", path, "--trace-steps", "+5"), "A:B"),
                                (("--trace", "/nowhere/x"), "No such file")):
            check_in(part, traced_run(*arguments, TRACED, "--", "steps", "5", status=2), str(arguments))
        check_equal([name for name in os.listdir(folder) if "out.json" in name], [], "files that are left")


if __name__ == "__main__":
    run(globals())
