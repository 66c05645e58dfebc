/* SPDX-License-Identifier: Apache-2.0
 * Texts of an XML document, such as the credentials that STS gives: copied straight to where
 * secrets may lie, which a parser's own memory is not. Pure. */
#ifndef CADRE_STORAGE_S3_FLAT_XML_H
#define CADRE_STORAGE_S3_FLAT_XML_H

#include <stdbool.h>
#include <stddef.h>

/* The text of the first element <name>, which has no attributes and no elements in it. *ret_value
 * is terminated. False, and "": there is none, it does not fit, or it has references ("&amp;"),
 * which keys and tokens have not. */
bool s3_xml_text(const char *text, size_t size, const char *name, char *ret_value, size_t room);

#endif
