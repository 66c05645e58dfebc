# SPDX-License-Identifier: Apache-2.0
"""Curves: what programs report is kept for each step, through every fault; `cadre metrics` and /metrics show it."""
import csv
import io
import json
import math
import os
import signal
import subprocess
import tempfile

from client import FAILED, RUNNING, SUCCEEDED
from cluster import Cluster, clean_environment, program
from exposition import Metrics
from learning import FAST, FAST_WORKER
from pages import ask
from testing import HANG_S, Failure, check, check_equal, check_in, descendants, run, wait_for

REPORTER = os.environ.get("CADRE_TEST_REPORTER", "")
EXACT = 4096  # values of a name that are kept one by one


def reporter():
    with open(REPORTER, "rb") as file:
        return file.read()


def refuse_constant(name):
    raise Failure(f"{name} is no JSON")


def metrics(cluster, job, *arguments):
    """What --json says, read strictly."""
    read = cluster.cadre("metrics", str(job), *arguments, "--json").stdout
    return json.loads(read, parse_constant=refuse_constant)


def plot(cluster, locale, *arguments):
    done = subprocess.run([program("cadre"), "metrics", *arguments, "--plot"], capture_output=True, check=False,
                          timeout=HANG_S, env=clean_environment() | {"CADRE_COORDINATOR": cluster.address,
                                                                     "LC_ALL": locale})
    check_equal(done.returncode, 0, f"exit status: {done.stderr}")
    return done.stdout.decode()


def points(read, name="loss"):
    return next((series["points"] for series in read["series"] if series["name"] == name), [])


def check_whole(read, steps):
    """Each step has its value, once."""
    wanted = [[step, 1000 - step] for step in range(1, steps + 1)]
    seen = points(read)
    missing = sorted({step for step, _ in wanted} - {step for step, _ in seen})
    check_equal(missing, [], "steps without a value")
    check_equal(seen, wanted, "the values")


def finish(client, job, state=SUCCEEDED):
    info = client.watch_until(job, lambda info: info.state in (SUCCEEDED, FAILED), "the end")
    check_equal(info.state, state, f"state of the job: {info.message}")
    return info


def until_position(client, job, position):
    return client.watch_until(job, lambda info: info.state == RUNNING and info.position >= position,
                              f"position {position}")


def test_each_step_has_its_value():
    with Cluster(workers=2) as cluster:
        job = cluster.client.submit(reporter(), workers=2, arguments=["steps", "300"])
        finish(cluster.client, job)
        read = metrics(cluster, job)
        check_whole(read, 300)
        check_equal([series["name"] for series in read["series"]], ["loss", "attempt"], "names")
        check_equal([(g["generation"], g["first_step"], g["tasks"]) for g in read["generations"]], [(1, 0, 2)],
                    "generations")
        rows = list(csv.DictReader(io.StringIO(cluster.cadre("metrics", str(job)).stdout.decode())))
        check_equal([(row["name"], int(row["step"]), float(row["value"])) for row in rows],
                    [(s["name"], step, value) for s in read["series"] for step, value in s["points"]], "the CSV")
        check_equal(points(metrics(cluster, job, "loss", "--steps", "10:12")), [[10, 990], [11, 989], [12, 988]],
                    "a range of steps")
        check_equal(len(points(metrics(cluster, job, "--steps", "250:"))), 51, "an open range")
        check_equal(len(metrics(cluster, job, "attempt")["series"]), 1, "series of one name")
        followed = cluster.cadre("metrics", str(job), "--csv", "-f").stdout
        check_equal(followed, cluster.cadre("metrics", str(job), "--csv").stdout, "a job that has ended, followed")


def test_curves_and_mistakes():
    with Cluster() as cluster:
        job = str(cluster.client.submit(reporter(), arguments=["steps", "50"]))
        finish(cluster.client, int(job))
        drawn = plot(cluster, "C", job, "loss")
        check(drawn.isascii() and "*" in drawn, f"ASCII outside of UTF-8: {drawn}")
        drawn = plot(cluster, "C.UTF-8", job, "loss")
        check(any(0x2800 < ord(letter) < 0x2900 for letter in drawn), f"Braille in UTF-8: {drawn}")
        for arguments, status, part in (
                (("metrics", job, "los"), 1, 'has no value "los"; did you mean "loss"?'),
                (("metrics", job, "loss", "--steps", "60:70"), 1, "of these steps"),
                (("metrics", job, "--steps", "9:3"), 2, "A:B"),
                (("metrics", job, "--json", "--csv"), 2, "give one of them"),
                (("metrics", job, *[f"n{i}" for i in range(33)]), 2, ""),
                (("metrics", job, ""), 2, "names"),
                (("metrics", "77"), 1, "77")):
            check_in(part, cluster.cadre(*arguments, status=status).stderr.decode(), str(arguments))


def run_here(folder, *arguments, options=(), status=0):
    done = subprocess.run([program("cadre"), "run", *options, REPORTER, "--", *arguments], cwd=folder, timeout=HANG_S,
                          capture_output=True, text=True, env=clean_environment(), check=False)
    check_equal(done.returncode, status, f"status of cadre run: {done.stderr[-2000:]}")
    return done.stderr


def read_json(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file, parse_constant=refuse_constant)


def test_a_run_on_this_machine_writes_its_curves():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        run_here(folder, "steps", "300", options=("-n", "2", "--metrics", "steps.json"))
        read = read_json(folder, "steps.json")
        check_whole(read, 300)
        check_equal([(g["generation"], g["first_step"], g["tasks"]) for g in read["generations"]], [(1, 0, 2)],
                    "generations")
        check_equal((list(read), read["id"]), (["id", "series", "generations", "lost_bytes", "refused"], 1), "members")
        run_here(folder, "plain", "50", options=("--metrics", "plain.json"))
        check_equal(points(read_json(folder, "plain.json")), [[100 + 10 * i, 1000 - i] for i in range(50)], "plain")
        run_here(folder, "steps", "40", options=("--metrics", "steps.csv"))
        with open(os.path.join(folder, "steps.csv"), encoding="utf-8") as file:
            rows = [(row["name"], int(row["step"]), float(row["value"])) for row in csv.DictReader(file)]
        check_equal([row for row in rows if row[0] == "loss"], [("loss", i, 1000 - i) for i in range(1, 41)], "the CSV")
        check_equal([name for name in os.listdir(folder) if "json." in name or "csv." in name], [], "temporary files")
        for path, part in (("curves", "give FILE.json or FILE.csv"), (".csv", "give FILE.json or FILE.csv"),
                           ("no/such/folder.csv", "No such file or directory")):
            check_in(part, run_here(folder, "steps", "5", options=("--metrics", path), status=2), path)


def test_a_run_on_this_machine_does_steps_again():
    """All tasks are killed: the steps behind the checkpoint have the values of the newest run."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        with subprocess.Popen([program("cadre"), "run", "-n", "2", "--max-restarts", "9", "--metrics", "curves.json",
                               REPORTER, "--", "steps", "400", "pause", "2", "saves", "70"], cwd=folder,
                              stderr=subprocess.DEVNULL, env=clean_environment()) as process:
            # The first one is recorded, and not only written, once there is a second one.
            wait_for("two checkpoints", lambda: sum(name.startswith("checkpoint-") and name.endswith(".json")
                                                    for name in os.listdir(folder)) > 1)
            for pid in descendants(process.pid):
                if os.path.basename(executable(pid)) == os.path.basename(REPORTER):
                    os.kill(pid, signal.SIGKILL)
            check_equal(process.wait(HANG_S), 0, "its end")
        read = read_json(folder, "curves.json")
        check_whole(read, 400)
        check(len(read["generations"]) >= 2 and len({value for _, value in points(read, "attempt")}) == 2,
              f"two attempts: {read['generations']}")


def executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def test_values_survive_the_chief():
    """All tasks report: the next chief has what the killed one had not sent."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        job = client.submit(reporter(), workers=3, workers_min=1, max_restarts=9,
                            arguments=["steps", "600", "pause", "2"])
        for position in (100, 250):
            info = until_position(client, job, position)
            os.kill(info.tasks[0].pid, signal.SIGKILL)
            wait_for("the others go on", lambda at=info: client.get(job).generation > at.generation)
        finish(client, job)
        read = metrics(cluster, job)
        check_whole(read, 600)
        first = [g["first_step"] for g in read["generations"]]
        check(len(first) >= 3 and first == sorted(first), f"generations {first}")


def test_values_survive_the_coordinator():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        job = client.submit(reporter(), workers=2, arguments=["steps", "600", "pause", "2"])
        for position in (100, 300):
            until_position(cluster.new_client(), job, position)
            cluster.coordinator.kill()
            cluster.coordinator.start()
        finish(cluster.new_client(), job)
        check_whole(metrics(cluster, job), 600)
        cluster.coordinator.stop()
        cluster.coordinator.start()
        check_whole(metrics(cluster, job), 600)


def test_undone_steps_have_the_values_of_the_newest_run():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        client = cluster.client
        job = client.submit(reporter(), workers=2, max_restarts=9,
                            arguments=["steps", "400", "pause", "2", "saves", "70"])
        info = until_position(client, job, 250)
        check(info.checkpoint != "", f"a checkpoint is published: {info}")
        for task in info.tasks:
            os.kill(task.pid, signal.SIGKILL)
        finish(client, job)
        read = metrics(cluster, job)
        check_whole(read, 400)
        begun = read["generations"][-1]["first_step"]
        check(begun >= 70 and begun % 70 == 0, f"it began again at a checkpoint: {read['generations']}")
        attempts = dict(points(read, "attempt"))
        before = {value for step, value in attempts.items() if step <= begun}
        after = {value for step, value in attempts.items() if step > begun}
        check(min(after) > max(before), f"values of steps that were undone: {before} {after}")


def test_plain_programs_number_their_steps():
    with Cluster() as cluster:
        client = cluster.client
        job = client.submit(reporter(), max_restarts=3, arguments=["plain", "300", "pause", "3"])
        wait_for("half of it", lambda: len(points(metrics(cluster, job))) > 100)
        os.kill(client.get(job).tasks[0].pid, signal.SIGKILL)
        finish(client, job)
        read = metrics(cluster, job)
        check_equal(points(read), [[100 + 10 * i, 1000 - i] for i in range(300)], "the values")
        check_equal({value for _, value in points(read, "attempt")}, {points(read, "attempt")[0][1]}, "one attempt")
        check(points(read, "attempt")[0][1] > 1, "the second one")
        check_equal([g["first_step"] for g in read["generations"]], [99, 99], "generations began at its own steps")


def test_odd_values_and_names():
    with Cluster() as cluster:
        job = cluster.client.submit(reporter(), arguments=["steps", "8", "odd"])
        finish(cluster.client, job)
        read = metrics(cluster, job)
        check_equal([value for _, value in points(read, "odd")],
                    ["Infinity", "-Infinity", 1, "NaN", "Infinity", "-Infinity", 1, "NaN"], "NaN and infinities")
        check_equal(len(read["series"]), 16, "names of a million")
        rows = csv.DictReader(io.StringIO(cluster.cadre("metrics", str(job), "odd").stdout.decode()))
        check_equal([math.isfinite(float(row["value"])) for row in rows], [False, False, True, False] * 2, "the CSV")
        check_in("*", plot(cluster, "C", str(job), "odd"), "the curve of the finite values")


def test_old_steps_become_buckets():
    with Cluster(coordinator=["--http", "127.0.0.1:0"]) as cluster:
        client = cluster.client
        job = client.submit(reporter(), arguments=["steps", "9000", "chief"])
        finish(client, job)
        series = metrics(cluster, job, "loss")["series"][0]
        check_equal([step for step, _ in series["points"]], list(range(9001 - EXACT, 9001)), "exact ones")
        check(series["stride"] > 1 and len(series["buckets"]) <= 1024, f"stride {series['stride']}")
        at = 1
        for bucket in series["buckets"]:
            last = bucket["last_step"]
            check_equal(bucket["first_step"], at, "no step is left out")
            check_equal((bucket["count"], bucket["minimum"], bucket["maximum"], bucket["last"]),
                        (last - at + 1, 1000 - last, 1000 - at, 1000 - last), f"bucket of {at}")
            check(abs(bucket["mean"] - (1000 - (at + last) / 2)) < 1e-6, f"mean of {bucket}")
            at = last + 1
        check_equal(at, 9001 - EXACT, "buckets end where the points begin")


def test_damage_is_cut_off_and_reported():
    with Cluster() as cluster:
        job = cluster.client.submit(reporter(), arguments=["steps", "3000"])
        finish(cluster.client, job)
        check_whole(metrics(cluster, job), 3000)
        cluster.coordinator.stop()
        path = os.path.join(cluster.coordinator.state, "jobs", str(job), "series")
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            file.seek(size // 2)
            byte = file.read(1)[0]
            file.seek(size // 2)
            file.write(bytes([byte ^ 4]))
        for _ in range(2):
            cluster.coordinator.start()
            read = metrics(cluster, job)
            check(0 < read["lost_bytes"] < size, f"lost bytes: {read['lost_bytes']} of {size}")
            kept = points(read)
            check_equal(kept, [[step, 1000 - step] for step in range(1, len(kept) + 1)], "what is before the damage")
            check(0 < len(kept) < 3000, f"{len(kept)} steps are left")
            said = cluster.cadre("metrics", str(job)).stderr.decode()
            check_in("damaged", said, "what the command says")
            cluster.coordinator.stop()
        check_in("damaged and cut off", cluster.coordinator.log(), "the log")
        cluster.coordinator.start()


def test_they_go_with_the_job():
    with Cluster(coordinator=["--keep-jobs", "1"]) as cluster:
        jobs = []
        for _ in range(3):
            jobs.append(cluster.client.submit(reporter(), arguments=["steps", "5"]))
            finish(cluster.client, jobs[-1])
            metrics(cluster, jobs[-1])
        folder = os.path.join(cluster.coordinator.state, "jobs")
        wait_for("files of forgotten jobs are removed",
                 lambda: not os.path.exists(os.path.join(folder, str(jobs[0]))))
        check(os.path.exists(os.path.join(folder, str(jobs[-1]), "series")), "the newest job keeps its own")
        cluster.cadre("metrics", str(jobs[0]), status=1)


def test_they_are_scraped():
    with Cluster(coordinator=["--http", "127.0.0.1:0"]) as cluster:
        job = cluster.client.submit(reporter(), name="curves", arguments=["steps", "100000", "pause", "1"])
        until_position(cluster.client, job, 200)
        seen = Metrics(ask(cluster.coordinator, "/metrics")[1])
        check(0 < 1000 - seen[("cadre_job_metric", f"job={job}", "metric=loss", "name=curves")], "its loss")
        cluster.cadre("cancel", str(job))
        cluster.client.watch_until(job, lambda info: info.state > 4, "its end")


if __name__ == "__main__":
    run(globals())
