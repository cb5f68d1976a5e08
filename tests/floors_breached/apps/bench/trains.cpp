#include "apps/run_folder/run_folder.h"
