#include "../models/config.h"
