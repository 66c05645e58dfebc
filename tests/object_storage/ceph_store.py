# SPDX-License-Identifier: Apache-2.0
"""Ceph's gateway for S3 (radosgw) on the smallest cluster that it accepts, in one folder: a monitor, and one OSD that
keeps objects in memory. No manager: placement groups work without."""
import os
import shutil
import uuid

from store import HOST, READER, Store, WRITER, free_ports
from testing import skip

PROGRAMS = ("monmaptool", "ceph-mon", "ceph-osd", "ceph", "radosgw", "radosgw-admin")
MEMORY_BYTES = 4 << 30  # of which only what is stored is taken

CONF = """\
[global]
fsid = {fsid}
mon_host = [v2:{host}:{mon_port}/0]
public_addr = {host}
cluster_addr = {host}
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
ms_mon_client_mode = crc
paxos_propose_interval = 0.05
paxos_min_wait = 0.01
mon_tick_interval = 1
run_dir = {folder}
admin_socket =
pid_file =
keyring = {folder}/keyring
log_file =
log_to_stderr = true
err_to_stderr = true
log_to_file = false
mon_cluster_log_to_file = false
debug_ms = 0
mon_data = {folder}/mon
mon_data_avail_crit = 1
mon_allow_pool_size_one = true
mon_max_pg_per_osd = 1000
osd_data = {folder}/osd
osd_objectstore = memstore
memstore_device_bytes = {memory}
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
osd_class_load_list = *
osd_class_default_list = *
rgw_data = {folder}/rgw
rgw_frontends = beast endpoint={host}:{port}
rgw_rados_pool_pg_num_min = 4
rgw_override_bucket_index_max_shards = 1
rgw_enable_usage_log = false
rgw_max_listing_results = {page}
"""


def need_ceph():
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        skip(f"{missing[0]} is not installed (Debian's ceph-mon, ceph-osd, radosgw)")


class Ceph(Store):
    name = "ceph"
    region = "us-east-1"  # it takes any: the signature is right with the region that the request names
    writer, reader = WRITER, READER
    checks_regions = False
    puts_if_absent = True
    refusals = {"unknown user": (403, "InvalidAccessKeyId"), "long key": (400, "InvalidObjectName"),
                "end of no upload": (500, "InternalError")}

    def __init__(self, page=1000):
        need_ceph()
        super().__init__(page)

    def begin(self):
        self.port, mon_port = free_ports(2)
        fsid, osd = str(uuid.uuid4()), str(uuid.uuid4())
        for name in ("mon", "osd", "rgw"):
            os.mkdir(os.path.join(self.folder, name))
        with open(os.path.join(self.folder, "keyring"), "wb"):
            pass
        conf, monmap = os.path.join(self.folder, "ceph.conf"), os.path.join(self.folder, "monmap")
        with open(conf, "w", encoding="ascii") as file:
            file.write(CONF.format(fsid=fsid, host=HOST, mon_port=mon_port, port=self.port, folder=self.folder,
                                   memory=MEMORY_BYTES, page=self.page))
        self.tool("monmaptool", "--create", "--fsid", fsid, "--addv", "a", f"[v2:{HOST}:{mon_port}]", monmap)
        self.tool("ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", monmap)
        self.run_program("mon", "ceph-mon", "-c", conf, "-f", "-i", "a")
        self.tool("ceph", "-c", conf, "--connect-timeout", "60", "osd", "new", osd)
        self.tool("ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.run_program("osd", "ceph-osd", "-c", conf, "-f", "-i", "0")
        self.make_user(conf, self.writer)  # the first makes the pools
        self.run_program("radosgw", "radosgw", "-c", conf, "-f", "-n", "client.rgw")
        self.make_user(conf, self.reader)

    def make_user(self, conf, user):
        self.tool("radosgw-admin", "-c", conf, "user", "create", f"--uid={user.access_key.replace(':', '-')}",
                  f"--display-name={user.access_key}", f"--access-key={user.access_key}",
                  f"--secret={user.secret_key}")
