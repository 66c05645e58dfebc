/* SPDX-License-Identifier: Apache-2.0
 * Values that the objects have in common. Each is the caller's; NULL: out of
 * memory. */
#ifndef CADRE_JSON_JSON_VALUE_H
#define CADRE_JSON_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

#include "cadre/client.h"

/* A count, a time, a number of bytes. */
json_t *json_number(uint64_t value);
/* null where the value is not finite: JSON has no infinity and no NaN. */
json_t *json_finite(double value);
/* null for what is not UTF-8. */
json_t *json_text(const char *value);
/* A verified position. Its digest is text, because many JSON parsers cannot hold a number of 64
 * bits. */
json_t *json_verified(uint64_t position, uint64_t digest);
/* What a task or a host uses: each value is null where it is not known. */
json_t *json_usage(const cadre_usage *usage);

#endif
