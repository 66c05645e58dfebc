/* SPDX-License-Identifier: Apache-2.0
 * Rows of unequal length: sentences become tokens, tokens their numbers, a batch of them a ragged
 * value, whose rows are shared out like any others. Each replica counts the tokens of its
 * sentences, and the counts of all are added up. */
#include <cadre/cadre.h>
#include <stdio.h>
#include <string.h>

#include "show.h"

#define TOKENS_MAX 16

static const char *const vocabulary[] = {"a", "the", "cat", "mat", "sat", "on"};
#define IDS (1 + (int64_t)(sizeof vocabulary / sizeof vocabulary[0])) /* 0: any other word */

static const cadre_string sentences[] = {{"the cat sat", 11}, {"a mat", 5}, {"", 0},
    {"the cat sat on the mat", 22}, {"on a mat", 8}, {"hello", 5}};

/* A sentence as its tokens, a vector of strings. */
static cadre_status split(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const cadre_string *sentence = cadre_tensor_const_data(in->tensors[0]);
    const char *at = sentence->bytes, *end = at + sentence->size;
    cadre_string tokens[TOKENS_MAX];
    int64_t count = 0;
    (void)user;
    while (at < end && count < TOKENS_MAX) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        const char *stop = blank != NULL ? blank : end;
        tokens[count++] = (cadre_string){at, (size_t)(stop - at)};
        at = stop + 1;
    }
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_STRING, 1, &count, tokens, &ret_out->tensors[0]);
}

/* The replica's rows: inputs[0] holds all their tokens, inputs[1] says where each row begins. */
static cadre_status count_tokens(
    cadre_replica *replica, cadre_tensor *const inputs[], cadre_tensor *outputs[], void *user)
{
    (void)replica;
    (void)user;
    CADRE_TRY(cadre_tensor_create(CADRE_I64, 1, (int64_t[]){IDS}, &outputs[0]));
    int64_t *counts = cadre_tensor_data(outputs[0]);
    for (int64_t i = 0; i + 1 < cadre_tensor_rows(inputs[1]); i++) {
        cadre_tensor *tokens;
        CADRE_TRY(cadre_ragged_row(inputs[0], inputs[1], i, &tokens));
        const int64_t *ids = cadre_tensor_const_data(tokens);
        for (int64_t k = 0; k < cadre_tensor_count(tokens); k++) {
            counts[ids[k]]++;
        }
        cadre_tensor_release(tokens);
    }
    return CADRE_OK;
}

int main(int argc, char **argv)
{
    const cadre_element_spec tokens = {
        .count = 1, .tensors = {{.dtype = CADRE_STRING, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    cadre_strategy *strategy;
    cadre_lookup *lookup;
    cadre_tensor *texts;
    cadre_distributed_dataset *distributed;
    cadre_per_replica *batch, *counts;
    CADRE_CHECK(cadre_init(&argc, &argv));
    CADRE_CHECK(cadre_strategy_default(&strategy));
    CADRE_CHECK(cadre_lookup_strings(vocabulary, (size_t)IDS - 1, NULL, &lookup));
    CADRE_CHECK(cadre_tensor_from_data(CADRE_STRING, 1, (int64_t[]){6}, sentences, &texts));
    cadre_dataset *data = cadre_dataset_tensor_slices(&texts, 1);
    cadre_tensor_release(texts);
    data = cadre_dataset_map(data, split, NULL, &(cadre_map_options){.output = &tokens});
    data = cadre_dataset_ragged_batch(data, 4, false);
    data = cadre_dataset_map(data, cadre_lookup_map, lookup, NULL); /* of the tokens, all at once */
    CADRE_CHECK(cadre_distribute_dataset(strategy, data, NULL, &distributed));
    while (cadre_next_epoch(distributed, 1, NULL)) {
        while (cadre_next(distributed, &batch) == CADRE_OK) {
            cadre_tensor *all;
            CADRE_CHECK(cadre_value_print(batch, stdout));
            CADRE_CHECK(cadre_run(strategy, count_tokens, NULL, batch, 1, &counts));
            CADRE_CHECK(cadre_reduce(strategy, CADRE_SUM, counts, CADRE_AXIS_NONE, &all));
            show(all);
            printf("\n");
            cadre_tensor_release(all);
        }
    }
    int status = cadre_finish(strategy);
    cadre_lookup_release(lookup); /* after the strategy, whose pipelines use it */
    return status;
}
