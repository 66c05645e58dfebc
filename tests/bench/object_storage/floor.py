# SPDX-License-Identifier: Apache-2.0
"""The store of the measurements, and curl: several transfers at a time, of one process or of two.

    with FloorStore(BYTES) as store:
        store.make("shards"), store.path("shards", "s-0")   a bucket, the file of an object
        os.environ | store.variables()                      what programs find it by
        curl_download(store.endpoint, [("shards", "s-0", BYTES)], 2, 8)
"""
import concurrent.futures
import hashlib
import http.client
import os
import re
import shutil
import subprocess
import tempfile
import threading
import urllib.parse

from driver import programs

SHARED_MEMORY = "/dev/shm"
RANGE_BYTES = 8 << 20
PART_BYTES = 8 << 20


def variables_of(endpoint, region="us-east-1", access="floor", secret="floor"):
    return {"AWS_ENDPOINT_URL": endpoint, "AWS_REGION": region, "AWS_ACCESS_KEY_ID": access,
            "AWS_SECRET_ACCESS_KEY": secret, "AWS_EC2_METADATA_DISABLED": "true"}


def roomy_folder(needed_bytes):
    """Where objects lie in memory, so that no disk is measured; None: where temporary files are."""
    if os.path.isdir(SHARED_MEMORY) and shutil.disk_usage(SHARED_MEMORY).free > 2 * needed_bytes:
        return SHARED_MEMORY
    return None


class FloorStore:
    """bench_object_store (floor_store.c) with a folder of objects; `folder`: of another one, whose link is faster."""

    def __init__(self, needed_bytes, link_bytes_s=0, folder=None):
        self.parent = roomy_folder(needed_bytes)
        self.link_bytes_s, self.folder, self.owns = link_bytes_s, folder, folder is None
        self.process = self.port = None

    def __enter__(self):
        if self.owns:
            self.folder = tempfile.mkdtemp(prefix="cadre-bench-objects-", dir=self.parent)
        self.process = subprocess.Popen([programs.program("bench_object_store"), self.folder, str(self.link_bytes_s)],
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self.owns:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def variables(self):
        return variables_of(self.endpoint)

    def make(self, bucket):
        os.makedirs(os.path.join(self.folder, bucket), exist_ok=True)

    def path(self, bucket, key):
        return os.path.join(self.folder, bucket, urllib.parse.quote(key, safe=""))


def absent_curl():
    return "curl is not installed" if shutil.which("curl") is None else None


def run_curls(transfers, processes, connections, kept_in=None):
    """Each transfer is the lines of a configuration of curl's; shared out to so many processes, which have so many
    connections together. What they receive is kept in files of a folder, if there is one. Fails where one of them
    does."""
    curls = []
    for number in range(processes):
        lines = []
        for index, transfer in enumerate(transfers[number::processes]):
            output = f"{kept_in}/{number}-{index}" if kept_in else "/dev/null"
            lines += [*transfer, "fail", f'output = "{output}"', 'write-out = "%{http_code}\\n"', "next"]
        command = ["curl", "-q", "--parallel", "--parallel-immediate", "--parallel-max",
                   str(max(1, connections // processes)), "--config", "-"]
        curls.append((subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True),  # its progress
                      "\n".join(lines[:-1]), len(transfers[number::processes])))
    for curl, text, _ in curls:
        curl.stdin.write(text)
        curl.stdin.close()
    for curl, _, count in curls:
        said = curl.stdout.read().split()
        if curl.wait() != 0 or len(said) != count or not all(re.fullmatch("20[06]", word) for word in said):
            raise RuntimeError(f"curl ended with {curl.returncode}: {len(said)} of {count} answers, {set(said)}")
        curl.stdout.close()


def curl_download(endpoint, objects, processes, connections, kept_in=None):
    """All bytes of them, by ranges: (bucket, key, bytes) each."""
    transfers = []
    for bucket, key, size in objects:
        for first in range(0, size, RANGE_BYTES):
            last = min(first + RANGE_BYTES, size) - 1
            transfers.append([f'url = "{endpoint}/{bucket}/{key}"', f'range = "{first}-{last}"'])
    run_curls(transfers, processes, connections, kept_in)


def hash_parts(part_path, parts):
    """SHA-256 of so many parts, on all CPUs, as a signature of S3's has it."""
    with open(part_path, "rb") as file:
        part = file.read()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(hashlib.sha256, part) for _ in range(parts)]:
            future.result()


def curl_upload_hashed(endpoint, bucket, key, part_path, parts, processes, connections):
    """curl_upload() while the parts are hashed."""
    hashing = threading.Thread(target=hash_parts, args=(part_path, parts))
    hashing.start()
    curl_upload(endpoint, bucket, key, part_path, parts, processes, connections)
    hashing.join()


def curl_upload(endpoint, bucket, key, part_path, parts, processes, connections):
    """An object of so many equal parts, by an upload; the time of its begin and of its end are a part of it."""
    server = http.client.HTTPConnection(urllib.parse.urlsplit(endpoint).netloc)
    server.request("POST", f"/{bucket}/{key}?uploads")
    upload = re.search(b"<UploadId>(.*)</UploadId>", server.getresponse().read())[1].decode()
    run_curls([[f'url = "{endpoint}/{bucket}/{key}?partNumber={number}&uploadId={upload}"',
                f'upload-file = "{part_path}"', 'header = "Expect:"'] for number in range(1, parts + 1)],
              processes, connections)
    server.request("POST", f"/{bucket}/{key}?uploadId={upload}", body=b"")
    answer = server.getresponse()
    if answer.status != 200 or b"<CompleteMultipartUploadResult>" not in answer.read():
        raise RuntimeError(f"the upload ends with {answer.status}")
    server.close()
