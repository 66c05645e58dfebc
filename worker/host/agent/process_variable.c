/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/agent/orphans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/base/files.h"

/* More than a job's spec can hold, so that no task hides behind a long environment. */
#define ENVIRON_BYTES_MAX ((size_t)4 * 1024 * 1024)

bool process_variable(pid_t pid, const char *name, char *ret_value, size_t size)
{
    char path[64];
    CADRE_FREE_AT_EXIT char *text = NULL;
    size_t text_bytes = 0;
    size_t name_bytes = strlen(name);
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_BYTES_MAX, &text, &text_bytes, NULL) != CADRE_OK) {
        return false;
    }
    for (const char *item = text; item < text + text_bytes; item += strlen(item) + 1) {
        if (strncmp(item, name, name_bytes) == 0 && item[name_bytes] == '=') {
            snprintf(ret_value, size, "%s", item + name_bytes + 1);
            return true;
        }
    }
    return false;
}
