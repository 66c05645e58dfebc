/* SPDX-License-Identifier: Apache-2.0
 * The configuration file: "key = value" lines, empty lines, and comments that start a line with
 * '#'. */
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"
#include "common/base/options_internal.h"

/* Cuts white space off both ends, in place. */
static char *options_file_trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r", text[length - 1]) != NULL) {
        text[--length] = '\0';
    }
    return text;
}

static cadre_status read_text_line(const struct option_table *table, const char *path,
    unsigned number, char *text_line, void *values, struct option_result *result,
    struct cadre_error *error)
{
    text_line = options_file_trim(text_line);
    if (text_line[0] == '\0' || text_line[0] == '#') {
        return CADRE_OK;
    }
    char *equals = strchr(text_line, '=');
    if (equals == NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s:%u: \"%.64s\" is not of the form key = value", path, number, text_line);
    }
    *equals = '\0';
    const char *key = options_file_trim(text_line);
    char *value = options_file_trim(equals + 1);
    size_t row = option_find(table, key, strlen(key));
    if (row == table->row_count) {
        char hint[96];
        option_hint(table, key, "", hint);
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "%s:%u: unknown key \"%.64s\"%s",
            path, number, key, hint);
    }
    char where[CADRE_ERROR_TEXT_BYTES];
    snprintf(where, sizeof where, "%.300s:%u: %.64s", path, number, key);
    const struct option_origin origin = {.source = OPTION_FILE, .where = where};
    return option_assign(table, row, value, &origin, values, result, error);
}

cadre_status option_read_file(const struct option_table *table, const char *path, bool required,
    void *values, struct option_result *result, struct cadre_error *error)
{
    CADRE_FREE_AT_EXIT char *bytes = NULL;
    size_t size = 0;
    cadre_status status = file_read(path, OPTION_CONFIG_BYTES_MAX, &bytes, &size, error);
    if (status == CADRE_NOT_FOUND && !required) {
        return CADRE_OK;
    }
    if (status != CADRE_OK) {
        return cadre_error_wrap(error, status, "configuration file");
    }
    if (strlen(bytes) != size) {
        return cadre_error_set(
            error, CADRE_INVALID_ARGUMENT, "%s holds a zero byte and is not text", path);
    }
    snprintf(result->config_path, sizeof result->config_path, "%s", path);
    unsigned number = 1;
    for (char *text_line = bytes; text_line != NULL; number++) {
        char *end = strchr(text_line, '\n');
        if (end != NULL) {
            *end = '\0';
        }
        CADRE_TRY(read_text_line(table, path, number, text_line, values, result, error));
        text_line = end == NULL ? NULL : end + 1;
    }
    return CADRE_OK;
}
