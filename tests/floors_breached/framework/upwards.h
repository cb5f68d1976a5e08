#include "models/config.h"
