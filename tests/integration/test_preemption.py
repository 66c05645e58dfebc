# SPDX-License-Identifier: Apache-2.0
"""Preemption: a notice to one task, or a drained worker that the job cannot do without. All save at one step and leave;
what is left is done later, exactly, and comes to the same bits where the number of tasks is the same."""
import json
import os
import signal
import subprocess
import tempfile

from client import SUCCEEDED, jobs_pb2
from cluster import Cluster, clean_environment, processes_naming, program
from learning import FAST, FAST_WORKER, LEARNER, STEPS, Gate, Learning, learner, pids_of, step_until, undisturbed
from testing import HANG_S, check, check_equal, check_in, run, wait_for

PREEMPTED = 42
SLOW = "pace=10"


def saved_in(folder):
    """The positions of the whole checkpoints in a folder."""
    names = os.listdir(folder)
    return sorted(int(name[len("checkpoint-"):-len(".json")]) for name in names
                  if name.startswith("checkpoint-") and name.endswith(".json"))


def content(path):
    with open(path, "rb") as file:
        return file.read()


class Running:
    """A command in a folder of its own."""

    def __init__(self, argv, **environment):
        self.folder = tempfile.mkdtemp(prefix="cadre-preempt-")
        self.log = os.path.join(self.folder, "log")
        os.mkdir(self.log)
        self.process = subprocess.Popen([word.replace("LOG", self.log) for word in argv], cwd=self.folder,
                                        env=clean_environment() | environment, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def wait_steps(self, count, tasks=1):
        """Until each of so many tasks has logged so many steps."""
        def logged():
            files = [os.path.join(self.log, name) for name in os.listdir(self.log)]
            return len(files) == tasks and all(content(path).count(b"\n") >= count for path in files)
        wait_for(f"{tasks} tasks did {count} steps", logged)

    def end(self, status):
        out, err = self.process.communicate(timeout=HANG_S)
        check_equal(self.process.returncode, status, f"exit status ({out[-400:]} {err[-800:]})")
        return err.decode()


def tasks_of(running):
    """Pids of the learners that log to this folder."""
    return sorted(pid for pid, line in processes_naming(running.log).items() if line.startswith(("./learner", LEARNER)))


def test_by_hand():
    calm = Running([LEARNER], CADRE_OUTPUT_DIR=".")
    calm.end(0)
    running = Running([LEARNER, SLOW, "log=LOG"], CADRE_PREEMPTION="on")
    running.wait_steps(5)
    running.process.send_signal(signal.SIGTERM)
    said = running.end(PREEMPTED)
    (saved,) = saved_in(running.folder)
    check(5 <= saved < STEPS, f"saved at {saved}")
    check_in(f"preempted: saved at step {saved}; CADRE_RESTORE=", said, "what it says")
    again = Running([LEARNER], CADRE_RESTORE=f"{running.folder}/checkpoint-{saved}.json")
    again.end(0)
    check_equal(content(f"{again.folder}/checkpoint-{STEPS}.safetensors"),
                content(f"{calm.folder}/checkpoint-{STEPS}.safetensors"), "the state of the run that was interrupted")


def test_by_hand_sigterm_ends_it():
    """Without being asked for nothing is handled."""
    running = Running([LEARNER, SLOW, "log=LOG"])
    running.wait_steps(3)
    running.process.send_signal(signal.SIGTERM)
    running.end(-signal.SIGTERM)
    check_equal(saved_in(running.folder), [], "checkpoints")


def test_run_of_three():
    calm = Running([program("cadre"), "run", "-n", "3", "-o", ".", LEARNER])
    calm.end(0)
    running = Running([program("cadre"), "run", "-n", "3", "-o", ".", LEARNER, "--", SLOW, "log=LOG"])
    running.wait_steps(4, tasks=3)
    os.kill(tasks_of(running)[1], signal.SIGTERM)
    said = running.end(PREEMPTED)
    check_in("preempted (task ", said, "what cadre run says")
    (saved,) = saved_in(os.path.join(running.folder, "0"))
    check_in(f"saved at step {saved}; --restore ./0/checkpoint-{saved}.json goes on from there", said,
             "what cadre run says")
    again = Running([program("cadre"), "run", "-n", "3", "-o", ".", "--restore",
                     os.path.join(running.folder, "0", f"checkpoint-{saved}.json"), LEARNER])
    again.end(0)
    name = os.path.join("0", f"checkpoint-{STEPS}.safetensors")
    check_equal(content(os.path.join(again.folder, name)), content(os.path.join(calm.folder, name)),
                "the state of the run that was interrupted")


def check_resumed(learning, wanted_workers=2):
    """It did exactly the remaining steps, and came to the same bits."""
    end = learning.end()
    check_equal(end.restarts, 0, "restarts")
    state = learning.check_learned()
    check_equal(state, undisturbed(workers=wanted_workers), "the state, bit for bit")
    return end


def allow_when_announced(learning):
    """The notice is known: the steps that are left are not done before it is."""
    learning.until(lambda info: "has to leave its machine" in info.message, "the notice")
    learning.allow()


def until_saved(learning):
    return learning.until(lambda info: info.state == jobs_pb2.JOB_STATE_QUEUED or "saved at step" in info.message,
                          "it is saved")


def test_sigterm_to_a_task():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, max_restarts=1, allowed=8)
        info = learning.until_position(6)
        os.kill(pids_of(info)[1], signal.SIGTERM)
        allow_when_announced(learning)
        info = until_saved(learning)
        check_in("has to leave its machine): saved at step ", info.message, "what the job says")
        end = check_resumed(learning)
        check(all(task.incarnation > 2 for task in end.tasks), f"tasks that went on: {end.tasks}")


def test_for_good():
    """A job that may not be started again ends, and another goes on from it."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=8)
        info = learning.until_position(6)
        os.kill(pids_of(info)[0], signal.SIGTERM)
        allow_when_announced(learning)
        end = cluster.client.wait(learning.job)
        check_equal(end.state, jobs_pb2.JOB_STATE_PREEMPTED, str(end))
        check_equal(end.exit_code, PREEMPTED, "exit code")
        check_in(f"--restore {learning.job} goes on", end.message, "what it says")
        shown = json.loads(cluster.cadre("jobs", "--all", "--json").stdout)
        check_in("preempted", json.dumps(shown), "cadre jobs --json")
        saved = int(end.checkpoint.rsplit("-", 1)[1].split(".")[0])
        again = Learning(cluster, workers=2, restore_from=learning.job)
        check_equal(again.end().state, SUCCEEDED, "the job that goes on")
        check_equal(again.state(), undisturbed(workers=2), "the state, bit for bit")
        done = len(again.log_lines())
        check(done <= STEPS - saved, f"{done} steps were logged, {STEPS - saved} were left")


def test_submit_exits_with_it():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        path = os.path.join(cluster.folder, "learner")
        with open(path, "wb") as file:
            file.write(learner())
        os.chmod(path, 0o755)
        gate = Gate(cluster, 6)
        following = subprocess.Popen([program("cadre"), "submit", "--max-restarts", "0", path, "--", gate.argument],
                                     env=clean_environment() | {"CADRE_COORDINATOR": cluster.address},
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for("the job is there", lambda: b'"id": 1' in cluster.cadre("jobs", "--json").stdout)
        info = cluster.client.watch_until(1, lambda info: info.position >= 4, "position 4")
        os.kill(info.tasks[0].pid, signal.SIGTERM)
        cluster.client.watch_until(1, lambda info: "has to leave its machine" in info.message, "the notice")
        gate.allow()
        _, said = following.communicate(timeout=HANG_S)
        check_equal(following.returncode, PREEMPTED, f"exit status of cadre submit ({said[-500:]})")
        check_in("was preempted", said.decode(), "what cadre submit says")


def test_drain_of_a_fixed_job():
    """No other worker has room: it saves, waits in the queue and goes on when there is one."""
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=8)
        learning.until_position(6)
        cluster.cadre("drain", "w1")
        learning.allow()
        info = learning.until(lambda info: info.state == jobs_pb2.JOB_STATE_QUEUED, "it is queued again")
        check_in("drains", info.message, "why it waits")
        check_in("saved at step ", info.message, "why it waits")
        cluster.workers.append(cluster.worker("w2", 1, FAST_WORKER).start())
        end = check_resumed(learning)
        check(all(task.worker != "w1" for task in end.tasks), f"tasks on the worker that drains: {end.tasks}")


def test_killed_during_the_save():
    """A task dies while all come to the step: the others save where they stand."""
    with Cluster(workers=3, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=3, max_restarts=1, allowed=8)
        info = learning.until_position(6)
        pids = pids_of(info)
        os.kill(pids[1], signal.SIGTERM)
        os.kill(pids[0], signal.SIGKILL)
        learning.allow()
        learning.end()
        learning.check_learned()


def test_coordinator_killed_during_it():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        for seed in range(3):
            learning = Learning(cluster, SLOW, workers=2, max_restarts=1, allowed=7 + seed)
            info = learning.until_position(5 + seed)
            os.kill(pids_of(info)[seed % 2], signal.SIGTERM)
            learning.allow()
            cluster.coordinator.kill()
            cluster.coordinator.start()
            learning.client = cluster.new_client()
            learning.end()
            learning.check_learned()


def test_checkpoint_now():
    with Cluster(workers=2, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=2, allowed=6)
        learning.until_position(4)
        cluster.cadre("checkpoint", str(learning.job))
        info = step_until(learning, lambda info: info.checkpoint, "a checkpoint")
        step = int(info.checkpoint.rsplit("-", 1)[1].split(".")[0])
        check(4 < step < STEPS and info.state == jobs_pb2.JOB_STATE_RUNNING, f"saved at {step}: {info}")
        learning.allow()
        learning.end()
        learning.check_learned()
        cluster.cadre("checkpoint", str(learning.job), status=1)


def test_a_cancel_is_no_notice():
    with Cluster(workers=1, coordinator=FAST, worker=FAST_WORKER) as cluster:
        learning = Learning(cluster, workers=1, max_restarts=1, allowed=6)
        learning.until_position(4)
        cluster.client.cancel(learning.job)
        end = cluster.client.wait(learning.job)
        check_equal(end.state, jobs_pb2.JOB_STATE_CANCELLED, str(end))


if __name__ == "__main__":
    run(globals())
