/* SPDX-License-Identifier: Apache-2.0
 * Converts a value's text to its destination, with messages that list what is accepted. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/near_miss.h"
#include "common/base/options_internal.h"

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit time_units[] = {{"us", 1}, {"ms", 1000}, {"s", 1000000},
    {"m", UINT64_C(60000000)}, {"h", UINT64_C(3600000000)}, {NULL, 0}};
static const struct unit byte_units[] = {{"", 1}, {"B", 1}, {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20}, {"GiB", UINT64_C(1) << 30}, {"TiB", UINT64_C(1) << 40}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

#define COMMENT_WIDTH 100

enum parsed_number { NUMBER_GOOD, NUMBER_MALFORMED, NUMBER_OVERFLOW };

static enum parsed_number parse_number(
    const char *text, const struct unit *units, uint64_t *ret_number)
{
    uint64_t number = 0;
    const char *at = text;
    bool overflow = false;
    for (; *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        overflow = overflow || number > (UINT64_MAX - digit) / 10;
        number = number * 10 + digit;
    }
    if (at == text) {
        return NUMBER_MALFORMED;
    }
    for (; units->suffix != NULL; units++) {
        if (strcmp(at, units->suffix) != 0) {
            continue;
        }
        if (overflow || number > UINT64_MAX / units->factor) {
            return NUMBER_OVERFLOW;
        }
        *ret_number = number * units->factor;
        return NUMBER_GOOD;
    }
    if (*at == '\0' && number == 0 && !overflow) { /* a zero duration takes no unit */
        *ret_number = 0;
        return NUMBER_GOOD;
    }
    return NUMBER_MALFORMED;
}

/* The number in the largest unit that divides it, as a user would write it. */
static void write_number(uint64_t number, const struct unit *units, char ret_text[32])
{
    const struct unit *best = units;
    for (const struct unit *unit = units; unit->suffix != NULL; unit++) {
        if (number != 0 && number % unit->factor == 0 && unit->factor > best->factor) {
            best = unit;
        }
    }
    snprintf(ret_text, 32, "%" PRIu64 "%s", number / best->factor, best->suffix);
}

static const struct unit *units_of(enum option_type type)
{
    return type == OPTION_DURATION ? time_units : type == OPTION_BYTES ? byte_units : no_units;
}

static cadre_status assign_number(const struct option_row *row, const char *text, const char *where,
    uint64_t *ret_number, struct cadre_error *error)
{
    static const char *const accepted[] = {[OPTION_U64] = "a whole number",
        [OPTION_DURATION] = "a duration such as 250ms, 5s or 2m",
        [OPTION_BYTES] = "a size such as 4096, 64KiB or 8MiB"};
    const struct unit *units = units_of(row->type);
    uint64_t number = 0;
    enum parsed_number parsed = parse_number(text, units, &number);
    if (parsed == NUMBER_MALFORMED) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s: \"%.64s\" is not %s", where,
            text, accepted[row->type]);
    }
    uint64_t max = row->max == 0 ? UINT64_MAX : row->max;
    if (parsed == NUMBER_OVERFLOW || number < row->min || number > max) {
        char low[32];
        char high[32];
        write_number(row->min, units, low);
        write_number(max, units, high);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s: %.64s is not within %s and %s",
            where, text, low, high);
    }
    *ret_number = number;
    return CADRE_OK;
}

static cadre_status assign_flag(
    const char *text, const char *where, bool *ret_flag, struct cadre_error *error)
{
    static const char *const spellings[] = {"false", "no", "off", "0", "true", "yes", "on", "1"};
    for (size_t i = 0; i < sizeof spellings / sizeof spellings[0]; i++) {
        if (strcmp(text, spellings[i]) == 0) {
            *ret_flag = i >= 4;
            return CADRE_OK;
        }
    }
    return cadre_error_set(
        error, CADRE_INVALID_ARGUMENT, "%s: \"%.64s\" is neither true nor false", where, text);
}

static cadre_status assign_choice(const struct option_row *row, const char *text, const char *where,
    unsigned *ret_choice, struct cadre_error *error)
{
    char all[256] = "";
    size_t used = 0;
    for (unsigned i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(text, row->choices[i]) == 0) {
            *ret_choice = i;
            return CADRE_OK;
        }
        int length =
            snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ", row->choices[i]);
        used += length > 0 && (size_t)length < sizeof all - used ? (size_t)length : 0;
    }
    const char *near = near_miss_find(text, row->choices);
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s: \"%.64s\" is not one of %s%s%s%s",
        where, text, all, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
        near != NULL ? "?" : "");
}

static cadre_status out_of_memory(const char *where, struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "%s: no memory for its value", where);
}

static cadre_status assign_text(
    const char *text, const char *where, char **destination, struct cadre_error *error)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        return out_of_memory(where, error);
    }
    free(*destination);
    *destination = copy;
    return CADRE_OK;
}

static void free_list(struct option_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i]);
    }
    free(list->items);
    *list = (struct option_list){0};
}

/* The first item from a stronger source replaces what weaker ones had listed. */
static cadre_status append_item(const char *text, const char *where, bool replace,
    struct option_list *list, struct cadre_error *error)
{
    if (replace) {
        free_list(list);
    }
    bool full = (list->count & (list->count - 1)) == 0; /* room doubles at each power of two */
    size_t room = list->count == 0 ? 1 : list->count * 2;
    char **items = full ? realloc(list->items, room * sizeof *items) : list->items;
    if (items == NULL) {
        return out_of_memory(where, error);
    }
    list->items = items;
    items[list->count] = strdup(text);
    if (items[list->count] == NULL) {
        return out_of_memory(where, error);
    }
    list->count++;
    return CADRE_OK;
}

cadre_status option_assign(const struct option_table *table, size_t row_index, const char *text,
    const struct option_origin *origin, void *values, struct option_result *result,
    struct cadre_error *error)
{
    const struct option_row *row = &table->rows[row_index];
    enum option_source *source = &result->sources[row_index];
    bool overruled = *source > origin->source;
    void *target = (char *)values + row->offset;
    union {
        bool flag;
        unsigned choice;
        uint64_t number;
    } unused = {0}; /* a value that a stronger source replaces is checked, too */
    switch (row->type) {
    case OPTION_FLAG:
        CADRE_TRY(assign_flag(text, origin->where, overruled ? &unused.flag : target, error));
        break;
    case OPTION_TEXT:
        if (!overruled) {
            CADRE_TRY(assign_text(text, origin->where, target, error));
        }
        break;
    case OPTION_U64:
    case OPTION_DURATION:
    case OPTION_BYTES:
        CADRE_TRY(
            assign_number(row, text, origin->where, overruled ? &unused.number : target, error));
        break;
    case OPTION_CHOICE:
        CADRE_TRY(
            assign_choice(row, text, origin->where, overruled ? &unused.choice : target, error));
        break;
    case OPTION_LIST:
        if (!overruled) {
            CADRE_TRY(append_item(text, origin->where, *source != origin->source, target, error));
        }
        break;
    }
    if (!overruled) {
        *source = origin->source;
    }
    return CADRE_OK;
}

static const char *number_text(const struct option_row *row, const void *target, char buffer[32])
{
    write_number(*(const uint64_t *)target, units_of(row->type), buffer);
    return buffer;
}

static void print_setting(FILE *out, const char *name, const char *value, const char *from)
{
    if (value == NULL) {
        fprintf(out, "# %s is not set\n", name);
    } else if (strpbrk(value, "\r\n") != NULL) {
        fprintf(out, "# %s (%s) spans lines and cannot be written here\n", name, from);
    } else {
        fprintf(out, "# from %s\n%s = %s\n", from, name, value);
    }
}

/* What the option is for, as a comment. */
static void print_comment(FILE *out, const struct option_row *row)
{
    if (row->group != NULL) {
        fprintf(out, "\n# ---- %s ----\n", row->group);
    }
    fputc('\n', out);
    option_print_description(row, out, "# ", COMMENT_WIDTH);
}

void options_print_config(const struct option_table *table, const void *values,
    const struct option_result *result, FILE *out)
{
    static const char *const sources[] = {[OPTION_UNSET] = "nothing",
        [OPTION_DEFAULT] = "default",
        [OPTION_FILE] = "file",
        [OPTION_ENVIRONMENT] = "environment",
        [OPTION_ARGV] = "flag"};
    if (result->config_path[0] != '\0') {
        fprintf(out, "# file: %s\n", result->config_path);
    }
    for (size_t i = 0; i < table->row_count; i++) {
        const struct option_row *row = &table->rows[i];
        const void *target = (const char *)values + row->offset;
        const struct option_list *list = target;
        const char *from = sources[result->sources[i]];
        char number[32];
        print_comment(out, row);
        switch (row->type) {
        case OPTION_FLAG:
            print_setting(out, row->name, *(const bool *)target ? "true" : "false", from);
            break;
        case OPTION_TEXT:
            print_setting(out, row->name, *(char *const *)target, from);
            break;
        case OPTION_U64:
        case OPTION_DURATION:
        case OPTION_BYTES:
            print_setting(out, row->name, number_text(row, target, number), from);
            break;
        case OPTION_CHOICE:
            print_setting(out, row->name, row->choices[*(const unsigned *)target], from);
            break;
        case OPTION_LIST:
            for (size_t item = 0; item < list->count; item++) {
                print_setting(out, row->name, list->items[item], from);
            }
            break;
        }
    }
}

void options_free(const struct option_table *table, void *values)
{
    for (size_t i = 0; i < table->row_count; i++) {
        void *target = (char *)values + table->rows[i].offset;
        if (table->rows[i].type == OPTION_TEXT) {
            free(*(char **)target);
            *(char **)target = NULL;
        } else if (table->rows[i].type == OPTION_LIST) {
            free_list(target);
        }
    }
}
