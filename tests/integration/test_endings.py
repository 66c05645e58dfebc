# SPDX-License-Identifier: Apache-2.0
"""How programs end, and that this is reported truthfully; nothing of a task outlives it."""
import os
import struct

import grpc

from client import CANCELLED, FAILED, SUCCEEDED
from cluster import Cluster, processes_naming, script, trainer
from testing import check, check_equal, check_in, run, wait_for

EM_S390 = 22
EM_X86_64 = 62


def check_failed(info, exit_code, *parts):
    """FAILED with that status for a shell, in one sentence that has all parts."""
    check_equal((info.state, info.exit_code), (FAILED, exit_code), f"state and exit code of {info}")
    check(info.code != 0, f"a failed job has the status code OK: {info}")
    for part in parts:
        check_in(part, info.message, "the message")
    check(info.message.isprintable(), f"the message {info.message!r} is not one line of text")


def elf_of_another_machine():
    machine = EM_S390 if os.uname().machine == "x86_64" else EM_X86_64
    rest = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, 0, 0, 0, 0, 64, 0, 0, 0, 0, 0)
    return b"\x7fELF\x02\x01\x01" + bytes(9) + rest


def test_programs_that_know_nothing_of_cadre():
    with Cluster(slots=4) as cluster:
        client = cluster.client
        info = client.run(script("echo done"))
        check_equal((info.state, info.exit_code, info.code), (SUCCEEDED, 0, 0), str(info))
        check_in("without joining a strategy", info.message, "the message")
        check(not info.tasks[0].uses_cadre, "it uses Cadre")
        check_equal(info.tasks[0].exit.code, 0, "status of the task")

        info = client.run(script("echo one >&2; echo two; echo 'no such data' >&2; exit 3"))
        check_failed(info, 3, "task 0", "w0", "status 3", "no such data")
        check_equal((info.tasks[0].exit.code, info.tasks[0].exit.signal), (3, 0), "exit of the task")
        check_equal(sorted(client.log(info.id).split()), sorted(b"one two no such data".split()), "the log")

        info = client.run(script("kill -9 $$"))
        check_failed(info, 137, "task 0", "signal 9")
        check_equal((info.tasks[0].exit.code, info.tasks[0].exit.signal), (0, 9), "exit of the task")

        info = client.run(script("kill -SEGV $$"))
        check_failed(info, 139, "signal 11")


def test_programs_that_do_not_start():
    with Cluster() as cluster:
        client = cluster.client
        info = client.run(elf_of_another_machine(), name="foreign")
        check_failed(info, 126, "did not start", "program", "another architecture")
        info = client.run(b"just a text\n", name="text")
        check_failed(info, 126, "did not start", "program")
        info = client.run(b"#!/nowhere/interpreter\n", name="no interpreter")
        check_failed(info, 127, "did not start", "interpreter")
        check_equal(info.code, grpc.StatusCode.NOT_FOUND.value[0], "its code")
        info = client.run(b"", name="empty")
        check_failed(info, 126, "did not start")
        check_equal(client.run(script("exit 0")).state, SUCCEEDED, "the worker goes on")


def test_one_task_fails_while_training():
    with Cluster(workers=2) as cluster:
        client = cluster.client
        info = client.run(trainer(), arguments=["20"], workers=2)
        check_equal(info.state, SUCCEEDED, str(info))
        check_equal(info.position, 20, "steps")
        check(all(task.uses_cadre for task in info.tasks), "tasks use Cadre")

        info = client.run(trainer(), arguments=["1000000", "1", "10", "exit"], workers=2)
        check_failed(info, 7, "task 1", info.tasks[1].worker, "status 7", "the shard is empty")
        # What was known to be committed: the newest steps of a window are reported together.
        check(0 < info.position <= 10, f"position {info.position}")

        info = client.run(trainer(), arguments=["1000000", "0", "5", "crash"], workers=2)
        check_failed(info, 139, "task 0", "signal 11", "cadre: SIGSEGV in go_wrong (program+0x")
        check_in(b"addr2line -Cfe ", client.log(info.id), "the log")

        info = client.run(trainer(), arguments=["1000000", "1", "5", "leave"], workers=2)
        check_failed(info, 1, "task 1", "cadre_finish")

        check_equal(client.run(trainer(), arguments=["20"], workers=2).state, SUCCEEDED, "the workers go on")


def test_gone_before_its_peer_says_hello():
    # Slot 1 never calls cadre_init: it ends before slot 0, which waits in cadre_strategy_default for it.
    # Files are not executable unless they are said to be, so a copy is.
    content = script('if [ "$CADRE_SLOT" = 1 ]; then exit $1; fi\n'
                     'cp trainer.bin trainer && chmod 755 trainer && exec ./trainer 10')
    with Cluster(workers=2) as cluster:
        client = cluster.client
        info = client.run(content, files={"trainer.bin": trainer()}, arguments=["4"], workers=2)
        check_failed(info, 4, "task 1", "status 4")
        info = client.run(content, files={"trainer.bin": trainer()}, arguments=["0"], workers=2)
        check_failed(info, 1, "task 1", "join")


def test_cancel_of_one_that_ignores_sigterm():
    with Cluster(workers=2, coordinator=["--grace", "300ms"]) as cluster:
        client = cluster.client
        job = client.submit(script("trap 'echo not me' TERM; echo ready; while :; do sleep 0.05; done"), workers=2)
        client.wait_running(job)
        wait_for("both run", lambda: client.log(job).count(b"ready") == 2)
        check_in(client.cancel(job).state, (CANCELLED, 4), "state after Cancel")
        info = client.wait(job)
        check_equal((info.state, info.exit_code), (CANCELLED, 130), str(info))
        check_equal([task.exit.signal for task in info.tasks], [9, 9], "signals")
        check_equal(client.log(job).count(b"not me"), 2, "both got SIGTERM first")
        again = client.cancel(job)
        check_equal((again.state, again.message), (info.state, info.message), "an ended job stays as it is")


def test_a_megabyte_without_a_newline():
    with Cluster() as cluster:
        client = cluster.client
        info = client.run(script("head -c 1048576 /dev/zero | tr '\\0' x; printf y"))
        check_equal(info.state, SUCCEEDED, str(info))
        log = client.log(info.id)
        check_equal((len(log), log.count(b"x"), log[-1:]), (1048577, 1048576, b"y"), "the log")
        info = client.run(script("head -c 300000 /dev/zero | tr '\\0' x >&2; exit 9"))
        check_failed(info, 9, "status 9")


def test_log_limit():
    with Cluster(worker=["--log-limit", "4KiB"]) as cluster:
        client = cluster.client
        info = client.run(script("head -c 100000 /dev/zero | tr '\\0' x"))
        check_equal(info.state, SUCCEEDED, str(info))
        log = client.log(info.id)
        check_equal(log[:4096], b"x" * 4096, "what is kept")
        check_in(b"--log-limit", log[4096:], "what is said of the rest")


def test_children_that_stay_behind():
    # One in the background, one in a session of its own, one that also forgot its environment.
    content = script("sleep 1000 &\nsetsid sh -c 'sleep 1001; true' >/dev/null 2>&1 &\n"
                     "setsid env -i sh -c 'echo $$ >stray.pid; exec sleep 1002' &\n"
                     "while [ ! -s stray.pid ]; do sleep 0.02; done; cat stray.pid")
    with Cluster() as cluster:
        client = cluster.client
        info = client.run(content)
        check_equal(info.state, SUCCEEDED, str(info))
        stray = client.log(info.id).split()[0].decode()
        wait_for("what the task left is gone", lambda: not processes_naming(f"CADRE_SOCKET={cluster.folder}"), 5)
        wait_for("the one without environment is gone", lambda: not os.path.exists(f"/proc/{stray}"), 5)


def test_output_that_is_held_open():
    # A stray keeps the task's output open and writes on: the task has ended all the same.
    content = script("setsid sh -c 'while :; do echo noise; sleep 0.05; done' &\necho main")
    with Cluster() as cluster:
        info = cluster.client.run(content, deadline_s=10)
        check_equal(info.state, SUCCEEDED, str(info))
        check_in(b"main\n", cluster.client.log(info.id), "the log")


if __name__ == "__main__":
    run(globals())
