/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a job as a table: of one job for render.c, the busiest of several for top_frame.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/fetches.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

/* ---- what a task uses ---- */

const char *render_cores(const cadre_usage *usage, char text[RENDER_BYTES])
{
    if (!usage->has_cpu) {
        return "-";
    }
    snprintf(text, RENDER_BYTES, usage->cpu_thousandths < 10000 ? "%.2f" : "%.1f",
        usage->cpu_thousandths / 1000.0);
    return text;
}

static const char *render_if(bool known, uint64_t bytes, char text[RENDER_BYTES])
{
    return known ? render_bytes(bytes, text) : "-";
}

/* "97% 12.3 GiB" */
static const char *render_gpu_use(const cadre_usage *usage, char text[RENDER_BYTES])
{
    char bytes[RENDER_BYTES];
    int length = usage->has_gpu ? snprintf(text, RENDER_BYTES, "%" PRIu32 "%%", usage->gpu_percent)
                                : snprintf(text, RENDER_BYTES, "-");
    if (usage->has_gpu_memory) {
        snprintf(text + length, RENDER_BYTES - (size_t)length, " %s",
            render_bytes(usage->gpu_memory_bytes, bytes));
    }
    return text;
}

static void add_usage(struct table *table, const cadre_usage *usage, bool gpus)
{
    char text[RENDER_BYTES];
    table_add(table, COLOUR_NONE, "%s", render_cores(usage, text));
    table_add(table, COLOUR_NONE, "%s", render_if(usage->has_memory, usage->memory_bytes, text));
    if (gpus) {
        table_add(table, COLOUR_NONE, "%s", render_gpu_use(usage, text));
    }
}

static bool any_gpu(const cadre_usage *usage)
{
    return usage->has_gpu || usage->has_gpu_memory;
}

static bool any_usage(const cadre_usage *usage)
{
    return usage->has_cpu || usage->has_memory || any_gpu(usage);
}

/* ---- of one job ---- */

static const char *exit_text(const cadre_job_task *task, char text[RENDER_BYTES])
{
    if (!task->has_exit) {
        snprintf(text, RENDER_BYTES, "-");
    } else if (task->exit_signal != 0) {
        snprintf(text, RENDER_BYTES, "signal %" PRId32, task->exit_signal);
    } else {
        snprintf(text, RENDER_BYTES, "%" PRId32, task->exit_code);
    }
    return text;
}

/* A number that is 0 while it is not known. */
static void add_known(struct table *table, uint64_t number)
{
    if (number == 0) {
        table_add(table, COLOUR_NONE, "-");
    } else {
        table_add(table, COLOUR_NONE, "%" PRIu64, number);
    }
}

/* Why it ended, what it lacks, or how long the others waited for it. */
static const char *note_of(
    const cadre_job *job, const cadre_job_task *task, char text[FETCHES_TEXT_BYTES])
{
    char span[RENDER_BYTES];
    const char *note = task->exit_text[0] != '\0' ? task->exit_text : fetches_note(task, text);
    if (note[0] != '\0') {
        return note;
    }
    if (task->state == CADRE_TASK_EXITED && !task->uses_cadre) {
        return "did not join";
    }
    if (task->state == CADRE_TASK_WAITING && job->state == CADRE_JOB_RUNNING) {
        return "for a free slot";
    }
    if (job->wait.waited_us > 0 && job->wait.task == task->task) {
        snprintf(text, FETCHES_TEXT_BYTES, "%s for it (%s)",
            job->workers > 1 ? "the others wait" : "its step waits",
            render_duration(job->wait.waited_us, span));
    } else if (task->waited_us > 0) {
        snprintf(text, FETCHES_TEXT_BYTES, "the others waited for it: %s in all",
            render_duration(task->waited_us, span));
    }
    return text;
}

/* Which columns the table of a job has. */
struct task_columns {
    bool types;
    bool usage;
    bool gpus;
};

static struct task_columns columns_of(const cadre_job *job)
{
    struct task_columns shown = {.types = job->servers > 0};
    for (size_t i = 0; i < job->task_count; i++) {
        shown.usage |= any_usage(&job->tasks[i].usage);
        shown.gpus |= any_gpu(&job->tasks[i].usage);
    }
    return shown;
}

static size_t name_columns(
    struct task_columns shown, struct table_column columns[TABLE_COLUMNS_MAX])
{
    const struct {
        bool shown;
        struct table_column column;
    } all[] = {{true, {"TASK", true}}, {shown.types, {"TYPE", false}}, {true, {"STATE", false}},
        {true, {"WORKER", false}}, {true, {"PID", true}}, {true, {"INCARNATION", true}},
        {shown.usage, {"CPU", true}}, {shown.usage, {"MEMORY", true}}, {shown.gpus, {"GPU", true}},
        {true, {"LOG", true}}, {true, {"EXIT", false}}, {true, {"NOTE", false}}};
    size_t count = 0;
    _Static_assert(sizeof all / sizeof all[0] <= TABLE_COLUMNS_MAX, "a table has so many");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].shown) {
            columns[count++] = all[i].column;
        }
    }
    return count;
}

static void add_task(struct table *table, const cadre_job *job, const cadre_job_task *task,
    struct task_columns shown)
{
    char text[RENDER_BYTES];
    char note[FETCHES_TEXT_BYTES] = "";
    bool bad = task->state == CADRE_TASK_LOST ||
               (task->has_exit && (task->exit_code != 0 || task->exit_signal != 0));
    table_add(table, COLOUR_NONE, "%" PRIu32, task->task);
    if (shown.types) {
        table_add(table, COLOUR_NONE, "%s %" PRIu32, task->type, task->index);
    }
    table_add(table, bad ? COLOUR_RED : COLOUR_NONE, "%s", cadre_task_state_name(task->state));
    table_add(table, COLOUR_NONE, "%s", task->worker[0] != '\0' ? task->worker : "-");
    add_known(table, task->pid);
    add_known(table, task->incarnation);
    if (shown.usage) {
        add_usage(table, &task->usage, shown.gpus);
    }
    table_add(table, COLOUR_NONE, "%s", render_bytes(task->log_bytes, text));
    table_add(table, bad ? COLOUR_RED : COLOUR_NONE, "%s", exit_text(task, text));
    table_add(table, COLOUR_NONE, "%s", note_of(job, task, note));
}

bool render_tasks(const cadre_job *job, const struct text_style *text_style, FILE *out)
{
    struct table_column columns[TABLE_COLUMNS_MAX];
    struct task_columns shown = columns_of(job);
    struct table table;
    table_open(&table, columns, name_columns(shown, columns));
    for (size_t i = 0; i < job->task_count; i++) {
        add_task(&table, job, &job->tasks[i], shown);
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    return good;
}

/* ---- of several jobs ---- */

struct busy_task {
    const cadre_job *job;
    const cadre_job_task *task;
};

static bool is_waited_for(const struct busy_task *busy)
{
    return busy->job->wait.waited_us > 0 && busy->job->wait.task == busy->task->task;
}

/* Those that others wait for come first, then those that use most. */
static int by_use(const void *left, const void *right)
{
    const struct busy_task *a = left;
    const struct busy_task *b = right;
    if (is_waited_for(a) != is_waited_for(b)) {
        return is_waited_for(a) ? -1 : 1;
    }
    if (a->task->usage.cpu_thousandths != b->task->usage.cpu_thousandths) {
        return a->task->usage.cpu_thousandths > b->task->usage.cpu_thousandths ? -1 : 1;
    }
    if (a->job->id != b->job->id) {
        return a->job->id < b->job->id ? -1 : 1;
    }
    return (a->task->task > b->task->task) - (a->task->task < b->task->task);
}

static size_t take_busy(
    const cadre_job *const *jobs, size_t count, struct busy_task *busy, bool *ret_gpus)
{
    size_t found = 0;
    *ret_gpus = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < jobs[i]->task_count; k++) {
            const cadre_job_task *task = &jobs[i]->tasks[k];
            if (any_usage(&task->usage)) {
                busy[found++] = (struct busy_task){.job = jobs[i], .task = task};
                *ret_gpus |= any_gpu(&task->usage);
            }
        }
    }
    qsort(busy, found, sizeof *busy, by_use);
    return found;
}

static void add_busy(struct table *table, const struct busy_task *busy, bool gpus)
{
    char text[RENDER_BYTES];
    const cadre_job_task *task = busy->task;
    table_add(table, COLOUR_NONE, "%" PRIu64, busy->job->id);
    table_add(table, is_waited_for(busy) ? COLOUR_YELLOW : COLOUR_NONE, "%" PRIu32, task->task);
    add_usage(table, &task->usage, gpus);
    table_add(table, COLOUR_NONE, "%s",
        render_if(task->usage.has_memory_peak, task->usage.memory_peak_bytes, text));
    table_add(table, COLOUR_NONE, "%s",
        task->waited_us > 0 ? render_duration(task->waited_us, text) : "-");
    table_add(table, COLOUR_NONE, "%s", task->worker);
}

bool render_busy_tasks(
    const cadre_job *const *jobs, size_t count, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"JOB", true}, {"TASK", true}, {"CPU", true},
        {"MEMORY", true}, {"PEAK", true}, {"WAITED FOR", true}, {"WORKER", false}};
    static const struct table_column with_gpus[] = {{"JOB", true}, {"TASK", true}, {"CPU", true},
        {"MEMORY", true}, {"GPU", true}, {"PEAK", true}, {"WAITED FOR", true}, {"WORKER", false}};
    struct table table;
    size_t room = 1;
    bool gpus = false;
    for (size_t i = 0; i < count; i++) {
        room += jobs[i]->task_count;
    }
    struct busy_task *busy = calloc(room, sizeof *busy);
    if (busy == NULL) {
        return false;
    }
    size_t found = take_busy(jobs, count, busy, &gpus);
    table_open(
        &table, gpus ? with_gpus : columns, sizeof columns / sizeof columns[0] + (gpus ? 1 : 0));
    for (size_t i = 0; i < found && i < RENDER_BUSY_MAX; i++) {
        add_busy(&table, &busy[i], gpus);
    }
    free(busy);
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    if (found > RENDER_BUSY_MAX) {
        fprintf(out, "and %zu more tasks: `cadre job ID` shows all of a job\n",
            found - RENDER_BUSY_MAX);
    }
    if (found > 0) {
        fputc('\n', out);
    }
    return good;
}
