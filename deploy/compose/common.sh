# SPDX-License-Identifier: Apache-2.0
# What the scripts here share; sourced by those that set $here and $root.

# Where the compiler's results and the base lie; kept between calls.
build=${CADRE_COMPOSE_BUILD:-$root/build-compose}

# shellcheck source=../report.sh
. "$root/deploy/report.sh"

# Names what is missing, and how to install it.
check_docker() {
    command -v docker >/dev/null ||
        fail "docker is not installed: apt-get install docker.io docker-compose mmdebstrap"
    local said
    said=$(docker version --format '{{.Server.Version}}' 2>&1) && return
    case "$said" in
    *"ermission denied"*) fail "docker refuses this user: be root, or of the group docker ($said)" ;;
    esac
    local start="dockerd >/var/log/dockerd.log 2>&1 &    (in a shell of root)"
    [ ! -d /run/systemd/system ] || start="systemctl start docker"
    fail "no docker daemon answers at ${DOCKER_HOST:-unix:///var/run/docker.sock}. Start it:
  $start
It said: $said"
}

# compose: the arguments before every command to the cluster.
find_compose() {
    if docker compose version >/dev/null 2>&1; then
        compose=(docker compose --compatibility) # names of containers as those of docker-compose
    elif command -v docker-compose >/dev/null; then
        compose=(docker-compose)
    else
        fail "docker has no compose: apt-get install docker-compose"
    fi
    project=${CADRE_PROJECT:-cadre}
    compose+=(--project-name "$project" --file "$here/docker-compose.yml")
    [ -z "${CADRE_OVERRIDE-}" ] || compose+=(--file "$CADRE_OVERRIDE")
}
