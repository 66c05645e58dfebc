/* SPDX-License-Identifier: Apache-2.0
 * Packs and unpacks the arguments of requests to parameter servers. Called by the client of this
 * folder and by the server's connections; owns nothing. */
#include "worker/library/ps/request.h"

#include <string.h>

#include "worker/library/mesh/bytes.h"
#include "worker/library/optimizer/rule_bytes.h"

uint64_t request_row_bytes(const struct store_spec *spec)
{
    return spec->row_elements * cadre_dtype_bytes(spec->dtype);
}

static uint8_t *put_u32(uint8_t *at, uint32_t value)
{
    bytes_put_u32(at, value);
    return at + sizeof value;
}

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    bytes_put_u64(at, value);
    return at + sizeof value;
}

uint64_t request_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

double request_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint8_t *put_double(uint8_t *at, double value)
{
    return put_u64(at, request_bits(value));
}

static uint32_t take_u32(const uint8_t **at)
{
    *at += sizeof(uint32_t);
    return bytes_get_u32(*at - sizeof(uint32_t));
}

static uint64_t take_u64(const uint8_t **at)
{
    *at += sizeof(uint64_t);
    return bytes_get_u64(*at - sizeof(uint64_t));
}

static double take_double(const uint8_t **at)
{
    return request_double(take_u64(at));
}

static uint8_t *put_name(uint8_t *at, const char *name)
{
    memset(at, 0, STORE_NAME_BYTES);
    memcpy(at, name, strnlen(name, STORE_NAME_BYTES - 1));
    return at + STORE_NAME_BYTES;
}

static uint8_t *put_push(uint8_t *at, const struct push *push)
{
    at = put_u32(at, (uint32_t)push->kind);
    at = put_u32(at, push->sparse ? 1 : 0);
    at = put_u32(at, push->ordinal);
    at = put_u32(at, push->contributions);
    at = put_u64(at, push->closure);
    at = put_u64(at, push->first_row);
    at = put_u64(at, push->rows);
    at = put_double(at, push->rate);
    at = put_u64(at, push->based_on);
    at = put_u64(at, push->staleness);
    at = put_u64(at, push->step);
    return put_double(at, push->trust);
}

void push_header_read(const uint8_t bytes[PUSH_HEADER_BYTES], uint32_t shard, struct push *ret_push)
{
    const uint8_t *at = bytes;
    *ret_push = (struct push){.shard = shard};
    ret_push->kind = (enum push_kind)take_u32(&at);
    ret_push->sparse = take_u32(&at) != 0;
    ret_push->ordinal = take_u32(&at);
    ret_push->contributions = take_u32(&at);
    ret_push->closure = take_u64(&at);
    ret_push->first_row = take_u64(&at);
    ret_push->rows = take_u64(&at);
    ret_push->rate = take_double(&at);
    ret_push->based_on = take_u64(&at);
    ret_push->staleness = take_u64(&at);
    ret_push->step = take_u64(&at);
    ret_push->trust = take_double(&at);
}

void norms_write(const struct optimizer_norms *norms, uint8_t ret_bytes[NORMS_BYTES])
{
    uint8_t *at = ret_bytes;
    for (size_t i = 0; i < OPTIMIZER_LANES; i++) {
        at = put_double(at, norms->values[i]);
        at = put_double(at, norms->changes[i]);
    }
}

void norms_read(const uint8_t bytes[NORMS_BYTES], struct optimizer_norms *ret_norms)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < OPTIMIZER_LANES; i++) {
        ret_norms->values[i] = take_double(&at);
        ret_norms->changes[i] = take_double(&at);
    }
}

static uint8_t *put_spec(uint8_t *at, const struct store_spec *spec)
{
    at = put_name(at, spec->name);
    at = put_u32(at, spec->shard);
    at = put_u32(at, (uint32_t)spec->dtype);
    at = put_u64(at, spec->rows);
    return put_u64(at, spec->row_elements);
}

void spec_header_read(const uint8_t bytes[SPEC_HEADER_BYTES], struct store_spec *ret_spec)
{
    const uint8_t *at = bytes + STORE_NAME_BYTES;
    memset(ret_spec, 0, sizeof *ret_spec);
    name_header_read(bytes, ret_spec->name);
    ret_spec->shard = take_u32(&at);
    ret_spec->dtype = (cadre_dtype)take_u32(&at);
    ret_spec->rows = take_u64(&at);
    ret_spec->row_elements = take_u64(&at);
}

void name_header_read(const uint8_t bytes[NAME_HEADER_BYTES], char ret_name[STORE_NAME_BYTES])
{
    memcpy(ret_name, bytes, STORE_NAME_BYTES);
    ret_name[STORE_NAME_BYTES - 1] = '\0';
}

static bool is_push(const struct request *request)
{
    return request->kind == REQUEST_PUSH || request->kind == REQUEST_PUSH_PULL ||
           request->kind == REQUEST_NORMS;
}

uint64_t request_ids_bytes(const struct request *request)
{
    bool some = request->kind == REQUEST_GATHER;
    uint64_t rows = is_push(request) ? request->push.rows : request->rows;
    return some || (is_push(request) && request->push.sparse) ? rows * sizeof(int64_t) : 0;
}

uint64_t request_values_bytes(const struct request *request)
{
    return is_push(request)                    ? request->push.rows * request->row_bytes
           : request->kind == REQUEST_SET_SLOT ? request->rows * request->row_bytes
           : request->kind == REQUEST_NOTE     ? request->rows
                                               : 0;
}

uint64_t request_answer_bytes(const struct request *request)
{
    switch (request->kind) {
    case REQUEST_PULL:
    case REQUEST_GATHER:
    case REQUEST_SLOT:
        return request->rows * request->row_bytes;
    case REQUEST_PUSH_PULL:
        return request->push.rows * request->row_bytes;
    case REQUEST_RULE:
        return RULE_BYTES;
    case REQUEST_NORMS:
    case REQUEST_STEP_NORMS:
        return NORMS_BYTES;
    case REQUEST_FIND_NOTE:
    case REQUEST_NOTE_NAMES:
        return UINT64_MAX;
    default:
        return 0;
    }
}

size_t request_write(const struct request *request, uint64_t done_watermark,
    struct frame *ret_frame, uint8_t ret_part[REQUEST_HEADER_BYTES])
{
    uint8_t *end = ret_part;
    if (request->kind == REQUEST_CREATE) {
        end = put_spec(end, request->spec);
    } else if (request->kind == REQUEST_TRAIN) {
        rule_write(request->rule, end);
        end += RULE_BYTES;
    } else if (is_push(request)) {
        end = put_push(end, &request->push);
    } else if (request->kind == REQUEST_NOTE || request->kind == REQUEST_FIND_NOTE) {
        end = put_name(end, request->name);
    }
    size_t part_bytes = (size_t)(end - ret_part);
    *ret_frame = (struct frame){
        .kind = (uint32_t)request->kind,
        .bytes = part_bytes + request_ids_bytes(request) + request_values_bytes(request),
    };
    bool set_slot = request->kind == REQUEST_SET_SLOT;
    ret_frame->args[ARG_SHARD] = request->shard | (uint64_t)request->slot << 32;
    ret_frame->args[ARG_FIRST] =
        request->kind == REQUEST_SETTLE ? request_bits(request->trust) : request->first;
    ret_frame->args[ARG_ROWS] = request->rows;
    ret_frame->args[ARG_MIN_STEPS] = set_slot ? request->updates : request->min_steps;
    ret_frame->args[ARG_DONE_WATERMARK] = done_watermark;
    return part_bytes;
}
