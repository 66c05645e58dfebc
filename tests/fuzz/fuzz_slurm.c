/* SPDX-License-Identifier: Apache-2.0
 * libFuzzer target: any bytes as a list of hosts, and as counts of tasks. The names of an accepted
 * list, written one after the other, are read as the same names. */
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "worker/library/cluster/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_again(const struct slurm_hosts *hosts)
{
    char *joined = calloc(hosts->count, CADRE_CLUSTER_ADDRESS_BYTES);
    CADRE_ASSERT(joined != NULL);
    char *end = joined;
    for (size_t i = 0; i < hosts->count; i++) {
        CADRE_ASSERT(hosts->names[i][0] != '\0');
        CADRE_ASSERT(strlen(hosts->names[i]) < CADRE_CLUSTER_ADDRESS_BYTES);
        end = stpcpy(stpcpy(end, i == 0 ? "" : ","), hosts->names[i]);
    }
    struct slurm_hosts again;
    struct cadre_error error = {0};
    CADRE_ASSERT(slurm_hosts_expand(joined, &again, &error) == CADRE_OK);
    CADRE_ASSERT(again.count == hosts->count);
    for (size_t i = 0; i < hosts->count; i++) {
        CADRE_ASSERT(strcmp(again.names[i], hosts->names[i]) == 0);
    }
    slurm_hosts_clear(&again);
    free(joined);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    struct slurm_hosts hosts;
    struct cadre_error error = {0};
    CADRE_ASSERT(text != NULL);
    cadre_status status = slurm_hosts_expand(text, &hosts, &error);
    if (status == CADRE_OK) {
        CADRE_ASSERT(hosts.count > 0);
        read_again(&hosts);
    } else {
        CADRE_ASSERT(status == CADRE_INVALID_ARGUMENT || status == CADRE_RESOURCE_EXHAUSTED);
        CADRE_ASSERT(error.text[0] != '\0');
    }
    slurm_hosts_clear(&hosts);
    uint32_t *counts;
    size_t count;
    status = slurm_counts_expand(text, &counts, &count, &error);
    CADRE_ASSERT(status == CADRE_OK || status == CADRE_INVALID_ARGUMENT);
    for (size_t i = 0; status == CADRE_OK && i < count; i++) {
        CADRE_ASSERT(counts[i] > 0 && counts[i] <= CADRE_CLUSTER_TASKS_MAX);
    }
    free(counts);
    free(text);
    return 0;
}
