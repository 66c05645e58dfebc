/* SPDX-License-Identifier: Apache-2.0 */
#include "common/checkpoint/name.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/limits.h"

#define FIRST_INCARNATION 1 /* of a job */
#define POSITION_MAX      (LIMIT_POSITION - 1)

uint64_t checkpoint_name_writer(uint64_t incarnation)
{
    return incarnation > FIRST_INCARNATION ? incarnation : 0;
}

void checkpoint_name_write(
    uint64_t position, uint64_t writer, const char *kind, char ret_name[CHECKPOINT_NAME_BYTES])
{
    if (writer != 0) {
        snprintf(ret_name, CHECKPOINT_NAME_BYTES, CHECKPOINT_NAME_HEAD "%" PRIu64 ".%" PRIu64 ".%s",
            position, writer, kind);
    } else {
        snprintf(
            ret_name, CHECKPOINT_NAME_BYTES, CHECKPOINT_NAME_HEAD "%" PRIu64 ".%s", position, kind);
    }
}

void checkpoint_name_start(uint64_t position, char ret_start[CHECKPOINT_NAME_BYTES])
{
    snprintf(ret_start, CHECKPOINT_NAME_BYTES, CHECKPOINT_NAME_HEAD "%" PRIu64 ".", position);
}

bool checkpoint_name_read(
    const char *name, const char *kind, size_t tail_bytes, struct checkpoint_named *ret_named)
{
    char whole[CHECKPOINT_NAME_BYTES];
    const char *digits = name + strlen(CHECKPOINT_NAME_HEAD);
    if (strncmp(name, CHECKPOINT_NAME_HEAD, strlen(CHECKPOINT_NAME_HEAD)) != 0 ||
        !isdigit((unsigned char)digits[0])) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    ret_named->position = strtoull(digits, &end, 10);
    bool has_writer = end[0] == '.' && isdigit((unsigned char)end[1]);
    ret_named->writer = has_writer ? strtoull(end + 1, NULL, 10) : 0;
    if (errno != 0 || ret_named->position > POSITION_MAX) {
        return false;
    }
    checkpoint_name_write(ret_named->position, ret_named->writer, kind, whole);
    return strncmp(name, whole, strlen(whole)) == 0 && strlen(name) == strlen(whole) + tail_bytes;
}

int checkpoint_newest_first(const void *a, const void *b)
{
    const struct checkpoint_named *left = a;
    const struct checkpoint_named *right = b;
    if (left->position != right->position) {
        return left->position < right->position ? 1 : -1;
    }
    return left->writer < right->writer ? 1 : left->writer > right->writer ? -1 : 0;
}
