# SPDX-License-Identifier: Apache-2.0
"""deploy/compose/down removes what deploy/compose/up made, and nothing else: with a stand-in for docker, which keeps
records of containers, networks, volumes and images."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

from testing import HANG_S, check, check_equal, check_in, run

HERE = os.path.dirname(os.path.abspath(__file__))
DOWN = os.path.normpath(os.path.join(HERE, "../../deploy/compose/down"))
PROJECT = "com.docker.compose.project"
MARK = "made-by-deploy-compose"


def thing(name, project=None, **more):
    return {"name": name, "labels": {PROJECT: project} if project else {}, **more}


def image(number, name, label=None):
    return {"id": f"id{number}", "name": name, "labels": {"cadre.image": label} if label else {}}


class Docker:
    """What "up" leaves of the cluster "cadre", beside things of others; down's output as of the last call."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        self.state_file = os.path.join(self.folder, "docker.json")
        self.build = os.path.join(self.folder, "build")
        os.mkdir(os.path.join(self.folder, "bin"))
        with open(os.path.join(self.folder, "bin/docker"), "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{sys.executable}" -B "{HERE}/docker_standin.py" "$@"\n')
        os.chmod(file.name, 0o755)
        for path in (MARK, "client/key.pem", "bin/cadre", "base.tar"):
            os.makedirs(os.path.dirname(os.path.join(self.build, path)), exist_ok=True)
            open(os.path.join(self.build, path), "wb").close()
        self.said = ""
        self.state = {
            "containers": [thing("cadre_coordinator_1", "cadre"), thing("cadre_worker_1", "cadre"),
                           thing("database")],
            "networks": [thing("cadre_cluster", "cadre"), thing("bridge")],
            "volumes": [thing("cadre_pki", "cadre"), thing("database-files", "other")],
            "images": [image(1, "cadre:latest", "cadre"), image(2, "cadre-base:bookworm", "base"),
                       image(3, "", "cadre"), image(4, ""), image(5, "mine:latest", "cadre"),
                       image(6, "debian:12")],
            "calls": [], "refused": []}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def down(self, *options, **environment):
        with open(self.state_file, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CADRE_", "DOCKER_"))}
        kept.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", CADRE_TEST_DOCKER=self.state_file,
                    CADRE_COMPOSE_BUILD=self.build)
        done = subprocess.run([DOWN, *options], env={**kept, **environment}, capture_output=True, text=True,
                              timeout=HANG_S, check=False, stdin=subprocess.DEVNULL)
        with open(self.state_file, encoding="utf-8") as file:
            self.state = json.load(file)
        self.said = done.stdout + done.stderr
        return done.returncode

    def names(self, kind):
        return [one["name"] or one["id"] for one in self.state[kind]]


def test_down_leaves_what_up_uses_again():
    with Docker() as docker:
        images = docker.names("images")
        check_equal(docker.down(), 0, "status")
        check_equal(docker.names("containers"), ["database"], "containers")
        check_equal(docker.names("networks"), ["bridge"], "networks")
        check_equal(docker.names("volumes"), ["database-files"], "volumes")
        check_equal(docker.names("images"), images, "images")
        check_equal(sorted(os.listdir(docker.build)), ["base.tar", "bin", MARK], "no certificates")
        check_in(f"Left for the next \"up\": the images, and {docker.build}", docker.said, "what it says")


def test_purge_leaves_nothing():
    with Docker() as docker:
        check_equal(docker.down("--purge"), 0, "status")
        check_equal(docker.names("containers"), ["database"], "containers")
        check_equal(docker.names("networks"), ["bridge"], "networks")
        check_equal(docker.names("volumes"), ["database-files"], "volumes")
        check_equal(docker.names("images"), ["id4", "mine:latest", "debian:12"], "images")
        check(not os.path.exists(docker.build), "the build folder is removed")
        check_equal(docker.down("--purge"), 0, "once more, with nothing there")


def test_purge_of_one_cluster_beside_another():
    with Docker() as docker:
        other = thing("second_worker_1", "second")
        other["labels"]["cadre.image"] = "cadre"
        docker.state["containers"].append(other)
        before = {kind: docker.names(kind) for kind in ("containers", "networks", "volumes", "images")}
        check_equal(docker.down("--purge"), 1, "status")
        check_in("the image is in use by second_worker_1, so nothing was removed", docker.said, "the sentence")
        check_equal({kind: docker.names(kind) for kind in before}, before, "all of it")
        check(os.path.exists(f"{docker.build}/client/key.pem"), "the build folder is there")
        check_equal(docker.down(), 0, "without --purge")
        check_in("second_worker_1", docker.names("containers"), "the other cluster")


def test_certificates_are_of_one_cluster():
    with Docker() as docker:
        os.makedirs(f"{docker.build}/client-second")
        check_equal(docker.down(CADRE_PROJECT="second"), 0, "status")
        check_equal(sorted(os.listdir(docker.build)), ["base.tar", "bin", "client", MARK], "the build folder")


def test_purge_keeps_a_folder_that_up_did_not_make():
    with Docker() as docker:
        os.unlink(os.path.join(docker.build, MARK))
        check_equal(docker.down("--purge"), 1, "status")
        check_in(f"{docker.build} holds files that \"up\" did not make", docker.said, "the sentence")
        check_in("cadre_worker_1", docker.names("containers"), "nothing was removed")
        check(os.path.exists(f"{docker.build}/base.tar"), "the folder is there")


def test_what_docker_could_not_remove_is_named():
    with Docker() as docker:
        docker.state["volumes"][0]["stays"] = True
        check_equal(docker.down("--purge"), 1, "status")
        check_in("docker still has the volume cadre_pki", docker.said, "the sentence")
    with Docker() as docker:
        docker.state["refused"].append("rmi cadre-base")
        check_equal(docker.down("--purge"), 1, "status")
        check_in("docker could not remove the image cadre-base:bookworm", docker.said, "the sentence")
        check(os.path.exists(docker.build), "the build folder is there for the next try")


def test_keep_and_purge():
    with Docker() as docker:
        check_equal(docker.down("--keep", "--purge"), 1, "status")
        check_in("give one of them", docker.said, "the sentence")
        check_equal(docker.state["calls"], [], "calls of docker")
        check_equal(docker.down("--keep"), 0, "--keep")
        check_in("cadre_worker_1", docker.names("containers"), "the stopped ones")
        check_equal(docker.down("--help"), 0, "--help")
        for words in ("--purge", "It leaves what", "build-compose/"):
            check_in(words, docker.said, "--help")


if __name__ == "__main__":
    run(globals())
