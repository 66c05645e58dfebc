/* SPDX-License-Identifier: Apache-2.0
 * Workers as text: the table of all, and one with its GPUs, for workers.c and top_frame.c. */
#include <inttypes.h>
#include <string.h>

#include "common/model/gpus.h"
#include "coordinator/cli/render/render.h"
#include "coordinator/cli/render/table.h"

/* Notes below a table. */
#define NOTES_MAX 8

static uint64_t render_workers_span(uint64_t from_us, uint64_t to_us)
{
    return to_us > from_us ? to_us - from_us : 0;
}

static const char *state_name(const cadre_worker *worker)
{
    return worker->expected     ? "expected"
           : !worker->connected ? "away"
           : worker->draining   ? "draining"
                                : "ready";
}

static enum colour state_colour(const cadre_worker *worker)
{
    return !worker->connected ? COLOUR_RED : worker->draining ? COLOUR_YELLOW : COLOUR_GREEN;
}

static const char *render_joined(
    const cadre_worker *worker, uint64_t now_us, char text[RENDER_BYTES])
{
    char age[RENDER_BYTES];
    if (worker->joined_us == 0) {
        return "-";
    }
    snprintf(text, RENDER_BYTES, "%s ago",
        render_age(render_workers_span(worker->joined_us, now_us), age));
    return text;
}

/* ---- GPUs in short ---- */

static uint32_t gpus_known(const cadre_worker *worker)
{
    return (uint32_t)worker->gpu_count + worker->gpus_omitted;
}

static bool gpus_shared(const cadre_worker *worker)
{
    return worker->gpus_usable > 0 && worker->gpus_usable < worker->slots;
}

/* Whether the GPUs that tasks get are of one model. */
static bool gpus_alike(const cadre_worker *worker)
{
    bool alike = worker->gpus_usable > 0 && worker->gpu_count >= worker->gpus_usable;
    for (uint32_t i = 1; alike && i < worker->gpus_usable; i++) {
        alike = strcmp(worker->gpus[i].name, worker->gpus[0].name) == 0 &&
                worker->gpus[i].memory_bytes == worker->gpus[0].memory_bytes;
    }
    return alike;
}

/* "8 x NVIDIA H200 140.4 GiB, 97%", "7 of 8 x NVIDIA H200 140.4 GiB", "none of 8", "-". */
static void add_gpus(struct table *table, const cadre_worker *worker)
{
    uint32_t known = gpus_known(worker);
    uint32_t usable = worker->gpus_usable;
    char count[RENDER_BYTES];
    char text[RENDER_BYTES];
    char use[RENDER_BYTES] = "";
    enum colour colour = usable < known || gpus_shared(worker) ? COLOUR_YELLOW : COLOUR_NONE;
    snprintf(count, sizeof count, usable < known ? "%" PRIu32 " of %" PRIu32 : "%" PRIu32, usable,
        known);
    if (worker->usage.has_gpu) {
        snprintf(use, sizeof use, ", %" PRIu32 "%%", worker->usage.gpu_percent);
    }
    if (known == 0) {
        table_add(table, COLOUR_NONE, "-");
    } else if (usable == 0) {
        table_add(table, colour, "none of %" PRIu32, known);
    } else if (gpus_alike(worker)) {
        table_add(table, colour, "%s x %s %s%s", count, worker->gpus[0].name,
            render_bytes(worker->gpus[0].memory_bytes, text), use);
    } else {
        table_add(table, colour, "%s GPUs%s", count, use);
    }
}

/* "host-b: drained by alice: kernel update; `cadre undrain` ends that" */
static bool print_drain(const cadre_worker *worker, FILE *out)
{
    if (worker->drained_by == NULL || worker->drained_by[0] == '\0') {
        return false;
    }
    text_print(out, worker->name, 0);
    fprintf(out, ": drained by ");
    text_print(out, worker->drained_by, 0);
    if (worker->drained_why[0] != '\0') {
        fprintf(out, " (");
        text_print(out, worker->drained_why, 0);
        fputc(')', out);
    }
    fprintf(out, ": `cadre undrain` ends that\n");
    return true;
}

/* Prints why a worker has fewer tasks or GPUs than its host; false: there is no reason. */
static bool print_note(const cadre_worker *worker, FILE *out)
{
    bool drained = print_drain(worker, out);
    bool missing = worker->gpus_usable < gpus_known(worker);
    if (missing) {
        text_print(out, worker->name, 0);
        fprintf(out, ": %" PRIu32 " of %" PRIu32 " GPUs not used: ",
            gpus_known(worker) - worker->gpus_usable, gpus_known(worker));
        const char *reason = worker->gpu_reason;
        for (size_t i = 0; i < worker->gpu_count && reason[0] == '\0'; i++) {
            reason = worker->gpus[i].unused;
        }
        text_print(out, reason[0] != '\0' ? reason : "`cadre workers NAME` shows why", 0);
        fputc('\n', out);
    }
    if (gpus_shared(worker)) {
        text_print(out, worker->name, 0);
        fprintf(out,
            ": %" PRIu32 " slots share %" PRIu32 " GPU%s: tasks that run there at one time compete "
            "for it, and exchange data through the host\n",
            worker->slots, worker->gpus_usable, worker->gpus_usable == 1 ? "" : "s");
    }
    return drained || missing || gpus_shared(worker);
}

/* ---- all ---- */

/* CPUs and memory, in use and in all: "3.25/16", "40.1/62.8 GiB". */
static void add_used(struct table *table, const cadre_worker *worker)
{
    char used[RENDER_BYTES];
    char all[RENDER_BYTES];
    if (worker->usage.has_cpu) {
        table_add(
            table, COLOUR_NONE, "%s/%" PRIu32, render_cores(&worker->usage, used), worker->cpus);
    } else {
        table_add(table, COLOUR_NONE, "%" PRIu32, worker->cpus);
    }
    (void)render_bytes(worker->memory_bytes, all);
    if (worker->usage.has_memory) {
        (void)render_bytes(worker->usage.memory_bytes, used);
        const char *unit = strchr(used, ' ');
        const char *unit_of_all = strchr(all, ' ');
        bool same = unit != NULL && unit_of_all != NULL && strcmp(unit, unit_of_all) == 0;
        table_add(table, COLOUR_NONE, "%.*s/%s", (int)(same ? unit - used : (long)strlen(used)),
            used, all);
    } else {
        table_add(table, COLOUR_NONE, "%s", all);
    }
}

static void add_worker(
    struct table *table, const cadre_worker *worker, bool certificates, uint64_t now_us)
{
    char text[RENDER_BYTES];
    table_add(table, COLOUR_NONE, "%s", worker->name);
    table_add(table, state_colour(worker), "%s", state_name(worker));
    table_add(table, COLOUR_NONE, "%" PRIu32 "/%" PRIu32, worker->slots_used, worker->slots);
    add_used(table, worker);
    add_gpus(table, worker);
    table_add(table, COLOUR_NONE, "%s", render_joined(worker, now_us, text));
    if (certificates) {
        table_add(table, render_certificate_colour(worker, now_us), "%s",
            render_certificate(worker, now_us, text));
    }
    table_add(table, COLOUR_NONE, "%s", worker->version);
    table_add(table, COLOUR_NONE, "%s", worker->host);
}

bool render_workers(
    const cadre_worker_list *list, uint64_t now_us, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"WORKER", false}, {"STATE", false},
        {"SLOTS", true}, {"CPUS", true}, {"MEMORY", true}, {"GPUS", false}, {"JOINED", true},
        {"VERSION", false}, {"HOST", false}};
    static const struct table_column with_certificates[] = {{"WORKER", false}, {"STATE", false},
        {"SLOTS", true}, {"CPUS", true}, {"MEMORY", true}, {"GPUS", false}, {"JOINED", true},
        {"CERTIFICATE", true}, {"VERSION", false}, {"HOST", false}};
    struct table table;
    bool certificates = false;
    for (size_t i = 0; i < list->count; i++) {
        certificates |= list->workers[i].certificate_ends_us != 0;
    }
    table_open(&table, certificates ? with_certificates : columns,
        sizeof columns / sizeof columns[0] + (certificates ? 1 : 0));
    for (size_t i = 0; i < list->count; i++) {
        add_worker(&table, &list->workers[i], certificates, now_us);
    }
    bool good = table_print(&table, text_style, out);
    table_close(&table);
    if (list->count == 0) {
        fprintf(out, "No worker has joined: start cadre-worker.\n");
    }
    if (good) {
        render_certificate_warning(list, now_us, text_style, out);
    }
    unsigned notes = 0;
    for (size_t i = 0; good && i < list->count && notes < NOTES_MAX; i++) {
        notes += print_note(&list->workers[i], out) ? 1U : 0U;
    }
    return good;
}

/* ---- one ---- */

static void print_text(FILE *out, const char *name, const char *value)
{
    if (value[0] != '\0') {
        fprintf(out, "  %-8s ", name);
        text_print(out, value, 0);
        fputc('\n', out);
    }
}

static void print_nccl(const cadre_worker *worker, FILE *out)
{
    if (worker->nccl != 0) {
        fprintf(out, "  %-8s %" PRIu32 ".%" PRIu32 ".%" PRIu32 "\n", "NCCL", worker->nccl / 10000,
            worker->nccl / 100 % 100, worker->nccl % 100);
    } else if (worker->gpus_usable > 0) {
        fprintf(out, "  %-8s none: GPUs of several tasks exchange data through the host\n", "NCCL");
    }
}

/* "0", "0 4 8": the slots that have it, as many as fit. */
static const char *slots_of(const cadre_worker *worker, uint32_t gpu, char text[RENDER_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t slot = 0; slot < worker->slots && gpu < worker->gpus_usable; slot++) {
        struct gpus_range range = gpus_of_slot(worker->gpus_usable, worker->slots, slot);
        if (gpu < range.first || gpu >= range.end) {
            continue;
        }
        if (used + 16 > RENDER_BYTES) {
            snprintf(text + used, RENDER_BYTES - used, " ...");
            break;
        }
        used += (size_t)snprintf(
            text + used, RENDER_BYTES - used, "%s%" PRIu32, used > 0 ? " " : "", slot);
    }
    return text[0] != '\0' ? text : "-";
}

static bool print_gpus(const cadre_worker *worker, const struct text_style *text_style, FILE *out)
{
    static const struct table_column columns[] = {{"GPU", true}, {"SLOT", false}, {"NAME", false},
        {"MEMORY", true}, {"COMPUTE", true}, {"BUS", false},
        {"UUID, OR WHY IT IS NOT USED", false}};
    struct table table;
    table_open(&table, columns, sizeof columns / sizeof columns[0]);
    for (uint32_t i = 0; i < worker->gpu_count; i++) {
        const cadre_gpu *gpu = &worker->gpus[i];
        bool used = gpu->unused[0] == '\0';
        char text[RENDER_BYTES];
        table_add(&table, COLOUR_NONE, used ? "%" PRIu32 : "-", i);
        table_add(&table, COLOUR_NONE, "%s", slots_of(worker, i, text));
        table_add(&table, COLOUR_NONE, "%s", gpu->name);
        table_add(&table, COLOUR_NONE, "%s",
            gpu->memory_bytes > 0 ? render_bytes(gpu->memory_bytes, text) : "-");
        if (gpu->compute_major > 0) {
            table_add(&table, COLOUR_NONE, "%" PRIu32 ".%" PRIu32, gpu->compute_major,
                gpu->compute_minor);
        } else {
            table_add(&table, COLOUR_NONE, "-");
        }
        table_add(&table, COLOUR_NONE, "%s", gpu->bus[0] != '\0' ? gpu->bus : "-");
        table_add(&table, used ? COLOUR_NONE : COLOUR_YELLOW, "%s", used ? gpu->uuid : gpu->unused);
    }
    struct text_style whole = {.colour = text_style->colour}; /* the reason is not cut */
    bool good = table_print(&table, &whole, out);
    table_close(&table);
    return good;
}

bool render_worker(
    const cadre_worker *worker, uint64_t now_us, const struct text_style *text_style, FILE *out)
{
    char text[RENDER_BYTES];
    fprintf(out, "worker ");
    text_print(out, worker->name, 0);
    fprintf(out, "  %s%s%s\n", colour_start(text_style, state_colour(worker)), state_name(worker),
        colour_end(text_style, state_colour(worker)));
    print_text(out, "host", worker->host);
    print_text(out, "version", worker->version);
    fprintf(out, "  %-8s %" PRIu32 ", %" PRIu32 " in use\n", "slots", worker->slots,
        worker->slots_used);
    fprintf(out, "  %-8s %" PRIu32, "CPUs", worker->cpus);
    if (worker->usage.has_cpu) {
        fprintf(out, ", %s in use", render_cores(&worker->usage, text));
    }
    fprintf(out, "\n  %-8s %s", "memory", render_bytes(worker->memory_bytes, text));
    if (worker->usage.has_memory) {
        fprintf(out, ", %s in use", render_bytes(worker->usage.memory_bytes, text));
    }
    fputc('\n', out);
    fprintf(out, "  %-8s %s\n", "joined", render_joined(worker, now_us, text));
    if (worker->certificate_ends_us != 0) {
        enum colour colour = render_certificate_colour(worker, now_us);
        fprintf(out, "  %-8s %s%s%s\n", "TLS ends", colour_start(text_style, colour),
            render_certificate(worker, now_us, text), colour_end(text_style, colour));
    }
    print_text(out, "driver", worker->gpu_driver);
    print_text(out, "plugin", worker->gpu_runtime);
    print_nccl(worker, out);
    if (worker->gpus_usable == 0) {
        print_text(out, "no GPU", worker->gpu_reason);
    } else {
        print_text(out, "GPUs", worker->gpu_reason);
    }
    if (worker->gpu_count > 0) {
        fputc('\n', out);
    }
    bool good = print_gpus(worker, text_style, out);
    const cadre_worker_list one = {.workers = worker, .count = 1};
    render_certificate_warning(&one, now_us, text_style, out);
    if (gpus_shared(worker)) {
        (void)print_note(worker, out);
    } else {
        (void)print_drain(worker, out);
    }
    return good;
}
