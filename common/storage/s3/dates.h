/* SPDX-License-Identifier: Apache-2.0
 * Points in time as stores write them. Pure. */
#ifndef CADRE_STORAGE_S3_DATES_H
#define CADRE_STORAGE_S3_DATES_H

#include <stdbool.h>
#include <stdint.h>

/* "Fri, 24 May 2013 00:00:00 GMT" (the headers Date and Last-Modified) as Unix time. False: it is
 * none. */
bool s3_http_date_parse(const char *text, uint64_t *ret_s);

/* "2013-05-24T00:00:00.000Z", with or without parts of a second, "Z" or "+00:00" (XML, the end of
 * credentials), in microseconds since 1970. False: it is none. */
bool s3_iso_date_parse(const char *text, uint64_t *ret_us);

#endif
