#include "simd/lockstep.hpp"

GS_LOCKSTEP_TABLE(lockstep_c, std::complex<float>)
