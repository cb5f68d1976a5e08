# shellcheck shell=sh
# What ./demo and ./check share: options, packages, configuring, building. Sourced, POSIX sh.

install=yes    # --no-install
device=auto    # --cpu, --with-cuda
clean=no       # --clean
build=build/release
started=$(date +%s)
phase_started=$started
in_phase=no

say() { printf '%s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }
seconds_since() { echo "$(($(date +%s) - $1)) s"; }

# phase NAME: ends the phase before with its time, and begins this one.
phase() {
  end_phase
  say "== $*"
  phase_started=$(date +%s)
  in_phase=yes
}
end_phase() {
  [ "$in_phase" = no ] || say "   $(seconds_since "$phase_started")"
  in_phase=no
}

parse_options() {
  for option in "$@"; do
    case $option in
      --no-install) install=no ;;
      --cpu) device=cpu ;;
      --with-cuda) device=cuda ;;
      --clean) clean=yes ;;
      -h | --help) usage; exit 0 ;;
      *) usage >&2; fail "unknown option '$option'" ;;
    esac
  done
}

# Debian's and Ubuntu's names. ocl-icd-opencl-dev: the CMake files of libdnnl-dev ask for OpenCL.
packages() {
  echo g++ cmake ninja-build libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev \
    libxxhash-dev zlib1g-dev libdnnl-dev ocl-icd-opencl-dev libstb-dev "$@"
}

# Faster JPEGs, and several processes that train together (MPI), where they are there; never asked for alone.
optional_packages() { echo libturbojpeg0-dev libopenmpi-dev openmpi-bin; }

missing_packages() {
  for package in "$@"; do
    # shellcheck disable=SC2016
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || printf '%s ' "$package"
  done
}

# install_packages [MORE...]: what is missing of packages() and MORE.
install_packages() {
  if ! has dpkg-query || ! has apt-get; then
    say "not a Debian or Ubuntu system; needed are the equivalents of: $(packages "$@")"
    return
  fi
  # shellcheck disable=SC2046
  missing=$(missing_packages $(packages "$@"))
  [ -n "$missing" ] || return 0
  # shellcheck disable=SC2046
  missing=$missing$(missing_packages $(optional_packages))
  sudo=
  [ "$(id -u)" = 0 ] || sudo='sudo '
  command="${sudo}apt-get install -y --no-install-recommends ${missing% }"
  if [ "$install" = no ]; then
    say "missing packages; this line installs them:"
    printf '%s\n' "$command"
    exit 1
  fi
  if [ -n "$sudo" ] && ! has sudo; then
    fail "packages are missing and there is no sudo; as root: ${command#sudo }"
  fi
  phase "installing ${missing% }"
  # shellcheck disable=SC2086
  ${sudo}apt-get update -qq >&2 || say "apt-get update failed; going on with the lists that are here"
  # shellcheck disable=SC2086
  ${sudo}env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing </dev/null >&2 ||
    fail "could not install the packages; by hand: $command"
}

# The CUDA side is built where a GPU answers; a toolkit alone must not make anybody wait for nvcc.
choose_device() {
  cuda=OFF
  [ "$device" != cpu ] || return 0
  if ! has nvcc && [ -x /usr/local/cuda/bin/nvcc ]; then PATH=$PATH:/usr/local/cuda/bin; fi
  if [ "$device" = cuda ]; then cuda=ON; fi
  if has nvcc && has nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then cuda=ON; fi
}

# The packages of Ubuntu 22.04 have an older one.
require_cmake() {
  least=$(sed -n 's/^cmake_minimum_required(VERSION \(.*\))$/\1/p' CMakeLists.txt)
  found=$(cmake --version 2>/dev/null | sed -n '1s/^cmake version //p')
  [ "$(printf '%s\n' "$least" "$found" | sort -V | head -n 1)" = "$least" ] ||
    fail "CMake $least or later is needed, found ${found:-none}: 'pip install cmake' has a newer one; its folder must be" \
      "first on the PATH"
}

# configure [CMAKE-OPTION...]; TWIDDLE_CMAKE_ARGS adds to them.
configure() {
  require_cmake
  choose_device
  [ "$clean" = no ] || rm -rf "$build"
  phase "configuring $build"
  generator=
  if has ninja && [ ! -e "$build/CMakeCache.txt" ]; then generator='-G Ninja'; fi
  mkdir -p "$build"
  # shellcheck disable=SC2086
  cmake -S . -B "$build" $generator -DCMAKE_BUILD_TYPE=Release "-DTWIDDLE_CUDA=$cuda" "$@" ${TWIDDLE_CMAKE_ARGS-} \
    >"$build/configure.log" 2>&1 || {
    cat "$build/configure.log" >&2
    fail "configuring failed; --clean starts afresh"
  }
}

# As many jobs as cores, and no more than the memory bears: a compiler takes up to 1 GB.
jobs() {
  cores=$(nproc 2>/dev/null || echo 2)
  room=$(awk '/^MemAvailable/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null || true)
  if [ -n "$room" ] && [ "$room" -lt "$cores" ]; then cores=$((room > 1 ? room : 1)); fi
  echo "$cores"
}

# build_targets [TARGET...]: all without a target.
build_targets() {
  phase "building ${*:-everything}"
  if [ $# -gt 0 ]; then set -- --target "$@"; fi
  cmake --build "$build" --parallel "$(jobs)" "$@" >&2 || fail "the build failed"
}
