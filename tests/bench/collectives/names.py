# SPDX-License-Identifier: Apache-2.0
"""The rows and sizes of the collectives' tables."""
from driver import amount

RANKS = [2, 4]
SIZES = amount.of([4, 1024, 64 << 10, 1 << 20, 16 << 20, 64 << 20], [4, 1024, 64 << 10])
FRESH_SIZES = SIZES[2:]

ARENA, PRIVATE = "cadre, tasks, arena tensors", "cadre, tasks, private tensors"
THREADS = "cadre, replicas of one task"
HOSTS, TWO_HOSTS = "cadre, hosts (TCP only)", "cadre, 2 hosts of 2 tasks"
FUSED, LOOPBACK, MESH_FORM = "fused pass (floor)", "loopback (floor)", "mesh of 8 processes"
OPENMPI, OPENMPI_TUNED = "OpenMPI", "OpenMPI, tuned"
OPENMPI_TCP, OPENMPI_TCP_TUNED = "OpenMPI TCP", "OpenMPI TCP, tuned"
MPICH, MPICH_TCP = "MPICH", "MPICH TCP"
GLOO = "Gloo"
GLOO_ROWS = {f"{GLOO} {name}": name for name in ("ring", "bcube", "chunked", "halving", "fixed_bcube")}

SHARED_PEERS = [OPENMPI, OPENMPI_TUNED, MPICH, *GLOO_ROWS]
TCP_PEERS = [OPENMPI_TCP, OPENMPI_TCP_TUNED, MPICH_TCP, *GLOO_ROWS]
PEERS = list(dict.fromkeys(SHARED_PEERS[:3] + TCP_PEERS))
TCP_ROWS = [HOSTS, *TCP_PEERS]


def size_name(size):
    for unit, bytes_of in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= bytes_of:
            return f"{size // bytes_of} {unit}"
    return f"{size} B"
