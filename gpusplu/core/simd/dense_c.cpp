#include "simd/dense_table.hpp"

GS_DENSE_TABLE(dense_c, std::complex<float>)
