# SPDX-License-Identifier: Apache-2.0
"""The example with TFRecord files: made, learned from and predicted in order, by hand, by `cadre run` and on a
cluster; under each policy, compressed and not."""
import glob
import os
import re
import subprocess
import tempfile

from client import FAILED, SUCCEEDED
from cluster import Cluster, clean_environment, program
from testing import HANG_S, check, check_equal, check_in, run

RECORD_BYTES = 65  # of digits-*.bin: 64 pixels and the label
ACCURACY = 94.0  # that the example promises in its README
FILES = 4


def labels(name):
    with open(program(name), "rb") as file:
        return file.read()[RECORD_BYTES - 1::RECORD_BYTES]


def call(folder, *argv, status=0, **environment):
    done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=HANG_S, check=False,
                          env=dict(clean_environment(), **environment))
    check_equal(done.returncode, status, f"status of {argv}: {done.stderr.decode(errors='replace')[-1000:]}")
    return done


def make(folder, *options):
    call(folder, program("records-make"), "--data", os.path.dirname(program("digits-train.bin")), "--files", str(FILES),
         *options)


def judge(text):
    """Accuracy of what a run printed; its predictions must be those of the records in their order."""
    wanted = labels("digits-test.bin")
    found = re.search(r"^test accuracy: (\d+\.\d)%\npredictions:\n([0-9\n]+)\Z", text, re.M)
    check(found, f"neither accuracy nor predictions: {text!r}")
    guesses = [int(digit) for digit in found.group(2).replace("\n", "")]
    check_equal(len(guesses), len(wanted), "number of predictions")
    right = sum(guess == label for guess, label in zip(guesses, wanted))
    check_equal(f"{100 * right / len(wanted):.1f}", found.group(1), "accuracy of the predictions in order")
    check(float(found.group(1)) >= ACCURACY, f"accuracy {found.group(1)}")
    return found.group(2)


def by_hand(folder, *options, **environment):
    return judge(call(folder, program("records"), *options, **environment).stdout.decode())


def test_by_hand_under_each_policy():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        make(folder)
        make(folder, "--gzip")
        check_equal(len(glob.glob(os.path.join(folder, "digits-*.tfrecord*"))), 4 * FILES, "files made")
        for policy in ("auto", "file", "data"):
            by_hand(folder, "--shard", policy)
            by_hand(folder, "--shard", policy, "--gzip")
        by_hand(folder, CADRE_REPLICAS="3")
        check_equal(by_hand(folder, "--shard", "data"), by_hand(folder, "--shard", "data"), "predictions of two runs")


def test_two_tasks():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        make(folder, "--out", folder)
        for policy in ("file", "data"):
            done = call(folder, program("cadre"), "run", "-n", "2", program("records"), "--", "--data", folder,
                        "--shard", policy)
            judge(re.sub(r"^\[0\] ", "", done.stdout.decode(), flags=re.M))


def read_all(folder, pattern):
    contents = {}
    for path in glob.glob(os.path.join(folder, pattern)):
        with open(path, "rb") as file:
            contents[os.path.basename(path)] = file.read()
    return contents


def submit(client, files, arguments):
    with open(program("records"), "rb") as file:
        job = client.submit(file.read(), files=files, name="records", workers=2, replicas=2, arguments=arguments)
    return job, client.wait(job, 60)


def test_on_a_cluster():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder, Cluster(workers=2) as cluster:
        make(folder)
        files = read_all(folder, "digits-*.tfrecord")
        for policy in ("file", "data"):
            job, info = submit(cluster.client, files, ["--shard", policy])
            check_equal((info.state, info.exit_code), (SUCCEEDED, 0), str(info))
            judge(cluster.client.log(job).decode())


def test_a_damaged_file_is_named():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder, Cluster(workers=2) as cluster:
        make(folder)
        files = read_all(folder, "digits-*.tfrecord")
        name = sorted(files)[-1]  # of training
        files[name] = files[name][:1000] + bytes([files[name][1000] ^ 1]) + files[name][1001:]
        job, info = submit(cluster.client, files, ["--shard", "file"])
        check_equal(info.state, FAILED, str(info))
        log = cluster.client.log(job).decode()
        check(re.search(rf"{re.escape(name)}, record \d+ at offset \d+: ", log), f"no record is named in {log!r}")


def test_what_is_refused():
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        done = call(folder, program("records"), status=1)
        check_in(b"digits-train-*.tfrecord", done.stderr, "what is said without files")
        done = call(folder, program("records"), "--shard", "odd", status=2)
        check_in(b"'odd'", done.stderr, "what is said of a policy that is none")
        done = call(folder, program("records-make"), "--files", "0", status=2)
        check_in(b"'0'", done.stderr, "what is said of no files")
        done = call(folder, program("records-make"), "--data", folder, status=1)
        check_in(b"digits-train.bin", done.stderr, "what is said without images")
        check_equal(os.listdir(folder), [], "what is left")


if __name__ == "__main__":
    run(globals())
