#include "simd/dense_table.hpp"

GS_DENSE_TABLE(dense_s, float)
