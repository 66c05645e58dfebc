/* SPDX-License-Identifier: Apache-2.0
 * Makes the manual pages of the verbs from their option tables, and of the command from the table
 * of verbs. */
#include "deploy/cadre/manual.h"

#include <stdio.h>
#include <string.h>

#include "common/base/manual.h"
#include "deploy/cadre/complete.h"

#define VERBS_MAX   64
#define RELATED_MAX 32
#define NAME_BYTES  64

/* A page with what it refers to. */
struct page {
    struct manual manual;
    char name[NAME_BYTES];
    struct manual_item exits[EXIT_ITEMS_MAX];
    struct manual_item verbs[VERBS_MAX];
    char related_names[RELATED_MAX][NAME_BYTES];
    const char *related[RELATED_MAX + 1];
    size_t related_count;
};

static void add_related(struct page *page, const char *name)
{
    bool known = page->related_count == RELATED_MAX;
    for (size_t i = 0; i < page->related_count; i++) {
        known = known || strcmp(page->related[i], name) == 0;
    }
    if (!known) {
        snprintf(page->related_names[page->related_count], NAME_BYTES, "%s", name);
        page->related[page->related_count] = page->related_names[page->related_count];
        page->related_count++;
    }
}

/* The verbs that a text names: `cadre VERB`. */
static void relate_text(struct page *page, const struct verb *verbs, const char *text)
{
    for (const char *at = text; at != NULL && (at = strstr(at, "cadre ")) != NULL; at++) {
        size_t length = strcspn(at + 6, " `.,;:\n)");
        for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
            if (strlen(verb->name) == length && strncmp(at + 6, verb->name, length) == 0) {
                char name[NAME_BYTES];
                snprintf(name, sizeof name, "cadre-%s", verb->name);
                add_related(page, name);
            }
        }
    }
}

static void relate(struct page *page, const struct verb *verbs)
{
    const struct option_table *table = page->manual.table;
    add_related(page, "cadre");
    for (size_t i = 0; i < table->row_count; i++) {
        relate_text(page, verbs, table->rows[i].help);
    }
    relate_text(page, verbs, table->summary);
    relate_text(page, verbs, table->notes);
    page->manual.related = page->related;
}

static void list_verbs(struct page *page, const struct verb *verbs)
{
    size_t count = 0;
    for (; verbs != NULL && verbs[count].name != NULL && count < VERBS_MAX; count++) {
        page->verbs[count] =
            (struct manual_item){.name = verbs[count].name, .meaning = verbs[count].summary};
    }
    page->manual.verbs = page->verbs;
    page->manual.verb_count = count;
}

/* The page of a verb, and before it those of the verbs beneath it; `wanted` NULL: only the names.
 * True when the wanted one was printed. */
static bool print_pages(
    const struct verb *all, const struct verb *verbs, const char *above, const char *wanted)
{
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        const struct verb_shape shape = verb_shape_of(verb);
        struct page page = {.manual = {.title = verb->summary, .table = shape.table}};
        snprintf(page.name, sizeof page.name, "%s-%s", above, verb->name);
        page.manual.name = page.name;
        if (shape.verbs != NULL && print_pages(all, shape.verbs, page.name, wanted)) {
            return true;
        }
        if (wanted == NULL) {
            puts(page.name);
        } else if (strcmp(page.name, wanted) == 0) {
            page.manual.exits = page.exits;
            page.manual.exit_count = exit_codes_list(verb->exit_codes, page.exits);
            list_verbs(&page, shape.verbs);
            for (size_t i = 0; i < page.manual.verb_count; i++) {
                char name[NAME_BYTES];
                snprintf(name, sizeof name, "%.30s-%.30s", page.name, page.verbs[i].name);
                add_related(&page, name);
            }
            relate(&page, all);
            manual_print(&page.manual, stdout);
            return true;
        }
    }
    return false;
}

/* The page of the command itself. */
static void print_command(const struct verb *verbs, const struct option_table *table)
{
    struct page page = {.manual = {.name = table->program, .title = table->title, .table = table}};
    list_verbs(&page, verbs);
    page.manual.exits = page.exits;
    page.manual.exit_count = exit_codes_list(EXIT_CODES_QUERY, page.exits);
    for (const struct verb *verb = verbs; verb->name != NULL; verb++) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "cadre-%s", verb->name);
        add_related(&page, name);
    }
    page.manual.related = page.related;
    manual_print(&page.manual, stdout);
}

int manual(const struct verb *verbs, const struct option_table *table, int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : NULL;
    if (wanted == NULL) {
        puts(table->program);
    } else if (strcmp(wanted, table->program) == 0) {
        print_command(verbs, table);
        return CLI_DONE;
    }
    if (print_pages(verbs, verbs, table->program, wanted) || wanted == NULL) {
        return CLI_DONE;
    }
    fprintf(stderr, "cadre: there is no page \"%s\"; `cadre " MANUAL_VERB "` lists them\n", wanted);
    return CLI_USAGE;
}
