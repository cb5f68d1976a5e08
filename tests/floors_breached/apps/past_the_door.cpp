#include "apps/bench/layer_bench.h"
