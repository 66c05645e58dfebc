/* SPDX-License-Identifier: Apache-2.0
 * States of plain programs: what a task gives, how all of it becomes one file, and how it is
 * read. */
#ifndef CADRE_RUNTIME_PLAIN_STATE_H
#define CADRE_RUNTIME_PLAIN_STATE_H

#include "worker/library/runtime/plain/plain.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_read.h"
#include "worker/library/runtime/state/format/safetensors.h"

#define PLAIN_PIECES_MAX 256 /* of a task, in one state */

/* What a task gives to a state under one name. */
struct plain_part {
    char name[LIMIT_NAME_BYTES];
    uint64_t bytes;
    uint64_t offset;    /* in the file of this task */
    const void *memory; /* the program's; NULL: in the file */
};

struct cadre_plain_state {
    /* To be saved: */
    struct plain_part *pieces; /* owned */
    uint32_t part_count;
    uint32_t part_room;
    int fd; /* of the parts that are not in memory; -1: none */
    uint64_t file_bytes;
    struct cadre_error failure; /* of a call with it; code OK: none */
    /* To be read: */
    struct checkpoint_reader *reader;
    const struct safetensors_entry *entry;
    size_t read;
};

/* An empty one; the caller's to close. RESOURCE_EXHAUSTED. */
cadre_status plain_state_new(struct cadre_plain_state **ret_state, struct cadre_error *error);

/* Makes what the tasks give one state of the job, and waits until it counts. Collective; `own` may
 * have failed, then the error is that of all. An error that ends the generation is
 * plain_end_collective's. */
cadre_status plain_save_all(
    struct plain *plain, struct cadre_plain_state *own, struct cadre_error *error);

/* Takes the step that the program is in, after its last save: all have come to the end. Nothing
 * before the first save. Errors are plain_end_collective's. */
cadre_status plain_take_last_step(struct plain *plain, struct cadre_error *error);

/* --- plain_tables.c: who gives what --- */

/* One part of a task, as the tables of all have it. */
struct plain_row {
    char name[LIMIT_NAME_BYTES];
    uint64_t bytes;
};

struct plain_tables {
    uint32_t *counts;       /* by rank: rows of that task; owned */
    struct plain_row *rows; /* of all, in the order of ranks; owned */
    size_t row_count;
    size_t bytes; /* of all rows */
};

/* The tables of all tasks, the same on all of them. The first error in the order of ranks, of
 * `failure`, is the error of all. Collective. */
cadre_status plain_tables_gather(struct plain *plain, const struct cadre_plain_state *own,
    const struct cadre_error *failure, struct plain_tables *ret_tables, struct cadre_error *error);
/* Frees both lists, and zeroes it. */
void plain_tables_clear(struct plain_tables *tables);

/* The first of the tasks' failures becomes the error of all tasks; OK when none has failed.
 * Collective. */
cadre_status plain_agree(
    struct plain *plain, const struct cadre_error *failure, struct cadre_error *error);

/* An all-gather of `bytes` of each task, or of sizes[rank], for what it is called in errors.
 * Errors are plain_end_collective's. */
cadre_status plain_gather(struct plain *plain, const void *own, size_t bytes, const size_t *sizes,
    void *into, const char *what, struct cadre_error *error);

/* --- plain_leave.c: the end of a save --- */

/* The state of the task's position is saved: waits until the step behind it is released to this
 * program, which begins it when it returns; or all leave here, because their job stops or because
 * tasks join or leave. Collective. CANCELLED: this task may exit; the error ends the program's
 * calls (plain->failed). */
cadre_status plain_go_on(struct plain *plain, struct cadre_error *error);

#endif
