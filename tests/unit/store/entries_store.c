/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/store/entries_store.h"

#include <stdlib.h>

#include "coordinator/entries/log_entry.h"

struct entries_store {
    struct store base;
    struct store_ops ops;
    struct store *inner;
    struct wire_buffer bytes;
    struct entry_records entry;
};

static uint64_t seen_kinds;

static struct store *inner_of(const struct store *store)
{
    return ((const struct entries_store *)(uintptr_t)store)->inner;
}

/* Through the bytes of an entry; an entry without records has none. */
static cadre_status apply_entry(struct store *store, const struct store_record *records,
    size_t count, const struct store_position *at, struct cadre_error *error)
{
    struct entries_store *self = (struct entries_store *)(uintptr_t)store;
    if (count == 0) {
        return self->inner->ops->apply(self->inner, records, count, at, error);
    }
    wire_buffer_clear(&self->bytes);
    assert_ok(log_entry_write(ledger_format_newest(), records, count, &self->bytes, error), error);
    assert_ok(log_entry_read(&self->entry, self->bytes.bytes, self->bytes.size, error), error);
    assert_int_equal(self->entry.count, count);
    for (size_t i = 0; i < count; i++) {
        const struct core_record *record = self->entry.records[i].record;
        seen_kinds |= UINT64_C(1) << (record != NULL ? (unsigned)record->type : LEDGER_EVENT);
    }
    return self->inner->ops->apply(self->inner, self->entry.records, count, at, error);
}

static cadre_status commit_entry(struct store *store, const struct store_record *records,
    size_t count, bool sync, struct cadre_error *error)
{
    struct store *inner = inner_of(store);
    struct store_position at;
    if (count > 0) {
        inner->ops->position(inner, &at);
        at.index++;
        CADRE_TRY(apply_entry(store, records, count, &at, error));
    }
    return sync ? inner->ops->commit(inner, NULL, 0, true, error) : CADRE_OK;
}

static void position(const struct store *store, struct store_position *ret_position)
{
    inner_of(store)->ops->position(inner_of(store), ret_position);
}

static void cluster(const struct store *store, struct store_cluster *ret_cluster)
{
    inner_of(store)->ops->cluster(inner_of(store), ret_cluster);
}

static cadre_status note_cluster(
    struct store *store, const struct store_cluster *noted, struct cadre_error *error)
{
    return inner_of(store)->ops->note_cluster(inner_of(store), noted, error);
}

static cadre_status load(struct store *store,
    cadre_status (*visit)(void *user, const struct store_job *job, struct cadre_error *error),
    void *user, struct cadre_error *error)
{
    return inner_of(store)->ops->load(inner_of(store), visit, user, error);
}

static cadre_status check(struct store *store,
    void (*visit)(void *user, struct job_id job, const char *what), void *user,
    struct cadre_error *error)
{
    return inner_of(store)->ops->check(inner_of(store), visit, user, error);
}

static cadre_status task_exits(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct store_task_exit *exit), void *user,
    struct cadre_error *error)
{
    return inner_of(store)->ops->task_exits(inner_of(store), job, visit, user, error);
}

static cadre_status ledger(struct store *store, struct job_id job, const struct store_walk *walk,
    struct cadre_error *error)
{
    return inner_of(store)->ops->ledger(inner_of(store), job, walk, error);
}

static cadre_status history(struct store *store, struct job_id job, uint64_t after, size_t max,
    void (*visit)(void *user, const struct history_event *event), void *user, uint64_t *ret_last,
    struct cadre_error *error)
{
    struct store *inner = inner_of(store);
    return inner->ops->history(inner, job, after, max, visit, user, ret_last, error);
}

static cadre_status checkpoints(struct store *store, struct job_id job,
    void (*visit)(void *user, const struct core_checkpoint *checkpoint), void *user,
    struct cadre_error *error)
{
    return inner_of(store)->ops->checkpoints(inner_of(store), job, visit, user, error);
}

static cadre_status drains(struct store *store,
    void (*visit)(void *user, const struct core_drained *drained), void *user,
    struct cadre_error *error)
{
    return inner_of(store)->ops->drains(inner_of(store), visit, user, error);
}

static cadre_status culprits(struct store *store,
    void (*visit)(void *user, const struct core_culprit *culprit), void *user,
    struct cadre_error *error)
{
    return inner_of(store)->ops->culprits(inner_of(store), visit, user, error);
}

static void secret(const struct store *store, uint8_t ret_secret[STORE_SECRET_BYTES])
{
    inner_of(store)->ops->secret(inner_of(store), ret_secret);
}

static struct term term(const struct store *store)
{
    return inner_of(store)->ops->term(inner_of(store));
}

static uint64_t job_id_max(const struct store *store)
{
    return inner_of(store)->ops->job_id_max(inner_of(store));
}

static void close_entries(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct entries_store *self = (struct entries_store *)(uintptr_t)store;
    self->inner->ops->close(self->inner);
    wire_buffer_free(&self->bytes);
    log_entry_free(&self->entry);
    free(self);
}

struct store *entries_store_open(struct store *inner, const char *name)
{
    struct entries_store *self = calloc(1, sizeof *self);
    assert_non_null(self);
    self->inner = inner;
    self->ops = (struct store_ops){.name = name,
        .commit = commit_entry,
        .apply = apply_entry,
        .position = position,
        .cluster = cluster,
        .note_cluster = note_cluster,
        .load = load,
        .check = check,
        .task_exits = task_exits,
        .ledger = ledger,
        .history = history,
        .checkpoints = checkpoints,
        .drains = drains,
        .culprits = culprits,
        .secret = secret,
        .term = term,
        .job_id_max = job_id_max,
        .close = close_entries};
    self->base.ops = &self->ops;
    return &self->base;
}

uint64_t entries_store_kinds(void)
{
    return seen_kinds;
}

cadre_status open_sqlite(struct store **ret_store, struct cadre_error *error)
{
    char path[TEST_PATH_BYTES];
    return store_sqlite_open(test_path(path, test_temp_dir(), "ledger.db"), ret_store, error);
}

cadre_status open_memory_of_entries(struct store **ret_store, struct cadre_error *error)
{
    CADRE_TRY(store_memory_open(ret_store, error));
    *ret_store = entries_store_open(*ret_store, "memory of entries");
    return CADRE_OK;
}

cadre_status open_sqlite_of_entries(struct store **ret_store, struct cadre_error *error)
{
    CADRE_TRY(open_sqlite(ret_store, error));
    *ret_store = entries_store_open(*ret_store, "sqlite of entries");
    return CADRE_OK;
}
