/* SPDX-License-Identifier: Apache-2.0
 * See store_fixture.h. */
#include "store_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "worker/library/ps/store/store_image.h"

struct store *fixture_store_open(int fd)
{
    struct store_options options = {.fd = fd, .generation = {.number = 1, .nonce = 2}};
    struct store *store = NULL;
    bool kept = false;
    struct cadre_error error = {0};
    assert_ok(store_open(&options, &store, &kept, &error), &error);
    return store;
}

int fixture_store_memory(void)
{
    int fd = memfd_create("store", MFD_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

struct optimizer_rule fixture_store_rule(enum optimizer_kind kind)
{
    return (struct optimizer_rule){.kind = kind,
        .rate = 0.5,
        .momentum = 0.5,
        .rho = 0.75,
        .initial_accumulator = 0.25,
        .beta1 = 0.75,
        .beta2 = 0.875,
        .epsilon = 0.125};
}

uint32_t fixture_store_create(struct store *store, const char *name, cadre_dtype dtype,
    uint64_t rows, uint64_t row_elements, enum optimizer_kind kind)
{
    struct store_spec spec = {.dtype = dtype, .rows = rows, .row_elements = row_elements};
    struct optimizer_rule rule = fixture_store_rule(kind);
    snprintf(spec.name, sizeof spec.name, "%s", name);
    struct cadre_error error = {0};
    uint32_t shard = UINT32_MAX;
    assert_ok(store_create(store, &spec, &shard, &error), &error);
    if (kind != OPTIMIZER_NONE) {
        assert_ok(store_train(store, shard, &rule, &error), &error);
    }
    return shard;
}

cadre_status fixture_store_push_blocks(struct store *store, uint32_t thread,
    const struct push *push, const void *values, uint64_t block_rows, struct cadre_error *error)
{
    struct pushing pushing;
    CADRE_TRY(store_push_begin(store, thread, push, &pushing, error));
    const struct store_spec *spec = store_spec(store, push->shard);
    uint64_t row_bytes = spec->row_elements * cadre_dtype_bytes(spec->dtype);
    if (push->sparse && !pushing.applied) {
        CADRE_TRY(store_push_rows(store, &pushing, values, error));
    }
    while (!pushing.applied && pushing.rows_done < push->rows) {
        uint64_t left = push->rows - pushing.rows_done;
        store_push_block(store, &pushing, (const char *)values + pushing.rows_done * row_bytes,
            block_rows != 0 && block_rows < left ? block_rows : left);
    }
    store_push_end(store, &pushing);
    return CADRE_OK;
}

void fixture_store_push(struct store *store, const struct push *push, const void *values)
{
    struct cadre_error error = {0};
    assert_ok(fixture_store_push_blocks(store, 0, push, values, 0, &error), &error);
}

uint64_t fixture_store_digest(const struct store *store)
{
    uint64_t sum = store_count(store);
    for (uint32_t i = 0; i < store_count(store); i++) {
        const struct store_spec *spec = store_spec(store, i);
        size_t bytes = (size_t)(spec->rows * spec->row_elements) * cadre_dtype_bytes(spec->dtype);
        sum = image_checksum(sum, store_rows(store, i, 0, spec->rows), bytes);
        for (uint32_t slot = 0; store_slot(store, i, slot) != NULL; slot++) {
            sum = image_checksum(sum, store_slot(store, i, slot), bytes);
        }
        const uint64_t counts[] = {
            store_version(store, i), store_updates(store, i), store_steps(store, i)};
        sum = image_checksum(sum, counts, sizeof counts);
    }
    const char *name = NULL;
    for (uint32_t i = 0; (name = store_note_at(store, i)) != NULL; i++) {
        size_t count = 0;
        const void *text = store_note_find(store, name, &count);
        sum = image_checksum(image_checksum(sum, name, strlen(name)), text, count);
    }
    return sum;
}
