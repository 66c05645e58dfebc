/* SPDX-License-Identifier: Apache-2.0
 * See random_pipelines.h. */
#include "tests/unit/input/random_pipelines.h"

#include <stdio.h>
#include <string.h>

#include "cadre/tfrecord.h"
#include "common/pure/prng.h"
#include "tests/unit/input/cmocka_unit.h"
#include "tests/unit/input/elements.h"
#include "tests/unit/input/scratch_folder.h"
#include "worker/library/device/tensor.h"

#define ELEMENTS_MOST 40
#define STACK_MAX     4

enum step {
    /* sources */
    RANGE,
    SLICES,
    TENSORS,
    TEXT,
    RECORDS,
    NAMES,
    /* of one dataset */
    MAP,
    MAP_PARALLEL,
    RAGGED,
    FILTER,
    ENUMERATE,
    CACHE,
    UNIQUE,
    SHUFFLE,
    SHUFFLE_ALL,
    TAKE,
    SKIP,
    SHARD,
    REPEAT,
    REPEAT_TAKE,
    FLAT_MAP,
    INTERLEAVE,
    INTERLEAVE_PARALLEL,
    BATCH,
    PADDED_BATCH,
    RAGGED_BATCH,
    SPARSE_BATCH,
    UNBATCH,
    PREFETCH,
    ASSERT_CARDINALITY,
    OPTIONS,
    NAMED,
    TWICE, /* the dataset is on the stack once more */
    /* of two */
    ZIP,
    CONCATENATE,
    STEPS
};

static const char *const step_names[STEPS] = {"range", "slices", "tensors", "text", "records",
    "names", "map", "map_parallel", "ragged", "filter", "enumerate", "cache", "unique", "shuffle",
    "shuffle_all", "take", "skip", "shard", "repeat", "repeat_take", "flat_map", "interleave",
    "interleave_parallel", "batch", "padded_batch", "ragged_batch", "sparse_batch", "unbatch",
    "prefetch", "assert_cardinality", "options", "named", "twice", "zip", "concatenate"};

/* --- the functions of the program --- */

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hash = prng_mix(hash ^ ((const uint8_t *)bytes)[i]);
    }
    return hash;
}

static uint64_t hash_element(const cadre_element *element)
{
    uint64_t hash = element->count;
    for (uint32_t i = 0; i < element->count; i++) {
        const cadre_tensor *tensor = element->tensors[i];
        const cadre_string *strings = cadre_tensor_const_data(tensor);
        if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
            hash = hash_bytes(hash, strings, cadre_tensor_bytes(tensor));
            continue;
        }
        for (int64_t k = 0; k < cadre_tensor_count(tensor); k++) {
            hash = hash_bytes(hash, strings[k].bytes, strings[k].size);
        }
    }
    return hash;
}

/* The components backwards. */
static cadre_status turn_round(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    for (uint32_t i = 0; i < in->count; i++) {
        ret_out->tensors[i] = cadre_tensor_retain(in->tensors[in->count - 1 - i]);
    }
    ret_out->count = in->count;
    return CADRE_OK;
}

/* A vector of 1 to 3 numbers. */
static cadre_status make_ragged(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    const uint64_t hash = hash_element(in);
    const int64_t values[3] = {(int64_t)(hash % 10), 11, 12};
    const int64_t dims[1] = {1 + (int64_t)(hash / 10 % 3)};
    ret_out->count = 1;
    return cadre_tensor_from_data(CADRE_I64, 1, dims, values, &ret_out->tensors[0]);
}

static cadre_status keep_most(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)user;
    *ret_keep = hash_element(in) % 3 != 0;
    return CADRE_OK;
}

static cadre_status keep_all(const cadre_element *in, bool *ret_keep, void *user)
{
    (void)in;
    (void)user;
    *ret_keep = true;
    return CADRE_OK;
}

/* The element no, one, two or three times; the types of the components without their sizes. */
static cadre_status expand(const cadre_element *in, cadre_dataset **ret_data, void *user)
{
    (void)user;
    const uint64_t hash = hash_element(in) / 7;
    cadre_element_spec spec = {.count = in->count};
    for (uint32_t i = 0; i < in->count; i++) {
        spec.tensors[i].dtype = cadre_tensor_dtype(in->tensors[i]);
        spec.tensors[i].rank = cadre_tensor_rank(in->tensors[i]);
        spec.tensors[i].composite = tensor_composite(in->tensors[i]);
        for (uint32_t axis = 0; axis < spec.tensors[i].rank; axis++) {
            spec.tensors[i].dims[axis] = CADRE_DIMENSION_ANY;
        }
    }
    const cadre_map_options options = {.output = &spec};
    cadre_dataset *data = cadre_dataset_tensors(in->tensors, in->count);
    data = cadre_dataset_repeat(data, (int64_t)(hash % 4));
    data = hash % 3 == 0 ? cadre_dataset_filter(data, keep_all, NULL) : data;
    /* Twice, so that the components are as they were. */
    data = cadre_dataset_map(data, turn_round, NULL, NULL);
    *ret_data = cadre_dataset_map(data, turn_round, NULL, &options);
    return CADRE_OK;
}

/* --- the steps --- */

void plan_files_make(void)
{
    static const char text[] = "one\ntwo\r\n\nfour\nfive";
    cadre_tfrecord_writer *writer = NULL;
    scratch_write("text", text, sizeof text - 1);
    assert_int_equal(
        cadre_tfrecord_writer_create(scratch_path("records"), CADRE_COMPRESSION_NONE, &writer),
        CADRE_OK);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(cadre_tfrecord_writer_write(writer, "abcdefg", i), CADRE_OK);
    }
    assert_int_equal(cadre_tfrecord_writer_close(writer), CADRE_OK);
}

static cadre_dataset *slices(uint32_t with, bool whole)
{
    static const int64_t numbers[12] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};
    static const cadre_string words[6] = {
        {"x", 1}, {"yy", 2}, {"", 0}, {"yy", 2}, {"z", 1}, {"x", 1}};
    const int64_t dims[2] = {6, 2};
    cadre_tensor *tensors[2] = {NULL, NULL};
    cadre_dataset *data = NULL;
    size_t count = 1 + with % 2;
    const bool words_first = with / 2 % 2 == 1;
    cadre_status status = cadre_tensor_from_data(CADRE_STRING, 1, dims, words, &tensors[1]);
    if (status == CADRE_OK) {
        status = cadre_tensor_from_data(CADRE_I64, 1 + with / 4 % 2, dims, numbers, &tensors[0]);
    }
    if (status == CADRE_OK) {
        cadre_tensor *const *first = words_first ? &tensors[1] : &tensors[0];
        count = words_first ? 1 : count;
        data =
            whole ? cadre_dataset_tensors(first, count) : cadre_dataset_tensor_slices(first, count);
    }
    cadre_tensor_release(tensors[0]);
    cadre_tensor_release(tensors[1]);
    return data;
}

static cadre_dataset *source(enum step step, uint32_t with)
{
    const char *text = scratch_path("text");
    const char *records = scratch_path("records");
    const cadre_list_files_options names = {.shuffle = with % 2 == 1, .seed = with};
    switch (step) {
    case RANGE:
        return cadre_dataset_range(with % 5, with % 5 + 1 + with / 5 % 12, 1 + with / 60 % 2);
    case SLICES:
    case TENSORS:
        return slices(with, step == TENSORS);
    case TEXT:
        return cadre_dataset_text_lines((const char *const[]){text, text}, 1 + with % 2, NULL);
    case RECORDS:
        return cadre_dataset_tfrecord((const char *const[]){records, records}, 1 + with % 2, NULL);
    default:
        return cadre_dataset_list_files((const char *const[]){text, records}, 2, &names);
    }
}

/* Two values that are more than there are elements are of interest too. */
static cadre_dataset *of_elements(enum step step, cadre_dataset *data, uint32_t with)
{
    const uint64_t seed = with;
    const cadre_map_options parallel = {.parallel = 2 + (int32_t)(with % 2)};
    const cadre_element_spec ragged = {
        .count = 1, .tensors = {{.dtype = CADRE_I64, .rank = 1, .dims = {CADRE_DIMENSION_ANY}}}};
    const cadre_map_options output = {.output = &ragged, .parallel = (int32_t)(with % 3)};
    switch (step) {
    case MAP:
        return cadre_dataset_map(data, turn_round, NULL, NULL);
    case MAP_PARALLEL:
        return cadre_dataset_map(data, turn_round, NULL, &parallel);
    case RAGGED:
        return cadre_dataset_map(data, make_ragged, NULL, &output);
    case FILTER:
        return cadre_dataset_filter(data, keep_most, NULL);
    case ENUMERATE:
        return cadre_dataset_enumerate(data, (int64_t)(with % 7) - 3);
    case CACHE:
        return cadre_dataset_cache(data, NULL);
    case UNIQUE:
        return cadre_dataset_unique(data);
    case SHUFFLE:
        return with % 2 == 0 ? cadre_dataset_shuffle(data, 1 + with / 2 % 9, seed, NULL)
                             : cadre_dataset_shuffle(data, 1 + with / 2 % 9, seed,
                                   &(cadre_shuffle_options){.once = true});
    case SHUFFLE_ALL:
        return with % 2 == 0 ? cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed, NULL)
                             : cadre_dataset_shuffle(data, CADRE_SHUFFLE_ALL, seed,
                                   &(cadre_shuffle_options){.once = true});
    case TAKE:
        return cadre_dataset_take(data, 1 + with % 12);
    case SKIP:
        return cadre_dataset_skip(data, with % 6);
    case SHARD:
        return cadre_dataset_shard(data, 1 + with % 3, with / 3 % (1 + with % 3));
    case REPEAT:
        return cadre_dataset_repeat(data, 1 + with % 3);
    default:
        return cadre_dataset_take(cadre_dataset_repeat(data, CADRE_REPEAT_FOREVER), 1 + with % 25);
    }
}

/* Names for as many components as there are, if that is known. */
static cadre_dataset *name_components(cadre_dataset *data, uint32_t with)
{
    static const char *const names[] = {"a", "b/c", "b/d", NULL, "e", "f"};
    const uint32_t most = sizeof names / sizeof names[0];
    cadre_element_spec spec;
    return cadre_dataset_spec(data, &spec) == CADRE_OK && spec.count <= most
               ? cadre_dataset_named(data, names + with % (most - spec.count + 1), spec.count)
               : data;
}

static cadre_dataset *of_one(enum step step, cadre_dataset *data, uint32_t with)
{
    const cadre_interleave_options interleave = {.cycle_length = 1 + with % 4,
        .block_length = 1 + with / 4 % 3,
        .parallel = step == INTERLEAVE_PARALLEL ? 1 + (int32_t)(with / 12 % 3) : 0};
    const cadre_dataset_options options = {.deterministic = with % 2 == 0};
    const cadre_tensor_spec any_row = {
        .rank = 1 + with / 20 % 2, .dims = {CADRE_DIMENSION_ANY, CADRE_DIMENSION_ANY}};
    switch (step) {
    case FLAT_MAP:
        return cadre_dataset_flat_map(data, expand, NULL);
    case INTERLEAVE:
    case INTERLEAVE_PARALLEL:
        return cadre_dataset_interleave(data, expand, NULL, &interleave);
    case BATCH:
        return cadre_dataset_batch(data, 1 + with % 5, with / 5 % 4 == 0);
    case PADDED_BATCH:
        return cadre_dataset_padded_batch(data, 1 + with % 5, NULL, with / 5 % 4 == 0);
    case RAGGED_BATCH:
        return cadre_dataset_ragged_batch(data, 1 + with % 5, with / 5 % 4 == 0);
    case SPARSE_BATCH:
        return cadre_dataset_sparse_batch(data, 1 + with % 5, &any_row, with / 5 % 4 == 0);
    case UNBATCH:
        return cadre_dataset_unbatch(data);
    case PREFETCH:
        return cadre_dataset_prefetch(data, 1 + with % 4);
    case ASSERT_CARDINALITY:
        return cadre_dataset_assert_cardinality(data, with);
    case OPTIONS:
        return cadre_dataset_with_options(data, &options);
    case NAMED:
        return name_components(data, with);
    default:
        return of_elements(step, data, with);
    }
}

struct stack {
    cadre_dataset *data[STACK_MAX];
    size_t count;
};

static void apply(struct stack *stack, const struct plan_step *step, bool in_order)
{
    cadre_dataset **top = stack->count > 0 ? &stack->data[stack->count - 1] : NULL;
    if (step->step < MAP) {
        cadre_dataset *data = source((enum step)step->step, step->with);
        stack->data[stack->count++] = in_order ? in_order_only(data) : data;
    } else if (step->step == TWICE) {
        stack->data[stack->count++] = cadre_dataset_retain(*top);
    } else if (step->step == ZIP) {
        stack->count--;
        top[-1] = cadre_dataset_zip(&top[-1], 2);
    } else if (step->step == CONCATENATE) {
        stack->count--;
        top[-1] = cadre_dataset_concatenate(top[-1], top[0]);
    } else {
        *top = of_one((enum step)step->step, *top, step->with);
    }
}

/* The datasets on the stack above the first are zipped to it. */
static cadre_dataset *finish(struct stack *stack)
{
    cadre_dataset *data =
        stack->count <= 1 ? stack->data[0] : cadre_dataset_zip(stack->data, stack->count);
    stack->count = 0;
    return data;
}

cadre_dataset *plan_build(const struct plan *plan, bool in_order)
{
    struct stack stack = {.data = {NULL}};
    for (size_t i = 0; i < plan->count; i++) {
        apply(&stack, &plan->steps[i], in_order);
    }
    return finish(&stack);
}

/* The uppermost dataset alone. */
static cadre_dataset *build_top(const struct plan *plan)
{
    struct stack stack = {.data = {NULL}};
    for (size_t i = 0; i < plan->count; i++) {
        apply(&stack, &plan->steps[i], false);
    }
    while (stack.count > 1) {
        cadre_dataset_release(stack.data[0]);
        memmove(stack.data, stack.data + 1, --stack.count * sizeof stack.data[0]);
    }
    return stack.data[0];
}

/* --- drawing --- */

/* Elements of one epoch, ELEMENTS_MOST + 1 if there are more, -1 on an error, which is printed by
 * the caller that checks what is not drawn. */
static int count_elements(cadre_dataset *data, uint64_t epoch, char why[CADRE_ERROR_TEXT_BYTES])
{
    struct cadre_error error = {0};
    cadre_iterator *iterator = NULL;
    int count = 0;
    cadre_status status =
        dataset_iterate(data, &(struct pass){.epoch = epoch, .ordered = true}, &iterator, &error);
    while (status == CADRE_OK && count <= ELEMENTS_MOST) {
        cadre_element element = {0};
        status = iterator_next(iterator, &element, NULL, &error);
        count += status == CADRE_OK;
        cadre_element_release(&element);
    }
    cadre_iterator_release(iterator);
    if (status != CADRE_OK && status != CADRE_OUT_OF_RANGE) {
        snprintf(why, CADRE_ERROR_TEXT_BYTES, "%s", error.text);
        return -1;
    }
    return count;
}

/* Whether the pipeline as it is may stay. The number that is asserted is found here. */
static bool may_stay(const struct plan *plan)
{
    char why[CADRE_ERROR_TEXT_BYTES] = "";
    cadre_element_spec spec;
    struct cadre_error error = {0};
    cadre_dataset *data = plan_build(plan, false);
    int first = count_elements(data, 0, why);
    int second = first < 0 ? -1 : count_elements(data, 1, why);
    bool good = first > 0 && first <= ELEMENTS_MOST && second >= 0 && second <= ELEMENTS_MOST;
    if (good && dataset_spec(data, &spec, &error) != CADRE_OK) {
        snprintf(why, CADRE_ERROR_TEXT_BYTES, "%s", error.text);
        good = false;
    }
    if (why[0] != '\0' && getenv("CADRE_SHOW_PLANS") != NULL) {
        printf("not drawn: %s: %s\n", plan_text(plan), why);
    }
    cadre_dataset_release(data);
    return good;
}

static void draw_step(
    const struct plan *plan, size_t stacked, struct prng *prng, struct plan_step *ret_step)
{
    ret_step->with = (uint32_t)prng_uniform(prng, 10000);
    ret_step->step = (uint8_t)(prng_uniform(prng, 8) == 0 ? prng_uniform(prng, MAP)
                                                          : MAP + prng_uniform(prng, STEPS - MAP));
    if (stacked == 0 || (stacked < 2 && ret_step->step >= ZIP)) {
        ret_step->step = (uint8_t)prng_uniform(prng, MAP);
    }
    if (stacked == STACK_MAX && (ret_step->step < MAP || ret_step->step == TWICE)) {
        ret_step->step = ZIP;
    }
    if (ret_step->step == ASSERT_CARDINALITY) {
        char why[CADRE_ERROR_TEXT_BYTES];
        cadre_dataset *data = build_top(plan);
        ret_step->with = (uint32_t)count_elements(data, 0, why);
        cadre_dataset_release(data);
    }
}

void plan_draw(struct plan *plan, uint64_t seed)
{
    struct prng prng = {seed};
    size_t stacked = 0;
    *plan = (struct plan){.count = 0};
    const size_t wanted = 2 + (size_t)prng_uniform(&prng, PLAN_STEPS_MAX - 8);
    for (size_t tries = 0; plan->count < wanted && tries < 10 * PLAN_STEPS_MAX; tries++) {
        struct plan_step *step = &plan->steps[plan->count];
        draw_step(plan, stacked, &prng, step);
        plan->count++;
        if (!may_stay(plan)) {
            plan->count--;
            continue;
        }
        plan->by_index = plan->by_index || step->step == SHUFFLE_ALL ||
                         (step->step == NAMES && step->with % 2 == 1);
        stacked += step->step < MAP || step->step == TWICE ? 1 : 0;
        stacked -= step->step >= ZIP ? 1 : 0;
    }
}

cadre_dataset *rebuild_all(const cadre_dataset *data)
{
    cadre_dataset *inputs[CADRE_ELEMENT_TENSORS_MAX];
    if (data->input_count == 0) {
        return cadre_dataset_retain((cadre_dataset *)(uintptr_t)data);
    }
    assert_true(data->input_count <= CADRE_ELEMENT_TENSORS_MAX);
    for (uint32_t i = 0; i < data->input_count; i++) {
        inputs[i] = rebuild_all(data->inputs[i]);
    }
    assert_non_null(data->ops->rebuild);
    return data->ops->rebuild(data, inputs);
}

const char *plan_text(const struct plan *plan)
{
    static char texts[2][PLAN_STEPS_MAX * 32];
    static size_t next;
    char *text = texts[next++ % 2];
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < plan->count; i++) {
        used += (size_t)snprintf(text + used, sizeof texts[0] - used, "%s%s(%u)", i > 0 ? " " : "",
            step_names[plan->steps[i].step], plan->steps[i].with);
    }
    return text;
}
