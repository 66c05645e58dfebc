# SPDX-License-Identifier: Apache-2.0
"""Two jobs on one worker do not reach each other; a secret is seen by its task alone."""
import os
import subprocess

from cluster import AS_ROOT, Cluster, clean_environment, program, script
from testing import check, check_equal, check_in, run, skip, wait_for

SECRET = "s3cret-of-the-test-7c1e"


def test_a_secret_is_nowhere():
    with Cluster(slots=2, coordinator=["--log-level", "debug"], worker=["--log-level", "debug"]) as cluster:
        path = os.path.join(cluster.folder, "wait.sh")
        with open(path, "wb") as file:
            file.write(script('echo "${#TOKEN} bytes"; exec sleep 60'))
        os.chmod(path, 0o755)
        environment = dict(clean_environment(), TOKEN=SECRET, CADRE_COORDINATOR=cluster.address)
        cadre = program("cadre")
        follow = subprocess.Popen([cadre, "submit", "--env", f"TOKEN={SECRET}", path], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=dict(environment, TOKEN=""))
        client = cluster.client
        wait_for("the task has the secret", lambda: subprocess.run([cadre, "logs", "1"], env=environment,
                 capture_output=True, text=True).stdout.count(f"{len(SECRET)} bytes"))
        with open(f"/proc/{follow.pid}/cmdline", "rb") as file:
            check(SECRET.encode() not in file.read(), "the client's command line shows the secret")
        for words in (["jobs"], ["jobs", "--json"], ["job", "1"], ["job", "1", "--json"], ["workers"]):
            shown = subprocess.run([cadre, *words], env=environment, capture_output=True, text=True)
            check(SECRET not in shown.stdout + shown.stderr, f"cadre {words} shows the secret")
        client.cancel(1)
        follow.wait(20)
        for daemon in (cluster.coordinator, *cluster.workers):
            check(SECRET not in daemon.log(), f"the log of {daemon.name} shows the secret")


def test_jobs_have_users_of_their_own():
    if not AS_ROOT:
        skip("not root: all tasks run as one user")
    with Cluster(slots=2) as cluster:
        client = cluster.client
        first = client.submit(script("id -u; exec sleep 60"))
        client.wait_running(first)
        victim = client.get(first).tasks[0].pid
        second = client.run(script(f"id -u; kill -9 {victim} && echo killed; cat /proc/{victim}/environ && echo read; "
                                   f"exit 0"))
        words = client.log(second.id).split()
        check(b"killed" not in words and b"read" not in words, f"it reached the other job: {words}")
        wait_for("its uid is in the log", lambda: client.log(first).split())
        check(words[0] != client.log(first).split()[0], "both have one uid")
        os.kill(victim, 0)
        client.cancel(first)
        client.wait(first)


if __name__ == "__main__":
    run(globals())
