/* SPDX-License-Identifier: Apache-2.0
 * Walks a command line that is not complete yet by an option table, and lists what may follow.
 * Called by every program that has a table. */
#include "common/base/completion.h"

#include <string.h>

#include "common/base/options_internal.h"
#include "common/pure/assert.h"

static const struct option_row config_row = {
    .name = "config", .type = OPTION_TEXT, .metavar = "FILE"};

/* The option of that name, of `length` bytes; of a letter when `length` is 0. */
static const struct option_row *completion_row(
    const struct option_table *table, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct option_row *row = &table->rows[i];
        bool named =
            length > 0 && strncmp(row->name, name, length) == 0 && row->name[length] == '\0';
        if (named || (length == 0 && row->letter == letter)) {
            return row;
        }
    }
    return table->config && length == 6 && strncmp(name, "config", 6) == 0 ? &config_row : NULL;
}

/* Which option a word is, that takes a value; *ret_value is what is attached, or NULL. */
static const struct option_row *row_with_value(
    const struct option_table *table, const char *word, const char **ret_value)
{
    const struct option_row *row = NULL;
    *ret_value = NULL;
    if (word[1] == '-') {
        size_t length = strcspn(word + 2, "=");
        row = length > 0 ? completion_row(table, word + 2, length, '\0') : NULL;
        *ret_value = word[2 + length] == '=' ? word + 2 + length + 1 : NULL;
        return row != NULL && row->type != OPTION_FLAG ? row : NULL;
    }
    for (const char *at = word + 1; *at != '\0'; at++) { /* flags may come before it: "-dn" */
        row = completion_row(table, "", 0, *at);
        if (row == NULL || row->type != OPTION_FLAG) {
            *ret_value = at[1] != '\0' ? at + 1 : NULL;
            return row;
        }
    }
    return NULL;
}

static void set_value(struct completion *completion, const struct option_row *row, const char *text)
{
    if (row != NULL && row != &config_row) {
        completion->values[row - completion->table->rows] = text;
    }
}

/* A flag, so that it is not offered again. */
static void note_flag(struct completion *completion, const char *word)
{
    size_t length = strcspn(word + 2, "=");
    if (word[1] == '-' && length > 0) {
        set_value(completion, completion_row(completion->table, word + 2, length, '\0'), "");
    }
}

/* The name of positional argument `index` in "JOB [OTHER]" or "ID..." into completion->kind. */
static void find_kind(struct completion *completion, int index)
{
    const char *usage = completion->table->usage != NULL ? completion->table->usage : "";
    for (;; index--) {
        usage += strspn(usage, " [");
        size_t length = strcspn(usage, " ]");
        bool repeats = length > 3 && strncmp(usage + length - 3, "...", 3) == 0;
        if (index > 0 && length > 0 && !repeats) {
            usage += length + strspn(usage + length, "]");
            continue;
        }
        length -= repeats ? 3 : 0;
        size_t skipped = strncmp(usage, "./", 2) == 0 ? 2 : 0;
        length = length < COMPLETION_KIND_BYTES ? length : 0;
        memcpy(completion->kind, usage + skipped, length - (length > 0 ? skipped : 0));
        return;
    }
}

static void completion_set_value(
    struct completion *completion, const struct option_row *row, const char *typed)
{
    completion->at = COMPLETION_VALUE;
    completion->row = row;
    completion->typed = typed;
    snprintf(
        completion->kind, sizeof completion->kind, "%s", row->metavar != NULL ? row->metavar : "");
}

/* The last word, when no option before waits for it. */
static void find_last(struct completion *completion, const char *word, bool options_ended)
{
    completion->typed = word;
    if (word[0] == '-' && !options_ended && completion->at != COMPLETION_FOREIGN) {
        const char *value = NULL;
        const struct option_row *row = row_with_value(completion->table, word, &value);
        if (row != NULL && value != NULL && word[1] == '-') {
            completion_set_value(completion, row, value);
            completion->attached = word;
            return;
        }
        completion->at = COMPLETION_OPTION;
        return;
    }
    if (completion->at != COMPLETION_FOREIGN) {
        completion->at = COMPLETION_POSITIONAL;
        find_kind(completion, completion->positional_count);
    }
}

void completion_find(const struct option_table *table, int count, char *const *arguments,
    struct completion *ret_completion)
{
    CADRE_ASSERT(count > 0);
    struct completion *completion = ret_completion;
    *completion = (struct completion){.table = table, .at = COMPLETION_POSITIONAL};
    bool ended = false;
    for (int i = 0; i < count - 1; i++) {
        const char *word = arguments[i];
        bool option =
            word[0] == '-' && word[1] != '\0' && !ended && completion->at != COMPLETION_FOREIGN;
        if (!option) {
            if (completion->positional_count < COMPLETION_POSITIONALS) {
                completion->positionals[completion->positional_count] = i;
            }
            completion->positional_count++;
            completion->at = table->stop_at_positional ? COMPLETION_FOREIGN : completion->at;
            continue;
        }
        if (strcmp(word, "--") == 0) {
            ended = true;
            continue;
        }
        const char *value = NULL;
        const struct option_row *row = row_with_value(table, word, &value);
        if (row == NULL) {
            note_flag(completion, word);
        } else if (value != NULL) {
            set_value(completion, row, value);
        } else if (i + 1 == count - 1) {
            completion_set_value(completion, row, arguments[count - 1]);
            return;
        } else {
            set_value(completion, row, arguments[++i]);
        }
    }
    find_last(completion, arguments[count - 1], ended);
}

bool completion_is(const struct completion *completion, const char *name)
{
    size_t length = strlen(name);
    char after = strncmp(completion->kind, name, length) == 0 ? completion->kind[length] : 'x';
    return after == '\0' || after == '[' || after == '|' || after == ' ';
}

void completion_offer(
    const struct completion *completion, const char *candidate, const char *description, FILE *out)
{
    if (strncmp(candidate, completion->typed, strlen(completion->typed)) != 0) {
        return;
    }
    if (completion->attached != NULL) {
        fprintf(out, "%.*s", (int)(completion->typed - completion->attached), completion->attached);
    }
    fputs(candidate, out);
    for (const char *at = description; at != NULL && *at != '\0'; at++) {
        if (at == description) {
            fputc('\t', out);
        }
        fputc(*at == '\t' || *at == '\n' ? ' ' : *at, out);
    }
    fputc('\n', out);
}

/* The option with the first sentence of its help. */
static void offer_option(const struct completion *completion, const char *prefix, const char *name,
    const char *help, FILE *out)
{
    char flag[64];
    char sentence[160];
    const char *end = strstr(help, ". ");
    size_t length = end != NULL ? (size_t)(end - help) : strlen(help);
    while (end == NULL && length > 0 && (help[length - 1] == '.' || help[length - 1] == '\n')) {
        length--;
    }
    bool whole = length < sizeof sentence - 4;
    snprintf(flag, sizeof flag, "%s%s", prefix, name);
    snprintf(sentence, sizeof sentence, "%.*s%s", (int)(whole ? length : sizeof sentence - 5), help,
        whole ? "" : "...");
    completion_offer(completion, flag, sentence, out);
}

static void print_options(const struct completion *completion, FILE *out)
{
    const struct option_table *table = completion->table;
    for (size_t i = 0; i < table->row_count; i++) {
        const struct option_row *row = &table->rows[i];
        bool on =
            row->type == OPTION_FLAG && row->fallback != NULL && strcmp(row->fallback, "true") == 0;
        if (completion->values[i] == NULL || row->type == OPTION_LIST) {
            offer_option(completion, on ? "--no-" : "--", row->name, row->help, out);
        }
    }
    struct option_row general[OPTION_GENERAL_MAX];
    size_t count = option_general_rows(table, general);
    for (size_t i = 0; i < count; i++) {
        offer_option(completion, "--", general[i].name, general[i].help, out);
    }
}

/* "all|none|N": the alternatives in lower case are meant as they are. */
static void print_literals(const struct completion *completion, FILE *out)
{
    const char *at = completion->kind;
    bool several = strchr(at, '|') != NULL;
    while (several && *at != '\0') {
        char word[COMPLETION_KIND_BYTES];
        size_t length = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (word[0] >= 'a' && word[0] <= 'z') {
            completion_offer(completion, word, NULL, out);
        }
        at += length + (at[length] == '|');
    }
}

/* What the value or argument may be. */
static void print_value(const struct completion *completion, FILE *out)
{
    const struct option_row *row = completion->at == COMPLETION_VALUE ? completion->row : NULL;
    for (size_t i = 0; row != NULL && row->choices != NULL && row->choices[i] != NULL; i++) {
        completion_offer(completion, row->choices[i], NULL, out);
    }
    print_literals(completion, out);
}

/* Whether names of files, or of folders only, are candidates. */
static const char *completion_rest(const struct completion *completion)
{
    static const char *const files[] = {"PATH", "FILE", "PROGRAM"};
    static const char *const folders[] = {"FOLDER", "DIR", "OUT"};
    const char *rest = completion->at == COMPLETION_FOREIGN ? ":files" : ":none";
    if (completion->at != COMPLETION_VALUE && completion->at != COMPLETION_POSITIONAL) {
        return rest;
    }
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        rest = completion_is(completion, folders[i]) ? ":folders" : rest;
    }
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        rest = completion_is(completion, files[i]) ? ":files" : rest;
    }
    return rest;
}

void completion_print(const struct completion *completion, FILE *out)
{
    bool any = completion->at == COMPLETION_POSITIONAL && completion->kind[0] == '\0';
    if (completion->at == COMPLETION_OPTION || any) {
        print_options(completion, out);
    } else if (completion->at != COMPLETION_FOREIGN) {
        print_value(completion, out);
    }
    fprintf(out, "%s\n", completion_rest(completion));
}

bool completion_answer(const struct option_table *table, int argc, char *const *argv, FILE *out)
{
    struct completion completion;
    if (argc < 4 || argc > COMPLETION_ARGUMENTS_MAX || strcmp(argv[1], COMPLETION_VERB) != 0 ||
        strcmp(argv[2], "--") != 0) {
        return false;
    }
    completion_find(table, argc - 3, argv + 3, &completion);
    completion_print(&completion, out);
    return true;
}
