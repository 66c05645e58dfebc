/* SPDX-License-Identifier: Apache-2.0
 * Runs cadre-devices, adds GPUs of the bus that it does not list, applies --gpus, and names each
 * GPU for CUDA_VISIBLE_DEVICES. Called by slot_gpus.c. */
#include "worker/host/probe/slot_gpus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker/host/probe/child.h"

#define VISIBLE "CUDA_VISIBLE_DEVICES="

cadre_status host_gpus_parse_count(
    const char *text, uint32_t *ret_count_wanted, struct cadre_error *error)
{
    if (strcmp(text, "all") == 0 || strcmp(text, "none") == 0) {
        *ret_count_wanted = text[0] == 'a' ? HOST_GPUS_ALL : 0;
        return CADRE_OK;
    }
    char *end = NULL;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 ||
        number > LIMIT_GPUS_PER_WORKER) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--gpus: \"%s\" is neither \"all\" nor \"none\" nor a number from 0 to %d", text,
            LIMIT_GPUS_PER_WORKER);
    }
    *ret_count_wanted = (uint32_t)number;
    return CADRE_OK;
}

/* ---- the share of tasks ---- */

/* Limits the GPUs of tasks to `wanted`, with the reason at the others. */
static void host_gpus_limit(struct host_gpus *gpus, uint32_t wanted)
{
    if (wanted == HOST_GPUS_ALL || (gpus->usable == 0 && wanted > 0)) {
        return;
    }
    if (wanted == 0) {
        snprintf(gpus->reason, sizeof gpus->reason, "the option --gpus none");
    } else if (wanted > gpus->usable) {
        snprintf(gpus->reason, sizeof gpus->reason,
            "the option --gpus %u exceeds the %u GPUs that can be used", wanted, gpus->usable);
    }
    for (uint32_t i = wanted; i < gpus->usable; i++) {
        snprintf(gpus->devices[i].unused, sizeof gpus->devices[i].unused,
            wanted == 0 ? "the option --gpus none" : "the option --gpus %u leaves it out", wanted);
    }
    gpus->usable = wanted < gpus->usable ? wanted : gpus->usable;
}

static bool all_have_uuids(const struct host_gpus *gpus)
{
    bool all = true;
    for (uint32_t i = 0; i < gpus->usable; i++) {
        all = all && gpus->devices[i].uuid[0] != '\0';
    }
    return all;
}

/* By uuid, which means the same in every process. Else by the operator's own list, entry i of which
 * is device i (a MIG instance has no other name), or by number: the two kinds do not mix. */
static void name_visible(struct host_gpus *gpus, const char *list)
{
    const char *at = list;
    bool uuids = all_have_uuids(gpus);
    for (uint32_t i = 0; i < gpus->usable; i++) {
        struct host_gpu *gpu = &gpus->devices[i];
        size_t length = at != NULL ? strcspn(at, ",") : 0;
        bool fits = length > 0 && length < sizeof gpu->visible;
        if (fits && (!uuids || strncmp(at, "MIG", 3) == 0)) {
            memcpy(gpu->visible, at, length);
            gpu->visible[length] = '\0';
        } else if (uuids) {
            memcpy(gpu->visible, gpu->uuid, sizeof gpu->visible);
        } else {
            snprintf(gpu->visible, sizeof gpu->visible, "%u", i);
        }
        at = at != NULL && at[length] == ',' ? at + length + 1 : NULL;
    }
}

/* ---- running cadre-devices ---- */

static const char *find_variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment != NULL && *environment != NULL; environment++) {
        if (strncmp(*environment, name, length) == 0) {
            return *environment + length;
        }
    }
    return NULL;
}

static void find_gpus_ask(const struct host_gpus_search *search, struct host_gpus *gpus)
{
    char path[CHILD_PATH_BYTES] = "";
    struct cadre_error error = {0};
    const char *program = search->program;
    if (program == NULL && child_find_program(path)) {
        program = path;
    }
    if (program == NULL || access(program, X_OK) != 0) {
        snprintf(gpus->reason, sizeof gpus->reason,
            "%.300s, which looks for GPUs, cannot be run: %s",
            program != NULL ? program : "cadre-devices",
            program != NULL ? strerror(errno) : "it was not found");
        return;
    }
    struct child_output output = {.bytes = NULL};
    const struct child child = {.program = program,
        .environment = search->environment,
        .timeout_us = search->timeout_us,
        .change_user = search->change_user,
        .uid = search->uid,
        .gid = search->gid};
    cadre_status status = child_run(&child, &output, &error);
    if (status == CADRE_OK) {
        status = report_read(output.bytes, output.size, gpus, &error);
    }
    free(output.bytes);
    if (status != CADRE_OK) {
        *gpus = (struct host_gpus){.count = 0};
        snprintf(gpus->reason, sizeof gpus->reason, "%s", error.text);
    }
}

void host_gpus_find(const struct host_gpus_search *search, struct host_gpus *ret_gpus)
{
    const char *visible = find_variable(search->environment, VISIBLE);
    *ret_gpus = (struct host_gpus){.count = 0};
    if (search->wanted > 0) {
        find_gpus_ask(search, ret_gpus);
        name_visible(ret_gpus, visible);
    }
    host_gpus_limit(ret_gpus, search->wanted);
    host_gpus_add_bus(ret_gpus, search->pci_folder, visible != NULL);
}
