/* SPDX-License-Identifier: Apache-2.0
 * sim: runs seeds, or the corpus, or the mutants; see README.md. Exits with 1 at the first broken
 * invariant. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sys/resource.h>

#include "common/pure/assert.h"
#include "exhaustive.h"

#define WORKERS_DEFAULT   64
#define WORKERS_MAX       512
#define MUTANT_SEEDS_MAX  10000
#define CORPUS_LINE_BYTES 512
#define REPORT_LINES      60
#define COMBINED_VARIANT  100 /* from here on --tiny is the job of --combined */

static struct sim the_sim;
static char trace_lines[SIM_TRACE_LINES][SIM_TRACE_BYTES];

/* A failed assert of a core is a finding like any other. */
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

static void print_trace(const struct sim *sim, uint64_t lines)
{
    uint64_t first = sim->trace_count > lines ? sim->trace_count - lines : 0;
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
}

/* Prints the broken invariant, the command that repeats it, and the end of the transcript. */
static void report(struct sim *sim, uint64_t seed, uint32_t workers)
{
    printf("seed %" PRIu64 " broke %s: %s\n", seed, sim->broken, sim->why);
    run_traced(sim, seed, workers);
    print_trace(sim, REPORT_LINES);
    printf("again: sim%s --seeds %" PRIu64 ":%" PRIu64 " --workers %u\n",
        sim->compares ? " --compare" : "", seed, seed + 1, workers);
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

/* One row of text for each seed that breaks an invariant. */
static int run_survey(uint64_t first, uint64_t end, uint32_t workers)
{
    uint64_t count = 0;
    for (uint64_t seed = first; seed < end; seed++) {
        sim_run(&the_sim, seed, workers);
        if (the_sim.broken != NULL) {
            count++;
            printf("%" PRIu64 " %s: %s\n", seed, the_sim.broken, the_sim.why);
        }
    }
    printf("%" PRIu64 " of %" PRIu64 " seeds broke something\n", count, end - first);
    return count == 0 ? 0 : 1;
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

struct kept_seed {
    bool compares;
    uint64_t seed;
    uint64_t workers;
    const char *why;
};

static bool parse_kept(const char *line, struct kept_seed *ret_kept)
{
    static const char compares[] = "--compare ";
    ret_kept->compares = strncmp(line, compares, strlen(compares)) == 0;
    const char *rest = line + (ret_kept->compares ? strlen(compares) : 0);
    return parse_u64(rest, ' ', &ret_kept->seed, &rest) &&
           parse_u64(rest, ' ', &ret_kept->workers, &ret_kept->why) && ret_kept->workers >= 2 &&
           ret_kept->workers <= WORKERS_MAX;
}

/* Text lines of "[--compare ]seed workers why"; '#' begins a comment. */
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
        struct kept_seed kept;
        if (line[0] == '#' || line[0] == '\n') {
            continue;
        }
        if (!parse_kept(line, &kept)) {
            fprintf(stderr, "sim: not of the form \"[--compare ]seed workers why\": %s", line);
            status = 2;
            break;
        }
        the_sim.compares = kept.compares;
        sim_run(&the_sim, kept.seed, (uint32_t)kept.workers);
        count++;
        if (the_sim.broken != NULL) {
            printf("kept because: %s", kept.why);
            report(&the_sim, kept.seed, (uint32_t)kept.workers);
            status = 1;
        }
    }
    fclose(file);
    printf("%d kept seeds\n", count);
    return status == 0 && count == 0 ? 2 : status;
}

/* Each planted fault whose name begins so must be caught, by the invariant that it breaks. */
static int run_mutants(uint32_t workers, const char *named)
{
    struct sim *sim = &the_sim;
    int escaped = 0;
    int areas = 0;
    int planted = 0;
    for (int mutant = MUTANT_NONE + 1; mutant < MUTANT_COUNT; mutant++) {
        const struct mutant_case *expected = &mutant_cases[mutant];
        if (strncmp(expected->name, named, strlen(named)) != 0) {
            continue;
        }
        planted++;
        uint64_t first = scenario_first(expected->world);
        uint64_t seed = first;
        sim->mutant = (enum mutant)mutant;
        sim->compares = expected->area != NULL && strcmp(expected->area, "values") == 0;
        do {
            sim_run(sim, seed++, workers);
        } while (seed < first + MUTANT_SEEDS_MAX && (sim->broken == NULL || !sim->mutated));
        bool caught = sim->broken != NULL && strstr(expected->caught_by, sim->broken) != NULL;
        printf("%-12s %-24s %s %s after %" PRIu64 " seeds: %s\n",
            expected->area != NULL ? expected->area : "", expected->name,
            caught ? "caught by" : "NOT CAUGHT BY", expected->caught_by, seed - first,
            sim->broken == NULL ? "nothing broke" : sim->why);
        escaped += caught ? 0 : 1;
        areas += expected->area != NULL ? 1 : 0;
    }
    sim->mutant = MUTANT_NONE;
    sim->compares = false;
    printf("%d planted faults, %d of them in what seeds from %" PRIu64 " on draw\n", planted, areas,
        SCENARIO_WORLD_1);
    return escaped == 0 && planted > 0 ? 0 : 1;
}

/* One job of so many tasks: how long it takes to continue after one is killed, and its cost. */
static int run_scale(uint32_t workers)
{
    struct sim *sim = &the_sim;
    struct prng prng = {.state = prng_mix(workers)};
    struct cost cost;
    scenario_scale(&sim->scenario, &prng, workers);
    cost_open(&cost);
    sim->cost = &cost;
    double start_s = seconds();
    sim_run_scenario(sim, workers);
    double took_s = seconds() - start_s;
    sim->cost = NULL;
    if (sim->broken != NULL) {
        printf("%u workers broke %s: %s\n", workers, sim->broken, sim->why);
        return 1;
    }
    struct core_limits limits = {
        .workers_max = workers + 64, .jobs_max = SCENARIO_JOBS_MAX, .tasks_max = workers};
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%u workers in one job: %u generations, ended in %.1f s of virtual time\n", workers,
        sim->jobs[0].meshes, (double)sim->now_us / 1e6);
    printf("a task is killed: the next step is applied by all after %.3f s of virtual time\n",
        (double)(sim->resumed_us - sim->broke_us) / 1e6);
    printf("%" PRIu64 " events, %" PRIu64 " of the coordinator's core, in %.2f s: %.0f events/s\n",
        sim->events, sim->core_events, took_s, (double)sim->events / took_s);
    printf("coordinator's core %.0f bytes a worker, daemon's %zu, task's %zu; process %.0f MiB\n",
        (double)core_bytes(&limits) / workers, agent_core_bytes(1), sizeof(struct task_core),
        (double)usage.ru_maxrss / 1024);
    cost_print(&cost, workers);
    cost_close(&cost);
    return 0;
}

static void print_placed(const struct sim *sim)
{
    for (size_t i = 0; i < sizeof(sim->placed) / sizeof(sim->placed[0]); i++) {
        if (sim->placed[i].at_event != 0) {
            printf(" %" PRIu64 ":%d:%u", sim->placed[i].at_event, (int)sim->placed[i].kind,
                sim->placed[i].which);
        }
    }
}

/* "level" 0: every single fault in three variants; 1: in all, and pairs within a short distance; 2:
 * more. 3 and 4: as 0 and 1, of variants whose steps create variables. */
static int run_exhaustive(uint64_t level)
{
    static const struct exhaustive_bounds bounds[] = {
        {.first = 0, .end = 3, .every = 1},
        {.first = 0, .end = 12, .every = 5, .reach = 41, .stride = 10},
        {.first = 0, .end = 12, .every = 1, .reach = 64, .stride = 1},
        {.first = SCENARIO_TINY_CREATES, .end = 15, .every = 1},
        {.first = SCENARIO_TINY_CREATES, .end = 24, .every = 5, .reach = 41, .stride = 10},
    };
    struct exhaustive_result result;
    double start_s = seconds();
    if (level >= sizeof(bounds) / sizeof(bounds[0])) {
        fprintf(stderr, "sim: --exhaustive takes 0 to 4\n");
        return 2;
    }
    bool whole = exhaustive_run(&the_sim, &bounds[level], &result);
    if (!whole) {
        printf("broke %s: %s\nagain: sim --tiny %u", the_sim.broken, the_sim.why, result.variant);
        print_placed(&the_sim);
        printf("\n");
        return 1;
    }
    printf("%" PRIu64 " runs, all of them whole: %" PRIu64 " events in %.2f s\n", result.runs,
        result.events, seconds() - start_s);
    return 0;
}

/* Mutants that --combined must find: each shows only after a crash, or only after a kill. */
static int run_combined_mutants(struct sim *sim, const struct combined_bounds *bounds)
{
    static const enum mutant planted[] = {MUTANT_PLAN_UNRECORDED, MUTANT_SOURCE_ELSEWHERE,
        MUTANT_RAISED_UNSENT, MUTANT_HELLO_WATERMARK_IGNORED};
    struct exhaustive_result result;
    int escaped = 0;
    for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
        const struct mutant_case *expected = &mutant_cases[planted[i]];
        sim->mutant = planted[i];
        bool whole = combined_run(sim, bounds, &result);
        bool caught = !whole && strstr(expected->caught_by, sim->broken) != NULL;
        printf("%-24s %s %s after %" PRIu64 " runs: %s\n", expected->name,
            caught ? "caught by" : "NOT CAUGHT BY", expected->caught_by, result.runs,
            whole ? "nothing broke" : sim->why);
        escaped += caught ? 0 : 1;
    }
    sim->mutant = MUTANT_NONE;
    return escaped == 0 ? 0 : 1;
}

static int run_combined(uint64_t level)
{
    static const struct combined_bounds bounds[] = {{.variants = 1, .stride = 29},
        {.variants = 4, .stride = 23}, {.variants = 8, .stride = 16}};
    struct exhaustive_result result;
    double start_s = seconds();
    if (level >= sizeof(bounds) / sizeof(bounds[0])) {
        fprintf(stderr, "sim: --combined takes 0 to 2\n");
        return 2;
    }
    if (!combined_run(&the_sim, &bounds[level], &result)) {
        printf("broke %s: %s\nagain: sim --tiny %u", the_sim.broken, the_sim.why,
            result.variant + COMBINED_VARIANT);
        print_placed(&the_sim);
        printf("\n");
        return 1;
    }
    printf("%" PRIu64 " runs, all of them whole: %" PRIu64 " events in %.2f s\n", result.runs,
        result.events, seconds() - start_s);
    return level == 0 ? run_combined_mutants(&the_sim, &bounds[level]) : 0;
}

/* One variant of the tiny job with the faults given as "event:kind:which". */
static int run_tiny(uint32_t variant, int count, char **faults)
{
    struct sim *sim = &the_sim;
    for (int i = 0; i < count && i < INJECTED_MAX; i++) {
        unsigned long long at;
        int kind;
        unsigned which;
        if (sscanf(faults[i], "%llu:%d:%u", &at, &kind, &which) != 3) {
            fprintf(stderr, "sim: not \"event:kind:which\": %s\n", faults[i]);
            return 2;
        }
        sim->placed[i] =
            (struct injected_fault){.at_event = at, .kind = (enum fault_kind)kind, .which = which};
    }
    if (variant >= COMBINED_VARIANT) {
        variant -= COMBINED_VARIANT;
        scenario_combined(&sim->scenario, variant);
    } else {
        scenario_tiny(&sim->scenario, variant);
    }
    sim->tracing = true;
    sim->trace = trace_lines;
    sim_run_scenario(sim, variant);
    sim->tracing = false;
    print_trace(sim, SIM_TRACE_LINES);
    printf("%s\n", sim->broken == NULL ? "nothing broke" : sim->why);
    return sim->broken == NULL ? 0 : 1;
}

static int usage(void)
{
    fprintf(stderr, "usage: sim [--workers N] [--compare] --seeds FIRST:END | --survey FIRST:END |"
                    " --verbose SEED | --mutants | --mutant NAME |"
                    " --corpus FILE | --scale WORKERS | --exhaustive LEVEL | --combined LEVEL |"
                    " --tiny VARIANT [EVENT:KIND:WHICH ...]\n");
    return 2;
}

static int act(const char *what, const char *value, uint32_t workers)
{
    const char *rest;
    uint64_t first;
    uint64_t end;
    if (strcmp(what, "--mutants") == 0) {
        return run_mutants(workers, "");
    }
    if (strcmp(what, "--mutant") == 0) {
        return run_mutants(workers, value);
    }
    if (strcmp(what, "--corpus") == 0) {
        return run_corpus(value);
    }
    if (strcmp(what, "--scale") == 0 && parse_u64(value, '\0', &first, &rest) && first >= 2 &&
        first <= SCENARIO_AGENTS_MAX) {
        return run_scale((uint32_t)first);
    }
    if (strcmp(what, "--exhaustive") == 0 && parse_u64(value, '\0', &first, &rest)) {
        return run_exhaustive(first);
    }
    if (strcmp(what, "--combined") == 0 && parse_u64(value, '\0', &first, &rest)) {
        return run_combined(first);
    }
    if (strcmp(what, "--verbose") == 0 && parse_u64(value, '\0', &first, &rest)) {
        run_traced(&the_sim, first, workers);
        print_trace(&the_sim, SIM_TRACE_LINES);
        printf("%s\n", the_sim.broken == NULL ? "nothing broke" : the_sim.why);
        return the_sim.broken == NULL ? 0 : 1;
    }
    bool range = parse_u64(value, ':', &first, &rest) && parse_u64(rest, '\0', &end, &rest);
    if (strcmp(what, "--seeds") == 0 && range && first < end) {
        return run_seeds(first, end, workers);
    }
    if (strcmp(what, "--survey") == 0 && range && first < end) {
        return run_survey(first, end, workers);
    }
    return usage();
}

int main(int argc, char **argv)
{
    uint64_t workers = WORKERS_DEFAULT;
    uint64_t variant;
    const char *ignored;
    if (argc >= 3 && strcmp(argv[1], "--tiny") == 0 &&
        parse_u64(argv[2], '\0', &variant, &ignored)) {
        int status = run_tiny((uint32_t)variant, argc - 3, argv + 3);
        sim_free(&the_sim);
        return status;
    }
    const char *what = NULL;
    const char *value = "";
    for (int i = 1; i < argc; i++) {
        bool last = i + 1 == argc;
        const char *rest;
        if (strcmp(argv[i], "--mutants") == 0) {
            what = argv[i];
        } else if (strcmp(argv[i], "--compare") == 0) {
            the_sim.compares = true;
        } else if (last) {
            return usage();
        } else if (strcmp(argv[i], "--workers") == 0) {
            if (!parse_u64(argv[++i], '\0', &workers, &rest) || workers < 2 ||
                workers > WORKERS_MAX) {
                fprintf(stderr, "sim: --workers takes 2 to %d\n", WORKERS_MAX);
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
