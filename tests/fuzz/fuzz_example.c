/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as an example. The parser answers each with a status and a sentence;
 * what is accepted one by one is accepted in a batch, and what was parsed, serialized and parsed
 * again is the same. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cadre/example.h"
#include "common/pure/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Short names, which the fuzzer finds; every type, in lists of any length. */
static const char *const names[] = {"a", "b", "c"};
static const cadre_feature lists[] = {
    {.name = "a", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_I64},
    {.name = "b", .kind = CADRE_FEATURE_SEQUENCE, .dtype = CADRE_F32},
    {.name = "c", .kind = CADRE_FEATURE_VARYING, .dtype = CADRE_STRING},
};
static const cadre_feature fixed[] = {
    {.name = "a", .dtype = CADRE_I64, .rank = 1, .dims = {2}},
    {.name = "c", .dtype = CADRE_STRING},
};

static cadre_example_parser *make(const cadre_feature features[], size_t count)
{
    cadre_example_parser *parser = NULL;
    CADRE_ASSERT(cadre_example_parser_create(features, count, &parser) == CADRE_OK);
    return parser;
}

static void require_equal(const cadre_tensor *a, const cadre_tensor *b)
{
    CADRE_ASSERT(cadre_tensor_count(a) == cadre_tensor_count(b));
    if (cadre_tensor_dtype(a) != CADRE_STRING) {
        CADRE_ASSERT(memcmp(cadre_tensor_const_data(a), cadre_tensor_const_data(b),
                         cadre_tensor_bytes(a)) == 0);
        return;
    }
    const cadre_string *left = cadre_tensor_const_data(a);
    const cadre_string *right = cadre_tensor_const_data(b);
    for (int64_t i = 0; i < cadre_tensor_count(a); i++) {
        CADRE_ASSERT(left[i].size == right[i].size);
        CADRE_ASSERT(memcmp(left[i].bytes, right[i].bytes, left[i].size) == 0);
    }
}

static void require_same_again(const cadre_example_parser *parser, const cadre_element *parsed)
{
    cadre_tensor *example = NULL;
    cadre_element again = {0};
    CADRE_ASSERT(cadre_example_serialize(names, parsed->tensors, 3, &example) == CADRE_OK);
    const cadre_string *text = cadre_tensor_const_data(example);
    CADRE_ASSERT(cadre_example_parse(parser, text->bytes, text->size, &again) == CADRE_OK);
    for (uint32_t i = 0; i < 3; i++) {
        require_equal(parsed->tensors[i], again.tensors[i]);
    }
    cadre_element_release(&again);
    cadre_tensor_release(example);
}

static void parse(const cadre_example_parser *parser, const uint8_t *data, size_t size, bool again)
{
    cadre_element one = {0};
    cadre_element batch = {0};
    cadre_tensor *examples = NULL;
    const int64_t dims[] = {1};
    const cadre_string text = {.bytes = (const char *)data, .size = size};
    CADRE_ASSERT(cadre_tensor_from_data(CADRE_STRING, 1, dims, &text, &examples) == CADRE_OK);
    cadre_status status = cadre_example_parse(parser, data, size, &one);
    if (status != CADRE_OK) {
        CADRE_ASSERT(status == CADRE_INVALID_ARGUMENT || status == CADRE_DATA_LOSS);
        CADRE_ASSERT(cadre_error_message()[0] != '\0' && one.count == 0);
    } else if (again) {
        require_same_again(parser, &one);
    }
    CADRE_ASSERT(cadre_example_parse_batch(parser, examples, &batch) == status);
    if (status == CADRE_OK) {
        require_equal(one.tensors[0], batch.tensors[0]);
    }
    cadre_element_release(&one);
    cadre_element_release(&batch);
    cadre_tensor_release(examples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static cadre_example_parser *list_parser;
    static cadre_example_parser *fixed_parser;
    if (list_parser == NULL) {
        list_parser = make(lists, 3);
        fixed_parser = make(fixed, 2);
    }
    parse(list_parser, data, size, true);
    parse(fixed_parser, data, size, false);
    return 0;
}
