/* SPDX-License-Identifier: Apache-2.0
 * The use of GPUs, asked for again and again. No plugin is opened, so no libcuda. */
#ifndef CADRE_WORKER_LIST_DEVICES_USE_H
#define CADRE_WORKER_LIST_DEVICES_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Answers each text line of `in`, of any length and content, by one on `out`: "PERCENT,BYTES" of
 * each of the named GPUs, with one space between two, "-" for what is not known. Returns at the end
 * of `in`, or false as soon as `out` cannot be written. Why nothing is known, of
 * all or of a name, is printed on standard error, once. */
bool use_answer_all(char *const *names, size_t count, FILE *in, FILE *out);

#endif
