/* SPDX-License-Identifier: Apache-2.0
 * Reading a checkpoint piece by piece: no block of the file counts before its checksum was looked
 * at, and no more of it than one block is held. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_READ_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_READ_H

#include <stddef.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/format/safetensors.h"

struct cadre_strategy;
struct cadre_tensor;
struct cadre_variable;
struct checkpoint_reader;

/* Opens the manifest `path` and the file beside it, and reads what tensors there are. DATA_LOSS,
 * NOT_FOUND, INVALID_ARGUMENT: it is no manifest. Errors do not name `path`. `strategy` NULL: of
 * strings the manifest is not asked yet. */
cadre_status checkpoint_reader_open(const struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error);
/* The same of a file of tensors alone, whoever wrote it: it has no checksums. Errors name it. */
cadre_status checkpoint_reader_open_tensors(
    const char *path, struct checkpoint_reader **ret_reader, struct cadre_error *error);
void checkpoint_reader_close(struct checkpoint_reader *reader); /* NULL is allowed */

/* The program has made variables since: what the manifest says of them is read, too. DATA_LOSS: it
 * is another checkpoint's now. */
cadre_status checkpoint_reader_follow(struct checkpoint_reader *reader,
    const struct cadre_strategy *strategy, struct cadre_error *error);

/* Makes the variables that it holds, and that the strategy lacks; in a job with parameter servers
 * none. */
cadre_status checkpoint_reader_make_variables(
    struct checkpoint_reader *reader, struct cadre_strategy *strategy, struct cadre_error *error);

/* The strings of a variable that the strategy need not have yet; *ret_strings is the caller's to
 * release. NOT_FOUND, INVALID_ARGUMENT: it holds none, or another number. */
cadre_status checkpoint_reader_strings(struct checkpoint_reader *reader,
    const struct cadre_variable *variable, struct cadre_tensor **ret_strings,
    struct cadre_error *error);

/* Each variable of strings that it holds; of a file of tensors alone none. */
cadre_status checkpoint_reader_each_strings(struct checkpoint_reader *reader,
    void (*each)(void *user, const char *name, size_t count), void *user,
    struct cadre_error *error);

/* The reader's; of a file of tensors alone NULL. */
struct manifest_content *checkpoint_reader_manifest(struct checkpoint_reader *reader);

/* What tensors it holds; the reader's. */
const struct safetensors_list *checkpoint_reader_list(const struct checkpoint_reader *reader);

/* The value of the variable of that name, or registered state; NULL: it holds none. */
const struct safetensors_entry *checkpoint_reader_find(
    struct checkpoint_reader *reader, const char *name);

/* Bytes [offset, offset + bytes) of a tensor. One thread at a time. DATA_LOSS names the block. */
cadre_status checkpoint_reader_read(struct checkpoint_reader *reader,
    const struct safetensors_entry *entry, size_t offset, void *into, size_t bytes,
    struct cadre_error *error);

/* Looks at the checksums of all blocks that were not read. */
cadre_status checkpoint_reader_verify(struct checkpoint_reader *reader, struct cadre_error *error);

#endif
