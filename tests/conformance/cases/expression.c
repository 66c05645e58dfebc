/* SPDX-License-Identifier: Apache-2.0
 * Evaluates while it parses: expressions are short, and called for few elements. */
#include "expression.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64

struct parser {
    const char *text;
    const char *at;
    expression_variable variable;
    void *user;
    int depth;
    char *why;
};

static json_t *sum(struct parser *parser);

static json_t *refuse(struct parser *parser, const char *what)
{
    if (parser->why[0] == '\0') {
        snprintf(parser->why, EXPRESSION_WHY_BYTES, "\"%.80s\": %s at character %d", parser->text,
            what, (int)(parser->at - parser->text) + 1);
    }
    return NULL;
}

static char peek(struct parser *parser)
{
    while (*parser->at == ' ') {
        parser->at++;
    }
    return *parser->at;
}

static bool take(struct parser *parser, const char *word)
{
    peek(parser);
    size_t length = strlen(word);
    if (strncmp(parser->at, word, length) != 0) {
        return false;
    }
    parser->at += length;
    return true;
}

/* --- arithmetic --- */

static json_t *integers(struct parser *parser, char sign, json_int_t a, json_int_t b)
{
    json_int_t result = 0;
    bool over = false;
    switch (sign) {
    case '+':
        over = __builtin_add_overflow(a, b, &result);
        break;
    case '-':
        over = __builtin_sub_overflow(a, b, &result);
        break;
    case '*':
        over = __builtin_mul_overflow(a, b, &result);
        break;
    default: /* '|' is //, and % */
        if (b == 0 || (b == -1 && a == INT64_MIN)) {
            return refuse(parser, "a division that has no result");
        }
        result = a / b - (a % b != 0 && (a < 0) != (b < 0));
        result = sign == '|' ? result : a - result * b;
        break;
    }
    return over ? refuse(parser, "a number over 64 bits") : json_integer(result);
}

static json_t *reals(struct parser *parser, char sign, double a, double b)
{
    double result = 0;
    switch (sign) {
    case '+':
        result = a + b;
        break;
    case '-':
        result = a - b;
        break;
    case '*':
        result = a * b;
        break;
    case '/':
        result = a / b;
        break;
    case '|':
        result = floor(a / b);
        break;
    case '%':
        result = a - floor(a / b) * b;
        break;
    default:
        result = pow(a, b);
        break;
    }
    return isfinite(result) ? json_real(result) : refuse(parser, "a number that is not finite");
}

/* A power of integers is one, as long as it fits. */
static json_t *power(struct parser *parser, json_int_t a, json_int_t b)
{
    double result = pow((double)a, (double)b);
    return b >= 0 && fabs(result) < 0x1p52 ? json_integer((json_int_t)result)
                                           : reals(parser, '^', (double)a, (double)b);
}

static json_t *combine(struct parser *parser, char sign, const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b) && sign != '/') {
        json_int_t first = json_integer_value(a);
        json_int_t second = json_integer_value(b);
        return sign == '^' ? power(parser, first, second) : integers(parser, sign, first, second);
    }
    if (json_is_number(a) && json_is_number(b)) {
        return reals(parser, sign, json_number_value(a), json_number_value(b));
    }
    bool lists = json_is_array(a) && json_is_array(b);
    if (!(json_is_array(a) || json_is_array(b)) ||
        !(lists || json_is_number(a) || json_is_number(b)) ||
        (lists && json_array_size(a) != json_array_size(b))) {
        return refuse(parser, "values that do not go together");
    }
    json_t *result = json_array();
    size_t count = json_array_size(json_is_array(a) ? a : b);
    for (size_t i = 0; i < count; i++) {
        json_t *part = combine(parser, sign, json_is_array(a) ? json_array_get(a, i) : a,
            json_is_array(b) ? json_array_get(b, i) : b);
        if (part == NULL) {
            json_decref(result);
            return NULL;
        }
        json_array_append_new(result, part);
    }
    return result;
}

/* Takes both over. */
static json_t *combined(struct parser *parser, char sign, json_t *a, json_t *b)
{
    json_t *result = a == NULL || b == NULL ? NULL : combine(parser, sign, a, b);
    json_decref(a);
    json_decref(b);
    return result;
}

/* --- parts --- */

static json_t *number(struct parser *parser)
{
    char *end = NULL;
    double value = strtod(parser->at, &end);
    size_t length = (size_t)(end - parser->at);
    bool whole = length > 0 && strspn(parser->at, "0123456789") == length && length < 18;
    if (length == 0 || !isfinite(value)) {
        return refuse(parser, "no number");
    }
    parser->at = end;
    return whole ? json_integer((json_int_t)value) : json_real(value);
}

static json_t *string(struct parser *parser)
{
    char quote = *parser->at;
    const char *end = strchr(parser->at + 1, quote);
    if (end == NULL) {
        return refuse(parser, "a string without an end");
    }
    json_t *value = json_stringn(parser->at + 1, (size_t)(end - parser->at) - 1);
    parser->at = end + 1;
    return value != NULL ? value : refuse(parser, "a string that is no UTF-8");
}

/* Up to `close`: values with commas between. *ret_commas: how many. */
static json_t *list(struct parser *parser, const char *close, size_t *ret_commas)
{
    json_t *values = json_array();
    *ret_commas = 0;
    while (!take(parser, close)) {
        json_t *value = sum(parser);
        if (value == NULL) {
            json_decref(values);
            return NULL;
        }
        json_array_append_new(values, value);
        if (take(parser, ",")) {
            (*ret_commas)++;
        } else if (peek(parser) != *close) {
            json_decref(values);
            return refuse(parser, "a comma or a bracket is missing");
        }
    }
    return values;
}

static json_t *parenthesis(struct parser *parser)
{
    size_t commas = 0;
    json_t *values = list(parser, ")", &commas);
    if (values == NULL) {
        return NULL;
    }
    if (commas == 0 && json_array_size(values) == 1) {
        json_t *value = json_incref(json_array_get(values, 0));
        json_decref(values);
        return value;
    }
    return json_pack("{s:o}", "tuple", values);
}

static json_t *name(struct parser *parser)
{
    const char *from = parser->at;
    while (isalnum((unsigned char)*parser->at) || *parser->at == '_') {
        parser->at++;
    }
    json_t *value = parser->variable(from, (size_t)(parser->at - from), parser->user);
    return value != NULL ? json_incref(value) : refuse(parser, "a name that is not known, before");
}

static json_t *element_of(struct parser *parser, json_t *value, json_t *index)
{
    json_t *items = expression_tuple(value) != NULL ? expression_tuple(value) : value;
    json_t *element = NULL;
    if (json_is_array(items) && json_is_integer(index)) {
        json_int_t i = json_integer_value(index);
        i += i < 0 ? (json_int_t)json_array_size(items) : 0;
        element = i < 0 ? NULL : json_incref(json_array_get(items, (size_t)i));
    }
    json_decref(value);
    json_decref(index);
    return element != NULL ? element : refuse(parser, "an element that is not there, before");
}

static json_t *primary(struct parser *parser)
{
    char next = peek(parser);
    json_t *value = NULL;
    size_t commas = 0;
    if (isdigit((unsigned char)next) || next == '.') {
        value = number(parser);
    } else if (next == '"' || next == '\'') {
        value = string(parser);
    } else if (take(parser, "(")) {
        value = parenthesis(parser);
    } else if (take(parser, "[")) {
        value = list(parser, "]", &commas);
    } else if (isalpha((unsigned char)next) || next == '_') {
        value = name(parser);
    } else {
        return refuse(parser, next == '\0' ? "nothing more" : "an unknown character");
    }
    while (value != NULL && take(parser, "[")) {
        json_t *index = sum(parser);
        if (index == NULL || !take(parser, "]")) {
            json_decref(index);
            json_decref(value);
            return refuse(parser, "a bracket is missing");
        }
        value = element_of(parser, value, index);
    }
    return value;
}

static json_t *signed_value(struct parser *parser)
{
    json_t *value = NULL;
    if (++parser->depth > DEPTH_MAX) {
        refuse(parser, "too deep");
    } else if (take(parser, "-")) {
        value = signed_value(parser);
        value = combined(parser, '-', json_integer(0), value);
    } else if (take(parser, "+")) {
        value = signed_value(parser);
    } else {
        value = primary(parser);
        if (value != NULL && take(parser, "**")) {
            json_t *exponent = signed_value(parser);
            value = combined(parser, '^', value, exponent);
        }
    }
    parser->depth--;
    return value;
}

static json_t *product(struct parser *parser)
{
    json_t *value = signed_value(parser);
    while (value != NULL) {
        char sign = take(parser, "//")  ? '|'
                    : take(parser, "*") ? '*'
                    : take(parser, "/") ? '/'
                    : take(parser, "%") ? '%'
                                        : '\0';
        if (sign == '\0') {
            break;
        }
        json_t *other = signed_value(parser);
        value = combined(parser, sign, value, other);
    }
    return value;
}

static json_t *sum(struct parser *parser)
{
    json_t *value = product(parser);
    while (value != NULL) {
        char sign = take(parser, "+") ? '+' : take(parser, "-") ? '-' : '\0';
        if (sign == '\0') {
            break;
        }
        json_t *other = product(parser);
        value = combined(parser, sign, value, other);
    }
    return value;
}

/* --- the whole --- */

json_t *expression_tuple(const json_t *value)
{
    return json_is_object(value) ? json_object_get(value, "tuple") : NULL;
}

json_t *expression_evaluate(
    const char *text, expression_variable variable, void *user, char why[EXPRESSION_WHY_BYTES])
{
    struct parser parser = {
        .text = text, .at = text, .variable = variable, .user = user, .why = why};
    why[0] = '\0';
    if (take(&parser, "lambda")) { /* as Python writes it; the names are the known ones */
        const char *colon = strchr(parser.at, ':');
        parser.at = colon == NULL ? parser.at : colon + 1;
    }
    json_t *value = sum(&parser);
    if (value != NULL && peek(&parser) == ',') { /* a tuple without parentheses */
        json_t *values = json_array();
        json_array_append_new(values, value);
        while (value != NULL && take(&parser, ",")) {
            value = sum(&parser);
            json_array_append_new(values, value == NULL ? json_null() : value);
        }
        value = value == NULL ? (json_decref(values), NULL) : json_pack("{s:o}", "tuple", values);
    }
    if (value != NULL && peek(&parser) != '\0') {
        json_decref(value);
        return refuse(&parser, "something behind the end");
    }
    return value;
}
