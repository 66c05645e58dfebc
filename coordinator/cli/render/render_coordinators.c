/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/cli/render/render_coordinators.h"

#include <inttypes.h>
#include <string.h>

#include "coordinator/cli/render/table.h"

/* Yellow: it leads and may not send now; red: it takes no part. */
static enum colour coordinator_colour(const cadre_coordinator *coordinator)
{
    return coordinator->leads                             ? COLOUR_GREEN
           : strcmp(coordinator->state, "refused") == 0   ? COLOUR_RED
           : strcmp(coordinator->state, "suspended") == 0 ? COLOUR_YELLOW
                                                          : COLOUR_NONE;
}

/* Entries that are missing in its copy; "-": it shares no log. */
static void add_behind(struct table *table, const cadre_coordinator *coordinator)
{
    if (coordinator->head == 0) {
        table_add(table, COLOUR_NONE, "-");
        return;
    }
    bool whole = coordinator->applied >= coordinator->head;
    table_add(table, COLOUR_NONE, "%" PRIu64, whole ? 0 : coordinator->head - coordinator->applied);
}

/* Only of one that leads: others may know of a leadership that has ended. */
static void add_since(struct table *table, const cadre_coordinator *coordinator, uint64_t now_us)
{
    char text[RENDER_BYTES];
    uint64_t since_us = coordinator->since_us;
    bool known = coordinator->leads && since_us != 0;
    table_add(table, COLOUR_NONE, "%s",
        known ? render_age(now_us > since_us ? now_us - since_us : 0, text) : "-");
}

static void add_coordinator(
    struct table *table, const cadre_coordinator *coordinator, uint64_t now_us)
{
    char text[RENDER_BYTES];
    table_add(table, COLOUR_NONE, "%s", coordinator->name);
    table_add(table, coordinator_colour(coordinator), "%s", coordinator->state);
    table_add(table, COLOUR_NONE, "%" PRIu64, coordinator->term);
    add_since(table, coordinator, now_us);
    add_behind(table, coordinator);
    if (coordinator->age_us == 0) {
        table_add(table, COLOUR_NONE, "now");
    } else {
        table_add(table, COLOUR_NONE, "%s ago", render_age(coordinator->age_us, text));
    }
    table_add(table, COLOUR_NONE, "%s", coordinator->version);
    table_add(
        table, COLOUR_NONE, "%s", coordinator->addresses[0] != '\0' ? coordinator->addresses : "-");
}

bool render_coordinators(const cadre_coordinator_list *list, uint64_t now_us,
    const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"COORDINATOR", false}, {"STATE", false},
        {"TERM", true}, {"FOR", true}, {"BEHIND", true}, {"UPDATED", true}, {"VERSION", false},
        {"ADDRESS", false}};
    struct table table;
    bool led = false;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < list->count; i++) {
        add_coordinator(&table, &list->coordinators[i], now_us);
        led = led || list->coordinators[i].leads;
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    for (size_t i = 0; good && i < list->count; i++) {
        if (list->coordinators[i].text[0] != '\0') {
            text_print(out, list->coordinators[i].name, 0);
            fprintf(out, ": ");
            text_print(out, list->coordinators[i].text, 0);
            fputc('\n', out);
        }
    }
    if (good && !led) {
        fprintf(out, "No coordinator is known to lead now.\n");
    }
    return good;
}
