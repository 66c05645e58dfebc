/* SPDX-License-Identifier: Apache-2.0 */
#include "documents.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 4096

struct text {
    char bytes[TEXT_BYTES];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(text->bytes + text->size, TEXT_BYTES - text->size, format, arguments);
    va_end(arguments);
    assert_true(more >= 0 && text->size + (size_t)more < TEXT_BYTES);
    text->size += (size_t)more;
}

static void add_number(struct text *text, const cadre_tensor *tensor, int64_t at)
{
    const void *data = cadre_tensor_const_data(tensor);
    const cadre_string *string = data;
    switch (cadre_tensor_dtype(tensor)) {
    case CADRE_F32:
        add(text, "%g", (double)((const float *)data)[at]);
        break;
    case CADRE_F64:
        add(text, "%g", ((const double *)data)[at]);
        break;
    case CADRE_I64:
        add(text, "%" PRId64, ((const int64_t *)data)[at]);
        break;
    case CADRE_I32:
        add(text, "%" PRId32, ((const int32_t *)data)[at]);
        break;
    case CADRE_U16:
        add(text, "%" PRIu16, ((const uint16_t *)data)[at]);
        break;
    case CADRE_U8:
        add(text, "%" PRIu8, ((const uint8_t *)data)[at]);
        break;
    case CADRE_STRING:
        add(text, "%.*s", (int)string[at].size, string[at].bytes);
        break;
    default:
        fail_msg("no document shows %s", cadre_dtype_name(cadre_tensor_dtype(tensor)));
    }
}

/* The elements from *at on that lie behind one index of the axes before `axis`. */
static void add_axis(struct text *text, const cadre_tensor *tensor, uint32_t axis, int64_t *at)
{
    if (axis == cadre_tensor_rank(tensor)) {
        add_number(text, tensor, (*at)++);
        return;
    }
    add(text, "[");
    for (int64_t i = 0; i < cadre_tensor_dim(tensor, axis); i++) {
        add(text, "%s", i > 0 ? " " : "");
        add_axis(text, tensor, axis + 1, at);
    }
    add(text, "]");
}

static void add_tensor(struct text *text, const cadre_tensor *tensor)
{
    int64_t at = 0;
    add_axis(text, tensor, 0, &at);
}

cadre_tensor *documents_tensor(cadre_dtype dtype, size_t count, const void *values)
{
    cadre_tensor *tensor;
    const int64_t dims[] = {(int64_t)count};
    OK(cadre_tensor_from_data(dtype, 1, dims, values, &tensor));
    return tensor;
}

cadre_tensor *documents_strings(size_t count, const char *const values[])
{
    cadre_string strings[16];
    assert_true(count <= 16);
    for (size_t i = 0; i < count; i++) {
        strings[i] = (cadre_string){values[i], strlen(values[i])};
    }
    return documents_tensor(CADRE_STRING, count, strings);
}

cadre_tensor *rows(int64_t columns, cadre_tensor *tensor)
{
    const int64_t dims[] = {cadre_tensor_count(tensor) / columns, columns};
    cadre_tensor *shaped;
    OK(cadre_tensor_from_data(
        cadre_tensor_dtype(tensor), 2, dims, cadre_tensor_const_data(tensor), &shaped));
    cadre_tensor_release(tensor);
    return shaped;
}

void assert_tensor(const cadre_tensor *tensor, const char *wanted)
{
    struct text text = {.size = 0};
    assert_non_null(tensor);
    add_tensor(&text, tensor);
    assert_string_equal(text.bytes, wanted);
}

void assert_given(cadre_tensor *tensor, const char *wanted)
{
    assert_tensor(tensor, wanted);
    cadre_tensor_release(tensor);
}

void assert_replicas(const cadre_per_replica *value, uint32_t component, const char *wanted)
{
    struct text text = {.size = 0};
    cadre_tensor *const *tensors = cadre_local_results(value, component);
    assert_non_null(tensors);
    for (uint32_t i = 0; i < cadre_per_replica_count(value); i++) {
        add(&text, "%s", i > 0 ? " " : "");
        add_tensor(&text, tensors[i]);
    }
    assert_string_equal(text.bytes, wanted);
}

void assert_elements(cadre_dataset *data, const char *wanted)
{
    struct text text = {.size = 0};
    cadre_iterator *iterator;
    cadre_element element;
    cadre_status status;
    OK(cadre_dataset_iterate(data, 0, &iterator));
    while ((status = cadre_iterator_next(iterator, &element)) == CADRE_OK) {
        for (uint32_t c = 0; c < element.count; c++) {
            add(&text, "%s", c > 0 ? "," : text.size > 0 ? " " : "");
            add_tensor(&text, element.tensors[c]);
        }
        cadre_element_release(&element);
    }
    if (status != CADRE_OUT_OF_RANGE) {
        fail_msg("the dataset ended with %s", cadre_error_message());
    }
    assert_string_equal(text.bytes, wanted);
    cadre_iterator_release(iterator);
    cadre_dataset_release(data);
}

void on_each_replica(cadre_strategy *strategy, cadre_replica_function function, void *user)
{
    OK(cadre_run(strategy, function, user, NULL, 0, NULL));
}

FILE *documents_open(void)
{
    FILE *file = tmpfile();
    assert_non_null(file);
    return file;
}

void documents_check(FILE *file, const char *wanted)
{
    char text[TEXT_BYTES];
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, wanted);
}
