# SPDX-License-Identifier: Apache-2.0
"""The rules of the tree as tables. tidy.py applies them; to change a rule is to change a row here, with its reason."""

LINES_MAX = 600
FUNCTION_LINES_MAX = 87
FUNCTION_LINES_SHOWN = 70
COLUMNS = {".c": 100, ".h": 100, ".proto": 120, ".py": 120, ".sh": 120, ".txt": 120, "": 120}

# Headers that need nothing of an operating system.
FREESTANDING = {"limits.h", "stdalign.h", "stdarg.h", "stdbool.h", "stddef.h", "stdint.h", "string.h", "inttypes.h"}

PURE = ["common/pure/"]
MODEL = PURE + ["common/model/"]
BASE = PURE + ["common/base/", "cadre/status.h"]
WIRE = BASE + ["common/model/", "common/wire/"]
PUBLIC = ["cadre/"]
CORE_STATE = MODEL + ["cadre/status.h", "coordinator/core/core.h", "coordinator/core/state/"]

# Folder -> what its files may include with quotes: no more than they do, and from other parts of the tree only the
# headers that are their interface. The longest matching folder counts. Both cores are pure, and neither may see the
# other. Generated protobuf-c headers are a rule of their own (FOREIGN).
LAYERS = {
    "common/include/": PUBLIC,
    "common/pure/": PURE,
    "common/model/": MODEL + ["cadre/status.h"],
    "common/base/": BASE,
    "common/gpus/": BASE + ["common/model/gpus.h", "common/gpus/"],
    "common/checkpoint/": BASE + ["common/model/limits.h", "common/checkpoint/"],
    "common/wire/": WIRE,
    "common/tls/": BASE + ["common/tls/"],
    "common/rpc/": BASE + ["common/tls/", "common/rpc/"],
    "common/http/": BASE + ["common/tls/material.h", "common/http/"],
    "common/service/": ["common/service/"],
    "common/client/": WIRE + ["common/rpc/channel.h", "common/rpc/tls.h", "cadre/client.h", "common/client/"],
    # One way: events change facts, the turn decides and speaks; only core.c and turn.c see all.
    "coordinator/core/": MODEL + ["cadre/status.h"],
    "coordinator/core/turn/": MODEL + ["cadre/status.h", "coordinator/core/"],
    "coordinator/core/state/": CORE_STATE,
    "coordinator/core/facts/": CORE_STATE + ["coordinator/core/facts/"],
    "coordinator/core/events/": CORE_STATE + ["coordinator/core/facts/", "coordinator/core/events/"],
    "coordinator/core/decide/": CORE_STATE + ["coordinator/core/facts/", "coordinator/core/decide/"],
    "coordinator/core/emit/": CORE_STATE + ["coordinator/core/facts/", "coordinator/core/emit/"],
    "coordinator/store/": BASE + ["common/model/term.h", "coordinator/core/core.h", "coordinator/store/"],
    "coordinator/engine/": WIRE + ["coordinator/core/core.h", "coordinator/store/store.h", "coordinator/engine/"],
    "coordinator/daemon/": WIRE + ["common/rpc/", "common/http/", "common/service/", "common/tls/identity.h",
                                   "common/checkpoint/content.h", "coordinator/engine/engine.h",
                                   "coordinator/engine/counts.h", "coordinator/store/store.h",
                                   "coordinator/daemon/"],
    "coordinator/cli/": BASE + ["common/model/limits.h", "common/model/ps_job.h", "common/model/gpus.h", "cadre/client.h",
                                "common/rpc/tls_options.h", "common/tls/authority.h", "common/tls/report.h",
                                "common/tls/pem_file.h", "coordinator/cli/"],
    # What the two wings of worker/ share: the cores, and what the one is told by the other (common/wire).
    "worker/core/": MODEL + ["cadre/status.h", "worker/core/"],
    # The wing of the host's daemon. Nothing of worker/library.
    "worker/host/isolate/": BASE + ["common/model/", "worker/host/isolate/"],
    "worker/host/keeper/": BASE + ["worker/host/isolate/", "worker/host/keeper/"],
    "worker/host/agent/": WIRE + ["worker/core/agent_core.h", "worker/host/isolate/",
                                  "worker/host/keeper/packed_launch.h", "worker/host/keeper/private_socket.h",
                                  "worker/host/keeper/start.h", "worker/host/keeper/strays.h",
                                  "worker/host/keeper/messages.h", "worker/host/agent/"],
    # What asks for a host's GPUs knows of no plugin; the child that answers, worker/library/list_devices, does.
    "worker/host/probe/": BASE + ["common/gpus/", "worker/host/keeper/launch.h", "worker/host/isolate/",
                                  "worker/host/probe/"],
    "worker/host/daemon/": WIRE + ["common/rpc/", "common/http/", "common/service/", "common/checkpoint/",
                                   "common/gpus/pci_gpus.h", "worker/host/agent/agent.h",
                                   "worker/host/agent/executable.h", "worker/host/agent/listener.h",
                                   "worker/host/agent/orphans.h", "worker/host/probe/slot_gpus.h",
                                   "worker/host/isolate/isolation.h", "worker/host/daemon/"],
    # The wing of a training program. Nothing of worker/host.
    "worker/library/crash/": ["worker/library/crash/"],
    "worker/library/arena/": BASE + ["worker/library/arena/"],
    "worker/library/device/": BASE + PUBLIC + ["common/gpus/pci_gpus.h", "worker/library/arena/arena.h",
                                               "worker/library/device/"],
    "worker/library/cuda/": BASE + PUBLIC + ["worker/library/device/device_ops.h",
                                             "worker/library/optimizer/terms.h", "worker/library/cuda/"],
    "worker/library/list_devices/": BASE + ["common/gpus/", "worker/library/device/device.h"],
    "worker/library/mesh/": BASE + ["worker/library/crash/crash.h", "worker/library/arena/arena.h",
                                    "worker/library/mesh/"],
    "worker/library/mesh/mesh_device": BASE + PUBLIC + ["worker/library/device/", "worker/library/mesh/"],
    "worker/library/mesh/device/": BASE + PUBLIC + ["worker/library/crash/crash.h", "worker/library/device/",
                                                    "worker/library/mesh/"],
    "worker/library/random/": BASE + PUBLIC + ["worker/library/device/argument.h", "worker/library/random/"],
    "worker/library/composite/": BASE + PUBLIC + ["worker/library/device/", "worker/library/composite/"],
    "worker/library/input/": BASE + PUBLIC + ["worker/library/crash/crash.h", "worker/library/device/",
                                              "worker/library/composite/composite.h",
                                              "worker/library/random/mapped_element.h",
                                              "worker/library/input/"],
    "worker/library/preprocessing/": BASE + PUBLIC + ["worker/library/device/",
                                                      "worker/library/random/mapped_element.h",
                                                      "worker/library/preprocessing/"],
    "worker/library/cluster/": BASE + PUBLIC + ["worker/library/cluster/"],
    "worker/library/optimizer/": BASE + ["cadre/tensor.h", "worker/library/optimizer/"],
    "worker/library/ps/": BASE + PUBLIC + ["common/model/", "worker/library/crash/crash.h",
                                           "worker/library/device/control_groups.h", "worker/library/mesh/connect/handshake.h",
                                           "worker/library/mesh/connect/address.h", "worker/library/mesh/bytes.h",
                                           "worker/library/optimizer/",
                                           "worker/library/ps/"],
    # The runtime's folders, bottom to top; each may use what is named here and nothing above it.
    "worker/library/runtime/api/": BASE + PUBLIC + ["common/model/", "worker/library/device/argument.h",
                                                       "worker/library/device/tensor.h",
                                                       "worker/library/preprocessing/reals.h",
                                                       "worker/library/runtime/api/"],
    "worker/library/runtime/task/": WIRE + ["worker/core/task_core.h", "worker/library/crash/crash.h",
                                            "worker/library/mesh/mesh.h", "worker/library/mesh/mesh_device.h",
                                            "worker/library/ps/directory.h",
                                            "worker/library/runtime/api/environment.h",
                                            "worker/library/runtime/task/"],
    "worker/library/runtime/cluster/": WIRE + PUBLIC + ["worker/library/cluster/", "worker/library/crash/crash.h",
                                                        "worker/library/runtime/api/",
                                                        "worker/library/runtime/task/",
                                                        "worker/library/runtime/cluster/"],
    "worker/library/runtime/program/": BASE + ["cadre/checkpoint.h", "common/model/limits.h", "common/checkpoint/",
                                               "worker/library/crash/crash.h",
                                               "worker/library/device/local_device.h", "worker/library/mesh/mesh.h",
                                               "worker/library/runtime/api/",
                                               "worker/library/runtime/task/session.h",
                                               "worker/library/runtime/cluster/", "worker/library/runtime/program/"],
    "worker/library/runtime/ps_job/": BASE + PUBLIC + ["worker/library/ps/", "worker/library/runtime/api/api.h",
                                                     "worker/library/runtime/task/session.h",
                                                     "worker/library/runtime/program/program.h",
                                                     "worker/library/runtime/ps_job/"],
    "worker/library/runtime/replica/": BASE + PUBLIC + ["worker/library/crash/crash.h",
                                                        "worker/library/device/argument.h",
                                                        "worker/library/device/tensor.h",
                                                        "worker/library/input/node/component_names.h",
                                                        "worker/library/mesh/mesh.h",
                                                        "worker/library/runtime/api/api.h",
                                                        "worker/library/runtime/task/",
                                                        "worker/library/runtime/strategy/",
                                                        "worker/library/runtime/replica/"],
    "worker/library/runtime/arithmetic/": BASE + PUBLIC + ["worker/library/device/argument.h",
                                                           "worker/library/device/device.h",
                                                           "worker/library/device/tensor.h",
                                                           "worker/library/preprocessing/reals.h",
                                                           "worker/library/random/random.h",
                                                           "worker/library/runtime/api/api.h",
                                                           "worker/library/runtime/strategy/strategy.h",
                                                           "worker/library/runtime/replica/step_admission.h",
                                                           "worker/library/runtime/arithmetic/"],
    "worker/library/runtime/values/": BASE + PUBLIC + ["worker/library/device/",
                                                       "worker/library/composite/composite.h",
                                                       "worker/library/input/node/component_names.h",
                                                       "worker/library/input/sharding/file_shares.h",
                                                       "worker/library/input/node/user_call.h",
                                                       "worker/library/runtime/api/",
                                                       "worker/library/runtime/strategy/strategy.h",
                                                       "worker/library/runtime/replica/collective_key.h",
                                                       "worker/library/runtime/values/"],
    "worker/library/runtime/devices/": BASE + PUBLIC + ["common/gpus/pci_gpus.h", "common/model/limits.h",
                                                        "worker/library/device/", "worker/library/mesh/mesh_device.h",
                                                        "worker/library/runtime/api/",
                                                        "worker/library/runtime/program/program.h",
                                                        "worker/library/runtime/strategy/",
                                                        "worker/library/runtime/replica/",
                                                        "worker/library/runtime/step/outputs.h",
                                                        "worker/library/runtime/devices/"],
    "worker/library/runtime/collectives/": BASE + PUBLIC + ["worker/library/crash/crash.h", "worker/library/device/",
                                                            "worker/library/mesh/mesh.h",
                                                            "worker/library/mesh/mesh_device.h",
                                                            "worker/library/runtime/api/api.h",
                                                            "worker/library/runtime/strategy/",
                                                            "worker/library/runtime/replica/",
                                                            "worker/library/runtime/arithmetic/",
                                                            "worker/library/runtime/regroup/",
                                                            "worker/library/runtime/devices/",
                                                            "worker/library/runtime/collectives/"],
    "worker/library/runtime/variables/": BASE + PUBLIC + ["common/model/limits.h", "worker/library/device/",
                                                          "worker/library/preprocessing/reals.h",
                                                          "worker/library/runtime/api/api.h",
                                                          "worker/library/runtime/strategy/",
                                                          "worker/library/runtime/replica/",
                                                          "worker/library/runtime/arithmetic/",
                                                          "worker/library/runtime/values/",
                                                          "worker/library/runtime/regroup/",
                                                          "worker/library/runtime/devices/devices_hooks.h",
                                                          "worker/library/runtime/step/",
                                                          "worker/library/runtime/collectives/",
                                                          "worker/library/runtime/variables/"],
    "worker/library/runtime/reductions/": BASE + PUBLIC + ["worker/library/device/",
                                                           "worker/library/composite/composite.h",
                                                           "worker/library/input/node/user_call.h",
                                                           "worker/library/preprocessing/reals.h",
                                                           "worker/library/runtime/api/api.h",
                                                           "worker/library/runtime/strategy/",
                                                           "worker/library/runtime/replica/",
                                                           "worker/library/runtime/arithmetic/",
                                                           "worker/library/runtime/values/",
                                                           "worker/library/runtime/regroup/",
                                                           "worker/library/runtime/devices/devices.h",
                                                           "worker/library/runtime/collectives/",
                                                           "worker/library/runtime/variables/variable.h",
                                                           "worker/library/runtime/reductions/"],
    "worker/library/runtime/input/": BASE + PUBLIC + ["common/model/", "worker/library/crash/crash.h",
                                                      "worker/library/device/", "worker/library/input/",
                                                      "worker/library/preprocessing/",
                                                      "worker/library/runtime/api/",
                                                      "worker/library/runtime/task/task.h",
                                                      "worker/library/runtime/strategy/",
                                                      "worker/library/runtime/replica/",
                                                      "worker/library/runtime/values/values.h",
                                                      "worker/library/runtime/regroup/",
                                                      "worker/library/runtime/collectives/collective.h",
                                                      "worker/library/runtime/input/"],
    "worker/library/runtime/adapt/": BASE + PUBLIC + ["worker/library/device/argument.h",
                                                      "worker/library/device/tensor.h",
                                                      "worker/library/input/node/node.h",
                                                      "worker/library/preprocessing/",
                                                      "worker/library/runtime/api/api.h",
                                                      "worker/library/runtime/strategy/",
                                                      "worker/library/runtime/replica/collective_key.h",
                                                      "worker/library/runtime/regroup/between_steps.h",
                                                      "worker/library/runtime/collectives/",
                                                      "worker/library/runtime/adapt/"],
    "worker/library/runtime/metrics/": BASE + PUBLIC + ["worker/library/device/",
                                                        "worker/library/preprocessing/reals.h",
                                                        "worker/library/runtime/api/api.h",
                                                        "worker/library/runtime/strategy/strategy.h",
                                                        "worker/library/runtime/replica/",
                                                        "worker/library/runtime/arithmetic/shape.h",
                                                        "worker/library/runtime/state/",
                                                        "worker/library/runtime/variables/",
                                                        "worker/library/runtime/metrics/"],
    "worker/library/runtime/optimizers/": BASE + PUBLIC + ["common/model/limits.h", "worker/library/device/",
                                                           "worker/library/optimizer/",
                                                           "worker/library/runtime/api/",
                                                           "worker/library/runtime/strategy/",
                                                           "worker/library/runtime/replica/",
                                                           "worker/library/runtime/arithmetic/numbers.h",
                                                           "worker/library/runtime/step/apply_function.h",
                                                           "worker/library/runtime/collectives/",
                                                           "worker/library/runtime/state/",
                                                           "worker/library/runtime/variables/",
                                                           "worker/library/runtime/optimizers/"],
    "worker/library/runtime/strategy/": BASE + PUBLIC + ["common/model/task_message.h",
                                                         "worker/library/cluster/",
                                                         "worker/library/device/argument.h",
                                                         "worker/library/device/device_name.h",
                                                         "worker/library/device/tensor_memory.h",
                                                         "worker/library/mesh/mesh.h",
                                                         "worker/library/runtime/api/",
                                                         "worker/library/runtime/task/",
                                                         "worker/library/runtime/cluster/",
                                                         "worker/library/runtime/program/program.h",
                                                         "worker/library/runtime/strategy/"],
    "worker/library/runtime/regroup/": BASE + PUBLIC + ["common/model/task_message.h",
                                                        "worker/library/mesh/mesh_device.h",
                                                        "worker/library/runtime/api/",
                                                        "worker/library/runtime/task/",
                                                        "worker/library/runtime/strategy/",
                                                        "worker/library/runtime/replica/",
                                                        "worker/library/runtime/regroup/"],
    "worker/library/runtime/step/": BASE + PUBLIC + ["common/model/task_message.h", "worker/library/crash/crash.h",
                                                     "worker/library/device/",
                                                     "worker/library/input/node/component_names.h",
                                                     "worker/library/runtime/api/",
                                                     "worker/library/runtime/task/",
                                                     "worker/library/runtime/strategy/",
                                                     "worker/library/runtime/replica/",
                                                     "worker/library/runtime/values/",
                                                     "worker/library/runtime/regroup/",
                                                     "worker/library/runtime/step/"],
    "worker/library/runtime/state/": BASE + PUBLIC + ["common/model/", "common/checkpoint/",
                                                      "worker/library/crash/crash.h", "worker/library/device/",
                                                      "worker/library/input/",
                                                      "worker/library/runtime/api/",
                                                      "worker/library/runtime/task/",
                                                      "worker/library/runtime/strategy/",
                                                      "worker/library/runtime/replica/",
                                                      "worker/library/runtime/regroup/",
                                                      "worker/library/runtime/collectives/",
                                                      "worker/library/runtime/variables/",
                                                      "worker/library/runtime/input/",
                                                      "worker/library/runtime/state/"],
    "worker/library/runtime/digests/": BASE + PUBLIC + ["common/model/", "worker/library/mesh/mesh.h",
                                                        "worker/library/runtime/api/show.h",
                                                        "worker/library/runtime/task/task.h",
                                                        "worker/library/runtime/strategy/",
                                                        "worker/library/runtime/replica/",
                                                        "worker/library/runtime/state/",
                                                        "worker/library/runtime/digests/"],
    "worker/library/runtime/preemption/": BASE + PUBLIC + ["common/model/job.h", "worker/library/crash/crash.h",
                                                           "worker/library/runtime/api/",
                                                           "worker/library/runtime/task/task.h",
                                                           "worker/library/runtime/strategy/",
                                                           "worker/library/runtime/regroup/",
                                                           "worker/library/runtime/state/checkpoint/checkpoint.h",
                                                           "worker/library/runtime/digests/digests.h",
                                                           "worker/library/runtime/input/reports.h",
                                                           "worker/library/runtime/preemption/"],
    "worker/library/runtime/strategy_lifecycle/": BASE + PUBLIC + ["common/model/limits.h", "worker/library/mesh/mesh.h",
                                                     "worker/library/device/tensor_references.h",
                                                     "worker/library/runtime/api/",
                                                     "worker/library/runtime/task/",
                                                     "worker/library/runtime/program/program.h",
                                                     "worker/library/runtime/ps_job/ps_job.h",
                                                     "worker/library/runtime/strategy/",
                                                     "worker/library/runtime/replica/",
                                                     "worker/library/runtime/regroup/",
                                                     "worker/library/runtime/step/",
                                                     "worker/library/runtime/preemption/preemption.h",
                                                     "worker/library/runtime/strategy_lifecycle/"],
    "worker/library/runtime/served/": BASE + PUBLIC + ["common/model/limits.h", "worker/library/device/",
                                                       "worker/library/optimizer/", "worker/library/ps/",
                                                       "worker/library/runtime/api/",
                                                       "worker/library/runtime/ps_job/",
                                                       "worker/library/runtime/strategy/",
                                                       "worker/library/runtime/replica/step_admission.h",
                                                       "worker/library/runtime/variables/",
                                                       "worker/library/runtime/state/",
                                                       "worker/library/runtime/served/"],
    "worker/library/runtime/closures/": BASE + PUBLIC + ["common/model/limits.h",
                                                         "worker/library/crash/crash.h",
                                                         "worker/library/device/",
                                                         "worker/library/input/distribution/distributed_input.h",
                                                         "worker/library/input/node/user_call.h",
                                                         "worker/library/ps/",
                                                         "worker/library/runtime/api/",
                                                         "worker/library/runtime/program/program.h",
                                                         "worker/library/runtime/ps_job/",
                                                         "worker/library/runtime/strategy/",
                                                         "worker/library/runtime/replica/step_admission.h",
                                                         "worker/library/runtime/values/values.h",
                                                         "worker/library/runtime/regroup/",
                                                         "worker/library/runtime/step/",
                                                         "worker/library/runtime/devices/",
                                                         "worker/library/runtime/collectives/collectives.h",
                                                         "worker/library/runtime/variables/variables_hooks.h",
                                                         "worker/library/runtime/reductions/reductions.h",
                                                         "worker/library/runtime/input/input_hooks.h",
                                                         "worker/library/runtime/state/state_hooks.h",
                                                         "worker/library/runtime/preemption/preemption.h",
                                                         "worker/library/runtime/strategy_lifecycle/strategy_lifecycle.h",
                                                         "worker/library/runtime/closures/"],
    "worker/library/runtime/roles/": BASE + PUBLIC + ["worker/library/crash/crash.h", "worker/library/ps/server/server.h",
                                                      "worker/library/runtime/api/",
                                                      "worker/library/runtime/program/",
                                                      "worker/library/runtime/ps_job/",
                                                      "worker/library/runtime/strategy/",
                                                      "worker/library/runtime/served/",
                                                      "worker/library/runtime/closures/",
                                                      "worker/library/runtime/roles/"],
    "worker/library/runtime/plain/": BASE + PUBLIC + ["common/model/", "worker/library/crash/crash.h",
                                                      "worker/library/device/argument.h",
                                                      "worker/library/device/tensor_memory.h",
                                                      "worker/library/mesh/mesh.h",
                                                      "worker/library/runtime/api/",
                                                      "worker/library/runtime/task/",
                                                      "worker/library/runtime/program/",
                                                      "worker/library/runtime/strategy/strategy_registry.h",
                                                      "worker/library/runtime/replica/collective_key.h",
                                                      "worker/library/runtime/arithmetic/",
                                                      "worker/library/runtime/collectives/",
                                                      "worker/library/runtime/plain/"],
    # What begins and ends a program stands above all of them.
    "worker/library/runtime/lifecycle/": BASE + PUBLIC + ["worker/library/device/", "worker/library/mesh/mesh.h",
                                                          "worker/library/ps/directory.h",
                                                          "worker/library/runtime/"],
    # A program on its own brings its coordinator: this one file joins the runtime to the coordinator's core.
    "worker/library/runtime/task/embedded_core.c": MODEL + BASE + ["coordinator/core/core.h",
                                                                 "worker/library/runtime/task/"],
    # Above both: a cluster in one process, and the program that offers it beside the verbs for a real one.
    "deploy/local/": WIRE + ["common/checkpoint/", "common/gpus/pci_gpus.h", "coordinator/engine/engine.h",
                             "coordinator/store/store.h", "worker/host/agent/agent.h",
                             "worker/host/agent/executable.h",
                             "worker/host/agent/listener.h", "worker/host/agent/orphans.h",
                             "worker/host/probe/slot_gpus.h", "deploy/local/"],
    # `cadre run` shows a job that no client asked for: the local cluster's.
    "deploy/cadre/": BASE + ["common/model/limits.h", "common/model/ps_job.h", "cadre/client.h",
                             "common/client/result.h", "deploy/local/local.h", "coordinator/cli/", "deploy/cadre/"],
    "deploy/examples/": PUBLIC,
    "tests/": [""],
}

# What links.py looks at: all that is shipped, but for the examples.
PRODUCT = ("common/", "coordinator/", "worker/", "deploy/cadre/", "deploy/local/")

# Functions of other libraries that a file of ours stands in front of: who calls them means the library.
INTERPOSED = {"accept4", "close", "recvmsg", "sendmsg", "SSL_read", "SSL_write"}
# What is declared below, and made above by whoever is linked with it.
HOOKS = {"cadre_panic"}

# Headers that are the interface of another folder than their own.
IMPLEMENTED_IN = {
    "cadre/client.h": "common/client/",
    "coordinator/core/core.h": "coordinator/core/turn/",
    "worker/library/mesh/mesh_device.h": "worker/library/mesh/device/",
}

# Folder -> how many files of it need each other by link, in the largest circle. A folder without a row has none.
# A ratchet: who unties one lowers its number.
FILE_CIRCLES = {
    "common/base": 2,
    "common/rpc": 4,
    "coordinator/engine": 6,
    "coordinator/store": 2,
    "deploy/local": 2,
    "worker/host/agent": 7,
    "worker/library/crash": 2,
    "worker/library/device": 5,
    "worker/library/input": 2,
    "worker/library/mesh": 10,
    "worker/library/mesh/device": 8,
    "worker/library/ps": 7,
    "worker/library/runtime/regroup": 4,
}

# Folders whose files may use only FREESTANDING system headers.
PURE_FOLDERS = ["common/pure/", "common/model/", "coordinator/core/", "worker/core/"]

# Folders whose files may name a header beside them without its folder; everywhere else paths are from the root.
OWN_NAMES = ["tests/", "deploy/examples/"]

# Headers of other projects (a regular expression on the included name) -> the folders that may use them.
FOREIGN = [
    (r"grpc/(?!health)|grpc_", ["common/rpc/", "tests/bench/rpc/"]),
    (r"protobuf-c/|.*\.pb-c\.h$", ["common/wire/", "tests/unit/wire/"]),
    (r"microhttpd\.h$|gnutls/", ["common/http/"]),
    (r"uv\.h$", ["common/rpc/", "common/http/", "common/service/", "worker/host/agent/", "worker/host/daemon/",
                 "deploy/local/", "coordinator/daemon/", "tests/"]),
    (r"sqlite3", ["coordinator/store/", "tests/unit/store/", "tests/unit/engine/"]),
    (r"jansson\.h$", ["common/checkpoint/", "coordinator/cli/", "worker/library/cluster/", "worker/host/probe/",
                       "worker/library/list_devices/",
                       "worker/library/runtime/state/manifest",
                       "worker/library/runtime/state/format/safetensors.c", "tests/"]),
    (r"isa-l/", ["coordinator/store/sqlite_checksum.c", "worker/library/runtime/state/format/checkpoint_sum.c",
                 "worker/library/input/files/inflate_stream.c", "worker/library/input/files/record_frame.c",
                 "worker/library/input/sources/tfrecord_writer.c",
                 "tests/unit/input/", "tests/fuzz/", "tests/bench/input/"]),
    (r"xxhash\.h$", ["worker/library/device/memory_hash.c", "tests/unit/device/",
                    "tests/gpu/plugin/"]),
    (r"openssl/", ["common/base/", "common/rpc/io_hooks.c", "common/tls/", "coordinator/daemon/",
                   "coordinator/engine/", "coordinator/store/", "worker/host/daemon/", "deploy/local/",
                   "worker/library/mesh/", "worker/library/runtime/cluster/cluster_greeting.c",
                   "worker/library/runtime/task/session_key.c", "tests/"]),
    (r"systemd/", ["common/service/"]),
    (r"cuda_|cublas|nccl\.h$", ["worker/library/cuda/", "deploy/examples/", "tests/gpu/", "tests/bench/gpu/"]),
    (r"cmocka\.h$", ["tests/"]),
]

# Folders that are linked into other people's programs or into more than one of ours.
LIBRARIES = ["common/", "coordinator/core/", "coordinator/store/", "coordinator/engine/", "worker/core/",
             "worker/library/arena/", "worker/library/crash/",
             "worker/library/mesh/", "worker/library/random/", "worker/library/input/", "worker/library/device/",
             "worker/library/preprocessing/",
             "worker/library/runtime/", "deploy/local/", "worker/host/agent/", "worker/host/isolate/",
             "worker/library/cluster/", "worker/library/optimizer/", "worker/library/ps/", "worker/library/cuda/"]

UNALIGNED = [
    ("sleep", "arm a deadline and return to the loop; in a test, test_wait()"),
    ("usleep", "arm a deadline and return to the loop; in a test, test_wait()"),
    ("nanosleep", "arm a deadline and return to the loop; in a test, test_wait()"),
    ("strcpy", "snprintf, or memcpy of a length that was checked"),
    ("strncpy", "snprintf, or memcpy of a length that was checked"),
    ("strcat", "snprintf at an offset"),
    ("strncat", "snprintf at an offset"),
    ("sprintf", "snprintf"),
    ("vsprintf", "vsnprintf"),
    ("gets", "fgets or getline"),
    ("atoi", "strtol with its checks, or the option table"),
    ("atol", "strtol with its checks, or the option table"),
    ("atof", "strtod with its checks"),
    ("system", "posix_spawn or uv_spawn"),
    ("popen", "posix_spawn or uv_spawn"),
    ("rand", "prng_next of common/pure/prng.h"),
    ("srand", "prng_next of common/pure/prng.h"),
    ("mktemp", "mkostemp"),
    ("tmpnam", "mkostemp"),
    ("alloca", "a fixed array, or malloc"),
]
IN_LIBRARIES = [
    ("exit", "return a cadre_status"),
    ("abort", "CADRE_ASSERT"),
    ("printf", "cadre_error_set, or the program's log"),
    ("puts", "cadre_error_set, or the program's log"),
    ("putchar", "cadre_error_set, or the program's log"),
    ("perror", "cadre_error_errno"),
]
# Words, not calls, that mean printing.
STREAMS = [("stdout", "take a FILE * from the program"), ("stderr", "cadre_error_set, or the program's log")]

# File -> rules it need not follow. Each row has its reason.
EXCEPTIONS = {
    "common/base/error.c": {"stderr", "exit"},    # cadre_check(), the public macro for a program's main()
    "common/base/panic.c": {"stderr", "abort"},   # what a failed assert does
    "common/rpc/daemon_main.c": {"stderr", "stdout"},  # main() of the daemons: wrong options, --help
    "worker/library/runtime/api/show.c": {"stderr"},  # progress of a program run by hand, cadre_finish()'s reason
    "tests/integration/flipper.c": {"rand", "srand"},  # what a program does that is wrong
    "tests/lib/test.c": {"nanosleep"},            # test_wait(), the replacement itself
    "tests/tidy/rules.py": {"leftover", "machine path"},
    "tests/tidy/tidy_test.py": {"leftover", "machine path"},
}

LEFTOVERS = r"\b(TODO|FIXME|XXX|HACK)\b"
MACHINE_PATHS = r"(?<![\w.~-])/(?:work|root|home)/|/tmp/b-"

# What lies below these folders is described by the README.md of the folder behind it.
README_COVERS = {"proto/": "proto", "tests/unit/": "tests/unit", "common/include/": "common",
                 "tests/gpu/standin/": "tests/gpu/standin"}

# Undefined symbols that the archives of the two cores may have, besides those of pure and model.
CORE_SYMBOLS = (r"(mem(cpy|move|set|cmp|chr)|str(len|nlen|cmp|ncmp|chr|rchr))$|__mem\w+_chk$|cadre_panic$"
                r"|__(asan|ubsan|tsan|lsan|sanitizer|sancov)_|__stack_chk_fail$|_GLOBAL_OFFSET_TABLE_$"
                r"|__u?(div|mod)ti3$")

# What the shared libraries export besides what their headers declare: a program that loads both has one last error.
EXPORTED_BESIDES = ["cadre_error_publish"]

# Libraries that a training program must not have to load because of libcadre.so.
RUNTIME_NEEDED_NEVER = r"lib(grpc|gpr|uv|sqlite3|absl|protobuf\.|systemd|address_sorting)"

# Each public function is shown to readers in one of these folders (shown.py), and there are not more than so many.
PUBLIC_HEADERS = "common/include/cadre"
SHOWN_IN = ["deploy/examples", "tests/documents"]
PUBLIC_FUNCTIONS_MAX = 400

# Figures of measure.py that may not leave these ranges: names that grep finds, prototypes that say what they promise.
SHAPE = {
    "functions named by one bare word": (0, 2),
    "prototypes with a comment right above": (90, 100),
}

# So many sources a folder may have: more of them want folders of their own.
FOLDER_SOURCES_MAX = 64

# What users get: names there are held to the glossary's third table (common/README.md).
SHIPPED = ("common/", "coordinator/", "worker/", "proto/", "deploy/")
