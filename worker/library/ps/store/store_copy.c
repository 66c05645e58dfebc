/* SPDX-License-Identifier: Apache-2.0
 * A store as a stream: head, then each shard with its rows, slots and step, each push that is not
 * forgotten, each note. Behind each section comes the sum of all bytes before it: no byte is used,
 * and no memory taken, for a section that did not arrive as it was sent. Called by server_copy.c
 * and server_backup.c. */
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "worker/library/ps/store/store_internal.h"

#define COPY_MAGIC   UINT64_C(0x63702d6572646143) /* "Cadre-pc" */
#define COPY_VERSION 3
#define CHUNK_BYTES  ((uint64_t)1 << 20)

struct copy_head {
    uint64_t magic;
    uint64_t version;
    uint64_t nonce;
    uint64_t forgotten;
    uint64_t shards;
    uint64_t pushes;
    uint64_t notes;
};

struct copy_shard {
    struct image_spec spec; /* without offsets */
    uint64_t has_rule;
    uint8_t rule[RULE_BYTES];
    uint64_t version;
    uint64_t updates;
    uint64_t steps;
    uint64_t passed;
    uint64_t has_step;
    uint64_t contributions;
    uint64_t kind;
    uint64_t rate;
    uint64_t dense;
    uint64_t part;
    uint64_t settled_trust;
    uint64_t settled_step;
    uint64_t count;
};

struct copy_push {
    uint64_t closure;
    uint64_t progress;
    uint64_t count;
    uint64_t trust;
    uint32_t ordinal;
    uint32_t shard;
    uint64_t synchronous;
};

struct copy_note {
    char name[STORE_NAME_BYTES];
    uint64_t bytes;
};

static bool store_copy_counts(const struct store *store, const struct image_push *entry)
{
    uint64_t closure = atomic_load(&entry->closure);
    return closure != 0 && closure != IMAGE_PUSH_REMOVED &&
           closure >= atomic_load(&store->head->forgotten);
}

static uint64_t element_count(const struct shard *shard)
{
    return shard->spec.rows * shard->row_elements;
}

static uint64_t touched_bytes(const struct shard *shard)
{
    return (shard->spec.rows / 64 + 1) * sizeof(uint64_t);
}

/* ---- saving ---- */

struct writer {
    store_sink *sink;
    void *user;
    uint64_t sum;
};

static cadre_status store_copy_put(
    struct writer *writer, const void *bytes, uint64_t count, struct cadre_error *error)
{
    const char *at = bytes;
    while (count != 0) {
        size_t chunk = (size_t)(count < CHUNK_BYTES ? count : CHUNK_BYTES);
        writer->sum = image_checksum(writer->sum, at, chunk);
        CADRE_TRY(writer->sink(writer->user, at, chunk, error));
        at += chunk;
        count -= chunk;
    }
    uint64_t sum = writer->sum;
    return writer->sink(writer->user, &sum, sizeof sum, error);
}

static cadre_status save_shard(
    struct writer *writer, const struct shard *shard, struct cadre_error *error)
{
    const struct image_shard *kept = shard->kept;
    const struct image_step *step = shard->step;
    struct copy_shard copy = {.spec = kept->spec,
        .version = atomic_load(&kept->version),
        .updates = atomic_load(&kept->updates),
        .steps = atomic_load(&kept->steps),
        .passed = atomic_load(&kept->passed),
        .has_step = step != NULL};
    copy.spec.rows_at = 0;
    copy.has_rule = shard_rule(shard)->kind != OPTIMIZER_NONE;
    if (copy.has_rule != 0) {
        rule_write(shard_rule(shard), copy.rule);
    }
    if (step != NULL) {
        copy.contributions = atomic_load(&step->contributions);
        copy.kind = atomic_load(&step->kind);
        copy.rate = atomic_load(&step->rate);
        copy.dense = atomic_load(&step->dense);
        copy.part = atomic_load(&step->part);
        copy.settled_trust = atomic_load(&step->settled_trust);
        copy.settled_step = atomic_load(&step->settled_step);
        copy.count = atomic_load(&step->count);
    }
    uint64_t elements = element_count(shard);
    CADRE_TRY(store_copy_put(writer, &copy, sizeof copy, error));
    CADRE_TRY(store_copy_put(writer, shard->rows, elements * shard->element_bytes, error));
    for (uint32_t i = 0; i < optimizer_slots(shard_rule(shard)); i++) {
        CADRE_TRY(store_copy_put(writer, shard->slots[i], elements * shard->element_bytes, error));
    }
    if (step != NULL) {
        CADRE_TRY(store_copy_put(writer, shard->sums, elements * shard->sum_bytes, error));
        CADRE_TRY(store_copy_put(writer, shard->touched, touched_bytes(shard), error));
    }
    return CADRE_OK;
}

static cadre_status save_pushes(
    struct writer *writer, const struct store *store, struct cadre_error *error)
{
    for (uint64_t i = 0; store->table != NULL && i < store->table->capacity; i++) {
        const struct image_push *entry = &store->table->entries[i];
        if (!store_copy_counts(store, entry)) {
            continue;
        }
        struct copy_push copy = {.closure = atomic_load(&entry->closure),
            .progress = atomic_load(&entry->progress),
            .count = entry->count,
            .trust = atomic_load(&entry->trust),
            .ordinal = entry->ordinal,
            .shard = entry->shard,
            .synchronous = entry->synchronous};
        CADRE_TRY(store_copy_put(writer, &copy, sizeof copy, error));
    }
    return CADRE_OK;
}

static cadre_status save_notes(
    struct writer *writer, const struct store *store, struct cadre_error *error)
{
    const char *name = NULL;
    for (uint32_t i = 0; (name = store_note_at(store, i)) != NULL; i++) {
        size_t bytes = 0;
        const void *text = store_note_find(store, name, &bytes);
        struct copy_note copy = {.bytes = bytes};
        memcpy(copy.name, name, strlen(name));
        CADRE_TRY(store_copy_put(writer, &copy, sizeof copy, error));
        CADRE_TRY(store_copy_put(writer, text, bytes, error));
    }
    return CADRE_OK;
}

cadre_status store_save(
    const struct store *store, store_sink *sink, void *user, struct cadre_error *error)
{
    struct writer writer = {.sink = sink, .user = user};
    struct copy_head head = {.magic = COPY_MAGIC,
        .version = COPY_VERSION,
        .nonce = store->head->nonce,
        .forgotten = atomic_load(&store->head->forgotten),
        .shards = store_count(store)};
    for (uint64_t i = 0; store->table != NULL && i < store->table->capacity; i++) {
        head.pushes += store_copy_counts(store, &store->table->entries[i]);
    }
    while (store_note_at(store, (uint32_t)head.notes) != NULL) {
        head.notes++;
    }
    CADRE_TRY(store_copy_put(&writer, &head, sizeof head, error));
    for (uint32_t i = 0; i < head.shards; i++) {
        CADRE_TRY(save_shard(&writer, store_shard(store, i), error));
    }
    CADRE_TRY(save_pushes(&writer, store, error));
    return save_notes(&writer, store, error);
}

/* ---- loading ---- */

struct reader {
    store_source *source;
    void *user;
    uint64_t sum;
};

static cadre_status store_copy_lost(struct cadre_error *error, const char *what)
{
    return cadre_error_set(error, CADRE_DATA_LOSS,
        "ps: %s in the copy of another server's memory is not what was sent; copy it again", what);
}

static cadre_status store_copy_take(
    struct reader *reader, void *bytes, uint64_t count, const char *what, struct cadre_error *error)
{
    char *at = bytes;
    while (count != 0) {
        size_t chunk = (size_t)(count < CHUNK_BYTES ? count : CHUNK_BYTES);
        CADRE_TRY(reader->source(reader->user, at, chunk, error));
        reader->sum = image_checksum(reader->sum, at, chunk);
        at += chunk;
        count -= chunk;
    }
    uint64_t sum = 0;
    CADRE_TRY(reader->source(reader->user, &sum, sizeof sum, error));
    return sum == reader->sum ? CADRE_OK : store_copy_lost(error, what);
}

static cadre_status load_step(struct store *store, struct reader *reader, struct shard *shard,
    const struct copy_shard *copy, struct cadre_error *error)
{
    bool waits = copy->part != 0 && copy->count == copy->contributions &&
                 copy->settled_step != copy->steps + 1; /* for the ratio of all shards */
    if (shard->spec.dtype == CADRE_BOOL || copy->kind > PUSH_SUB ||
        (copy->contributions != 0 && copy->count >= copy->contributions && !waits)) {
        return store_copy_lost(error, "a step");
    }
    CADRE_TRY(step_ready(store, shard, error));
    atomic_store(&shard->step->contributions, copy->contributions);
    atomic_store(&shard->step->kind, copy->kind);
    atomic_store(&shard->step->rate, copy->rate);
    atomic_store(&shard->step->dense, copy->dense);
    atomic_store(&shard->step->part, copy->part);
    atomic_store(&shard->step->settled_trust, copy->settled_trust);
    atomic_store(&shard->step->settled_step, copy->settled_step);
    atomic_store(&shard->step->count, copy->count);
    CADRE_TRY(store_copy_take(
        reader, shard->sums, element_count(shard) * shard->sum_bytes, "a sum", error));
    return store_copy_take(
        reader, shard->touched, touched_bytes(shard), "what a step touched", error);
}

static cadre_status load_rule(
    struct store *store, uint32_t shard, const uint8_t bytes[RULE_BYTES], struct cadre_error *error)
{
    struct optimizer_rule rule;
    rule_read(bytes, &rule);
    return store_train(store, shard, &rule, error);
}

static cadre_status load_shard(
    struct store *store, struct reader *reader, uint64_t expected, struct cadre_error *error)
{
    struct copy_shard copy;
    struct store_spec spec;
    uint32_t number = 0;
    CADRE_TRY(store_copy_take(reader, &copy, sizeof copy, "a shard", error));
    copy.spec.name[sizeof copy.spec.name - 1] = 0;
    store_spec_of(&copy.spec, &spec);
    CADRE_TRY(store_create(store, &spec, &number, error));
    if (number != expected) {
        return store_copy_lost(error, "a shard that comes twice");
    }
    CADRE_TRY(copy.has_rule != 0 ? load_rule(store, number, copy.rule, error) : CADRE_OK);
    struct shard *shard = store_shard(store, number);
    uint64_t bytes = element_count(shard) * shard->element_bytes;
    CADRE_TRY(store_copy_take(reader, shard->rows, bytes, "a shard's rows", error));
    for (uint32_t i = 0; i < optimizer_slots(shard_rule(shard)); i++) {
        CADRE_TRY(store_copy_take(reader, shard->slots[i], bytes, "an optimizer's slot", error));
    }
    atomic_store(&shard->kept->version, copy.version);
    atomic_store(&shard->kept->updates, copy.updates);
    atomic_store(&shard->kept->steps, copy.steps);
    atomic_store(&shard->kept->passed, copy.passed);
    return copy.has_step != 0 ? load_step(store, reader, shard, &copy, error) : CADRE_OK;
}

static cadre_status load_push(struct store *store, struct reader *reader, struct cadre_error *error)
{
    struct copy_push copy;
    CADRE_TRY(store_copy_take(reader, &copy, sizeof copy, "a push", error));
    if (copy.closure == 0 || copy.closure == IMAGE_PUSH_REMOVED) {
        return store_copy_lost(error, "a push");
    }
    struct push_key key = {.closure = copy.closure, .ordinal = copy.ordinal, .shard = copy.shard};
    struct push_progress progress = {.done = copy.progress,
        .count = copy.count,
        .trust = store_double(copy.trust),
        .synchronous = copy.synchronous != 0};
    CADRE_TRY(applied_claim(store, key, &progress, error));
    applied_release(store, key);
    return CADRE_OK;
}

static cadre_status load_note(struct store *store, struct reader *reader, struct cadre_error *error)
{
    struct copy_note copy;
    CADRE_TRY(store_copy_take(reader, &copy, sizeof copy, "a note", error));
    copy.name[sizeof copy.name - 1] = 0;
    CADRE_FREE_AT_EXIT char *text = copy.bytes < SIZE_MAX ? malloc((size_t)copy.bytes + 1) : NULL;
    if (text == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "ps has no memory for the note `%s`", copy.name);
    }
    CADRE_TRY(store_copy_take(reader, text, copy.bytes, "a note's text", error));
    return store_note(store, copy.name, text, (size_t)copy.bytes, error);
}

static cadre_status load_all(struct store *store, struct reader *reader,
    const struct copy_head *head, struct cadre_error *error)
{
    for (uint64_t i = 0; i < head->shards; i++) {
        CADRE_TRY(load_shard(store, reader, i, error));
    }
    for (uint64_t i = 0; i < head->pushes; i++) {
        CADRE_TRY(load_push(store, reader, error));
    }
    for (uint64_t i = 0; i < head->notes; i++) {
        CADRE_TRY(load_note(store, reader, error));
    }
    return store_recover(store, error);
}

cadre_status store_load(
    struct store *store, store_source *source, void *user, struct cadre_error *error)
{
    struct reader reader = {.source = source, .user = user};
    struct copy_head head;
    if (store_count(store) != 0 || store_note_at(store, 0) != NULL || store->table != NULL) {
        return cadre_error_set(error, CADRE_FAILED_PRECONDITION,
            "ps: a copy is loaded into an empty store, and this one holds %u shards",
            store_count(store));
    }
    CADRE_TRY(store_copy_take(&reader, &head, sizeof head, "the head", error));
    if (head.magic != COPY_MAGIC || head.version != COPY_VERSION) {
        return store_copy_lost(error, "the head");
    }
    atomic_store(&store->head->loading, 1);
    store_order_point();
    CADRE_TRY(load_all(store, &reader, &head, error));
    store_forget(store, head.forgotten);
    store->head->nonce = head.nonce;
    store->head->sum = store_head_sum(store->head);
    store_order_point();
    atomic_store(&store->head->loading, 0);
    return CADRE_OK;
}
