/* SPDX-License-Identifier: Apache-2.0
 * Maps of cases: an expression over the components of an element. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets.h"
#include "expression.h"

struct mapping {
    const char *text;
    cadre_dtype reals;
    char structure[STRUCTURE_BYTES];
};

struct arguments {
    json_t *whole;  /* the element */
    json_t *values; /* of its components, or NULL for a single one */
};

/* x and y, or a and b, are the parts of a tuple; a single value is any of x and a. */
static json_t *argument(const char *name, size_t length, void *user)
{
    const struct arguments *arguments = user;
    static const char names[] = "xyz";
    static const char others[] = "abc";
    if (length != 1) {
        return NULL;
    }
    const char *at = strchr(names, *name);
    at = at != NULL ? at : strchr(others, *name);
    if (at == NULL) {
        return NULL;
    }
    size_t number = (size_t)(at - (strchr(names, *name) != NULL ? names : others));
    return arguments->values != NULL ? json_array_get(arguments->values, number)
           : number == 0             ? arguments->whole
                                     : NULL;
}

static json_t *evaluate(
    const struct mapping *mapping, const cadre_element *in, char why[EXPRESSION_WHY_BYTES])
{
    struct arguments arguments = {.whole = value_of_components(in->tensors, mapping->structure)};
    arguments.values = mapping->structure[0] == '(' ? arguments.whole : NULL;
    json_t *value = expression_evaluate(mapping->text, argument, &arguments, why);
    json_decref(arguments.whole);
    return value;
}

/* The tensors of a value, tuples opened. */
static cadre_status take_tensors(
    const struct mapping *mapping, const json_t *value, cadre_element *ret_out)
{
    const json_t *parts = expression_tuple(value);
    for (size_t i = 0; i < json_array_size(parts); i++) {
        CADRE_TRY(take_tensors(mapping, json_array_get(parts, i), ret_out));
    }
    if (parts != NULL) {
        return CADRE_OK;
    }
    if (ret_out->count == CADRE_ELEMENT_TENSORS_MAX ||
        !value_to_tensor(value, mapping->reals, &ret_out->tensors[ret_out->count])) {
        return cadre_fail(CADRE_INTERNAL, "\"%s\" does not give a tensor", mapping->text);
    }
    ret_out->count++;
    return CADRE_OK;
}

static cadre_status call(const cadre_element *in, cadre_element *ret_out, void *user)
{
    const struct mapping *mapping = user;
    char why[EXPRESSION_WHY_BYTES];
    json_t *value = evaluate(mapping, in, why);
    if (value == NULL) {
        return cadre_fail(CADRE_INTERNAL, "%s", why);
    }
    cadre_status status = take_tensors(mapping, value, ret_out);
    json_decref(value);
    return status;
}

/* How the result is nested, from that of one element. */
static bool write_structure(const json_t *value, char *to, size_t *used)
{
    const json_t *parts = expression_tuple(value);
    if (*used + 3 > STRUCTURE_BYTES) {
        return false;
    }
    to[(*used)++] = parts == NULL ? 'x' : '(';
    for (size_t i = 0; i < json_array_size(parts); i++) {
        if (!write_structure(json_array_get(parts, i), to, used)) {
            return false;
        }
    }
    if (parts != NULL) {
        to[(*used)++] = ')';
    }
    to[*used] = '\0';
    return *used < STRUCTURE_BYTES - 1;
}

/* An expression that is only the name of the element, of which nothing is left out. */
static cadre_status pass_on(const cadre_element *in, cadre_element *ret_out, void *user)
{
    (void)user;
    ret_out->count = in->count;
    for (uint32_t i = 0; i < in->count; i++) {
        ret_out->tensors[i] = cadre_tensor_retain(in->tensors[i]);
    }
    return CADRE_OK;
}

bool dataset_map_expression(struct conformance_case *self, const char *text, cadre_dtype reals,
    struct case_dataset *dataset)
{
    if (strcmp(text, "x") == 0) {
        dataset->data = cadre_dataset_map(dataset->data, pass_on, NULL, NULL);
        return true;
    }
    struct mapping *mapping = case_alloc(self, 1, sizeof *mapping);
    mapping->text = text;
    mapping->reals = reals;
    memcpy(mapping->structure, dataset->structure, STRUCTURE_BYTES);
    /* Tried with the first element, if there is one: what cannot be evaluated is no failure. */
    cadre_iterator *iterator = NULL;
    cadre_element first = {0};
    if (dataset->data != NULL && cadre_dataset_iterate(dataset->data, 0, &iterator) == CADRE_OK &&
        cadre_iterator_next(iterator, &first) == CADRE_OK) {
        char why[EXPRESSION_WHY_BYTES];
        size_t used = 0;
        json_t *value = evaluate(mapping, &first, why);
        bool evaluated = value != NULL && write_structure(value, dataset->structure, &used);
        json_decref(value);
        if (!evaluated) {
            case_skip(self, "%s", value == NULL ? why : "a structure of too many parts");
        }
    }
    cadre_element_release(&first);
    cadre_iterator_release(iterator);
    dataset->data = cadre_dataset_map(dataset->data, call, mapping, NULL);
    return self->verdict == VERDICT_PASSED;
}
