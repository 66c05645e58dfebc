/* SPDX-License-Identifier: Apache-2.0
 * Parses a command line and applies the sources of options.h in their order. getopt_long() is
 * not used: it prints its own messages, keeps state between calls, and does not use the table. */
#include "common/base/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/near_miss.h"
#include "common/base/options_internal.h"
#include "common/pure/assert.h"

#define NAME_BYTES_MAX 48

struct command {
    const struct option_table *table;
    int argc;
    char **argv;
    int next;                /* index in argv of the next argument */
    const char *config_path; /* of --config */
    bool print_config;
    void *values;
    struct option_result *result;
    struct cadre_error *error;
};

void option_hint(
    const struct option_table *table, const char *name, const char *dashes, char ret_text[96])
{
    const char *names[OPTION_ROWS_MAX + 5];
    size_t count = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        names[count++] = table->rows[i].name;
    }
    if (dashes[0] != '\0') {
        names[count++] = "help";
        names[count++] = "version";
        names[count++] = table->config ? "config" : "help";
        names[count++] = table->config ? "print-config" : "help";
    }
    names[count] = NULL;
    const char *nearest = near_miss_find(name, names);
    ret_text[0] = '\0';
    if (nearest != NULL) {
        snprintf(ret_text, 96, "; did you mean %s%s?", dashes, nearest);
    }
}

size_t option_find(const struct option_table *table, const char *name, size_t length)
{
    size_t row = 0;
    while (row < table->row_count && (strncmp(table->rows[row].name, name, length) != 0 ||
                                         table->rows[row].name[length] != '\0')) {
        row++;
    }
    return row;
}

/* The value of a flag that takes one: what follows '=', or else the next argument. */
static cadre_status parse_value(struct command *command, const char *flag, const char *metavar,
    const char *attached, const char **ret_value)
{
    if (attached == NULL && command->next >= command->argc) {
        return cadre_error_set(command->error, CADRE_INVALID_ARGUMENT, "%s needs a value: %s %s",
            flag, flag, metavar != NULL ? metavar : "VALUE");
    }
    *ret_value = attached != NULL ? attached : command->argv[command->next++];
    return CADRE_OK;
}

static cadre_status parse_option(
    struct command *command, size_t row_index, const char *flag, const char *attached)
{
    const struct option_row *row = &command->table->rows[row_index];
    const struct option_origin origin = {.source = OPTION_ARGV, .where = flag};
    const char *value = attached != NULL ? attached : "true";
    if (row->type != OPTION_FLAG) {
        CADRE_TRY(parse_value(command, flag, row->metavar, attached, &value));
    }
    return option_assign(command->table, row_index, value, &origin, command->values,
        command->result, command->error);
}

static bool name_is(const char *name, size_t length, const char *word)
{
    return length == strlen(word) && memcmp(name, word, length) == 0;
}

/* "--name", "--name=value" or "--no-name"; `name` starts behind the dashes. */
static cadre_status parse_long_option(struct command *command, const char *name)
{
    const struct option_table *table = command->table;
    size_t length = strcspn(name, "=");
    const char *attached = name[length] == '=' ? name + length + 1 : NULL;
    char flag[NAME_BYTES_MAX + 3];
    snprintf(flag, sizeof flag, "--%.*s", (int)(length < NAME_BYTES_MAX ? length : NAME_BYTES_MAX),
        name);
    size_t row = option_find(table, name, length);
    if (row < table->row_count) {
        return parse_option(command, row, flag, attached);
    }
    if (length > 3 && strncmp(name, "no-", 3) == 0 && attached == NULL) {
        row = option_find(table, name + 3, length - 3);
        if (row < table->row_count && table->rows[row].type == OPTION_FLAG) {
            return parse_option(command, row, flag, "false");
        }
    }
    if (name_is(name, length, "help") && attached == NULL) {
        command->result->request = OPTIONS_HELP;
        return CADRE_OK;
    }
    if (name_is(name, length, "version") && attached == NULL) {
        command->result->request = OPTIONS_VERSION;
        return CADRE_OK;
    }
    if (table->config && name_is(name, length, "print-config") && attached == NULL) {
        command->print_config = true;
        return CADRE_OK;
    }
    if (table->config && name_is(name, length, "config")) {
        return parse_value(command, flag, "FILE", attached, &command->config_path);
    }
    char hint[96];
    option_hint(table, flag + 2, "--", hint);
    return cadre_error_set(command->error, CADRE_INVALID_ARGUMENT, "unknown option %s%s%s", flag,
        hint, hint[0] != '\0' ? "" : "; --help lists them");
}

/* "-workers" is a long option with a dash too few. */
static cadre_status parse_unknown_letter(
    struct command *command, const char *letters, const char *flag)
{
    char name[NAME_BYTES_MAX + 1];
    char hint[96] = "";
    snprintf(name, sizeof name, "%.*s", (int)strcspn(letters, "="), letters);
    if (strlen(name) > 2) {
        option_hint(command->table, name, "--", hint);
    }
    return hint[0] != '\0' ? cadre_error_set(command->error, CADRE_INVALID_ARGUMENT,
                                 "unknown option -%s%s", name, hint)
                           : cadre_error_set(command->error, CADRE_INVALID_ARGUMENT,
                                 "unknown option %s; --help lists them", flag);
}

/* A cluster of letters, "-fn3": flags first, the last one may take a value, attached or as the
 * next argument. */
static cadre_status parse_short_options(struct command *command, const char *letters)
{
    const struct option_table *table = command->table;
    size_t length = strcspn(letters, "=");
    if (length > 1 && option_find(table, letters, length) < table->row_count) {
        return parse_unknown_letter(command, letters, letters); /* not "-o utput" of "-output" */
    }
    for (const char *at = letters; *at != '\0'; at++) {
        char flag[] = {'-', *at, '\0'};
        size_t row = 0;
        while (row < table->row_count && table->rows[row].letter != *at) {
            row++;
        }
        if (row == table->row_count && *at == 'h') {
            command->result->request = OPTIONS_HELP;
            return CADRE_OK;
        }
        if (row == table->row_count) {
            return parse_unknown_letter(command, letters, *at > ' ' && *at <= '~' ? flag : "-?");
        }
        command->result->by_letter[row] = true;
        bool takes_value = table->rows[row].type != OPTION_FLAG;
        CADRE_TRY(parse_option(command, row, flag, takes_value && at[1] != '\0' ? at + 1 : NULL));
        if (takes_value) {
            break;
        }
    }
    return CADRE_OK;
}

/* Moves argv[from], ..., argv[to - 1] one index up, and the argument at `to` before them:
 * options end up before the positional arguments, each group in its order. */
static void base_options_rotate(char **argv, int from, int to)
{
    char *word = argv[to];
    memmove(argv + from + 1, argv + from, (size_t)(to - from) * sizeof *argv);
    argv[from] = word;
}

static cadre_status parse_arguments(struct command *command)
{
    int kept = 0; /* positional arguments met so far: they are right before `next` */
    while (command->next < command->argc && command->result->request == OPTIONS_RUN) {
        const char *word = command->argv[command->next];
        bool option = word[0] == '-' && word[1] != '\0';
        if (!option && command->table->stop_at_positional) {
            break;
        }
        if (!option) {
            kept++;
            command->next++;
            continue;
        }
        int start = command->next++;
        bool end = strcmp(word, "--") == 0;
        if (!end) {
            CADRE_TRY(word[1] == '-' ? parse_long_option(command, word + 2)
                                     : parse_short_options(command, word + 1));
        }
        for (int moved = start; moved < command->next; moved++) {
            base_options_rotate(command->argv, moved - kept, moved);
        }
        if (end) {
            break;
        }
    }
    command->result->first = command->next - kept;
    return CADRE_OK;
}

static cadre_status read_environment(struct command *command)
{
    for (size_t i = 0; i < command->table->row_count; i++) {
        const char *name = command->table->rows[i].environment;
        const char *value = name != NULL ? getenv(name) : NULL;
        if (value != NULL && value[0] != '\0') {
            const struct option_origin origin = {.source = OPTION_ENVIRONMENT, .where = name};
            CADRE_TRY(option_assign(command->table, i, value, &origin, command->values,
                command->result, command->error));
        }
    }
    return CADRE_OK;
}

static cadre_status read_config(struct command *command)
{
    const struct option_table *table = command->table;
    const char *variable = table->config_environment;
    const char *path = command->config_path;
    if (path == NULL && variable != NULL) {
        path = getenv(variable);
    }
    bool required = path != NULL && path[0] != '\0';
    if (!required) {
        path = table->config_default;
    }
    if (!table->config || path == NULL) {
        return CADRE_OK;
    }
    return option_read_file(
        table, path, required, command->values, command->result, command->error);
}

static cadre_status set_defaults(struct command *command)
{
    for (size_t i = 0; i < command->table->row_count; i++) {
        const struct option_row *row = &command->table->rows[i];
        if (command->result->sources[i] != OPTION_UNSET) {
            continue;
        }
        if (row->fallback != NULL) {
            const struct option_origin origin = {.source = OPTION_DEFAULT, .where = row->name};
            CADRE_TRY(option_assign(command->table, i, row->fallback, &origin, command->values,
                command->result, command->error));
        } else if (row->required && !command->print_config) {
            return cadre_error_set(command->error, CADRE_INVALID_ARGUMENT,
                "--%s is missing: give --%s %s%s%s", row->name, row->name,
                row->metavar != NULL ? row->metavar : "VALUE",
                row->environment != NULL ? " or set " : "",
                row->environment != NULL ? row->environment : "");
        }
    }
    return CADRE_OK;
}

cadre_status options_parse(const struct option_table *table, int argc, char **argv, void *values,
    struct option_result *ret_result, struct cadre_error *error)
{
    CADRE_ASSERT(table->row_count <= OPTION_ROWS_MAX);
    *ret_result = (struct option_result){.request = OPTIONS_RUN, .first = argc};
    struct command command = {.table = table,
        .argc = argc,
        .argv = argv,
        .next = argc > 0 ? 1 : 0,
        .values = values,
        .result = ret_result,
        .error = error};
    CADRE_TRY(parse_arguments(&command));
    if (ret_result->request != OPTIONS_RUN) {
        return CADRE_OK;
    }
    CADRE_TRY(read_environment(&command));
    CADRE_TRY(read_config(&command));
    CADRE_TRY(set_defaults(&command));
    if (command.print_config) {
        ret_result->request = OPTIONS_PRINT_CONFIG;
        return CADRE_OK;
    }
    size_t candidates = (size_t)(argc - ret_result->first);
    if (!table->stop_at_positional && candidates > table->positionals_max) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "\"%.64s\" is one word too many; %s --help shows how it is used",
            argv[ret_result->first + (int)table->positionals_max], table->program);
    }
    return CADRE_OK;
}
