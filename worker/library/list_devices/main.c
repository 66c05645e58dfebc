/* SPDX-License-Identifier: Apache-2.0
 * cadre-devices: which GPUs a program of Cadre's would have here, and why not the others. Daemons
 * run it, so that no driver is ever in them. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/completion.h"
#include "common/base/manual.h"
#include "common/base/options.h"
#include "worker/library/device/device.h"
#include "common/gpus/host_gpus.h"
#include "common/gpus/pci_gpus.h"
#include "worker/library/list_devices/use.h"

struct devices_options {
    bool json;
    bool use;
    char *bus;
};

#define ABSENT_PREFIX "no GPU is used: " /* of device_absence_reason() */

#define ROW(kind, flag, member, value_name, default_text)                                          \
    OPTION_ROW(kind, flag, struct devices_options, member, value_name, default_text)

static const struct option_row rows[] = {
    {ROW(FLAG, "json", json, NULL, NULL), .help = "Print JSON instead; its keys are stable."},
    {ROW(TEXT, "pci", bus, "FOLDER", PCI_FOLDER),
        .help = "Where the kernel lists what is on the PCI bus."},
    {ROW(FLAG, "use", use, NULL, NULL),
        .help = "Answer each text line of standard input by one: PERCENT,BYTES of each named GPU, "
                "separated by spaces, - for what is not known; until the input ends. cadre-worker "
                "runs it so while a task has a GPU."},
};

static const struct option_table table = {.program = "cadre-devices",
    .title = "show the GPUs that a program of Cadre would use here",
    .usage = "[UUID...]",
    .summary = "Shows the GPUs that a Cadre program started here and now would use, and why others "
               "of this host are not among them. CUDA_VISIBLE_DEVICES, CADRE_DEVICES, CADRE_PLUGIN "
               "and CADRE_NCCL count as they do for such a program.",
    .notes = "Use, of each second until Ctrl-C:\n"
             "  while sleep 1; do echo; done | cadre-devices --use GPU-3f0c1d52-...\n"
             "PERCENT is of the time in which a kernel ran, BYTES is memory in use, of whatever "
             "program: as in\nnvidia-smi, and from the same library (NVML). It has no PERCENT of a "
             "MIG instance.\n",
    .positionals_max = LIMIT_GPUS_PER_WORKER,
    .rows = rows,
    .row_count = sizeof rows / sizeof rows[0]};

/* What the plugin says of itself, and where its library for collectives is from. */
struct look {
    struct host_gpus gpus;
    char plugin[64];
    char nccl_from[sizeof((struct device_driver *)0)->collectives_from];
};

static void take_device(const struct device_ops *ops, uint32_t index, struct host_gpus *gpus)
{
    struct device_info info = {.name = ""};
    struct cadre_error error = {0};
    struct host_gpu *gpu = &gpus->devices[gpus->count];
    if (ops->describe(index, &info, &error) != CADRE_OK) {
        /* In the order of the driver all behind it would be named wrongly. */
        snprintf(gpus->reason, sizeof gpus->reason, "GPU %" PRIu32 " cannot be asked: %.300s",
            index, error.text);
        return;
    }
    *gpu = (struct host_gpu){.memory_bytes = info.memory_bytes,
        .compute_major = info.compute_major,
        .compute_minor = info.compute_minor};
    snprintf(gpu->name, sizeof gpu->name, "%s", info.name[0] != '\0' ? info.name : "GPU");
    snprintf(gpu->uuid, sizeof gpu->uuid, "%s", info.uuid);
    snprintf(gpu->bus, sizeof gpu->bus, "%s", info.bus);
    gpus->count++;
    gpus->usable++;
}

static void look_around(const char *pci_folder, struct look *look)
{
    struct host_gpus *gpus = &look->gpus;
    uint32_t count = device_count();
    const struct device_ops *ops = device_plugin();
    if (count == 0 || ops == NULL) {
        const char *absence = device_absence_reason();
        size_t prefix = strncmp(absence, ABSENT_PREFIX, sizeof ABSENT_PREFIX - 1) == 0
                            ? sizeof ABSENT_PREFIX - 1
                            : 0;
        snprintf(gpus->reason, sizeof gpus->reason, "%s", absence + prefix);
    } else {
        struct device_driver driver = {.driver = ""};
        ops->driver(&driver);
        snprintf(look->plugin, sizeof look->plugin, "%s", ops->name);
        snprintf(gpus->driver, sizeof gpus->driver, "%s", driver.driver);
        snprintf(gpus->runtime, sizeof gpus->runtime, "%s", driver.runtime);
        gpus->nccl = driver.collectives;
        snprintf(look->nccl_from, sizeof look->nccl_from, "%s", driver.collectives_from);
        for (uint32_t i = 0; i < count && gpus->count == i; i++) {
            take_device(ops, i, gpus);
        }
    }
    host_gpus_add_bus(gpus, pci_folder, getenv("CUDA_VISIBLE_DEVICES") != NULL);
}

/* ---- JSON ---- */

static json_t *list_devices_main_text(const char *value)
{
    json_t *json = json_string(value);
    return json != NULL ? json : json_string("?"); /* it was no UTF-8 */
}

static json_t *json_of_gpu(const struct host_gpu *gpu)
{
    json_t *json = json_object();
    json_object_set_new(json, "name", list_devices_main_text(gpu->name));
    json_object_set_new(json, "uuid", list_devices_main_text(gpu->uuid));
    json_object_set_new(json, "bus", list_devices_main_text(gpu->bus));
    json_object_set_new(json, "memory_bytes", json_integer((json_int_t)gpu->memory_bytes));
    json_object_set_new(json, "compute_major", json_integer(gpu->compute_major));
    json_object_set_new(json, "compute_minor", json_integer(gpu->compute_minor));
    if (gpu->unused[0] != '\0') {
        json_object_set_new(json, "reason", list_devices_main_text(gpu->unused));
    }
    return json;
}

static bool print_json(const struct look *look, FILE *out)
{
    const struct host_gpus *gpus = &look->gpus;
    json_t *json = json_object();
    json_t *devices = json_array();
    json_t *unused = json_array();
    for (uint32_t i = 0; i < gpus->count; i++) {
        json_array_append_new(i < gpus->usable ? devices : unused, json_of_gpu(&gpus->devices[i]));
    }
    json_object_set_new(json, "devices", devices);
    json_object_set_new(json, "unused", unused);
    json_object_set_new(json, "plugin", list_devices_main_text(look->plugin));
    json_object_set_new(json, "driver", list_devices_main_text(gpus->driver));
    json_object_set_new(json, "runtime", list_devices_main_text(gpus->runtime));
    json_object_set_new(json, "nccl", json_integer(gpus->nccl));
    json_object_set_new(json, "nccl_from", list_devices_main_text(look->nccl_from));
    json_object_set_new(json, "reason", list_devices_main_text(gpus->reason));
    bool good = json_dumpf(json, out, JSON_INDENT(2)) == 0 && fputc('\n', out) != EOF;
    json_decref(json);
    return good;
}

/* ---- for people ---- */

static void print_gpu(const struct host_gpu *gpu, uint32_t index, bool used, FILE *out)
{
    if (used) {
        fprintf(out,
            "  GPU %-3" PRIu32 " %-24s %6.1f GiB  compute %" PRIu32 ".%" PRIu32 "  %s  %s\n", index,
            gpu->name, (double)gpu->memory_bytes / (1024.0 * 1024.0 * 1024.0), gpu->compute_major,
            gpu->compute_minor, gpu->bus, gpu->uuid);
    } else {
        fprintf(out, "  -       %-24s at %s is not used: %s\n", gpu->name, gpu->bus, gpu->unused);
    }
}

static void print_nccl(const struct look *look, FILE *out)
{
    uint32_t version = look->gpus.nccl;
    if (version == 0) {
        fprintf(out, "  NCCL    none: %s\n", look->nccl_from);
    } else {
        fprintf(out, "  NCCL    %" PRIu32 ".%" PRIu32 ".%" PRIu32 "  %s\n", version / 10000,
            version / 100 % 100, version % 100, look->nccl_from);
    }
}

static bool print_table(const struct look *look, FILE *out)
{
    const struct host_gpus *gpus = &look->gpus;
    if (gpus->usable == 0) {
        fprintf(out, ABSENT_PREFIX "%s\n", gpus->reason);
    } else {
        fprintf(out, "%" PRIu32 " %s used, by the plugin %s:\n", gpus->usable,
            gpus->usable == 1 ? "GPU is" : "GPUs are", look->plugin);
    }
    for (uint32_t i = 0; i < gpus->count; i++) {
        print_gpu(&gpus->devices[i], i, i < gpus->usable, out);
    }
    if (gpus->usable > 0) {
        fprintf(out, "  driver  %s\n  runtime %s\n", gpus->driver, gpus->runtime);
        print_nccl(look, out);
        if (gpus->reason[0] != '\0') {
            fprintf(out, "%s\n", gpus->reason);
        }
    }
    return !ferror(out);
}

/* A stream of our own: whatever libraries print goes to standard error. */
static FILE *open_answer(void)
{
    int fd = dup(STDOUT_FILENO);
    FILE *out = fd >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        fprintf(stderr, "cadre-devices: there is no standard output to answer on\n");
    }
    return out;
}

/* UUIDs and --use come together, and without --json. */
static cadre_status list_devices_main_check(
    const struct devices_options *options, size_t names, struct cadre_error *error)
{
    if (options->use && names == 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--use is of GPUs by their UUIDs, which cadre-devices prints: name one or more");
    }
    if (options->use && options->json) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "--use and --json exclude each other: the answers of --use are PERCENT,BYTES");
    }
    if (!options->use && names > 0) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "UUIDs are named with --use only; without it all GPUs are shown");
    }
    return CADRE_OK;
}

static int list_devices_main_run(
    const struct devices_options *options, char *const *names, size_t count)
{
    static struct look look;
    FILE *out = open_answer();
    if (out == NULL) {
        return 1;
    }
    bool good = false;
    if (options->use) {
        good = use_answer_all(names, count, stdin, out);
    } else {
        look_around(options->bus, &look);
        good = options->json ? print_json(&look, out) : print_table(&look, out);
    }
    return fclose(out) == 0 && good ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct devices_options options = {.json = false};
    struct option_result result;
    struct cadre_error error = {0};
    int code = 0;
    if (completion_answer(&table, argc, argv, stdout) ||
        manual_answer(&table, argc, argv, stdout)) {
        return 0;
    }
    if (options_parse(&table, argc, argv, &options, &result, &error) != CADRE_OK) {
        fprintf(stderr, "cadre-devices: %s\n", error.text);
        code = 2;
    } else if (!options_answer(&table, &options, &result, stdout)) {
        size_t count = (size_t)(argc - result.first);
        if (list_devices_main_check(&options, count, &error) == CADRE_OK) {
            code = list_devices_main_run(&options, argv + result.first, count);
        } else {
            fprintf(stderr, "cadre-devices: %s\n", error.text);
            code = 2;
        }
    }
    options_free(&table, &options);
    return code;
}
