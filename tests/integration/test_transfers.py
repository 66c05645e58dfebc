# SPDX-License-Identifier: Apache-2.0
"""What `cadre submit` shows of an upload and `cadre get` of a download: on a terminal how much, how fast and how long;
in a pipe nothing but what they print without."""
import os
import pty

from cluster import Cluster, clean_environment, program, script
from testing import check, check_equal, check_in, run

MIB = 1 << 20


def on_terminal(cluster, *arguments):
    """What the command prints on a terminal of 200 columns; its end must be good."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(program("cadre"), ["cadre", *arguments],
                  clean_environment() | {"CADRE_COORDINATOR": cluster.address, "TERM": "xterm"})
    printed = b""
    try:
        while part := os.read(fd, 65536):
            printed += part
    except OSError:
        pass  # the terminal was closed by its last process
    os.close(fd)
    check_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, f"status of {arguments}: {printed[-500:]}")
    return printed.decode(errors="replace")


def test_upload_and_download():
    with Cluster() as cluster:
        path = os.path.join(cluster.folder, "big.bin")
        content = os.urandom(MIB) * 32 + os.urandom(16)
        task = os.path.join(cluster.folder, "task")
        copies = script('cp big.bin "$CADRE_OUTPUT_DIR"/a\ncp big.bin "$CADRE_OUTPUT_DIR"/b')
        for name, data in ((path, content), (task, copies)):
            with open(name, "wb") as file:
                file.write(data)
        os.chmod(task, 0o755)
        shown = on_terminal(cluster, "submit", "--detach", "--file", path, task)
        check_in("uploading ", shown, "the terminal")
        check_in("/32.0 MiB [", shown, "the terminal")
        check_in("job 1 submitted", shown, "the terminal")
        cluster.client.wait(1)
        shown = on_terminal(cluster, "get", "1", "-o", os.path.join(cluster.folder, "on-terminal"))
        check_in("fetching 0/a (1 of 2)  0 B/64.0 MiB [", shown, "the terminal")
        done = cluster.cadre("get", "1", "-o", os.path.join(cluster.folder, "in-pipe"))
        check_equal(done.stderr, b"", "standard error in a pipe")
        for folder in ("on-terminal", "in-pipe"):
            for name in ("a", "b"):
                with open(os.path.join(cluster.folder, folder, "0", name), "rb") as file:
                    check(file.read() == content, f"{folder}/0/{name} is another file")
        done = cluster.cadre("submit", "--detach", "--file", path, task)
        check_equal(done.stderr, b"", "standard error in a pipe")


def test_a_download_that_fails():
    with Cluster() as cluster:
        cluster.client.run(script("true"))
        done = cluster.cadre("get", "1", "0/none", "-o", os.path.join(cluster.folder, "out"), status=None)
        check(done.returncode == 1 and b"0/none" in done.stderr, f"{done.returncode}: {done.stderr}")
        check(not os.path.exists(os.path.join(cluster.folder, "out")), "a folder without files was left")


def test_what_is_not_there_leaves_nothing():
    """No folder, wherever the files would have gone; what was there before stays."""
    with Cluster() as cluster:
        cluster.client.run(script("mkdir $CADRE_OUTPUT_DIR/a; echo x > $CADRE_OUTPUT_DIR/a/file"))
        here = os.path.join(cluster.folder, "here")
        os.mkdir(here)
        for output in ("0/nosuch", "0/a/b/nosuch", "checkpoints/nosuch", "7/nosuch", "../nosuch"):
            for options in ([], ["-o", "x/y/z"], ["-o", "."]):
                cluster.cadre("get", "1", output, *options, status=1, cwd=here)
                check_equal(os.listdir(here), [], f"what get {output} {' '.join(options)} left")
        cluster.cadre("get", "1", cwd=here)
        cluster.cadre("get", "1", "0/a/b/nosuch", status=1, cwd=here)
        cluster.cadre("get", "1", "1/nosuch", status=1, cwd=here)
        check_equal([found for found, _, _ in os.walk(here)],
                    [here, f"{here}/job-1", f"{here}/job-1/0", f"{here}/job-1/0/a"], "the folders")


run(globals())
