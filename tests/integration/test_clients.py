# SPDX-License-Identifier: Apache-2.0
"""The example clients in Python and Go: built by the commands of their README, from the .proto files alone, they take a
job to its end over a Unix socket and over TLS."""
import os
import re
import shutil
import subprocess
import sys

import client  # noqa: F401, skips where Python has no gRPC
from cluster import Cluster, clean_environment, script
from pki import Pki
from testing import HANG_S, check, check_equal, check_in, run, skip

SOURCE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
CLIENTS = os.path.join(SOURCE, "deploy/examples/clients")
PROGRAM = script('echo "$1 from $CADRE_SLOT"; mkdir -p "$CADRE_OUTPUT_DIR/a"\n'
                 'echo "left by $CADRE_SLOT" >"$CADRE_OUTPUT_DIR/a/b"; exit "$2"')


class Built:
    """A client, in a folder that has nothing else of Cadre; its README's last command runs it."""

    def __init__(self, folder, language):
        self.folder = os.path.join(folder, language)
        shutil.copytree(CLIENTS, self.folder)
        with open(os.path.join(self.folder, "README.md"), encoding="utf-8") as file:
            block = re.search(rf"^## {language}$.*?^```sh\n(.*?)^```$", file.read(), re.M | re.S)[1]
        check_in("proto=/usr/share/cadre/proto\n", block, "README.md")
        block = block.replace("/usr/share/cadre/proto", os.path.join(SOURCE, "proto"))
        *build, self.last = block.replace("python3", sys.executable).splitlines()
        check(self.last.endswith(" unix:/tmp/c.sock ./fit"), f"the last command of README.md: {self.last}")
        self.environment = clean_environment() | {"GOCACHE": os.path.join(folder, "go-cache")}
        self.call("\n".join(["set -e", *build]))
        with open(os.path.join(self.folder, "fit"), "wb") as file:
            file.write(PROGRAM)

    def call(self, command, status=0, **environment):
        done = subprocess.run(["sh", "-c", command], cwd=self.folder, env={**self.environment, **environment},
                              capture_output=True, text=True, timeout=HANG_S, check=False, stdin=subprocess.DEVNULL)
        check_equal(done.returncode, status, f"status of {command}: {done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def submit(self, address, *arguments, status=0, **environment):
        command = self.last.replace("unix:/tmp/c.sock", address)
        return self.call(" ".join([command, *arguments]), status, **environment)


class Secured(Cluster):
    """Two workers, and a port for clients with a certificate beside the socket."""

    def __init__(self):
        super().__init__(workers=2, start=False)
        self.pki = Pki(self.folder)
        self.coordinator.argv += ["--listen", "127.0.0.1:0", "--tls-dir", self.pki.issue("coordinator", "main")]

    def __enter__(self):
        super().__enter__()
        self.coordinator.start()
        for worker in self.workers:
            worker.start()
        with open(self.coordinator.ready_file, encoding="ascii") as file:
            self.port = re.search(r"^127\.0\.0\.1:(\d+)$", file.read(), re.M)[1]
        return self


def takes_a_job_to_its_end(language):
    with Secured() as cluster:
        built = Built(cluster.folder, language)
        said = built.submit(cluster.address, "hello", "0")
        for slot in (0, 1):
            check_in(f"hello from {slot}\n", said, "what the tasks print")
            check_in(f"fetched outputs/1/{slot}/a/b\n", said, "what it fetches")
            with open(os.path.join(built.folder, f"outputs/1/{slot}/a/b"), encoding="utf-8") as file:
                check_equal(file.read(), f"left by {slot}\n", "an output")
        check_in("job 1: JOB_STATE_SUCCEEDED after 0 steps.", said, "its end")

        address = f"127.0.0.1:{cluster.port}"
        tls = cluster.pki.issue("client", "anna")
        said = built.submit(address, "over-TLS", "3", status=3, CADRE_TLS_DIR=tls)
        check_in("over-TLS from ", said, "what a task prints, over TLS; the first that fails ends the other")
        check_in("job 2: JOB_STATE_FAILED after 0 steps.", said, "the job that fails")
        said = built.submit(address, status=1)
        check("Traceback" not in said and "panic" not in said, f"without a certificate: {said}")
        check_in("unavailable", said.lower(), "one sentence")


def test_python():
    takes_a_job_to_its_end("Python")


def test_go():
    for name in ("go", "protoc-gen-go"):
        if shutil.which(name) is None:
            skip(f"there is no {name}: apt-get install golang-go golang-google-grpc-dev golang-goprotobuf-dev")
    takes_a_job_to_its_end("Go")


if __name__ == "__main__":
    run(globals())
