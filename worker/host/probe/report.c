/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/probe/child.h"

#include <jansson.h>
#include <string.h>

#include "common/base/utf8.h"

static cadre_status probe_report_malformed(struct cadre_error *error, const char *what)
{
    return cadre_error_set(
        error, CADRE_INVALID_ARGUMENT, "what cadre-devices printed cannot be read: %.200s", what);
}

/* Printable, and within the limits of the messages that carry it. */
static void parse_text(const json_t *object, const char *key, char *ret_text, size_t room)
{
    const char *text = json_string_value(json_object_get(object, key));
    size_t used = 0;
    size_t size = text != NULL ? strlen(text) : 0;
    for (size_t at = 0; at < size;) {
        size_t length = utf8_printable(text + at, size - at);
        size_t needed = length > 0 ? length : 1;
        if (used + needed >= room) {
            break;
        }
        if (length > 0) {
            memcpy(ret_text + used, text + at, length);
        } else {
            ret_text[used] = '?';
        }
        used += needed;
        at += needed;
    }
    ret_text[used] = '\0';
}

static bool parse_number(const json_t *object, const char *key, uint64_t most, uint64_t *ret_number)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    bool good =
        value == NULL || (json_is_integer(value) && number >= 0 && (uint64_t)number <= most);
    *ret_number = good ? (uint64_t)number : 0;
    return good;
}

static cadre_status parse_device(
    const json_t *json, struct host_gpu *gpu, struct cadre_error *error)
{
    uint64_t major = 0;
    uint64_t minor = 0;
    if (!json_is_object(json)) {
        return probe_report_malformed(error, "a device is no object");
    }
    *gpu = (struct host_gpu){.memory_bytes = 0};
    parse_text(json, "name", gpu->name, sizeof gpu->name);
    parse_text(json, "uuid", gpu->uuid, sizeof gpu->uuid);
    parse_text(json, "bus", gpu->bus, sizeof gpu->bus);
    if (gpu->name[0] == '\0') {
        return probe_report_malformed(error, "a device has no name");
    }
    if (gpu->uuid[strcspn(gpu->uuid, ", \t")] != '\0') { /* a comma would split it in
                                                          * CUDA_VISIBLE_DEVICES */
        return probe_report_malformed(error, "a uuid holds a comma or a space");
    }
    if (!parse_number(json, "memory_bytes", INT64_MAX, &gpu->memory_bytes) ||
        !parse_number(json, "compute_major", UINT32_MAX, &major) ||
        !parse_number(json, "compute_minor", UINT32_MAX, &minor)) {
        return probe_report_malformed(error, "a number of a device is none, or out of range");
    }
    gpu->compute_major = (uint32_t)major;
    gpu->compute_minor = (uint32_t)minor;
    return CADRE_OK;
}

static cadre_status parse_report(
    const json_t *root, struct host_gpus *gpus, struct cadre_error *error)
{
    const json_t *devices = json_object_get(root, "devices");
    uint64_t nccl = 0;
    if (!json_is_array(devices)) {
        return probe_report_malformed(error, "it has no list of devices");
    }
    if (json_array_size(devices) > LIMIT_GPUS_PER_WORKER) {
        return probe_report_malformed(error, "it lists more than 64 devices");
    }
    for (size_t i = 0; i < json_array_size(devices); i++) {
        CADRE_TRY(parse_device(json_array_get(devices, i), &gpus->devices[i], error));
        gpus->count++;
    }
    if (!parse_number(root, "nccl", UINT32_MAX, &nccl)) {
        return probe_report_malformed(error, "the version of NCCL is none");
    }
    gpus->usable = gpus->count;
    gpus->nccl = (uint32_t)nccl;
    parse_text(root, "driver", gpus->driver, sizeof gpus->driver);
    parse_text(root, "runtime", gpus->runtime, sizeof gpus->runtime);
    parse_text(root, "reason", gpus->reason, sizeof gpus->reason);
    if (gpus->usable == 0 && gpus->reason[0] == '\0') {
        memcpy(gpus->reason, "the host has none", sizeof "the host has none");
    }
    return CADRE_OK;
}

cadre_status report_read(
    const char *bytes, size_t size, struct host_gpus *ret_gpus, struct cadre_error *error)
{
    json_error_t fault;
    *ret_gpus = (struct host_gpus){.count = 0};
    json_t *root = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &fault);
    if (root == NULL) {
        return probe_report_malformed(error, size == 0 ? "nothing" : fault.text);
    }
    cadre_status status = json_is_object(root) ? parse_report(root, ret_gpus, error)
                                               : probe_report_malformed(error, "it is no object");
    json_decref(root);
    return status;
}
