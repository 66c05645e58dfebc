/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/notices.h"

#include "common/base/clock.h"

#define AGAIN_US (60 * CADRE_US_PER_S)

bool notices_take(struct notices *notices, uint64_t now_us, uint64_t *ret_left_out)
{
    if (notices->told == NOTICES_FIRST && now_us - notices->last_us < AGAIN_US) {
        notices->left_out++;
        return false;
    }
    if (notices->told < NOTICES_FIRST) {
        notices->told++;
    }
    *ret_left_out = notices->left_out;
    notices->left_out = 0;
    notices->last_us = now_us;
    return true;
}
