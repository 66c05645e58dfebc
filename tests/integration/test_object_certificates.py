# SPDX-License-Identifier: Apache-2.0
"""Files at https://, and a store by TLS, whose certificates are of a private authority: which authorities workers trust
for a job, what they say of others, and that a job learns nothing of files that it may not read."""
import contextlib
import os
import tempfile

from client import FAILED, SUCCEEDED
from cluster import AS_ROOT, Cluster, script
from etcds import Certificates
from learning import FAST, FAST_WORKER
from stored_files import Site, Submitter, object_file, submit_raw
from testing import check, check_equal, check_in, run

from chosen import chosen_store, environment_of, fresh_bucket  # its folder is added by stored_files
from proxy import Proxy

SHOWS = script("cat file")
NO_METADATA = "AWS_EC2_METADATA_DISABLED=true"


@contextlib.contextmanager
def authorities():
    """A folder that all users may read, and two authorities in it."""
    with tempfile.TemporaryDirectory(prefix="cadre-test-") as folder:
        os.chmod(folder, 0o711)
        pair = [Certificates(folder, name) for name in ("corporate", "foreign")]
        for one in pair:
            os.chmod(one.folder, 0o711)
            os.chmod(one.ca, 0o644)
        yield pair


def ends(cluster, url, *environment):
    """One job with that file: how it ended, and what it printed."""
    job = submit_raw(cluster, SHOWS, [object_file("file", url)], environment=[*environment, NO_METADATA])
    return cluster.client.wait(job), cluster.client.log(job)


def fails(cluster, url, words, *environment):
    end, log = ends(cluster, url, *environment)
    check_equal((end.state, log), (FAILED, b""), f"a job with {url} and {environment}")
    for word in ("file file: ", *words):
        check_in(word, end.message, f"what is said of {url} with {environment}")
    return end.message


def test_a_site_of_a_private_authority():
    """Also the submitter, who looks at the object before there is a job."""
    with authorities() as (corporate, foreign), Site(b"of the site\n", tls=corporate.server()) as site, \
            Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        url = f"{site.url}/data/file"
        good, bad = f"AWS_CA_BUNDLE={corporate.ca}", f"AWS_CA_BUNDLE={foreign.ca}"
        shown, said = Submitter(cluster, SHOWS, [good]).submit("--file", f"{url}:file")
        check_in("of the site", shown, f"what the task has; standard error: {said}")
        check("is not known here" not in said, f"the submitter could not look: {said}")
        said = Submitter(cluster, SHOWS, [bad]).submit("--file", f"{url}:file", status=126)[1]
        check_in("what version", said, "what the submitter says")
        words = (url, f"the certificate of {site.host}", "CN=corporate", "AWS_CA_BUNDLE")
        fails(cluster, url, (*words, foreign.ca), bad)
        fails(cluster, url, words)
        end, log = ends(cluster, url, good)
        check_equal((end.state, log), (SUCCEEDED, b"of the site\n"), f"the job with the right one: {end.message}")


def test_a_store_by_tls():
    bucket = fresh_bucket("by-tls")
    bucket.put("object", b"of the store\n")
    copies = script('cp file "$CADRE_OUTPUT_DIR/copy"')
    with authorities() as (corporate, foreign), Proxy(chosen_store().endpoint, tls=corporate.server()) as proxy, \
            Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        own = environment_of(endpoint=proxy.endpoint)
        files = [object_file("file", "s3://by-tls/object")]
        job = submit_raw(cluster, copies, files, outputs_folder="s3://by-tls/out",
                         environment=[*own, f"AWS_CA_BUNDLE={corporate.ca}"])
        end = cluster.client.wait(job)
        check_equal(end.state, SUCCEEDED, f"the job's state: {end.message}")
        check_equal(bucket.get(f"out/{job}/0/copy"), b"of the store\n", "what it left")
        fails(cluster, "s3://by-tls/object", ("s3://by-tls/object", "CN=corporate", foreign.ca), *own,
              f"AWS_CA_BUNDLE={foreign.ca}")


def test_redirects():
    """From https to https it is followed, and never to http."""
    with authorities() as (corporate, _), Site(b"moved here\n", tls=corporate.server("one")) as safe, \
            Site(b"open to all\n") as plain, \
            Site(b"", tls=corporate.server("two"), moved=f"{safe.url}/file") as good, \
            Site(b"", tls=corporate.server("three"), moved=f"{plain.url}/file") as bad, \
            Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        own = f"AWS_CA_BUNDLE={corporate.ca}"
        end, log = ends(cluster, f"{good.url}/moved", own)
        check_equal((end.state, log), (SUCCEEDED, b"moved here\n"), f"from https to https: {end.message}")
        fails(cluster, f"{bad.url}/moved", (f"{bad.url}/moved", "redirects to http"), own)


def test_files_that_a_job_may_not_read():
    """The worker's daemon may: what it says is the same, whether they are there or not, and whatever they hold."""
    with authorities() as (corporate, _), Site(b"of the site\n", tls=corporate.server()) as site, \
            Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        url = f"{site.url}/file"
        closed = os.path.join(cluster.folder, "closed")
        os.mkdir(closed, 0o700)
        said = set()
        with open(corporate.ca, encoding="ascii") as file:
            right = file.read()
        for name, content in (("none", None), ("secret", "a secret\n"), ("ca", right)):
            path = os.path.join(closed, name)
            if content is not None:
                with open(path, "w", encoding="ascii") as file:
                    file.write(content)
            if AS_ROOT:
                said.add(fails(cluster, url, ("AWS_CA_BUNDLE", path), f"AWS_CA_BUNDLE={path}").replace(path, "PATH"))
        check(len(said) <= 1, f"a job learns what lies in a folder that it may not read: {said}")
        own = os.path.join(cluster.folder, "own")
        with open(own, "w", encoding="ascii") as file:
            file.write(right)
        os.chmod(own, 0o600 if AS_ROOT else 0)
        if AS_ROOT or not os.access(own, os.R_OK):
            fails(cluster, url, (own, "Permission denied"), f"AWS_CA_BUNDLE={own}")
        os.chmod(own, 0o644)
        check_equal(ends(cluster, url, f"AWS_CA_BUNDLE={own}")[0].state, SUCCEEDED, "with one that it may read")


def test_what_is_no_bundle():
    with authorities() as (corporate, _), Site(b"of the site\n", tls=corporate.server()) as site, \
            Cluster(coordinator=FAST, worker=FAST_WORKER) as cluster:
        url = f"{site.url}/file"
        text = os.path.join(cluster.folder, "text")
        with open(text, "w", encoding="ascii") as file:
            file.write("no certificate\n")
        os.chmod(text, 0o644)
        for path, word in ((text, "has no certificate"), ("/dev/zero", "not a regular file"),
                           ("/etc", "not a regular file"), ("ca.pem", "absolute path"),
                           (f"{cluster.folder}/none", "No such file")):
            fails(cluster, url, (path, word), f"AWS_CA_BUNDLE={path}")


run(globals())
