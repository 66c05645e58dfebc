/* SPDX-License-Identifier: Apache-2.0
 * The rules for texts of requests. Each function returns NULL for a good one, else what is wrong
 * with it as the end of a sentence ("is empty"), which the caller begins with the text's name. A
 * client calls them before it sends. */
#ifndef CADRE_WIRE_CHECK_H
#define CADRE_WIRE_CHECK_H

#include <stddef.h>

/* UTF-8 without control characters. */
const char *check_printable(const char *text);

/* UTF-8; control characters are accepted (arguments and values of the environment). */
const char *check_utf8(const char *text);

/* "NAME=value": NAME of letters, digits and "_", not beginning with a digit; value as check_utf8.
 */
const char *check_environment(const char *entry);

/* An absolute path without control characters and without a component "..", or "s3://bucket/key"
 * without control characters; the key may be missing. */
const char *check_folder(const char *path);

/* "s3://bucket/key" without control characters. */
const char *check_object(const char *path);
/* "s3://bucket/key" without control characters; the key may be missing. */
const char *check_outputs_folder(const char *path);

/* An object: "s3://bucket/key", "https://host/path", or "http://host/path". */
const char *check_url(const char *url);

/* Two of `names` that cannot both be files of one folder: equal ones, or one that would be the
 * other's folder. Sorts `names`. False: there are none. O(n log n). */
_Bool check_names_clash(
    const char **names, size_t count, const char **ret_first, const char **ret_second);

#endif
