# SPDX-License-Identifier: Apache-2.0
"""The two example programs of libcadre-client, against real daemons."""
import os
import signal
import subprocess

from client import CANCELLED, SUCCEEDED
from cluster import Cluster, clean_environment, script
from testing import HANG_S, check, check_equal, check_in, run, wait_for

EXAMPLES = os.environ.get("CADRE_TEST_EXAMPLES", "")


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o755)
    return path


def start(name, *arguments, **options):
    return subprocess.Popen([os.path.join(EXAMPLES, f"example-{name}"), *arguments], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(),
                            **options)


def finish(process, status):
    """Its output to the end of it; only then is its standard input closed, which ends `follow`."""
    out = process.stdout.read()
    rest, err = process.communicate(timeout=HANG_S)
    out += rest
    check_equal(process.returncode, status, f"exit status: {out} {err}")
    return out, err


def test_submit_takes_a_job_to_its_end():
    text = ('cat words.txt; echo "$1 from $CADRE_SLOT"; mkdir -p "$CADRE_OUTPUT_DIR/a"\n'
            'echo "left by $CADRE_SLOT" >"$CADRE_OUTPUT_DIR/a/b"; exit 0')
    with Cluster(workers=2) as cluster:
        main = write(cluster.folder, "main", script(text))
        words = write(cluster.folder, "words.txt", b"words that travel\n")
        results = os.path.join(cluster.folder, "results")
        arguments = ["-c", cluster.address, "-w", "2", "-f", words, "-o", results, main, "good day"]
        out, err = finish(start("submit", *arguments), 0)
        check_equal(sorted(out.splitlines()),
                    ["good day from 0", "good day from 1", "words that travel", "words that travel"], "logs")
        check_in(f"uploading {main}", err, "the upload")
        check_in("job 1 succeeded", err, "the outcome")
        for slot in (0, 1):
            with open(os.path.join(results, str(slot), "a", "b"), encoding="utf-8") as file:
                check_equal(file.read(), f"left by {slot}\n", "an output")
        _, err = finish(start("submit", *arguments), 0)
        check("uploading" not in err, f"the second time everything is there: {err}")
        failing = write(cluster.folder, "failing", script("echo to be seen; exit 4"))
        out, err = finish(start("submit", "-c", cluster.address, "-o", results, failing), 4)
        check_equal(out, "to be seen\n", "the log of the job that failed")
        check_in("job 3 failed", err, "the outcome")
        _, err = finish(start("submit", "-c", cluster.address, os.path.join(cluster.folder, "none")), 1)
        check_in("none", err, "the file that is not there")
    _, err = finish(start("submit", "-c", f"unix:{cluster.folder}/gone.sock", "/bin/true"), 1)
    check_in("no coordinator answers at", err, "the sentence")
    finish(start("submit"), 2)


def test_submit_cancels_on_interrupt():
    with Cluster() as cluster:
        main = write(cluster.folder, "main", script("echo up; while :; do sleep 0.05; done"))
        process = start("submit", "-c", cluster.address, "-o", cluster.folder + "/results", main)
        check_equal(process.stdout.readline(), "up\n", "the first line of the log")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_S)
        check(process.returncode != 0, f"exit status: {out} {err}")
        check_in("cancelling job 1", err, "what it says")
        check_in("job 1 cancelled", err, "the outcome")
        check_equal(cluster.client.wait(1).state, CANCELLED, "state")


def test_follow_sees_several_jobs():
    content = script('while [ ! -e "$1" ]; do sleep 0.02; done; exit $2')
    with Cluster(workers=3) as cluster:
        go = os.path.join(cluster.folder, "go")
        jobs = [cluster.client.submit(content, arguments=[go, code]) for code in ("0", "0", "3")]
        for job in jobs:
            cluster.client.wait_running(job)
        process = start("follow", "-c", cluster.address, *map(str, jobs))
        seen = {process.stdout.readline() for _ in jobs}
        check_equal(seen, {f"job {job} is running\n" for job in jobs}, "what is printed at once")
        write(cluster.folder, "go", b"")
        out, err = finish(process, 1)  # one of them failed
        lines = [f"job {job} is {state}" for job, state in zip(jobs, ("succeeded", "succeeded", "failed"))]
        check(set(lines) <= set(out.splitlines()), f"how they ended: {out} {err}")
        out, _ = finish(start("follow", "-c", cluster.address, str(jobs[0])), 0)
        check_equal(out, f"job {jobs[0]} is succeeded\n", "one that has ended")
        _, err = finish(start("follow", "-c", cluster.address, "99"), 1)
        check_in("job 99", err, "one that there is not")


def test_follow_leaves_jobs_alone():
    with Cluster() as cluster:
        job = cluster.client.submit(script('while [ ! -e "$1" ]; do sleep 0.02; done'),
                                    arguments=[os.path.join(cluster.folder, "go")])
        cluster.client.wait_running(job)
        for leave in (lambda process: process.send_signal(signal.SIGINT), lambda process: process.stdin.close()):
            process = start("follow", "-c", cluster.address, str(job))
            check_equal(process.stdout.readline(), f"job {job} is running\n", "the first line")
            leave(process)
            wait_for("it ends", lambda: process.poll() is not None)
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()
        write(cluster.folder, "go", b"")
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job that was left alone")


if __name__ == "__main__":
    run(globals())
