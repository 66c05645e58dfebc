# SPDX-License-Identifier: Apache-2.0
"""Jobs with parameter servers: every push is applied exactly once, whatever is killed; and errors are reported."""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile

from cluster import Cluster, clean_environment, processes_naming, program
from event_files import Run, files_in
from testing import HANG_S, check, check_equal, check_in, descendants, run, scaled, wait_for
from test_cluster import free_ports

PUSHER = os.environ.get("CADRE_TEST_PUSHER", "")
SERVERS = ("--strategy", "parameter_server", "--workers", "2", "--ps", "2")
FAST = ("--lease", scaled("1s"), "--rewind-patience", scaled("2s"))


class Job:
    """`cadre submit` of the pusher, followed to its end."""

    def __init__(self, cluster, *arguments, options=()):
        self.cluster = cluster
        self.log_path = os.path.join(cluster.folder, "job.log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program("cadre"), "submit", *SERVERS, *options, PUSHER, "--", *arguments], stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT,
                env=clean_environment() | {"CADRE_COORDINATOR": cluster.address})

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def rounds(self):
        return max((int(number) for number in re.findall(r"round (\d+) is done", self.log())), default=0)

    def until_round(self, least):
        def there():
            check(self.process.poll() is None, f"the job ended at once: {self.log()[-2000:]}")
            return self.rounds() >= least
        wait_for(f"round {least} of {self.log_path}", there, 60)

    def end(self, status=0, deadline_s=90):
        try:
            self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            check(False, f"the job does not end: {self.log()[-3000:]}")
        check_equal(self.process.returncode, status, f"status of the job: {self.log()[-3000:]}")
        return self.log()

    def info(self):
        return json.loads(self.cluster.cadre("job", "1", "--json").stdout)


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def tasks(cluster, kind):
    """The processes of a type of task, by index."""
    found = {}
    for pid in processes_naming(f"CADRE_SOCKET={cluster.folder}"):
        environment = environment_of(pid)
        if environment.get("CADRE_TASK_TYPE") == kind:
            found[int(environment["CADRE_TASK_INDEX"])] = pid
    return found


def both(cluster, kind):
    """The two tasks of that type; None while one is missing."""
    found = tasks(cluster, kind)
    return found if len(found) == 2 else None


def kill_again_and_again(cluster, job, kind, kills, pause=1):
    """Each time a task of that type, once rounds were done since the last one."""
    for kill in range(kills):
        job.until_round(job.rounds() + pause)
        alive = wait_for(f"both tasks {kind}", lambda: both(cluster, kind), 30)
        os.kill(alive[kill % 2], signal.SIGKILL)


def check_exact(text, rounds, closures):
    check_in(f"exact: {3 * rounds * closures} pushes", text, "what the chief found")


def evaluations(text):
    """What the evaluator reported: of each evaluation its step and its number."""
    return [(int(step), float(number)) for step, number in re.findall(r"evaluated step (\d+): (\d+)", text)]


def curve(cluster):
    """The points of the evaluator's curve, which has each step once."""
    metrics = json.loads(cluster.cadre("metrics", "1", "--json").stdout)
    points = [(step, value) for series in metrics["series"] if series["name"] == "evaluation_number"
              for step, value in series["points"]]
    check_equal(points, sorted(dict(points).items()), "each step once, in order")
    return points


class Evaluations:
    """What the curve has to be while tasks are killed: of each step what was reported last, without undone steps."""

    def __init__(self, cluster, job):
        self.cluster, self.job = cluster, job
        self.hold_path = os.path.join(cluster.folder, "hold")
        self.wanted, self.read = {}, 0

    def hold(self):
        """No evaluation begins until release(), and all before are in the curve."""
        with open(self.hold_path, "wb"):
            held = self.job.log().count("the evaluator is held")
        wait_for("the evaluator is held", lambda: self.job.log().count("the evaluator is held") > held)
        self.check()

    def check(self):
        found = evaluations(self.job.log())
        self.wanted.update(found[self.read:])
        self.read = len(found)
        wanted = sorted(self.wanted.items())
        wait_for("the curve has what was reported", lambda: len(curve(self.cluster)) >= len(wanted))
        check_equal(curve(self.cluster), wanted, "the curve")

    def undo(self, position):
        self.wanted = {step: value for step, value in self.wanted.items() if step <= position}

    def release(self):
        os.unlink(self.hold_path)


def test_curves_of_evaluations_survive_kills():
    """Of the evaluator, of the coordinator, of the chief: each value that counts is there once."""
    with Cluster(workers=2, slots=3) as cluster:
        until = os.path.join(cluster.folder, "until")
        job = Job(cluster, "--rounds", "100000", "--closures", "20", "--work-us", "4000", "--save", "--until", until,
                  "--hold", os.path.join(cluster.folder, "hold"),
                  options=("--evaluators", "1", "--max-restarts", "100"))
        seen = Evaluations(cluster, job)

        def more(least):
            have = len(evaluations(job.log()))
            wait_for(f"{least} more evaluations", lambda: len(evaluations(job.log())) >= have + least)
        more(3)
        for _ in range(2):
            seen.hold()
            os.kill(tasks(cluster, "evaluator")[0], signal.SIGKILL)
            seen.release()
            more(2)
        cluster.coordinator.kill()
        cluster.coordinator.start()
        more(2)
        for begins in (2, 3):
            seen.hold()
            os.kill(tasks(cluster, "chief")[0], signal.SIGKILL)
            found = wait_for("the chief begins again", lambda count=begins: (
                re.findall(r"begins at round (\d+)", job.log())[count - 1:] or [None])[0], 60)
            seen.undo(int(found))
            seen.release()
            more(3)
        with open(until, "wb"):
            job.end()
        seen.check()
        check(len(seen.wanted) >= 10, f"too few evaluations: {seen.wanted}")


def test_undisturbed_with_an_evaluator():
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "20", "--closures", "20", "--work-us", "4000", options=("--evaluators", "1"))
        job.until_round(2)
        types = [(task["type"], task["index"]) for task in job.info()["tasks"]]
        check_equal(types, [("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1), ("evaluator", 0)],
                    "types of the tasks")
        text = job.end()
        check_exact(text, 20, 20)
        check(re.search(r"evaluated \d+ times, at last 400 of 400", text), f"the evaluator's last word: {text[-2000:]}")
        wanted = evaluations(text)
        check_equal(curve(cluster), sorted(dict(wanted).items()), "the curve of the evaluations")
        folder = os.path.join(cluster.folder, "got")
        cluster.cadre("get", "1", "events", "-o", folder)
        files = files_in(os.path.join(folder, "events", "eval"))
        check_equal(Run(files, whole=False).series["number"], wanted, "TensorBoard's run of the evaluations")


def test_curves_of_evaluations_without_daemons():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run(
            [program("cadre"), "run", *SERVERS, "--evaluators", "1", "--metrics", "curves.json", PUSHER, "--",
             "--rounds", "5", "--closures", "20"], cwd=folder, timeout=HANG_S, capture_output=True, text=True,
            env=clean_environment(), check=False)
        check_equal(done.returncode, 0, f"status of cadre run: {done.stderr[-2000:]}")
        with open(os.path.join(folder, "curves.json"), encoding="utf-8") as file:
            read = json.load(file)
    wanted = [[step, value] for step, value in sorted(dict(evaluations(done.stdout)).items())]
    check_equal([(one["name"], one["points"]) for one in read["series"]], [("evaluation_number", wanted)], "curves")


def test_servers_are_killed():
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "40", "--closures", "20", "--work-us", "2000", "--length", "300000",
                  options=("--max-restarts", "100"))
        kill_again_and_again(cluster, job, "ps", 8)
        check_exact(job.end(), 40, 20)


def test_workers_are_killed():
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "40", "--closures", "20", "--work-us", "10000",
                  options=("--max-restarts", "100"))
        kill_again_and_again(cluster, job, "worker", 6)
        check_exact(job.end(), 40, 20)


def test_workers_are_killed_while_their_replicas_meet():
    """Closures are steps of two replicas each; a step that is lost with its worker is done again by another one."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "30", "--closures", "20", "--work-us", "10000", "--on-replicas",
                  options=("--replicas", "2", "--max-restarts", "100"))
        kill_again_and_again(cluster, job, "worker", 6)
        check_exact(job.end(), 30, 20)


def test_lamb_of_shards_while_all_are_killed():
    """Between the exchanges of a push, too: each shard is updated by each push once."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "30", "--closures", "20", "--work-us", "4000", "--lamb",
                  options=("--max-restarts", "100"))
        for kind in ("ps", "worker", "ps", "worker"):
            kill_again_and_again(cluster, job, kind, 2)
        check_exact(job.end(), 30, 20)


def test_steps_of_lamb_while_all_are_killed():
    """Shards whose step is complete wait for the ratio of all of them, which some worker finds."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, *STEPS, "--fail-at", "20", "--lamb", options=("--max-restarts", "100"))
        for kind in ("ps", "worker", "ps", "worker"):
            kill_again_and_again(cluster, job, kind, 2)
        check_exact(job.end(), 30, 20)


REPLICAS = ("--rounds", "30", "--closures", "20", "--work-us", "10000", "--on-replicas")


def test_servers_are_killed_while_replicas_write_together():
    """The replicas of each closure write one variable in one push, which is applied once though its server is lost."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, *REPLICAS, options=("--replicas", "2", "--max-restarts", "100"))
        kill_again_and_again(cluster, job, "ps", 8)
        check_exact(job.end(), 30, 20)


def test_servers_and_workers_are_killed_while_replicas_write_together():
    """One of each at once: the push of a closure that is lost may be there, and the closure runs again elsewhere."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, *REPLICAS, options=("--replicas", "2", "--max-restarts", "100"))
        for kill in range(8):
            job.until_round(job.rounds() + 1)
            servers, workers = (wait_for(f"both tasks {kind}", lambda kind=kind: both(cluster, kind), 30)
                                for kind in ("ps", "worker"))
            os.kill(servers[kill % 2], signal.SIGKILL)
            os.kill(workers[kill // 2 % 2], signal.SIGKILL)
        check_exact(job.end(), 30, 20)


def test_the_chief_is_killed():
    """All tasks begin again, from the newest checkpoint."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "30", "--closures", "20", "--work-us", "4000", "--save",
                  options=("--max-restarts", "5"))
        job.until_round(5)
        os.kill(tasks(cluster, "chief")[0], signal.SIGKILL)
        text = job.end()
        check_exact(text, 30, 20)
        begins = [int(number) for number in re.findall(r"begins at round (\d+)", text)]
        check(len(begins) == 2 and begins[1] >= 4, f"where it began: {begins}")


STEPS = ("--synchronous", "--rounds", "30", "--closures", "20", "--work-us", "4000")


def test_synchronous_steps_while_all_are_killed():
    """Each step is applied once; each closure finds exactly the steps before its own."""
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, *STEPS, "--fail-at", "20", options=("--max-restarts", "100"))
        for kind in ("ps", "worker", "ps", "worker"):
            kill_again_and_again(cluster, job, kind, 2)
        text = job.end()
        check_exact(text, 30, 20)
        check_in("step 20 is taken again", text, "what the chief said")


def test_synchronous_steps_go_on_from_a_checkpoint():
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, *STEPS, "--save", options=("--max-restarts", "5"))
        for _ in range(2):
            job.until_round(job.rounds() + 5)
            alive = wait_for("the chief", lambda: tasks(cluster, "chief"), 30)
            os.kill(alive[0], signal.SIGKILL)
            wait_for("its end", lambda pid=alive[0]: tasks(cluster, "chief").get(0) not in (None, pid), 30)
        text = job.end()
        check_exact(text, 30, 20)
        begins = [int(number) for number in re.findall(r"begins at round (\d+)", text)]
        check(len(begins) == 3 and begins[1] >= 4 and begins[2] >= 8, f"where it began: {begins}")


def test_a_synchronous_step_needs_one_worker():
    """Nothing waits in a closure for closures that have no worker."""
    said = by_hand("--synchronous", "--rounds", "4", "--closures", "20", "--fail-at", "2", CADRE_WORKERS="1")
    check_exact(said, 4, 20)


def test_a_step_that_will_not_come_is_not_waited_for():
    """Its batch has failed: the closure that waits for it returns, and the chief has the first error."""
    said = by_hand("--mode", "await", status=1, CADRE_WORKERS="2")
    check_in("INVALID_ARGUMENT", said, "the batch's error")
    check_in("had to fail", said, "the batch's error")


def test_a_host_with_a_server_is_lost():
    """Its copy on the other server is the state."""
    with Cluster(workers=3, slots=2, coordinator=FAST) as cluster:
        job = Job(cluster, "--rounds", "60", "--closures", "20", "--work-us", "4000",
                  options=("--max-restarts", "5", "--ps-backups"))
        job.until_round(3)
        servers = set(tasks(cluster, "ps").values())
        chief = tasks(cluster, "chief")[0]
        spare = cluster.worker("spare", 3)
        cluster.workers.append(spare)
        spare.start()
        for worker in cluster.workers[:3]:
            below = set(descendants(worker.process.pid))
            if below & servers and chief not in below:
                worker.kill()
                lost = worker
                break
        else:
            check(False, "no host has a server and not the chief")
        check_exact(job.end(), 60, 20)
        lost.start()


def test_the_coordinator_is_killed():
    with Cluster(workers=2, slots=3) as cluster:
        job = Job(cluster, "--rounds", "40", "--closures", "20", "--work-us", "4000")
        job.until_round(3)
        before = {kind: tasks(cluster, kind) for kind in ("chief", "worker", "ps")}
        cluster.coordinator.kill()
        cluster.coordinator.start()
        job.until_round(job.rounds() + 3)
        check_equal({kind: tasks(cluster, kind) for kind in before}, before,
                    "processes after a restart of the coordinator")
        check_exact(job.end(), 40, 20)


def run_here(*arguments, options=SERVERS, status=0):
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run([program("cadre"), "run", *options, PUSHER, "--", *arguments], cwd=folder, timeout=HANG_S,
                              capture_output=True, text=True, env=clean_environment(), check=False)
    said = done.stdout + done.stderr
    check_equal(done.returncode, status, f"status of cadre run: {said[-2000:]}")
    return said


def by_hand(*arguments, status=0, **environment):
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = subprocess.run([PUSHER, *arguments], cwd=folder, timeout=HANG_S, capture_output=True, text=True,
                              env=clean_environment() | environment, check=False)
    said = done.stdout + done.stderr
    check_equal(done.returncode, status, f"status by hand: {said[-2000:]}")
    return said


def test_without_daemons():
    check_exact(run_here("--rounds", "5", "--closures", "20"), 5, 20)
    check_exact(by_hand("--rounds", "5", "--closures", "20"), 5, 20)
    check_exact(by_hand("--rounds", "5", "--closures", "20", CADRE_SERVERS="3", CADRE_WORKERS="4"), 5, 20)


MEMBERS = (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0), ("ps", 1))


def by_tf_config(*arguments, members=MEMBERS, commands=None, **environment):
    """A process for each member: their statuses and what they said, in that order. `commands`: what some start with
    instead of the pusher."""
    address = [f"127.0.0.1:{port}" for port in free_ports(5)]
    cluster = {"chief": address[:1], "worker": address[1:3], "ps": address[3:5]}
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        processes = []
        for kind, index in members:
            config = {"cluster": cluster, "task": {"type": kind, "index": index}}
            processes.append(subprocess.Popen(
                [*(commands or {}).get((kind, index), [PUSHER]), *arguments], cwd=folder, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True,
                env=clean_environment() | environment | {"TF_CONFIG": json.dumps(config)}))
        try:
            said = [process.communicate(timeout=HANG_S)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
    return [process.returncode for process in processes], said


def test_by_tf_config():
    statuses, said = by_tf_config("--rounds", "5", "--closures", "20")
    check_equal(statuses, [0] * 5, f"statuses of the tasks: {said}")
    check_exact(said[0], 5, 20)


def test_replicas_of_workers_however_it_is_started():
    meet = ("--rounds", "5", "--closures", "20", "--on-replicas")
    check_exact(run_here(*meet, options=(*SERVERS, "--replicas", "2")), 5, 20)
    check_exact(by_hand(*meet, CADRE_REPLICAS="3", CADRE_WORKERS="2"), 5, 20)
    statuses, said = by_tf_config(*meet, CADRE_REPLICAS="2")
    check_equal(statuses, [0] * 5, f"statuses of the tasks: {said}")
    check_exact(said[0], 5, 20)


LONG = ("--rounds", "1000", "--closures", "20", "--work-us", "4000")


def test_another_version_of_the_program():
    """The job ends at once, and each says whose program it is."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        other = shutil.copy(PUSHER, os.path.join(folder, "pusher"))
        with open(other, "ab") as file:
            file.write(b"x")
        statuses, said = by_tf_config(*LONG, commands={("worker", 1): [other]})
        check_equal(statuses, [1] * 5, f"statuses with another worker: {said}")
        for text in (said[0], said[2]):
            check_in("FAILED_PRECONDITION", text, "of another worker")
            check_in("runs another version of the program", text, "of another worker")
        check_in("worker 1", said[0], "what the chief says of another worker")
        check_in("the chief", said[2], "what the other worker says")
        statuses, said = by_tf_config(*LONG, commands={("ps", 1): [other]})
        check_equal(statuses, [1] * 5, f"statuses with another ps: {said}")
        check(re.search(r"FAILED_PRECONDITION.*ps 1 .*runs another version of the program", said[0]), said[0])


def test_a_second_chief_process():
    """It is refused; the first one does not notice."""
    statuses, said = by_tf_config("--rounds", "5", "--closures", "20", "--work-us", "20000",
                                  members=(*MEMBERS, ("chief", 0)))
    first, second = (0, 5) if statuses[0] == 0 else (5, 0)
    check_equal([statuses[first], *statuses[1:5], statuses[second]], [0, 0, 0, 0, 0, 1], f"statuses: {said}")
    check_exact(said[first], 5, 20)
    check_in("ALREADY_EXISTS", said[second], "what the second chief says")
    check_in("another program runs as this task of the cluster", said[second], "what the second chief says")


def test_a_server_that_does_not_come():
    statuses, said = by_tf_config(*LONG, members=MEMBERS[:4], CADRE_CLUSTER_WAIT_S="4")
    check_equal(statuses, [1] * 4, f"statuses without ps 1: {said}")
    for words in (r"waits for task 4 \(ps 1 at ", r"DEADLINE_EXCEEDED.*missing: task 4 \(ps 1 at "):
        check(re.search(words, said[0]), said[0])


def test_a_server_without_memory():
    """Its process is limited; nothing dies of it, and the sentence names the server."""
    with open(PUSHER, "rb") as file:
        if b"__asan_" in file.read():
            return  # it has no room in any limit
    limited = ["sh", "-c", 'ulimit -v 300000; exec "$@"', "sh", PUSHER]
    statuses, said = by_tf_config("--length", str(60 << 20), commands={("ps", 1): limited})
    check_equal(statuses, [1] * 5, f"statuses with a small ps: {said}")
    check(re.search(r"RESOURCE_EXHAUSTED: variable 'vector': ps 1: ps has no room for shard \d of `vector`: 0.2 GiB "
                    r"were asked for", said[0]), said[0])


def test_a_closure_that_kills_its_worker():
    with Cluster(workers=2, slots=3) as cluster:
        text = Job(cluster, "--mode", "abort", options=("--max-restarts", "2")).end(status=134)
        check(re.search(r"job 1 failed: worker \d \(slot \d\) on worker w\d was killed by signal 6 \(Aborted\): cadre: "
                        r"SIGABRT in die \(pusher\+0x[0-9a-f]+\); it was restarted 2 times before", text), text)


def test_what_is_wrong_is_reported():
    for mode, words in (("unregistered", ("NOT_FOUND", "unregistered", "cadre_function_register")),
                        ("fail", ("INVALID_ARGUMENT", "had to fail")),
                        ("dataset", ("NOT_FOUND", "`broken`", "worker 0", "no file with elements")),
                        ("wrong-shape", ("INVALID_ARGUMENT", "rows", "[3, 2]")),
                        ("wrong-dtype", ("INVALID_ARGUMENT", "rows", "f32", "i64")),
                        ("row-out-of-range", ("OUT_OF_RANGE", "rows", "20")),
                        ("create-on-worker", ("FAILED_PRECONDITION", "chief")),
                        ("begin-step-on-worker", ("FAILED_PRECONDITION", "the chief begins steps", "number")),
                        ("partitioner", ("INVALID_ARGUMENT", "-3")),
                        ("huge", ("RESOURCE_EXHAUSTED", "huge", "ps"))):
        said = by_hand("--mode", mode, status=1)
        for part in words:
            check_in(part, said, f"what is said of {mode}")


def test_a_program_that_exits_at_once():
    """Whatever its threads are at: here they still connect to each other."""
    for _ in range(40):
        check_in("INVALID_ARGUMENT", by_hand("--mode", "partitioner", status=1), "what it says at last")


def test_two_chiefs():
    config = {"cluster": {"chief": ["127.0.0.1:1", "127.0.0.1:2"], "worker": ["127.0.0.1:3"], "ps": ["127.0.0.1:4"]},
              "task": {"type": "chief", "index": 0}}
    said = by_hand(status=1, TF_CONFIG=json.dumps(config))
    check_in("INVALID_ARGUMENT", said, "of two chiefs")
    check_in("chief", said, "of two chiefs")


def test_what_the_client_refuses():
    for options, words in ((("--strategy", "parameter_server"), "--ps"),
                           (("--ps", "2"), "parameter_server"),
                           ((*SERVERS, "--evaluators", "2"), "evaluator")):
        done = subprocess.run([program("cadre"), "run", *options, PUSHER], timeout=HANG_S, capture_output=True,
                              text=True, env=clean_environment(), check=False)
        check(done.returncode not in (0, 77) and words in done.stderr, f"{options}: {done.returncode} {done.stderr!r}")


if __name__ == "__main__":
    run(globals())
