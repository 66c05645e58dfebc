/* SPDX-License-Identifier: Apache-2.0
 * Optimizers of shards: given once, at any time after a shard was made. Rule and slots are whole
 * before the shard has them: a process that dies before that has only used memory. */
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/ps/store/store_internal.h"

static cadre_status store_train_check(
    const struct shard *shard, const struct optimizer_rule *rule, struct cadre_error *error)
{
    if (shard->spec.dtype != CADRE_F32 && shard->spec.dtype != CADRE_F64) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s`: optimizers need f32 or f64, and it is %s; assign it instead", shard->spec.name,
            cadre_dtype_name(shard->spec.dtype));
    }
    if (rule->kind == OPTIMIZER_NONE) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "`%s` is given an optimizer of no kind; leave it without one", shard->spec.name);
    }
    cadre_status status = optimizer_check(rule, error);
    return status == CADRE_OK ? CADRE_OK
                              : cadre_error_wrap(error, status, "`%s`", shard->spec.name);
}

static void store_train_fill(char *slot, cadre_dtype dtype, double value, uint64_t elements)
{
    for (uint64_t i = 0; value != 0 && i < elements; i++) {
        if (dtype == CADRE_F64) {
            ((double *)(void *)slot)[i] = value;
        } else {
            ((float *)(void *)slot)[i] = (float)value;
        }
    }
}

static cadre_status make_rule(struct store *store, struct shard *shard,
    const struct optimizer_rule *rule, struct cadre_error *error)
{
    uint32_t slots = optimizer_slots(rule);
    uint64_t elements = shard->spec.rows * shard->row_elements;
    uint64_t bytes = store_aligned(elements * shard->element_bytes);
    uint64_t record = store_aligned(sizeof(struct image_rule));
    uint64_t at = 0;
    CADRE_TRY(store_alloc(store, record + slots * bytes, &at, error,
        "the slots of the optimizer of " SHARD_TEXT, SHARD_ARGS(shard)));
    struct image_rule *kept = store_at(store, at);
    rule_write(rule, kept->bytes);
    for (uint32_t i = 0; i < slots; i++) {
        kept->slots_at[i] = at + record + i * bytes;
        store_train_fill(store_at(store, kept->slots_at[i]), shard->spec.dtype,
            optimizer_slot_initial(rule, i), elements);
    }
    kept->sum = image_checksum(at, kept->slots_at, sizeof kept->slots_at + sizeof kept->bytes);
    store_order_point();
    /* No piece is changed meanwhile: its journal has old values of all slots, or of none. */
    pthread_mutex_lock(&shard->lock);
    atomic_store_explicit(&shard->kept->rule, at, memory_order_release);
    store_order_point();
    shard_view_rule(store, shard, kept);
    pthread_mutex_unlock(&shard->lock);
    return CADRE_OK;
}

static bool is_same(const struct optimizer_rule *a, const struct optimizer_rule *b)
{
    uint8_t one[RULE_BYTES];
    uint8_t other[RULE_BYTES];
    rule_write(a, one);
    rule_write(b, other);
    return memcmp(one, other, sizeof one) == 0;
}

cadre_status store_train(struct store *store, uint32_t shard, const struct optimizer_rule *rule,
    struct cadre_error *error)
{
    CADRE_ASSERT(shard < store_count(store));
    struct shard *one = store_shard(store, shard);
    CADRE_TRY(store_train_check(one, rule, error));
    pthread_mutex_lock(&store->creation);
    cadre_status status = CADRE_OK;
    if (shard_rule(one)->kind == OPTIMIZER_NONE) {
        status = make_rule(store, one, rule, error);
    } else if (!is_same(shard_rule(one), rule)) {
        status = cadre_error_set(error, CADRE_ALREADY_EXISTS,
            SHARD_TEXT " has an optimizer already, of another kind or with other numbers; give it "
                       "the same one, or another rate with each push",
            SHARD_ARGS(one));
    }
    pthread_mutex_unlock(&store->creation);
    return status;
}
