/* SPDX-License-Identifier: Apache-2.0
 * The check of names that come from another program or machine. */
#include <string.h>

#include "common/base/files.h"
#include "common/base/utf8.h"

/* One part between slashes, not terminated; NULL when it is good, else what is wrong with it. */
static const char *part_fault(const char *part, size_t length)
{
    if (length == 0) {
        return "it has an empty part";
    }
    if ((length == 1 && part[0] == '.') || (length == 2 && memcmp(part, "..", 2) == 0)) {
        return "\".\" and \"..\" are not allowed";
    }
    if (length > FILE_NAME_PART_BYTES_MAX) {
        return "a part is longer than 255 bytes";
    }
    for (size_t at = 0; at < length;) {
        size_t size = utf8_printable(part + at, length - at);
        if (size == 0) {
            return "it holds control characters or is not UTF-8";
        }
        at += size;
    }
    return NULL;
}

/* What may be shown of a bad name: its start, with everything odd replaced. */
static void file_name_show(const char *name, char ret_text[64])
{
    size_t length = strnlen(name, 60);
    for (size_t i = 0; i < length; i++) {
        ret_text[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
    }
    memcpy(ret_text + length, name[length] != '\0' ? "..." : "", name[length] != '\0' ? 4 : 1);
}

cadre_status file_name_check(const char *name, struct cadre_error *error)
{
    const char *fault = NULL;
    size_t length = strnlen(name, FILE_NAME_BYTES_MAX + 1);
    if (length == 0) {
        fault = "it is empty";
    } else if (length > FILE_NAME_BYTES_MAX) {
        fault = "it is longer than 1024 bytes";
    } else if (name[0] == '/') {
        fault = "it must be relative";
    }
    for (const char *part = name; fault == NULL;) {
        size_t part_length = strcspn(part, "/");
        fault = part_fault(part, part_length);
        if (part[part_length] == '\0') {
            break;
        }
        part += part_length + 1;
    }
    if (fault == NULL) {
        return CADRE_OK;
    }
    char shown[64];
    file_name_show(name, shown);
    return cadre_error_set(
        error, CADRE_INVALID_ARGUMENT, "the file name \"%s\" is refused: %s", shown, fault);
}
