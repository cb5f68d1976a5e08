#include "fft/grid.h"
