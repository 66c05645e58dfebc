# SPDX-License-Identifier: Apache-2.0
"""Jobs without keys before a real object store: with --host-credentials their worker's daemon uses those that the
host's metadata services give it, without it none; and what a job names is asked by no daemon."""
import contextlib
import datetime
import http.server
import json

from client import FAILED, SUCCEEDED
from cluster import Cluster, script
from learning import FAST, FAST_WORKER
from stored_files import Served, object_file, submit_raw
from testing import check, check_equal, check_in, run

from chosen import chosen_store, environment_of, fresh_bucket  # its folder is added by stored_files

COPIES = script('cat file; cp file "$CADRE_OUTPUT_DIR/copy"')
ROLE = "worker-role"
ROLES = "/latest/meta-data/iam/security-credentials/"
SESSION = "session-of-the-instance"


class Service(Served):
    """A container's agent at /agent, and the metadata of an instance: both give the writer's keys."""

    def __init__(self):
        asked = self.asked = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self):
                self.answer({"/latest/api/token": SESSION}, "X-aws-ec2-metadata-token-ttl-seconds")

            def do_GET(self):
                user = chosen_store().writer
                ends = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=6)
                keys = json.dumps({"Code": "Success", "AccessKeyId": user.access_key, "Token": "of-the-host",
                                   "SecretAccessKey": user.secret_key,
                                   "Expiration": ends.strftime("%Y-%m-%dT%H:%M:%SZ")})
                if self.path == "/agent":
                    self.answer({"/agent": keys}, "Authorization")
                else:
                    self.answer({ROLES: ROLE, ROLES + ROLE: keys}, "X-aws-ec2-metadata-token")

            def answer(self, known, header):
                asked.append(f"{self.command} {self.path}")
                body = known.get(self.path, "").encode()
                self.send_response(200 if body and self.headers.get(header) else 403)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def of_agent(self):
        return {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{self.url}/agent",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "the daemon's"}

    def of_instance(self):
        return {"AWS_EC2_METADATA_SERVICE_ENDPOINT": self.url}


def without_keys():
    return [item for item in environment_of() if "_KEY" not in item and "METADATA" not in item]


@contextlib.contextmanager
def worker(variables, *options):
    """A cluster whose worker has these variables of its host, which name the store, too."""
    cluster = Cluster(start=False, coordinator=FAST, worker=[*FAST_WORKER, *options])
    cluster.workers[0].environment = {"AWS_ENDPOINT_URL": chosen_store().endpoint} | variables
    cluster.start = True
    with cluster:
        yield cluster


def ends(cluster, bucket, environment):
    job = submit_raw(cluster, COPIES, [object_file("file", f"s3://{bucket.name}/object")], environment=environment,
                     outputs_folder=f"s3://{bucket.name}/out")
    return job, cluster.client.wait(job)


def succeeds(cluster, bucket, environment):
    job, end = ends(cluster, bucket, environment)
    check_equal(end.state, SUCCEEDED, f"a job with {environment}: {end.message}")
    check_equal(cluster.client.log(job), b"bytes\n", "what its task has")
    check_equal(bucket.get(f"out/{job}/0/copy"), b"bytes\n", "what it left")


def fails(cluster, bucket, environment, *words):
    end = ends(cluster, bucket, environment)[1]
    check_equal(end.state, FAILED, f"a job with {environment}")
    for word in words or [f"s3://{bucket.name}/object"]:
        check_in(word, end.message, f"why a job with {environment} fails")


def test_credentials_of_the_host():
    bucket = fresh_bucket("of-host")
    bucket.put("object", b"bytes\n")
    secret = chosen_store().writer.secret_key
    for kind in (Service.of_agent, Service.of_instance):
        with Service() as service:
            with worker(kind(service)) as cluster:
                fails(cluster, bucket, without_keys(), "no credentials for the object store",
                      "the job's environment has no AWS_ACCESS_KEY_ID", "--env", "--host-credentials")
                check_equal(service.asked, [], "what is asked without --host-credentials")
            with worker(kind(service), "--host-credentials") as cluster:
                succeeds(cluster, bucket, without_keys())
                check(service.asked, "nothing was asked of the host's service")
                check(secret not in cluster.workers[0].log(), "the daemon logs the secret")
                # A job's own keys count before the host's, whatever they may do.
                asked = len(service.asked)
                fails(cluster, bucket, environment_of(user=chosen_store().reader))
                if kind is Service.of_instance:  # a job may do without
                    fails(cluster, bucket, [*without_keys(), "AWS_EC2_METADATA_DISABLED=true"], "no credentials")
                check_equal(len(service.asked), asked, "requests for jobs that have keys, or want none of the host's")


def test_a_host_that_gives_none():
    bucket = fresh_bucket("none-given")
    bucket.put("object", b"bytes\n")
    with Service() as service, \
            worker({"AWS_EC2_METADATA_SERVICE_ENDPOINT": f"{service.url}/elsewhere"}, "--host-credentials") as cluster:
        fails(cluster, bucket, without_keys(), "no credentials for the object store",
              "the job's environment has no AWS_ACCESS_KEY_ID", "the instance's metadata gives no token", "--env")
        check(service.asked, "nothing was asked")


def test_what_a_job_names_is_not_asked():
    """By a daemon with the option and without it: neither services, nor roles, nor files."""
    bucket = fresh_bucket("job-names")
    bucket.put("object", b"bytes\n")
    with Service() as decoy, Service() as service:
        named = [f"AWS_CONTAINER_CREDENTIALS_FULL_URI={decoy.url}/agent", "AWS_CONTAINER_AUTHORIZATION_TOKEN=x",
                 "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/agent", f"AWS_EC2_METADATA_SERVICE_ENDPOINT={decoy.url}",
                 f"AWS_ENDPOINT_URL_STS={decoy.url}", "AWS_ROLE_ARN=arn:aws:iam::1:role/other",
                 "AWS_WEB_IDENTITY_TOKEN_FILE=/etc/hostname", "AWS_SHARED_CREDENTIALS_FILE=/etc/hostname",
                 "AWS_PROFILE=other"]
        with worker(service.of_agent()) as cluster:
            fails(cluster, bucket, [*without_keys(), *named], "--host-credentials")
        with worker(service.of_agent(), "--host-credentials") as cluster:
            succeeds(cluster, bucket, [*without_keys(), *named])
            for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):  # it would see what the host's keys sign
                fails(cluster, bucket, [*without_keys(), *named[:4], f"{name}={decoy.url}/none"],
                      f"{decoy.url}/none", "the host's credentials", chosen_store().endpoint, "--env")
        check_equal(decoy.asked, [], "what was asked of a service that a job named")
        check(service.asked, "nothing was asked of the host's")


def test_a_store_at_the_address_of_the_host_s_services():
    """Each of them is refused before it is connected to, also with --host-credentials."""
    with Service() as service, worker(service.of_agent(), "--host-credentials") as cluster:
        for address in ("169.254.169.254", "169.254.170.2", "[fd00:ec2::254]", "[::ffff:169.254.169.254]",
                        "2852039166"):
            environment = [*environment_of(), f"AWS_ENDPOINT_URL_S3=http://{address}"]
            job = submit_raw(cluster, COPIES, [object_file("file", "s3://bucket/object")], environment=environment)
            check_in("is an address of a host's metadata services", cluster.client.wait(job).message, address)


run(globals())
