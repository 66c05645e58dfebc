#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compiles the cores and the simulator with the other compiler, without optimisation, and compares the
# digests of the same seeds: nothing that is decided may depend on the compiler.
#   same_digest.sh SOURCE SIM COMPILER_ID VERSION PROTO, the folder of what protoc-c made
set -eu
source=$1
sim=$2
case $3 in
    GNU) other=clang ;;
    *) other=gcc ;;
esac
if ! command -v "$other" >/dev/null; then
    echo "skipped: $other is not installed"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$other" -std=c11 -O0 -D_GNU_SOURCE "-DCADRE_VERSION=\"$4\"" -I"$source" -I"$source/common/include" \
    -isystem "$5" "$5"/*/v1/*.pb-c.c "$5"/grpc/health/v1/*.pb-c.c "$5"/tensorflow/*.pb-c.c "$source"/common/wire/*.c \
    "$source"/common/pure/*.c "$source"/common/model/*.c \
    "$source"/coordinator/core/*/*.c "$source"/coordinator/leadership/*.c "$source"/coordinator/engine/hold.c \
    "$source"/coordinator/engine/lagging.c \
    "$source"/coordinator/engine/outdated.c "$source"/coordinator/engine/synced_first.c \
    "$source"/coordinator/engine/placements.c \
    "$source"/coordinator/engine/messages*.c "$source"/coordinator/engine/members_sent.c \
    "$source"/coordinator/store/memory_job.c "$source"/coordinator/store/memory_view.c \
    "$source"/coordinator/store/memory_walk.c "$source"/coordinator/store/restore.c \
    "$source"/coordinator/store/rows.c "$source"/common/base/error.c "$source"/common/base/fault.c \
    "$source"/common/base/utf8.c "$source"/common/base/file_name.c \
    "$source"/worker/library/ps/server/backup_record.c \
    "$source"/worker/library/runtime/state/create/variable_name.c \
    "$source"/worker/library/runtime/variables/variable_list.c \
    "$source"/worker/core/*.c "$source"/tests/sim/*.c "$source"/tests/sim/replicas/*.c \
    "$source"/tests/sim/leadership/store.c -lprotobuf-c -o "$folder/sim"
digests() {
    "$1" --workers 16 --seeds 0:100 | grep '^digest'
    "$1" --workers 4 --seeds 7000000000:7000000100 | grep '^digest'
    "$1" --workers 4 --seeds 8000000000:8000000100 | grep '^digest'
}
one=$(digests "$sim")
two=$(digests "$folder/sim")
echo "$3: $one"
echo "$other: $two"
test "$one" = "$two"
