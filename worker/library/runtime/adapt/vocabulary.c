/* SPDX-License-Identifier: Apache-2.0
 * The vocabulary of a whole dataset. Counts are whole numbers, and tokens are sorted at the end, so
 * nothing depends on which task counted what. cadre_lookup_adapt is called by the program. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/base/cleanup.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/lookup_internal.h"
#include "worker/library/preprocessing/token_counts.h"
#include "worker/library/runtime/adapt/adaption.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/collectives/collective.h"

#define BLOCK_ELEMENTS 32
#define BLOCKS         256

struct counting {
    struct adaption base;
    const cadre_lookup_options *options;
    cadre_dtype dtype;          /* CADRE_STRING or CADRE_I64 */
    struct token_counts total;  /* of the rounds before */
    struct token_counts *found; /* [blocks] this round's that this task has found */
    uint32_t locals;
    struct token_counts *mine; /* [locals] of the blocks that the replica sends */
    cadre_tensor **exchanged;  /* [locals] the same as bytes */
    cadre_tensor *all;         /* what all sent, one after the other */
};

/* --- one block --- */

static void empty_block(struct adaption *adaption, uint64_t block)
{
    token_counts_empty(&((struct counting *)adaption)->found[block]);
}

static bool may_be_counted(cadre_dtype of, cadre_dtype dtype)
{
    return of == CADRE_STRING ? dtype == CADRE_STRING : tokens_are_integers(dtype) != 0;
}

static cadre_status add_element(struct adaption *adaption, uint32_t local, uint64_t block,
    const cadre_element *element, uint64_t number, struct cadre_error *error)
{
    (void)local;
    struct counting *self = (struct counting *)adaption;
    const cadre_tensor *tokens =
        adaption->component < element->count ? element->tensors[adaption->component] : NULL;
    if (tokens == NULL || !may_be_counted(self->dtype, cadre_tensor_dtype(tokens))) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "element %" PRIu64 ": component %" PRIu32 " holds no %s as in the first elements",
            number, adaption->component, self->dtype == CADRE_STRING ? "strings" : "integers");
    }
    return token_counts_add(&self->found[block], tokens, error);
}

/* --- one round --- */

static cadre_status vocabulary_prepare(const cadre_strategy *strategy, struct adaption *adaption,
    uint32_t local, struct cadre_error *error)
{
    struct counting *self = (struct counting *)adaption;
    struct token_counts *mine = &self->mine[local];
    token_counts_empty(mine);
    for (uint64_t block = 0; block < adaption->blocks; block++) {
        if (adaption_owns_block(strategy, adaption, local, block)) {
            CADRE_TRY(token_counts_merge(mine, &self->found[block], error));
        }
    }
    cadre_tensor_release(self->exchanged[local]);
    self->exchanged[local] = NULL;
    const int64_t bytes = (int64_t)token_counts_bytes(mine);
    CADRE_TRY(tensor_create(CADRE_U8, 1, &bytes, &self->exchanged[local], error));
    token_counts_write(mine, cadre_tensor_data(self->exchanged[local]));
    return CADRE_OK;
}

static cadre_status vocabulary_exchange(cadre_strategy *strategy, struct adaption *adaption,
    uint32_t local, uint64_t key, struct cadre_error *error)
{
    struct counting *self = (struct counting *)adaption;
    const struct mesh_note note = {.key = key};
    cadre_tensor *all = NULL;
    CADRE_TRY(
        collective_gather(strategy, local, &self->exchanged[local], 1, 0, &note, &all, error));
    if (local != 0) {
        cadre_tensor_release(all);
        return CADRE_OK;
    }
    cadre_tensor_release(self->all);
    self->all = all;
    return CADRE_OK;
}

static cadre_status vocabulary_merge(struct adaption *adaption, struct cadre_error *error)
{
    struct counting *self = (struct counting *)adaption;
    return token_counts_read(&self->total, cadre_tensor_const_data(self->all),
        (size_t)cadre_tensor_count(self->all), error);
}

static const struct adaption_ops vocabulary_ops = {
    .empty = empty_block,
    .add = add_element,
    .prepare = vocabulary_prepare,
    .exchange = vocabulary_exchange,
    .merge = vocabulary_merge,
};

/* --- all of it --- */

static cadre_status check_component(
    const cadre_tensor_spec *spec, struct counting *self, struct cadre_error *error)
{
    if (spec->dtype != CADRE_STRING && tokens_are_integers(spec->dtype) == 0) {
        char shape[TENSOR_SHAPE_TEXT_BYTES];
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "component %" PRIu32 " is %s; tokens are strings or integers, so map it to those first",
            self->base.component, tensor_shape_text(spec->dtype, spec->rank, spec->dims, shape));
    }
    self->dtype = spec->dtype == CADRE_STRING ? CADRE_STRING : CADRE_I64;
    return lookup_check_options(self->options, self->dtype == CADRE_STRING, error);
}

static cadre_status set_up(
    const cadre_strategy *strategy, struct counting *self, struct cadre_error *error)
{
    struct adaption *base = &self->base;
    base->block_elements = BLOCK_ELEMENTS;
    base->blocks = BLOCKS;
    base->key = collective_key(0x766f636162756c61, (uint64_t)self->dtype);
    base->exchanged_text = self->dtype == CADRE_STRING ? "strings" : "integers";
    self->locals = strategy->local_replicas;
    self->found = calloc(BLOCKS, sizeof *self->found);
    self->mine = calloc(self->locals, sizeof *self->mine);
    self->exchanged = calloc(self->locals, sizeof(cadre_tensor *));
    if (self->found == NULL || self->mine == NULL || self->exchanged == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to count tokens");
    }
    self->total.dtype = self->dtype;
    for (size_t i = 0; i < BLOCKS; i++) {
        self->found[i].dtype = self->dtype;
    }
    for (uint32_t i = 0; i < self->locals; i++) {
        self->mine[i].dtype = self->dtype;
    }
    return CADRE_OK;
}

static void vocabulary_clear(struct counting *self)
{
    adaption_end(&self->base);
    token_counts_free(&self->total);
    for (size_t i = 0; self->found != NULL && i < BLOCKS; i++) {
        token_counts_free(&self->found[i]);
    }
    for (uint32_t i = 0; i < self->locals; i++) {
        if (self->mine != NULL) {
            token_counts_free(&self->mine[i]);
        }
        if (self->exchanged != NULL) {
            cadre_tensor_release(self->exchanged[i]);
        }
    }
    free(self->found);
    free(self->mine);
    free(self->exchanged);
    cadre_tensor_release(self->all);
}

static cadre_status vocabulary_make(
    const struct counting *self, cadre_lookup **ret_lookup, struct cadre_error *error)
{
    cadre_tensor *special = NULL;
    cadre_tensor *tokens = NULL;
    CADRE_TRY(lookup_special_tokens(self->dtype, self->options, &special, error));
    /* tf.keras takes its OOV token out whether there is an id for it or not. */
    cadre_tensor *without = NULL;
    bool masked = self->options->mask_string != NULL || self->options->mask_integer != NULL;
    int64_t first = masked ? LOOKUP_MASK : LOOKUP_OOV;
    cadre_status status = tensor_view_rows(special, first, 2 - first, &without, error);
    if (status == CADRE_OK) {
        status = token_counts_vocabulary(
            &self->total, without, lookup_capacity(self->options), &tokens, error);
    }
    if (status == CADRE_OK && cadre_tensor_count(tokens) == 0) {
        status = cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the dataset has no token in its component %" PRIu32 " but the mask and OOV ones, so "
            "there is no vocabulary",
            self->base.component);
    }
    if (status == CADRE_OK) {
        status = lookup_make(tokens, self->options, ret_lookup, error);
    }
    cadre_tensor_release(special);
    cadre_tensor_release(without);
    cadre_tensor_release(tokens);
    return status;
}

static cadre_status vocabulary_adapt(cadre_strategy *strategy, struct counting *self,
    cadre_lookup **ret_lookup, struct cadre_error *error)
{
    cadre_tensor_spec spec;
    self->base.component = self->options->component;
    CADRE_TRY(adaption_check(&self->base, &spec, error));
    CADRE_TRY(check_component(&spec, self, error));
    CADRE_TRY(set_up(strategy, self, error));
    CADRE_TRY(adaption_run(strategy, &self->base, error));
    return vocabulary_make(self, ret_lookup, error);
}

cadre_status cadre_lookup_adapt(cadre_strategy *strategy, cadre_dataset *data,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup)
{
    STRATEGY_CALL call = {0};
    static const cadre_lookup_options defaults = {0};
    struct cadre_error error = {0};
    struct counting self = {
        .base = {.ops = &vocabulary_ops, .name = "cadre_lookup_adapt", .data = data},
        .options = options != NULL ? options : &defaults,
    };
    cadre_status status = argument_require(ret_lookup, __func__, "ret_lookup", &error);
    if (status == CADRE_OK) {
        *ret_lookup = NULL;
        status = strategy_enter(strategy, __func__, &call, &error);
    }
    if (status == CADRE_OK) {
        status = vocabulary_adapt(strategy, &self, ret_lookup, &error);
    }
    vocabulary_clear(&self);
    cadre_dataset_release(data);
    return api_return(status, &error);
}
