# SPDX-License-Identifier: Apache-2.0
"""OpenStack Swift with its S3 interface, in one folder: one of each server, one device, one replica, no systemd, no
memcached, no root."""
import os
import subprocess

from store import HOST, READER, Store, WRITER, free_ports
from testing import skip

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # Debian's, for its package python3-swift
KINDS = ("account", "container", "object")

SWIFT_CONF = """\
[swift-hash]
swift_hash_path_suffix = cadre
[storage-policy:0]
name = one
default = yes
"""

SERVER_CONF = """\
[DEFAULT]
bind_ip = {host}
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
disable_fallocate = true
log_level = WARNING
eventlet_debug = false
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""

PROXY_CONF = """\
[DEFAULT]
bind_ip = {host}
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
log_level = WARNING
[pipeline:main]
pipeline = {pipeline}
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
[filter:s3api]
use = egg:swift#s3api
location = {region}
s3_acl = true
dns_compliant_bucket_names = true
max_upload_part_num = 10000
max_bucket_listing = {page}
allowable_clock_skew = {skew_s}
[filter:tempauth]
use = egg:swift#tempauth
{users}
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
paste.filter_factory = swift_cache:filter_factory
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:copy]
use = egg:swift#copy
[filter:slo]
use = egg:swift#slo
max_manifest_segments = 10000
[filter:dlo]
use = egg:swift#dlo
[filter:versioned_writes]
use = egg:swift#versioned_writes
"""

PIPELINE = ("catch_errors gatekeeper healthcheck cache listing_formats s3api tempauth copy slo dlo versioned_writes "
            "proxy-server")


def need_swift():
    found = subprocess.run([PYTHON, "-c", "import swift"], stderr=subprocess.DEVNULL, check=False) \
        if os.path.exists(PYTHON) else None
    if found is None or found.returncode != 0:
        skip("OpenStack Swift is not installed (Debian's python3-swift)")


def has_attributes(folder):
    """Whether files there have extended attributes, in which Swift keeps what it knows of an object."""
    path = os.path.join(folder, f".cadre-attributes-{os.getpid()}")
    try:
        with open(path, "wb"):
            os.setxattr(path, "user.swift.metadata", b"x" * 1024)
        return True
    except OSError:
        return False
    finally:
        if os.path.exists(path):
            os.unlink(path)


class Swift(Store):
    """`skew_s`: by how much the clocks of clients may be wrong."""

    name = "swift"
    region = "eu-test-1"  # none of Amazon's, and not its default: a client must be right
    writer, reader = WRITER, READER
    checks_regions = True
    puts_if_absent = False
    refusals = {"unknown user": (403, "SignatureDoesNotMatch"), "long key": (400, "KeyTooLongError"),
                "end of no upload": (404, "NoSuchUpload")}

    def __init__(self, page=1000, skew_s=900):
        need_swift()
        super().__init__(page)
        self.skew_s = skew_s

    def parent(self):
        for folder in (os.environ.get("TMPDIR"), "/tmp", "/var/tmp"):
            if folder and os.path.isdir(folder) and has_attributes(folder):
                return folder
        return skip("no folder for temporary files has extended attributes, which Swift needs: set TMPDIR to one")

    def begin(self):
        self.port, *ports = free_ports(1 + len(KINDS))
        user = self.tool("id", "-un").strip()
        self.write("swift.conf", SWIFT_CONF)
        os.makedirs(os.path.join(self.folder, "devices", "d1"))
        for kind, port in zip(KINDS, ports):
            self.write(f"{kind}.conf", SERVER_CONF.format(host=HOST, port=port, user=user, folder=self.folder,
                                                          kind=kind))
        users = "\n".join([f"user_{self.writer.access_key.replace(':', '_')} = {self.writer.secret_key} .admin",
                           f"user_{self.reader.access_key.replace(':', '_')} = {self.reader.secret_key}"])
        self.write("proxy.conf", PROXY_CONF.format(host=HOST, port=self.port, user=user, folder=self.folder,
                                                   region=self.region, skew_s=self.skew_s, page=self.page, users=users,
                                                   pipeline=PIPELINE))
        self.run_program("swift", PYTHON, "-B", os.path.join(HERE, "swift_servers.py"), self.folder, HOST,
                         *map(str, ports), EVENTLET_NO_GREENDNS="yes")

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
            file.write(text)

