# SPDX-License-Identifier: Apache-2.0
"""`cadre submit --file s3://...` and `--outputs s3://...` at a real object store: workers fetch what the job's files
are, and write there what its tasks leave; objects that change, stores that refuse, daemons that are killed."""
import hashlib
import os
import signal

import grpc

from client import FAILED, SUCCEEDED, job_file, jobs_pb2
from cluster import Cluster, script
from learning import FAST, FAST_WORKER, LEARNER, Gate, kill_all, learner
from stored_files import Site, Submitter, object_file, submit_raw
from testing import check, check_equal, check_in, run, wait_for

from chosen import chosen_store, environment_of, fresh_bucket  # its folder is added by stored_files
from proxy import Proxy

MIB = 1 << 20
SUMS = script('sha256sum data/train.bin none "web file.bin"')
# Says what it has, then trains as far as a gate allows.
HOLDS = script('cat object; exec ./learner "$@"')
LEAVES = script('cd "$CADRE_OUTPUT_DIR"; mkdir -p deep/er; echo "of task $CADRE_SLOT" > "deep/er/a file +%=é"; '
                ': > none; ln -s none link; head -c 3000000 /dev/zero > large; echo left')


def objects(bucket, prefix):
    return {entry.key[len(prefix):]: bucket.get(entry.key) for entry in bucket.list(prefix)}


def digest_of(content):
    return hashlib.sha256(content).hexdigest()


def test_workers_fetch_files():
    """Neither the submitter nor the coordinator has the bytes; a host that has them once reads them no more."""
    bucket = fresh_bucket("files")
    train, web = os.urandom(20 * MIB + 7), b"from a site\n"
    bucket.put("sets/train set+%.bin", train)
    bucket.put("none", b"")
    wanted = "".join(f"{digest_of(content)}  {name}\n" for name, content in
                     (("data/train.bin", train), ("none", b""), ("web file.bin", web)))
    with Site(web) as site, Proxy(chosen_store().endpoint) as proxy, \
            Cluster(workers=2, slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitter = Submitter(cluster, SUMS, endpoint=proxy.endpoint)
        options = ["-n", "4", "--file", "s3://files/sets/train set+%.bin:data/train.bin", "--file", "s3://files/none",
                   "--file", f"{site.url}/some/path?token=secret:web file.bin"]
        shown, said = submitter.submit(*options)
        lines = sorted(line.split("] ", 1)[-1].split("| ", 1)[-1].strip() for line in shown.splitlines())
        check_equal(lines, sorted(wanted.splitlines() * 4), f"what the tasks have; standard error: {said}")
        down = proxy.down_of()["files/sets/train set+%.bin"]
        check(len(train) <= down < 2.2 * len(train), f"{down} bytes of {len(train)} were read by two hosts")
        blobs = os.path.join(cluster.coordinator.state, "blobs")
        check_equal(os.listdir(blobs), [digest_of(SUMS)], "contents at the coordinator")
        proxy.clear_counts()
        submitter.submit(*options)
        check_equal(proxy.down_of()["files/sets/train set+%.bin"], 0, "bytes that were read again")
        for daemon in [cluster.coordinator, *cluster.workers]:
            check("token=secret" not in daemon.log(), f"{daemon.name} logs what follows the path of a URL")


def ends_after_a_change(cluster, bucket, job, words):
    """The first task has the object; then that is replaced, and the task is started again."""
    running = cluster.client.watch_until(job, lambda info: info.position > 0, "a step")
    check_in(b"first", cluster.client.log(job), "what the first task has")
    bucket.put("object", b"another\n")
    kill_all(running)
    end = cluster.client.wait(job)
    check_equal(end.state, FAILED, "the job's state")
    check_in(words, end.message, "why")
    check_in(f"s3://{bucket.name}/object", end.message, "which object")
    check(b"another" not in cluster.client.log(job), "a task had other bytes than the one before")


def submit_holding(cluster, bucket):
    """Without a version: what is fetched first counts."""
    cluster.client.upload([learner()])
    files = [job_file("learner", learner(), True), object_file("object", f"s3://{bucket.name}/object")]
    return submit_raw(cluster, HOLDS, files, max_restarts=1, arguments=[Gate(cluster, 4).argument])


def test_an_object_that_changes_under_its_job():
    bucket = fresh_bucket("changing")
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        bucket.put("object", b"first\n")
        job = Submitter(cluster, HOLDS).detach("--file", "s3://changing/object", "--file", f"{LEARNER}:learner",
                                               "--max-restarts", "1", arguments=[Gate(cluster, 4).argument])
        ends_after_a_change(cluster, bucket, job, "has changed since the job was submitted")
        bucket.put("object", b"first\n")
        ends_after_a_change(cluster, bucket, submit_holding(cluster, bucket),
                            "is not what it was when this job's tasks fetched it first")


def test_what_was_settled_outlives_the_coordinator():
    bucket = fresh_bucket("settled")
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        bucket.put("object", b"first\n")
        job = submit_holding(cluster, bucket)
        cluster.client.watch_until(job, lambda info: info.position > 0, "a step")
        cluster.coordinator.kill()
        cluster.coordinator.start()
        cluster.clients.pop().close()  # its connection is broken; the next one is made when it is asked for
        ends_after_a_change(cluster, bucket, job, "is not what it was when this job's tasks fetched it first")


def test_files_that_cannot_be_had():
    """`cadre submit` says it before there is a job; so does a job whose submitter did not look."""
    bucket = fresh_bucket("refusing")
    bucket.put("object", b"bytes")
    reader = chosen_store().reader
    wrong = [item if not item.startswith("AWS_SECRET") else item[:-4] + "xxxx" for item in environment_of()]
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitter = Submitter(cluster, SUMS)
        for url, words, status in (("s3://refusing/nothing", "s3://refusing/nothing", 1),
                                   ("s3://no-such-bucket/x", "no-such-bucket", 1),
                                   ("s3://refusing/", "has no key", 2), ("s3://X/y", "has a bucket whose name", 2),
                                   ("https://host/a b", "encode them as %20", 2)):
            said = submitter.submit("--file", f"{url}:name", status=status)[1]
            check_in("cadre submit: --file:", said, "what refuses it")
            check_in(words, said, f"what is said of {url}")
        said = Submitter(cluster, SUMS, user=reader).submit("--file", "s3://refusing/object", status=1)[1]
        check_in("s3://refusing/object", said, "of which object")
        check_equal(len(cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs), 0, "jobs")
        without = [item for item in environment_of() if "_KEY" not in item]
        said = Submitter(cluster, SUMS, without).submit("--file", "s3://refusing/object", status=126)[1]
        check_in("what version s3://refusing/object has is not known here", said, "a submitter without credentials")
        for url, environment, code in (
                ("s3://refusing/nothing", environment_of(), grpc.StatusCode.NOT_FOUND),
                ("s3://refusing/object", environment_of(user=reader), grpc.StatusCode.PERMISSION_DENIED),
                ("s3://refusing/object", wrong, grpc.StatusCode.UNAUTHENTICATED),
                ("s3://refusing/object", [], grpc.StatusCode.UNAUTHENTICATED)):
            without = [*environment, "AWS_EC2_METADATA_DISABLED=true"]
            job = submit_raw(cluster, SUMS, [object_file("name", url)], environment=without)
            end = cluster.client.wait(job)
            check_equal(end.state, FAILED, f"a job with {url}")
            check_in("file name: ", end.message, "which file")
            check_in(url, end.message, "which object")
            check_equal(end.code, code.value[0], f"the code of a job whose end says: {end.message}")


def test_a_pattern_is_of_local_files():
    """A key may have a star, and is found by it; one that is not there was meant as a pattern, which is said."""
    bucket = fresh_bucket("stars")
    bucket.put("set/part-1", b"first")
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        submitter = Submitter(cluster, script('cat "$1"'))
        for key in ("set/*", "set/part-?", "set/part-[12]"):
            said = submitter.submit("--file", f"s3://stars/{key}", status=2)[1]
            check_in(f"s3://stars/{key}", said, "which key")
            check_in("a pattern stands for files of this machine only: give a --file for each object", said,
                     "what to do")
            said = submitter.submit("--file", f"s3://stars/{key}:data/", status=2)[1]
            check_in("a pattern stands for files of this machine only", said, f"{key} beneath a name")
        said = submitter.submit("--file", "s3://stars/set/part-2", status=1)[1]
        check("pattern" not in said, f"of a plain key: {said}")
        check_equal(len(cluster.client.jobs.List(jobs_pb2.ListJobsRequest()).jobs), 0, "jobs")
        for key, name in (("set/*", "*"), ("set/part-[12]", "part-[12]")):
            bucket.put(key, key.encode())
            job = submitter.detach("--file", f"s3://stars/{key}", arguments=[name])
            check_equal(cluster.client.wait(job).state, SUCCEEDED, f"a job with the object {key}")
            check_equal(cluster.client.log(job), key.encode(), "what it read")


def test_outputs_go_to_the_store():
    """A quota of the coordinator does not count them."""
    bucket = fresh_bucket("runs")
    with Cluster(workers=2, coordinator=[*FAST, "--job-quota", "1MiB"], worker=FAST_WORKER) as cluster:
        submitter = Submitter(cluster, LEAVES)
        shown, said = submitter.submit("-n", "2", "--outputs", "s3://runs/all of them/")
        check_equal(shown.count("left"), 2, f"what is printed; standard error: {said}")
        check_in("; outputs: s3://runs/all of them/1", said, "the last line")
        left = {f"{slot}/{path}": content for slot in range(2) for path, content in (
            ("deep/er/a file +%=é", f"of task {slot}\n".encode()), ("none", b""), ("large", bytes(3000000)))}
        check_equal(objects(bucket, "all of them/1/"), left, "the objects")
        check_equal(bucket.uploads("all of them/"), [], "uploads that are left")
        listed = cluster.client.jobs.ListOutputs(jobs_pb2.JobRequest(id=1))
        check_equal((listed.folder, len(listed.outputs)), ("s3://runs/all of them", 0), "what the coordinator lists")
        place = "what the tasks of job 1 leave lies in the object store, at s3://runs/all of them/1"
        for arguments, status in ((["get", "1"], 1), (["get", "1", "--list"], 0)):
            check_in(place, cluster.cadre(*arguments, status=status, cwd=cluster.folder).stderr.decode(), arguments)
        said = cluster.cadre("get", "1", "0/large", status=1, cwd=cluster.folder).stderr.decode()
        check_in("at s3://runs/all of them/1; fetch it from there", said, "what get says of one of them")
        check(not os.path.exists(f"{cluster.folder}/job-1"), "a folder without files was left")
        check_in("outputs     s3://runs/all of them/1", cluster.cadre("job", "1").stdout.decode(), "what job shows")


def test_places_that_cannot_be_written():
    """At the start of a task it fails; when the store refuses at its end, the coordinator gets what it left."""
    bucket = fresh_bucket("leaving")
    reader = chosen_store().reader
    waits = script('while [ ! -e "$1" ]; do sleep 0.1; done; cd "$CADRE_OUTPUT_DIR"; echo a > a; echo b > b')
    with Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        for folder, environment, words, code in (
                ("s3://leaving/x", environment_of(user=reader), "s3:PutObject", grpc.StatusCode.PERMISSION_DENIED),
                ("s3://no-such-bucket/x", environment_of(), "no-such-bucket", grpc.StatusCode.NOT_FOUND)):
            job = submit_raw(cluster, waits, [], outputs_folder=folder, environment=environment, max_restarts=0)
            end = cluster.client.wait(job)
            check_equal(end.state, FAILED, f"a job with {folder}")
            check_in("what the task leaves could not be written", end.message, "why")
            check_in(words, end.message, "why exactly")
            check_equal(end.code, code.value[0], f"the code of a job whose end says: {end.message}")
        gate = os.path.join(cluster.folder, "gate")
        job = submit_raw(cluster, waits, [], outputs_folder="s3://leaving/x", arguments=[gate])
        cluster.client.wait_running(job)
        bucket.ask("DELETE")
        with open(gate, "wb"):
            pass
        end = cluster.client.wait(job)
        check_equal((end.state, cluster.client.outputs(job)), (SUCCEEDED, {"0/a": b"a\n", "0/b": b"b\n"}),
                    "what is at the coordinator")
        check_in("it is at the coordinator (cadre get 3), because s3://leaving/x/3/0/", end.message, "why")


def test_a_daemon_is_killed_in_the_middle_of_an_upload():
    """The next one writes it whole, and removes what the first left of it."""
    bucket = fresh_bucket("cut-off")
    leaves = script('head -c 40000000 /dev/zero > "$CADRE_OUTPUT_DIR/large"; echo x > "$CADRE_OUTPUT_DIR/small"')
    with Proxy(chosen_store().endpoint) as proxy, \
            Cluster(coordinator=[*FAST, "--collect-timeout", "10m"], worker=[*FAST_WORKER, "--keep-tasks"]) as cluster:
        proxy.link.bytes_s = 4e6
        job = submit_raw(cluster, leaves, [], outputs_folder="s3://cut-off/run",
                         environment=environment_of(endpoint=proxy.endpoint))
        wait_for("an upload is on its way", lambda: any("large" in key for key, _ in bucket.uploads("run/")))
        (worker,) = cluster.workers
        worker.kill()
        check("1/0/large" not in objects(bucket, "run/"), "a half-written file is seen")
        proxy.link.bytes_s = 0.0
        worker.start()
        end = cluster.client.wait(job)
        check_equal((end.state, end.restarts), (SUCCEEDED, 0), f"the end: {end.message}")
        check_equal(objects(bucket, "run/"), {"1/0/large": bytes(40000000), "1/0/small": b"x\n"}, "the objects")
        check_equal(bucket.uploads("run/"), [], "uploads that are left")


def test_a_job_that_ends_before_its_outputs_are_there():
    """It waits no longer than --collect-timeout; its worker writes them all the same."""
    bucket = fresh_bucket("late")
    leaves = script('head -c 12000000 /dev/zero > "$CADRE_OUTPUT_DIR/large"; echo x > "$CADRE_OUTPUT_DIR/small"')
    with Proxy(chosen_store().endpoint) as proxy, \
            Cluster(coordinator=[*FAST, "--collect-timeout", "500ms"], worker=FAST_WORKER) as cluster:
        proxy.link.bytes_s = 4e6
        job = submit_raw(cluster, leaves, [], outputs_folder="s3://late/run",
                         environment=environment_of(endpoint=proxy.endpoint))
        end = cluster.client.wait(job)
        check_equal(end.state, SUCCEEDED, "the job's state")
        check_in("did not come in time", end.message, "what it says")
        left = {"large": bytes(12000000), "small": b"x\n"}
        wait_for("they are there", lambda: objects(bucket, "run/1/0/") == left)


def test_a_store_that_fails_now_and_then():
    bucket = fresh_bucket("shaky")
    content = os.urandom(9 * MIB)
    bucket.put("object", content)
    copies = script('cp object "$CADRE_OUTPUT_DIR/copy"')
    with Proxy(chosen_store().endpoint, seed=7) as proxy, \
            Cluster(workers=2, slots=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        proxy.plan.draw(**{"500": 4, "503": 4, "429": 2, "cut": 3, "reset": 3})
        submitter = Submitter(cluster, copies, endpoint=proxy.endpoint)
        for number in range(1, 4):
            submitter.submit("-n", "4", "--file", "s3://shaky/object", "--outputs", "s3://shaky/out",
                             "--max-restarts", "0")
            check_equal(objects(bucket, f"out/{number}/"), {f"{slot}/copy": content for slot in range(4)}, "the copies")
        check(proxy.counts()["fault"], "the proxy has drawn no fault")


def test_a_task_that_is_cancelled_while_it_fetches():
    """The store takes its time: the job ends at once, and nothing of the fetch is left."""
    bucket = fresh_bucket("slow")
    bucket.put("object", bytes(16 * MIB))
    with Proxy(chosen_store().endpoint) as proxy, Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        proxy.link.bytes_s = 100e3
        job = submit_raw(cluster, SUMS, [object_file("data/train.bin", "s3://slow/object")],
                         environment=environment_of(endpoint=proxy.endpoint))
        wait_for("it reads", lambda: proxy.counts()["down"] > 0)
        info = cluster.client.watch_until(job, lambda now: now.tasks and now.tasks[0].fetch.whole_bytes > 0, "how far")
        check_equal(info.tasks[0].fetch.whole_bytes, 16 * MIB, "bytes that it reads")
        cluster.client.cancel(job)
        cluster.client.wait(job)
        (worker,) = cluster.workers
        worker.signal(signal.SIGTERM)
        check_equal(worker.wait_end(), 0, "its exit status")
        left = [name for name in os.listdir(os.path.join(worker.state, "blobs")) if name.startswith("fetch-")]
        check_equal(left, [], "what is left of the fetch")


run(globals())
