# SPDX-License-Identifier: Apache-2.0
# What the scripts here share; sourced by those that set $here and $root.

# Where the compiler's results and the base lie; kept between calls.
build=${CADRE_COMPOSE_BUILD:-$root/build-compose}

fail() {
    printf '\n%s: %s\n' "${0##*/}" "$1" >&2
    exit 1
}

# fail_with_log REASON FILE
fail_with_log() {
    if [ -s "$2" ]; then
        printf '\nthe end of %s:\n' "$2" >&2
        tail -n 15 "$2" >&2
    fi
    fail "$1"
}

say() {
    printf '      %s\n' "$1"
}

now_ms() {
    local us=${EPOCHREALTIME//[!0-9]/}
    printf '%s' "$((us / 1000))"
}

started_ms=$(now_ms)
step_ms=$started_ms

heading() {
    step_ms=$(now_ms)
    printf '\n[%s] %s\n' "$1" "$2"
}

seconds_since() {
    local ms=$(($(now_ms) - $1))
    printf '%d.%d s' "$((ms / 1000))" "$((ms % 1000 / 100))"
}

done_in() {
    say "$1 ($(seconds_since "$step_ms"))"
}

# Says what is missing, and how it comes.
check_docker() {
    command -v docker >/dev/null ||
        fail "docker is not installed: apt-get install docker.io docker-compose mmdebstrap"
    local said
    said=$(docker version --format '{{.Server.Version}}' 2>&1) && return
    case "$said" in
    *"ermission denied"*) fail "you may not talk to docker: be root, or of the group docker ($said)" ;;
    esac
    local start="dockerd >/var/log/dockerd.log 2>&1 &    (in a shell of root)"
    [ ! -d /run/systemd/system ] || start="systemctl start docker"
    fail "no docker daemon answers at ${DOCKER_HOST:-unix:///var/run/docker.sock}. Start it:
  $start
It said: $said"
}

# compose: the words before every command to the cluster.
find_compose() {
    if docker compose version >/dev/null 2>&1; then
        compose=(docker compose)
    elif command -v docker-compose >/dev/null; then
        compose=(docker-compose)
    else
        fail "docker has no compose: apt-get install docker-compose"
    fi
    project=${CADRE_PROJECT:-cadre}
    compose+=(--project-name "$project" --file "$here/docker-compose.yml")
    [ -z "${CADRE_OVERRIDE-}" ] || compose+=(--file "$CADRE_OVERRIDE")
}
