/* SPDX-License-Identifier: Apache-2.0
 * Buckets of gradients (cadre/buckets.h), each an all-reduce that is started. A replica has one set
 * of them, whose memory it keeps from one step to the next. */
#ifndef CADRE_RUNTIME_BUCKETS_H
#define CADRE_RUNTIME_BUCKETS_H

#include "cadre/replica.h"

/* The replica's function has returned: what it began and did not wait for has ended; its
 * all-reduces are waited for as all started ones (collective_queue_end). */
void buckets_end(cadre_replica *replica);

void buckets_free(cadre_replica *replica);

#endif
