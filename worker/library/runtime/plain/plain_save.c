/* SPDX-License-Identifier: Apache-2.0
 * A state of a plain program as one step of its job: rank 0 writes what all give into a checkpoint,
 * all take the step, and the coordinator publishes the checkpoint when all have (protocol, rule
 * 18). plain_state.c calls it.
 *
 *     every task   tables of all ─▶ its parts, by chunks ─▶ agree ─▶ step p ─▶ p + 1 published
 *     rank 0                        └▶ file and manifest ───┘        └▶ part     and released
 *
 * The step that the next save ends is released at the end of this one: a task may join or leave
 * here, and nowhere else (plain_leave.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/runtime/api/show.h"
#include "worker/library/runtime/collectives/collective.h"
#include "worker/library/runtime/plain/plain_state.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_copy.h"
#include "worker/library/runtime/state/checkpoint/checkpoint_folder.h"
#include "worker/library/runtime/state/format/checkpoint_file.h"
#include "worker/library/runtime/state/layout/streamed.h"
#include "worker/library/trace/trace.h"

#define CHUNK_BYTES ((size_t)1 << 20)

/* What is broadcast: a piece of a part, unless the task that has it cannot read it. */
struct chunk {
    uint32_t failed;
    char bytes[CHUNK_BYTES];
};

/* The parts of all tasks, in the order of the tables, which is that of the file. */
struct passage {
    struct streamed streamed; /* rank 0: the source of the writer; first member */
    struct plain *plain;
    const struct cadre_plain_state *own;
    const struct plain_tables *tables;
    struct chunk *chunk;
    size_t row;                 /* the next that is passed */
    uint64_t offset;            /* in it */
    uint32_t rank;              /* of the task that has it */
    uint32_t rank_row;          /* which of that task's it is */
    bool ended;                 /* the generation has */
    struct cadre_error failure; /* of this task's own parts; code OK: none */
};

/* --- the parts of all tasks on their way to rank 0 --- */

static void passage_next_row(struct passage *passage)
{
    passage->row++;
    passage->rank_row++;
    passage->offset = 0;
}

/* Bytes [offset, offset + size) of a part of this task. */
static cadre_status read_piece(const struct cadre_plain_state *state, const struct plain_part *part,
    uint64_t offset, void *into, size_t size, struct cadre_error *error)
{
    CADRE_ASSERT(offset <= part->bytes);
    CADRE_ASSERT(size <= part->bytes - offset);
    if (part->memory != NULL) {
        memcpy(into, (const char *)part->memory + offset, size);
        return CADRE_OK;
    }
    for (size_t done = 0; done < size;) {
        ssize_t count = pread(
            state->fd, (char *)into + done, size - done, (off_t)(part->offset + offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return cadre_error_errno(
                error, count == 0 ? EIO : errno, "cannot read back the part %s", part->name);
        }
        done += (size_t)count;
    }
    return CADRE_OK;
}

/* The task that has the next row. */
static void passage_find_rank(struct passage *passage)
{
    CADRE_ASSERT(passage->row < passage->tables->row_count);
    while (passage->rank_row == passage->tables->counts[passage->rank]) {
        passage->rank++;
        passage->rank_row = 0;
    }
}

static void read_own(struct passage *passage, size_t size)
{
    const struct plain_part *part = &passage->own->pieces[passage->rank_row];
    struct chunk *chunk = passage->chunk;
    if (passage->failure.code == CADRE_OK) {
        (void)read_piece(
            passage->own, part, passage->offset, chunk->bytes, size, &passage->failure);
    }
    chunk->failed = passage->failure.code != CADRE_OK;
}

/* Brings the next chunk of the next row into this task's memory. Collective, unless it is of rank
 * 0, which needs no other task. */
static cadre_status passage_step(
    struct passage *passage, size_t *ret_size, struct cadre_error *error)
{
    struct plain *plain = passage->plain;
    passage_find_rank(passage);
    uint64_t left = passage->tables->rows[passage->row].bytes - passage->offset;
    size_t size = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
    *ret_size = size;
    if (passage->rank == plain->roster.rank) {
        read_own(passage, size);
    }
    if (passage->rank > 0) {
        const struct mesh_buffer buffer = {.data = passage->chunk,
            .bytes = offsetof(struct chunk, bytes) + size,
            .dtype = MESH_U8};
        uint64_t key = collective_key(collective_key_text(0, "state"), passage->row);
        const struct mesh_note note = {
            .key = collective_key(key, passage->offset), .text = "a state is sent to rank 0"};
        cadre_status status = plain->all.mesh->ops->broadcast(
            plain->all.mesh, 0, passage->rank, &buffer, 1, &note, error);
        passage->ended = status != CADRE_OK;
        CADRE_TRY(plain_end_collective(plain, status, error));
    }
    passage->offset += size;
    return passage->chunk->failed == 0
               ? CADRE_OK
               : cadre_error_set(error, CADRE_DATA_LOSS,
                     "task %u cannot read back what it gave to the state", passage->rank);
}

/* Passes what is left, so that no task waits for this one; nothing of it is kept. */
static void passage_drain(struct passage *passage)
{
    struct cadre_error ignored;
    size_t size = 0;
    while (!passage->ended && passage->row < passage->tables->row_count) {
        if (passage->offset == passage->tables->rows[passage->row].bytes) {
            passage_next_row(passage);
        } else {
            (void)passage_step(passage, &size, &ignored);
        }
    }
}

/* --- rank 0 writes --- */

static cadre_status passage_read(struct streamed *streamed, uint32_t i, streamed_sink *sink,
    void *user, struct cadre_error *error)
{
    struct passage *passage = (struct passage *)(void *)streamed;
    CADRE_ASSERT(i == passage->row);
    while (passage->offset < passage->tables->rows[i].bytes) {
        size_t size = 0;
        CADRE_TRY(passage_step(passage, &size, error));
        CADRE_TRY(sink(user, passage->chunk->bytes, size, error));
    }
    passage_next_row(passage);
    return CADRE_OK;
}

static const struct streamed_ops passage_ops = {.read = passage_read};

static cadre_status make_entries(
    const struct plain_tables *tables, struct checkpoint_copy *copy, struct cadre_error *error)
{
    size_t row = 0;
    copy->entries = calloc(tables->row_count + 1, sizeof *copy->entries);
    if (copy->entries == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for %zu parts of a state", tables->row_count);
    }
    for (uint32_t rank = 0; row < tables->row_count; rank++) {
        for (uint32_t i = 0; i < tables->counts[rank]; i++, row++) {
            struct safetensors_entry *entry = &copy->entries[row];
            *entry = (struct safetensors_entry){.dtype = CADRE_U8,
                .rank = 1,
                .dims = {(int64_t)tables->rows[row].bytes},
                .bytes = (size_t)tables->rows[row].bytes};
            snprintf(entry->name, sizeof entry->name, "%s/%u", tables->rows[row].name, rank);
        }
    }
    copy->entry_count = row;
    copy->data_bytes = safetensors_set_offsets(copy->entries, copy->entry_count);
    return CADRE_OK;
}

/* Of the run that the program goes on from, if there is one: a shared folder then keeps the newest
 * of all. */
static cadre_status name_run(struct plain *plain, struct cadre_error *error)
{
    const char *path = plain->environment->restore_path;
    struct plain_saves *saves = &plain->saves;
    struct checkpoint_reader *reader = NULL;
    struct cadre_error ignored;
    _Static_assert(sizeof saves->run == MANIFEST_RUN_BYTES, "a run's name fits");
    if (saves->run[0] == '\0' && path[0] != '\0' &&
        checkpoint_reader_open(NULL, path, &reader, &ignored) == CADRE_OK) {
        memcpy(saves->run, manifest_run(checkpoint_reader_manifest(reader)), MANIFEST_RUN_BYTES);
        checkpoint_reader_close(reader);
    }
    return saves->run[0] != '\0' ? CADRE_OK : manifest_run_make(saves->run, error);
}

static const char *folder_of(const struct plain *plain)
{
    const struct environment *environment = plain->environment;
    return environment->checkpoint_folder[0] != '\0' ? environment->checkpoint_folder
                                                     : environment->output_folder;
}

static uint64_t writer_of(const struct plain *plain)
{
    return checkpoint_folder_writer(folder_of(plain), plain->environment->incarnation);
}

static cadre_status write_copy(struct passage *passage, struct checkpoint_copy *copy,
    struct task_part *ret_part, struct cadre_error *error)
{
    struct plain *plain = passage->plain;
    const struct manifest_plain about = {.position = copy->position,
        .generation = plain->roster.generation.number,
        .job = plain->environment->job,
        .tasks = plain->roster.member_count,
        .run = plain->saves.run};
    struct sha256 hash;
    CADRE_TRY(name_run(plain, error));
    CADRE_TRY(make_entries(passage->tables, copy, error));
    CADRE_TRY(manifest_plain_make(&about, &copy->manifest, error));
    CADRE_TRY(checkpoint_write(
        copy, folder_of(plain), writer_of(plain), &ret_part->size_bytes, &hash, error));
    memcpy(ret_part->sha256, hash.bytes, sizeof ret_part->sha256);
    return CADRE_OK;
}

static cadre_status write_state(
    struct passage *passage, struct task_part *ret_part, struct cadre_error *error)
{
    struct checkpoint_copy copy = {
        .position = passage->plain->saves.position + 1, .source = &passage->streamed};
    cadre_status status = write_copy(passage, &copy, ret_part, error);
    manifest_free(copy.manifest);
    free(copy.entries);
    return status;
}

/* --- the step --- */

/* What the program does until its next save belongs to that step. What it did before its first save
 * does too, so no other task can begin with it there (nested). */
static void begin_step(struct plain *plain)
{
    uint64_t position = plain->saves.position;
    const struct cursor cursor = {.first = position,
        .begin = position,
        .steps = 1,
        .nested = position == plain->roster.resume};
    const struct consumption none = {0};
    task_ready(plain->task, &cursor, &none, position + 1);
}

/* From the first save on the task is at a step of its job, which the next save ends. */
static cadre_status begin_steps(struct plain *plain, struct cadre_error *error)
{
    const struct cursor cursor = {0};
    const struct consumption none = {0};
    CADRE_ASSERT(!plain->saves.synced);
    plain->saves.synced = task_synced(plain->task, plain->roster.generation, &cursor, &none);
    if (!plain->saves.synced) {
        return cadre_error_set(
            error, CADRE_ABORTED, "the generation ended while a state was saved");
    }
    begin_step(plain);
    return task_admit(plain->task, plain->saves.position, error);
}

/* The step that was released at the end of the last save. */
static cadre_status take_step(struct plain *plain, struct cadre_error *error)
{
    uint64_t position = plain->saves.position;
    const struct consumption none = {0};
    CADRE_ASSERT(plain->saves.synced);
    CADRE_TRY(task_apply(plain->task, position, error));
    task_applied(plain->task, position, &none);
    plain->saves.position++;
    return CADRE_OK;
}

cadre_status plain_take_last_step(struct plain *plain, struct cadre_error *error)
{
    return plain->saves.synced ? plain_end_collective(plain, take_step(plain, error), error)
                               : CADRE_OK;
}

static void prune(const struct plain *plain)
{
    struct cadre_error error = {0};
    if (checkpoint_folder_prune(folder_of(plain), plain->saves.run, plain->saves.position,
            plain->environment->checkpoints_kept, &error) != CADRE_OK) {
        cadre_error_wrap(&error, error.code, "old states stay");
        show_failure(&error);
    }
}

static cadre_status publish(struct plain *plain, struct task_part *part, struct cadre_error *error)
{
    char name[CHECKPOINT_NAME_BYTES];
    if (!plain->saves.synced) {
        CADRE_TRY(begin_steps(plain, error));
    }
    CADRE_TRY(take_step(plain, error));
    if (task_pause_point(plain->task) == TASK_CONTINUES) {
        begin_step(plain); /* so that it is released with the publication */
    }
    if (plain->roster.rank == 0) {
        checkpoint_name_write(plain->saves.position, writer_of(plain), CHECKPOINT_TEXT_NAME, name);
        part->position = plain->saves.position;
        part->path = name;
        part->shared = plain->environment->checkpoint_folder[0] != '\0';
        task_part(plain->task, part);
    }
    CADRE_TRY(task_await_published(plain->task, plain->saves.position, false, error));
    if (plain->roster.rank == 0) {
        prune(plain);
    }
    return CADRE_OK;
}

/* --- all of it --- */

static cadre_status pass_and_write(
    struct passage *passage, struct task_part *ret_part, struct cadre_error *error)
{
    struct cadre_error failure = {0};
    passage->chunk = malloc(sizeof *passage->chunk);
    if (passage->chunk == NULL) {
        cadre_error_set(&failure, CADRE_RESOURCE_EXHAUSTED, "no memory to send a state by");
    }
    CADRE_TRY(plain_agree(passage->plain, &failure, error));
    if (passage->plain->roster.rank == 0) {
        struct cadre_error own;
        failure.code = write_state(passage, ret_part, &own);
        failure = failure.code != CADRE_OK ? own : failure;
    }
    passage_drain(passage);
    if (passage->ended) {
        *error = passage->plain->failed;
        return error->code;
    }
    if (failure.code == CADRE_OK) {
        failure = passage->failure;
    }
    return plain_agree(passage->plain, &failure, error);
}

static cadre_status save_all(
    struct plain *plain, struct cadre_plain_state *own, struct cadre_error *error)
{
    const struct cadre_error none = {0};
    struct task_part part = {0};
    struct plain_tables tables;
    plain_report_flush(plain);
    cadre_status status =
        plain_tables_gather(plain, own, own != NULL ? &own->failure : &none, &tables, error);
    if (status == CADRE_OK) {
        struct passage passage = {
            .streamed = {.ops = &passage_ops}, .plain = plain, .own = own, .tables = &tables};
        status = pass_and_write(&passage, &part, error);
        free(passage.chunk);
    }
    plain_tables_clear(&tables);
    if (status != CADRE_OK) {
        return status;
    }
    CADRE_TRY(plain_end_collective(plain, publish(plain, &part, error), error));
    return plain_go_on(plain, error);
}

cadre_status plain_save_all(
    struct plain *plain, struct cadre_plain_state *own, struct cadre_error *error)
{
    struct trace_mark mark = trace_begin();
    cadre_status status = save_all(plain, own, error);
    trace_end(mark, TRACE_CHECKPOINT, 0);
    return status;
}
