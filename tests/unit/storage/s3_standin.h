/* SPDX-License-Identifier: Apache-2.0
 * For tests of credentials: variables, and a network that answers as a script says. */
#ifndef CADRE_TESTS_UNIT_STORAGE_S3_STANDIN_H
#define CADRE_TESTS_UNIT_STORAGE_S3_STANDIN_H

#include "common/storage/s3/credentials.h"

#define STANDIN_ROWS 16

struct standin_variable {
    const char *name, *value;
};

/* What one request is answered with, and what it must be. */
struct standin_answer {
    const char *method, *url;
    const char *header; /* "name: value"; NULL: none */
    cadre_status status;
    int http;
    const char *body;
};

struct standin {
    const char *without; /* of struct s3_provider_options */
    struct standin_variable variables[STANDIN_ROWS];
    struct standin_answer script[STANDIN_ROWS];
    const char *sent; /* a part of the body of each request; NULL: none has a body */
    size_t asked;     /* so many of the script's answers were given */
    uint64_t now_us;
    /* Called within each request; NULL: nothing. */
    void (*within)(struct standin *standin);
    void *user;
};

/* Sets a variable, or takes it away: NULL. */
void standin_set(struct standin *standin, const char *name, const char *value);
/* The variables, for as long as the standin is there. */
struct storage_variables standin_variables(struct standin *standin);
/* A provider on all of it; the test fails when it cannot be. */
struct s3_provider *standin_provider(
    struct standin *standin, const struct storage_variables *variables);

#endif
