#include "simd/lockstep_table.hpp"

GS_LOCKSTEP_TABLE(lockstep_d, double)
