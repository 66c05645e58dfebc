/* SPDX-License-Identifier: Apache-2.0
 * The comparison of two jobs as text. */
#include <inttypes.h>

#include "coordinator/cli/render/render.h"

static void print_job(const cadre_verification *job, const struct text_style *text_style, FILE *out)
{
    enum colour colour = render_state_colour(job->state);
    fprintf(out, "job %" PRIu64 "  ", job->job);
    text_print(out, job->job_name, 0);
    fprintf(out, "  %s%s%s  program ", colour_start(text_style, colour),
        cadre_job_state_name(job->state), colour_end(text_style, colour));
    text_print(out, job->program, 0);
    fprintf(
        out, "  %" PRIu64 " step%s committed\n", job->committed, job->committed == 1 ? "" : "s");
}

/* "400 epochs, 9200 of the steps 0 to 10400". */
static void print_extent(const struct comparison *comparison, FILE *out)
{
    uint64_t span = comparison->end - comparison->begin;
    fprintf(out, "%" PRIu64 " epoch%s, ", comparison->epochs, comparison->epochs == 1 ? "" : "s");
    if (comparison->steps < span) { /* the others consumed no samples, or are not in both ledgers */
        fprintf(out, "%" PRIu64 " of ", comparison->steps);
    }
    fprintf(out, "the steps %" PRIu64 " to %" PRIu64, comparison->begin, comparison->end);
}

static void print_states(const struct comparison *comparison, FILE *out)
{
    fprintf(out,
        "states equal at %" PRIu64 " position%s that both verified, the newest step %" PRIu64,
        comparison->states, comparison->states == 1 ? "" : "s", comparison->state);
}

static void print_equal(const struct comparison *comparison, FILE *out)
{
    if (comparison->epochs > 0) {
        fprintf(out, "both consumed the same samples as far as both go: ");
        print_extent(comparison, out);
    }
    if (comparison->states > 0) {
        fprintf(out, "%s", comparison->epochs > 0 ? "; " : "");
        print_states(comparison, out);
    }
}

static void print_outcome(
    const struct comparison *comparison, const struct text_style *text_style, FILE *out)
{
    static const enum colour colours[] = {[COMPARISON_EQUAL] = COLOUR_GREEN,
        [COMPARISON_DIFFERS] = COLOUR_RED,
        [COMPARISON_NOTHING] = COLOUR_YELLOW};
    enum colour colour = colours[comparison->outcome];
    fprintf(out, "%s%s%s: ", colour_start(text_style, colour),
        comparison_outcome_name(comparison->outcome), colour_end(text_style, colour));
    switch (comparison->outcome) {
    case COMPARISON_EQUAL:
        print_equal(comparison, out);
        break;
    case COMPARISON_DIFFERS:
        text_print(out, comparison->point.text, 0);
        break;
    case COMPARISON_NOTHING:
        fprintf(out, "there is no epoch of which the same steps are committed in both, and no "
                     "position at which both verified their states");
        break;
    }
    fputc('\n', out);
}

void render_comparison(
    const struct comparison *comparison, const struct text_style *text_style, FILE *out)
{
    print_job(comparison->jobs[0], text_style, out);
    print_job(comparison->jobs[1], text_style, out);
    if (comparison->jobs[0]->more || comparison->jobs[1]->more) {
        fprintf(out, "%s\n", RENDER_TRUNCATED);
    }
    if (comparison->outcome == COMPARISON_DIFFERS && comparison->epochs > 0) {
        fprintf(out, "the same samples before: ");
        print_extent(comparison, out);
        fputc('\n', out);
    }
    if (comparison->outcome == COMPARISON_DIFFERS && comparison->states > 0) {
        fprintf(out, "before: ");
        print_states(comparison, out);
        fputc('\n', out);
    }
    print_outcome(comparison, text_style, out);
}
