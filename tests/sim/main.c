/* SPDX-License-Identifier: Apache-2.0
 * sim: runs seeds, or the corpus, or the mutants; see README.md. Exits with 1 at the first broken
 * invariant. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/pure/assert.h"
#include "sim.h"

#define WORKERS_DEFAULT   64
#define MUTANT_SEEDS_MAX  10000
#define CORPUS_LINE_BYTES 512

static struct sim the_sim;
static char trace_lines[SIM_TRACE_LINES][SIM_TRACE_BYTES];

/* An assert of a core is a finding like any other. */
_Noreturn void cadre_panic(const char *condition, const char *file, int line)
{
    if (the_sim.panic == NULL) {
        fprintf(stderr, "sim: bug in the simulator: %s at %s:%d\n", condition, file, line);
        abort();
    }
    broken(&the_sim, "ASSERT", "%s at %s:%d", condition, file, line);
    longjmp(*the_sim.panic, 1);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void print_trace(const struct sim *sim)
{
    uint64_t first = sim->trace_count > SIM_TRACE_LINES ? sim->trace_count - SIM_TRACE_LINES : 0;
    for (uint64_t i = first; i < sim->trace_count; i++) {
        printf("%s\n", trace_lines[i % SIM_TRACE_LINES]);
    }
}

static void run_traced(struct sim *sim, uint64_t seed, uint32_t workers)
{
    sim->tracing = true;
    sim->trace = trace_lines;
    sim_run(sim, seed, workers);
    sim->tracing = false;
    print_trace(sim);
}

/* Prints what broke, how to see it again, and the end of the transcript. */
static void report(struct sim *sim, uint64_t seed, uint32_t workers)
{
    printf("seed %" PRIu64 " broke %s: %s\n", seed, sim->broken, sim->why);
    run_traced(sim, seed, workers);
    printf("again: sim --seeds %" PRIu64 ":%" PRIu64 " --workers %u\n", seed, seed + 1, workers);
}

static int run_seeds(uint64_t first, uint64_t end, uint32_t workers)
{
    struct sim *sim = &the_sim;
    uint64_t digest = 0;
    uint64_t events = 0;
    double start_s = seconds();
    for (uint64_t seed = first; seed < end; seed++) {
        sim_run(sim, seed, workers);
        if (sim->broken != NULL) {
            report(sim, seed, workers);
            return 1;
        }
        digest = prng_mix(digest ^ sim->digest);
        events += sim->events;
    }
    double took_s = seconds() - start_s;
    printf("%" PRIu64 " seeds, %u workers: %.1f seeds/s, %" PRIu64 " events in %.2f s\n",
        end - first, workers, (double)(end - first) / took_s, events, took_s);
    printf("digest %016" PRIx64 "\n", digest);
    return 0;
}

static bool parse_u64(const char *text, char stop, uint64_t *ret_value, const char **ret_rest)
{
    char *rest;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *ret_value = strtoull(text, &rest, 10);
    if (*rest != stop) {
        return false;
    }
    *ret_rest = *rest == '\0' ? rest : rest + 1;
    return true;
}

/* Lines of "seed workers why"; '#' begins a comment. */
static int run_corpus(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "sim: cannot read the corpus %s\n", path);
        return 2;
    }
    char line[CORPUS_LINE_BYTES];
    int status = 0;
    int count = 0;
    while (status == 0 && fgets(line, sizeof(line), file) != NULL) {
        const char *rest;
        uint64_t seed;
        uint64_t workers;
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        if (!parse_u64(line, ' ', &seed, &rest) || !parse_u64(rest, ' ', &workers, &rest) ||
            workers < 2 || workers > SCENARIO_AGENTS_MAX) {
            fprintf(stderr, "sim: not a line of \"seed workers why\": %s", line);
            status = 2;
            break;
        }
        sim_run(&the_sim, seed, (uint32_t)workers);
        count++;
        if (the_sim.broken != NULL) {
            printf("kept because: %s", rest);
            report(&the_sim, seed, (uint32_t)workers);
            status = 1;
        }
    }
    fclose(file);
    printf("%d kept seeds\n", count);
    return status == 0 && count == 0 ? 2 : status;
}

/* Each planted fault has to be caught, and by the invariant that it breaks. */
static int run_mutants(uint32_t workers)
{
    struct sim *sim = &the_sim;
    int escaped = 0;
    for (int mutant = MUTANT_NONE + 1; mutant < MUTANT_COUNT; mutant++) {
        const struct mutant_case *expected = &mutant_cases[mutant];
        uint64_t seed = 0;
        sim->mutant = mutant;
        do {
            sim_run(sim, seed++, workers);
        } while (seed < MUTANT_SEEDS_MAX && sim->broken == NULL);
        bool caught = sim->broken != NULL && strcmp(sim->broken, expected->caught_by) == 0;
        printf("%-24s %s %s after %" PRIu64 " seeds: %s\n", expected->name,
            caught ? "caught by" : "NOT CAUGHT BY", expected->caught_by, seed,
            sim->broken == NULL ? "nothing broke" : sim->why);
        escaped += caught ? 0 : 1;
    }
    sim->mutant = MUTANT_NONE;
    return escaped == 0 ? 0 : 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--workers N] --seeds FIRST:END | --verbose SEED | --mutants |"
                    " --corpus FILE\n");
    return 2;
}

static int act(const char *what, const char *value, uint32_t workers)
{
    const char *rest;
    uint64_t first;
    uint64_t end;
    if (strcmp(what, "--mutants") == 0) {
        return run_mutants(workers);
    }
    if (strcmp(what, "--corpus") == 0) {
        return run_corpus(value);
    }
    if (strcmp(what, "--verbose") == 0 && parse_u64(value, '\0', &first, &rest)) {
        run_traced(&the_sim, first, workers);
        printf("%s\n", the_sim.broken == NULL ? "nothing broke" : the_sim.why);
        return the_sim.broken == NULL ? 0 : 1;
    }
    if (strcmp(what, "--seeds") == 0 && parse_u64(value, ':', &first, &rest) &&
        parse_u64(rest, '\0', &end, &rest) && first < end) {
        return run_seeds(first, end, workers);
    }
    return usage();
}

int main(int argc, char **argv)
{
    uint64_t workers = WORKERS_DEFAULT;
    const char *what = NULL;
    const char *value = "";
    for (int i = 1; i < argc; i++) {
        bool last = i + 1 == argc;
        const char *rest;
        if (strcmp(argv[i], "--mutants") == 0) {
            what = argv[i];
        } else if (last) {
            return usage();
        } else if (strcmp(argv[i], "--workers") == 0) {
            if (!parse_u64(argv[++i], '\0', &workers, &rest) || workers < 2 ||
                workers > SCENARIO_AGENTS_MAX) {
                fprintf(stderr, "sim: --workers takes 2 to %d\n", SCENARIO_AGENTS_MAX);
                return 2;
            }
        } else {
            what = argv[i];
            value = argv[++i];
        }
    }
    int status = what == NULL ? usage() : act(what, value, (uint32_t)workers);
    sim_free(&the_sim);
    return status;
}
