/* SPDX-License-Identifier: Apache-2.0
 * A store for tests (fake_s3.py) in a process of its own, and clients of it. */
#ifndef CADRE_TESTS_STORE_RIG_H
#define CADRE_TESTS_STORE_RIG_H

#include "common/storage/storage.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"

#define RIG_VARIABLES 8
#define RIG_BUCKET    "s3://bucket/"

struct rig {
    struct program server;
    int port;
    char url[64];
    struct {
        const char *name, *value;
    } set[RIG_VARIABLES];
    struct storage_variables variables; /* the store's URL, the right keys, and those of `set` */
};

/* Starts the server; with certificates by TLS, and rig_order() is not to be called. */
void rig_start(struct rig *rig, const char *cert, const char *key);
void rig_stop(struct rig *rig);
/* Forgets objects, rules and counts, and what was set. */
void rig_reset(struct rig *rig);
/* A client of it; zeroed options have a deadline of 20 s. */
struct storage_client *rig_client(struct rig *rig, const struct storage_options *options);
/* Another value of a variable; NULL: it is not set. Before rig_client(). */
void rig_set(struct rig *rig, const char *name, const char *value);

/* An order of fake_s3.py; its answer, valid until the next one. */
const char *rig_order(struct rig *rig, const char *method, const char *order, const char *body);
/* One rule as JSON, without braces: "'match': 'GET /bucket/a', 'act': 'cut'"; ' stands for ". */
void rig_rule(struct rig *rig, const char *rule);
void rig_setting(struct rig *rig, const char *setting);
/* How many requests began so. */
unsigned rig_count(struct rig *rig, const char *request);

#endif
