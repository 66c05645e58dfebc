/* SPDX-License-Identifier: Apache-2.0
 * Workers with GPUs: in the table of all, one by one, as JSON. */
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/cli/render/json.h"
#include "coordinator/cli/render/render.h"

#define S UINT64_C(1000000)

static const struct text_style plain;

/* What `print` writes; to be freed. */
static char *text_of(void (*print)(FILE *out))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print(out);
    fclose(out);
    return text;
}

static void assert_printed(void (*print)(FILE *out), const char *wanted)
{
    char *text = text_of(print);
    assert_string_equal(text, wanted);
    free(text);
}

#define H200                                                                                       \
    .name = "NVIDIA H200", .memory_bytes = UINT64_C(150754820096), .compute_major = 9, .unused = ""
static const cadre_gpu gpus[] = {{H200, .uuid = "GPU-0", .bus = "0000:01:00.0"},
    {H200, .uuid = "GPU-1", .bus = "0000:02:00.0"},
    {.name = "NVIDIA GPU 10de:1eb8",
        .uuid = "",
        .bus = "0000:03:00.0",
        .unused = "no driver\033 is bound to it"}};

static cadre_worker gpu_worker(const char *name, uint32_t slots, size_t count, uint32_t usable)
{
    return (cadre_worker){.name = name,
        .host = "h",
        .version = "v",
        .slots = slots,
        .connected = true,
        .joined_us = 40 * S,
        .gpus = gpus,
        .gpu_count = count,
        .gpus_usable = usable,
        .gpu_driver = "580.1 (CUDA 13.0)",
        .gpu_runtime = "CUDA 13.0",
        .nccl = 22809,
        .gpu_reason = ""};
}

static void print_gpu_workers(FILE *out)
{
    cadre_worker workers[] = {gpu_worker("all", 2, 2, 2), gpu_worker("some", 1, 3, 2),
        gpu_worker("none", 1, 2, 0), gpu_worker("shared", 4, 1, 1), gpu_worker("long", 8, 0, 8)};
    workers[2].gpu_reason = "no driver";
    workers[4].gpus_omitted = 8;
    for (int i = 0; i < 5; i += 4) { /* what the GPUs of the first and the last do is known */
        workers[i].usage.has_gpu = true;
        workers[i].usage.gpu_percent = 97;
    }
    const cadre_worker_list list = {.workers = workers, .count = 5};
    render_workers(&list, 100 * S, &plain, out);
}

static void gpus_of_workers_are_a_column(void **state)
{
    (void)state;
    assert_printed(print_gpu_workers,
        "WORKER  STATE  SLOTS  CPUS  MEMORY  GPUS                              JOINED  VERSION  "
        "HOST\n"
        "all     ready    0/2     0     0 B  2 x NVIDIA H200 140.4 GiB, 97%  60 s ago  v        h\n"
        "some    ready    0/1     0     0 B  2 of 3 x NVIDIA H200 140.4 GiB  60 s ago  v        h\n"
        "none    ready    0/1     0     0 B  none of 2                       60 s ago  v        h\n"
        "shared  ready    0/4     0     0 B  1 x NVIDIA H200 140.4 GiB       60 s ago  v        h\n"
        "long    ready    0/8     0     0 B  8 GPUs, 97%                     60 s ago  v        h\n"
        "some: 1 of 3 GPUs not used: no driver? is bound to it\n"
        "none: 2 of 2 GPUs not used: no driver\n"
        "shared: 4 slots share 1 GPU: tasks that run there at one time compete for it, and "
        "exchange data through the host\n");
}

static void print_gpu_worker(FILE *out)
{
    const cadre_worker worker = gpu_worker("a", 2, 3, 2);
    render_worker(&worker, 100 * S, &plain, out);
}

static void print_shared_worker(FILE *out)
{
    cadre_worker worker = gpu_worker("a", 200, 2, 2);
    worker.nccl = 0;
    render_worker(&worker, 100 * S, &plain, out);
}

static void print_gpuless_worker(FILE *out)
{
    cadre_worker worker = gpu_worker("a", 1, 0, 0);
    worker.gpu_driver = worker.gpu_runtime = "";
    worker.nccl = 0;
    worker.gpu_reason = "no NVIDIA driver";
    render_worker(&worker, 100 * S, &plain, out);
}

static void a_worker_shows_each_gpu(void **state)
{
    (void)state;
    assert_printed(print_gpu_worker,
        "worker a  ready\n"
        "  host     h\n"
        "  version  v\n"
        "  slots    2, 0 in use\n"
        "  CPUs     0\n"
        "  memory   0 B\n"
        "  joined   60 s ago\n"
        "  driver   580.1 (CUDA 13.0)\n"
        "  plugin   CUDA 13.0\n"
        "  NCCL     2.28.9\n"
        "\n"
        "GPU  SLOT  NAME                     MEMORY  COMPUTE  BUS           UUID, OR WHY IT IS NOT "
        "USED\n"
        "  0  0     NVIDIA H200           140.4 GiB      9.0  0000:01:00.0  GPU-0\n"
        "  1  1     NVIDIA H200           140.4 GiB      9.0  0000:02:00.0  GPU-1\n"
        "  -  -     NVIDIA GPU 10de:1eb8          -        -  0000:03:00.0  no driver? is bound to "
        "it\n");
    char *text = text_of(print_shared_worker);
    assert_non_null(strstr(text, "  NCCL     none: GPUs of several tasks exchange data"));
    assert_non_null(strstr(text, "  0  0 2 4 6 8 10 "));
    assert_non_null(strstr(text, " ...  NVIDIA H200"));
    assert_non_null(strstr(text, "a: 200 slots share 2 GPUs: "));
    free(text);
    text = text_of(print_gpuless_worker);
    assert_non_null(strstr(text, "  no GPU   no NVIDIA driver\n"));
    assert_null(strstr(text, "NCCL"));
    free(text);
}

static void gpus_as_json(void **state)
{
    (void)state;
    cadre_worker worker = gpu_worker("a", 2, 1, 3);
    worker.gpus_omitted = 2;
    const cadre_worker_list workers = {.workers = &worker, .count = 1};
    json_t *json = json_of_workers(&workers);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_non_null(strstr(text,
        "\"gpus\":[{\"name\":\"NVIDIA H200\",\"uuid\":\"GPU-0\",\"bus\":\"0000:01:00.0\","
        "\"memory_bytes\":150754820096,\"compute_major\":9,\"compute_minor\":0,"
        "\"unused\":\"\"}],\"gpus_usable\":3,\"gpus_omitted\":2,"
        "\"gpu_driver\":\"580.1 (CUDA 13.0)\",\"gpu_runtime\":\"CUDA 13.0\",\"nccl\":22809,"
        "\"gpu_reason\":\"\",\"certificate_ends_us\":0,"
        "\"usage\":{\"cpu_thousandths\":null,"));
    free(text);
    json_decref(json);
}

/* ---- certificates ---- */

#define DAY (86400 * S)

static cadre_worker certified(const char *name, uint64_t ends_us)
{
    return (cadre_worker){.name = name,
        .host = "h",
        .version = "v",
        .slots = 1,
        .joined_us = 40 * S,
        .gpu_reason = "",
        .gpu_driver = "",
        .gpu_runtime = "",
        .certificate_ends_us = ends_us};
}

static void print_certified(FILE *out)
{
    const uint64_t now = 100 * S;
    const cadre_worker workers[] = {certified("years", now + 400 * DAY), certified("plain", 0),
        certified("limit", now + 30 * DAY), certified("soon", now + 30 * DAY - 1),
        certified("sooner", now + 2 * DAY), certified("hours", now + 2 * DAY - 1),
        certified("hour", now + S), certified("over", now)};
    const cadre_worker_list list = {.workers = workers, .count = 8};
    render_workers(&list, now, &plain, out);
}

static void print_well_certified(FILE *out)
{
    const cadre_worker worker = certified("a", 100 * S + 30 * DAY);
    render_worker(&worker, 100 * S, &plain, out);
}

static void certificates_are_a_column_where_there_are_any(void **state)
{
    (void)state;
    assert_printed(print_certified,
        "WORKER  STATE  SLOTS  CPUS  MEMORY  GPUS    JOINED  CERTIFICATE  VERSION  HOST\n"
        "years   away     0/1     0     0 B  -     60 s ago     400 days  v        h\n"
        "plain   away     0/1     0     0 B  -     60 s ago            -  v        h\n"
        "limit   away     0/1     0     0 B  -     60 s ago      30 days  v        h\n"
        "soon    away     0/1     0     0 B  -     60 s ago      29 days  v        h\n"
        "sooner  away     0/1     0     0 B  -     60 s ago       2 days  v        h\n"
        "hours   away     0/1     0     0 B  -     60 s ago     48 hours  v        h\n"
        "hour    away     0/1     0     0 B  -     60 s ago       1 hour  v        h\n"
        "over    away     0/1     0     0 B  -     60 s ago      expired  v        h\n"
        "TLS certificates (or their CA) that expire soon: over has expired, hour in 1 hour, hours "
        "in 48 hours, and 2 more: `cadre pki issue` into their folders; workers load new ones "
        "without a restart\n");
    char *text = text_of(print_well_certified);
    assert_non_null(strstr(text, "  TLS ends 30 days\n"));
    assert_null(strstr(text, "soon"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpus_of_workers_are_a_column),
        cmocka_unit_test(a_worker_shows_each_gpu), cmocka_unit_test(gpus_as_json),
        cmocka_unit_test(certificates_are_a_column_where_there_are_any)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
