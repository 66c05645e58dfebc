# SPDX-License-Identifier: Apache-2.0
"""What `cadre pki` has made is there after a power cut: an authority, a pair of key and certificate, another pair in
its place."""
import os
import subprocess
import tempfile

from cluster import clean_environment, program
from recording import Recording, Replay, must_notice, really
from testing import HANG_S, check_equal, run

NAMES = ("ca.pem", "ca-key.pem", "cert.pem", "key.pem")
COMMANDS = (("init", "place/pki"), ("issue", "place/pki", "worker", "host", "-o", "place/tls"), ("init", "place/next"),
            ("issue", "place/next", "worker", "host", "-o", "place/tls", "--force"))  # all three files are others


def contents(folder):
    return {path: what.decode() for path, what in really(folder, "place") if os.path.basename(path) in NAMES}


def record(folder):
    recording = Recording(folder)
    for command in COMMANDS:
        done = subprocess.run([program("cadre"), "pki", *command], capture_output=True, check=False, cwd=folder,
                              env=clean_environment() | recording.environment(), timeout=HANG_S, text=True)
        check_equal(done.returncode, 0, f"cadre pki {command}: {done.stderr}")
        recording.promise("made", ended=True, files=contents(recording.folder))
    recording.end()
    return recording


def check_made(folder, kept):
    there = contents(folder)
    newest = len(kept) == len(COMMANDS)
    for path, wanted in kept[-1].facts["files"].items() if kept else ():
        replaced = not newest and path.startswith("place/tls/") and path in there
        check_equal(there.get(path) if not replaced else wanted, wanted, f"the content of {path}")


def test_what_was_made_is_there():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder, record(folder) as recording:
        def replay(ignored=lambda path: False):
            with tempfile.TemporaryDirectory(prefix="cadre-test-") as after:
                replayed = Replay(recording, "place", seed=1, ignored=ignored)
                replayed.run(after, lambda kept, at: check_made(after, kept))
                return replayed.states

        print(f"{replay()} states")
        for what, ignored in (("a file", lambda path: ".pem" in path),
                              ("the authority's folder", lambda path: path == "place/pki"),
                              ("the folder of a pair", lambda path: path == "place/tls"),
                              ("what they are in", lambda path: path in (".", "place"))):
            must_notice(f"{what} without a sync", lambda ignored=ignored: replay(ignored))


if __name__ == "__main__":
    run(globals())
