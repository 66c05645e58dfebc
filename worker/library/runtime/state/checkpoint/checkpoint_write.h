/* SPDX-License-Identifier: Apache-2.0
 * Writing a copy of the state to disk, as a file of tensors and the manifest that names its blocks:
 * in this order, so that a manifest that exists has its tensors, whenever the writer dies. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_WRITE_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/sha256.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"

/* Any thread, as long as no other uses the copy. Returns the manifest's size and hash, for the
 * report. */
cadre_status checkpoint_write(struct checkpoint_copy *copy, const char *folder,
    uint64_t *ret_manifest_bytes, struct sha256 *ret_manifest_hash, struct cadre_error *error);

/* The file of tensors alone, for people. */
cadre_status checkpoint_write_tensors(
    struct checkpoint_copy *copy, const char *folder, struct cadre_error *error);

#endif
