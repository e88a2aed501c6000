#include "simd/dense_table.hpp"

GS_DENSE_TABLE(std::complex<float>)
