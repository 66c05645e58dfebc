/* SPDX-License-Identifier: Apache-2.0
 * Reading a checkpoint piece by piece: a block of the file counts only after its checksum was
 * compared, and one block at most is held. */
#ifndef CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_READ_H
#define CADRE_RUNTIME_CHECKPOINT_CHECKPOINT_READ_H

#include <stddef.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/checkpoint/manifest.h"
#include "worker/library/runtime/state/checkpoint/reading.h"
#include "worker/library/runtime/state/format/safetensors.h"

struct cadre_strategy;
struct cadre_tensor;
struct cadre_variable;
struct checkpoint_reader;

/* Opens the manifest `path` and the file beside it, and reads the list of tensors. DATA_LOSS,
 * NOT_FOUND, INVALID_ARGUMENT: it is not a manifest. Errors do not name `path`. `strategy` NULL:
 * the manifest's strings are not read yet. */
cadre_status checkpoint_reader_open(const struct cadre_strategy *strategy, const char *path,
    struct checkpoint_reader **ret_reader, struct cadre_error *error);
/* The same of a file of tensors alone, of any program: it has no checksums. Errors name it. */
cadre_status checkpoint_reader_open_tensors(
    const char *path, struct checkpoint_reader **ret_reader, struct cadre_error *error);
/* Closes the files and frees it. Accepts NULL. */
void checkpoint_reader_close(struct checkpoint_reader *reader);

/* What is read from now on, so many bytes, is shown to people when it takes long (reading.h). */
void checkpoint_reader_report(
    struct checkpoint_reader *reader, struct task *task, bool by_hand, uint64_t bytes);
/* Nothing is shown any more: the task is about to be closed, or is. */
void checkpoint_reader_report_nothing(struct checkpoint_reader *reader);

/* The program has made variables since: reads the manifest's strings of them, too. DATA_LOSS: the
 * manifest is another checkpoint's now. */
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

/* The list of its tensors; the reader's. */
const struct safetensors_list *checkpoint_reader_list(const struct checkpoint_reader *reader);

/* The value of the variable of that name, or registered state; NULL: it holds none. */
const struct safetensors_entry *checkpoint_reader_find(
    struct checkpoint_reader *reader, const char *name);

/* Bytes [offset, offset + bytes) of a tensor. One thread at a time. DATA_LOSS names the block. */
cadre_status checkpoint_reader_read(struct checkpoint_reader *reader,
    const struct safetensors_entry *entry, size_t offset, void *into, size_t bytes,
    struct cadre_error *error);

/* Compares the checksums of all blocks that were not read. */
cadre_status checkpoint_reader_verify(struct checkpoint_reader *reader, struct cadre_error *error);

#endif
