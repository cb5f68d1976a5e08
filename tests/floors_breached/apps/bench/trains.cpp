#include "apps/run_folder.h"
