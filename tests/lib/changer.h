/* SPDX-License-Identifier: Apache-2.0
 * A number in a program's memory that another thread of it changes, over and over, while a call of
 * the library reads it: misuse that no call may die of. */
#ifndef CADRE_TESTS_LIB_CHANGER_H
#define CADRE_TESTS_LIB_CHANGER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct changer {
    int64_t *number;
    int64_t values[2]; /* in turn */
    atomic_bool ends;
    pthread_t thread;
};

void changer_start(struct changer *changer, int64_t *number, int64_t one, int64_t other);
/* It is `one` from then on. */
void changer_stop(struct changer *changer);

#endif
