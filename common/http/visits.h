/* SPDX-License-Identifier: Apache-2.0
 * Inside common/http only: the open connections, how long each may last, and which one is closed
 * when there are too many. */
#ifndef CADRE_HTTP_VISITS_H
#define CADRE_HTTP_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/http/certificate.h"

enum visit_trust { VISIT_UNCHECKED, VISIT_TRUSTED, VISIT_REFUSED };

/* From accept to close. */
struct visit {
    struct visit *next;
    struct visit *before;
    int fd;
    bool cut;          /* it is being closed */
    uint64_t since_us; /* its accept, the start of its request, or the end of the last one */
    size_t bytes;      /* of the answer that it is being sent */
    enum visit_trust trust;
    char uri[HTTP_URI_BYTES]; /* of its certificate, once it was checked */
};

/* All zero at first. */
struct visits {
    struct visit *first;
    size_t count;
    size_t bytes; /* of all answers that are being sent */
};

/* NULL: no memory; the connection then has no visit. When there are more than `max`, the one that
 * waits longest is cut: who sends nothing, or reads nothing, makes room for the next. */
struct visit *visits_add(struct visits *visits, int fd, uint64_t now_us, size_t max);

/* Accepts NULL. */
void visits_remove(struct visits *visits, struct visit *visit);

/* A request began or ended; accepts NULL. */
void visit_touch(struct visits *visits, struct visit *visit, uint64_t now_us);

/* The visit is being sent so much; accepts NULL. With more than `max` of all together those that
 * wait longest for the end of their answers are cut. */
void visit_sends(struct visits *visits, struct visit *visit, size_t bytes, size_t max);

/* Cuts those that have lasted longer. */
void visits_cut(struct visits *visits, uint64_t now_us, uint64_t longest_us);

#endif
