/* SPDX-License-Identifier: Apache-2.0
 * The proof of what a job consumed, as text. */
#include <inttypes.h>
#include <string.h>

#include "common/view/conclusion.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

static enum colour verdict_colour(cadre_verdict verdict)
{
    switch (verdict) {
    case CADRE_VERDICT_EXACT:
    case CADRE_VERDICT_AS_DEFINED:
        return COLOUR_GREEN;
    case CADRE_VERDICT_DIFFERS:
        return COLOUR_RED;
    case CADRE_VERDICT_NOT_PROVABLE:
        return COLOUR_YELLOW;
    }
    return COLOUR_NONE;
}

/* "45", or "20/45" when the whole is known to be more. */
static void add_part(struct table *table, uint64_t part, uint64_t whole)
{
    if (whole != 0 && whole != part) {
        table_add(table, COLOUR_NONE, "%" PRIu64 "/%" PRIu64, part, whole);
    } else {
        table_add(table, COLOUR_NONE, "%" PRIu64, part);
    }
}

static bool same_row(const cadre_verified_epoch *a, const cadre_verified_epoch *b)
{
    return strcmp(a->name, b->name) == 0 && a->verdict == b->verdict && a->steps == b->steps &&
           a->steps_whole == b->steps_whole && a->samples == b->samples &&
           a->source_samples == b->source_samples && strcmp(a->text, b->text) == 0;
}

/* A row for each run of equal epochs. */
static bool print_epochs(
    const cadre_verification *verification, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"DATASET", false}, {"EPOCH", true},
        {"STEPS", true}, {"SAMPLES", true}, {"VERDICT", false}, {"WHY", false}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0, next; i < verification->epoch_count; i = next) {
        const cadre_verified_epoch *epoch = &verification->epochs[i];
        for (next = i + 1; next < verification->epoch_count; next++) {
            const cadre_verified_epoch *other = &verification->epochs[next];
            if (!same_row(epoch, other) || other->epoch != epoch->epoch + (next - i)) {
                break;
            }
        }
        table_add(&table, COLOUR_NONE, "%s", epoch->name[0] != '\0' ? epoch->name : "-");
        if (next - i == 1) {
            table_add(&table, COLOUR_NONE, "%" PRIu64, epoch->epoch + 1);
        } else {
            table_add(&table, COLOUR_NONE, "%" PRIu64 "-%" PRIu64, epoch->epoch + 1,
                epoch->epoch + (next - i));
        }
        add_part(&table, epoch->steps, epoch->steps_whole);
        add_part(&table, epoch->samples, epoch->source_samples);
        table_add(&table, verdict_colour(epoch->verdict), "%s", cadre_verdict_name(epoch->verdict));
        table_add(&table, COLOUR_NONE, "%s", epoch->text);
    }
    const struct text_style whole = {.colour = text_style->colour}; /* the reason is not cut */
    bool good = table_print(&table, &whole, out);
    table_close(&table);
    return good;
}

static const char *render_verification_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

static void print_difference(const cadre_verification *verification, FILE *out)
{
    if (verification->differing > 0) {
        fprintf(out, "%zu epoch%s differ%s from what the dataset defines\n",
            verification->differing, render_verification_plural(verification->differing),
            verification->differing == 1 ? "s" : "");
    } else {
        fprintf(out, "%s\n", verification->tiling);
    }
}

static void print_audited(const cadre_verification *verification, FILE *out)
{
    uint64_t others = steps_unknown(verification);
    if (verification->exact > 0 || verification->as_defined == 0) {
        fprintf(out, "%zu epoch%s consumed every sample exactly once", verification->exact,
            render_verification_plural(verification->exact));
    }
    if (verification->as_defined > 0) {
        fprintf(out, "%s%zu epoch%s consumed exactly what the dataset defines",
            verification->exact > 0 ? ", " : "", verification->as_defined,
            render_verification_plural(verification->as_defined));
    }
    if (others > 0) { /* also those without recorded consumption */
        fprintf(out, "; the other %" PRIu64 " step%s cannot be proved", others,
            render_verification_plural(others));
    }
    fprintf(out, "\n");
}

static void print_nothing(const cadre_verification *verification, FILE *out)
{
    fprintf(out, "%s\n",
        verification->epoch_count > 0 ? verification->epochs[0].text
        : cadre_job_state_is_final(verification->state)
            ? "no step of this job took samples of a dataset"
            : "no epoch is complete yet; ask again later");
}

static void print_conclusion(
    const cadre_verification *verification, const struct text_style *text_style, FILE *out)
{
    static const struct {
        const char *text;
        enum colour colour;
        void (*print)(const cadre_verification *verification, FILE *out);
    } conclusions[] = {
        [CONCLUSION_AUDITED] = {"proved", COLOUR_GREEN, print_audited},
        [CONCLUSION_PARTLY_AUDITED] = {"partly proved", COLOUR_YELLOW, print_audited},
        [CONCLUSION_NOTHING] = {"nothing could be proved", COLOUR_YELLOW, print_nothing},
        [CONCLUSION_DIFFERS] = {"not as it should be", COLOUR_RED, print_difference},
    };
    enum conclusion conclusion = conclusion_of(verification);
    enum colour colour = conclusions[conclusion].colour;
    fprintf(out, "%s%s%s: ", colour_start(text_style, colour), conclusions[conclusion].text,
        colour_end(text_style, colour));
    conclusions[conclusion].print(verification, out);
}

static void print_states(const cadre_verification *verification, FILE *out)
{
    size_t count = verification->state_count;
    if (count > 0) {
        const cadre_verified_state *newest = &verification->states[count - 1];
        fprintf(out,
            "states verified at %zu position%s, the newest step %" PRIu64 " with digest %016" PRIx64
            "\n",
            count, render_verification_plural(count), newest->position, newest->digest);
    }
}

bool render_verification(
    const cadre_verification *verification, const struct text_style *text_style, FILE *out)
{
    enum colour colour = render_state_colour(verification->state);
    fprintf(out, "job %" PRIu64 "  ", verification->job);
    text_print(out, verification->job_name, 0);
    fprintf(out, "  %s%s%s\n", colour_start(text_style, colour),
        cadre_job_state_name(verification->state), colour_end(text_style, colour));
    bool good = print_epochs(verification, text_style, out);
    fprintf(out, "%s\n", verification->tiling);
    if (verification->generation_count > 0 && verification->generations[0].first > 0) {
        fprintf(out, "The steps before are of the job from whose checkpoint it went on.\n");
    }
    fprintf(out, "%" PRIu64 " of %" PRIu64 " committed step%s %s in epochs that are proved\n",
        verification->steps_proved, verification->committed,
        render_verification_plural(verification->committed),
        verification->committed == 1 ? "is" : "are");
    print_states(verification, out);
    if (verification->more) {
        fprintf(out, "%s\n", RENDER_TRUNCATED);
    }
    print_conclusion(verification, text_style, out);
    return good;
}
