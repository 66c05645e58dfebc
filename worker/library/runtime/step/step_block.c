/* SPDX-License-Identifier: Apache-2.0
 * A step's outputs as one block of bytes, and back. outputs.c makes and reads it when a task
 * adopts a step. */
#include "worker/library/runtime/step/step_block.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/cleanup.h"
#include "common/pure/assert.h"
#include "worker/library/device/device.h"
#include "worker/library/device/tensor.h"
#include "worker/library/input/node/component_names.h"
#include "worker/library/runtime/values/values.h"

struct block_head {
    struct applied_step applied;
    uint32_t output_count;
    uint32_t replicas;
};

struct tensor_head {
    uint32_t dtype;
    uint32_t rank;
    uint64_t composite;
    int64_t dims[CADRE_RANK_MAX];
    uint64_t bytes; /* that follow; of strings: for each its length and its bytes */
};

/* --- writing --- */

static size_t content_bytes(const cadre_tensor *tensor)
{
    if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
        return cadre_tensor_bytes(tensor);
    }
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    size_t bytes = 0;
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        bytes += sizeof(uint64_t) + strings[i].size;
    }
    return bytes;
}

static cadre_status write_content(
    uint8_t **at, const cadre_tensor *tensor, struct cadre_error *error)
{
    uint8_t *to = *at;
    if (cadre_tensor_dtype(tensor) != CADRE_STRING) {
        size_t bytes = cadre_tensor_bytes(tensor);
        *at = to + bytes;
        return device_copy(
            to, NULL, cadre_tensor_const_data(tensor), tensor_device(tensor), bytes, error);
    }
    const cadre_string *strings = cadre_tensor_const_data(tensor);
    for (int64_t i = 0; i < cadre_tensor_count(tensor); i++) {
        uint64_t size = strings[i].size;
        memcpy(to, &size, sizeof size);
        if (size > 0) {
            memcpy(to + sizeof size, strings[i].bytes, strings[i].size);
        }
        to += sizeof size + strings[i].size;
    }
    *at = to;
    return CADRE_OK;
}

static cadre_status write_tensor(
    uint8_t **at, const cadre_tensor *tensor, struct cadre_error *error)
{
    struct tensor_head head = {0};
    head.dtype = (uint32_t)cadre_tensor_dtype(tensor);
    head.rank = cadre_tensor_rank(tensor);
    head.composite = (uint64_t)tensor_composite(tensor);
    CADRE_ASSERT(head.rank <= CADRE_RANK_MAX);
    head.bytes = content_bytes(tensor);
    for (uint32_t i = 0; i < head.rank; i++) {
        head.dims[i] = cadre_tensor_dim(tensor, i);
    }
    memcpy(*at, &head, sizeof head);
    *at += sizeof head;
    return write_content(at, tensor, error);
}

/* The bytes of an output's name; 0 without one. */
static uint32_t name_bytes(const cadre_per_replica *output)
{
    return output->names == NULL ? 0 : (uint32_t)strlen(output->names[0]);
}

static void write_name(uint8_t **at, const cadre_per_replica *output)
{
    uint32_t bytes = name_bytes(output);
    memcpy(*at, &bytes, sizeof bytes);
    if (bytes > 0) {
        memcpy(*at + sizeof bytes, output->names[0], bytes);
    }
    *at += sizeof bytes + bytes;
}

cadre_status step_block_make(const struct applied_step *applied, cadre_per_replica *const outputs[],
    uint32_t output_count, uint32_t local_replicas, struct step_block *ret_block,
    struct cadre_error *error)
{
    CADRE_ASSERT(applied->known);
    CADRE_ASSERT(output_count <= CADRE_OUTPUTS_MAX);
    size_t size = sizeof(struct block_head);
    for (uint32_t i = 0; i < output_count; i++) {
        size += sizeof(uint32_t) + name_bytes(outputs[i]);
        for (uint32_t local = 0; local < local_replicas; local++) {
            size +=
                sizeof(struct tensor_head) + content_bytes(*per_replica_at(outputs[i], 0, local));
        }
    }
    uint8_t *bytes = malloc(size);
    if (bytes == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
            "no memory for the %zu bytes that the last step gave", size);
    }
    struct block_head head;
    memset(&head, 0, sizeof head); /* padding too, because it is sent */
    head.applied = *applied;
    head.output_count = output_count;
    head.replicas = local_replicas;
    memcpy(bytes, &head, sizeof head);
    uint8_t *to = bytes + sizeof head;
    cadre_status status = CADRE_OK;
    for (uint32_t i = 0; i < output_count; i++) {
        write_name(&to, outputs[i]);
        for (uint32_t local = 0; status == CADRE_OK && local < local_replicas; local++) {
            status = write_tensor(&to, *per_replica_at(outputs[i], 0, local), error);
        }
    }
    if (status != CADRE_OK) {
        free(bytes);
        return status;
    }
    CADRE_ASSERT(to == bytes + size);
    *ret_block = (struct step_block){.bytes = bytes, .size = size};
    return CADRE_OK;
}

/* --- reading --- */

struct reading {
    const uint8_t *at;
    size_t left;
};

static bool step_block_take(struct reading *reading, void *into, size_t bytes)
{
    if (reading->left < bytes) {
        return false;
    }
    memcpy(into, reading->at, bytes);
    reading->at += bytes;
    reading->left -= bytes;
    return true;
}

static cadre_status step_block_broken(struct cadre_error *error)
{
    return cadre_error_set(error, CADRE_INTERNAL,
        "the outputs of the last step, as another task sent them, are malformed");
}

static cadre_status read_strings(struct reading *reading, const struct tensor_head *head,
    int64_t count, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    if ((uint64_t)count > head->bytes / sizeof(uint64_t)) {
        return step_block_broken(error);
    }
    CADRE_FREE_AT_EXIT cadre_string *strings = calloc((size_t)count + 1, sizeof strings[0]);
    if (strings == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a step's outputs");
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t size = 0;
        if (!step_block_take(reading, &size, sizeof size) || size > reading->left) {
            return step_block_broken(error);
        }
        strings[i] = (cadre_string){.bytes = (const char *)reading->at, .size = (size_t)size};
        reading->at += size;
        reading->left -= size;
    }
    return tensor_from_data(CADRE_STRING, head->rank, head->dims, strings, ret_tensor, error);
}

static cadre_status read_tensor(
    struct reading *reading, cadre_tensor **ret_tensor, struct cadre_error *error)
{
    struct tensor_head head;
    int64_t count = 0;
    size_t bytes = 0;
    if (!step_block_take(reading, &head, sizeof head) || head.rank > CADRE_RANK_MAX ||
        head.composite > CADRE_COMPOSITE_SPARSE || head.bytes > reading->left) {
        return step_block_broken(error);
    }
    cadre_dtype dtype = (cadre_dtype)head.dtype;
    if (tensor_shape_check(dtype, head.rank, head.dims, &count, &bytes, error) != CADRE_OK ||
        (dtype != CADRE_STRING && bytes != head.bytes)) {
        return step_block_broken(error);
    }
    if (dtype == CADRE_STRING) {
        return read_strings(reading, &head, count, ret_tensor, error);
    }
    const uint8_t *from = reading->at;
    reading->at += bytes;
    reading->left -= bytes;
    CADRE_TRY(tensor_from_data(dtype, head.rank, head.dims, from, ret_tensor, error));
    tensor_set_composite(*ret_tensor, (cadre_composite)head.composite);
    return CADRE_OK;
}

static cadre_status read_name(
    struct reading *reading, cadre_per_replica *output, struct cadre_error *error)
{
    uint32_t bytes = 0;
    if (!step_block_take(reading, &bytes, sizeof bytes) || bytes > reading->left) {
        return step_block_broken(error);
    }
    if (bytes == 0) {
        return CADRE_OK;
    }
    CADRE_FREE_AT_EXIT char *name = strndup((const char *)reading->at, bytes);
    reading->at += bytes;
    reading->left -= bytes;
    if (name == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for a step's outputs");
    }
    const char *const names[] = {name};
    return component_names_intern(names, 1, "the outputs of the last step", &output->names, error);
}

static cadre_status read_outputs(struct reading *reading, uint32_t local_replicas,
    struct adopted_step *step, struct cadre_error *error)
{
    for (uint32_t i = 0; i < step->output_count; i++) {
        step->outputs[i] = per_replica_new(local_replicas, 1);
        if (step->outputs[i] == NULL) {
            return cadre_error_set(
                error, CADRE_RESOURCE_EXHAUSTED, "no memory for a step's outputs");
        }
        CADRE_TRY(read_name(reading, step->outputs[i], error));
        for (uint32_t local = 0; local < local_replicas; local++) {
            CADRE_TRY(read_tensor(reading, per_replica_at(step->outputs[i], 0, local), error));
        }
    }
    return CADRE_OK;
}

cadre_status step_block_read(const struct step_block *block, uint32_t local_replicas,
    struct adopted_step *ret_step, struct cadre_error *error)
{
    struct reading reading = {.at = block->bytes, .left = block->size};
    struct block_head head;
    *ret_step = (struct adopted_step){0};
    if (!step_block_take(&reading, &head, sizeof head) || head.output_count > CADRE_OUTPUTS_MAX ||
        head.replicas != local_replicas) {
        return step_block_broken(error);
    }
    ret_step->applied = head.applied;
    ret_step->output_count = head.output_count;
    cadre_status status = read_outputs(&reading, local_replicas, ret_step, error);
    ret_step->any = status == CADRE_OK;
    if (status != CADRE_OK) {
        adopted_step_clear(ret_step);
    }
    return status;
}

void adopted_step_clear(struct adopted_step *step)
{
    for (uint32_t i = 0; i < step->output_count; i++) {
        cadre_per_replica_release(step->outputs[i]);
    }
    *step = (struct adopted_step){0};
}
