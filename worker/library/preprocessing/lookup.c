/* SPDX-License-Identifier: Apache-2.0
 * Making lookups: vocabularies and plain tables. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/fault.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/lookup_internal.h"
#include "worker/library/preprocessing/publish_error.h"
#include "worker/library/preprocessing/vocabulary_file.h"

#define OOV_IDS_MAX TOKENS_MAX

/* Zeroed but for one reference; NULL without memory. */
static cadre_lookup *lookup_new(struct cadre_error *error)
{
    cadre_lookup *lookup = fault_point("preprocessing.malloc") ? NULL : calloc(1, sizeof *lookup);
    if (lookup == NULL) {
        cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a lookup");
        return NULL;
    }
    return lookup;
}

void cadre_lookup_release(cadre_lookup *lookup)
{
    if (lookup == NULL) {
        return;
    }
    token_table_free(&lookup->table);
    cadre_tensor_release(lookup->special);
    cadre_tensor_release(lookup->values);
    cadre_tensor_release(lookup->missing);
    free(lookup);
}

int64_t cadre_lookup_size(const cadre_lookup *lookup)
{
    if (lookup == NULL) {
        return 0;
    }
    int64_t count = token_table_count(&lookup->table);
    return lookup->values != NULL ? count : count + lookup->masked + lookup->oov_ids;
}

/* Ids that come before those of the vocabulary. */
static int64_t first_ids(const cadre_lookup_options *options)
{
    int64_t oov_ids = options->oov_ids == 0 ? 1 : options->oov_ids;
    oov_ids = oov_ids == CADRE_LOOKUP_NO_OOV ? 0 : oov_ids;
    return oov_ids + (options->mask_string != NULL || options->mask_integer != NULL);
}

int64_t lookup_capacity(const cadre_lookup_options *options)
{
    return options->max_tokens == 0 ? TOKENS_MAX - 1 : options->max_tokens - first_ids(options);
}

/* The options of strings are not those of integers. */
cadre_status lookup_check_options(
    const cadre_lookup_options *options, bool strings, struct cadre_error *error)
{
    const void *others[2] = {options->mask_integer, options->oov_integer};
    if (!strings) {
        others[0] = options->mask_string;
        others[1] = options->oov_string;
    }
    if (others[0] != NULL || others[1] != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the vocabulary is of %s, and the %s of the options is for one of %s; set %s instead",
            strings ? "strings" : "integers",
            others[0] != NULL ? (strings ? "mask_integer" : "mask_string")
                              : (strings ? "oov_integer" : "oov_string"),
            strings ? "integers" : "strings",
            others[0] != NULL ? (strings ? "mask_string" : "mask_integer")
                              : (strings ? "oov_string" : "oov_integer"));
    }
    if (options->oov_ids < CADRE_LOOKUP_NO_OOV || options->oov_ids > OOV_IDS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%" PRId64 " ids for unknown tokens are not possible; ask for 1 to %" PRId64
            ", or for CADRE_LOOKUP_NO_OOV",
            options->oov_ids, OOV_IDS_MAX);
    }
    if (lookup_capacity(options) < 1) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "max_tokens is %" PRId64 ", and %" PRId64
            " ids are the mask's and those of unknown tokens; leave room for a token, or 0 for any "
            "number",
            options->max_tokens, first_ids(options));
    }
    return CADRE_OK;
}

cadre_status lookup_special_tokens(cadre_dtype dtype, const cadre_lookup_options *options,
    cadre_tensor **ret_special, struct cadre_error *error)
{
    const int64_t two = 2;
    if (dtype == CADRE_STRING) {
        const char *texts[2] = {options->mask_string != NULL ? options->mask_string : "",
            options->oov_string != NULL ? options->oov_string : "[UNK]"};
        const cadre_string tokens[2] = {{texts[0], strlen(texts[0])}, {texts[1], strlen(texts[1])}};
        return tensor_from_data(dtype, 1, &two, tokens, ret_special, error);
    }
    const int64_t tokens[2] = {options->mask_integer != NULL ? *options->mask_integer : 0,
        options->oov_integer != NULL ? *options->oov_integer : -1};
    return tensor_from_data(dtype, 1, &two, tokens, ret_special, error);
}

/* The mask and the OOV token: two tokens that may not be in the vocabulary. */
static cadre_status set_special(
    cadre_lookup *lookup, const cadre_lookup_options *options, struct cadre_error *error)
{
    cadre_dtype dtype = token_table_dtype(&lookup->table);
    const char *names[2] = {[LOOKUP_MASK] = "the mask", [LOOKUP_OOV] = "the OOV token"};
    CADRE_TRY(lookup_special_tokens(dtype, options, &lookup->special, error));
    uint32_t numbers[2];
    uint64_t hashes[2];
    const void *special = cadre_tensor_const_data(lookup->special);
    token_table_find(&lookup->table, special, 2, numbers, hashes);
    for (int i = 0; i < 2; i++) {
        bool set = i == LOOKUP_MASK ? lookup->masked : lookup->oov_ids > 0;
        if (set && numbers[i] != TOKEN_UNKNOWN) {
            char text[TOKEN_TEXT_BYTES];
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s, token %" PRIu32 " of the vocabulary, is %s, which gets an id by itself; leave "
                "it out of the vocabulary, or name another one in the options",
                token_text(dtype, special, i, text), numbers[i] + 1, names[i]);
        }
    }
    return CADRE_OK;
}

cadre_status lookup_make(const cadre_tensor *tokens, const cadre_lookup_options *options,
    cadre_lookup **ret_lookup, struct cadre_error *error)
{
    const cadre_lookup_options defaults = {0};
    options = options != NULL ? options : &defaults;
    CADRE_TRY(lookup_check_options(options, cadre_tensor_dtype(tokens) == CADRE_STRING, error));
    if (cadre_tensor_count(tokens) > lookup_capacity(options)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the vocabulary has %" PRId64 " tokens, and max_tokens %" PRId64
            " has room for %" PRId64 ", as the mask and unknown tokens have ids too",
            cadre_tensor_count(tokens), options->max_tokens, lookup_capacity(options));
    }
    cadre_lookup *lookup = lookup_new(error);
    if (lookup == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    lookup->masked = options->mask_string != NULL || options->mask_integer != NULL;
    lookup->oov_ids = first_ids(options) - lookup->masked;
    cadre_status status = token_table_make(tokens, "token", &lookup->table, error);
    if (status == CADRE_OK) {
        status = set_special(lookup, options, error);
    }
    if (status != CADRE_OK) {
        cadre_lookup_release(lookup);
        return status;
    }
    *ret_lookup = lookup;
    return CADRE_OK;
}

cadre_status cadre_lookup_create(
    const cadre_tensor *tokens, const cadre_lookup_options *options, cadre_lookup **ret_lookup)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_lookup, __func__, "ret_lookup", &error);
    if (status == CADRE_OK) {
        *ret_lookup = NULL;
        status = tensor_require(tokens, __func__, "tokens", &error);
    }
    if (status == CADRE_OK) {
        status = lookup_make(tokens, options, ret_lookup, &error);
    }
    return publish_error(status, &error);
}

static cadre_status tensor_of(
    const char *const tokens[], size_t count, cadre_tensor **ret_tokens, struct cadre_error *error)
{
    const int64_t rows = (int64_t)count;
    CADRE_FREE_AT_EXIT cadre_string *strings =
        count > TOKENS_MAX || fault_point("preprocessing.malloc")
            ? NULL
            : calloc(count + 1, sizeof *strings);
    if (strings == NULL) {
        return cadre_error_set(
            error, CADRE_RESOURCE_EXHAUSTED, "no memory for a vocabulary of %zu tokens", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (tokens[i] == NULL) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "token %zu of the vocabulary is NULL; give it a string", i + 1);
        }
        strings[i] = (cadre_string){.bytes = tokens[i], .size = strlen(tokens[i])};
    }
    return tensor_from_data(CADRE_STRING, 1, &rows, strings, ret_tokens, error);
}

cadre_status cadre_lookup_strings(const char *const tokens[], size_t count,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup)
{
    struct cadre_error error = {0};
    cadre_tensor *list = NULL;
    cadre_status status = argument_require(ret_lookup, __func__, "ret_lookup", &error);
    if (status == CADRE_OK) {
        *ret_lookup = NULL;
        status = argument_require(tokens, __func__, "tokens", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_of(tokens, count, &list, &error);
    }
    if (status == CADRE_OK) {
        status = lookup_make(list, options, ret_lookup, &error);
    }
    cadre_tensor_release(list);
    return publish_error(status, &error);
}

cadre_status cadre_lookup_file(const char *path, cadre_dtype dtype,
    const cadre_lookup_options *options, cadre_lookup **ret_lookup)
{
    struct cadre_error error = {0};
    cadre_tensor *list = NULL;
    cadre_status status = argument_require(ret_lookup, __func__, "ret_lookup", &error);
    if (status == CADRE_OK) {
        *ret_lookup = NULL;
        status = argument_require(path, __func__, "path", &error);
    }
    if (status == CADRE_OK) {
        status = vocabulary_file_read(path, dtype, &list, &error);
    }
    if (status == CADRE_OK) {
        status = lookup_make(list, options, ret_lookup, &error);
        if (status != CADRE_OK) {
            cadre_error_wrap(&error, status, "%s", path);
        }
    }
    cadre_tensor_release(list);
    return publish_error(status, &error);
}

static cadre_status check_values(const cadre_tensor *keys, const cadre_tensor *values,
    const cadre_tensor *missing, struct cadre_error *error)
{
    char shape[TENSOR_SHAPE_TEXT_BYTES];
    if (cadre_tensor_rank(values) != 1 || cadre_tensor_count(values) != cadre_tensor_count(keys)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "a table of %" PRId64 " keys was given values of %s; it takes one value for each key",
            cadre_tensor_count(keys),
            tensor_shape_text(cadre_tensor_dtype(values), cadre_tensor_rank(values),
                cadre_tensor_dims(values), shape));
    }
    if (cadre_tensor_rank(missing) != 0 ||
        cadre_tensor_dtype(missing) != cadre_tensor_dtype(values)) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "the value for missing keys is %s, and must be a scalar of %s as the values are",
            tensor_shape_text(cadre_tensor_dtype(missing), cadre_tensor_rank(missing),
                cadre_tensor_dims(missing), shape),
            cadre_dtype_name(cadre_tensor_dtype(values)));
    }
    return CADRE_OK;
}

static cadre_status make_table(const cadre_tensor *keys, const cadre_tensor *values,
    const cadre_tensor *missing, cadre_lookup **ret_lookup, struct cadre_error *error)
{
    CADRE_TRY(check_values(keys, values, missing, error));
    cadre_lookup *lookup = lookup_new(error);
    if (lookup == NULL) {
        return CADRE_RESOURCE_EXHAUSTED;
    }
    cadre_status status = token_table_make(keys, "key", &lookup->table, error);
    if (status == CADRE_OK) {
        status = tensor_copy(values, &lookup->values, error);
    }
    if (status == CADRE_OK) {
        status = tensor_copy(missing, &lookup->missing, error);
    }
    if (status != CADRE_OK) {
        cadre_lookup_release(lookup);
        return status;
    }
    *ret_lookup = lookup;
    return CADRE_OK;
}

cadre_status cadre_lookup_table(const cadre_tensor *keys, const cadre_tensor *values,
    const cadre_tensor *missing, cadre_lookup **ret_lookup)
{
    struct cadre_error error = {0};
    cadre_status status = argument_require(ret_lookup, __func__, "ret_lookup", &error);
    if (status == CADRE_OK) {
        *ret_lookup = NULL;
        status = tensor_require(keys, __func__, "keys", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(values, __func__, "values", &error);
    }
    if (status == CADRE_OK) {
        status = tensor_require(missing, __func__, "missing", &error);
    }
    if (status == CADRE_OK) {
        status = make_table(keys, values, missing, ret_lookup, &error);
    }
    return publish_error(status, &error);
}
