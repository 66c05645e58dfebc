/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CADRE_CLI_SINCE_H
#define CADRE_CLI_SINCE_H

#include <stdbool.h>
#include <stdint.h>

/* The Unix time that `text` means at `now_us`: a duration before it (90s, 10m, 2h, 3d), or a time
 * as of RFC 3339. False: it is neither. */
bool since_parse(const char *text, uint64_t now_us, uint64_t *ret_us);

#endif
