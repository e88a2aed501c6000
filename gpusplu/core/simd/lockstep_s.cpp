#include "simd/lockstep_table.hpp"

GS_LOCKSTEP_TABLE(float)
