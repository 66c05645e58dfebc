/* SPDX-License-Identifier: Apache-2.0
 * The program's histograms and texts; its scalars are cadre_report's. */
#include "cadre/summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/utf8.h"
#include "worker/library/device/argument.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/preprocessing/reals.h"
#include "worker/library/runtime/api/api.h"
#include "worker/library/runtime/strategy/strategy.h"
#include "worker/library/runtime/summaries/histogram.h"
#include "worker/library/runtime/summaries/summaries.h"

#define BUCKETS_DEFAULT 30
#define NOT_FINITE      "/not_finite"

/* --- histograms --- */

static cadre_status check_histogram(
    const cadre_tensor *values, uint32_t buckets, const char *function, struct cadre_error *error)
{
    CADRE_TRY(tensor_require(values, function, "values", error));
    CADRE_TRY(tensor_require_host(values, function, error));
    cadre_dtype dtype = cadre_tensor_dtype(values);
    if (!reals_possible(dtype) && dtype != CADRE_BOOL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given strings; a histogram counts numbers", function);
    }
    if (buckets > HISTOGRAM_BUCKETS_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was asked for %" PRIu32 " buckets; give 1 to %d, or 0 for %d", function, buckets,
            HISTOGRAM_BUCKETS_MAX, BUCKETS_DEFAULT);
    }
    return CADRE_OK;
}

static cadre_status add_histogram(cadre_strategy *strategy, const char *name,
    const cadre_tensor *values, uint32_t buckets, struct cadre_error *error)
{
    double limits[HISTOGRAM_BUCKETS_MAX];
    double counts[HISTOGRAM_BUCKETS_MAX];
    struct summary_histogram histogram = {.limits = limits, .counts = counts};
    uint64_t left_out = 0;
    if (!summaries_are_on(strategy)) {
        return CADRE_OK;
    }
    histogram_of(values, buckets == 0 ? BUCKETS_DEFAULT : buckets, &histogram, &left_out);
    CADRE_TRY(summaries_add(strategy,
        &(struct summary_event){.kind = SUMMARY_HISTOGRAM, .tag = name, .histogram = &histogram},
        error));
    if (left_out == 0) {
        return CADRE_OK;
    }
    char tag[LIMIT_NAME_BYTES];
    snprintf(tag, sizeof tag, "%.*s" NOT_FINITE, (int)(sizeof tag - sizeof NOT_FINITE), name);
    return summaries_add(strategy,
        &(struct summary_event){.kind = SUMMARY_SCALAR, .tag = tag, .scalar = (double)left_out},
        error);
}

cadre_status cadre_summary_histogram(
    cadre_strategy *strategy, const char *name, const cadre_tensor *values, uint32_t buckets)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_require(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = name_check("histogram", name, &error);
    }
    if (status == CADRE_OK) {
        status = check_histogram(values, buckets, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = add_histogram(strategy, name, values, buckets, &error);
    }
    return api_return(status, &error);
}

/* --- texts --- */

static cadre_status check_text(const char *text, const char *function, struct cadre_error *error)
{
    CADRE_TRY(argument_require(text, function, "text", error));
    size_t size = strnlen(text, CADRE_SUMMARY_TEXT_BYTES + 1);
    if (size > CADRE_SUMMARY_TEXT_BYTES) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%s was given a text of more than %d bytes; cut it", function,
            CADRE_SUMMARY_TEXT_BYTES);
    }
    for (size_t at = 0; at < size;) {
        bool space = text[at] == '\n' || text[at] == '\t' || text[at] == '\r';
        size_t length = space ? 1 : utf8_printable(text + at, size - at);
        if (length == 0) {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s was given a text with byte 0x%02x at %zu, a control character or no UTF-8; "
                "leave it out",
                function, (unsigned)(unsigned char)text[at], at);
        }
        at += length;
    }
    return CADRE_OK;
}

cadre_status cadre_summary_text(cadre_strategy *strategy, const char *name, const char *text)
{
    STRATEGY_CALL call = {0};
    struct cadre_error error = {0};
    cadre_status status = strategy_require(strategy, __func__, &call, &error);
    if (status == CADRE_OK) {
        status = name_check("text", name, &error);
    }
    if (status == CADRE_OK) {
        status = check_text(text, __func__, &error);
    }
    if (status == CADRE_OK) {
        status = summaries_add(strategy,
            &(struct summary_event){
                .kind = SUMMARY_TEXT, .tag = name, .text = text, .text_bytes = strlen(text)},
            &error);
    }
    return api_return(status, &error);
}
