# SPDX-License-Identifier: Apache-2.0
"""What deploy/compose/up --ha starts, without docker: the services of its compose files as processes of this host, each
at a loopback address of its own, with folders in place of volumes. And `up` with a stand-in for docker. The test of the
store needs one that is installed."""
import getpass
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile

from cluster import clean_environment, program
from etcds import need_etcd
import stored_contents
from testing import HANG_S, check, check_equal, check_in, run, skip, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.normpath(os.path.join(HERE, "../../deploy"))
FILES = ("docker-compose", "high-availability")
WORKERS = 2


def load(name):
    try:
        import yaml
    except ImportError:
        skip("there is no PyYAML: apt-get install python3-yaml")
    with open(f"{DEPLOY}/compose/{name}.yml", encoding="utf-8") as file:
        return yaml.safe_load(file)


def merged(base, more):
    """As compose merges a service: keys of mappings one by one, volumes by their place, all else as a whole."""
    result = dict(base)
    for key, value in more.items():
        if key == "volumes":
            places = {(volume.split(":") + [volume])[1]: volume for volume in base.get(key, []) + value}
            result[key] = list(places.values())
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            result[key] = {**base[key], **value}
        else:
            result[key] = value
    return result


def together(*names):
    """Services and volumes of the files."""
    services, volumes = {}, {}
    for content in (load(name) for name in names):
        for name, service in content["services"].items():
            services[name] = merged(services.get(name, {}), service)
        volumes |= content.get("volumes", {})
    return services, volumes


class Containers:
    """Processes in place of containers."""

    def __init__(self, *overrides, **shell):
        """`shell`: the environment in which compose runs."""
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        os.chmod(self.folder, 0o711)
        self.services, volumes = together(*FILES, *overrides)
        self.shell = shell
        net = f"127.{random.randint(1, 254)}.{random.randint(0, 255)}"
        hosts = [name for name in self.services if name.startswith(("coordinator", "etcd-"))]
        self.hosts = {name: f"{net}.{number}" for number, name in enumerate(hosts, 1)}
        for name in volumes:
            os.makedirs(f"{self.folder}/{name}")
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            self.show()
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(HANG_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def show(self):
        for name in self.processes:
            with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as file:
                print(f"--- {name} ---\n" + "".join(file.readlines()[-15:]), flush=True)

    def places(self, service, container):
        """Folders in place of what the container mounts."""
        found = {}
        for volume in service.get("volumes", []):
            parts = volume.split(":")
            named = len(parts) > 1
            found[parts[1] if named else volume] = f"{self.folder}/{parts[0] if named else container + volume}"
        for place in service.get("tmpfs", []):
            found[place.split(":")[0]] = f"{self.folder}/{container}{place.split(':')[0]}"
        for path in found.values():
            os.makedirs(path, exist_ok=True)
        return found

    def here(self, text, name, places):
        """What a container of this service is given, for a process of this host."""
        text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", str(text))
        text = re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: self.shell[match[1]], text).replace("$$", "$")
        for place in sorted(places, key=len, reverse=True):
            text = re.sub(re.escape(place) + r"(?![\w-])", "@" + str(sorted(places).index(place)) + "@", text)
        for number, place in enumerate(sorted(places)):
            text = text.replace(f"@{number}@", places[place])
        own = self.hosts.get(name, "")
        text = re.sub(r"(?<![\w-])(" + "|".join(self.hosts) + r")(?=:\d)", lambda match: self.hosts[match[1]], text)
        return re.sub(r"(0\.0\.0\.0|127\.0\.0\.1)(?=:\d)", own, text) if own else text

    def script(self, path, name, places):
        """A copy of a script of the image."""
        with open(f"{DEPLOY}/compose/image/{os.path.basename(path)}", encoding="utf-8") as file:
            text = self.here(file.read().replace("$$", "$$$$"), "", places)
        text = re.sub(r"(?m) cadre( --host|$)", f" {getpass.getuser()}\\1", text)
        text = re.sub(r" root$", f" {getpass.getuser()}", text, flags=re.MULTILINE)
        text = text.replace('--host "$host"', '--host "$(eval echo \\$address_${host//-/_})" --host 127.0.0.1')
        text = text.replace("https://$1:", "https://$own:")
        copy = f"{self.folder}/{name}.{os.path.basename(path)}"
        with open(copy, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(copy, 0o755)
        return copy

    def prepared(self, name, container):
        service = self.services[name]
        places = self.places(service, container)
        argv = [self.here(word, name, places) for word in service["command"]]
        if argv[0].startswith("/usr/libexec/cadre/"):
            argv[0] = self.script(argv[0], container, places)
        environment = clean_environment() | {
            key: self.here(value, name, places) for key, value in service.get("environment", {}).items()
            if value is not None}
        environment |= {key: self.shell[key] for key, value in service.get("environment", {}).items()
                        if value is None and key in self.shell}
        if name == "worker":
            environment["CADRE_WORKER_HTTP"] = "127.0.0.1:0"
        environment["PATH"] = f"{os.path.dirname(program('cadre'))}:{os.environ['PATH']}"
        environment["own"] = self.hosts.get(name, "")
        environment |= {f"address_{host.replace('-', '_')}": address for host, address in self.hosts.items()}
        return argv, environment

    def start(self, name, container=None):
        container = container or name
        argv, environment = self.prepared(name, container)
        with open(f"{self.folder}/{container}.log", "ab") as log:
            self.processes[container] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", *argv], env=environment, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)
        return self.processes[container]

    def client(self, *arguments, status=0):
        argv, environment = self.prepared("submit", "submit")
        done = subprocess.run([argv[0], *arguments], env=environment, capture_output=True, text=True, timeout=HANG_S,
                              check=False)
        check(status is None or done.returncode == status, f"cadre {arguments}: {done.stdout}{done.stderr}")
        return done.stdout if done.returncode == 0 else "{}"

    def coordinators(self):
        return json.loads(self.client("coordinators", "--json", status=None)).get("coordinators", [])

    def leader(self, but=""):
        return wait_for("a coordinator leads", lambda: next(
            (one["name"] for one in self.coordinators() if one["leader"] and one["name"] != but), None))


def test_the_services():
    need_etcd()
    with Containers() as containers:
        check_equal(containers.start("pki").wait(HANG_S), 0, "the certificates are made")
        for name in containers.hosts:
            containers.start(name)
        for number in range(WORKERS):
            containers.start("worker", f"worker-{number}")
        leader = containers.leader()
        wait_for("all workers are ready", lambda: [
            one["state"] for one in json.loads(containers.client("workers", "--json", status=None)).get("workers", [])
        ] == ["ready"] * WORKERS)
        wait_for("all coordinators are known", lambda: {(one["name"], one["state"] == "leading")
                                                        for one in containers.coordinators()} ==
                 {(name, name == leader) for name in containers.hosts if name.startswith("coordinator")})
        containers.client("submit", "--workers", str(WORKERS), "/bin/true")
        containers.processes[leader].kill()
        containers.leader(but=leader)
        containers.client("submit", "--workers", str(WORKERS), "/bin/true")
        check_equal([job["state"] for job in json.loads(containers.client("jobs", "--json"))["jobs"]],
                    ["succeeded"] * 2, "jobs")
        containers.processes["etcd-2"].kill()
        containers.start(leader)
        containers.client("submit", "/bin/true")


def test_what_the_files_name_is_there():
    services, volumes = together(*FILES)
    for name, service in services.items():
        for volume in service.get("volumes", []):
            check(":" not in volume or volume.split(":")[0] in volumes, f"{name} mounts {volume}")
        for other in service.get("depends_on", {}):
            check(other in services, f"{name} depends on {other}")
        check("command" in service, f"{name} has no command")
    for name in ("coordinator", "coordinator-2", "coordinator-3"):
        check_equal(services[name]["environment"]["CADRE_COORDINATOR_NAME"], name, "a name")
        check_equal(services[name]["environment"]["CADRE_ADVERTISE"], f"{name}:7077", "an address")
        check_in(f"{name}:7077", services["submit"]["environment"]["CADRE_COORDINATOR"], "the client")
        check_equal(services[name]["command"], services["coordinator"]["command"], f"the command of {name}")
        check_equal(services[name]["healthcheck"], services["coordinator"]["healthcheck"], f"the health of {name}")


class Up:
    """`up` in a copy of its folder, with a stand-in for docker and for build-image."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cadre-test-")
        os.mkdir(f"{self.folder}/bin")
        shutil.copytree(f"{DEPLOY}/compose", f"{self.folder}/deploy/compose")
        shutil.copy(f"{DEPLOY}/report.sh", f"{self.folder}/deploy/")
        self.write("deploy/compose/build-image", f'#!/bin/sh\necho "$@" >"{self.folder}/built"\n')
        self.write("bin/docker", f'#!/bin/sh\nexec "{sys.executable}" -B "{HERE}/docker_standin.py" "$@"\n')
        self.state = {"containers": [], "networks": [], "volumes": [], "images": [], "calls": [], "refused": [],
                      "answers": {}}

    def write(self, path, text):
        with open(f"{self.folder}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(file.name, 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def up(self, *options, **environment):
        state_file = f"{self.folder}/docker.json"
        os.makedirs(f"{self.folder}/build-compose/client", exist_ok=True)
        with open(state_file, "w", encoding="utf-8") as file:
            json.dump(self.state, file)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CADRE_", "DOCKER_"))}
        kept.update(PATH=f"{self.folder}/bin:{os.environ['PATH']}", CADRE_TEST_DOCKER=state_file,
                    CADRE_COMPOSE_BUILD=f"{self.folder}/build-compose")
        done = subprocess.run([f"{self.folder}/deploy/compose/up", *options], env={**kept, **environment},
                              capture_output=True, text=True, timeout=HANG_S, check=False, stdin=subprocess.DEVNULL)
        with open(state_file, encoding="utf-8") as file:
            self.state = json.load(file)
        return done.returncode, done.stdout + done.stderr


def container(service):
    return {"name": f"cadre_{service}_1", "id": service,
            "labels": {"com.docker.compose.project": "cadre", "com.docker.compose.service": service}}


def test_up_of_three_coordinators():
    with Up() as docker:
        docker.state["answers"]["submit cadre workers --json"] = '"state": "ready"\n' * 3
        docker.state["answers"]["submit cadre coordinators"] = "coordinator-2 leads\n"
        status, said = docker.up("--ha", "--no-job", CADRE_PORT="8000")
        check_equal(status, 0, f"status, and {said}")
        with open(f"{docker.folder}/built", encoding="utf-8") as file:
            check_equal(file.read(), "--etcd\n", "what build-image was asked for")
        started = next(call for call in docker.state["calls"] if " up --detach" in call)
        check_in("high-availability.yml", started, "the files")
        check_in("coordinator-2 leads", said, "the list of coordinators")
        check_in("CADRE_COORDINATOR=127.0.0.1:8000,127.0.0.1:8001,127.0.0.1:8002", said, "what to try next")
        check_in("--ha", docker.up("--help")[1], "--help")


def test_a_cluster_stays_what_it_is():
    for there, options, text in ((["coordinator"], ["--ha"], "this cluster has one coordinator"),
                                 (["coordinator", "coordinator-2"], [], "this cluster has three coordinators")):
        with Up() as docker:
            docker.state["containers"] = [container(name) for name in there]
            status, said = docker.up("--no-job", *options)
            check_equal(status, 1, f"status, and {said}")
            check_in(text, said, "the sentence")
            check(not os.path.exists(f"{docker.folder}/built"), "an image is made")


def test_contents_in_a_store():
    """A leader is killed and loses its volume: the next one has what the job left."""
    need_etcd()
    place = stored_contents.fresh_place()
    with Containers("object-contents", CADRE_CONTENTS=place, **stored_contents.variables()) as containers:
        check_equal(containers.start("pki").wait(HANG_S), 0, "the certificates are made")
        for name in containers.hosts:
            containers.start(name)
        containers.start("worker")
        leader = containers.leader()
        wait_for("the worker is ready", lambda: [
            one["state"] for one in json.loads(containers.client("workers", "--json", status=None)).get("workers", [])
        ] == ["ready"])
        leaves = f"{containers.folder}/leaves"
        with open(leaves, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho found > \"$CADRE_OUTPUT_DIR/left\"\n")
        os.chmod(leaves, 0o755)
        containers.client("submit", leaves)
        containers.processes[leader].kill()
        containers.processes[leader].wait()
        shutil.rmtree(f"{containers.folder}/{leader}", ignore_errors=True)
        containers.leader(but=leader)
        containers.client("get", "1", "--output", f"{containers.folder}/got")
        with open(f"{containers.folder}/got/0/left", encoding="utf-8") as file:
            check_equal(file.read(), "found\n", "what the job left")
        check(not os.listdir(f"{containers.folder}/contents"), "the volume of contents is used")
        check(stored_contents.names(place), "nothing is in the store")


if __name__ == "__main__":
    run(dict(globals()))
