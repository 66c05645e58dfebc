/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"

#include "common/base/clock.h"

#define LOG_RATELIMIT_INTERVAL_US (60 * CADRE_US_PER_S)

bool log_ratelimit_allow(
    struct log_ratelimit *log_ratelimit, uint64_t now_us, uint64_t *ret_suppressed)
{
    if (log_ratelimit->logged == LOG_RATELIMIT_BURST &&
        now_us - log_ratelimit->last_us < LOG_RATELIMIT_INTERVAL_US) {
        log_ratelimit->suppressed++;
        return false;
    }
    if (log_ratelimit->logged < LOG_RATELIMIT_BURST) {
        log_ratelimit->logged++;
    }
    *ret_suppressed = log_ratelimit->suppressed;
    log_ratelimit->suppressed = 0;
    log_ratelimit->last_us = now_us;
    return true;
}
