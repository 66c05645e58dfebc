# SPDX-License-Identifier: Apache-2.0
# What the test asks of the cluster, and waiting for it. Sourced by those that set $project.

# The test ends at the first thing that is wrong, with what the daemons said.
failed() {
    printf 'FAILED: %s\n' "$1"
    local container
    for container in "$project"_coordinator_1 "$project"_worker_{1,2,3}; do
        printf '%s\n' "---- $container"
        docker logs --tail 15 "$container" 2>&1
    done
    cluster job "${job:-1}" 2>&1
    cluster workers 2>&1
    exit 1
}

# until_true SECONDS WHAT COMMAND...
until_true() {
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        [ "$SECONDS" -lt "$end" ] || failed "not within the time given to it: $what"
        wait_a_moment
    done
}

cluster() {
    docker exec "$project"_coordinator_1 cadre --coordinator unix:/run/cadre/coordinator.sock "$@"
}

# The number of a field of the job, from the outermost braces.
job_number() {
    cluster job "$job" --json 2>/dev/null | sed -n "s/^  \"$1\": \([0-9]*\),\$/\1/p"
}

job_state() {
    cluster job "$job" --json 2>/dev/null | sed -n 's/^  "state": "\([a-z]*\)",$/\1/p'
}

position_above() {
    local now
    now=$(job_number position)
    [ -n "$now" ] && [ "$now" -gt "$1" ]
}

# it_goes_on: the job does steps, beyond where it stands now.
it_goes_on() {
    local now
    until_true 30 "the coordinator answers" position_above -1
    now=$(job_number position)
    [ "$(job_state)" = running ] || [ "$(job_state)" = queued ] ||
        failed "the job is $(job_state) at step $now, before all that this test does to it"
    until_true 40 "the job goes on from step $now" position_above $((now + 100))
}

worker_state() {
    cluster workers 2>/dev/null | awk -v name="$1" '$1 == name { print $2 }'
}

is_ready() {
    [ "$(worker_state "$1")" = ready ]
}

# Asked for with an answer of the coordinator: silence says nothing about a worker.
is_lost() {
    local all
    all=$(cluster workers 2>/dev/null) && [ -n "$all" ] &&
        [ "$(awk -v name="$1" '$1 == name { print $2 }' <<<"$all")" != ready ]
}

# worker_of_task INDEX: the name of the worker that runs it.
worker_of_task() {
    cluster job "$job" 2>/dev/null | awk -v task="$1" '$1 == task && $2 == "running" { print $3; found = 1 }
        END { exit !found }'
}
