/* SPDX-License-Identifier: Apache-2.0
 * The path of cadre-devices, for find_gpus.c and use_child.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/probe/child.h"

#define PROGRAM "cadre-devices"

bool child_find_program(char ret_path[CHILD_PATH_BYTES])
{
    const char *given = getenv("CADRE_DEVICES_PROGRAM");
    if (given != NULL && given[0] != '\0') {
        return snprintf(ret_path, CHILD_PATH_BYTES, "%s", given) < CHILD_PATH_BYTES;
    }
    ssize_t length = readlink("/proc/self/exe", ret_path, CHILD_PATH_BYTES - sizeof PROGRAM);
    if (length <= 0) {
        return false;
    }
    ret_path[length] = '\0';
    char *slash = strrchr(ret_path, '/');
    memcpy(slash != NULL ? slash + 1 : ret_path, PROGRAM, sizeof PROGRAM);
    return true;
}
