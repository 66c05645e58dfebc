/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/host/probe/slot_gpus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char **slot_gpus_divide(const struct host_gpus *gpus, uint32_t slots)
{
    size_t each = gpus->usable / slots + 1;
    size_t room = each * LIMIT_NAME_BYTES;
    char **shares = calloc(1, slots * (sizeof *shares + room));
    char *text = shares != NULL ? (char *)(shares + slots) : NULL;
    for (uint32_t slot = 0; shares != NULL && slot < slots; slot++, text += room) {
        struct gpus_range range = gpus_of_slot(gpus->usable, slots, slot);
        size_t used = 0;
        shares[slot] = text;
        for (uint32_t i = range.first; i < range.end; i++) {
            used += (size_t)snprintf(
                text + used, room - used, "%s%s", used > 0 ? "," : "", gpus->devices[i].visible);
        }
    }
    return shares;
}

void slot_gpus_summary(const struct host_gpus *gpus, char ret_text[LIMIT_TEXT_BYTES])
{
    uint32_t same = 0;
    while (same < gpus->usable && strcmp(gpus->devices[same].name, gpus->devices[0].name) == 0) {
        same++;
    }
    if (gpus->usable == 0) {
        snprintf(ret_text, LIMIT_TEXT_BYTES, "none");
    } else if (same < gpus->usable) {
        uint32_t others = gpus->usable - same;
        snprintf(ret_text, LIMIT_TEXT_BYTES, "%u x %s and %u other%s", same, gpus->devices[0].name,
            others, others == 1 ? "" : "s");
    } else {
        snprintf(ret_text, LIMIT_TEXT_BYTES, "%u x %s", same, gpus->devices[0].name);
    }
}

cadre_status slot_gpus_open(const struct host_gpus_search *search, uint32_t slots,
    struct slot_gpus **ret_gpus, struct cadre_error *error)
{
    struct slot_gpus *gpus = calloc(1, sizeof *gpus);
    if (gpus != NULL) {
        host_gpus_find(search, &gpus->host);
        gpus->reported = host_gpus_view(&gpus->host, gpus->devices);
        gpus->shares = slot_gpus_divide(&gpus->host, slots);
    }
    if (gpus == NULL || gpus->shares == NULL) {
        free(gpus);
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory to look for GPUs");
    }
    *ret_gpus = gpus;
    return CADRE_OK;
}

void slot_gpus_close(struct slot_gpus *gpus)
{
    if (gpus != NULL) {
        free(gpus->shares);
        free(gpus);
    }
}
