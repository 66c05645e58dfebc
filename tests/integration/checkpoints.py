# SPDX-License-Identifier: Apache-2.0
"""What tests do with published checkpoints."""
import json

from client import jobs_pb2

EVERY = 4  # steps


def published(learning, position):
    """Until the checkpoint of this position is published, and all before it, of a job that saves each EVERY steps and
    stands still before the first. No other one is on its way then: it stands still behind this one."""
    def newest(info):
        return int(info.checkpoint.rsplit("-", 1)[1].split(".")[0]) if info.checkpoint else 0
    for step in range(EVERY, position + 1, EVERY):  # one by one: none is begun while another is on its way
        learning.allow(step + 2)
        learning.until(lambda info, step=step: newest(info) == step, f"checkpoint {step}")
    return position


def kept_steps(cluster, job):
    listed = cluster.client.jobs.ListOutputs(jobs_pb2.JobRequest(id=job)).outputs
    return sorted(int(item.path.rsplit("-", 1)[1].split(".")[0]) for item in listed
                  if item.path.startswith("checkpoints/") and item.path.endswith(".json"))


def damage(cluster, client, job, positions):
    """One byte of a content that only these checkpoints need, in each of them."""
    blobs = f"{cluster.coordinator.state}/blobs"
    manifests = {}
    for path, content in client.outputs(job).items():
        if path.startswith("checkpoints/") and path.endswith(".json"):
            manifest = json.loads(content)
            manifests[int(path.rsplit("-", 1)[1].split(".")[0])] = [block["sha256"] for block in manifest["blocks"]]
    kept = {name for position, names in manifests.items() if position not in positions for name in names}
    for position in positions:
        name = next(name for name in manifests[position] if name not in kept)
        kept.add(name)
        with open(f"{blobs}/{name}", "r+b") as file:
            first = file.read(1)
            file.seek(0)
            file.write(bytes([first[0] ^ 1]))
    return sorted(manifests)
