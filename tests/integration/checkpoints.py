# SPDX-License-Identifier: Apache-2.0
"""What tests do with published checkpoints."""
import json

from client import jobs_pb2


def published(learning, position):
    """Until a checkpoint of this position or a later one is published; its position."""
    def newest(info):
        return int(info.checkpoint.rsplit("-", 1)[1].split(".")[0]) if info.checkpoint else 0
    return newest(learning.until(lambda info: newest(info) >= position, f"checkpoint {position}"))


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
