/* SPDX-License-Identifier: Apache-2.0
 * The source of values for a job from the beginning: a checkpoint or a file of tensors that its
 * program has named (cadre_restore, cadre_import). Its list is sent to all tasks once, so each of
 * them decides which variables get values; rank 0 reads those, and shares them out.
 *
 * It stays for as long as variables may be created: those take theirs from it. */
#ifndef CADRE_RUNTIME_RESTORE_RESTORATION_H
#define CADRE_RUNTIME_RESTORE_RESTORATION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"
#include "worker/library/runtime/state/format/safetensors.h"
#include "worker/library/runtime/state/layout/state.h"

struct checkpoint_reader;

/* A value in it. */
struct restored_tensor {
    char name[SAFETENSORS_NAME_BYTES];   /* of the variable, or "state/<name>" */
    char tensor[SAFETENSORS_NAME_BYTES]; /* in the file; of strings "" */
    cadre_dtype dtype;
    uint32_t rank; /* of CADRE_STRING 1: only their number is known */
    int64_t dims[CADRE_RANK_MAX];
};

struct restoration {
    char *path; /* of the manifest, or of the file of tensors: as it was chosen */
    struct restored_tensor *tensors; /* in order of name */
    size_t count;
    struct checkpoint_reader *reader; /* at the task that reads; NULL: not open, or another's */
    char *report;                     /* of the last restoration_report; or NULL */
};

/* Opens `path`, a manifest, a folder (its newest whole checkpoint) or a file of tensors, and reads
 * every byte that has a checksum. Collective, but of a task that is warm: rank 0 reads. `function`
 * is the public one. NOT_FOUND, DATA_LOSS, INVALID_ARGUMENT, ... are the same code on all tasks,
 * and harm nothing. */
cadre_status restoration_open(struct cadre_strategy *strategy, const char *function,
    const char *path, struct restoration **ret_restoration, struct cadre_error *error);
/* Closes the file and frees it. Accepts NULL. */
void restoration_close(struct restoration *restoration);

/* Whether the path is one of a file of tensors: it ends with ".safetensors". */
bool restoration_is_tensors(const char *path);

/* Closes the file until the next read opens it again. Accepts NULL. */
void restoration_close_reader(struct restoration *restoration);

/* The value of that name. NULL: there is none; also for a NULL restoration. */
const struct restored_tensor *restoration_find(
    const struct restoration *restoration, const char *name);

/* INVALID_ARGUMENT: the tensor has another type or shape in it. One that is not in it fits. */
cadre_status restoration_fits(const struct restoration *restoration,
    const struct state_tensor *tensor, struct cadre_error *error);

/* The open file at the task that reads; the restoration's. */
cadre_status restoration_reader(struct restoration *restoration,
    struct checkpoint_reader **ret_reader, struct cadre_error *error);

/* At the task that reads: a tensor that is in it and fits. */
cadre_status restoration_read(struct restoration *restoration, const struct state_tensor *tensor,
    void *into, struct cadre_error *error);
/* The same for a variable of strings; they are the caller's to release. */
cadre_status restoration_strings(struct restoration *restoration,
    const struct cadre_variable *variable, struct cadre_tensor **ret_strings,
    struct cadre_error *error);

#endif
