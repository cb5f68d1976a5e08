#include "models/config/config.h"
