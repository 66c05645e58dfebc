/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/check.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/utf8.h"
#include "common/pure/object_path.h"

/* utf8_printable does not distinguish control characters from broken UTF-8; these are the control
 * characters: 1 byte less than 0x20 or 0x7f, U+0080 to U+009F, which are 0xc2 and one of 0x80 to
 * 0x9f, and those of direction: e2 80 aa to ae, e2 81 a6 to a9. */
static size_t control_length(const unsigned char *text)
{
    if (text[0] < 0x20 || text[0] == 0x7f) {
        return 1;
    }
    if (text[0] == 0xe2 && ((text[1] == 0x80 && text[2] >= 0xaa && text[2] <= 0xae) ||
                               (text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9))) {
        return 3;
    }
    return text[0] == 0xc2 && text[1] >= 0x80 && text[1] <= 0x9f ? 2 : 0;
}

static const char *check_characters(const char *text, bool controls)
{
    for (size_t left = strlen(text); left > 0;) {
        size_t length = utf8_printable(text, left);
        if (length == 0) {
            length = control_length((const unsigned char *)text);
            if (length == 0) {
                return "is not UTF-8";
            }
            if (!controls) {
                return "has a control character";
            }
        }
        text += length;
        left -= length;
    }
    return NULL;
}

const char *check_printable(const char *text)
{
    return check_characters(text, false);
}

const char *check_utf8(const char *text)
{
    return check_characters(text, true);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

const char *check_environment(const char *entry)
{
    if (!is_letter(entry[0])) {
        return "does not begin with a name of letters, digits and \"_\"";
    }
    const char *at = entry;
    while (is_letter(*at) || (*at >= '0' && *at <= '9')) {
        at++;
    }
    if (*at == '\0') {
        return "has no \"=\"";
    }
    if (*at != '=') {
        return "has a name with other characters than letters, digits and \"_\"";
    }
    return check_utf8(at + 1);
}

const char *check_object(const char *path)
{
    const char *fault = object_path_is(path) ? object_path_fault(path) : "is no s3://BUCKET/KEY";
    return fault != NULL ? fault : check_printable(path);
}

const char *check_folder(const char *path)
{
    const char *fault = object_folder_fault(path);
    if (fault != NULL || object_path_is(path)) {
        return fault != NULL ? fault : check_printable(path);
    }
    if (path[0] != '/') {
        return "is not an absolute path";
    }
    for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3) {
        if (at[3] == '/' || at[3] == '\0') {
            return "has a component \"..\"";
        }
    }
    return check_printable(path);
}

const char *check_outputs_folder(const char *path)
{
    return object_path_is(path) ? check_folder(path) : "is not s3://BUCKET/KEY";
}

const char *check_url(const char *url)
{
    if (!object_url_is(url)) {
        return "begins neither with s3:// nor with https://";
    }
    const char *fault = object_url_fault(url);
    return fault != NULL ? fault : check_printable(url);
}

/* By bytes, but "/" before all others: the files of a folder follow the folder's name directly. */
static int compare_paths(const void *a, const void *b)
{
    const unsigned char *x = *(const unsigned char *const *)a;
    const unsigned char *y = *(const unsigned char *const *)b;
    while (*x == *y && *x != '\0') {
        x++;
        y++;
    }
    int rank_x = *x == '/' ? 1 : *x == '\0' ? 0 : *x + 1;
    int rank_y = *y == '/' ? 1 : *y == '\0' ? 0 : *y + 1;
    return rank_x - rank_y;
}

bool check_names_clash(
    const char **names, size_t count, const char **ret_first, const char **ret_second)
{
    if (count < 2) {
        return false;
    }
    qsort(names, count, sizeof *names, compare_paths);
    for (size_t i = 1; i < count; i++) {
        size_t length = strlen(names[i - 1]);
        if (strncmp(names[i - 1], names[i], length) == 0 &&
            (names[i][length] == '\0' || names[i][length] == '/')) {
            *ret_first = names[i - 1];
            *ret_second = names[i];
            return true;
        }
    }
    return false;
}
