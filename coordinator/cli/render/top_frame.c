/* SPDX-License-Identifier: Apache-2.0
 * One frame of `cadre top` as text or JSON, from what top.c fetched. */
#include "coordinator/cli/render/top_frame.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/view/cluster_sums.h"
#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

#define WAITS_SHOWN    4
#define WAIT_SHARE_MIN 0.01

static bool is_live(const cadre_job *job)
{
    return !cadre_job_state_is_final(job->state);
}

/* ---- speeds ---- */

static const struct top_speed *find_speed(const struct top_speeds *speeds, uint64_t job)
{
    for (size_t i = 0; i < speeds->count; i++) {
        if (speeds->jobs[i].job == job) {
            return &speeds->jobs[i];
        }
    }
    return NULL;
}

static struct top_speed next_speed(
    const struct top_speeds *speeds, const cadre_job *job, uint64_t now_us)
{
    const struct top_speed *before = find_speed(speeds, job->id);
    struct top_speed next = {
        .job = job->id, .position = job->position, .at_us = now_us, .steps_per_s = -1};
    if (before != NULL && now_us > before->at_us && job->position >= before->position) {
        next.steps_per_s = (double)(job->position - before->position) /
                           ((double)(now_us - before->at_us) / (double)CADRE_US_PER_S);
    }
    return next;
}

void top_speeds_note(struct top_speeds *speeds, const cadre_job_list *jobs, uint64_t now_us)
{
    static struct top_speeds next;
    next.count = 0;
    for (size_t i = 0; i < jobs->count && next.count < TOP_JOBS_MAX; i++) {
        if (jobs->jobs[i].state == CADRE_JOB_RUNNING) {
            next.jobs[next.count++] = next_speed(speeds, &jobs->jobs[i], now_us);
        }
    }
    memcpy(speeds->jobs, next.jobs, next.count * sizeof next.jobs[0]);
    speeds->count = next.count;
}

static double speed_of(const struct top_frame *frame, const cadre_job *job)
{
    const struct top_speed *speed = find_speed(frame->speeds, job->id);
    return speed != NULL ? speed->steps_per_s : -1;
}

/* ---- the cluster ---- */

static struct cluster_sums top_frame_sum(const struct top_frame *frame)
{
    struct cluster_sums sums = {0};
    for (size_t i = 0; i < frame->workers->count; i++) {
        cluster_sums_add_worker(&sums, &frame->workers->workers[i]);
    }
    for (size_t i = 0; i < frame->jobs->count; i++) {
        cluster_sums_add_job(&sums, frame->jobs->jobs[i].state);
    }
    return sums;
}

static void render_cluster(
    const struct top_frame *frame, const struct text_style *text_style, FILE *out)
{
    char text[512];
    const struct cluster_sums sums = top_frame_sum(frame);
    uint32_t workers = sums.workers_ready + sums.workers_draining;
    int length = snprintf(text, sizeof text,
        "%s: %" PRIu32 " worker%s%s, %" PRIu32 " of %" PRIu32 " slots used, %" PRIu32
        " GPUs; jobs: %" PRIu32 " run, %" PRIu32 " wait",
        frame->coordinator, workers, workers == 1 ? "" : "s",
        sums.workers_draining > 0 ? " (some drain)" : "", sums.slots_used, sums.slots, sums.gpus,
        sums.jobs_running, sums.jobs_queued);
    if (sums.workers_away > 0 && length > 0 && (size_t)length < sizeof text) {
        snprintf(
            text + length, sizeof text - (size_t)length, "; away: %" PRIu32, sums.workers_away);
    }
    text_print(out, text, text_style->columns);
    fputc('\n', out);
    if (frame->trouble[0] != '\0') {
        fputs(colour_start(text_style, COLOUR_RED), out);
        text_print(out, frame->trouble, text_style->columns);
        fprintf(out, "%s\n", colour_end(text_style, COLOUR_RED));
    }
}

/* ---- jobs ---- */

static void add_rate(struct table *table, bool known, double rate)
{
    if (!known || !(rate >= 0)) {
        table_add(table, COLOUR_NONE, "-");
    } else {
        table_add(table, COLOUR_NONE, rate < 100 ? "%.1f" : "%.0f", rate);
    }
}

static void add_job(const struct top_frame *frame, struct table *table, const cadre_job *job)
{
    char text[RENDER_BYTES];
    const cadre_job_progress *progress = &job->progress;
    bool left = job->has_progress && progress->left_s >= 0 && progress->left_s < 1e12;
    uint64_t since_us = job->started_us != 0 ? job->started_us : job->submitted_us;
    double speed = speed_of(frame, job);
    table_add(table, COLOUR_NONE, "%" PRIu64, job->id);
    table_add(table, render_state_colour(job->state), "%s", cadre_job_state_name(job->state));
    table_add(table, COLOUR_NONE, "%" PRIu32 "/%" PRIu32, job->roster, job->workers);
    table_add(table, job->restarts > 0 ? COLOUR_YELLOW : COLOUR_NONE, "%" PRIu32, job->restarts);
    table_add(table, COLOUR_NONE, "%" PRIu64, job->position);
    add_rate(table, speed >= 0, speed);
    add_rate(table, job->has_progress, progress->samples_per_s);
    table_add(table, COLOUR_NONE, "%s", render_percent(job, text));
    table_add(table, COLOUR_NONE, "%s",
        left ? render_duration((uint64_t)(progress->left_s * 1e6), text) : "-");
    table_add(table, COLOUR_NONE, "%s",
        render_age(frame->now_us > since_us ? frame->now_us - since_us : 0, text));
    table_add(
        table, COLOUR_NONE, "%s%s%s", job->name, job->message[0] != '\0' ? ": " : "", job->message);
}

static bool render_live(
    const struct top_frame *frame, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"JOB", true}, {"STATE", false}, {"TASKS", true},
        {"RESTARTS", true}, {"STEP", true}, {"STEPS/S", true}, {"SAMPLES/S", true}, {"DONE", true},
        {"LEFT", true}, {"AGE", true}, {"NAME", false}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (int waiting = 0; waiting < 2; waiting++) { /* those that run first */
        for (size_t i = 0; i < frame->jobs->count; i++) {
            const cadre_job *job = &frame->jobs->jobs[i];
            if (is_live(job) && (job->state == CADRE_JOB_QUEUED) == (waiting == 1)) {
                add_job(frame, &table, job);
            }
        }
    }
    bool good = table.cell_count == 0 || table_print(&table, text_style, out);
    if (table.cell_count == 0 && !table.out_of_memory) {
        fputs("no job runs or waits\n", out);
    }
    table_close(&table);
    return good;
}

/* ---- who is waited for ---- */

static bool is_shown(const struct top_frame *frame, const struct top_wait *wait)
{
    return wait->job != 0 &&
           (wait->now_us > 0 || top_waits_share(frame->waits, wait) >= WAIT_SHARE_MIN);
}

/* "job 7 waits for task 3 on w2 (4.2 s); 35% of the last minute" */
static void render_wait(const struct top_frame *frame, const struct top_wait *wait,
    const struct text_style *text_style, FILE *out)
{
    char text[256];
    char span[RENDER_BYTES];
    double share = top_waits_share(frame->waits, wait);
    int length = snprintf(text, sizeof text, "job %" PRIu64 " %s for task %" PRIu32 " on %s",
        wait->job, wait->now_us > 0 ? "waits" : "waited", wait->task, wait->worker);
    if (wait->now_us > 0) {
        length += snprintf(text + length, sizeof text - (size_t)length, " (%s)",
            render_duration(wait->now_us, span));
    }
    if (share >= WAIT_SHARE_MIN) {
        (void)snprintf(text + length, sizeof text - (size_t)length, "%s %.0f%% of the last minute",
            wait->now_us > 0 ? ";" : ":", share * 100);
    }
    fputs(colour_start(text_style, COLOUR_YELLOW), out);
    text_print(out, text, text_style->columns);
    fprintf(out, "%s\n", colour_end(text_style, COLOUR_YELLOW));
}

static void render_waits(
    const struct top_frame *frame, const struct text_style *text_style, FILE *out)
{
    unsigned shown = 0;
    for (int waited = 0; waited < 2; waited++) { /* those that are waited for now first */
        for (size_t i = 0; i < TOP_WAITS_MAX && shown < WAITS_SHOWN; i++) {
            const struct top_wait *wait = &frame->waits->tasks[i];
            if (is_shown(frame, wait) && (wait->now_us == 0) == (waited == 1)) {
                render_wait(frame, wait, text_style, out);
                shown++;
            }
        }
    }
}

bool top_frame_render(const struct top_frame *frame, const struct text_style *text_style, FILE *out)
{
    render_cluster(frame, text_style, out);
    fputc('\n', out);
    if (!render_live(frame, text_style, out)) {
        return false;
    }
    render_waits(frame, text_style, out);
    fputc('\n', out);
    if (!render_busy_tasks(frame->asked, frame->asked_count, text_style, out)) {
        return false;
    }
    return render_workers(frame->workers, frame->now_us, text_style, out);
}

/* ---- for programs ---- */

static json_t *json_of_rates(const struct top_frame *frame)
{
    json_t *rates = json_object();
    for (size_t i = 0; rates != NULL && i < frame->speeds->count; i++) {
        const struct top_speed *speed = &frame->speeds->jobs[i];
        char job[24];
        snprintf(job, sizeof job, "%" PRIu64, speed->job);
        if (speed->steps_per_s >= 0) {
            json_object_set_new(rates, job, json_real(speed->steps_per_s));
        }
    }
    return rates;
}

static json_t *json_of_waits(const struct top_frame *frame)
{
    json_t *waits = json_array();
    for (size_t i = 0; i < TOP_WAITS_MAX; i++) {
        const struct top_wait *wait = &frame->waits->tasks[i];
        if (is_shown(frame, wait)) {
            double share = top_waits_share(frame->waits, wait);
            json_array_append_new(
                waits, json_pack("{s:I, s:I, s:s, s:I, s:o}", "job", (json_int_t)wait->job, "task",
                           (json_int_t)wait->task, "worker", wait->worker, "waited_us",
                           (json_int_t)wait->now_us, "share",
                           share >= 0 ? json_real(share) : json_null()));
        }
    }
    return waits;
}

/* With its tasks where they were asked for. */
static const cadre_job *with_tasks(const struct top_frame *frame, const cadre_job *job)
{
    for (size_t i = 0; i < frame->asked_count; i++) {
        if (frame->asked[i]->id == job->id) {
            return frame->asked[i];
        }
    }
    return job;
}

json_t *top_frame_json(const struct top_frame *frame)
{
    const struct cluster_sums sums = top_frame_sum(frame);
    json_t *jobs = json_array();
    json_t *workers = json_of_workers(frame->workers);
    for (size_t i = 0; jobs != NULL && i < frame->jobs->count; i++) {
        if (is_live(&frame->jobs->jobs[i])) {
            json_array_append_new(jobs, json_of_job(with_tasks(frame, &frame->jobs->jobs[i])));
        }
    }
    json_t *frame_json = json_of_cluster(frame->now_us, &sums);
    json_object_set_new(frame_json, "coordinator", json_string(frame->coordinator));
    json_object_set_new(frame_json, "jobs", jobs);
    json_object_set_new(frame_json, "steps_per_s", json_of_rates(frame));
    json_object_set_new(frame_json, "waits", json_of_waits(frame));
    if (frame_json == NULL || workers == NULL || json_object_update(frame_json, workers) != 0) {
        json_decref(frame_json);
        frame_json = NULL;
    }
    json_decref(workers);
    return frame_json;
}
