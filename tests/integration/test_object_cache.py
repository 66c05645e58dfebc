# SPDX-License-Identifier: Apache-2.0
"""Where workers let tasks keep blocks of objects: whose they are, how much, and that they stay. The programs here put
files there as the library does (tests/object_storage reads real stores through it)."""
import os

from client import SUCCEEDED
from cluster import AS_ROOT, Cluster, script
from testing import check, check_equal, check_in, run, wait_for

# Writes COUNT blocks of a MiB, says where, and what was there before.
WRITER = script("""set -e
echo "folder $CADRE_CACHE_FOLDER"; echo "mib $CADRE_CACHE_MIB"; echo "uid $(id -u)"
[ -n "$CADRE_CACHE_FOLDER" ] || exit 0
mkdir -p -m 700 "$CADRE_CACHE_FOLDER"
for file in "$CADRE_CACHE_FOLDER"/*/*; do [ ! -f "$file" ] || cat "$file" > /dev/null; done
echo "before $(find "$CADRE_CACHE_FOLDER" -type f | wc -l)"
[ -z "$OTHER" ] || { ls "$OTHER" > /dev/null 2>&1 && echo open || echo closed; }
mkdir -p "$CADRE_CACHE_FOLDER/$OBJECT"
i=0; while [ $i -lt "${COUNT:-1}" ]; do
    head -c 1048576 /dev/zero > "$CADRE_CACHE_FOLDER/$OBJECT/$i"; i=$((i + 1)); done""")
KEYS = ["AWS_ACCESS_KEY_ID=AKONE", "AWS_SECRET_ACCESS_KEY=one", "AWS_ENDPOINT_URL=http://store.example"]
OTHERS = ["AWS_ACCESS_KEY_ID=AKONE", "AWS_SECRET_ACCESS_KEY=two", "AWS_ENDPOINT_URL=http://store.example"]


def write(cluster, *environment, name="x"):
    """One job; what it said, by the first word of each line."""
    job = cluster.client.submit(WRITER, environment=[*environment, f"OBJECT={name * 64}"])
    end = cluster.client.wait(job)
    log = cluster.client.log(job).decode()
    check_equal(end.state, SUCCEEDED, f"the end of a job that said {log}")
    return dict((line.split(" ", 1) + [""])[:2] for line in log.splitlines())


def blocks_of(cluster):
    found = []
    for folder, _, names in os.walk(f"{cluster.workers[0].state}/objects"):
        found += [os.path.getsize(f"{folder}/{name}") for name in names]
    return sum(found) >> 20


def taken_back(cluster):
    """With uids of their own: no folder belongs to a job any more."""
    folder = f"{cluster.workers[0].state}/objects"
    return all(os.stat(f"{folder}/{name}").st_uid == os.geteuid() for name in os.listdir(folder))


def test_jobs_with_the_same_keys_share():
    with Cluster(worker=["--object-cache-limit", "128MiB"]) as cluster:
        first = write(cluster, *KEYS)
        check_equal((first["before"], first["mib"]), ("0", "128"), "what the first job found")
        wait_for("its folder is taken back", lambda: not AS_ROOT or taken_back(cluster))
        again = write(cluster, *KEYS, name="y")
        check_equal((again["folder"], again["before"]), (first["folder"], "1"), "what the next job found")
        other = write(cluster, *OTHERS, f"OTHER={first['folder']}")
        check(other["folder"] != first["folder"], "other keys, and the same folder")
        check_equal(other["before"], "0", "what other keys find")
        if AS_ROOT:
            check("closed" in other, "a job reads the folder of another one")
        alone = [write(cluster)["folder"] for _ in range(2)]
        check(len({*alone, first["folder"], other["folder"]}) == 4, "jobs without keys share a folder")
        own = write(cluster, *KEYS, f"CADRE_CACHE_FOLDER={first['folder']}-own", "CADRE_CACHE_FOLDER=")
        check_equal(own["folder"], "", "a job that wants none")
        check(os.stat(f"{cluster.workers[0].state}/objects").st_mode & 0o077 == 0o011, "all see whose there are")


def test_it_outlives_the_daemon():
    with Cluster(worker=["--object-cache-limit", "128MiB"]) as cluster:
        first = write(cluster, *KEYS, "COUNT=3")
        cluster.workers[0].stop()
        cluster.workers[0].start()
        check_equal(write(cluster, *KEYS)["before"], "3", "what a job found after a restart")
        check_in(cluster.workers[0].state, first["folder"], "where it was")


def test_the_bound_is_of_all_folders():
    with Cluster(worker=["--object-cache-limit", "64MiB"]) as cluster:
        write(cluster, *KEYS, "COUNT=60")
        write(cluster, *OTHERS, "COUNT=40", name="y")
        cluster.workers[0].stop()
        cluster.workers[0].start()
        left = blocks_of(cluster)
        check(40 <= left <= 64, f"{left} MiB are there")
        check_equal(write(cluster, *OTHERS)["before"], "40", "what was used last")


def test_none():
    with Cluster(worker=["--object-cache-limit", "0"]) as cluster:
        check_equal(write(cluster, *KEYS)["folder"], "", "a folder")
        check(not os.path.exists(f"{cluster.workers[0].state}/objects"), "a folder is there")


run(globals())
