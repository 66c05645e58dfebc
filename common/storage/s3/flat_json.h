/* SPDX-License-Identifier: Apache-2.0
 * Texts of a JSON object, such as the credentials that a container's agent gives: copied straight
 * to where secrets may lie. Pure. */
#ifndef CADRE_STORAGE_S3_FLAT_JSON_H
#define CADRE_STORAGE_S3_FLAT_JSON_H

#include <stddef.h>

enum s3_json_result {
    S3_JSON_FOUND,
    S3_JSON_ABSENT, /* no member has the name, or its value is no text */
    S3_JSON_WRONG   /* no JSON object, deeper than 8 levels, or the text does not fit */
};

/* The text of the member `name` of the outermost object, the last of several. *ret_value is
 * terminated; "" unless it is found. */
enum s3_json_result s3_json_text(
    const char *text, size_t size, const char *name, char *ret_value, size_t room);

#endif
