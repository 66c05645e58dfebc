# SPDX-License-Identifier: Apache-2.0
"""What a task of a cluster finds and leaves: files by content, environment, folders, user and rights; and `cadre`."""
import hashlib
import json
import os
import subprocess

from client import FAILED, SUCCEEDED
from cluster import AS_ROOT, Cluster, clean_environment, program, script
from testing import check, check_equal, check_in, run, wait_for


def write(folder, name, content, mode=0o644):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    return path


def blob_files(daemon):
    """Hash -> inode of what a daemon keeps."""
    folder = os.path.join(daemon.state, "blobs")
    return {name: os.stat(os.path.join(folder, name)).st_ino for name in os.listdir(folder)}


def sha(content):
    return hashlib.sha256(content).hexdigest()


def test_files_travel_once():
    content = script('cat data.txt deep/er/more.txt; [ -x tool.sh ] && ./tool.sh; pwd\n'
                     'ls -A "$CADRE_OUTPUT_DIR" | wc -l\n'
                     'echo changed >data.txt; echo "result of $CADRE_SLOT" >"$CADRE_OUTPUT_DIR/result"; echo "$EXTRA"')
    with Cluster(workers=2) as cluster:
        here = os.path.join(cluster.folder, "here")
        main = write(here, "main", content, 0o755)
        data = write(here, "some.data", b"data one\n")
        more = write(here, "more.txt", b"data two\n")
        tool = write(here, "tool.sh", script("echo tool"), 0o755)
        command = ["submit", "--workers", "2", "--file", f"{data}:data.txt", "--file", f"{more}:deep/er/more.txt",
                   "--file", tool, "--env", "EXTRA=one=1 two", main]
        cluster.cadre(*command)
        log = cluster.client.log(1, 0).decode().splitlines()
        check_equal(log[:3] + log[4:], ["data one", "data two", "tool", "0", "one=1 two"], "what the task saw")
        folders = {cluster.client.log(1, slot).decode().splitlines()[3] for slot in (0, 1)}
        check_equal(len(folders), 2, f"working folders {folders}")
        wait_for("the working folders are gone", lambda: not any(os.path.exists(folder) for folder in folders))

        hashes = {sha(content), sha(b"data one\n"), sha(b"data two\n"), sha(script("echo tool"))}
        kept = [blob_files(daemon) for daemon in (cluster.coordinator, *cluster.workers)]
        for files in kept:
            check_equal(set(files), hashes, "contents that are kept")
        cluster.cadre(*command)
        again = [blob_files(daemon) for daemon in (cluster.coordinator, *cluster.workers)]
        check_equal(again, kept, "files that were sent or fetched a second time")
        check_in("data one", cluster.client.log(2, 0).decode(), "the first job changed a file of the second")
        with open(data, "rb") as file:
            check_equal(file.read(), b"data one\n", "the user's own file")

        got = os.path.join(here, "got")
        cluster.cadre("get", "2", "-o", got)
        for slot in ("0", "1"):
            with open(os.path.join(got, slot, "result"), encoding="ascii") as file:
                check_equal(file.read(), f"result of {slot}\n", "what was fetched")
        one = os.path.join(here, "one")
        cluster.cadre("get", "2", "1/result", "-o", one)
        found = [os.path.join(place, name) for place, _, names in os.walk(one) for name in names]
        check_equal(len(found), 1, f"files of `cadre get 2 1/result`: {found}")


def test_outputs_stay_in_their_folder():
    content = script('cd "$CADRE_OUTPUT_DIR"; mkdir -p a/b; echo good >a/b/good; ln -s /etc/passwd link\n'
                     "ln -s /etc folder; mkfifo pipe; ln a/b/good a/twin; : >empty\n"
                     "head -c 3000000 /dev/zero >large; echo x >'a\nb'")
    with Cluster() as cluster:
        info = cluster.client.run(content)
        outputs = cluster.client.outputs(info.id)
        check_equal({path: len(data) for path, data in outputs.items()},
                    {"0/a/b/good": 5, "0/a/twin": 5, "0/empty": 0, "0/large": 3000000}, "outputs")
        check_equal(info.state, SUCCEEDED, str(info))
        check_in("has a name that cannot be sent", cluster.coordinator.log(), "what is said of the file a\\nb")


def flip(path, at, wanted):
    """One bit of a file, as a disk does it."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))
    with open(path, "rb") as file:
        check_in(wanted, file.read(), "the bit that was flipped")


def test_a_damaged_cache_is_not_used():
    """A content of another size, or with one flipped bit, is fetched again before a task starts with it."""
    content = script("echo whole; cat data.txt")
    data = b"one two three\n"
    with Cluster() as cluster:
        blobs = os.path.join(cluster.workers[0].state, "blobs")

        def run_again(what):
            info = cluster.client.run(content, files={"data.txt": data})
            check_equal((info.state, cluster.client.log(info.id)), (SUCCEEDED, b"whole\n" + data), f"{what}: {info}")

        run_again("first run")
        os.truncate(os.path.join(blobs, sha(content)), 5)
        run_again("a program that was cut off")
        flip(os.path.join(blobs, sha(content)), content.index(b"o w"), b"echk whole")
        run_again("a flipped bit of the program")
        flip(os.path.join(blobs, sha(data)), 2, b"ona two")
        run_again("a flipped bit of a file")
        check_in(sha(data), cluster.workers[0].log(), "what the log says is damaged")
        check_equal(cluster.workers[0].log().count("cache was damaged"), 2, "damages that were logged")
        for name, whole in ((sha(content), content), (sha(data), data)):
            with open(os.path.join(blobs, name), "rb") as file:
                check_equal(file.read(), whole, "what is in the cache now")


def test_a_cache_that_is_damaged_while_its_job_runs():
    content = script("sha256sum <data.txt; while ! [ -e stop ]; do sleep 0.1; done; sha256sum <data.txt")
    data = bytes(range(256)) * 200000  # several pieces
    with Cluster(worker=["--cache-check", "200ms"]) as cluster:
        worker = cluster.workers[0]
        path = os.path.join(worker.state, "blobs", sha(data))
        job = cluster.client.submit(content, files={"data.txt": data})
        cluster.client.wait_running(job)
        wait_for("the file is in the cache", lambda: os.path.exists(path))
        flip(path, 40000000, bytes([4, 1, 2, 3]))

        def is_whole():
            try:
                with open(path, "rb") as file:
                    return sha(file.read()) == sha(data)
            except FileNotFoundError:
                return False

        wait_for("the file is whole again", is_whole)
        wait_for("the log says so", lambda: "was fetched again from the coordinator" in worker.log())
        check_in("cache was damaged", worker.log(), "what the log says")
        open(os.path.join(worker.state, "tasks", f"{job}.0.1", "work", "stop"), "wb").close()
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the job, whose task has a copy of its own")
        check_equal(cluster.client.log(job).decode(), f"{sha(data)}  -\n" * 2, "what the task read")
        check_equal(worker.log().count("cache was damaged"), 1, "damages that were logged")


def test_environment_and_rights():
    content = script("env; echo ---; id -u; id -g; id -G; echo ---; cat /proc/self/status; echo ---\n"
                     "ls /proc/$$/fd; echo ---; readlink /proc/$$/fd/0; umask; ps -o sid= -p $$; echo $$; pwd\n"
                     "stat -c '%a %u' . \"$CADRE_OUTPUT_DIR\"; cat ../../../lock ../../../blobs/* 2>&1")
    with Cluster(worker=["--mesh-host", "127.0.0.2", "--gpus", "none"]) as cluster:
        info = cluster.client.run(content, environment=["MINE=1", "CADRE_SLOT=99", "PATH=/usr/bin:/bin"], replicas=3)
        check_equal(info.tasks[0].exit.code, 0 if not AS_ROOT else 1, str(info))
        variables, ids, status, descriptors, rest = (
            part.strip("\n") for part in cluster.client.log(info.id).decode().split("---\n", 4))
        found = dict(line.split("=", 1) for line in variables.splitlines())
        base = f"{cluster.workers[0].state}/tasks/{info.id}.0.1"
        keeper = int(found.pop("CADRE_DAEMON_PID"))
        check(keeper not in (0, 1, cluster.workers[0].process.pid), f"whose SIGTERM is no preemption: {keeper}")
        check(os.path.dirname(found.pop("CADRE_CACHE_FOLDER")) == f"{cluster.workers[0].state}/objects", "its objects")
        check(int(found.pop("CADRE_CACHE_MIB")) > 0, "how much of them")
        wanted = {"MINE": "1", "PATH": "/usr/bin:/bin", "HOME": f"{base}/work", "TMPDIR": f"{base}/tmp",
                  "LANG": "C.UTF-8", "CADRE_SOCKET": f"{base}/socket", "CADRE_JOB": "1", "CADRE_SLOT": "0",
                  "CADRE_INCARNATION": "1", "CADRE_TASKS": "1", "CADRE_TASKS_MIN": "1", "CADRE_REPLICAS": "3",
                  "CADRE_STRATEGY": "", "CUDA_VISIBLE_DEVICES": "", "CADRE_DEVICES": "cpu",
                  "CADRE_DEVICES_REASON": "the option --gpus none",
                  "CADRE_MESH_HOST": "127.0.0.2", "CADRE_OUTPUT_DIR": f"{base}/out", "CADRE_TASK": "1.0.1",
                  "CADRE_DAEMON_RETURNS": "0", "CADRE_TASK_FRAME": "8",
                  "CADRE_CHECKPOINT_EVERY": "0", "CADRE_CHECKPOINTS_KEPT": "3"}
        check_equal({name: found.get(name) for name in wanted}, wanted, "variables")
        check_equal(set(found) - set(wanted) - {"PWD", "_", "SHLVL", "OLDPWD"}, set(), "other variables")
        status = dict(line.split(":", 1) for line in status.splitlines())
        check_equal(status["NoNewPrivs"].strip(), "1", "no_new_privs")
        if AS_ROOT:
            user, group, groups = ids.split()
            check(60928 <= int(user) <= 61183 and user == group == groups, f"a uid of its own: {ids}")
            for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
                check_equal(int(status[name], 16), 0, name)
            check_equal(rest.count("Permission denied"), 2, f"what the task may not read: {rest}")
        check_equal(status["SigBlk"].strip(), "0" * 16, "blocked signals")
        check_equal(int(status["SigIgn"], 16), 0, "ignored signals")
        # 10 and above: the shell's own, for the script that it reads.
        check_equal([number for number in descriptors.split() if int(number) < 10], ["0", "1", "2"], "descriptors")
        lines = rest.splitlines()
        check_equal(lines[0], "/dev/null", "standard input")
        check_equal(lines[2].strip(), lines[3], "the session is its own")
        check_equal(lines[4], f"{base}/work", "working folder")


def test_exit_status_of_submit():
    with Cluster() as cluster:
        here = os.path.join(cluster.folder, "here")
        for text, status in (("exit 0", 0), ("exit 5", 5), ("kill -9 $$", 137), ("kill -SEGV $$", 139)):
            done = cluster.cadre("submit", write(here, "main", script(text), 0o755), status=status)
            check(b"\x1b" not in done.stdout + done.stderr, "colours where there is no terminal")
        done = cluster.cadre("submit", write(here, "loud", script("echo to be seen; exit 4"), 0o755), status=4)
        check_in(b"to be seen", done.stdout, "the log of the job")
        done = cluster.cadre("submit", "--detach", "--json", write(here, "quiet", script("exit 6"), 0o755))
        job = json.loads(done.stdout)["id"]
        check_equal(cluster.client.wait(job).exit_code, 6, "exit code of the detached job")
        jobs = json.loads(cluster.cadre("jobs", "--json").stdout)
        check_equal([item["id"] for item in jobs["jobs"]], list(range(job, 0, -1)), "jobs")
        one = json.loads(cluster.cadre("job", str(job), "--json").stdout)
        check_equal((one["id"], one["exit_code"]), (job, 6), "the job")
        workers = json.loads(cluster.cadre("workers", "--json").stdout)
        check_equal([item["name"] for item in workers["workers"]], ["w0"], "workers")
        check_in(b"to be seen", cluster.cadre("logs", str(job - 1)).stdout, "cadre logs")


def test_what_submit_refuses():
    with Cluster() as cluster:
        here = os.path.join(cluster.folder, "here")
        main = write(here, "main", script("exit 0"), 0o755)
        data = write(here, "data", b"x")
        folder = os.path.dirname(main)
        os.mkfifo(os.path.join(here, "pipe"))
        cases = [(["submit", f"{here}/none"], b"none"), (["submit", data], b"executable"),
                 (["submit", folder], b"here"),
                 (["submit", "--file", f"{here}/none", main], b"none"),
                 (["submit", "--file", f"{here}/pipe", main], b"pipe"),
                 (["submit", "--file", f"{data}:../out", main], b".."),
                 (["submit", "--file", f"{data}:/abs", main], b"/abs"),
                 (["submit", "--file", data, "--file", f"{data}:data", main], b"data"),
                 (["submit", "--file", f"{data}:{'n' * 4096}", main], b"name"),
                 (["submit", "--env", "NOVALUE", main], b"NOVALUE"), (["submit", "--workers", "0", main], b"workers")]
        for arguments, part in cases:
            done = cluster.cadre(*arguments, status=None)
            check(done.returncode in (1, 2), f"{arguments}: status {done.returncode}")
            check_in(part, done.stderr, f"{arguments}")
            check_equal(len(done.stderr.splitlines()), 1, f"lines of {arguments}: {done.stderr}")
        check_equal(json.loads(cluster.cadre("jobs", "--json").stdout)["jobs"], [], "jobs")
    with Cluster(workers=0, start=False) as cluster:
        done = cluster.cadre("jobs", status=3)
        check_in(b"c.sock", done.stderr, "what it says without a coordinator")


def test_submit_is_interrupted():
    """Ctrl-C cancels the job that is followed."""
    with Cluster() as cluster:
        main = write(os.path.join(cluster.folder, "here"), "main", script("while :; do sleep 0.05; done"), 0o755)
        process = subprocess.Popen([program("cadre"), "--coordinator", cluster.address, "submit", main],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_environment())
        try:
            wait_for("the job runs", lambda: any(worker.slots_used for worker in cluster.client.workers()))
            cluster.client.wait_running(1)
            process.send_signal(2)
            check_equal(process.wait(20), 130, "exit status")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        info = cluster.client.wait(1)
        check(info.state not in (SUCCEEDED, FAILED), str(info))


if __name__ == "__main__":
    run(globals())
