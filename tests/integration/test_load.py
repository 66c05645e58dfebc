# SPDX-License-Identifier: Apache-2.0
"""What a cluster meets in operation beside full disks: clocks that jump, descriptors that run out, readers that do not
read, a queue with thousands of jobs."""
import hashlib
import json
import os
import re
import resource
import signal
import socket
import time
from concurrent import futures

from client import FAILED, QUEUED, SUCCEEDED, common_pb2, job_file, jobs_pb2, refusal
from cluster import Cluster, script, set_wrong_clock, with_wrong_clock
from learning import FAST, FAST_WORKER, Learning
from slow_reader import SlowReader
from small_disk import wait_log
from testing import HANG_S, SLOW, check, check_equal, check_in, cpu_s, resident_mib, run, scaled, wait_for

DAY_S = 24 * 3600
SLOW_DISK = os.environ.get("CADRE_TEST_SLOW_DISK", "")


# ---- clocks ----

def test_clocks_jump():
    """By a day, forward and back, here and there, while a job trains: no lease or deadline ends, and what is
    listed is no nonsense."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER, start=False) as cluster:
        files = []
        for daemon in (cluster.coordinator, cluster.workers[0]):
            files.append(os.path.join(cluster.folder, f"{daemon.name}.clock"))
            with_wrong_clock(daemon, files[-1])
        cluster.coordinator.start()
        for worker in cluster.workers:
            worker.start()
        learning = Learning(cluster, workers=2, allowed=5)
        position = learning.until_position(5).position
        for seconds in ((DAY_S, 0), (-DAY_S, DAY_S), (0, -DAY_S)):
            for path, shift in zip(files, seconds):
                set_wrong_clock(path, shift)
            learning.allow(position + 4)
            position = learning.until_position(position + 4).position
            probe = cluster.client.get(cluster.client.submit(script("exit 0"), workers=3))
            wrong_s = probe.submitted_us / 1e6 - time.time()
            check(abs(wrong_s - seconds[0]) < 60, f"the coordinator's clock is wrong by {wrong_s} s")
            cluster.client.cancel(probe.id)
            for listed in (("jobs",), ("workers",), ("job", str(learning.job))):
                said = cluster.cadre(*listed).stdout.decode()
                check(not re.search(r"(^|\s)-\d+ ?(ms|s|m|h|d)\b|\d{6,}(\.\d)? ?[smhd]\b", said), f"{listed}: {said}")
        learning.allow()
        end = learning.end()
        check_equal((end.restarts, end.generation), (0, 1), "restarts, generation")
        learning.check_learned()


# ---- disks ----

def with_slow_disk(daemon, look_ms=0, write_ms=0, below="", name_ms=0):
    """Each look at a file of its state, of what is `below` it, and each write of a log, takes so much longer, or each
    call by a name; and what its loop does with files is written down."""
    os.makedirs(daemon.state, mode=0o711, exist_ok=True)
    os.chmod(daemon.state, 0o711)
    folder = os.path.realpath(daemon.state) + below
    daemon.argv = ["env", f"LD_PRELOAD={SLOW_DISK}", f"SLOW_DISK_FOLDER={folder}",
                   f"SLOW_DISK_MS={look_ms}", f"SLOW_DISK_WRITE_MS={write_ms}", f"SLOW_DISK_NAME_MS={name_ms}",
                   *daemon.argv]


def test_many_outputs_on_a_slow_disk():
    """Listing what a task left takes several times the lease: its worker is no lost one, and it runs once."""
    count = 1000
    content = script(f'cd "$CADRE_OUTPUT_DIR"; for i in $(seq {count}); do : >$i; done; echo once')
    with Cluster(coordinator=["--lease", scaled("2s"), "--collect-timeout", scaled("100s")],
                 worker=["--heartbeat", "200ms"], start=False) as cluster:
        with_slow_disk(cluster.workers[0], 8)
        cluster.coordinator.start()
        cluster.workers[0].start()
        info = cluster.client.run(content, deadline_s=100)
        check_equal((info.state, info.restarts), (SUCCEEDED, 0), str(info))
        check_equal(info.tasks[0].incarnation, 1, "the incarnation of the task that is shown")
        check_equal(cluster.client.log(info.id), b"once\n", "what it printed")
        check("is lost" not in cluster.coordinator.log(), "a worker was lost")
        check_equal(len(cluster.client.outputs(info.id)), count, "outputs")


def test_a_slow_disk_of_logs():
    """Each write of a log takes longer than the lease: many tasks print, no worker is lost, every byte arrives."""
    with Cluster(slots=4, coordinator=["--lease", "1s", "--rewind-patience", "1s"], worker=["--heartbeat", "100ms"],
                 start=False) as cluster:
        with_slow_disk(cluster.workers[0], write_ms=1500)
        cluster.coordinator.start()
        cluster.workers[0].start()
        content = script("for i in 1 2 3 4; do head -c 100000 /dev/zero | tr '\\0' $i; sleep 0.3; done")
        info = cluster.client.run(content, workers=4, deadline_s=100)
        check_equal((info.state, info.restarts), (SUCCEEDED, 0), str(info))
        printed = b"".join(b"%d" % i * 100000 for i in (1, 2, 3, 4))
        for slot in range(4):
            check(cluster.client.log(info.id, slot=slot) == printed, f"the log of task {slot}")
        check("is lost" not in cluster.coordinator.log(), "a worker was lost")
        check("left behind" not in cluster.workers[0].log(), "a task that left nothing behind")


def test_a_slow_disk_of_the_coordinators_logs():
    """Each write of a log takes longer than the lease: another job takes its steps and clients are answered meanwhile,
    no worker is lost, and who follows gets every byte."""
    write_ms = int(1500 * SLOW)
    with Cluster(slots=6, coordinator=["--lease", "1s", "--rewind-patience", "1s"], worker=["--heartbeat", "100ms"],
                 start=False) as cluster:
        with_slow_disk(cluster.coordinator, write_ms=write_ms, below="/jobs/")
        cluster.coordinator.start()
        cluster.workers[0].start()
        learning = Learning(cluster, f"pace={20 * SLOW:.0f}", "epochs=1000", workers=2)
        learning.until_position(2)
        content = script("for i in 1 2 3 4; do head -c 100000 /dev/zero | tr '\\0' $i; sleep 0.3; done")
        printer = cluster.client.submit(content, workers=4)
        with futures.ThreadPoolExecutor() as pool:
            followed = pool.submit(cluster.new_client().log, printer, follow=True)
            longest_s, looks, began_at = 0.0, 0, learning.get().position
            while not followed.done():
                began = time.monotonic()
                cluster.client.get(printer)
                longest_s = max(longest_s, time.monotonic() - began)
                looks += 1
                time.sleep(0.01)
            info = cluster.client.wait(printer)
            printed = b"".join(b"%d" % i * 100000 for i in (1, 2, 3, 4))
            check(followed.result() == printed * 4, "what a follower got")
        check_equal((info.state, info.restarts), (SUCCEEDED, 0), str(info))
        check(looks > 10 and longest_s < 0.7 * write_ms / 1000, f"one of {looks} looks took {longest_s:.2f} s")
        check(learning.get().position >= began_at + 10, f"from step {began_at} to {learning.get().position}")
        cluster.client.cancel(learning.job)
        for slot in range(4):
            check(cluster.client.log(printer, slot=slot) == printed, f"the log of task {slot}")
        check("is lost" not in cluster.coordinator.log(), "a worker was lost")


def test_a_coordinator_ends_while_its_logs_are_written():
    """In order and by force, with followers that went away and such that read: each byte is kept once."""
    with Cluster(slots=4, coordinator=["--lease", scaled("2s")], worker=["--heartbeat", "100ms"],
                 start=False) as cluster:
        with_slow_disk(cluster.coordinator, write_ms=400, below="/jobs/")
        cluster.coordinator.start()
        cluster.workers[0].start()
        job = cluster.client.submit(script("seq 60000; while ! [ -e stop ]; do sleep 0.05; done; seq 60000"), workers=4)
        folder = os.path.join(cluster.coordinator.state, "jobs", str(job), "logs")
        printed = b"".join(b"%d\n" % i for i in range(1, 60001))
        for end in (cluster.coordinator.stop, cluster.coordinator.kill):
            wait_for("a log grows", lambda: os.path.isdir(folder) and any(
                0 < os.path.getsize(os.path.join(folder, slot)) for slot in os.listdir(folder) if slot.isdigit()))
            readers = [cluster.new_client().jobs.Logs(jobs_pb2.LogsRequest(id=job, follow=True), timeout=HANG_S)
                       for _ in range(4)]
            next(readers[0])
            for reader in readers[::2]:
                reader.cancel()
            end()
            cluster.coordinator.start()
        for slot in range(4):
            wait_for(f"the first half of task {slot}'s log",
                     lambda slot=slot: cluster.new_client().log(job, slot=slot) == printed)
            task = os.path.join(cluster.workers[0].state, "tasks", f"{job}.{slot}.{slot + 1}")
            with open(os.path.join(task, "work", "stop"), "wb"):
                pass
        info = cluster.new_client().wait(job)
        check_equal((info.state, info.restarts), (SUCCEEDED, 0), str(info))
        for slot in range(4):
            check(cluster.new_client().log(job, slot=slot) == 2 * printed, f"the log of task {slot}")


def test_a_workers_loop_leaves_files_to_threads():
    """Contents that come, are kept, checked, removed, copied; checkpoints that are sent and put together; outputs."""
    with Cluster(worker=["--cache-check", "100ms", "--cache-limit", "1MiB"], start=False) as cluster:
        worker = cluster.workers[0]
        with_slow_disk(worker)
        cluster.coordinator.start()
        worker.start()
        witness = os.path.join(os.path.realpath(worker.state), "witness")
        with open(witness, "wb"):
            pass
        content = script('cat data >"$CADRE_OUTPUT_DIR/copy"; while ! [ -e stop ]; do sleep 0.1; done')
        job = cluster.client.submit(content, files={"data": bytes(3000000)})
        cluster.client.wait_running(job)
        work = os.path.join(worker.state, "tasks", f"{job}.0.1", "work")
        cached = os.path.join(worker.state, "blobs", hashlib.sha256(bytes(3000000)).hexdigest())
        with open(cached, "r+b") as file:
            file.write(b"1")
        wait_log(worker, "was fetched again from the coordinator")
        with open(os.path.join(work, "stop"), "wb"):
            pass
        check_equal(cluster.client.wait(job).state, SUCCEEDED, "the first job")
        check_equal(cluster.client.run(b"#!/nowhere/at/all\n").state, FAILED, "a job that cannot start")
        learning = Learning(cluster, workers=1, max_restarts=1, checkpoint_every=4, allowed=6)
        learning.until(lambda info: info.checkpoint, "a checkpoint is published")
        os.kill(learning.get().tasks[0].pid, signal.SIGKILL)
        learning.allow()
        check_equal(learning.end().restarts, 1, "restarts")
        wait_for("what tasks left is removed", lambda: not os.listdir(os.path.join(worker.state, "tasks")))
        with open(witness, encoding="utf-8") as file:
            calls = {line.strip().replace(os.path.dirname(witness) + "/", "") for line in file}
        log = {call for call in calls if os.path.realpath(worker.state) in call}  # its own, beside its state
        check(log, "the witness sees nothing")
        check_equal(sorted(calls - log), [], "what the loop waited for")


def test_a_slow_disk_of_the_coordinators_contents():
    """To open, see, name or remove a content takes long: jobs are submitted, save, are published and read, and clients
    are answered meanwhile; no worker is lost."""
    name_ms = int(150 * SLOW)
    with Cluster(slots=4, coordinator=["--lease", scaled("1s"), "--rewind-patience", scaled("1s")],
                 worker=["--heartbeat", "100ms"], start=False) as cluster:
        with_slow_disk(cluster.coordinator, name_ms=name_ms, below="/blobs/")
        cluster.coordinator.start()
        cluster.workers[0].start()
        learning = Learning(cluster, "pace=30", "epochs=1000", workers=2)
        learning.until_position(2)
        cluster.client.jobs.Checkpoint(jobs_pb2.JobRequest(id=learning.job), timeout=HANG_S)
        with futures.ThreadPoolExecutor() as pool:
            other = cluster.new_client()
            copied = pool.submit(
                other.run, script('cat data >"$CADRE_OUTPUT_DIR/copy"'), files={"data": bytes(1000000)})
            published = pool.submit(learning.until, lambda info: info.checkpoint, "a checkpoint is published")
            longest_s, looks = 0.0, 0
            while not (copied.done() and published.done()):
                began = time.monotonic()
                cluster.client.is_alive()
                longest_s = max(longest_s, time.monotonic() - began)
                looks += 1
                time.sleep(0.01)
        check_equal((copied.result().state, copied.result().restarts), (SUCCEEDED, 0), str(copied.result()))
        check(looks > 10 and longest_s < 3 * name_ms / 1000, f"one of {looks} looks took {longest_s:.2f} s")
        check_equal(learning.get().restarts, 0, "restarts")
        names = cluster.client.outputs(copied.result().id)
        check_equal(names, {"0/copy": bytes(1000000)}, "what it left")
        kept = {path for path in cluster.client.outputs(learning.job) if path.startswith("checkpoints/")}
        check(len(kept) >= 2, f"checkpoints that are kept: {kept}")
        cluster.client.cancel(learning.job)
        check("is lost" not in cluster.coordinator.log(), "a worker was lost")


# What is left of it: the records are stored before any message is sent.
LEDGERS = re.compile(r"[a-z0-9]+ (ledger\.db.*|)")


def loops_calls(daemon):
    """What its loop did with files of its state, without its own log, which lies beside it."""
    folder = os.path.realpath(daemon.state)
    with open(os.path.join(folder, "witness"), encoding="utf-8") as file:
        calls = [line.rstrip("\n").split(" ", 1) for line in file]
    return {f"{call} {path[len(folder):].lstrip('/')}" for call, path in calls if (path + "/").startswith(folder + "/")}


def test_the_coordinators_loop_leaves_files_to_threads():
    """Contents that come, are asked for, used and go; checkpoints that are published, kept, read and damaged; outputs,
    and references; jobs that are forgotten; a disk that is looked at."""
    with Cluster(slots=2, worker=FAST_WORKER, start=False,
                 coordinator=[*FAST, "--keep-jobs", "3", "--job-quota", "1GiB", "--storage-quota", "1GiB"]) as cluster:
        coordinator, client = cluster.coordinator, cluster.client
        with_slow_disk(coordinator)
        coordinator.start()
        cluster.workers[0].start()
        with open(os.path.join(coordinator.state, "witness"), "wb"):
            pass
        content = script('cat data >"$CADRE_OUTPUT_DIR/copy"')
        for letter in b"abc":
            info = client.run(content, files={"data": bytes([letter]) * 300000})
            check_equal(client.outputs(info.id), {"0/copy": bytes([letter]) * 300000}, "what it left")
        learning = Learning(cluster, "pace=10", workers=1, max_restarts=3, checkpoint_every=4)
        learning.until(lambda info: info.checkpoint, "a checkpoint is published")
        os.kill(learning.get().tasks[0].pid, signal.SIGKILL)
        learning.end()
        again = Learning(cluster, workers=1, restore_from=learning.job)
        again.end()
        left = client.outputs(learning.job)
        blobs = os.path.join(coordinator.state, "blobs")
        newest = max((path for path in left if path.startswith("checkpoints/") and path.endswith(".json")), key=len)
        block = json.loads(left[newest])["blocks"][0]["sha256"]
        with open(os.path.join(blobs, block), "r+b") as file:
            file.write(b"?")
        code, said = refusal(client.jobs.GetOutput,
                             jobs_pb2.GetOutputRequest(id=learning.job, path=newest.replace(".json", ".safetensors")))
        check_equal(code, "DATA_LOSS", said)
        wait_for("what is damaged is removed", lambda: not os.path.exists(os.path.join(blobs, block)))
        for _ in range(4):
            client.run(script("exit 0"))
        wait_for("jobs and their contents are forgotten", lambda: not os.path.exists(
            os.path.join(coordinator.state, "jobs", str(learning.job))))
        calls = loops_calls(coordinator)
        check(any(LEDGERS.fullmatch(call) for call in calls), "the witness sees nothing")
        others = sorted(call for call in calls if not LEDGERS.fullmatch(call))
        check_equal(others, [], "what the loop waited for")


# ---- descriptors ----

def limit_descriptors(daemon, count):
    """So many more than it has now."""
    used = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
    _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (used + count, hard))


def unlimit_descriptors(daemon):
    _, hard = resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE, (hard, hard))


def test_the_coordinator_has_no_descriptors():
    """Those who are connected go on, those who come wait; it does not spin meanwhile, and takes them when it can."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, "pace=60", workers=2, allowed=5)
        learning.until_position(5)
        limit_descriptors(cluster.coordinator, 3)
        callers = []
        for _ in range(40):
            caller = socket.socket(socket.AF_UNIX)
            caller.setblocking(False)
            caller.connect(cluster.address[len("unix:"):])
            callers.append(caller)
        before_s, began, at = cpu_s(cluster.coordinator.process.pid), time.monotonic(), learning.get().position
        learning.allow(at + 20)
        learning.until_position(at + 20)
        spent = (cpu_s(cluster.coordinator.process.pid) - before_s) / (time.monotonic() - began)
        check(spent < 0.5, f"the coordinator spins: {spent:.0%} of a CPU")
        check_equal(learning.get().restarts, 0, "restarts")
        for caller in callers:
            caller.close()
        unlimit_descriptors(cluster.coordinator)
        check_in("no descriptor is free", cluster.coordinator.log(), "what the coordinator says")
        check_equal(cluster.coordinator.log().count("no descriptor is free"), 1, "how often")
        wait_for("a new client is answered", cluster.new_client().is_alive)
        learning.allow()
        learning.end()
        learning.check_learned()


def test_a_worker_has_no_descriptors():
    """A task cannot start there, which is said; those that run go on; and the next one starts."""
    with Cluster(workers=1, slots=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=1, allowed=5)
        learning.until_position(5)
        limit_descriptors(cluster.workers[0], 0)
        late = cluster.client.submit(script("echo late"), max_restarts=3)
        wait_log(cluster.workers[0], "Too many open files")
        at = learning.get().position
        learning.allow(at + 5)
        learning.until_position(at + 5)
        unlimit_descriptors(cluster.workers[0])
        info = cluster.client.wait(late)
        check_equal(info.state, SUCCEEDED, str(info))
        learning.allow()
        learning.end()
        learning.check_learned()


# ---- readers ----

def test_slow_followers_slow_no_other():
    """50 that do not read a log of 10 MiB/s: the job goes on, memory is bounded, one who reads gets every byte."""
    # No short lease: a worker that a busy machine holds up for a second is no lost one, whose task prints once more.
    with Cluster(workers=1, slots=2, coordinator=["--log-limit", "1GiB"],
                 worker=[*FAST_WORKER, "--log-limit", "1GiB"]) as cluster:
        # 24 MiB in lines of 64 KiB, about 10 MiB a second
        printer = cluster.client.submit(script(
            "line=$(head -c 65535 /dev/zero | tr '\\0' x); for i in $(seq 384); do echo $line; "
            "[ $((i % 16)) = 0 ] && sleep 0.1; done"))
        cluster.client.wait_running(printer)
        clients = [cluster.new_client() for _ in range(50)]
        readers = [SlowReader(client, printer) for client in clients]
        for reader in readers:
            reader.start()
        before = resident_mib(cluster.coordinator.process.pid)
        learning = Learning(cluster, "pace=20", workers=1)
        began = time.monotonic()
        learning.end()
        check(time.monotonic() - began < 20 * SLOW, "steps are slow")
        learning.check_learned()
        check_equal(cluster.client.wait(printer, 60).state, SUCCEEDED, "the printer")
        printed = cluster.client.log(printer)
        check_equal(cluster.coordinator.log().count("worker said hello"), 1, "streams of the worker")
        check_equal(len(printed), 384 * 65536, "bytes of its log, for one who reads")
        check(printed == (b"x" * 65535 + b"\n") * 384, "its lines are not whole")
        grown = resident_mib(cluster.coordinator.process.pid) - before
        check(grown < 200, f"50 who do not read cost {grown:.0f} MiB")
        for reader in readers:
            reader.stop()


# ---- the queue ----

def test_a_queue_with_a_bound():
    """A thousand jobs wait, one more is refused, all are listed and cancelled; a restart finds them."""
    jobs = 1000
    with Cluster(workers=0, coordinator=["--jobs-max", str(jobs), "--tasks-max", str(jobs)]) as cluster:
        program = script("exit 0")
        cluster.client.upload([program])
        spec = common_pb2.JobSpec(name="job", program=job_file("program", program, True), workers=1)
        calls = [cluster.client.jobs.Submit.future(spec, timeout=HANG_S) for _ in range(jobs)]
        ids = [call.result().id for call in calls]
        check_equal(len(set(ids)), jobs, "jobs")
        code, said = refusal(cluster.client.jobs.Submit, spec)
        check_equal(code, "RESOURCE_EXHAUSTED", said)
        check_in(str(jobs), said, "the refusal")
        cluster.coordinator.kill()
        cluster.coordinator.start()
        client = cluster.new_client()
        check_equal(client.get(ids[-1]).state, QUEUED, "the last one")
        calls = [client.jobs.Cancel.future(jobs_pb2.JobRequest(id=job), timeout=HANG_S) for job in ids]
        check(all(call.result().exit_code == 130 for call in calls), "cancelled")
        check(client.jobs.Submit(spec, timeout=HANG_S).id not in ids, "there is room again")


if __name__ == "__main__":
    run(globals())
