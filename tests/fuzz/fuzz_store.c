/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: the memory of a parameter server in which any words are other ones, and any
 * bytes as a copy of a store. It is refused with a sentence, or it can be pushed to, and read. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

#define ROWS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct store *open_at(int fd)
{
    struct store_options options = {.fd = fd, .generation = {.number = 1, .nonce = 1}};
    struct store *store = NULL;
    struct cadre_error error = {0};
    bool kept = false;
    cadre_status status = store_open(&options, &store, &kept, &error);
    CADRE_ASSERT(status == CADRE_OK || (status == CADRE_DATA_LOSS && error.text[0] != 0));
    return store;
}

static void push_to(struct store *store, uint32_t shard, uint64_t closure, bool sparse)
{
    static const int64_t ids[] = {3, 0, 3};
    static const double values[ROWS * 2] = {1, 2, 3};
    struct push push = {.shard = shard,
        .kind = PUSH_UPDATE,
        .closure = closure,
        .sparse = sparse,
        .ids = ids,
        .rows = sparse ? 3 : ROWS,
        .rate = (double)NAN,
        .based_on = PUSH_ANY_VERSION,
        .contributions = shard == 1 ? 2 : 0,
        .step = shard == 1 && store_count(store) > 1 ? store_steps(store, 1) : 0};
    struct pushing pushing;
    if (store_push_begin(store, 0, &push, &pushing, NULL) != CADRE_OK) {
        return;
    }
    const struct store_spec *spec = store_spec(store, shard);
    if (!pushing.applied && spec->row_elements <= 2 && spec->dtype == CADRE_F64) {
        if (!sparse) {
            store_push_block(store, &pushing, values, ROWS - pushing.rows_done);
        } else if (store_push_rows(store, &pushing, values, NULL) != CADRE_OK) {
            return;
        }
        store_push_end(store, &pushing);
    }
}

/* A small store with everything in it, as a process left it that died. */
static void make_sample(int fd)
{
    struct store *store = open_at(fd);
    uint32_t shard = 0;
    struct store_spec spec = {.name = "a", .dtype = CADRE_F64, .rows = ROWS, .row_elements = 2};
    struct optimizer_rule rule = {
        .kind = OPTIMIZER_LAMB, .rate = 1, .beta1 = .5, .beta2 = .5, .epsilon = 1};
    CADRE_ASSERT(store_create(store, &spec, &shard, NULL) == CADRE_OK);
    CADRE_ASSERT(store_train(store, shard, &rule, NULL) == CADRE_OK);
    spec.shard = 1;
    rule.kind = OPTIMIZER_ADAM;
    CADRE_ASSERT(store_create(store, &spec, &shard, NULL) == CADRE_OK);
    CADRE_ASSERT(store_train(store, shard, &rule, NULL) == CADRE_OK);
    CADRE_ASSERT(store_note(store, "a", "note", 4, NULL) == CADRE_OK);
    CADRE_ASSERT(store_note(store, "a", "other", 5, NULL) == CADRE_OK);
    for (uint64_t closure = 1; closure < 4; closure++) {
        push_to(store, 0, closure, closure % 2 == 0);
        push_to(store, 1, closure, closure % 2 == 0);
    }
    store_close(store);
}

#define RECORDS 9

/* Words in the first 2 KiB of a record are replaced: 10 bytes of data say which, and by what. */
static void change_words(struct store *store, const uint8_t *data, size_t size)
{
    const uint64_t records[RECORDS] = {0, store->head->shards, store_shard(store, 0)->kept->next,
        store_shard(store, 0)->kept->rule, store_shard(store, 1)->kept->rule,
        store_shard(store, 1)->kept->step, store->head->notes, store->head->table,
        store->head->journals[0]};
    for (; size >= 10; data += 10, size -= 10) {
        uint64_t at = records[data[0] % RECORDS] + (uint64_t)data[1] * sizeof(uint64_t);
        memcpy(store_at(store, at), data + 2, sizeof(uint64_t));
    }
    store->head->sum = store_head_sum(store->head);
}

static void fuzz_memory(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CADRE_ASSERT(fd >= 0);
    make_sample(fd);
    struct store *sample = open_at(fd);
    change_words(sample, data, size);
    store_close(sample);
    struct store *store = open_at(fd);
    if (store != NULL) {
        for (uint32_t shard = 0; shard < store_count(store) && shard < 2; shard++) {
            push_to(store, shard, 3, false);
            push_to(store, shard, 4, true);
            push_to(store, shard, 5, false);
        }
        store_close(store);
    }
    close(fd);
}

struct stream {
    const uint8_t *bytes;
    size_t count;
};

static cadre_status give(void *user, void *bytes, size_t count, struct cadre_error *error)
{
    struct stream *stream = user;
    if (count > stream->count) {
        return cadre_error_set(error, CADRE_UNAVAILABLE, "the stream has ended");
    }
    memcpy(bytes, stream->bytes, count);
    stream->bytes += count;
    stream->count -= count;
    return CADRE_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 0) {
        fuzz_memory(data + 1, size - 1);
    } else if (size > 0) {
        struct stream stream = {.bytes = data + 1, .count = size - 1};
        struct store *store = open_at(-1);
        (void)store_load(store, give, &stream, NULL);
        store_close(store);
    }
    return 0;
}
