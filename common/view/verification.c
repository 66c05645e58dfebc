/* SPDX-License-Identifier: Apache-2.0
 * Judges a job's proof: from the records that audit_pages.c collected to a verdict per epoch and
 * per generation. verify.c calls it. */
#include "common/view/verification.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/pure/digest.h"
#include "common/view/result.h"

#define SENTENCE_BYTES 384

/* What the judge needs of an epoch beside its public form. */
struct evidence {
    struct digest consumed;
    struct digest expected;
    bool provable;
    enum consumed_files files;
    bool shares;
    char text[SENTENCE_BYTES];
};

/* The public part comes first: it is what the caller holds. */
struct verification {
    cadre_verification public;
    cadre_verified_epoch *epochs;
    struct evidence *evidence;
    char tiling[SENTENCE_BYTES];
};

const char *cadre_verdict_name(cadre_verdict verdict)
{
    switch (verdict) {
    case CADRE_VERDICT_EXACT:
        return "exact";
    case CADRE_VERDICT_AS_DEFINED:
        return "as defined";
    case CADRE_VERDICT_DIFFERS:
        return "differs";
    case CADRE_VERDICT_NOT_PROVABLE:
        return "not provable";
    }
    return "unknown";
}

/* ---- from the records ---- */

static void view_epoch(
    const struct verify_epoch *from, struct evidence *evidence, cadre_verified_epoch *ret_epoch)
{
    *ret_epoch = (cadre_verified_epoch){.stream = from->stream,
        .name = from->name,
        .epoch = from->cursor.epoch,
        .steps = from->consumption.steps,
        .steps_whole = from->cursor.steps,
        .samples = from->consumption.samples,
        .source_samples = from->source_samples,
        .text = evidence->text,
        .first = from->cursor.first,
        .consumed = {from->consumption.consumed[0], from->consumption.consumed[1]}};
    *evidence = (struct evidence){
        .consumed = {{from->consumption.consumed[0], from->consumption.consumed[1]}},
        .expected = {{from->consumption.expected[0], from->consumption.expected[1]}},
        .provable = from->consumption.provable,
        .files = from->consumption.files,
        .shares = from->shares};
}

/* From the newest to the oldest: one that began again at a checkpoint takes over the steps from
 * there on. */
static void view_generations(
    const struct verify_response *response, cadre_verified_generation *generations)
{
    uint64_t end = response->committed;
    for (size_t i = response->generation_count; i > 0; i--) {
        const struct verify_generation *from = &response->generations[i - 1];
        generations[i - 1] = (cadre_verified_generation){.number = from->generation.number,
            .first = from->resume,
            .end = end > from->resume ? end : from->resume,
            .tasks = from->members,
            .restarted = from->restarted,
            .planned_us = from->planned_us};
        end = from->resume < end ? from->resume : end;
    }
}

cadre_verification *verification_new(
    const struct verify_response *response, struct wire_arena *arena)
{
    struct verification *made = result_new(sizeof *made, arena);
    if (made == NULL) {
        return NULL;
    }
    cadre_verified_generation *generations =
        result_array(made, 0, response->generation_count, sizeof *generations);
    made->epochs = result_array(made, 1, response->epoch_count, sizeof *made->epochs);
    made->evidence = result_array(made, 2, response->epoch_count, sizeof *made->evidence);
    cadre_verified_state *states = result_array(made, 3, response->verified_count, sizeof *states);
    if (generations == NULL || made->epochs == NULL || made->evidence == NULL || states == NULL) {
        result_discard(made);
        return NULL;
    }
    view_generations(response, generations);
    for (size_t i = 0; i < response->epoch_count; i++) {
        view_epoch(&response->epochs[i], &made->evidence[i], &made->epochs[i]);
    }
    for (size_t i = 0; i < response->verified_count; i++) {
        states[i] = (cadre_verified_state){
            .position = response->verified[i].position, .digest = response->verified[i].digest};
    }
    made->public = (cadre_verification){.job = response->job.id.n,
        .job_name = response->job.name,
        .state = (cadre_job_state)response->job.state,
        .committed = response->committed,
        .generations = generations,
        .generation_count = response->generation_count,
        .tiling = made->tiling,
        .epochs = made->epochs,
        .epoch_count = response->epoch_count,
        .more = response->more,
        .program = response->job.program,
        .states = states,
        .state_count = response->verified_count};
    return &made->public;
}

/* ---- epochs ---- */

__attribute__((format(printf, 4, 5))) static void explain_epoch(cadre_verified_epoch *epoch,
    struct evidence *evidence, cadre_verdict verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(evidence->text, sizeof evidence->text, format, arguments);
    va_end(arguments);
    epoch->verdict = verdict;
}

/* Whether each id of the source was consumed once. */
static bool is_whole_source(const cadre_verified_epoch *epoch, const struct evidence *evidence)
{
    if (epoch->source_samples == 0 || epoch->samples != epoch->source_samples ||
        (epoch->steps_whole != 0 && epoch->steps != epoch->steps_whole)) {
        return false;
    }
    struct digest_key key = digest_key_make(epoch->name, strlen(epoch->name), epoch->epoch);
    struct digest all = {{0, 0}};
    for (uint64_t id = 0; id < epoch->source_samples; id++) {
        digest_add(&all, &key, id);
    }
    return digest_equal(&all, &evidence->consumed);
}

static void evaluate_defined(cadre_verified_epoch *epoch, struct evidence *evidence)
{
    if (epoch->steps_whole != 0 && epoch->steps < epoch->steps_whole) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_AS_DEFINED,
            "the %" PRIu64 " of %" PRIu64 " steps that were done consumed exactly the %" PRIu64
            " samples that the dataset defines for them",
            epoch->steps, epoch->steps_whole, epoch->samples);
    } else if (epoch->source_samples != 0 && epoch->samples < epoch->source_samples) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_AS_DEFINED,
            "consumed exactly the %" PRIu64 " samples that the dataset defines, of %" PRIu64
            " in its source",
            epoch->samples, epoch->source_samples);
    } else {
        explain_epoch(epoch, evidence, CADRE_VERDICT_AS_DEFINED,
            "consumed exactly the %" PRIu64 " samples that the dataset defines", epoch->samples);
    }
}

/* The tasks agreed on what each step holds, and the table of files has none of it twice. */
static void evaluate_files(cadre_verified_epoch *epoch, struct evidence *evidence)
{
    if (!evidence->provable) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_NOT_PROVABLE,
            "for some of its steps the tasks did not report what they agreed on");
    } else if (evidence->files == CONSUMED_FILES_ALL) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_EXACT,
            "every one of %" PRIu64 " samples of its files exactly once", epoch->samples);
    } else if (evidence->files == CONSUMED_FILES_DROPPED) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_NOT_PROVABLE,
            "the %" PRIu64
            " samples are of its files, each once, and some others were consumed by no task: the "
            "pipeline drops them (it filters, or drops the rest of a batch), and which ones is not "
            "known beforehand",
            epoch->samples);
    } else {
        explain_epoch(epoch, evidence, CADRE_VERDICT_AS_DEFINED,
            "the %" PRIu64 " steps that were done consumed %" PRIu64
            " samples of its files, each once; there is more in the files",
            epoch->steps, epoch->samples);
    }
}

static void evaluate_epoch(cadre_verified_epoch *epoch, struct evidence *evidence)
{
    if (epoch->stream == 0) {
        explain_epoch(
            epoch, evidence, CADRE_VERDICT_NOT_PROVABLE, "its steps take no samples of a dataset");
    } else if (epoch->steps == 0) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_NOT_PROVABLE, "no step of it was committed");
    } else if (!evidence->shares) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_NOT_PROVABLE,
            "every task reads this dataset for itself, so nothing is claimed about all of them");
    } else if (evidence->provable && !digest_equal(&evidence->consumed, &evidence->expected)) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_DIFFERS,
            "the %" PRIu64 " samples consumed in its %" PRIu64
            " steps are not those that the dataset defines: some were left out, consumed twice or "
            "replaced",
            epoch->samples, epoch->steps);
    } else if (evidence->files != CONSUMED_FILES_NONE) {
        evaluate_files(epoch, evidence);
    } else if (is_whole_source(epoch, evidence)) {
        explain_epoch(epoch, evidence, CADRE_VERDICT_EXACT,
            "every one of %" PRIu64 " samples exactly once", epoch->source_samples);
    } else if (evidence->provable) {
        evaluate_defined(epoch, evidence);
    } else {
        explain_epoch(epoch, evidence, CADRE_VERDICT_NOT_PROVABLE,
            "which samples a step holds is not known beforehand: the dataset is not indexable (a "
            "filter, a shuffle buffer, text lines, compressed files, a generator)");
    }
}

/* ---- generations ---- */

__attribute__((format(printf, 3, 4))) static bool explain_tiling(
    struct verification *made, bool tiled, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made->tiling, sizeof made->tiling, format, arguments);
    va_end(arguments);
    return tiled;
}

/* Protocol, section 6: the generations' step ranges tile. Each begins where the one before it
 * ended: never before its beginning, unless the state was lost and everything from a checkpoint on
 * was done again; or the last step alone, when all tasks that had applied it were lost before
 * others received it. */
static bool evaluate_generation(struct verification *made, size_t index)
{
    const cadre_verified_generation *now = &made->public.generations[index];
    if (index > 0) {
        const cadre_verified_generation *before = &made->public.generations[index - 1];
        if (now->number <= before->number) {
            return explain_tiling(made, false,
                "generation %" PRIu64 " follows generation %" PRIu64
                ": the records are out of order",
                now->number, before->number);
        }
        if (now->first + 1 < before->first && !now->restarted) {
            return explain_tiling(made, false,
                "generation %" PRIu64 " begins at step %" PRIu64 ", before generation %" PRIu64
                " at step %" PRIu64 ", although the state was not lost",
                now->number, now->first, before->number, before->first);
        }
    }
    if (now->first > made->public.committed && cadre_job_state_is_final(made->public.state)) {
        return explain_tiling(made, false,
            "generation %" PRIu64 " begins at step %" PRIu64 ", but the job ended with %" PRIu64
            " committed",
            now->number, now->first, made->public.committed);
    }
    return true;
}

/* Each committed step is of one epoch, so the epochs hold at most as many. Those of steps that were
 * done again after a restart may still be on record. */
static bool evaluate_sum(struct verification *made, size_t restarted)
{
    const cadre_verification *public = &made->public;
    uint64_t steps = 0;
    for (size_t i = 0; i < public->epoch_count; i++) {
        steps += public->epochs[i].steps;
    }
    if (steps <= public->committed || restarted > 0 || !cadre_job_state_is_final(public->state)) {
        return true;
    }
    return explain_tiling(made, false,
        "the epochs hold %" PRIu64 " steps, but only %" PRIu64 " are committed", steps,
        public->committed);
}

static bool evaluate_tiling(struct verification *made)
{
    const cadre_verification *public = &made->public;
    size_t restarted = 0;
    if (public->generation_count == 0) {
        return public->committed == 0
                   ? explain_tiling(made, true, "no generation was formed, and no step committed")
                   : explain_tiling(made, false,
                         "%" PRIu64 " steps are committed, but no generation is recorded",
                         public->committed);
    }
    for (size_t i = 0; i < public->generation_count; i++) {
        if (!evaluate_generation(made, i)) {
            return false;
        }
        restarted += public->generations[i].restarted ? 1 : 0;
    }
    if (!evaluate_sum(made, restarted)) {
        return false;
    }
    char again[64] = "";
    if (restarted > 0) {
        snprintf(again, sizeof again, "; %zu began again from a checkpoint", restarted);
    }
    return explain_tiling(made, true,
        "%zu generation%s own%s the steps %" PRIu64 " to %" PRIu64 " without gap or overlap%s",
        public->generation_count, public->generation_count == 1 ? "" : "s",
        public->generation_count == 1 ? "s" : "", public->generations[0].first, public->committed,
        again);
}

static void count_verdict(cadre_verification *public, const cadre_verified_epoch *epoch)
{
    public->exact += epoch->verdict == CADRE_VERDICT_EXACT ? 1 : 0;
    public->as_defined += epoch->verdict == CADRE_VERDICT_AS_DEFINED ? 1 : 0;
    public->differing += epoch->verdict == CADRE_VERDICT_DIFFERS ? 1 : 0;
    public->not_provable += epoch->verdict == CADRE_VERDICT_NOT_PROVABLE ? 1 : 0;
    if (epoch->verdict == CADRE_VERDICT_EXACT || epoch->verdict == CADRE_VERDICT_AS_DEFINED) {
        public->steps_proved += epoch->steps;
    }
}

void verification_evaluate(cadre_verification *verification, const cadre_verify_options *options)
{
    struct verification *made = (struct verification *)verification;
    verification->tiled = evaluate_tiling(made);
    for (size_t i = 0; i < verification->epoch_count && !options->unjudged; i++) {
        evaluate_epoch(&made->epochs[i], &made->evidence[i]);
        count_verdict(verification, &made->epochs[i]);
        if (options->on_progress != NULL) {
            const cadre_verify_progress progress = {
                .judging = true, .epochs = i + 1, .expected = verification->epoch_count};
            options->on_progress(&progress, options->user);
        }
    }
}
