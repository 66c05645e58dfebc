/* SPDX-License-Identifier: Apache-2.0 */
#include "case.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"

#define SHOWN_BYTES 400 /* of a value in a reason */

struct case_item {
    struct case_item *next;
    void *pointer;
    void (*release)(void *);
};

/* --- reasons --- */

static void end(
    struct conformance_case *self, enum verdict verdict, const char *format, va_list arguments)
{
    if (self->verdict == VERDICT_PASSED) {
        self->verdict = verdict;
        vsnprintf(self->why, sizeof self->why, format, arguments);
    }
}

bool case_fail(struct conformance_case *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    end(self, VERDICT_FAILED, format, arguments);
    va_end(arguments);
    return false;
}

bool case_skip(struct conformance_case *self, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    end(self, VERDICT_SKIPPED, format, arguments);
    va_end(arguments);
    return false;
}

bool case_ok(struct conformance_case *self, cadre_status status, const char *what)
{
    return status == CADRE_OK || case_fail(self, "%s gave %s: %s", what, cadre_status_name(status),
                                     cadre_error_message());
}

/* --- memory --- */

void *case_keep(struct conformance_case *self, void *pointer, void (*release)(void *))
{
    if (pointer == NULL) {
        return NULL;
    }
    struct case_item *item = malloc(sizeof *item);
    if (item == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    *item = (struct case_item){self->items, pointer, release};
    self->items = item;
    return pointer;
}

void *case_alloc(struct conformance_case *self, size_t count, size_t bytes)
{
    void *memory = calloc(count + 1, bytes);
    if (memory == NULL) {
        fprintf(stderr, "no memory\n");
        exit(2);
    }
    return case_keep(self, memory, free);
}

const char *case_folder(struct conformance_case *self)
{
    if (self->folder == NULL) {
        const char *parent = getenv("TMPDIR");
        char path[512];
        snprintf(path, sizeof path, "%s/cadre-conformance-XXXXXX",
            parent != NULL && strlen(parent) < 400 ? parent : "/tmp");
        if (mkdtemp(path) == NULL) {
            case_fail(self, "no folder for files can be made as %s", path);
            return NULL;
        }
        self->folder = strdup(path);
    }
    return self->folder;
}

void case_end(struct conformance_case *self)
{
    while (self->items != NULL) {
        struct case_item *item = self->items;
        self->items = item->next;
        item->release(item->pointer);
        free(item);
    }
    if (self->folder != NULL) {
        tree_remove(self->folder, NULL);
        free(self->folder);
        self->folder = NULL;
    }
}

/* --- what is given --- */

bool case_knows(struct conformance_case *self, const json_t *object, const char *const known[])
{
    if (!json_is_object(object)) {
        return case_skip(self, "an object was looked for, and something else is there");
    }
    for (void *at = json_object_iter((json_t *)object); at != NULL;
         at = json_object_iter_next((json_t *)object, at)) {
        const char *key = json_object_iter_key(at);
        bool found = strcmp(key, "note") == 0;
        for (size_t i = 0; !found && known[i] != NULL; i++) {
            found = strcmp(key, known[i]) == 0;
        }
        if (!found) {
            return case_skip(self, "the key \"%s\" is not known", key);
        }
    }
    return true;
}

bool case_number(struct conformance_case *self, const json_t *object, const char *key,
    json_int_t least, json_int_t most, json_int_t otherwise, json_int_t *ret_number)
{
    const json_t *number = json_object_get(object, key);
    *ret_number = otherwise;
    if (number == NULL || json_is_null(number)) {
        return true;
    }
    if (!json_is_integer(number) || json_integer_value(number) < least ||
        json_integer_value(number) > most) {
        return case_skip(
            self, "\"%s\" is no number from %lld to %lld", key, (long long)least, (long long)most);
    }
    *ret_number = json_integer_value(number);
    return true;
}

/* --- what is expected --- */

static bool is_hollow(const json_t *value)
{
    for (size_t i = 0; json_is_array(value) && i < json_array_size(value); i++) {
        if (!is_hollow(json_array_get(value, i))) {
            return false;
        }
    }
    return json_is_array(value);
}

static bool alike(const json_t *wanted, const json_t *got)
{
    if (json_is_number(wanted) && json_is_number(got)) {
        if (json_is_integer(wanted) && json_is_integer(got)) {
            return json_integer_value(wanted) == json_integer_value(got);
        }
        double a = json_number_value(wanted);
        double b = json_number_value(got);
        return fabs(a - b) <= 1e-5 * fmax(fabs(a), fabs(b)) + 1e-12;
    }
    if (json_is_array(wanted) && json_is_array(got)) {
        if (json_array_size(wanted) != json_array_size(got)) {
            return json_array_size(wanted) == 0 && is_hollow(got);
        }
        for (size_t i = 0; i < json_array_size(wanted); i++) {
            if (!alike(json_array_get(wanted, i), json_array_get(got, i))) {
                return false;
            }
        }
        return true;
    }
    return json_equal(wanted, got) == 1;
}

static void show(const json_t *value, char text[SHOWN_BYTES])
{
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(7));
    snprintf(text, SHOWN_BYTES - 3, "%s", dump == NULL ? "nothing" : dump);
    if (dump != NULL && strlen(dump) > SHOWN_BYTES - 4) {
        memcpy(text + SHOWN_BYTES - 4, "...", 4);
    }
    free(dump);
}

/* Where two lists begin to differ, so that a long one is not cut before it. */
static size_t first_difference(const json_t *wanted, const json_t *got)
{
    size_t i = 0;
    while (i < json_array_size(wanted) && i < json_array_size(got) &&
           alike(json_array_get(wanted, i), json_array_get(got, i))) {
        i++;
    }
    return i;
}

bool case_equal(
    struct conformance_case *self, const char *what, const json_t *wanted, const json_t *got)
{
    if (alike(wanted, got)) {
        return true;
    }
    char first[SHOWN_BYTES];
    char second[SHOWN_BYTES];
    if (json_array_size(wanted) > 4 && json_array_size(got) > 4) {
        size_t i = first_difference(wanted, got);
        show(json_array_get(wanted, i), first);
        show(json_array_get(got, i), second);
        return case_fail(self, "%s, %zu of %zu (got %zu): expected %s, got %s", what, i,
            json_array_size(wanted), json_array_size(got), first, second);
    }
    show(wanted, first);
    show(got, second);
    return case_fail(self, "%s: expected %s, got %s", what, first, second);
}

const json_t *case_wanted_error(const json_t *expect)
{
    const json_t *error = json_object_get(expect, "error");
    return error != NULL ? error : json_object_get(expect, "raises");
}

bool case_check_error(
    struct conformance_case *self, const json_t *error, cadre_status status, bool early)
{
    const char *got = cadre_status_name(status);
    const json_t *object = json_is_string(error) ? NULL : error;
    const char *wanted =
        json_string_value(object == NULL ? error : json_object_get(object, "code"));
    const char *when = json_string_value(json_object_get(object, "when"));
    if (wanted == NULL) {
        return case_skip(self, "the expected error has no code");
    }
    if (strcmp(got, wanted) != 0) {
        return case_fail(
            self, "expected the error %s, got %s: %s", wanted, got, cadre_error_message());
    }
    if (when != NULL && strcmp(when, "construction") == 0 && !early) {
        return case_fail(self, "expected %s at construction, got it when an element was read: %s",
            wanted, cadre_error_message());
    }
    if (when != NULL && strcmp(when, "first_element") == 0 && early) {
        return case_fail(self, "expected %s at the first element, got it at construction: %s",
            wanted, cadre_error_message());
    }
    return true;
}
