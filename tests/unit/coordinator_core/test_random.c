/* SPDX-License-Identifier: Apache-2.0
 * All short sequences of a small alphabet, and long random ones: whatever comes, the invariants and
 * the rules of watch.h hold, equal seeds give equal states, and a healed cluster comes to an end of
 * all jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/prng.h"
#include "tests/lib/rounds.h"
#include "tests/unit/coordinator_core/stage.h"

/* ---- all short sequences ---- */

#define ALPHABET 32

static void letter(struct stage *stage, uint8_t which)
{
    uint32_t w = which % 3u;
    uint32_t slot = which % 2u;
    slot = stage->ps_job && slot == 1 ? 2 : slot; /* the server is what attends */
    switch (which) {
    case 0:
    case 1:
    case 2:
        stage_hello(stage, w, 1, NULL, 0);
        break;
    case 3:
    case 4:
    case 5:
        stage_link_down(stage, w);
        break;
    case 6:
        if (stage->ps_job) {
            stage_submit(stage, &(struct core_job_spec){.tasks = 3,
                                    .tasks_min = 3,
                                    .max_restarts = 1,
                                    .ps_job = {.workers = 1, .servers = 1}});
            break;
        }
        stage_submit(stage,
            &(struct core_job_spec){.tasks = 2, .tasks_min = 1 + stage->fixed, .max_restarts = 1});
        break;
    case 7:
        stage_cancel(stage, 1);
        break;
    case 8:
    case 9:
        stage_task_event(stage, 1, slot, STARTED);
        break;
    case 10:
    case 11:
        stage_task_event(stage, 1, slot, HELLO);
        break;
    case 12:
    case 13:
        stage_arrive(stage, 1, slot, 1, 1);
        break;
    case 14:
    case 15:
        stage_task_event(stage, 1, slot, FINISHED);
        break;
    case 16:
    case 17:
        stage_task_event(stage, 1, slot, EXIT_0);
        break;
    case 18:
    case 19:
        stage_task_event(stage, 1, slot, EXIT_1);
        break;
    case 20:
    case 21:
        stage_task_event(stage, 1, slot, COLLECTED);
        break;
    case 22:
        stage_task_event(stage, 1, 0, stage->compares > 0 ? DIVERGES : PEER_ERROR);
        break;
    case 23:
        stage_task_event(stage, 1, 0, PART);
        break;
    case 24:
        stage_task_event(stage, 1, 1, WANTS);
        break;
    case 27:
    case 28:
        stage_task_event(stage, 1, slot, FREEZES);
        break;
    case 29:
    case 30:
        stage_task_event(stage, 1, slot, JOINS);
        break;
    case 31:
        stage_drain(stage, "a");
        break;
    case 25:
        stage->boots[1]++; /* the daemon of b is started again */
        stage_link_down(stage, 1);
        stage_hello(stage, 1, 1, NULL, 0);
        break;
    default:
        stage_pass_time(stage, 6 * SECOND);
        break;
    }
}

#define DEPTH_MAX  20
#define STATES_MAX (1u << 20)

struct path {
    uint8_t letters[DEPTH_MAX];
};

static bool seen_before(uint64_t *seen, uint64_t digest)
{
    size_t at = (size_t)prng_mix(digest) & (2 * STATES_MAX - 1);
    digest |= 1;
    while (seen[at] != 0) {
        if (seen[at] == digest) {
            return true;
        }
        at = (at + 1) & (2 * STATES_MAX - 1);
    }
    seen[at] = digest;
    return false;
}

/* Everything that can follow a prefix within `depth` more events; states met twice are followed
 * once. Returns how many different states were met. */
static size_t explore(struct stage *stage, const char *prefix, int depth)
{
    uint64_t *seen = calloc(2 * STATES_MAX, sizeof(*seen));
    struct path *paths = calloc(STATES_MAX, sizeof(*paths));
    assert_true(seen != NULL && paths != NULL);
    int length = (int)strlen(prefix);
    size_t first = 0;
    size_t end = 1;
    for (int i = 0; i < length; i++) {
        paths[0].letters[i] = (uint8_t)(prefix[i] - 'a');
    }
    for (int level = length; level < length + depth; level++) {
        size_t level_end = end;
        for (; first < level_end; first++) {
            stage_init(stage);
            for (int i = 0; i < level; i++) {
                letter(stage, paths[first].letters[i]);
            }
            stage_keep(stage);
            for (uint8_t next = 0; next < ALPHABET; next++) {
                struct path path = paths[first];
                path.letters[level] = next;
                stage_return(stage);
                letter(stage, next);
                if (!seen_before(seen, core_digest(stage->core)) && level + 1 < length + depth) {
                    assert_true(end < STATES_MAX);
                    paths[end++] = path;
                }
            }
        }
    }
    free(paths);
    free(seen);
    return end;
}

static void all_short_sequences_hold(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    size_t states = 0;
    const int depth = TEST_ROUNDS(100) < 100 ? 3 : 4;
    for (int fixed = 0; fixed < 2; fixed++) {
        stage.fixed = fixed != 0;
        /* From nothing; from two joined workers and a job; from a running generation; from one that
         * lost a member; from one whose member was replaced; from a finished one. */
        states += explore(&stage, "", depth);
        states += explore(&stage, "abg", depth);
        states += explore(&stage, "abgijklmn", depth);
        states += explore(&stage, "abgijklmns", depth);
        states += explore(&stage, "abgijklmnt}vl~", depth);
        states += explore(&stage, "abgijklmnop", depth);
    }
    for (stage.compares = 1; stage.compares <= 2; stage.compares++) {
        states += explore(&stage, "abgijklmn", depth - 1);
        states += explore(&stage, "abgijklmno", depth - 1);
        states += explore(&stage, "abgijklmnw", depth - 1);
    }
    stage.compares = 0;
    stage.plain = true; /* from a running one; from one at the halt for a joiner */
    states += explore(&stage, "abgijklmn", depth - 1);
    states += explore(&stage, "abgijklmnt}vl~", depth - 1);
    stage.plain = false;
    stage.ps_job = true; /* from nothing; from a running one; from one whose server was replaced */
    states += explore(&stage, "abcg", 2);
    states += explore(&stage, "abcgijlk", 2);
    states += explore(&stage, "abcgijlkt}vj", 2);
    print_message("%zu states\n", states);
    stage_close(&stage);
}

/* ---- long random sequences ---- */

static uint64_t some_job(struct stage *stage, struct prng *prng)
{
    uint64_t back = prng_uniform(prng, 6);
    return stage->job_last > back ? stage->job_last - back : prng_uniform(prng, 3);
}

static void random_hello(struct stage *stage, struct prng *prng, uint32_t w)
{
    struct task_ref held[8];
    size_t count = 0;
    if (prng_chance(prng, 1, 4)) {
        stage->boots[w] += 10;
    }
    for (uint64_t back = 0; back < 4 && stage->job_last > back; back++) {
        struct core_job_view view;
        if (!core_job(stage->core, (struct job_id){stage->job_last - back}, &view)) {
            continue;
        }
        for (uint32_t slot = 0; slot < view.tasks && count < 8; slot++) {
            struct core_task_view task;
            core_job_task(stage->core, view.job, slot, &task);
            if (prng_chance(prng, 2, 3)) {
                held[count++] = (struct task_ref){view.job, slot, task.incarnation};
            }
        }
    }
    stage_hello(stage, w, 1 + (uint32_t)prng_uniform(prng, 3), held, count);
}

/* Messages of the kind that a faulty or older peer might send. */
static void random_garbage(struct stage *stage, struct prng *prng, uint64_t link)
{
    /* One draw after the other: the order of evaluation within an expression is the compiler's. */
    struct task_ref ref = {.job = {some_job(stage, prng)}};
    ref.slot = (uint32_t)prng_uniform(prng, 5);
    ref.incarnation = prng_uniform(prng, 5);
    struct generation generation = {.number = prng_uniform(prng, 3)};
    generation.nonce = prng_uniform(prng, 3);
    uint32_t version = (uint32_t)prng_uniform(prng, 3);
    uint32_t replicas = (uint32_t)prng_uniform(prng, 3);
    struct agent_up message = {.type = AGENT_UP_RELAY, .relay_up = {.task = ref}};
    switch (prng_uniform(prng, 6)) {
    case 0:
        message.relay_up.up = (struct task_up){
            .type = TASK_UP_REPORT, .report = {.generation = generation, .position = 3}};
        break;
    case 1:
        message.relay_up.up = (struct task_up){.type = TASK_UP_HELLO,
            .hello = {.frame_version = version,
                .replicas = replicas,
                .mesh_address = "y",
                .generation = generation}};
        break;
    case 2:
        message = (struct agent_up){.type = AGENT_UP_ARRIVED,
            .arrived = {.job = ref.job,
                .generation = generation,
                .tasks = 1,
                .up_to = prng_uniform(prng, 1000)}};
        break;
    case 3:
        message = (struct agent_up){.type = AGENT_UP_TASK_GONE, .gone = {.task = ref}};
        break;
    case 4:
        message = (struct agent_up){
            .type = AGENT_UP_TASK_COLLECTED, .collected = {.task = ref, .text = ""}};
        break;
    default:
        message = (struct agent_up){.type = AGENT_UP_TASK_STARTED, .started = {.task = ref}};
        break;
    }
    stage_up(stage, link, &message);
}

static void random_event(struct stage *stage, struct prng *prng)
{
    uint32_t w = (uint32_t)prng_uniform(prng, WORKERS);
    uint64_t job = some_job(stage, prng);
    uint32_t slot = (uint32_t)prng_uniform(prng, 4);
    uint64_t dice = prng_uniform(prng, 100);
    stage->now_us += prng_uniform(prng, 200000);
    if (dice < 4) {
        random_hello(stage, prng, w);
    } else if (dice < 6 && stage->links[w] != 0) {
        stage_link_down(stage, w);
    } else if (dice < 14 && stage->links[w] != 0) {
        stage_up(stage, stage->links[w], &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
    } else if (dice < 15 && stage->links[w] != 0 && prng_chance(prng, 1, 5)) {
        stage_up(stage, stage->links[w], &(struct agent_up){.type = AGENT_UP_DRAINING});
    } else if (dice < 15 && prng_chance(prng, 1, 5)) {
        stage_drain(stage, w == 0 ? "a" : w == 1 ? "b" : "c");
    } else if (dice < 21) {
        struct core_job_spec spec = {.tasks = 1 + (uint32_t)prng_uniform(prng, 5)};
        spec.tasks_min =
            prng_chance(prng, 1, 2) ? spec.tasks : 1 + (uint32_t)prng_uniform(prng, spec.tasks);
        spec.priority = (int32_t)prng_uniform(prng, 3);
        spec.max_restarts = (uint32_t)prng_uniform(prng, 4);
        spec.time_limit_us = prng_uniform(prng, 4) == 0 ? prng_uniform(prng, 60) * 1000000 : 0;
        if (spec.tasks >= 3 && prng_chance(prng, 1, 2)) {
            spec.ps_job = (struct ps_job){.workers = 1, .servers = spec.tasks - 2};
            if (spec.tasks == 5) {
                spec.ps_job.evaluators = 1;
                spec.ps_job.servers--;
            }
            spec.tasks_min = spec.tasks;
        }
        stage_submit(stage, &spec);
        stage->job_last = stage->watch->live + stage->watch->ended;
    } else if (dice < 22) {
        stage_cancel(stage, job);
    } else if (dice < 36) {
        stage_task_event(stage, job, slot, STARTED);
    } else if (dice < 52) {
        stage_task_event(stage, job, slot, HELLO);
    } else if (dice < 68) {
        uint64_t ahead = 1 + prng_uniform(prng, 4);
        stage_arrive(stage, job, slot, ahead, prng_chance(prng, 1, 40) ? 2 : 1);
    } else if (dice < 76) {
        stage_task_event(stage, job, slot, prng_chance(prng, 1, 20) ? WANTS : FINISHED);
    } else if (dice < 78) {
        enum task_event which = (enum task_event)(DIRTY + prng_uniform(prng, PART - DIRTY + 1));
        stage_task_event(stage, job, slot, which);
    } else if (dice < 82) {
        stage_task_event(stage, job, slot, prng_chance(prng, 1, 3) ? JOINS : FREEZES);
    } else if (dice < 85) {
        stage_task_event(stage, job, slot, EXIT_0);
    } else if (dice < 86) {
        stage_task_event(stage, job, slot, EXIT_1);
    } else if (dice < 95) {
        stage_task_event(stage, job, slot, COLLECTED);
    } else if (dice < 98) {
        stage_pass_time(stage, prng_uniform(prng, 3 * SECOND));
    } else {
        random_garbage(stage, prng, stage->links[w]);
    }
}

/* All workers come back, all tasks end: nothing may be left over. */
static void heal(struct stage *stage)
{
    for (int round = 0; round < 60 && stage->watch->live > 0; round++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            if (stage->links[w] == 0) {
                stage_hello(stage, w, 4, NULL, 0);
            } else {
                stage_up(stage, stage->links[w], &(struct agent_up){.type = AGENT_UP_HEARTBEAT});
            }
        }
        for (uint64_t job = 1; job <= stage->job_last; job++) {
            for (uint32_t slot = 0; slot < 5; slot++) {
                stage_task_event(stage, job, slot, STARTED);
                stage_task_event(stage, job, slot, EXIT_0);
                stage_task_event(stage, job, slot, COLLECTED);
            }
        }
        if (round > 30) {
            for (uint64_t job = 1; job <= stage->job_last; job++) {
                struct core_job_view view;
                if (core_job(stage->core, (struct job_id){job}, &view)) {
                    stage_cancel(stage, job);
                }
            }
        }
        stage_pass_time(stage, 4 * SECOND);
    }
    assert_int_equal(stage->watch->live, 0);
}

static uint64_t run_seed(struct stage *stage, uint64_t seed, uint32_t events)
{
    struct prng prng = {.state = seed};
    stage_init(stage);
    stage->compares = (uint32_t)(seed % 4);
    stage->plain = seed % 7 == 1;
    while (stage->steps < events) {
        random_event(stage, &prng);
    }
    uint64_t digest = core_digest(stage->core);
    heal(stage);
    return digest;
}

/* Each broke a promise once. */
static void kept_seeds_hold(void **state)
{
    (void)state;
    /* A stopped task fails: a server whose plain chief has ended, one that left a drain. */
    static const uint64_t kept[] = {102, 1127, 1523};
    struct stage stage;
    stage_open(&stage);
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        (void)run_seed(&stage, kept[i], 2000);
    }
    stage_close(&stage);
}

static void random_events_hold(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage);
    uint64_t steps = 0;
    uint64_t ended = 0;
    uint64_t succeeded = 0;
    uint64_t digest = 0;
    for (uint64_t seed = 1; seed <= TEST_ROUNDS(100); seed++) {
        digest = prng_mix(digest ^ run_seed(&stage, seed, 2000));
        steps += stage.steps;
        ended += stage.watch->ended;
        succeeded += stage.watch->succeeded;
    }
    /* The generator is worth nothing when it does not get far. */
    assert_true(ended > TEST_ROUNDS(1000) && succeeded > TEST_ROUNDS(100) && succeeded < ended);
    print_message("%llu steps, %llu jobs ended, %llu succeeded, digest %016llx\n",
        (unsigned long long)steps, (unsigned long long)ended, (unsigned long long)succeeded,
        (unsigned long long)digest);
    uint64_t once = run_seed(&stage, 5, 2000);
    assert_true(once == run_seed(&stage, 5, 2000));
    assert_true(once != run_seed(&stage, 6, 2000));
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_short_sequences_hold),
        cmocka_unit_test(kept_seeds_hold),
        cmocka_unit_test(random_events_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
